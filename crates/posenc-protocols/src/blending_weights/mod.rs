//! Computes the weights that blend the encodings of two nodes of a virtual grid (`trading` Eq. 15).
//!
//! Records over the position ratio β:
//!
//! - `alpha_0`, `alpha_1`: weights of the left and the right node. `weight_sum`: their sum.
//! - `alpha_0_least_squares`: the left weight of the least-squares problem (Eq. 14), solved without any distance.
//! - `linear`: 1 − β, the left weight of linear interpolation. `excess`: α₀ − (1 − β).
//! - `encoding_error`: ‖ψ(x) − α₀ψ(x₀) − α₁ψ(x₁)‖/‖ψ(x)‖, the relative error of the blended encoding.
//!
//! Also records `departure_from_linear`, the largest absolute `excess`.

use anyhow::Result;
use posenc_experiments::record::Value;
use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::blending::{InnerProducts, Weights, blend, distance_function};
use posenc_math::distance::ANCHOR;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{positive, range};
use crate::memory::row;

pub const KIND: Kind = Kind {
    needs_embedder: true,
    without_data: WithoutData::Theory,
    ..kind!(BlendingWeights, "blending-weights")
};

/// Settings of `blending-weights`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlendingWeights {
    /// Position ratios β, from 0 at the left node to 1 at the right one.
    pub ratios: NumberList,
    /// Distance between the nodes, in units of x.
    pub spacing: f64,
    /// Whether the least-squares weights are normalized.
    #[serde(default)]
    pub weights: Weights,
    /// Inner products from which the weights are computed.
    #[serde(default)]
    pub distance: InnerProducts,
}

impl Settings for BlendingWeights {
    fn check(&self) -> Result<(), Fault> {
        self.ratios.0.iter().try_for_each(|&ratio| range("ratios", ratio, 0.0, 1.0))?;
        // The left node is at the center of the unit interval, so the right one is at most 0.5 away.
        positive("spacing", self.spacing, 0.5)
    }
}

impl Protocol for BlendingWeights {
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let embedder = context.embedder()?;
        let distance = distance_function(self.distance, context.spec()?, &*embedder)?;
        let row = |offset: f64| row(&*embedder, ANCHOR + offset);
        let nodes = [row(0.0), row(self.spacing)];
        let mut values = Vec::new();
        let mut departure = 0.0_f64;
        for &beta in &self.ratios.0 {
            let weights = blend(&*distance, self.spacing, beta, self.weights)?;
            let [alpha_0, alpha_1] = weights;
            let excess = alpha_0 - (1.0 - beta);
            departure = departure.max(excess.abs());
            let here = row(beta * self.spacing);
            let solved = least_squares(&here, &nodes);
            values.extend([
                Value::new("alpha_0", alpha_0).at(beta),
                Value::new("alpha_1", alpha_1).at(beta),
                Value::new("alpha_0_least_squares", solved[0]).at(beta),
                Value::new("linear", 1.0 - beta).at(beta),
                Value::new("excess", excess).at(beta),
                Value::new("weight_sum", alpha_0 + alpha_1).at(beta),
                Value::new("encoding_error", relative_error(&here, &nodes, weights)).at(beta),
            ]);
        }
        values.push(Value::new("departure_from_linear", departure));
        emit(0, values.into())
    }
}

/// The weights α that minimize ‖ψ(x) − α0 ψ(x0) − α1 ψ(x1)‖, by Gram–Schmidt, since the nodes are nearly parallel.
fn least_squares(here: &[f64], [a, b]: &[Vec<f64>; 2]) -> [f64; 2] {
    let dot = |u: &[f64], v: &[f64]| u.iter().zip(v).map(|(u, v)| u * v).sum::<f64>();
    let along = dot(a, b) / dot(a, a);
    let across: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - along * a).collect();
    let alpha_1 = dot(&across, here) / dot(&across, &across);
    [dot(a, here) / dot(a, a) - alpha_1 * along, alpha_1]
}

/// ‖ψ(x) − α0 ψ(x0) − α1 ψ(x1)‖ / ‖ψ(x)‖.
fn relative_error(here: &[f64], nodes: &[Vec<f64>; 2], [alpha_0, alpha_1]: [f64; 2]) -> f64 {
    let squares = here.iter().zip(&nodes[0]).zip(&nodes[1]).map(|((x, a), b)| {
        let difference = x - alpha_0 * a - alpha_1 * b;
        difference * difference
    });
    let norm = here.iter().map(|x| x * x).sum::<f64>();
    (squares.sum::<f64>() / norm).sqrt()
}
