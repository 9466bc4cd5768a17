//! Times the closed form on 256×256 training points with three channels, in f32: encode, factor and
//! solve for one image, and per image for sixteen images that share one factorization.
//!
//! ```text
//! cargo run --release -p posenc-math --example closed_form_speed -- --threads 2 --repeats 9 --encoder gau
//! ```
//!
//! Prints one JSON object of medians in seconds with the same keys as `benches/peers/closed_form.py`,
//! which does the same in PyTorch.

use std::hint::black_box;
use std::time::Instant;

use faer::Mat;
use posenc_math::closed_form::{ClosedFormError, Factorization, Separable2d, solve_2d};

const SIDE: usize = 256;
const CHANNELS: usize = 3;
const IMAGES: usize = 16;

struct Options {
    threads: usize,
    repeats: usize,
    encoder: String,
}

fn main() -> Result<(), String> {
    let Options { threads, repeats, encoder } = options()?;
    // The closed-form parameters of trading, Table 1.
    let kernel: fn(f32) -> f32 = match encoder.as_str() {
        "gau" => |delta| (-delta * delta / (2.0 * 0.0025 * 0.0025)).exp(),
        "tri" => |delta| (1.0 - delta.abs() * SIDE as f32).max(0.0),
        other => return Err(format!("--encoder {other}: expected gau or tri")),
    };
    let images: Vec<Vec<Mat<f32>>> = (0..IMAGES)
        .map(|image| (0..CHANNELS).map(|c| test_channel(CHANNELS * image + c)).collect())
        .collect();

    let one = median(repeats, || one_image(kernel, &images[0], threads))?;
    let sixteen = median(repeats, || all_images(kernel, &images, threads))?;
    println!(
        "{{\"implementation\": \"posenc\", \"encoder\": \"{encoder}\", \"threads\": {threads}, \
         \"repeats\": {repeats}, \"one_image_s\": {one:.6}, \"per_image_of_16_s\": {:.6}}}",
        sixteen / IMAGES as f64
    );
    Ok(())
}

/// Encode and factor. Both axes have the same points, so they share the result.
fn factor(kernel: fn(f32) -> f32) -> Result<Factorization<f32>, ClosedFormError> {
    let psi = Mat::from_fn(SIDE, SIDE, |i, j| kernel((i as f32 - j as f32) / SIDE as f32));
    Factorization::new(psi.as_ref())
}

/// Encode, factor and solve for the channels of one image, shared out to the threads.
fn one_image(
    kernel: fn(f32) -> f32,
    channels: &[Mat<f32>],
    threads: usize,
) -> Result<(), ClosedFormError> {
    let factorization = factor(kernel)?;
    share_out(channels, threads, |part| {
        let views: Vec<_> = part.iter().map(Mat::as_ref).collect();
        black_box(solve_2d(&factorization, &factorization, &views)?);
        Ok(())
    })
}

/// Encode and factor once, then solve image after image, the images shared out to the threads. Like
/// the peer, it lets go of an image's weights before it turns to the next.
fn all_images(
    kernel: fn(f32) -> f32,
    images: &[Vec<Mat<f32>>],
    threads: usize,
) -> Result<(), ClosedFormError> {
    let factorization = factor(kernel)?;
    share_out(images, threads, |part| {
        let mut solver = Separable2d::solver(&factorization, &factorization);
        let mut weights: [Mat<f32>; CHANNELS] = std::array::from_fn(|_| Mat::new());
        for image in part {
            for (channel, weights) in image.iter().zip(&mut weights) {
                solver.apply_into(channel.as_ref(), weights)?;
            }
            black_box(&weights);
        }
        Ok(())
    })
}

/// Gives each thread a run of the items. The numbers that come out do not depend on how many there
/// are.
fn share_out<Item: Sync>(
    items: &[Item],
    threads: usize,
    work: impl Fn(&[Item]) -> Result<(), ClosedFormError> + Sync,
) -> Result<(), ClosedFormError> {
    if threads == 1 {
        return work(items);
    }
    std::thread::scope(|scope| {
        let run = items.len().div_ceil(threads);
        let workers: Vec<_> = items.chunks(run).map(|part| scope.spawn(|| work(part))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker panicked"))
    })
}

/// Smooth, with a share of fine detail; the time does not depend on the values.
fn test_channel(index: usize) -> Mat<f32> {
    Mat::from_fn(SIDE, SIDE, |i, j| {
        0.5 + 0.4 * (0.02 * (i + 3 * index) as f32).sin() * (0.03 * j as f32).cos()
            + 0.1 * ((i * 31 + j * 17 + index) % 7) as f32 / 7.0
    })
}

/// Median wall time in seconds, after one run that is not counted.
fn median(repeats: usize, run: impl Fn() -> Result<(), ClosedFormError>) -> Result<f64, String> {
    let timed = || {
        let start = Instant::now();
        run().map_err(|error| error.to_string())?;
        Ok(start.elapsed().as_secs_f64())
    };
    timed()?;
    let mut seconds = (0..repeats).map(|_| timed()).collect::<Result<Vec<f64>, String>>()?;
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[repeats / 2])
}

fn options() -> Result<Options, String> {
    let mut options = Options { threads: 1, repeats: 9, encoder: "gau".into() };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        let count = || match value.parse() {
            Ok(0) | Err(_) => Err(format!("{name} {value}: expected a whole number of at least 1")),
            Ok(count) => Ok(count),
        };
        match name.as_str() {
            "--threads" => options.threads = count()?,
            "--repeats" => options.repeats = count()?,
            "--encoder" => options.encoder = value,
            other => {
                return Err(format!("{other}: expected --threads, --repeats or --encoder"));
            }
        }
    }
    Ok(options)
}
