//! Blending: encodings of scattered points from a virtual grid (`trading` Sec. 5.2, App. B.2).
//!
//! A grid of nodes is encoded once, and the encoding of a point between the nodes x0 and x1 = x0 + d is
//! taken from theirs, `ψ(x0 + βd) ≈ α0 ψ(x0) + α1 ψ(x1)` with 0 ≤ β ≤ 1. The least-squares weights
//! depend on inner products alone, D(Δ) = ψ(x)·ψ(x + Δ) (Eq. 15, 46):
//!
//! ```text
//! α0 = (D(0) D(βd) − D(d) D((1−β)d)) / (D(0)² − D(d)²)
//! α1 = (D(0) D((1−β)d) − D(d) D(βd)) / (D(0)² − D(d)²)
//! ```
//!
//! Along several axes the weights multiply, 2^D of them for a point in D dimensions (Eq. 48, 49). With
//! the matrix `B` of these weights (points × nodes) a linear layer on the complex encoding of the
//! points is `B (Ψ0 ⊗ Ψ1) vec(W)` (Eq. 13, 47): the grid is evaluated by mode products and its values
//! are blended.
//!
//! | step | item |
//! |---|---|
//! | D of an embedder | [`distance_function`] |
//! | the two weights | [`blend`], as printed or divided by their sum ([`WeightVariant`]) |
//! | cell and β of a coordinate | [`VirtualGrid`], as the authors' code has it or consistent ([`GridConvention`]) |
//! | weights of all coordinates along an axis | [`AxisBlending`] |
//! | points | [`Blending`]: [`gather`](Blending::gather), [`scatter`](Blending::scatter), [`matrix`](Blending::matrix) |
//!
//! Grids are stored with the first axis slowest: node (i, j) of an N0 × N1 grid is entry `i·N1 + j`.

mod axis;
mod distance;
mod grid;
mod points;

#[cfg(test)]
mod tests;

use thiserror::Error;

pub use axis::AxisBlending;
pub use distance::{DistanceFunction, DistanceSource, distance_function};
pub use grid::{GridConvention, VirtualGrid};
pub use points::Blending;

/// What cannot be blended, and what to do about it.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum BlendingError {
    /// Too few nodes, or more than an index holds.
    #[error("a virtual grid has {0} nodes along an axis; allowed are 2 to 1000000")]
    Nodes(usize),
    /// A coordinate outside the grid, or NaN.
    #[error("coordinate {index} is {value}; the virtual grid covers 0 to 1")]
    Coordinate {
        /// Position in the list of coordinates.
        index: usize,
        /// The coordinate.
        value: f64,
    },
    /// A position between two nodes that is none.
    #[error("the position β between two nodes is {0}; allowed are 0 to 1")]
    Ratio(f64),
    /// D(0)² = D(d)²: the encodings of the two nodes are the same up to sign.
    #[error(
        "the encodings of neighboring nodes, {spacing} apart, have the inner product {at_spacing} and the square \
         {at_zero}: they span one direction only, which leaves the weights open; use an embedder that varies \
         over that distance"
    )]
    Indistinguishable {
        /// d.
        spacing: f64,
        /// D(0).
        at_zero: f64,
        /// D(d).
        at_spacing: f64,
    },
    /// Weights that cannot be divided by their sum.
    #[error(
        "the weights at β = {beta} between nodes {spacing} apart add up to {sum}, which leaves nothing to divide by: \
         neither node's encoding reaches that far; use more nodes, a wider embedder, or the weights as printed"
    )]
    NoSum {
        /// β.
        beta: f64,
        /// d.
        spacing: f64,
        /// α0 + α1.
        sum: f64,
    },
    /// An embedder whose distance has no known law.
    #[error(
        "no law of the embedding distance is known for '{0}'; use inner products of the encoding itself"
    )]
    NoLaw(String),
    /// A point that names a coordinate that is not there.
    #[error("point {point} names coordinate {found} of axis {axis}, which has {available}")]
    Point {
        /// Position in the list of points.
        point: usize,
        /// Axis.
        axis: usize,
        /// Index of the coordinate.
        found: usize,
        /// Number of coordinates along the axis.
        available: usize,
    },
    /// A vector or matrix of the wrong size.
    #[error("{what}: {found} are given and {needed} needed")]
    Length {
        /// What it holds.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The right length.
        needed: usize,
    },
}

/// What is done to the least-squares weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightVariant {
    /// Nothing: Eq. 15.
    Printed,
    /// They are divided by their sum, as in the authors' code.
    #[default]
    Normalized,
}

/// Nodes whose encodings differ by less than this share of their square count as one.
const DISTINCT: f64 = 1e-12;

/// Sums of weights below this are rounding.
const LEAST_SUM: f64 = 1e-9;

/// The weights (α0, α1) at x0 + `beta`·`spacing` between the nodes x0 and x0 + `spacing` (Eq. 15).
///
/// `distance` is D, up to a constant factor; `beta` is in [0, 1]. Evaluated as
///
/// ```text
/// α0 + α1 = (D(βd) + D((1−β)d)) / (D(0) + D(d)),    α0 − α1 = (D(βd) − D((1−β)d)) / (D(0) − D(d)),
/// ```
///
/// which gives (1, 0) and (0, 1) at the nodes to the bit, swaps the weights when β becomes 1 − β, and
/// subtracts no squares.
///
/// # Errors
///
/// [`BlendingError::Ratio`], [`BlendingError::Indistinguishable`], [`BlendingError::NoSum`].
pub fn blend(
    distance: &dyn Fn(f64) -> f64,
    spacing: f64,
    beta: f64,
    variant: WeightVariant,
) -> Result<[f64; 2], BlendingError> {
    if !(0.0..=1.0).contains(&beta) {
        return Err(BlendingError::Ratio(beta));
    }
    let (at_zero, at_spacing) = (distance(0.0), distance(spacing));
    let (plus, minus) = (at_zero + at_spacing, at_zero - at_spacing);
    let least = DISTINCT * at_zero.abs();
    // Not `<=`, so that NaN is refused too.
    if !(plus.abs() > least && minus.abs() > least && plus.is_finite()) {
        return Err(BlendingError::Indistinguishable { spacing, at_zero, at_spacing });
    }
    let (left, right) = (distance(beta * spacing), distance((1.0 - beta) * spacing));
    let (sum, difference) = ((left + right) / plus, (left - right) / minus);
    let weights = [0.5 * (sum + difference), 0.5 * (sum - difference)];
    match variant {
        WeightVariant::Printed => Ok(weights),
        WeightVariant::Normalized if sum.abs() > LEAST_SUM => Ok(weights.map(|w| w / sum)),
        WeightVariant::Normalized => Err(BlendingError::NoSum { beta, spacing, sum }),
    }
}
