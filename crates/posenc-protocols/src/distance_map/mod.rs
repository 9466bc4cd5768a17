//! Maps the embedding distance of a two-dimensional encoding (`rethinking` Fig. 11).
//!
//! D(Δ) is the inner product of the encodings of the center of the unit square and of the position displaced by Δ = (Δx, Δy).
//!
//! Records:
//!
//! - `distance`: D(Δ)/D(0) over Δx and Δy.
//! - `distance_axis`: D(Δ)/D(0) over |Δ|, for Δ along the x axis.
//! - `distance_diagonal`: D(Δ)/D(0) over |Δ|, for Δ along the diagonal.

use std::cell::RefCell;
use std::collections::HashMap;

use anyhow::{Result, ensure};
use posenc_experiments::record::Value;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::embedder::{Embedder, EmbedderSpec};
use posenc_math::spectrum::dot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{preset, range};
use crate::memory::row;
use crate::network_nd::Directions;

pub const KIND: Kind = Kind {
    needs_embedder: true,
    without_data: WithoutData::Theory,
    ..kind!(DistanceMap, "distance-map")
};

/// Settings of `distance-map`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DistanceMap {
    /// Directions along which the plane is embedded, as for `network-nd`.
    #[serde(default)]
    pub directions: Directions,
    /// Number of displacements along each axis.
    #[serde(default = "preset::<64, usize>")]
    pub points: usize,
    /// Largest displacement along each axis.
    pub extent: f64,
}

impl Settings for DistanceMap {
    fn check(&self) -> Result<(), Fault> {
        range("points", self.points, 3, 512)?;
        range("extent", self.extent, 1e-6, 0.5)
    }

    fn check_embedder(&self, spec: &EmbedderSpec) -> Result<(), Fault> {
        self.directions.check(spec)
    }
}

impl Protocol for DistanceMap {
    /// D(Δ) = ψ(c)·ψ(c + Δ)/‖ψ(c)‖² around the center c of the unit square.
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let n = self.points;
        let offset = |i: usize| self.extent * (2.0 * i as f64 / (n - 1) as f64 - 1.0);
        let map: Box<dyn Fn(f64, f64) -> f64> = match self.directions {
            Directions::Axes | Directions::Diagonals => {
                let inner = inner_products(context.embedder()?);
                let diagonals = self.directions == Directions::Diagonals;
                Box::new(move |x, y| {
                    let axes = inner(x) + inner(y);
                    let slanted =
                        if diagonals { inner((x + y) / 2.0) + inner((x - y) / 2.0) } else { 0.0 };
                    axes + slanted
                })
            }
            Directions::Grid => {
                let inner = inner_products(context.embedder()?);
                Box::new(move |x, y| inner(x) * inner(y))
            }
            Directions::Joint => {
                // cos(a + b) = cos a cos b − sin a sin b, with the phases a and b of the two axes.
                let rows = |purpose: &str| context.embedder_from(purpose, None);
                let (first, second) = (rows("embedder axis 0")?, rows("embedder axis 1")?);
                Box::new(move |x, y| {
                    let (a, b) = (row(&*first, x), row(&*second, y));
                    let half = a.len() / 2;
                    (0..half).map(|k| a[half + k] * b[half + k] - a[k] * b[k]).sum()
                })
            }
        };
        let whole = map(0.0, 0.0);
        let is_usable = whole.is_finite() && whole != 0.0;
        ensure!(
            is_usable,
            "the features at the center have the squared norm {whole}, so distances have no scale; change the embedder"
        );
        let mut values = Vec::with_capacity(n * n + n);
        for i in 0..n {
            for j in 0..n {
                let (x, y) = (offset(j), offset(i));
                values.push(Value::new("distance", map(x, y) / whole).at(x).and(y));
            }
        }
        for i in 0..n {
            let radius = self.extent * i as f64 / (n - 1) as f64;
            let slanted = radius / std::f64::consts::SQRT_2;
            values.push(Value::new("distance_axis", map(radius, 0.0) / whole).at(radius));
            values.push(Value::new("distance_diagonal", map(slanted, slanted) / whole).at(radius));
        }
        let broken = values.iter().find(|value| !value.value.is_finite());
        ensure!(broken.is_none(), "a distance is not finite; change the embedder");
        emit(0, values.into())
    }
}

/// Δ ↦ ψ(1/2)·ψ(1/2 + Δ), computed once for each Δ.
fn inner_products(embedder: Box<dyn Embedder>) -> impl Fn(f64) -> f64 {
    let center = row(&*embedder, 0.5);
    let known = RefCell::new(HashMap::new());
    move |delta| {
        let product = || dot(&center, &row(&*embedder, 0.5 + delta));
        *known.borrow_mut().entry(delta.to_bits()).or_insert_with(product)
    }
}
