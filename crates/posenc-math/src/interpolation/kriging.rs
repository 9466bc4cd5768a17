//! Ordinary kriging with the nearest samples.
//!
//! The prediction at x is a linear combination `Σ w_i y_i` of its nearest samples with `Σ w_i = 1`. The weights minimize the
//! expected squared error if values are a constant plus a process with covariance C plus independent noise τ (the *nugget*):
//!
//! ```text
//! (C + τI) w + μ 1 = c,   1ᵀw = 1
//! ```
//!
//! The constant is unknown and may vary with the position, so only differences of values matter.

use super::dense;
use super::neighbors::Neighbor;
use super::patterns::Patterns;
use super::{Interpolant, Samples, euclidean};

/// Covariance `C(h) = exp(−h/length)` of values, with which the process on a line is Markov, and the noise of the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Covariance {
    /// Distance at which the covariance is 1/e.
    pub length: f64,
    /// Variance of the noise, in units of that of the process.
    pub nugget: f64,
}

impl Covariance {
    pub fn at(&self, squared: f64) -> f64 {
        (-(squared / (self.length * self.length)).sqrt()).exp()
    }
}

/// A symmetric matrix that measures squared distances in the plane, by rows: `[xx, xy, yy]`.
pub type Metric = [f64; 3];

/// Ordinary kriging at arbitrary positions.
#[derive(Clone, Copy)]
pub struct Kriging<'a, const D: usize> {
    samples: &'a Samples<D>,
    covariance: Covariance,
    /// Samples per position.
    neighbors: usize,
}

/// Scratch memory, reused for the systems of many positions.
#[derive(Default)]
pub struct Scratch {
    found: Vec<Neighbor>,
    wider: Vec<Neighbor>,
    weights: Vec<f64>,
    system: System,
}

/// Scratch memory of one system.
#[derive(Default)]
struct System {
    matrix: Vec<f64>,
    column: Vec<f64>,
    ones: Vec<f64>,
}

/// Number of nearest samples by Euclidean distance among which those nearest by a metric are chosen.
const WIDER: usize = 32;

impl<'a, const D: usize> Kriging<'a, D> {
    /// Kriging with up to `neighbors` samples per position.
    pub fn new(samples: &'a Samples<D>, covariance: Covariance, neighbors: usize) -> Self {
        Kriging { samples, covariance, neighbors }
    }

    /// Weights of the samples `found`, which contain their squared distances from the position.
    fn solve(
        &self,
        found: &[Neighbor],
        squared: impl Fn(&[f64; D], &[f64; D]) -> f64,
        System { matrix, column, ones }: &mut System,
        weights: &mut Vec<f64>,
    ) {
        let n = found.len();
        matrix.clear();
        matrix.resize(n * n, 0.0);
        weights.clear();
        weights.extend(found.iter().map(|neighbor| self.covariance.at(neighbor.squared)));
        for i in 0..n {
            let own = &self.samples.positions()[found[i].index as usize];
            for j in 0..i {
                let other = &self.samples.positions()[found[j].index as usize];
                matrix[i * n + j] = self.covariance.at(squared(own, other));
            }
            matrix[i * n + i] = 1.0 + self.covariance.nugget;
        }
        if !dense::cholesky(matrix, n, column) {
            // Samples coincide and there is no nugget: use the closest sample alone.
            weights.fill(0.0);
            weights.iter_mut().take(1).for_each(|weight| *weight = 1.0);
            return;
        }
        ones.clear();
        ones.resize(n, 1.0);
        dense::cholesky_solve(matrix, n, weights);
        dense::cholesky_solve(matrix, n, ones);
        let missing = (1.0 - weights.iter().sum::<f64>()) / ones.iter().sum::<f64>();
        weights.iter_mut().zip(&*ones).for_each(|(weight, one)| *weight += missing * one);
    }
}

impl<const D: usize> Interpolant<D> for Kriging<'_, D> {
    fn channels(&self) -> usize {
        self.samples.channels()
    }

    fn predict(&self, queries: &[[f64; D]], out: &mut [f64]) {
        let Scratch { mut found, mut weights, mut system, .. } = Scratch::default();
        let mut patterns = Patterns::default();
        for (query, out) in queries.iter().zip(out.chunks_exact_mut(self.samples.channels())) {
            self.samples.closest(query, self.neighbors, &mut found);
            let compute =
                |weights: &mut Vec<f64>| self.solve(&found, euclidean, &mut system, weights);
            patterns.weights(self.samples, query, &found, compute, &mut weights);
            self.samples.combine(&found, &weights, out);
        }
    }
}

impl Kriging<'_, 2> {
    /// The prediction at a position with distances by `metric`.
    pub fn steered(
        &self,
        query: &[f64; 2],
        metric: &Metric,
        scratch: &mut Scratch,
        out: &mut [f64],
    ) {
        let [xx, xy, yy] = *metric;
        let squared = move |a: &[f64; 2], b: &[f64; 2]| {
            let (y, x) = (a[0] - b[0], a[1] - b[1]);
            (xx * x + 2.0 * xy * y) * x + yy * y * y
        };
        let Scratch { found, wider, weights, system } = scratch;
        self.samples.closest(query, WIDER.max(self.neighbors), wider);
        found.clear();
        for neighbor in &*wider {
            let squared = squared(&self.samples.positions()[neighbor.index as usize], query);
            found.push(Neighbor { squared, index: neighbor.index });
        }
        found.sort_unstable_by(|a, b| a.squared.total_cmp(&b.squared).then(a.index.cmp(&b.index)));
        found.truncate(self.neighbors);
        self.solve(found, squared, system, weights);
        self.samples.combine(found, weights, out);
    }
}
