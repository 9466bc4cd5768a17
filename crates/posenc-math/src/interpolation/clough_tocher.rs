//! Cubic interpolation with continuous gradients on a triangulation: the Clough–Tocher element.
//!
//! Gradients at the samples minimize the sum over all edges of the integral of the squared second derivative along the edge
//! (Nielson 1983, Renka and Cline 1984). Each triangle is split at its centroid into three, with a cubic polynomial on each (Farin,
//! *Triangular Bernstein–Bézier patches*, 1986). The derivative across an edge, in the direction from the centroid of this triangle
//! to that of the adjacent one, is linear along the edge. This makes the result invariant under affine maps, as in SciPy.

use super::triangulation::{Location, Triangulation, barycentric, on_triangles};
use super::{Interpolant, Samples};

/// Maximum number of iterations for the gradients, as in SciPy.
const ITERATIONS: usize = 400;

/// The iteration ends when no gradient changes by more than this relative to the larger of 1 and its own size, as in SciPy.
const TOLERANCE: f64 = 1e-6;

/// A C¹ interpolant in the plane. Outside the hull of the samples, it has the value of the closest sample.
pub struct CloughTocher<'a> {
    samples: &'a Samples<2>,
    triangulation: Triangulation,
    /// By sample and channel, channels fastest.
    gradients: Vec<[f64; 2]>,
    /// For each triangle and vertex, the direction across the opposite edge.
    across: Vec<[f64; 3]>,
}

impl<'a> CloughTocher<'a> {
    /// Triangulates the samples and iterates on their gradients.
    pub fn new(samples: &'a Samples<2>) -> Self {
        let triangulation = Triangulation::new(samples.positions());
        let gradients = gradients(samples, &triangulation);
        let across = (0..triangulation.len())
            .map(|triangle| {
                std::array::from_fn(|k| across(samples.positions(), &triangulation, triangle, k))
            })
            .collect();
        CloughTocher { samples, triangulation, gradients, across }
    }
}

/// Gradients of every sample and channel by Gauss–Seidel iteration over the samples.
///
/// Along an edge E of length L with values f₁, f₂ and slopes d₁, d₂ at its ends, the squared second derivative of the cubic
/// integrates to (4d₁² − 4d₁d₂ + 4d₂² + 12(f₁ − f₂)(d₁ − d₂) + …)/L³, where each slope points from its end to the other end.
fn gradients(samples: &Samples<2>, triangulation: &Triangulation) -> Vec<[f64; 2]> {
    struct Edge {
        other: usize,
        direction: [f64; 2],
        weight: f64,
    }
    let positions = samples.positions();
    let channels = samples.channels();
    let edges: Vec<Vec<Edge>> = triangulation
        .adjacent(samples.len())
        .into_iter()
        .enumerate()
        .map(|(own, others)| {
            let edge = |other: usize| {
                let direction = [0, 1].map(|axis| positions[other][axis] - positions[own][axis]);
                let length = direction[0].hypot(direction[1]);
                Edge { other, direction, weight: 1.0 / length.powi(3) }
            };
            others.into_iter().map(edge).collect()
        })
        .collect();
    let mut gradients = vec![[0.0; 2]; samples.len() * channels];
    for channel in 0..channels {
        for _ in 0..ITERATIONS {
            let mut largest = 0.0f64;
            for (own, edges) in edges.iter().enumerate() {
                let (mut xx, mut xy, mut yy, mut sum) = (0.0, 0.0, 0.0, [0.0; 2]);
                let value = samples.value(own)[channel];
                for Edge { other, direction: [x, y], weight } in edges {
                    let gradient = gradients[other * channels + channel];
                    let slope = x * gradient[0] + y * gradient[1];
                    let pull = 6.0 * (samples.value(*other)[channel] - value) - 2.0 * slope;
                    xx += 4.0 * x * x * weight;
                    xy += 4.0 * x * y * weight;
                    yy += 4.0 * y * y * weight;
                    sum[0] += pull * x * weight;
                    sum[1] += pull * y * weight;
                }
                let determinant = xx * yy - xy * xy;
                if determinant == 0.0 {
                    // A sample without triangles: it coincides with another.
                    continue;
                }
                let new = [
                    (yy * sum[0] - xy * sum[1]) / determinant,
                    (xx * sum[1] - xy * sum[0]) / determinant,
                ];
                let old = std::mem::replace(&mut gradients[own * channels + channel], new);
                let change = (new[0] - old[0]).abs().max((new[1] - old[1]).abs());
                largest = largest.max(change / new[0].abs().max(new[1].abs()).max(1.0));
            }
            if largest < TOLERANCE {
                break;
            }
        }
    }
    gradients
}

