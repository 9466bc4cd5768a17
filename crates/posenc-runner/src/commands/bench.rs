//! `bench`: our time, a peer's time on the same cores in the same run, and this machine's own
//! matrix-product rate measured between them.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use faer::{Accum, Mat, MatRef, Par};
use posenc_experiments::yaml::nearest;
use posenc_math::closed_form::{Factorization, Separable2d};
use posenc_math::embedder::{Embedder, EmbedderSpec, build, matrix};
use posenc_math::random::stream;
use serde::{Deserialize, Serialize};

use crate::arguments::Bench;
use crate::machine;
use crate::repository::Repository;

/// Training points and features along each axis, channels and images of Table 1.
const SIDE: usize = 256;
const CHANNELS: usize = 3;
const IMAGES: usize = 16;

/// One measured workload.
#[derive(Debug, Serialize)]
struct Measured {
    name: &'static str,
    ours_s: f64,
    torch_s: Option<f64>,
    jax_s: Option<f64>,
    /// Matrix products of this machine, single precision, all threads, in GFLOP/s.
    gemm_gflops: f64,
    /// Arithmetic of the workload over our time, as a share of that rate.
    share_of_gemm: f64,
    threads: usize,
}

/// What `benches/peers/closed_form.py` prints.
#[derive(Debug, Deserialize)]
struct PeerTimes {
    implementation: String,
    one_image_s: f64,
    per_image_of_16_s: f64,
    shared_per_image_of_16_s: f64,
}

const NAMES: &[&str] = &["closed-form", "closed-form-tri"];

