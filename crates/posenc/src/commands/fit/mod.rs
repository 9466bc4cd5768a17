//! `fit`: one picture or clip of the user's, one embedder, and how well it does.

mod settings;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use posenc_data::{Clip, Image, Loaded};
use posenc_math::closed_form::LeastSquaresOptions;
use posenc_math::embedder::{self, EmbedderSpec};
use posenc_math::quality::psnr_of;
use posenc_math::random::stream;
use posenc_nets::train::{Schedule, fit as train};
use posenc_protocols::network_1d::Scale;
use posenc_protocols::network_nd::{NetworkNd, TestPositions};

use crate::arguments::{Fit, FitEncoding, FitSolver};
use posenc_harness::device::{CPU, Devices};
use posenc_protocols::network_nd::reconstruction::{
    Problem, Rule, Scattered, Signal, Split, closed, interleaved, split,
};

/// Reads, fits, writes, and prints what came out.
pub fn fit(options: &Fit) -> Result<ExitCode> {
    settings::check(options)?;
    let target = Target::new(&options.file, &options.out)?;
    let Loaded { signal: loaded, warnings } =
        posenc_data::load_signal_file(&options.file, options.size)?;
    for warning in warnings {
        eprintln!("note: {warning}");
    }
    let signal = match &loaded {
        posenc_data::Signal::Picture(image) => Signal::from_image(image),
        posenc_data::Signal::Clip(clip) => Signal::from_clip(clip),
    };
    target.check(&signal)?;
    let rule = match options.mask {
        Some(fraction) => Rule::Random { fraction },
        None => Rule::Grid { step: usize::from(options.step) },
    };
    let mut mask = stream(options.seed, "fit mask");
    let split = split(&signal.sides, rule, TestPositions::Rest, &mut mask)?;
    let spec = settings::embedder(options, &signal, &split)?;
    let shape: Vec<String> = signal.sides.iter().map(usize::to_string).collect();
    println!(
        "{}: {} × {} channel{}, {} of {} positions train",
        signal.name,
        shape.join(" × "),
        signal.channels,
        if signal.channels == 1 { "" } else { "s" },
        split.train.len(),
        signal.points()
    );
    let started = Instant::now();
    let (values, parameters) = match options.solver {
        FitSolver::ClosedForm => closed_form(options, &spec, &signal, &split)?,
        FitSolver::GradientDescent => gradient_descent(options, &spec, &signal, &split)?,
    };
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} with {}: {parameters} parameters, {seconds:.2} s",
        options.encoding,
        spec.canonical()
    );
    for (what, psnr) in psnrs(&signal, &split, &values) {
        println!("PSNR of {what}: {psnr:.2} dB");
    }
    target.write(&signal, values)?;
    println!("{}", options.out.display());
    Ok(ExitCode::SUCCESS)
}

/// The stream that the embedder draws from.
fn streams(seed: u64) -> impl Fn(&str) -> rand_chacha::ChaCha8Rng {
    move |purpose| stream(seed, &format!("fit {purpose}"))
}

/// Values at all positions, and the number of parameters.
fn closed_form(
    options: &Fit,
    spec: &EmbedderSpec,
    signal: &Signal,
    split: &Split,
) -> Result<(Vec<f64>, usize)> {
    ensure!(
        options.encoding == FitEncoding::Complex,
        "--solver closed-form solves for a complex encoding; allowed with --encoding simple: --solver \
         gradient-descent"
    );
    ensure!(
        options.depth == 0,
        "--solver closed-form has no hidden layers; allowed with --depth {}: --solver gradient-descent",
        options.depth
    );
    let embedder = embedder::build(spec, &mut streams(options.seed)("embedder"))?;
    let solved = if options.mask.is_some() {
        let sides = &signal.sides;
        let grid = Scattered::new(&*embedder, spec, sides, Default::default(), Scale::None)?;
        let limit = LeastSquaresOptions {
            max_iterations: options.iterations as usize,
            ..LeastSquaresOptions::default()
        };
        let (solved, solutions) = closed::scattered::<f32>(signal, &grid, split, &limit)?;
        let iterations = solutions.iter().map(|s| s.iterations).max().unwrap_or(0);
        println!("{iterations} iterations of LSMR (--iterations sets the limit; fewer smooth)");
        solved
    } else {
        let mut known = Vec::new();
        let step = usize::from(options.step);
        let axes = closed::axes::<f64>(&mut known, &*embedder, signal, step, Default::default())?;
        let report = axes[0].report();
        println!(
            "rank {} of {} features per axis, condition number {:.3e}",
            report.rank,
            embedder.dimension(),
            report.condition.value()
        );
        closed::separable(signal, &axes, step)?
    };
    Ok((solved.interleaved(), solved.parameters))
}