/// The direction across the edge opposite to vertex `k`, as the factor g of `(centroid − i) + g·(j − i)` with the edge from i to j.
fn across(positions: &[[f64; 2]], triangulation: &Triangulation, triangle: usize, k: usize) -> f64 {
    let Some(beyond) = triangulation.beyond(triangle, k) else {
        // At the hull, use the direction to the middle of the edge.
        return -0.5;
    };
    let own = triangulation.vertices(triangle).map(|v| positions[v]);
    let other = triangulation.vertices(beyond).map(|v| positions[v]);
    let centroid = [0, 1].map(|axis| (other[0][axis] + other[1][axis] + other[2][axis]) / 3.0);
    let c = barycentric(own, &centroid);
    let (i, j) = (c[(k + 1) % 3], c[(k + 2) % 3]);
    (2.0 * j + i - 1.0) / (2.0 - 3.0 * j - 3.0 * i)
}

impl Interpolant<2> for CloughTocher<'_> {
    fn channels(&self) -> usize {
        self.samples.channels()
    }

    fn predict(&self, queries: &[[f64; 2]], out: &mut [f64]) {
        on_triangles(self.samples, &self.triangulation, queries, out, |location, out| {
            for (channel, out) in out.iter_mut().enumerate() {
                *out = self.at(location, channel);
            }
        });
    }
}

impl CloughTocher<'_> {
    /// The value at a location, from the Bézier coefficients of its triangle.
    fn at(&self, location: &Location, channel: usize) -> f64 {
        let vertices = self.triangulation.vertices(location.triangle);
        let channels = self.samples.channels();
        let f = vertices.map(|v| self.samples.value(v)[channel]);
        // Bézier coefficient at a third of the way from vertex i to vertex j.
        let edge = |i: usize, j: usize| {
            let (own, other) = (vertices[i], vertices[j]);
            let gradient = self.gradients[own * channels + channel];
            let [a, b] = [self.samples.positions()[own], self.samples.positions()[other]];
            f[i] + (gradient[0] * (b[0] - a[0]) + gradient[1] * (b[1] - a[1])) / 3.0
        };
        // `forward[k]` from vertex k to the next one, `backward[k]` to the one before.
        let forward: [f64; 3] = std::array::from_fn(|k| edge(k, (k + 1) % 3));
        let backward: [f64; 3] = std::array::from_fn(|k| edge(k, (k + 2) % 3));
        let near: [f64; 3] = std::array::from_fn(|k| (f[k] + forward[k] + backward[k]) / 3.0);
        let middle: [f64; 3] = std::array::from_fn(|k| {
            // The edge opposite to vertex k.
            let (i, j) = ((k + 1) % 3, (k + 2) % 3);
            let bend = -f[i] + 3.0 * forward[i] - 3.0 * backward[j] + f[j];
            let flat = -f[i] + 2.0 * forward[i] - backward[j] + near[i] + near[j];
            (self.across[location.triangle][k] * bend + flat) / 2.0
        });
        let inner: [f64; 3] =
            std::array::from_fn(|k| (middle[(k + 1) % 3] + middle[(k + 2) % 3] + near[k]) / 3.0);
        let center = (inner[0] + inner[1] + inner[2]) / 3.0;
        // Barycentric coordinates in the subtriangle that contains the point: b of the opposite vertex is 0, c is the centroid's.
        let least = location.weights.into_iter().fold(f64::INFINITY, f64::min);
        let b = location.weights.map(|weight| weight - least);
        let c = 3.0 * least;
        let mut sum = c * c * c * center;
        for k in 0..3 {
            let (i, j) = ((k + 1) % 3, (k + 2) % 3);
            sum += b[k]
                * b[k]
                * (b[k] * f[k] + 3.0 * (b[i] * forward[k] + b[j] * backward[k] + c * near[k]));
            sum += c * (6.0 * b[i] * b[j] * middle[k] + 3.0 * c * b[k] * inner[k]);
        }
        sum
    }
}
