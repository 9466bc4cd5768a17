//! Closed-form weights of the linear complex encoding: minimum-norm least squares.
//!
//! On a grid the weights that minimize `‖S − Ψy W Ψxᵀ‖²` (trading, Eqs. 11 and 12; Eqs. 40 to 42 with
//! the missing transposes put back) are
//!
//! ```text
//! W = Ψy⁺ S (Ψx⁺)ᵀ                  S: M × N,  Ψy: M × Ky,  Ψx: N × Kx,  W: Ky × Kx
//! W = S ×₀ Ψ0⁺ ×₁ Ψ1⁺ ×₂ Ψ2⁺        S: N0 × N1 × N2,  W: K0 × K1 × K2
//! ```
//!
//! where `Ψ⁺` is the pseudo-inverse. Row `j` of `S` is the coordinate y_j, column `i` is x_i; there is
//! neither bias nor ridge. With `Ψ = Σ σ_l u_l v_lᵀ` and σ_1 ≥ σ_2 ≥ …,
//!
//! ```text
//! Ψ⁺ = Σ_{l ≤ r} v_l u_lᵀ / σ_l,     r = #{l : σ_l > rcond · σ_1},     rcond = ε₃₂ · max(N, K)
//! ```
//!
//! `ε₃₂ = 2⁻²³` is the machine epsilon of f32, so that f64 runs solve the same problem as the f32 runs
//! of the authors' scripts. When r < min(N, K), the solution is the one of least norm.
//! [`Factorization::report`] reports the rank.
//!
//! The work splits in two. [`Factorization::new`] does everything that depends on the coordinates
//! alone, once; [`solve()`] is a matrix product per channel and axis, and any number of images and
//! channels share the factorizations. Channels are independent: callers may
//! distribute them over threads, and the number of threads changes no bit of the results.
//!
//! [`Solver`] selects other least-squares solvers. Their solutions differ for rank-deficient matrices.
//!
//! Scattered points do not decouple by axis; [`ScatteredSystem`] solves for their weights iteratively.
//!
//! # Fast paths
//!
//! - *Diagonal Ψ*. The triangle embedder of half width 1/K on N = K points is the identity; its
//!   solution interpolates linearly between the training points.
//! - *Certified full rank*. A QR factorization with column pivoting gives a candidate X for Ψ⁺. With
//!   ρ = ‖I − XΨ‖ (rounding of this product included) `σ_min(Ψ) ≥ (1 − ρ)/‖X‖`, which bounds the
//!   condition number from above. X is used only if the bound proves that no singular value is below
//!   the cutoff. Otherwise Ψ⁺ is computed from the singular values.
//! - *Truncation before the singular value decomposition*. Rows of R at the level of rounding are
//!   dropped, and only the remaining rows are decomposed.
//! - *Even and odd parts*. A Ψ that is unchanged by reversing the order of both its points and its
//!   features decouples into an even and an odd half (a shift-invariant, even kernel on N = K
//!   equispaced points). Factoring then takes a quarter of the work and applying takes half. The
//!   symmetry must hold bit for bit.

mod apply;
mod compiled;
mod complete_orthogonal;
mod factorization;
mod ridge;
mod scattered;
mod solve;

pub use factorization::{Factorization, Method, RIDGE_CUTOFF, RankReport, Solver};
pub use ridge::{Evidence, LineFit, Lines, Ridge, RidgeAxis, RidgeFit, RidgeScores, SHORTEST_LINE};
pub use scattered::{LeastSquares, LeastSquaresOptions, ScatteredSystem, Stop};
pub use solve::{Separable, normal_equations, predict, solve};

use faer::MatRef;
use faer::traits::RealField;

use crate::Error;

/// The two precisions of the closed form.
pub trait Real: RealField + Copy + Send + Sync + compiled::Compiled {
    /// Distance from 1 to the next larger number.
    const EPSILON: f64;

    /// Exact for f32 and f64.
    fn to_f64(self) -> f64;

    /// Rounded to nearest.
    fn from_f64(value: f64) -> Self;
}

impl Real for f32 {
    const EPSILON: f64 = f32::EPSILON as f64;

    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn from_f64(value: f64) -> Self {
        value as f32
    }
}

impl Real for f64 {
    const EPSILON: f64 = f64::EPSILON;

    fn to_f64(self) -> f64 {
        self
    }

    fn from_f64(value: f64) -> Self {
        value
    }
}

/// Cutoff of the published scripts, the default of `torch.linalg.lstsq`: `ε₃₂ · max(N, K)`.
pub fn default_rcond(n_points: usize, n_features: usize) -> f64 {
    f64::from(f32::EPSILON) * n_points.max(n_features) as f64
}

/// Refuses empty matrices and entries that are NaN or infinite.
fn check_entries<T: Real>(what: impl Fn() -> String, matrix: MatRef<'_, T>) -> Result<(), Error> {
    let (rows, columns) = matrix.shape();
    if rows == 0 || columns == 0 {
        return Err(Error(format!(
            "{} is {rows}×{columns}; it needs at least one row and one column",
            what()
        )));
    }
    if matrix.is_all_finite() {
        return Ok(());
    }
    let by_rows: Vec<T> = (0..rows * columns).map(|i| matrix[(i / columns, i % columns)]).collect();
    check_finite(&by_rows, &what(), |at| format!("row {}, column {}", at / columns, at % columns))
}

/// Refuses a value that is NaN or infinite; `place` describes the place of an index.
fn check_finite<T: Real>(
    values: &[T],
    what: &str,
    place: impl Fn(usize) -> String,
) -> Result<(), Error> {
    // The check of faer uses vector instructions.
    if MatRef::from_column_major_slice(values, values.len(), 1).is_all_finite() {
        return Ok(());
    }
    let is_broken = |value: &T| !value.to_f64().is_finite();
    let at = values.iter().position(is_broken).unwrap_or_default();
    Err(Error(format!(
        "{what} contains {} at {}; every entry must be finite",
        values[at].to_f64(),
        place(at)
    )))
}

/// Refuses a wrong number of values. `what` names the values, in the plural.
pub(crate) fn check_length(what: &str, found: usize, needed: usize) -> Result<(), Error> {
    if found == needed {
        return Ok(());
    }
    Err(Error(format!("{what}: expected {needed}, got {found}")))
}

/// Error for a singular value decomposition that did not converge.
fn no_convergence((rows, columns): (usize, usize)) -> Error {
    Error(format!("the singular values of the {rows}×{columns} embedding matrix did not converge"))
}

#[cfg(test)]
mod tests;
