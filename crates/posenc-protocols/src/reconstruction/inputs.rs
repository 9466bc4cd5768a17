//! Simple encodings of the positions of a split, in the precision of the engine.

use anyhow::{Result, ensure};
use faer::Mat;
use posenc_math::embedder::Embedder;
use posenc_nets::{Input, WaveTable};

use crate::grid_network::Directions;
use crate::memory::{check_memory, embedding_matrix};

/// Simple encoding of the positions of a grid, before scaling.
pub struct Features {
    /// Length of every axis.
    sides: Vec<usize>,
    directions: Directions,
    /// One embedder for all axes; with joint directions one for each axis.
    embedders: Vec<Box<dyn Embedder>>,
}

/// Number of positions that share a divisor, and the divisor.
pub type Batch = (usize, f64);

/// A direction of a simple encoding.
#[derive(Debug, Clone, Copy)]
enum Direction {
    Axis(usize),
    /// (x + y)/2.
    Sum,
    /// (x − y + 1)/2.
    Difference,
}

/// Embeddings of the distinct coordinates of a direction.
struct Distinct {
    /// Row i embeds the i-th coordinate.
    rows: Mat<f64>,
    /// ‖ψ‖² of every row.
    squares: Vec<f64>,
    /// Row of each point.
    index: Vec<u32>,
}

impl Features {
    /// `embedders` contains one embedder, or with joint directions one for each axis.
    pub fn new(
        sides: &[usize],
        directions: Directions,
        embedders: Vec<Box<dyn Embedder>>,
    ) -> Result<Self> {
        if directions == Directions::Diagonals {
            ensure!(
                sides.len() == 2,
                "`directions: diagonals` needs images, the data have {} axes; allowed: axes, joint",
                sides.len()
            );
        }
        ensure!(!embedders.is_empty(), "internal error (no embedder); please report it");
        Ok(Features { sides: sides.to_vec(), directions, embedders })
    }

    fn embedder(&self, axis: usize) -> &dyn Embedder {
        &*self.embedders[axis.min(self.embedders.len() - 1)]
    }

    fn directions(&self) -> Vec<Direction> {
        let mut directions: Vec<Direction> = (0..self.sides.len()).map(Direction::Axis).collect();
        if self.directions == Directions::Diagonals {
            directions.extend([Direction::Sum, Direction::Difference]);
        }
        directions
    }

    pub fn dimension(&self) -> usize {
        let (d, axes) = (self.embedder(0).dimension(), self.sides.len());
        match self.directions {
            Directions::Grid => d.saturating_pow(axes as u32),
            Directions::Joint => d,
            Directions::Axes | Directions::Diagonals => d * self.directions().len(),
        }
    }

    fn index(&self, point: u32, axis: usize) -> usize {
        let inner: usize = self.sides[axis + 1..].iter().product();
        point as usize / inner % self.sides[axis]
    }

    /// The distinct coordinates of points along a direction.
    fn distinct(&self, points: &[u32], direction: Direction) -> Result<Distinct> {
        let (axis, denominator) = match direction {
            Direction::Axis(axis) => (axis, self.sides[axis]),
            // In units of 1/(2hw), so that the coordinates are integers also if images are not square.
            _ => (0, 2 * self.sides[0] * self.sides[1]),
        };
        let number = |point: u32| match direction {
            Direction::Axis(axis) => self.index(point, axis),
            Direction::Sum => {
                self.index(point, 1) * self.sides[0] + self.index(point, 0) * self.sides[1]
            }
            Direction::Difference => {
                (self.index(point, 1) + self.sides[1]) * self.sides[0]
                    - self.index(point, 0) * self.sides[1]
            }
        };
        let mut numbers: Vec<usize> = points.iter().map(|&p| number(p)).collect();
        let mut known = numbers.clone();
        known.sort_unstable();
        known.dedup();
        let positions: Vec<f64> = known.iter().map(|&i| i as f64 / denominator as f64).collect();
        let rows = embedding_matrix(self.embedder(axis), &positions)?;
        for number in &mut numbers {
            *number = known.partition_point(|k| k < number);
        }
        let squares = (0..rows.nrows())
            .map(|i| (0..rows.ncols()).map(|j| rows[(i, j)] * rows[(i, j)]).sum())
            .collect();
        Ok(Distinct { rows, squares, index: numbers.into_iter().map(|i| i as u32).collect() })
    }

    /// The largest norm ‖ψ‖ of some points' rows.
    pub fn largest_norm(&self, points: &[u32]) -> Result<f64> {
        let parts = self.parts(points)?;
        let norm = |i: usize| {
            let squares = parts.iter().map(|part| part.squares[part.index[i] as usize]);
            match self.directions {
                // sin² + cos² = 1 for each of the d/2 frequencies.
                Directions::Joint => 0.5 * self.dimension() as f64,
                Directions::Grid => squares.product(),
                _ => squares.sum::<f64>(),
            }
        };
        let largest = (0..points.len()).map(norm).fold(0.0, f64::max).sqrt();
        ensure!(
            largest > 0.0,
            "all features are zero at all positions; widen the embedder (a larger sigma or half width)"
        );
        Ok(largest)
    }