/// Runs the verb.
pub fn bench(repository: &Repository, options: &Bench) -> Result<ExitCode> {
    for name in &options.names {
        if !NAMES.contains(&name.as_str()) {
            let hint = nearest(name, NAMES.iter().copied())
                .map(|n| format!("; did you mean {n}?"))
                .unwrap_or_default();
            bail!("no workload `{name}`{hint} Allowed: {}", NAMES.join(", "));
        }
    }
    let peer = peer_python(repository);
    if let Err(why) = &peer {
        eprintln!("note: {why}; our times are shown alone");
    }
    let threads = machine::cores();
    let mut all = Vec::new();
    for name in NAMES {
        if !options.names.is_empty() && !options.names.iter().any(|n| n == name) {
            continue;
        }
        let encoder = if *name == "closed-form" { "gau" } else { "tri" };
        let rows = closed_form(encoder, threads, options, repository, peer.as_ref().ok())?;
        all.extend(rows);
    }
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(&all)? + "\n";
        std::fs::write(file, text)
            .with_context(|| format!("{} cannot be written", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn closed_form(
    encoder: &'static str,
    threads: usize,
    options: &Bench,
    repository: &Repository,
    peer: Option<&Peer>,
) -> Result<Vec<Measured>> {
    let spec = match encoder {
        "gau" => EmbedderSpec::new("gaussian").number("sigma", 0.0025),
        _ => EmbedderSpec::new("triangle").number("half_width", 1.0 / SIDE as f64),
    };
    let spec = spec.number("dimension", SIDE as f64);
    let embedder = build(&spec, &mut stream(0, "bench"))?;
    let positions: Vec<f64> = (0..SIDE).map(|i| i as f64 / SIDE as f64).collect();
    let channels: Vec<Mat<f32>> = (0..IMAGES * CHANNELS).map(channel).collect();
    let views: Vec<MatRef<'_, f32>> = channels.iter().map(Mat::as_ref).collect();
    let repeats = usize::from(options.repeats);

    // Ours, the peer's and the machine's own rate in turn, three rounds: a machine that drifts
    // drifts for all of them.
    let (mut one, mut sixteen, mut rate) = (Vec::new(), Vec::new(), Vec::new());
    let mut peers: Vec<PeerTimes> = Vec::new();
    for _ in 0..3 {
        one.push(timed(repeats, || solve(&*embedder, &positions, &views[..CHANNELS], threads))?);
        sixteen.push(timed(repeats, || solve(&*embedder, &positions, &views, threads))?);
        rate.push(matrix_product_rate(threads, repeats)?);
        if let Some(peer) = peer {
            peers.push(peer.closed_form(repository, encoder, threads, repeats)?);
        }
    }
    let one = median(&mut one);
    let per_image = median(&mut sixteen) / IMAGES as f64;
    let rate = median(&mut rate);
    let peer_median = |f: fn(&PeerTimes) -> f64| -> Option<f64> {
        let mut times: Vec<f64> = peers.iter().map(f).collect();
        (!times.is_empty()).then(|| median(&mut times))
    };
    let torch_one = peer_median(|p| p.one_image_s);
    let torch_each = peer_median(|p| p.per_image_of_16_s);
    let torch_shared = peer_median(|p| p.shared_per_image_of_16_s);
    // Two products per channel; encoding and factoring come on top and are not counted.
    let operations = (4 * SIDE * SIDE * SIDE * CHANNELS) as f64;

    let title = if encoder == "gau" { "Gaussian" } else { "triangle" };
    println!(
        "closed form, {title}, {SIDE} × {SIDE} points, {CHANNELS} channels, {threads} threads"
    );
    println!("  matrix products of this machine    {rate:8.1} GFLOP/s (f32)");
    if let Some(p) = peers.first() {
        println!("  peer                               {}", p.implementation);
    }
    let line = |label: &str, ours: f64, peer: Option<f64>| {
        let against = peer.map_or(String::new(), |p| {
            format!(", PyTorch {:8.3} ms, ratio {:5.2}", 1e3 * p, p / ours)
        });
        println!("  {label:<34} {:8.3} ms{against}", 1e3 * ours);
    };
    line("one image", one, torch_one);
    line("per image of 16, factored once", per_image, torch_each);
    if let Some(shared) = torch_shared {
        line("  against PyTorch factoring once", per_image, Some(shared));
    }
    let measured = |name, ours_s: f64, torch_s| Measured {
        name,
        ours_s,
        torch_s,
        jax_s: None,
        gemm_gflops: rate,
        share_of_gemm: operations / ours_s / 1e9 / rate,
        threads,
    };
    let names = match encoder {
        "gau" => ["closed-form", "closed-form-16"],
        _ => ["closed-form-tri", "closed-form-tri-16"],
    };
    Ok(vec![measured(names[0], one, torch_one), measured(names[1], per_image, torch_each)])
}

/// Encode, factor, solve. Each thread takes a fixed run of channels; a channel's weights do not
/// depend on how many there are.
fn solve(
    embedder: &dyn Embedder,
    positions: &[f64],
    channels: &[MatRef<'_, f32>],
    threads: usize,
) -> Result<()> {
    let exact = matrix(embedder, positions);
    let psi = Mat::from_fn(exact.nrows(), exact.ncols(), |i, j| exact[(i, j)] as f32);
    let factorization = &Factorization::new(psi.as_ref())?;
    // Like the peer, it lets go of an image's weights before it turns to the next.
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
    std::thread::scope(|scope| {
        let workers: Vec<_> = channels
            .chunks(channels.len().div_ceil(threads))
            .map(|part| scope.spawn(move || one(part)))
            .collect();
        for worker in workers {
            match worker.join() {
                Ok(result) => result?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(())
    })
}

/// Smooth, with a share of fine detail; the time does not depend on the values.
fn channel(index: usize) -> Mat<f32> {
    Mat::from_fn(SIDE, SIDE, |i, j| {
        0.5 + 0.4 * (0.02 * (i + 3 * index) as f32).sin() * (0.03 * j as f32).cos()
            + 0.1 * ((i * 31 + j * 17 + index) % 7) as f32 / 7.0
    })
}

/// GFLOP/s of faer's product of 1024 × 1024 matrices, one product per thread at a time.
fn matrix_product_rate(threads: usize, repeats: usize) -> Result<f64> {
    const N: usize = 1024;
    let a = Mat::from_fn(N, N, |i, j| ((i * 7 + j * 3) % 11) as f32);
    let one = || {
        let mut c = Mat::<f32>::zeros(N, N);
        faer::linalg::matmul::matmul(c.as_mut(), Accum::Replace, &a, &a, 1.0, Par::Seq);
        black_box(&c);
    };
    let seconds = timed(repeats, || {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(one);
            }
        });
        Ok(())
    })?;
    Ok(threads as f64 * 2.0 * (N as f64).powi(3) / seconds / 1e9)
}

/// Median wall time in seconds, after one run that is not counted.
fn timed(repeats: usize, run: impl Fn() -> Result<()>) -> Result<f64> {
    run()?;
    let mut seconds = Vec::with_capacity(repeats);
    for _ in 0..repeats {
        let started = Instant::now();
        run()?;
        seconds.push(started.elapsed().as_secs_f64());
    }
    Ok(median(&mut seconds))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A Python that has PyTorch.
pub struct Peer {
    /// The interpreter.
    pub python: String,
    /// PyTorch's version.
    pub version: String,
}

/// Finds the Python of `POSENC_PYTHON`, else `python3`, and asks it for PyTorch.
pub fn peer_python(repository: &Repository) -> Result<Peer, String> {
    let python = std::env::var("POSENC_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(&python)
        .args(["-c", "import torch; print(torch.__version__)"])
        .current_dir(repository.root())
        .output()
        .map_err(|e| format!("{python} cannot be started ({e})"))?;
    if !output.status.success() {
        return Err(format!("{python} has no PyTorch"));
    }
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(Peer { python, version })
}

impl Peer {
    fn closed_form(
        &self,
        repository: &Repository,
        encoder: &str,
        threads: usize,
        repeats: usize,
    ) -> Result<PeerTimes> {
        let script: PathBuf = repository.root().join("benches/peers/closed_form.py");
        let repeats = repeats.max(5).to_string();
        let output = self.run(&script, &["--encoder", encoder], threads, &repeats)?;
        serde_json::from_str(&output)
            .with_context(|| format!("{} printed no times: {output}", script.display()))
    }

    fn run(
        &self,
        script: &Path,
        options: &[&str],
        threads: usize,
        repeats: &str,
    ) -> Result<String> {
        let output = Command::new(&self.python)
            .arg(script)
            .args(options)
            .args(["--threads", &threads.to_string(), "--repeats", repeats])
            .output()
            .with_context(|| format!("{} cannot be started", self.python))?;
        if !output.status.success() {
            bail!(
                "{} failed: {}",
                script.display(),
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
