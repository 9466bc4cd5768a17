//! Compares separable evaluation and closed-form weights with the explicit Kronecker product (`trading` Eq. 10–12).
//!
//! The protocol fits a random signal on a grid. The reference is the least-squares solution from an orthogonal factorization along each
//! axis, which is more accurate than one of the explicit product: the condition number of the product is that of both axes multiplied.
//! Deviations are ‖a − b‖/‖b‖ with the reference b. Digits are correct digits, −log₁₀ of the deviation, at most 16.
//!
//! Records:
//!
//! - `forward_deviation`, `forward_digits`: separable evaluation of random weights, compared with the explicit product.
//! - `weights_deviation`, `weights_digits`: weights by Eq. 12 as printed, compared with the reference.
//! - `residual_printed`, `residual_least`: relative residuals of Eq. 12 and of the reference.
//! - `condition_digits`: log₁₀ of the condition number of the explicit product, that of each axis counted as at most 10¹⁶.
//! - `multiply_adds_naive`, `multiply_adds_separable`: operations of the evaluation with and without the explicit product.

use anyhow::{Result, ensure};
use faer::Mat;
use posenc_experiments::record::Value;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::closed_form::{Factorization, Solver, normal_equations, solve};
use posenc_math::embedder::line;
use posenc_math::kronecker::{dense, separable_2d};
use posenc_math::random::gaussian_vector;
use posenc_math::spectrum::{condition_number, singular_values};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::range;
use crate::memory::embedding_matrix;

pub const KIND: Kind = Kind {
    needs_embedder: true,
    without_data: WithoutData::Theory,
    revision: 2,
    ..kind!(SeparableSolution, "separable-solution")
};

/// Settings of `separable-solution`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeparableSolution {
    /// Numbers of points along x and along y, equally spaced on [0, 1).
    pub points: [usize; 2],
}

impl Settings for SeparableSolution {
    fn check(&self) -> Result<(), Fault> {
        self.points.iter().try_for_each(|&n| range("points", n, 1, 256))
    }
}

/// Maximum number of entries of the explicit product.
const MAX: f64 = 1e6;

impl Protocol for SeparableSolution {
    /// Random weights and a random signal on a grid of M × N points.
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let embedder = context.embedder()?;
        let [n, m] = self.points;
        let encoded = |points: usize| embedding_matrix(&*embedder, &line(points));
        let (psi_x, psi_y) = (encoded(n)?, encoded(m)?);
        let k = psi_x.ncols();
        let entries = (n * m) as f64 * (k * k) as f64;
        ensure!(
            entries <= MAX,
            "the explicit product of {n} × {m} points and {k} × {k} features has {entries} entries; allowed: {MAX}. \
             Lower `points` or `dimension`"
        );
        let mut rng = context.stream("weights and signal");
        let mut gaussian = |rows: usize, columns: usize| {
            let numbers = gaussian_vector(&mut rng, rows * columns);
            Mat::from_fn(rows, columns, |i, j| numbers[i * columns + j])
        };
        let weights = gaussian(k, k);
        let signal = gaussian(m, n);

        let written_out = dense(psi_y.as_ref(), psi_x.as_ref());
        let evaluated = separable_2d(psi_y.as_ref(), weights.as_ref(), psi_x.as_ref())?;
        let forward = difference(&by_rows(&evaluated), &(&written_out * by_rows(&weights)));

        // Only singular values at the rounding level are cut off, where the weights are not determined in double precision.
        let axis = |psi: &Mat<f64>| {
            let cutoff = f64::EPSILON * psi.nrows().max(psi.ncols()) as f64;
            Factorization::with_solver(psi.as_ref(), cutoff, Solver::TruncatedSvd)
        };
        let (rows, columns) = (axis(&psi_y)?, axis(&psi_x)?);
        // Rows are the fastest axis.
        let by_columns = signal.col_iter().flat_map(|column| column.iter().copied()).collect();
        let numbers = solve(&[&columns, &rows], &[by_columns])?.swap_remove(0);
        let reference = Mat::from_fn(k, k, |i, j| numbers[j * k + i]);
        let residual = |weights: &Mat<f64>| -> Result<f64> {
            let predicted = separable_2d(psi_y.as_ref(), weights.as_ref(), psi_x.as_ref())?;
            Ok(difference(&predicted, &signal))
        };

        // (Ψyᵀ Ψy)⁻¹ Ψyᵀ S Ψx (Ψxᵀ Ψx)⁻¹ with one row per point; the paper has one column per point.
        let right = psi_y.transpose() * &signal * &psi_x;
        let half = normal_equations(psi_y.as_ref(), &right);
        let printed =
            normal_equations(psi_x.as_ref(), &half.transpose().to_owned()).transpose().to_owned();
        ensure!(
            printed.col_iter().all(|column| column.iter().all(|w| w.is_finite())),
            "Eq. 12 has no solution for this embedder: the Gram matrix of {k} features at {n} and {m} \
             points is singular; lower `dimension` or take more points"
        );

        let condition = |psi: &Mat<f64>| -> Result<f64> {
            Ok(condition_number(&singular_values(psi.as_ref())?).min(1e16))
        };
        let condition = condition(&psi_x)? * condition(&psi_y)?;
        let full = k * k;
        let deviation = difference(&printed, &reference);
        emit(
            0,
            vec![
                Value::new("forward_deviation", forward),
                Value::new("forward_digits", digits(forward)),
                Value::new("condition_digits", condition.log10()),
                Value::new("weights_deviation", deviation),
                Value::new("weights_digits", digits(deviation)),
                Value::new("residual_printed", residual(&printed)?),
                Value::new("residual_least", residual(&reference)?),
                Value::new("multiply_adds_naive", (n * m) as f64 * full as f64),
                Value::new("multiply_adds_separable", (m * k * k + m * k * n) as f64),
            ]
            .into(),
        )
    }
}

/// The entries of a matrix row by row, in the order of the columns of a Kronecker product.
fn by_rows(matrix: &Mat<f64>) -> Mat<f64> {
    let columns = matrix.ncols();
    Mat::from_fn(matrix.nrows() * columns, 1, |i, _| matrix[(i / columns, i % columns)])
}

/// ‖a − b‖ / ‖b‖.
fn difference(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    (a - b).norm_l2() / b.norm_l2()
}

/// −log₁₀ of a ratio, at most 16, the digits of double precision.
fn digits(ratio: f64) -> f64 {
    -ratio.max(1e-16).log10()
}