fn gradient_descent(
    options: &Fit,
    spec: &EmbedderSpec,
    signal: &Signal,
    split: &Split,
) -> Result<(Vec<f64>, usize)> {
    let settings: NetworkNd = settings::network(options, spec, signal.sides.len());
    let draw = streams(options.seed);
    let problem = Problem { signal, split, settings: &settings, spec: spec.clone(), stream: &draw };
    let mut prepared = problem.prepare("weights")?;
    // The network is evaluated only after training, at all positions.
    prepared.task.test = None;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let devices = Devices::open(&options.device)?;
    let own = problem.engine(threads);
    let engine = if devices.training() == CPU { &own } else { devices.engine(devices.training()) };
    eprintln!("device: {}", engine.device());
    let mut session = engine.start(prepared.task.clone())?;
    let schedule =
        Schedule { epochs: settings.epochs, curve_every: 0, layers: false, mean_of_last: 1 };
    let bar = indicatif::ProgressBar::new(settings.epochs);
    let history = train(&mut *session, &schedule, None, &mut |epoch, _| bar.set_position(epoch))?;
    bar.finish_and_clear();
    if let Some(epoch) = history.summaries[0].diverged {
        bail!(
            "training diverged in epoch {epoch}; a lower --learning-rate than {} may help",
            settings.learning_rate
        );
    }
    let outputs = session.predict(&prepared.everywhere()?)?;
    Ok((interleaved(&outputs), prepared.task.network.parameter_count()))
}

/// PSNRs in dB of the positions that train, of the others, and of all.
fn psnrs(signal: &Signal, split: &Split, values: &[f64]) -> Vec<(&'static str, f64)> {
    let of = |points: &mut dyn Iterator<Item = usize>| {
        let (mut sum, mut count) = (0.0, 0usize);
        for point in points {
            for channel in 0..signal.channels {
                let difference =
                    values[point * signal.channels + channel] - signal.at(point, channel);
                sum += difference * difference;
                count += 1;
            }
        }
        psnr_of(sum / count as f64)
    };
    let list = |points: &[u32]| of(&mut points.iter().map(|&p| p as usize));
    let mut psnrs = vec![("the training positions", list(&split.train))];
    if !split.test.is_empty() {
        psnrs.push(("the others", list(&split.test)));
        psnrs.push(("all", of(&mut (0..signal.points()))));
    }
    psnrs
}

/// Where the reconstruction goes.
enum Target<'a> {
    Png(&'a Path),
    Npz(&'a Path),
    Folder(&'a Path),
}

impl<'a> Target<'a> {
    fn new(from: &Path, out: &'a Path) -> Result<Self> {
        let same = |a: &Path, b: &Path| matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b);
        ensure!(
            !same(from, out),
            "--out {}: is the input itself; choose another file",
            out.display()
        );
        let parent = out.parent().filter(|p| !p.as_os_str().is_empty());
        if let Some(parent) = parent {
            ensure!(
                parent.is_dir(),
                "--out {}: folder {} does not exist; create it first",
                out.display(),
                parent.display()
            );
        }
        Ok(match out.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("png") => Target::Png(out),
            Some("npz") => Target::Npz(out),
            None => Target::Folder(out),
            Some(other) => bail!(
                "--out {}: .{other} is not supported; allowed: .png for a picture, .npz or a folder for a clip",
                out.display()
            ),
        })
    }

    /// Before the fit: a picture is written as PNG, a clip as npz or frames.
    fn check(&self, signal: &Signal) -> Result<()> {
        match (self, signal.sides.len()) {
            (Target::Png(_), 2) | (Target::Npz(_) | Target::Folder(_), 3) => Ok(()),
            (_, 2) => bail!("a picture is written as .png; name such a file with --out"),
            _ => bail!("a clip is written as .npz or into a folder of frames; name one with --out"),
        }
    }

    fn write(&self, signal: &Signal, values: Vec<f64>) -> Result<()> {
        let (name, channels) = (signal.name.clone(), signal.channels);
        match (self, &signal.sides[..]) {
            (Target::Png(path), &[height, width]) => {
                Image { name, width, height, channels, pixels: values }.write_png(path)?;
            }
            (Target::Npz(path) | Target::Folder(path), &[frames, height, width]) => {
                let voxels = values.iter().map(|&v| v as f32).collect();
                let clip = Clip { name, frames, height, width, channels, voxels };
                match self {
                    Target::Npz(_) => clip.write_npz(path)?,
                    _ => clip.write_frames(path)?,
                }
            }
            _ => {}
        }
        Ok(())
    }
}
