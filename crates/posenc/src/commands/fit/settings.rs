//! Settings that the options of `fit` leave open: the papers' values, or choices from the training positions.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum as _;
use posenc_math::embedder::{self, EmbedderSpec, Family, FitModel, ParameterValue};
use posenc_protocols::network_nd::{Encoding, NetworkNd};

use crate::arguments::{Fit, FitSolver, FitWithEncoding};
use posenc_data::Signal;
use posenc_harness::machine;
use posenc_math::closed_form::RIDGE_CUTOFF;
use posenc_math::random::stream;
use posenc_protocols::reconstruction::auto_width::{self, Search};
use posenc_protocols::reconstruction::{self, Problem, Split, check_memory, positions_per_axis};

/// The solver of `--solver`, or the default.
pub fn solver(fit: &Fit, options: &FitWithEncoding) -> FitSolver {
    let default = if fit.mask.is_some() { FitSolver::ClosedForm } else { FitSolver::Ridge };
    options.solver.unwrap_or(default)
}

/// Random streams of `fit` for a seed, by purpose.
pub fn streams(seed: u64) -> impl Fn(&str) -> rand_chacha::ChaCha8Rng {
    move |purpose| stream(seed, &format!("fit {purpose}"))
}

/// The embedder and solver settings that are chosen from the training positions.
pub struct Chosen {
    pub spec: EmbedderSpec,
    /// The soft cutoff of ridge regression.
    pub cutoff: f64,
    /// The maximum number of LSMR iterations.
    pub iterations: usize,
}

/// Chooses the settings that the options leave open. `--embedder` gives the kind, `--set` gives parameters, and the rest is `auto`.
pub fn choose(
    fit: &Fit,
    options: &FitWithEncoding,
    solver: FitSolver,
    signal: &Signal,
    split: &Split,
) -> Result<Chosen> {
    let n = positions_per_axis(split.train.len(), signal.sides.len());
    let complex = options.encoding == Encoding::Complex;
    let open = embedder(options, n)?;
    let model = match (solver, complex) {
        (FitSolver::Ridge, _) => FitModel::Ridge,
        (FitSolver::ClosedForm, _) => FitModel::ClosedForm,
        (FitSolver::GradientDescent, true) => FitModel::Complex,
        (FitSolver::GradientDescent, false) => FitModel::Simple,
    };
    let spec = open.clone().resolved(model, n);
    embedder::validate(&spec).with_context(|| {
        format!("--embedder {} (--set NAME=VALUE sets a parameter)", options.embedder)
    })?;
    check_size(fit, options, &spec, signal)?;
    let mut chosen = Chosen { spec, cutoff: RIDGE_CUTOFF, iterations: reconstruction::ITERATIONS };
    let draw = streams(fit.seed);
    let build = |spec: &EmbedderSpec| Ok(embedder::build(spec, &mut draw("embedder"))?);
    let began = std::time::Instant::now();
    let value = |spec: &EmbedderSpec| {
        let name = open.auto().map(|parameter| parameter.name);
        name.map(|name| (name, spec.number_of(name).unwrap_or(f64::NAN)))
    };
    let rule = value(&chosen.spec);
    let also = match solver {
        FitSolver::Ridge if complex => {
            let found = auto_width::choose(signal, usize::from(fit.step), &open, None, &build)?;
            let Some(found) = found else { return Ok(chosen) };
            (chosen.spec, chosen.cutoff) = (found.spec, found.cutoff);
            format!("a ridge of {:.0e}", chosen.cutoff.powi(2))
        }
        FitSolver::ClosedForm | FitSolver::GradientDescent if complex && fit.mask.is_some() => {
            let is_closed = solver == FitSolver::ClosedForm;
            if open.auto().is_none() && !is_closed {
                return Ok(chosen);
            }
            let counts: &[usize] =
                if is_closed { &auto_width::COUNTS } else { &[reconstruction::ITERATIONS] };
            let blending = Default::default();
            let search = Search { signal, train: &split.train, blending, counts, build: &build };
            let found = search.choose(&open)?;
            (chosen.spec, chosen.iterations) = (found.spec, found.iterations);
            if is_closed { format!("{} iterations", chosen.iterations) } else { String::new() }
        }
        FitSolver::GradientDescent => {
            let settings = network(fit, options, &open, signal.sides.len());
            if open.auto().is_none() || !settings.chooses_by_training() {
                return Ok(chosen);
            }
            let problem =
                Problem { signal, split, settings: &settings, spec: open.clone(), stream: &draw };
            let engine = problem.engine(machine::cores());
            let step = usize::from(fit.step);
            chosen.spec =
                auto_width::choose_by_training(&problem, step, "weights", &engine, &mut || ())?;
            String::new()
        }
        _ => return Ok(chosen),
    };
    let written = |(name, value): (&str, f64)| match value.fract() == 0.0 {
        true => format!("{name} = {value}"),
        false => format!("{name} = {value:.6}"),
    };
    let width = value(&chosen.spec).map(written);
    let all: Vec<String> = width.into_iter().chain(Some(also).filter(|s| !s.is_empty())).collect();
    let rule = rule.map(|rule| format!("; the rule for photographs: {}", written(rule)));
    println!(
        "chose {} from the training positions in {:.1} s{}",
        all.join(" and "),
        began.elapsed().as_secs_f64(),
        rule.unwrap_or_default()
    );
    Ok(chosen)
}

