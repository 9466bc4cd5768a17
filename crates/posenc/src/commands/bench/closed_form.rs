//! The closed form of `trading` (Table 1): encode, factor, solve.

use std::hint::black_box;

use anyhow::Result;
use faer::{Mat, MatRef};
use posenc_math::closed_form::{Factorization, Separable2d};
use posenc_math::embedder::{Embedder, EmbedderSpec, build, matrix, names};
use posenc_math::random::stream;
use posenc_math::statistics::median;

use super::measure::{matrix_product_rate, median_of, on_threads, timed};
use super::peer::{ClosedFormTimes, Peer};
use super::{Measured, ROUNDS, against_torch, networks};

/// Training points and features along each axis, channels and images of Table 1.
const SIDE: usize = 256;
const CHANNELS: usize = 3;
const IMAGES: usize = 16;

pub struct Workload {
    /// Name on the command line, and of the time of one image.
    pub name: &'static str,
    /// Name of the time per image with 16 images.
    name_of_16: &'static str,
    title: &'static str,
    encoder: &'static str,
}

pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "closed-form",
        name_of_16: "closed-form-16",
        title: "Gaussian",
        encoder: "gau",
    },
    Workload {
        name: "closed-form-tri",
        name_of_16: "closed-form-tri-16",
        title: "triangle",
        encoder: "tri",
    },
];

/// Measures and prints one encoder: the time of one image, and the time per image of 16.
pub fn measure(
    workload: &Workload,
    threads: usize,
    repeats: usize,
    torch: Option<&Peer>,
) -> Result<Vec<Measured>> {
    let spec = match workload.encoder {
        "gau" => EmbedderSpec::new(names::GAUSSIAN).number("sigma", 0.0025),
        _ => EmbedderSpec::new(names::TRIANGLE).number("half_width", 1.0 / SIDE as f64),
    };
    let spec = spec.number("dimension", SIDE as f64);
    let embedder = build(&spec, &mut stream(0, "bench"))?;
    let positions: Vec<f64> = (0..SIDE).map(|i| i as f64 / SIDE as f64).collect();
    let channels: Vec<Mat<f32>> = (0..IMAGES * CHANNELS).map(channel).collect();
    let views: Vec<MatRef<'_, f32>> = channels.iter().map(Mat::as_ref).collect();

    let (mut one, mut sixteen, mut rate) = (Vec::new(), Vec::new(), Vec::new());
    let mut peers: Vec<ClosedFormTimes> = Vec::new();
    for _ in 0..ROUNDS {
        one.push(timed(repeats, || solve(&*embedder, &positions, &views[..CHANNELS], threads))?);
        sixteen.push(timed(repeats, || solve(&*embedder, &positions, &views, threads))?);
        rate.push(matrix_product_rate(threads, repeats)?);
        if let Some(torch) = torch {
            peers.push(torch.closed_form(workload.encoder, threads, repeats)?);
        }
    }
    let one = median(&one);
    let per_image = median(&sixteen) / IMAGES as f64;
    let rate = median(&rate);
    let peer_median = |f: fn(&ClosedFormTimes) -> f64| median_of(peers.iter().map(f));
    let torch_one = peer_median(|p| p.one_image_s);
    let torch_each = peer_median(|p| p.per_image_of_16_s);
    let torch_shared = peer_median(|p| p.shared_per_image_of_16_s);
    // Two products per channel; encoding and factoring are not counted.
    let operations = (4 * SIDE * SIDE * SIDE * CHANNELS) as f64;

    let title = workload.title;
    println!(
        "closed form, {title}, {SIDE} × {SIDE} points, {CHANNELS} channels, {threads} threads"
    );
    println!("  matrix products of this machine    {rate:8.1} GFLOP/s (f32)");
    if let Some(p) = peers.first() {
        println!("  peer                               {}", p.implementation);
    }
    let line = |label: &str, ours: f64, peer: Option<f64>| {
        println!("  {label:<34} {:8.3} ms{}", 1e3 * ours, against_torch(peer, ours));
    };
    line("one image", one, torch_one);
    line("per image of 16, factored once", per_image, torch_each);
    if let Some(shared) = torch_shared {
        line("  against PyTorch factoring once", per_image, Some(shared));
    }
    let implementation: Vec<String> =
        peers.first().map(|p| p.implementation.clone()).into_iter().collect();
    let measured = |name, images: &str, ours_s: f64, torch_s| Measured {
        name,
        title: format!("closed form, {title}, {images}"),
        unit: "s per image",
        ours_s,
        torch_s,
        jax_s: None,
        gemm_gflops: rate,
        share_of_gemm: operations / ours_s / 1e9 / rate,
        threads,
        peers: implementation.clone(),
        more: networks::More::default(),
    };
    Ok(vec![
        measured(workload.name, "one image", one, torch_one),
        measured(workload.name_of_16, "one of 16 images", per_image, torch_each),
    ])
}

/// Encodes, factors and solves. Each thread solves a contiguous block of channels. A channel's weights do not depend on the number
/// of channels.
fn solve(
    embedder: &dyn Embedder,
    positions: &[f64],
    channels: &[MatRef<'_, f32>],
    threads: usize,
) -> Result<()> {
    let exact = matrix(embedder, positions);
    let psi = Mat::from_fn(exact.nrows(), exact.ncols(), |i, j| exact[(i, j)] as f32);
    let factorization = &Factorization::new(psi.as_ref())?;
    // Like the peer, keeps the weights of only one image at a time.
    let one = |part: &[MatRef<'_, f32>]| -> Result<()> {
        let mut solver = Separable2d::solver(factorization, factorization);
        let mut weights: [Mat<f32>; CHANNELS] = std::array::from_fn(|_| Mat::new());
        for image in part.chunks(CHANNELS) {
            for (channel, weights) in image.iter().zip(&mut weights) {
                solver.apply_into(*channel, weights)?;
            }
            black_box(&weights);
        }
        Ok(())
    };
    if threads == 1 {
        return one(channels);
    }
    let parts: Vec<_> = channels.chunks(channels.len().div_ceil(threads)).collect();
    on_threads(parts.len(), |part| one(parts[part])).map(drop)
}

/// A smooth channel with some fine detail; the time does not depend on the values.
fn channel(index: usize) -> Mat<f32> {
    Mat::from_fn(SIDE, SIDE, |i, j| {
        0.5 + 0.4 * (0.02 * (i + 3 * index) as f32).sin() * (0.03 * j as f32).cos()
            + 0.1 * ((i * 31 + j * 17 + index) % 7) as f32 / 7.0
    })
}
