//! Random embedder: row ⌊x·d⌋ of the circulant of a standard-normal vector (`rethinking` Sec. 4.2,
//! Fig. 6).
//!
//! `ψ_j(x) = c_{(⌊x·d⌋ - j) mod d}` with `c_i ~ N(0, 1)` independent. Different rows are nearly
//! orthogonal when d is large: like the impulse, the embedder memorizes and does not generalize.

use super::{
    Embedder,
    impulse::cell,
    kind::Kind,
    registry::{DIMENSION, SCALING},
};
use crate::random::gaussian_vector;

pub(super) const KIND: Kind = Kind {
    name: "random",
    label: "Random",
    symbol: "Rand",
    source: "rethinking Sec. 4.2, Fig. 6",
    latex: r"\psi_j(x) = c_{(\lfloor x d \rfloor - j) \bmod d},\ c_i \sim \mathcal{N}(0, 1)",
    distance: r"[\,\Delta = 0\,]",
    parameters: &[DIMENSION, SCALING],
    color: Some([0.6, 0.125, 112.0]),
    method_names: &["rand"],
    is_random: true,
    ..Kind::built_by(|values, rng| {
        let first_column = gaussian_vector(rng, values.dimension()?);
        Ok(Box::new(RandomCirculant { first_column }))
    })
};

struct RandomCirculant {
    first_column: Vec<f64>,
}

impl Embedder for RandomCirculant {
    fn dimension(&self) -> usize {
        self.first_column.len()
    }

    fn embed_columns(&self, x: f64, first: usize, out: &mut [f64]) {
        let d = self.first_column.len();
        let row = cell(x, d).rem_euclid(d as f64);
        if row.is_nan() {
            return out.fill(f64::NAN);
        }
        // Entry j is c[row - j], or c[row - j + d] once j has passed the row.
        let row = (row as usize).min(d - 1);
        for (k, value) in out.iter_mut().enumerate() {
            let j = first + k;
            *value = self.first_column[if j <= row { row - j } else { row + d - j }];
        }
    }

    fn distance_law(&self, delta: f64) -> Option<f64> {
        Some(if delta == 0.0 { 1.0 } else { 0.0 })
    }

    fn is_circulant(&self) -> bool {
        true
    }

    fn row_norm(&self, _x: f64) -> f64 {
        self.first_column.iter().map(|value| value * value).sum::<f64>().sqrt()
    }
}