    fn parts(&self, points: &[u32]) -> Result<Vec<Distinct>> {
        self.directions().into_iter().map(|direction| self.distinct(points, direction)).collect()
    }

    /// The simple encoding of points; the points of each batch are divided by its divisor.
    pub fn simple(&self, points: &[u32], batches: &[Batch]) -> Result<Input> {
        let parts = self.parts(points)?;
        match self.directions {
            Directions::Axes | Directions::Diagonals => factored(&parts, batches),
            Directions::Joint => waves(parts, batches.first().map_or(1.0, |batch| batch.1)),
            Directions::Grid => {
                self.dense(points, batches, |point, out| products(&parts, point, out))
            }
        }
    }

    /// A dense d × N matrix, computed column by column.
    fn dense(
        &self,
        points: &[u32],
        batches: &[Batch],
        column: impl Fn(usize, &mut [f64]),
    ) -> Result<Input> {
        let (d, n) = (self.dimension(), points.len());
        check_memory(&format!("a {n} × {d} embedding matrix"), 0.5 * n as f64 * d as f64)?;
        let mut matrix = Mat::zeros(d, n);
        let mut buffer = vec![0.0; d];
        let mut point = 0;
        for &(count, divisor) in batches {
            for _ in 0..count {
                column(point, &mut buffer);
                for (to, from) in matrix.col_as_slice_mut(point).iter_mut().zip(&buffer) {
                    *to = (from / divisor) as f32;
                }
                point += 1;
            }
        }
        Ok(Input::dense(matrix)?)
    }
}

/// Lookup tables over distinct coordinates, for each distinct divisor.
fn factored(parts: &[Distinct], batches: &[Batch]) -> Result<Input> {
    let mut divisors: Vec<f64> = batches.iter().map(|batch| batch.1).collect();
    divisors.sort_by(f64::total_cmp);
    divisors.dedup();
    let place = |divisor: f64| divisors.partition_point(|known| *known < divisor);
    let (mut tables, mut indices) = (Vec::new(), Vec::new());
    for part in parts {
        let (n, d) = part.rows.shape();
        tables.push(Mat::from_fn(d, n * divisors.len(), |feature, column| {
            (part.rows[(column % n, feature)] / divisors[column / n]) as f32
        }));
        let mut index = part.index.iter();
        let shifted = batches.iter().flat_map(|&(count, divisor)| {
            let first = (place(divisor) * n) as u32;
            index.by_ref().take(count).map(|i| first + i).collect::<Vec<u32>>()
        });
        indices.push(shifted.collect());
    }
    Ok(Input::factored(tables, indices)?)
}

/// Waves of the sum of the axes' phases. All rows have the same norm, so all batches share a divisor.
fn waves(parts: Vec<Distinct>, divisor: f64) -> Result<Input> {
    let half = |part: &Distinct, first: usize| {
        let (n, d) = part.rows.shape();
        Mat::from_fn(d / 2, n, |k, i| part.rows[(i, first * (d / 2) + k)] as f32)
    };
    let table = |part: &Distinct| WaveTable { sines: half(part, 0), cosines: half(part, 1) };
    let tables = parts.iter().map(table).collect();
    let indices = parts.into_iter().map(|part| part.index).collect();
    Ok(Input::waves(tables, indices, (1.0 / divisor) as f32)?)
}

/// Products of the axes' features; the last axis varies fastest.
fn products(parts: &[Distinct], point: usize, out: &mut [f64]) {
    out.fill(1.0);
    let mut inner = out.len();
    for part in parts {
        let row = part.index[point] as usize;
        let d = part.rows.ncols();
        inner /= d;
        for (k, value) in out.iter_mut().enumerate() {
            *value *= part.rows[(row, k / inner.max(1) % d)];
        }
    }
}

#[cfg(test)]
mod tests {
    use posenc_math::embedder::{EmbedderSpec, build};
    use posenc_math::random::stream;

    use super::*;
    use crate::memory::row;

    fn embedder(spec: &EmbedderSpec, purpose: &str) -> Box<dyn Embedder> {
        build(spec, &mut stream(0, purpose)).unwrap()
    }

    fn gaussian() -> EmbedderSpec {
        EmbedderSpec::new("gaussian").number("dimension", 6.0).number("sigma", 0.2)
    }

