//! Thin-plate splines: radial functions plus a linear polynomial.
//!
//! The spline of least bending energy through the samples is `Σ w_i φ(‖x − x_i‖) + a + bᵀx` with `φ(r) = r² log r` in the plane and
//! `φ(r) = r` (up to sign) in space. A spline through all N samples has N + D + 1 equations, too many for an image. Each position
//! therefore has its own spline through its nearest samples, as with `neighbors` of SciPy's `RBFInterpolator`.

use super::dense;
use super::neighbors::Neighbor;
use super::patterns::Patterns;
use super::{Interpolant, Samples, euclidean};

/// Thin-plate spline at each position through its nearest samples.
pub struct ThinPlate<'a, const D: usize> {
    samples: &'a Samples<D>,
    neighbors: usize,
}

/// φ of the squared distance.
fn radial<const D: usize>(squared: f64) -> f64 {
    match D {
        // r² log r = r² log(r²)/2.
        2 if squared > 0.0 => 0.5 * squared * squared.ln(),
        2 => 0.0,
        _ => squared.sqrt(),
    }
}

/// The polynomial terms at a position: 1 and the coordinates relative to a center.
fn polynomial<const D: usize>(
    position: &[f64; D],
    center: &[f64; D],
) -> impl IntoIterator<Item = f64> {
    let (position, center) = (*position, *center);
    std::iter::once(1.0).chain((0..D).map(move |axis| position[axis] - center[axis]))
}

impl<'a, const D: usize> ThinPlate<'a, D> {
    /// Uses the `neighbors` nearest samples of each position. If they are on one line (or plane), the value is that of the closest
    /// sample.
    pub fn new(samples: &'a Samples<D>, neighbors: usize) -> Self {
        ThinPlate { samples, neighbors }
    }
}

impl<const D: usize> Interpolant<D> for ThinPlate<'_, D> {
    fn channels(&self) -> usize {
        self.samples.channels()
    }

    fn predict(&self, queries: &[[f64; D]], out: &mut [f64]) {
        let (mut found, mut matrix, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        let mut patterns = Patterns::default();
        for (query, out) in queries.iter().zip(out.chunks_exact_mut(self.samples.channels())) {
            self.samples.closest(query, self.neighbors, &mut found);
            let compute =
                |weights: &mut Vec<f64>| self.local_weights(query, &found, &mut matrix, weights);
            patterns.weights(self.samples, query, &found, compute, &mut weights);
            self.samples.combine(&found, &weights, out);
        }
    }
}

impl<const D: usize> ThinPlate<'_, D> {
    /// Weights of the samples in the value at a position. The matrix of a spline is symmetric, so the weights solve its system with
    /// the radial functions and polynomial terms at the position as right-hand side.
    fn local_weights(
        &self,
        query: &[f64; D],
        found: &[Neighbor],
        matrix: &mut Vec<f64>,
        weights: &mut Vec<f64>,
    ) {
        let count = found.len();
        let n = count + D + 1;
        let position = |i: usize| &self.samples.positions()[found[i].index as usize];
        matrix.clear();
        matrix.resize(n * n, 0.0);
        for i in 0..count {
            for j in 0..i {
                let value = radial::<D>(euclidean(position(i), position(j)));
                matrix[i * n + j] = value;
                matrix[j * n + i] = value;
            }
            for (k, value) in polynomial(position(i), query).into_iter().enumerate() {
                matrix[i * n + count + k] = value;
                matrix[(count + k) * n + i] = value;
            }
        }
        weights.clear();
        weights.extend(found.iter().map(|neighbor| radial::<D>(neighbor.squared)));
        weights.extend(polynomial(query, query));
        if !dense::solve(matrix, n, weights) {
            weights.fill(0.0);
            weights[0] = 1.0;
        }
    }
}
