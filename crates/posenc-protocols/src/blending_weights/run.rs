//! Weights that blend the encodings of two nodes (`trading` Eq. 15, Fig. 6).

use anyhow::Result;
use posenc_experiments::record::Value;
use posenc_math::blending::{DistanceSource, WeightVariant, blend, distance_function};
use posenc_math::distance::ANCHOR;

use super::{BlendingWeights, InnerProducts, Weights};
use crate::memory::row;
use posenc_harness::protocol::{Context, Emit, Protocol};

impl From<InnerProducts> for DistanceSource {
    fn from(products: InnerProducts) -> Self {
        match products {
            InnerProducts::Code => DistanceSource::Code,
            InnerProducts::Law => DistanceSource::Law,
            InnerProducts::Sampled => DistanceSource::Sampled,
        }
    }
}

impl From<Weights> for WeightVariant {
    fn from(weights: Weights) -> Self {
        match weights {
            Weights::Printed => WeightVariant::Printed,
            Weights::Normalized => WeightVariant::Normalized,
        }
    }
}

impl Protocol for BlendingWeights {
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let embedder = context.embedder()?;
        let distance = distance_function(self.distance.into(), context.spec()?, &*embedder)?;
        let row = |offset: f64| row(&*embedder, ANCHOR + offset);
        let nodes = [row(0.0), row(self.spacing)];
        let mut values = Vec::new();
        let mut departure = 0.0_f64;
        for &beta in &self.ratios.0 {
            let weights = blend(&*distance, self.spacing, beta, self.weights.into())?;
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