/// The embedder for `n` training positions per axis. Its fitted parameter is `auto` unless `--set` gives a value.
fn embedder(options: &FitWithEncoding, n: f64) -> Result<EmbedderSpec> {
    let complex = options.encoding == Encoding::Complex;
    let name = options.embedder.as_str();
    let mut parameters: BTreeMap<String, ParameterValue> = BTreeMap::new();
    // `embedder::validate` rejects an unknown kind later.
    if let Some(kind) = embedder::find(name) {
        if kind.needs_dimension() {
            let dimension = match (complex, kind.family) {
                (true, Family::Fourier) => 2.0 * (n / 2.0).floor().max(1.0),
                (true, _) => n,
                (false, _) => f64::from(kind.fit.features),
            };
            parameters.insert("dimension".into(), ParameterValue::Number(dimension));
        }
        if let Some(parameter) = kind.fit.parameter {
            parameters.insert(parameter.name.to_owned(), "auto".into());
        }
    }
    for text in &options.set {
        let (name, value) = text
            .split_once('=')
            .with_context(|| format!("--set {text}: expected NAME=VALUE, such as sigma=0.003"))?;
        let value = match value.parse::<f64>() {
            Ok(number) => ParameterValue::Number(number),
            Err(_) => ParameterValue::Text(value.to_owned()),
        };
        parameters.insert(name.to_owned(), value);
    }
    Ok(EmbedderSpec { parameters, ..EmbedderSpec::new(name) })
}

/// Rejects a model that exceeds the memory of a unit, or whose closed form would take longer than [`MOST_HOURS`], before any work.
fn check_size(
    fit: &Fit,
    options: &FitWithEncoding,
    spec: &EmbedderSpec,
    signal: &Signal,
) -> Result<()> {
    let d = spec.dimension().unwrap_or(0.0);
    let sides = signal.sides.iter().map(|&n| n as f64);
    let channels = signal.channels as f64;
    if options.encoding == Encoding::Simple {
        // Weights with gradients and moments, and the features of all coordinates.
        let outputs = match options.hidden_layers() {
            0 => channels,
            _ => f64::from(options.hidden_width()),
        };
        return check_memory("the network", d * (2.0 * outputs + 3.0 * sides.sum::<f64>()));
    }
    let axes = signal.sides.len() as f64;
    let values = channels * sides.map(|n| n.max(d)).product::<f64>();
    check_memory("the fit", 4.0 * values)?;
    let passes = match fit.mask {
        Some(_) => 2.0 * reconstruction::ITERATIONS as f64,
        None => 2.0,
    };
    let hours = passes * 2.0 * axes * values * d / 1e10 / 3600.0;
    ensure!(
        solver(fit, options) == FitSolver::GradientDescent || hours <= MOST_HOURS,
        "the fit would take about {hours:.0} h; allowed: {MOST_HOURS} h. Lower `dimension` or --size"
    );
    Ok(())
}

/// Longest estimated time of a closed form on one core; it prints no progress.
const MOST_HOURS: f64 = 4.0;

pub fn network(
    fit: &Fit,
    options: &FitWithEncoding,
    spec: &EmbedderSpec,
    axes: usize,
) -> NetworkNd {
    let encoding = options.encoding;
    let default = if encoding == Encoding::Complex { 0.1 } else { 0.005 };
    let learning_rate = options.learning_rate.unwrap_or(default);
    let epochs = u64::from(options.epochs.unwrap_or(500));
    NetworkNd {
        step: fit.mask.is_none().then(|| usize::from(fit.step)),
        fraction: fit.mask,
        depth: usize::from(options.hidden_layers()),
        width: usize::from(options.hidden_width()),
        ..NetworkNd::of(spec, axes, encoding, learning_rate, epochs)
    }
}

/// Rejects values and combinations of options that no solver supports.
pub fn check(fit: &Fit) -> Result<()> {
    if let Some(mask) = fit.mask {
        ensure!(mask > 0.0 && mask < 1.0, "--mask {mask}: allowed: above 0 and below 1");
    }
    let Some(options) = &fit.model else {
        return Ok(());
    };
    if let Some(rate) = options.learning_rate {
        ensure!(
            rate > 0.0 && rate <= 1e3,
            "--learning-rate {rate}: allowed: above 0, at most 1000"
        );
    }
    let solver = solver(fit, options);
    if solver == FitSolver::Ridge && fit.mask.is_some() {
        bail!("--solver ridge needs a grid; allowed with --mask: closed-form, gradient-descent");
    }
    let value = solver.to_possible_value();
    let name = value.as_ref().map_or("", |value| value.get_name());
    let depth = options.hidden_layers();
    if solver != FitSolver::GradientDescent {
        ensure!(
            options.encoding == Encoding::Complex,
            "--solver {name} solves for a complex encoding; allowed with --encoding simple: --solver gradient-descent"
        );
        ensure!(
            depth == 0,
            "--solver {name} has no hidden layers; allowed with --depth {depth}: --solver gradient-descent"
        );
        let of_descent = [
            ("width", options.width.is_some()),
            ("epochs", options.epochs.is_some()),
            ("learning-rate", options.learning_rate.is_some()),
        ];
        if let Some((option, _)) = of_descent.into_iter().find(|(_, is_given)| *is_given) {
            bail!(
                "--{option} has no effect with --solver {name}; add --solver gradient-descent, or remove it"
            );
        }
    }
    ensure!(
        options.width.is_none() || depth > 0,
        "--width has no effect without hidden layers; add --depth 1, or remove it"
    );
    if options.encoding == Encoding::Complex && depth > 1 {
        bail!("--depth {depth}: allowed with --encoding complex: 0, 1");
    }
    Ok(())
}
