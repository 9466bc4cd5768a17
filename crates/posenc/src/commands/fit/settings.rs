//! What the options of `fit` leave open, filled in from the papers' choices.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use posenc_math::embedder::{self, EmbedderSpec, Family, FitModel, ParameterValue};
use posenc_protocols::network_1d::Scale;
use posenc_protocols::network_nd::{Directions, Encoding, NetworkNd, Output, TestPositions};

use super::encoding::streams;
use crate::arguments::{Fit, FitEncoding, FitSolver, FitWithEncoding};
use posenc_math::closed_form::RIDGE_CUTOFF;
use posenc_protocols::network_nd::reconstruction::auto_width::choose;
use posenc_protocols::network_nd::reconstruction::{Signal, Split, positions_per_axis};

/// The solver of the options.
pub fn solver(fit: &Fit, options: &FitWithEncoding) -> FitSolver {
    let default = if fit.mask.is_some() { FitSolver::ClosedForm } else { FitSolver::Ridge };
    options.solver.unwrap_or(default)
}

/// The embedder, and the cutoff of ridge regression: the kind from the option, parameters from `--set`, the rest `auto`.
pub fn embedder(
    fit: &Fit,
    options: &FitWithEncoding,
    solver: FitSolver,
    signal: &Signal,
    split: &Split,
) -> Result<(EmbedderSpec, f64)> {
    let n = positions_per_axis(split.train.len(), signal.sides.len());
    let complex = options.encoding == FitEncoding::Complex;
    let name = options.embedder.as_str();
    let mut parameters: BTreeMap<String, ParameterValue> = BTreeMap::new();
    // `validate` refuses an unknown kind.
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
            .with_context(|| format!("--set {text}: allowed is NAME=VALUE, such as sigma=0.003"))?;
        let value = match value.parse::<f64>() {
            Ok(number) => ParameterValue::Number(number),
            Err(_) => ParameterValue::Text(value.to_owned()),
        };
        parameters.insert(name.to_owned(), value);
    }
    let model = match (solver, complex) {
        (FitSolver::Ridge, _) => FitModel::Ridge,
        (FitSolver::ClosedForm, _) => FitModel::ClosedForm,
        (FitSolver::GradientDescent, true) => FitModel::Complex,
        (FitSolver::GradientDescent, false) => FitModel::Simple,
    };
    let open = EmbedderSpec { parameters, ..EmbedderSpec::new(name) };
    let spec = open.clone().resolved(model, n);
    embedder::validate(&spec)
        .with_context(|| format!("--embedder {name} (--set NAME=VALUE sets a parameter)"))?;
    if solver != FitSolver::Ridge || !complex {
        return Ok((spec, RIDGE_CUTOFF));
    }
    let draw = streams(fit.seed);
    let build = |spec: &EmbedderSpec| Ok(embedder::build(spec, &mut draw("embedder"))?);
    let began = std::time::Instant::now();
    let choice = choose(signal, usize::from(fit.step), &open, None, &build)?;
    let Some(choice) = choice else { return Ok((spec, RIDGE_CUTOFF)) };
    if let Some(parameter) = open.auto() {
        println!(
            "chose {} = {:.6} and a ridge of {:.0e} from the known samples in {:.1} s; the rule for photographs: {:.6} and {:.0e}",
            parameter.name,
            choice.spec.number_of(parameter.name).unwrap_or(f64::NAN),
            choice.cutoff.powi(2),
            began.elapsed().as_secs_f64(),
            spec.number_of(parameter.name).unwrap_or(f64::NAN),
            RIDGE_CUTOFF.powi(2),
        );
    }
    Ok((choice.spec, choice.cutoff))
}

/// The network and its training.
pub fn network(
    fit: &Fit,
    options: &FitWithEncoding,
    spec: &EmbedderSpec,
    axes: usize,
) -> NetworkNd {
    let complex = options.encoding == FitEncoding::Complex;
    let kind = embedder::find(&spec.kind);
    NetworkNd {
        side: None,
        step: fit.mask.is_none().then(|| usize::from(fit.step)),
        fraction: fit.mask,
        test: TestPositions::Rest,
        encoding: if complex { Encoding::Complex } else { Encoding::Simple },
        directions: match kind {
            Some(kind) if kind.is_joint && !complex => Directions::Joint,
            Some(kind) if kind.fit.diagonals && !complex && axes == 2 => Directions::Diagonals,
            _ => Directions::Axes,
        },
        scale: Scale::Train,
        value_scale: 1.0,
        depth: usize::from(options.depth),
        width: usize::from(options.width),
        output: Output::Identity,
        learning_rate: options.learning_rate.unwrap_or(if complex { 0.1 } else { 0.005 }),
        weight_decay: 1e-8,
        beta2: None,
        epochs: u64::from(options.epochs),
        mean_of_last: 1,
        late_epochs: None,
        curve_every: 0,
        sweep: None,
        blending: None,
        products: None,
        pictures: false,
    }
}

/// Refuses what no solver does.
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
    if solver(fit, options) == FitSolver::Ridge && fit.mask.is_some() {
        bail!("--solver ridge needs a grid; allowed with --mask: closed-form, gradient-descent");
    }
    if options.encoding == FitEncoding::Complex && options.depth > 1 {
        bail!("--depth {}: allowed with --encoding complex: 0, 1", options.depth);
    }
    Ok(())
}
