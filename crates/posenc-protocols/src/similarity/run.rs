//! Similarity of two-dimensional position encodings to that of one cell (`lff` Fig. 2).

use std::f64::consts::FRAC_PI_4;

use anyhow::Result;
use posenc_experiments::record::Value;
use posenc_math::lff::similarity::{
    FourierFeatures, PositionCode, SineCode, decay, expected_kernel, similarity_map,
};

use super::{PositionCode as Code, Similarity};
use posenc_harness::protocol::{Context, Emit, Protocol};

/// Temperature of sinusoidal encodings (`lff` Eq. 1).
const TEMPERATURE: f64 = 10_000.0;

impl Protocol for Similarity {
    /// Records the map over the grid and the decay along an axis and the diagonal, divided by the similarity of the center to itself.
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let gamma = self.gamma.unwrap_or(1.0);
        let code: Box<dyn PositionCode> = match self.code {
            Code::Sine => Box::new(SineCode::new(self.dimension, 2, TEMPERATURE)?),
            Code::Fourier => {
                let mut rng = context.stream("frequencies");
                Box::new(FourierFeatures::draw(self.dimension, 2, gamma, &mut rng)?)
            }
        };
        let center = self.center.map(|c| c as f64);
        let side = self.grid;
        let own = code.similarity(&center, &center);
        let mut values = Vec::new();
        // Six digits suffice for a map; full precision would triple the size of the record.
        let six = |v: f64| (v * 1e6).round() / 1e6;
        for (i, s) in similarity_map(&*code, side, side, center).iter().enumerate() {
            let (row, column) = (i / side, i % side);
            values.push(Value::new("similarity", six(s / own)).at(column as f64).and(row as f64));
        }
        for &distance in &self.distances.0 {
            let axis = decay(&*code, center, 0.0, distance);
            let diagonal = decay(&*code, center, FRAC_PI_4, distance);
            values.push(Value::new("similarity_axis", axis).at(distance));
            values.push(Value::new("similarity_diagonal", diagonal).at(distance));
            values.push(Value::new("decay_ratio", (1.0 - diagonal) / (1.0 - axis)).at(distance));
            if self.code == Code::Fourier {
                let expected = 2.0 * expected_kernel(&[0.0, distance], gamma);
                values.push(Value::new("similarity_expected", expected).at(distance));
            }
        }
        emit(0, values.into())
    }
}