    fn check(input: &Input, point: usize, expected: &[f64], divisor: f64) {
        assert_eq!(input.dimension(), expected.len());
        for (k, value) in expected.iter().enumerate() {
            let found = f64::from(input.at(k, point));
            assert!((found - value / divisor).abs() < 1e-6, "feature {k}: {found} for {value}");
        }
    }

    /// Catches directions in another order or with another formula than in the paper's code, also if height and width differ.
    #[test]
    fn diagonals_embed_means_of_the_coordinates() {
        let (h, w) = (4, 6);
        let embedders = vec![embedder(&gaussian(), "")];
        let features = Features::new(&[h, w], Directions::Diagonals, embedders).unwrap();
        let points: Vec<u32> = (0..(h * w) as u32).collect();
        let input = features.simple(&points, &[(points.len(), 2.0)]).unwrap();
        let reference = embedder(&gaussian(), "");
        for (i, j) in [(0, 0), (1, 5), (3, 2)] {
            let (y, x) = (i as f64 / h as f64, j as f64 / w as f64);
            let expected: Vec<f64> = [y, x, (x + y) / 2.0, (x - y + 1.0) / 2.0]
                .iter()
                .flat_map(|&t| row(&*reference, t))
                .collect();
            check(&input, i * w + j, &expected, 2.0);
        }
    }

    /// Catches waves whose phases are not the sum of the axes'.
    #[test]
    fn joint_directions_are_waves_of_the_plane() {
        let spec = EmbedderSpec::new("rff").number("dimension", 8.0).number("sigma", 3.0);
        let axes = || vec![embedder(&spec, "axis 0"), embedder(&spec, "axis 1")];
        let features = Features::new(&[5, 5], Directions::Joint, axes()).unwrap();
        let points = [7u32, 18];
        // The squared norm of 8 features is 4.
        assert!((features.largest_norm(&points).unwrap() - 2.0).abs() < 1e-12);
        let input = features.simple(&points, &[(2, 2.0)]).unwrap();
        let axes = axes();
        for (place, point) in points.into_iter().enumerate() {
            let (y, x) = (f64::from(point / 5) / 5.0, f64::from(point % 5) / 5.0);
            let (a, b) = (row(&*axes[0], y), row(&*axes[1], x));
            let sine = (0..4).map(|k| a[k] * b[4 + k] + a[4 + k] * b[k]);
            let cosine = (0..4).map(|k| a[4 + k] * b[4 + k] - a[k] * b[k]);
            check(&input, place, &sine.chain(cosine).collect::<Vec<_>>(), 2.0);
        }
    }

    /// Catches products in another order, and a wrong norm.
    #[test]
    fn the_grid_multiplies_the_axes() {
        let embedders = vec![embedder(&gaussian(), "")];
        let features = Features::new(&[4, 4], Directions::Grid, embedders).unwrap();
        let input = features.simple(&[6], &[(1, 1.0)]).unwrap();
        let reference = embedder(&gaussian(), "");
        let (a, b) = (row(&*reference, 0.25), row(&*reference, 0.5));
        let expected: Vec<f64> = a.iter().flat_map(|u| b.iter().map(move |v| u * v)).collect();
        check(&input, 0, &expected, 1.0);
        let norm = expected.iter().map(|v| v * v).sum::<f64>().sqrt();
        assert!((features.largest_norm(&[6]).unwrap() - norm).abs() < 1e-12);
    }

    /// Catches batches that share a divisor, and points with the divisor of another batch.
    #[test]
    fn batches_are_divided_by_their_own_norms() {
        let embedders = vec![embedder(&gaussian(), "")];
        let features = Features::new(&[4, 4], Directions::Axes, embedders).unwrap();
        let points = [0u32, 5, 10, 15];
        let batched = features.simple(&points, &[(1, 3.0), (2, 2.0), (1, 3.0)]).unwrap();
        for (place, divisor) in [3.0, 2.0, 2.0, 3.0].into_iter().enumerate() {
            let alone = features.simple(&points[place..=place], &[(1, divisor)]).unwrap();
            for k in 0..alone.dimension() {
                assert_eq!(batched.at(k, place), alone.at(k, 0), "point {place}");
            }
        }
    }

    /// Catches diagonals of a clip, and an embedding that underflows without an error.
    #[test]
    fn diagonals_of_clips_and_zero_features_are_refused() {
        let embedders = vec![embedder(&gaussian(), "")];
        let error = Features::new(&[4, 4, 4], Directions::Diagonals, embedders).err();
        assert!(error.unwrap().to_string().contains("needs images"));
        let narrow = EmbedderSpec::new("gaussian").number("dimension", 3.0).number("sigma", 1e-9);
        let embedders = vec![embedder(&narrow, "")];
        let features = Features::new(&[7, 7], Directions::Axes, embedders).unwrap();
        let error = features.largest_norm(&[8]).unwrap_err().to_string();
        assert!(error.contains("all features are zero"), "{error}");
    }
}
