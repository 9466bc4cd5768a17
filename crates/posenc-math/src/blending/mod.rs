//! Blending: encodings of scattered points from a virtual grid (`trading` Sec. 5.2, App. B.2).
//!
//! A grid of nodes is encoded once, and the encoding of a point between the nodes x0 and x1 = x0 + d is
//! blended from theirs, `ψ(x0 + βd) ≈ α0 ψ(x0) + α1 ψ(x1)` with 0 ≤ β ≤ 1. The least-squares weights
//! depend on inner products alone, D(Δ) = ψ(x)·ψ(x + Δ) (Eq. 15, 46):
//!
//! ```text
//! α0 = (D(0) D(βd) − D(d) D((1−β)d)) / (D(0)² − D(d)²)
//! α1 = (D(0) D((1−β)d) − D(d) D(βd)) / (D(0)² − D(d)²)
//! ```
//!
//! Along several axes the weights multiply, 2^D of them for a point in D dimensions (Eq. 48, 49). With
//! the matrix `B` of these weights (points × nodes) a linear layer on the complex encoding of the
//! points is `B (Ψ0 ⊗ Ψ1) vec(W)` (Eq. 13, 47): mode products evaluate the grid, then `B` blends its
//! values.
//!
//! | step | item |
//! |---|---|
//! | D of an embedder | [`distance_function`] |
//! | the two weights | [`blend`], as printed or divided by their sum ([`Weights`]) |
//! | cell and β of a coordinate | [`VirtualGrid`], as in the authors' code or consistent ([`GridConvention`]) |
//! | weights of all coordinates along an axis | [`AxisBlending`] |
//! | points | [`Blending`] |
//!
//! Grids are stored with the first axis slowest: node (i, j) of an N0 × N1 grid is entry `i·N1 + j`.

mod axis;
mod distance;
mod grid;
mod points;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;

pub use axis::AxisBlending;
pub use distance::{DistanceFunction, InnerProducts, distance_function};
pub use grid::{GridConvention, VirtualGrid};
pub use points::Blending;

/// Whether the least-squares weights are normalized.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// Not normalized, as printed (`trading` Eq. 15).
    #[default]
    Printed,
    /// Divided by their sum, as in the authors' code.
    Normalized,
}

/// Neighboring encodings count as equal up to sign if `D(0) − D(d)` or `D(0) + D(d)` is within this share of `D(0)`.
const DISTINCT: f64 = 1e-12;

/// Smaller sums of weights are rounding.
const LEAST_SUM: f64 = 1e-9;

/// The weights (α0, α1) at x0 + `beta`·`spacing` between the nodes x0 and x0 + `spacing` (Eq. 15).
///
/// `distance` is D, up to a constant factor; `beta` is in [0, 1]. Evaluated as
///
/// ```text
/// α0 + α1 = (D(βd) + D((1−β)d)) / (D(0) + D(d)),    α0 − α1 = (D(βd) − D((1−β)d)) / (D(0) − D(d)),
/// ```
///
/// which is exactly (1, 0) and (0, 1) at the nodes, swaps the weights when β becomes 1 − β, and avoids
/// the cancellation of squares.
///
/// # Errors
///
/// A `beta` outside of [0, 1], nodes whose encodings are the same up to sign, and weights that cannot be divided by their sum.
pub fn blend(
    distance: &dyn Fn(f64) -> f64,
    spacing: f64,
    beta: f64,
    variant: Weights,
) -> Result<[f64; 2], Error> {
    if !(0.0..=1.0).contains(&beta) {
        return Err(Error(format!("β must be between 0 and 1, got {beta}")));
    }
    let (at_zero, at_spacing) = (distance(0.0), distance(spacing));
    let (plus, minus) = (at_zero + at_spacing, at_zero - at_spacing);
    let least = DISTINCT * at_zero.abs();
    // Not `<=`, so that NaN is also an error.
    if !(plus.abs() > least && minus.abs() > least && plus.is_finite()) {
        return Err(Error(format!(
            "the encodings of neighboring nodes, {spacing} apart, have the inner product {at_spacing} and the squared norm \
             {at_zero}: they are linearly dependent, so the weights are not unique; use an embedder that varies over \
             that distance"
        )));
    }
    let (left, right) = (distance(beta * spacing), distance((1.0 - beta) * spacing));
    let (sum, difference) = ((left + right) / plus, (left - right) / minus);
    let weights = [0.5 * (sum + difference), 0.5 * (sum - difference)];
    match variant {
        Weights::Printed => Ok(weights),
        Weights::Normalized if sum.abs() > LEAST_SUM => Ok(weights.map(|w| w / sum)),
        Weights::Normalized => Err(Error(format!(
            "the weights at β = {beta} between nodes {spacing} apart sum to {sum} and cannot be normalized: the \
             encoding there is nearly orthogonal to the sum of the two nodes' encodings; use more nodes, a wider \
             embedder, or unnormalized weights"
        ))),
    }
}
