//! Thin-plate splines: radial functions plus a linear polynomial.
//!
//! The spline of least bending energy through the samples is `Σ w_i φ(‖x − x_i‖) + a + bᵀx` with `φ(r) = r² log r` in the plane and
//! `φ(r) = r` (up to sign) in space. All N samples need N + D + 1 equations, which takes too long for an image: with a limit, each
//! position has a spline of its own through its nearest samples, as with `neighbors` of SciPy's `RBFInterpolator`.

use super::dense;
use super::neighbors::Neighbor;
use super::patterns::Patterns;
use super::{Interpolant, InterpolationError, Samples, euclidean};

/// A spline through all samples, or at each position one through its nearest samples.
pub struct ThinPlate<'a, const D: usize> {
    samples: &'a Samples<D>,
    form: Form<D>,
}

enum Form<const D: usize> {
    /// Weights of the samples and then of the polynomial, by channel, around a center.
    Global {
        coefficients: Vec<Vec<f64>>,
        center: [f64; D],
    },
    Local {
        neighbors: usize,
    },
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

/// The symmetric matrix of a spline through the positions, by row, and its size.
fn system<const D: usize>(
    positions: &dyn Fn(usize) -> [f64; D],
    count: usize,
    center: &[f64; D],
    matrix: &mut Vec<f64>,
) -> usize {
    let n = count + D + 1;
    matrix.clear();
    matrix.resize(n * n, 0.0);
    for i in 0..count {
        let own = positions(i);
        for j in 0..i {
            let value = radial::<D>(euclidean(&own, &positions(j)));
            matrix[i * n + j] = value;
            matrix[j * n + i] = value;
        }
        for (k, value) in polynomial(&own, center).into_iter().enumerate() {
            matrix[i * n + count + k] = value;
            matrix[(count + k) * n + i] = value;
        }
    }
    n
}

/// 1 and the coordinates around a center.
fn polynomial<const D: usize>(
    position: &[f64; D],
    center: &[f64; D],
) -> impl IntoIterator<Item = f64> {
    let (position, center) = (*position, *center);
    std::iter::once(1.0).chain((0..D).map(move |axis| position[axis] - center[axis]))
}

impl<'a, const D: usize> ThinPlate<'a, D> {
    /// One spline through all samples.
    ///
    /// # Errors
    ///
    /// [`InterpolationError::Singular`] if the samples are on one line (or plane), or two coincide.
    pub fn global(samples: &'a Samples<D>) -> Result<Self, InterpolationError> {
        let center = samples.positions()[0];
        let mut coefficients = Vec::with_capacity(samples.channels());
        for channel in 0..samples.channels() {
            let mut matrix = Vec::new();
            let n = system(&|i| samples.positions()[i], samples.len(), &center, &mut matrix);
            let mut b: Vec<f64> = (0..samples.len()).map(|i| samples.value(i)[channel]).collect();
            b.resize(n, 0.0);
            if !dense::solve(&mut matrix, n, &mut b) {
                return Err(InterpolationError::Singular);
            }
            coefficients.push(b);
        }
        Ok(ThinPlate { samples, form: Form::Global { coefficients, center } })
    }

    /// At each position a spline through its `neighbors` nearest samples. If these are on one line (or plane), the value of the
    /// closest one.
    pub fn local(samples: &'a Samples<D>, neighbors: usize) -> Self {
        ThinPlate { samples, form: Form::Local { neighbors } }
    }
}

impl<const D: usize> Interpolant<D> for ThinPlate<'_, D> {
    fn channels(&self) -> usize {
        self.samples.channels()
    }

    fn predict(&self, queries: &[[f64; D]], out: &mut [f64]) {
        let outputs = queries.iter().zip(out.chunks_exact_mut(self.samples.channels()));
        match &self.form {
            Form::Global { coefficients, center } => {
                for (query, out) in outputs {
                    let positions = self.samples.positions().iter();
                    let radials = positions.map(|p| radial::<D>(euclidean(p, query)));
                    let terms: Vec<f64> = radials.chain(polynomial(query, center)).collect();
                    for (out, coefficients) in out.iter_mut().zip(coefficients) {
                        *out = terms.iter().zip(coefficients).map(|(t, c)| t * c).sum();
                    }
                }
            }
            Form::Local { neighbors } => {
                let (mut found, mut matrix, mut weights) = (Vec::new(), Vec::new(), Vec::new());
                let mut patterns = Patterns::default();
                for (query, out) in outputs {
                    self.samples.closest(query, *neighbors, &mut found);
                    let compute = |weights: &mut Vec<f64>| {
                        self.local_weights(query, &found, &mut matrix, weights);
                    };
                    patterns.weights(self.samples, query, &found, compute, &mut weights);
                    self.samples.combine(&found, &weights, out);
                }
            }
        }
    }
}

impl<const D: usize> ThinPlate<'_, D> {
    /// Weights of samples in the value at a position. The matrix of a spline is symmetric, so they solve it for the radial functions
    /// and the polynomial at the position.
    fn local_weights(
        &self,
        query: &[f64; D],
        found: &[Neighbor],
        matrix: &mut Vec<f64>,
        weights: &mut Vec<f64>,
    ) {
        let at = |i: usize| self.samples.positions()[found[i].index as usize];
        let n = system(&at, found.len(), query, matrix);
        weights.clear();
        weights.extend(found.iter().map(|neighbor| radial::<D>(neighbor.squared)));
        weights.extend(polynomial(query, query));
        if !dense::solve(matrix, n, weights) {
            weights.fill(0.0);
            weights[0] = 1.0;
        }
    }
}
