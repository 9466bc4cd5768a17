//! `fit` with a position encoding, by least squares or gradient descent.

use anyhow::{Result, bail};
use posenc_data::Signal;
use posenc_harness::device::{CPU, Devices};
use posenc_harness::machine;
use posenc_math::closed_form::{LeastSquaresOptions, Solver};
use posenc_math::embedder::{self, EmbedderSpec};
use posenc_nets::train::{Schedule, fit as train};
use posenc_protocols::network_1d::Scale;
use posenc_protocols::network_nd::{Encoding, NetworkNd};
use posenc_protocols::reconstruction::{Problem, Scattered, Split, closed, interleaved};

use super::settings::{self, Chosen, streams};
use crate::arguments::{Fit, FitSolver, FitWithEncoding};

/// Fits the model that the options describe. Returns encoding, embedder and number of parameters in words, and the values at all
/// positions, channels fastest.
pub fn encode(
    fit: &Fit,
    options: &FitWithEncoding,
    signal: &Signal,
    split: &Split,
) -> Result<(String, Vec<f64>)> {
    let solver = settings::solver(fit, options);
    let chosen = settings::choose(fit, options, solver, signal, split)?;
    let (values, parameters) = match solver {
        FitSolver::Ridge | FitSolver::ClosedForm => {
            closed_form(fit, solver, &chosen, signal, split)?
        }
        FitSolver::GradientDescent => gradient_descent(fit, options, &chosen.spec, signal, split)?,
    };
    let encoding = if options.encoding == Encoding::Complex { "complex" } else { "simple" };
    let embedder = chosen.spec.canonical();
    let description = format!("{encoding} encoding with {embedder}: {parameters} parameters");
    Ok((description, values))
}

/// Values at all positions, and the number of parameters.
fn closed_form(
    fit: &Fit,
    solver: FitSolver,
    Chosen { spec, cutoff, iterations }: &Chosen,
    signal: &Signal,
    split: &Split,
) -> Result<(Vec<f64>, usize)> {
    let embedder = embedder::build(spec, &mut streams(fit.seed)("embedder"))?;
    let solved = if fit.mask.is_some() {
        let sides = &signal.sides;
        let grid = Scattered::new(&*embedder, spec, sides, Default::default(), Scale::None)?;
        let limit =
            LeastSquaresOptions { max_iterations: *iterations, ..LeastSquaresOptions::default() };
        let (solved, solutions) = closed::scattered::<f32>(signal, &grid, split, &limit)?;
        let iterations = solutions.iter().map(|s| s.iterations).max().unwrap_or(0);
        println!("{iterations} iterations of LSMR");
        solved
    } else {
        let mut known = Vec::new();
        let step = usize::from(fit.step);
        let regularization = match solver {
            FitSolver::Ridge => (Some(*cutoff), Solver::Ridge),
            _ => Default::default(),
        };
        let axes = closed::axes::<f64>(&mut known, &*embedder, signal, step, regularization)?;
        let report = axes[0].report();
        println!(
            "rank {} of {} features per axis, condition number {:.3e}",
            report.rank,
            embedder.dimension(),
            report.condition
        );
        closed::separable(signal, &axes, step)?
    };
    Ok((solved.interleaved(), solved.parameters))
}

fn gradient_descent(
    fit: &Fit,
    options: &FitWithEncoding,
    spec: &EmbedderSpec,
    signal: &Signal,
    split: &Split,
) -> Result<(Vec<f64>, usize)> {
    let settings: NetworkNd = settings::network(fit, options, spec, signal.sides.len());
    let draw = streams(fit.seed);
    let problem = Problem { signal, split, settings: &settings, spec: spec.clone(), stream: &draw };
    let mut prepared = problem.prepare("weights")?;
    // The network is evaluated only after training, at all positions.
    prepared.task.test = None;
    let devices = Devices::open(&fit.device)?;
    let own = problem.engine(machine::cores());
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
