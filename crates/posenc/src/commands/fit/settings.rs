//! What the options of `fit` leave open, filled in from the papers' choices.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use posenc_math::embedder::{self, EmbedderSpec, ParameterValue};
use posenc_protocols::network_1d::Scale;
use posenc_protocols::network_nd::{Directions, Encoding, NetworkNd, Output, TestPositions};

use crate::arguments::{Fit, FitEncoding, FitSolver};
use posenc_protocols::network_nd::reconstruction::{Signal, Split};

/// The embedder: its kind from the option, parameters from `--set`, the rest as `trading`'s Table 1
/// has them, scaled from its 256 training positions per axis to the signal's.
pub fn embedder(options: &Fit, signal: &Signal, split: &Split) -> Result<EmbedderSpec> {
    let axes = signal.sides.len() as f64;
    // Training positions along an axis.
    let n = (split.train.len() as f64).powf(1.0 / axes).round().max(2.0);
    let complex = options.encoding == FitEncoding::Complex;
    let exact = options.solver == FitSolver::ClosedForm;
    let kind = options.embedder.as_str();
    let fourier = matches!(kind, "rff" | "linf" | "logf");
    let dimension = match (complex, kind) {
        (true, _) if fourier => 2.0 * (n / 2.0).floor().max(1.0),
        (true, _) => n,
        (false, "rff") => 512.0,
        (false, _) if fourier => 256.0,
        (false, _) => 128.0,
    };
    let width = |in_steps: f64| in_steps / n;
    let octaves = |at_256: f64| (at_256 + (n / 256.0).log2()).max(0.5);
    let defaults: Vec<(&str, f64)> = match kind {
        "gaussian" => vec![(
            "sigma",
            width(if exact {
                0.64
            } else if complex {
                1.02
            } else {
                1.54
            }),
        )],
        "triangle" => vec![(
            "half_width",
            width(if exact {
                1.0
            } else if complex {
                2.0
            } else {
                5.0
            }),
        )],
        "rff" => vec![("sigma", n * if complex { 42.0 / 256.0 } else { 14.0 / 256.0 })],
        "linf" => vec![(
            "sigma",
            octaves(if exact {
                6.0
            } else if complex {
                4.5
            } else {
                5.0
            }),
        )],
        "logf" => vec![("sigma", octaves(if complex { 6.5 } else { 5.5 }))],
        _ => Vec::new(),
    };
    let mut parameters: BTreeMap<String, ParameterValue> = BTreeMap::new();
    let known = |name: &str| embedder::find(kind).is_some_and(|k| k.parameter(name).is_some());
    if known("dimension") {
        parameters.insert("dimension".into(), ParameterValue::Number(dimension));
    }
    for (name, value) in defaults {
        parameters.insert(name.to_owned(), ParameterValue::Number(value));
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
    let spec = EmbedderSpec { kind: kind.to_owned(), parameters };
    embedder::validate(&spec)
        .with_context(|| format!("--embedder {kind} (--set NAME=VALUE sets a parameter)"))?;
    Ok(spec)
}

/// The network and its training.
pub fn network(options: &Fit, spec: &EmbedderSpec, axes: usize) -> NetworkNd {
    let complex = options.encoding == FitEncoding::Complex;
    let shifted = matches!(spec.kind.as_str(), "gaussian" | "triangle");
    NetworkNd {
        side: None,
        step: options.mask.is_none().then(|| usize::from(options.step)),
        fraction: options.mask,
        test: TestPositions::Rest,
        encoding: if complex { Encoding::Complex } else { Encoding::Simple },
        directions: match spec.kind.as_str() {
            _ if complex => Directions::Axes,
            "rff" => Directions::Joint,
            _ if shifted && axes == 2 => Directions::Diagonals,
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
pub fn check(options: &Fit) -> Result<()> {
    if let Some(mask) = options.mask {
        ensure!(mask > 0.0 && mask < 1.0, "--mask {mask}: allowed: above 0 and below 1");
    }
    if let Some(rate) = options.learning_rate {
        ensure!(
            rate > 0.0 && rate <= 1e3,
            "--learning-rate {rate}: allowed: above 0, at most 1000"
        );
    }
    if options.encoding == FitEncoding::Complex && options.depth > 1 {
        bail!("--depth {}: allowed with --encoding complex: 0, 1", options.depth);
    }
    Ok(())
}
