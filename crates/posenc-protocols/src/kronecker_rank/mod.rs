//! Computes ranks of simple and complex two-dimensional encodings (`trading` Eq. 7–9, Fig. 5).
//!
//! The embedding matrix of one axis is N × d; both axes share it. Ranks count singular values above 10⁻⁹ σ_1.
//!
//! Records:
//!
//! - `rank_axis`: rank r of the embedding matrix of one axis. `rank_axis_squared`: r².
//! - `rank_simple`, `rank_complex`: ranks of the encodings of all N² points.
//! - `rank_simple_image`: rank of the N × N image that a linear layer with random weights yields on the simple encoding.
//! - `stable_rank_axis`, `stable_rank_axis_squared`, `stable_rank_simple`, `stable_rank_complex`: the corresponding stable ranks.
//! - `simple_encoding`: the 2d features of `position`, over their index.
//! - `complex_encoding`: the d² features of `position`, over the indices of both axes.

use anyhow::{Result, ensure};
use faer::Mat;
use posenc_experiments::record::Value;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::embedder::line;
use posenc_math::kronecker::{dense, simple_features};
use posenc_math::random::gaussian_vector;
use posenc_math::spectrum::{numerical_rank, singular_values, stable_rank_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::range;
use crate::memory::{check_memory, embedding_matrix};

pub const KIND: Kind = Kind {
    needs_embedder: true,
    // 2: stable ranks.
    revision: 2,
    without_data: WithoutData::Theory,
    ..kind!(KroneckerRank, "kronecker-rank")
};

/// Settings of `kronecker-rank`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KroneckerRank {
    /// Number N of points along each axis.
    pub points: usize,
    /// The position (x, y) whose simple and complex encodings are recorded.
    pub position: [f64; 2],
}

impl Settings for KroneckerRank {
    fn check(&self) -> Result<(), Fault> {
        range("points", self.points, 2, 64)?;
        self.position.iter().try_for_each(|&x| range("position", x, 0.0, 1.0))
    }
}

const RANK_TOLERANCE: f64 = 1e-9;

/// Maximum number of recorded products of two features.
const MAX_PRODUCTS: f64 = 1e6;

impl Protocol for KroneckerRank {
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let embedder = context.embedder()?;
        let n = self.points;
        let psi = embedding_matrix(&*embedder, &line(n))?;
        let complex = psi.ncols() as f64 * n as f64;
        let products = psi.ncols() as f64 * psi.ncols() as f64;
        ensure!(
            products <= MAX_PRODUCTS,
            "`dimension` {} yields {products} products to record; allowed: {MAX_PRODUCTS}",
            psi.ncols()
        );
        check_memory("the complex feature matrix", complex * complex)?;
        let ranks = |m: &Mat<f64>| -> Result<[f64; 2]> {
            let singular_values = singular_values(m.as_ref())?;
            let rank = numerical_rank(&singular_values, RANK_TOLERANCE) as f64;
            Ok([rank, stable_rank_of(&singular_values)?])
        };
        let simple = simple_features(psi.as_ref(), psi.as_ref());
        let [axis, stable_axis] = ranks(&psi)?;
        let [rank_simple, stable_simple] = ranks(&simple)?;
        let [rank_complex, stable_complex] = ranks(&dense(psi.as_ref(), psi.as_ref()))?;
        // The output of a linear layer with random weights on the simple features.
        let weights = gaussian_vector(&mut context.stream("weights"), simple.ncols());
        let image = Mat::from_fn(n, n, |row, column| {
            (0..simple.ncols()).map(|k| simple[(row * n + column, k)] * weights[k]).sum()
        });
        let [rank_image, _] = ranks(&image)?;
        let mut values = vec![
            Value::new("rank_axis", axis),
            Value::new("rank_axis_squared", axis * axis),
            Value::new("rank_simple", rank_simple),
            Value::new("rank_complex", rank_complex),
            Value::new("rank_simple_image", rank_image),
            Value::new("stable_rank_axis", stable_axis),
            Value::new("stable_rank_axis_squared", stable_axis * stable_axis),
            Value::new("stable_rank_simple", stable_simple),
            Value::new("stable_rank_complex", stable_complex),
        ];
        let [x, y] = self.position;
        let at = embedding_matrix(&*embedder, &[x, y])?;
        let k = at.ncols();
        for i in 0..2 * k {
            values.push(Value::new("simple_encoding", at[(i / k, i % k)]).at(i as f64));
        }
        for j in 0..k {
            for i in 0..k {
                let product = at[(0, i)] * at[(1, j)];
                values.push(Value::new("complex_encoding", product).at(i as f64).and(j as f64));
            }
        }
        emit(0, values.into())
    }
}
