//! Closed-form least squares on images and clips (`trading` Eq. 12, Tables 1 and 3), and LSMR for scattered positions (ours).

use anyhow::{Context as _, Result};
use posenc_experiments::record::{Picture, Value};
use posenc_math::closed_form::{LeastSquaresOptions, RIDGE_CUTOFF, Real, Solver};
use posenc_math::embedder::{Embedder, EmbedderSpec, FitModel};

use super::{ClosedForm, Precision};
use crate::network_1d::Scale;
use crate::network_nd::Blending;
use crate::reconstruction::auto_width::{COUNTS, RandomChoice, Search, choose};
use crate::reconstruction::closed::{self, Axis, Solved};
use crate::reconstruction::{
    ITERATIONS, Rule, Scattered, Split, pictures, positions_per_axis, signal_of, split_unit,
};
use posenc_data::Signal;
use posenc_harness::device::CPU;
use posenc_harness::protocol::{Context, Emit, Protocol, UnitResult};
use posenc_harness::stopwatch::Stopwatch;

impl Protocol for ClosedForm {
    /// All signals and channels of the job share one factorization of Ψ.
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        match self.precision {
            Precision::Single => typed::<f32>(context, self, emit),
            Precision::Double => typed::<f64>(context, self, emit),
        }
    }
}

fn typed<T: Real>(context: &Context<'_>, settings: &ClosedForm, emit: &mut Emit<'_>) -> Result<()> {
    // With `auto`, embedder, cutoff and axes may differ between signals.
    let (mut known, mut axes): (_, Vec<Axis<T>>) = (None, Vec::new());
    let open = context.spec()?;
    for (index, unit) in context.units.iter().enumerate() {
        let signal = signal_of(context, unit, settings.side)?;
        let rule = Rule::new(Some(settings.step), settings.fraction);
        let split = split_unit(context, unit, &signal, rule, settings.test)?;
        let stopwatch = Stopwatch::start(CPU);
        let chosen = settings.chosen(context, &signal, &split)?;
        let seconds = stopwatch.seconds();
        let resolved = (chosen.spec.clone(), chosen.cutoff);
        if known.as_ref().is_none_or(|(other, _)| *other != resolved) {
            let embedder = context.embedder_of(&resolved.0)?;
            known = Some((resolved, embedder));
            axes.clear();
        }
        let Some((_, embedder)) = &known else { unreachable!("the embedder was built") };
        let outcome = match rule {
            Rule::Random { .. } => scattered::<T>(settings, &chosen, &**embedder, &signal, &split),
            Rule::Grid { .. } => {
                let (embedder, cutoff) = (&**embedder, chosen.cutoff);
                on_grid(context, settings, embedder, cutoff, (&signal, &split), &mut axes)
            }
        };
        let mut outcome = outcome.with_context(|| unit.signal.clone())?;
        if let (true, Some(parameter)) = (chosen.from_samples, open.auto()) {
            let value = chosen.spec.number_of(parameter.name).unwrap_or(f64::NAN);
            outcome.values.push(Value::new(parameter.name, value));
            outcome.values.extend(chosen.cutoff.map(|cutoff| Value::new("cutoff", cutoff)));
            outcome.values.push(Value::new("selection_time", seconds).unit("s"));
        }
        emit(index, outcome)?;
    }
    Ok(())
}

/// An embedder and the regularization of its weights.
struct Chosen {
    spec: EmbedderSpec,
    cutoff: Option<f64>,
    iterations: usize,
    /// Whether the choice depends on the samples, not only on their number.
    from_samples: bool,
}

fn on_grid<T: Real>(
    context: &Context<'_>,
    settings: &ClosedForm,
    embedder: &dyn Embedder,
    cutoff: Option<f64>,
    (signal, split): (&Signal, &Split),
    known: &mut Vec<Axis<T>>,
) -> Result<UnitResult> {
    let step = settings.step;
    let axes = closed::axes(known, embedder, signal, step, (cutoff, settings.solver))?;
    let solved = closed::separable(signal, &axes, step)?;
    let report = axes[0].report();
    // Axes of equal length share a factorization, whose time counts once.
    let mut factored = axes.clone();
    factored.dedup_by(|a, b| std::ptr::eq(*a, *b));
    let factoring: f64 = factored.iter().map(|axis| axis.seconds).sum();
    let mut outcome = outcome(settings, signal, &solved, split);
    outcome.values.extend([
        Value::new("rank", report.rank as f64),
        Value::new("condition_number", report.condition),
        // As in the papers: encoding, factorization and products for one signal.
        Value::new("time", factoring + solved.seconds).unit("s"),
        // All signals share the factorization.
        Value::new("time_shared", factoring / context.units.len() as f64 + solved.seconds)
            .unit("s"),
    ]);
    Ok(outcome)
}

