//! Linear interpolation on grids of several resolutions, concatenated: multi-resolution hash grids without collisions (Müller et al.
//! 2022, Sec. 3).
//!
//! Level l has `n_l` equidistant nodes from 0 to 1, with `n_l` proportional to `growth^l` and `d` nodes in all. A feature is the weight
//! of a node, `max(0, 1 - |x - t| (n_l - 1))`. A linear layer on these features has one trainable value per node, like a hash grid
//! that sums its levels.

use super::{
    Embedder, EmbedderError,
    kind::{FitDefaults, FitParameter, FitUnit, Kind},
    registry::{DIMENSION, DefaultValue, Parameter, Rule, SCALING, Values},
};

pub(super) const KIND: Kind = Kind {
    name: "multilevel",
    label: "Multi-level linear interpolation",
    symbol: "Levels",
    source: "Müller et al. 2022, Sec. 3",
    latex: r"\psi_{l,i}(x) = \max(0,\ 1 - |x - t_{l,i}|\,(n_l - 1)),\ n_l \propto g^l",
    example: &[("levels", DefaultValue::Number(4.0)), ("growth", DefaultValue::Number(2.0))],
    parameters: &[
        DIMENSION,
        Parameter::required(
            "levels",
            Rule::Multiple { step: 1, most: 64 },
            "number of grids; the dimension must be at least twice this number",
        ),
        Parameter::with_default(
            "growth",
            DefaultValue::Number(2.0),
            Rule::Between { least: 1.0, most: 16.0 },
            "ratio g of the resolutions of two successive grids",
        ),
        SCALING,
    ],
    check: |values| nodes(values).map(|_| ()),
    color: Some([0.74, 0.18, 138.0]),
    method_names: &["levels", "hash grid"],
    fit: FitDefaults {
        features: 128,
        parameter: Some(FitParameter {
            name: "levels",
            unit: FitUnit::Levels,
            values: [5.0, 4.0, 4.0, 4.0],
        }),
        diagonals: false,
    },
    ..Kind::built_by(|values, _| Ok(Box::new(Multilevel::new(nodes(values)?))))
};

/// The number of nodes of each level: 2, plus a share in proportion to `growth^l`. The finest level gets the rest.
fn nodes(values: &Values<'_>) -> Result<Vec<usize>, EmbedderError> {
    let (d, growth) = (values.dimension()?, values.number("growth")?);
    let levels = values.number("levels")? as usize;
    if d < 2 * levels {
        let reason = format!("{levels} levels need a dimension of at least {}", 2 * levels);
        return Err(EmbedderError::conflict(KIND.name, "levels", &reason));
    }
    let share: Vec<f64> = (0..levels).map(|level| growth.powi(level as i32)).collect();
    let total: f64 = share.iter().sum();
    let free = (d - 2 * levels) as f64;
    let mut nodes: Vec<usize> = share.iter().map(|own| 2 + (free * own / total) as usize).collect();
    let rest = d - nodes.iter().sum::<usize>();
    if let Some(finest) = nodes.last_mut() {
        *finest += rest;
    }
    Ok(nodes)
}

struct Multilevel {
    /// For each feature: its node, and the number of intervals of its level.
    features: Vec<(f64, f64)>,
}

impl Multilevel {
    fn new(nodes: Vec<usize>) -> Self {
        let level = |count: usize| {
            let intervals = (count - 1) as f64;
            (0..count).map(move |i| (i as f64 / intervals, intervals))
        };
        Self { features: nodes.into_iter().flat_map(level).collect() }
    }
}

impl Embedder for Multilevel {
    fn dimension(&self) -> usize {
        self.features.len()
    }

    fn embed_columns(&self, x: f64, first: usize, out: &mut [f64]) {
        for (value, (node, intervals)) in out.iter_mut().zip(&self.features[first..]) {
            let weight = 1.0 - (x - node).abs() * intervals;
            *value = weight.max(0.0);
        }
        if !x.is_finite() {
            out.fill(f64::NAN);
        }
    }
}
