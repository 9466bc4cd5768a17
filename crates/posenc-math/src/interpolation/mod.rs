//! Interpolation of images and clips without a learned or designed encoding: textbook methods as in SciPy, and local kriging.
//!
//! | method | regular grid | scattered points | SciPy |
//! |---|---|---|---|
//! | nearest | [`grid::upsample`] | [`Samples::nearest`] | `RegularGridInterpolator`, `NearestNDInterpolator` |
//! | linear | [`grid::upsample`] | [`Linear`] (2-D) | `RegularGridInterpolator`, `LinearNDInterpolator` |
//! | cubic | [`grid::upsample`], a not-a-knot spline | [`CloughTocher`] (2-D) | the same, `CloughTocher2DInterpolator` |
//! | thin-plate spline | [`ThinPlate`] | [`ThinPlate`] | `RBFInterpolator` |
//! | ordinary kriging | [`Kriging`] | [`Kriging`] | – |
//!
//! Outside the convex hull of the samples, where SciPy returns NaN or extrapolates, every method here returns the value at the
//! closest point of the hull (grids) or the value of the closest sample (scattered points).
//!
//! # Kriging is a position encoding
//!
//! A linear model on features ψ, fitted by ridge regression, depends on the features through their inner products
//! `C(x, x′) = ψ(x)·ψ(x′)` alone. Its prediction at x is `c(x)ᵀ (C + τI)⁻¹ y`, with the covariances `c(x)` of x and all samples.
//! This is kriging with covariance C and nugget τ. For the shifted embedders of the papers, C depends on x − x′ alone and is
//! their distance function D. The closed form on an encoding is thus kriging with covariance D, and choosing σ means choosing the
//! length of the covariance. The methods here differ in two ways. The covariance is estimated from the samples. Each position has
//! its own model from its nearest samples, which is an encoding of local support: the cost is linear in the number of positions,
//! and the encoding may vary with the position ([`steering`]).
//!
//! # Conventions
//!
//! Positions are in units of the caller, usually pixels. Values are stored by position with the channels fastest. Ties are
//! broken by sample index, so results depend only on the arguments. Work on many positions runs through [`Parallel`]; pieces
//! have a fixed size, so the number of threads changes no bit.

pub mod adaptive;
mod clough_tocher;
mod dense;
pub mod grid;
mod kriging;
pub mod lattice;
mod neighbors;
mod patterns;
pub mod selection;
pub mod steering;
mod thin_plate;
mod triangulation;

#[cfg(test)]
mod tests;

use crate::Error;

pub use clough_tocher::CloughTocher;
pub use kriging::{Covariance, Kriging, Metric};
pub use neighbors::{Neighbor, Neighbors};
pub use thin_plate::ThinPlate;
pub use triangulation::{Linear, Triangulation};

/// Samples of a function on D-dimensional space, with an index for searches.
#[derive(Clone, Debug)]
pub struct Samples<const D: usize> {
    positions: Vec<[f64; D]>,
    values: Vec<f64>,
    channels: usize,
    neighbors: Neighbors<D>,
}

impl<const D: usize> Samples<D> {
    /// Samples at `positions`, with `channels` values each, channels fastest.
    pub fn new(positions: Vec<[f64; D]>, values: Vec<f64>, channels: usize) -> Result<Self, Error> {
        let samples = positions.len();
        if samples == 0 || channels == 0 {
            return Err(Error("no samples; interpolation needs at least one".to_owned()));
        }
        check_values(values.len(), samples, channels)?;
        if let Some(index) = positions.iter().position(|p| p.iter().any(|c| !c.is_finite())) {
            return Err(Error(format!("the position of sample {index} is not finite")));
        }
        let neighbors = Neighbors::new(&positions);
        Ok(Samples { positions, values, channels, neighbors })
    }

    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Always false, since [`Samples::new`] rejects empty lists.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    pub fn channels(&self) -> usize {
        self.channels
    }

    pub fn positions(&self) -> &[[f64; D]] {
        &self.positions
    }

    pub fn value(&self, index: usize) -> &[f64] {
        &self.values[index * self.channels..][..self.channels]
    }

    /// The values of all samples, channels fastest.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The `count` samples closest to `position`, closest first.
    pub fn closest(&self, position: &[f64; D], count: usize, found: &mut Vec<Neighbor>) {
        self.neighbors.closest(&self.positions, position, count, found);
    }

    /// Writes a linear combination of samples to `out`.
    fn combine(&self, found: &[Neighbor], weights: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (neighbor, weight) in found.iter().zip(weights) {
            for (out, value) in out.iter_mut().zip(self.value(neighbor.index as usize)) {
                *out += weight * value;
            }
        }
    }

    /// The interpolant that returns the values of the closest sample.
    pub fn nearest(&self) -> Nearest<'_, D> {
        Nearest { samples: self }
    }
}

fn check_values(values: usize, samples: usize, channels: usize) -> Result<(), Error> {
    let expected = samples * channels;
    if values == expected {
        return Ok(());
    }
    Err(Error(format!(
        "{values} values for {samples} samples of {channels} channels; expected {expected}"
    )))
}

/// Nearest-neighbor interpolation: the values of the closest sample.
pub struct Nearest<'a, const D: usize> {
    samples: &'a Samples<D>,
}

impl<const D: usize> Interpolant<D> for Nearest<'_, D> {
    fn channels(&self) -> usize {
        self.samples.channels
    }

    fn predict(&self, queries: &[[f64; D]], out: &mut [f64]) {
        let mut found = Vec::new();
        for (query, out) in queries.iter().zip(out.chunks_exact_mut(self.samples.channels)) {
            self.samples.closest(query, 1, &mut found);
            if let Some(neighbor) = found.first() {
                out.copy_from_slice(self.samples.value(neighbor.index as usize));
            }
        }
    }
}

/// A function that interpolates samples.
pub trait Interpolant<const D: usize>: Sync {
    fn channels(&self) -> usize;

    /// Writes the values at `queries` to `out`, channels fastest.
    fn predict(&self, queries: &[[f64; D]], out: &mut [f64]);
}

/// Runs independent pieces of work, on any number of threads.
///
/// This crate starts no threads; callers with a thread pool implement this trait.
pub trait Parallel: Sync {
    /// Calls `work(i, piece)` for each of the pieces of `out` of `size` elements, in any order.
    fn for_pieces(&self, size: usize, out: &mut [f64], work: &(dyn Fn(usize, &mut [f64]) + Sync));
}

pub struct Sequential;

impl Parallel for Sequential {
    fn for_pieces(&self, size: usize, out: &mut [f64], work: &(dyn Fn(usize, &mut [f64]) + Sync)) {
        out.chunks_mut(size.max(1)).enumerate().for_each(|(index, piece)| work(index, piece));
    }
}

/// Positions per piece of work: enough to hide the cost of scheduling a piece.
const PIECE: usize = 512;

fn euclidean<const D: usize>(a: &[f64; D], b: &[f64; D]) -> f64 {
    (0..D).map(|axis| (a[axis] - b[axis]).powi(2)).sum()
}

/// Values of an interpolant at many positions, channels fastest.
pub fn predict<const D: usize>(
    interpolant: &dyn Interpolant<D>,
    queries: &[[f64; D]],
    parallel: &dyn Parallel,
) -> Vec<f64> {
    let channels = interpolant.channels();
    let mut out = vec![0.0; queries.len() * channels];
    parallel.for_pieces(PIECE * channels, &mut out, &|index, piece| {
        let queries = &queries[index * PIECE..][..piece.len() / channels];
        interpolant.predict(queries, piece);
    });
    out
}