impl ClosedForm {
    /// Resolves an `auto` parameter: from the samples for ridge regression and random positions, otherwise from the number of samples.
    fn chosen(&self, context: &Context<'_>, signal: &Signal, split: &Split) -> Result<Chosen> {
        let open = context.spec()?;
        let iterations = self.iterations.unwrap_or(ITERATIONS);
        let build = |spec: &EmbedderSpec| context.embedder_of(spec);
        match self.fraction {
            Some(_) if open.auto().is_some() => {
                let counts = self.iterations.map_or(COUNTS.to_vec(), |count| vec![count]);
                let search = Search {
                    signal,
                    train: &split.train,
                    blending: Blending::default(),
                    counts: &counts,
                    build: &build,
                };
                let RandomChoice { spec, iterations, .. } = search.choose(open)?;
                return Ok(Chosen { spec, cutoff: None, iterations, from_samples: true });
            }
            None if self.solver == Solver::Ridge => {
                if let Some(choice) = choose(signal, self.step, open, self.cutoff, &build)? {
                    let (spec, cutoff) = (choice.spec, Some(choice.cutoff));
                    return Ok(Chosen { spec, cutoff, iterations, from_samples: true });
                }
            }
            _ => {}
        }
        let (model, cutoff) = match self.solver {
            Solver::Ridge => (FitModel::Ridge, Some(self.cutoff.unwrap_or(RIDGE_CUTOFF))),
            _ => (FitModel::ClosedForm, self.cutoff),
        };
        let n = positions_per_axis(split.train.len(), signal.sides.len());
        let spec = open.clone().resolved(model, n);
        Ok(Chosen { spec, cutoff, iterations, from_samples: false })
    }
}

/// Metrics and pictures that grids and random positions have in common.
fn outcome(settings: &ClosedForm, signal: &Signal, solved: &Solved, split: &Split) -> UnitResult {
    let [train_psnr, test_psnr] = solved.psnrs(signal, split);
    let parameters = solved.parameters as f64;
    let values = vec![
        Value::new("test_psnr", test_psnr).unit("dB"),
        Value::new("train_psnr", train_psnr).unit("dB"),
        Value::new("params", parameters).unit("count"),
        // Four bytes per parameter, as in the papers.
        Value::new("memory", 4.0 * parameters / 1e6).unit("MB"),
    ];
    let pictures: Vec<Picture> = match settings.pictures {
        true => pictures(signal, &solved.interleaved(), test_psnr),
        false => Vec::new(),
    };
    UnitResult { values, pictures, ..UnitResult::default() }
}

fn scattered<T: Real>(
    settings: &ClosedForm,
    chosen: &Chosen,
    embedder: &dyn Embedder,
    signal: &Signal,
    split: &Split,
) -> Result<UnitResult> {
    let stopwatch = Stopwatch::start(CPU);
    let blending = Blending::default();
    let grid = Scattered::new(embedder, &chosen.spec, &signal.sides, blending, Scale::None)?;
    let encoding = stopwatch.seconds();
    let options =
        LeastSquaresOptions { max_iterations: chosen.iterations, ..LeastSquaresOptions::default() };
    let (solved, solutions) = closed::scattered::<T>(signal, &grid, split, &options)?;
    let mut outcome = outcome(settings, signal, &solved, split);
    let most = solutions.iter().map(|s| s.iterations).max().unwrap_or(0);
    outcome.values.extend([
        Value::new("iterations", most as f64).unit("count"),
        Value::new("time", encoding + solved.seconds).unit("s"),
    ]);
    let unfinished = solutions.iter().filter(|s| !s.converged()).count();
    if unfinished > 0 && !chosen.from_samples {
        outcome.remarks.push(format!(
            "{unfinished} of {} channels stopped after {most} iterations, before the tolerance was met",
            solutions.len()
        ));
    }
    Ok(outcome)
}
