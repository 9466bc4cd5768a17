//! The Delaunay triangulation of scattered points in the plane, and linear interpolation on it.

use delaunator::{EMPTY, Point, next_halfedge, triangulate};

use super::{Interpolant, Samples};

/// A point with a barycentric coordinate below −`SLACK` is outside a triangle.
const SLACK: f64 = 1e-12;

/// A Delaunay triangulation. It is not unique if more than three points are on one circle, and may then differ from that of other
/// programs.
pub struct Triangulation {
    /// Vertices of triangle t at 3t, 3t + 1, 3t + 2.
    triangles: Vec<usize>,
    /// For each edge, the same edge in the adjacent triangle. Edge e leads from vertex e to the next vertex of its triangle.
    twins: Vec<usize>,
}

/// A point within a triangle.
#[derive(Clone, Copy, Debug)]
pub struct Location {
    pub triangle: usize,
    /// Barycentric coordinates.
    pub weights: [f64; 3],
}

impl Triangulation {
    /// The triangulation of the positions; points on one line have no triangles.
    pub fn new(positions: &[[f64; 2]]) -> Self {
        let points: Vec<Point> = positions.iter().map(|&[x, y]| Point { x, y }).collect();
        let found = triangulate(&points);
        Triangulation { triangles: found.triangles, twins: found.halfedges }
    }

    pub fn len(&self) -> usize {
        self.triangles.len() / 3
    }

    pub fn is_empty(&self) -> bool {
        self.triangles.is_empty()
    }

    pub fn vertices(&self, triangle: usize) -> [usize; 3] {
        std::array::from_fn(|k| self.triangles[3 * triangle + k])
    }

    /// The triangle beyond the edge opposite to vertex `k`; `None` at the hull.
    pub fn beyond(&self, triangle: usize, k: usize) -> Option<usize> {
        let twin = self.twins[3 * triangle + (k + 1) % 3];
        (twin != EMPTY).then_some(twin / 3)
    }

    /// For each of `count` points, those that share an edge with it.
    pub fn adjacent(&self, count: usize) -> Vec<Vec<usize>> {
        let mut adjacent = vec![Vec::new(); count];
        for (edge, &from) in self.triangles.iter().enumerate() {
            let to = self.triangles[next_halfedge(edge)];
            adjacent[from].push(to);
            // An edge of the hull belongs to one triangle only.
            if self.twins[edge] == EMPTY {
                adjacent[to].push(from);
            }
        }
        adjacent
    }

    /// The triangle that contains a point, found by walking from the triangle `start`; `None` outside the hull.
    pub fn locate(
        &self,
        positions: &[[f64; 2]],
        query: &[f64; 2],
        start: usize,
    ) -> Option<Location> {
        if self.is_empty() {
            return None;
        }
        let mut triangle = start;
        // A walk through a Delaunay triangulation never visits a triangle twice.
        for _ in 0..self.len() {
            let weights = barycentric(self.vertices(triangle).map(|v| positions[v]), query);
            let (k, least) = lowest(&weights);
            if least >= -SLACK {
                return Some(Location { triangle, weights });
            }
            triangle = self.beyond(triangle, k)?;
        }
        // Rounding in degenerate triangles can make the walk cycle, so search all triangles.
        (0..self.len()).find_map(|triangle| {
            let weights = barycentric(self.vertices(triangle).map(|v| positions[v]), query);
            (lowest(&weights).1 >= -SLACK).then_some(Location { triangle, weights })
        })
    }
}

/// Index and value of the smallest of three numbers.
fn lowest(weights: &[f64; 3]) -> (usize, f64) {
    let mut k = 0;
    for i in 1..3 {
        if weights[i] < weights[k] {
            k = i;
        }
    }
    (k, weights[k])
}

pub fn barycentric([a, b, c]: [[f64; 2]; 3], p: &[f64; 2]) -> [f64; 3] {
    let cross = |u: [f64; 2], v: [f64; 2], w: [f64; 2]| {
        (v[0] - u[0]) * (w[1] - u[1]) - (v[1] - u[1]) * (w[0] - u[0])
    };
    let area = cross(a, b, c);
    let first = cross(*p, b, c) / area;
    let second = cross(a, *p, c) / area;
    [first, second, 1.0 - first - second]
}

/// Linear interpolation on the triangles. Outside their hull, it has the value of the closest sample.
pub struct Linear<'a> {
    samples: &'a Samples<2>,
    triangulation: Triangulation,
}

impl<'a> Linear<'a> {
    pub fn new(samples: &'a Samples<2>) -> Self {
        Linear { samples, triangulation: Triangulation::new(samples.positions()) }
    }
}

impl Interpolant<2> for Linear<'_> {
    fn channels(&self) -> usize {
        self.samples.channels()
    }

    fn predict(&self, queries: &[[f64; 2]], out: &mut [f64]) {
        on_triangles(self.samples, &self.triangulation, queries, out, |location, out| {
            let vertices = self.triangulation.vertices(location.triangle);
            out.fill(0.0);
            for (vertex, weight) in vertices.into_iter().zip(location.weights) {
                for (out, value) in out.iter_mut().zip(self.samples.value(vertex)) {
                    *out += weight * value;
                }
            }
        });
    }
}

/// Calls `inside` with the location of each query and its part of `out`. Queries outside the hull get the values of the closest sample.
pub fn on_triangles(
    samples: &Samples<2>,
    triangulation: &Triangulation,
    queries: &[[f64; 2]],
    out: &mut [f64],
    mut inside: impl FnMut(&Location, &mut [f64]),
) {
    // Each walk starts where the last one ended, since neighboring queries are in neighboring triangles.
    let mut start = 0;
    let channels = samples.channels();
    for (query, out) in queries.iter().zip(out.chunks_exact_mut(channels)) {
        match triangulation.locate(samples.positions(), query, start) {
            Some(location) => {
                start = location.triangle;
                inside(&location, out);
            }
            None => samples.nearest().predict(std::slice::from_ref(query), out),
        }
    }
}
