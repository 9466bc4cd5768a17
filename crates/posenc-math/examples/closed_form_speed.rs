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

use faer::{Mat, MatRef};
use posenc_math::closed_form::{ClosedFormError, Factorization, solve_2d};

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
    let channels: Vec<Mat<f32>> = (0..IMAGES * CHANNELS).map(test_channel).collect();
    let views: Vec<_> = channels.iter().map(Mat::as_ref).collect();

    let one = median(repeats, || closed_form(kernel, &views[..CHANNELS], threads))?;
    let sixteen = median(repeats, || closed_form(kernel, &views, threads))?;
    println!(
        "{{\"implementation\": \"posenc\", \"encoder\": \"{encoder}\", \"threads\": {threads}, \
         \"repeats\": {repeats}, \"one_image_s\": {one:.6}, \"per_image_of_16_s\": {:.6}}}",
        sixteen / IMAGES as f64
    );
    Ok(())
}

/// Encode, factor, solve. Every thread takes a run of channels; the weights do not depend on how many.
fn closed_form(
    kernel: fn(f32) -> f32,
    channels: &[MatRef<'_, f32>],
    threads: usize,
) -> Result<Vec<Mat<f32>>, ClosedFormError> {
    let psi = Mat::from_fn(SIDE, SIDE, |i, j| kernel((i as f32 - j as f32) / SIDE as f32));
    let factorization = &Factorization::new(psi.as_ref())?;
    if threads == 1 {
        return solve_2d(factorization, factorization, channels);
    }
    let parts = std::thread::scope(|scope| {
        let workers: Vec<_> = channels
            .chunks(channels.len().div_ceil(threads))
            .map(|part| scope.spawn(move || solve_2d(factorization, factorization, part)))
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker panicked"))
            .collect::<Vec<_>>()
    });
    parts.into_iter().try_fold(Vec::new(), |mut all, part| {
        all.extend(part?);
        Ok(all)
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
fn median(
    repeats: usize,
    run: impl Fn() -> Result<Vec<Mat<f32>>, ClosedFormError>,
) -> Result<f64, String> {
    let timed = || {
        let start = Instant::now();
        black_box(run().map_err(|error| error.to_string())?);
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
