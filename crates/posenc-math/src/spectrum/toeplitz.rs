//! Symmetric Toeplitz Gram matrices: equally spaced samples of a stationary kernel.
//!
//! `G_{ij} = g_{|i-j|}` is applied to a vector in O(n log n) as the corner of a circulant matrix of at
//! least twice the size, and Lanczos iterations find its largest eigenvalue.

use std::f64::consts::{PI, TAU};
use std::sync::Arc;

use crate::fourier::{Complex, Fft, forward, inverse};

use super::{all_zero, check_values, lanczos};
use crate::Error;
use crate::random::{gaussian_vector, stream};

/// n·g_0/λ_max: the stable rank of samples whose Gram matrix is symmetric Toeplitz with this first
/// row.
///
/// Iterates until the residual of the eigenvector is at most 1e-8 λ_max (its eigenvalue is far more
/// accurate), at most 600 times. Equally spaced samples of a Fourier embedder have exactly such a Gram
/// matrix, with `g_j = Σ_k cos(2πb_k j/n)`.
///
/// # Errors
///
/// An empty row, entries that are not finite, `g_0 = 0`, or an entry larger than `g_0`.
pub fn toeplitz_stable_rank(first_row: &[f64]) -> Result<f64, Error> {
    check_values(first_row)?;
    let n = first_row.len();
    let diagonal = first_row[0];
    let is_too_large = |value: &f64| value.abs() > diagonal * (1.0 + 1e-9);
    if let Some(index) = first_row.iter().position(is_too_large) {
        return Err(Error(format!(
            "the first row has {} at {index}, more than its diagonal {diagonal}; a Gram matrix has its largest entries on the diagonal",
            first_row[index]
        )));
    }
    if diagonal == 0.0 {
        return Err(all_zero());
    }
    let normalized: Vec<f64> = first_row.iter().map(|value| value / diagonal).collect();
    let mut operator = Operator::new(&normalized);
    let start = start_vector(&normalized);
    let largest = lanczos::largest_eigenvalue(|v, out| operator.apply(v, out), start)?;
    Ok(n as f64 / largest)
}

/// A vector close to the leading eigenvector: a half-sine window times the sinusoid with the largest
/// Rayleigh quotient, plus some noise for components that this guess lacks.
fn start_vector(first_row: &[f64]) -> Vec<f64> {
    let n = first_row.len();
    let m = fast_length(2 * n);
    // The Rayleigh quotients of all sinusoids are the transform of the row under Fejér weights.
    let mut quotients = symmetric_extension(first_row, m, |j| 1.0 - j as f64 / n as f64);
    forward(m).process(&mut quotients);
    let peak =
        (0..=m / 2).max_by(|&a, &b| quotients[a].re.total_cmp(&quotients[b].re)).unwrap_or(0);
    let frequency = peak as f64 / m as f64;
    let noise = gaussian_vector(&mut stream(0, "start of the Toeplitz iteration"), n);
    (0..n)
        .map(|j| {
            let window = (PI * (j as f64 + 1.0) / (n as f64 + 1.0)).sin();
            let (sine, cosine) = (TAU * frequency * (j as f64 - 0.5 * (n as f64 - 1.0))).sin_cos();
            window * (cosine + sine) + 0.02 * noise[j]
        })
        .collect()
}

/// `weight(j)·g_j` at the positions j and m - j of a vector of length m.
fn symmetric_extension(
    first_row: &[f64],
    m: usize,
    weight: impl Fn(usize) -> f64,
) -> Vec<Complex<f64>> {
    let mut extension = vec![Complex::new(0.0, 0.0); m];
    for (j, value) in first_row.iter().enumerate() {
        let weighted = Complex::new(value * weight(j), 0.0);
        extension[j] = weighted;
        if j > 0 {
            extension[m - j] = weighted;
        }
    }
    extension
}

/// The smallest 2^a, 3·2^a or 5·2^a that is at least `n`.
fn fast_length(n: usize) -> usize {
    let next = |factor: usize| factor * n.div_ceil(factor).next_power_of_two();
    next(1).min(next(3)).min(next(5))
}

struct Operator {
    forward: Arc<dyn Fft<f64>>,
    inverse: Arc<dyn Fft<f64>>,
    /// Eigenvalues of the circulant extension, divided by its size.
    eigenvalues: Vec<f64>,
    work: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
}

impl Operator {
    fn new(first_row: &[f64]) -> Self {
        let m = fast_length(2 * first_row.len());
        let (forward, inverse) = (forward(m), inverse(m));
        let mut work = symmetric_extension(first_row, m, |_| 1.0);
        let scratch_length =
            forward.get_inplace_scratch_len().max(inverse.get_inplace_scratch_len());
        let mut scratch = vec![Complex::new(0.0, 0.0); scratch_length];
        forward.process_with_scratch(&mut work, &mut scratch);
        let eigenvalues = work.iter().map(|value| value.re / m as f64).collect();
        Self { forward, inverse, eigenvalues, work, scratch }
    }

    fn apply(&mut self, vector: &[f64], out: &mut [f64]) {
        self.work.fill(Complex::new(0.0, 0.0));
        for (entry, value) in self.work.iter_mut().zip(vector) {
            entry.re = *value;
        }
        self.forward.process_with_scratch(&mut self.work, &mut self.scratch);
        for (entry, eigenvalue) in self.work.iter_mut().zip(&self.eigenvalues) {
            *entry *= eigenvalue;
        }
        self.inverse.process_with_scratch(&mut self.work, &mut self.scratch);
        for (value, entry) in out.iter_mut().zip(&self.work) {
            *value = entry.re;
        }
    }
}
