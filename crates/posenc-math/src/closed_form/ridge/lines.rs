//! Scores of a width and a ridge on lines of training samples (a method of this repository, not of the papers).
//!
//! The score needs no test samples. It is the sum of the logarithms of four mean squared errors, plus a cost for the distance from
//! the rule for natural images:
//!
//! - *linear*, *cubic*: the deviation from linear and from cubic interpolation midway between neighbors. Interpolation is hard to
//!   beat, so a fit that deviates far from it is usually wrong.
//! - *hold-out*: the error at every second sample, predicted from the others with doubled width and half the features.
//! - *leave-one-out*: the error at each sample, predicted from all others.
//!
//! Each error alone fails in some case: interpolation on smooth lines, the hold-out for random frequencies, because it uses a
//! different sample of them, and leave-one-out for narrow local features. All weights and costs were tuned on `div2k-train`.

use faer::Mat;

use super::{RidgeAxis, times};
use crate::{Error, closed_form::check_entries, closed_form::check_length};

pub const SHORTEST_LINE: usize = 8;
/// Cost in dB of a width one octave from that of the rule; proportional to the square of the distance in octaves.
const COST_OF_OCTAVE: f64 = 1.0;
/// Cost in dB of a ridge that differs from that of the rule by a factor of 100; proportional to the distance in such factors.
const COST_OF_RIDGE: f64 = 0.5;
/// Lower bound of each error, relative to the mean square of the samples; smaller errors are rounding.
const ROUNDING: f64 = 1e-16;

/// Lines of training samples, one per column, and their interpolation midway between neighbors.
#[derive(Clone, Debug)]
pub struct Lines {
    values: Mat<f64>,
    linear: Mat<f64>,
    cubic: Mat<f64>,
}

impl Lines {
    /// K lines of N samples each, from an N × K matrix.
    ///
    /// # Errors
    ///
    /// Fewer than [`SHORTEST_LINE`] samples, or samples that are not finite.
    pub fn new(values: Mat<f64>) -> Result<Self, Error> {
        let (n, k) = values.shape();
        if n < SHORTEST_LINE {
            return Err(Error(format!(
                "a line must have at least {SHORTEST_LINE} samples, got {n}"
            )));
        }
        check_entries(|| "a line".into(), values.as_ref())?;
        let linear = Mat::from_fn(n - 1, k, |i, j| 0.5 * (values[(i, j)] + values[(i + 1, j)]));
        let cubic = Mat::from_fn(n - 1, k, |i, j| {
            let middle = linear[(i, j)];
            match i {
                0 => middle,
                i if i + 2 == n => middle,
                i => 1.125 * middle - 0.0625 * (values[(i - 1, j)] + values[(i + 2, j)]),
            }
        });
        Ok(Self { values, linear, cubic })
    }
}

/// Fit of lines with one width.
#[derive(Clone, Debug)]
pub struct LineFit<'a> {
    lines: &'a Lines,
    axis: &'a RidgeAxis,
    coarse: &'a RidgeAxis,
    coefficients: Mat<f64>,
    coarse_coefficients: Mat<f64>,
}

impl<'a> LineFit<'a> {
    /// `axis` has N samples and predicts the N − 1 midpoints; `coarse` has the samples of even index and predicts the others.
    pub fn new(
        lines: &'a Lines,
        axis: &'a RidgeAxis,
        coarse: &'a RidgeAxis,
    ) -> Result<Self, Error> {
        let n = lines.values.nrows();
        let sizes = |axis: &RidgeAxis| [axis.eigenvalues.len(), axis.positions.nrows()];
        for (what, found, needed) in [
            ("samples of an axis", sizes(axis)[0], n),
            ("midpoints of an axis", sizes(axis)[1], n - 1),
            ("samples of the coarse axis", sizes(coarse)[0], n.div_ceil(2)),
            ("held-out samples of the coarse axis", sizes(coarse)[1], n / 2),
        ] {
            check_length(what, found, needed)?;
        }
        let even =
            Mat::from_fn(n.div_ceil(2), lines.values.ncols(), |i, j| lines.values[(2 * i, j)]);
        let coefficients = times(axis.vectors.transpose(), lines.values.as_ref());
        let coarse_coefficients = times(coarse.vectors.transpose(), even.as_ref());
        Ok(Self { lines, axis, coarse, coefficients, coarse_coefficients })
    }

    /// The four errors with a ridge of `share` times the largest eigenvalue.
    pub fn evidence(&self, share: f64) -> Evidence {
        let solve = |axis: &RidgeAxis, coefficients: &Mat<f64>| {
            let largest = axis.eigenvalues.iter().copied().fold(0.0, f64::max);
            let weights = Mat::from_fn(axis.eigenvalues.len(), 1, |i, _| {
                1.0 / (axis.eigenvalues[i] + share * largest)
            });
            let solved = Mat::from_fn(coefficients.nrows(), coefficients.ncols(), |i, j| {
                weights[(i, 0)] * coefficients[(i, j)]
            });
            (weights, solved)
        };
        let (weights, solved) = solve(self.axis, &self.coefficients);
        let u = &self.axis.vectors;
        let squares = Mat::from_fn(u.nrows(), u.ncols(), |i, j| u[(i, j)] * u[(i, j)]);
        let diagonal = times(squares.as_ref(), weights.as_ref());
        let residuals = times(u.as_ref(), solved.as_ref());
        let middle = times(self.axis.positions.as_ref(), solved.as_ref());
        let (_, solved) = solve(self.coarse, &self.coarse_coefficients);
        let held_out = times(self.coarse.positions.as_ref(), solved.as_ref());
        let values = &self.lines.values;
        let total = |rows: usize, error: &dyn Fn(usize, usize) -> f64| {
            let columns = 0..values.ncols();
            columns.map(|j| (0..rows).map(|i| error(i, j).powi(2)).sum::<f64>()).sum::<f64>()
        };
        let n = values.nrows();
        let sums = [
            total(n - 1, &|i, j| middle[(i, j)] - self.lines.linear[(i, j)]),
            total(n - 1, &|i, j| middle[(i, j)] - self.lines.cubic[(i, j)]),
            total(n / 2, &|i, j| held_out[(i, j)] - values[(2 * i + 1, j)]),
            total(n, &|i, j| residuals[(i, j)] / diagonal[(i, 0)]),
        ];
        let counts = [n - 1, n - 1, n / 2, n].map(|rows| (rows * values.ncols()) as f64);
        Evidence { sums, counts, square: total(n, &|i, j| values[(i, j)]) / counts[3] }
    }
}

/// Sums of squared errors of one width and ridge, over one or more sets of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    sums: [f64; 4],
    counts: [f64; 4],
    /// Mean square of the samples; the largest one for several sets of lines.
    square: f64,
}

impl Evidence {
    pub fn add(&mut self, other: &Evidence) {
        for k in 0..4 {
            self.sums[k] += other.sums[k];
            self.counts[k] += other.counts[k];
        }
        self.square = self.square.max(other.square);
    }

    /// Score in dB; smaller is better. `octaves` is the base-2 logarithm of the width relative to that of the rule, and `ridges` the
    /// base-100 logarithm of the ridge relative to that of the rule.
    pub fn score(&self, octaves: f64, ridges: f64) -> f64 {
        let smallest = (ROUNDING * self.square).max(f64::MIN_POSITIVE);
        let errors = self.sums.iter().zip(&self.counts);
        let errors = errors.map(|(sum, count)| 10.0 * (sum / count).max(smallest).log10());
        errors.sum::<f64>() + COST_OF_OCTAVE * octaves * octaves + COST_OF_RIDGE * ridges.abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedder::{EmbedderSpec, build, matrix};
    use crate::random::stream;

    fn axis(width: f64, training: &[f64], positions: &[f64]) -> RidgeAxis {
        let spec = EmbedderSpec::new("gaussian").number("dimension", 32.0).number("sigma", width);
        let embedder = build(&spec, &mut stream(0, "lines")).unwrap();
        let [training, positions] = [training, positions].map(|xs| matrix(&*embedder, xs));
        RidgeAxis::new(training.as_ref(), positions.as_ref()).unwrap()
    }

    fn evidence(values: &Mat<f64>, width: f64) -> Evidence {
        let n = values.nrows();
        let xs: Vec<f64> = (0..n).map(|i| i as f64 / n as f64).collect();
        let middle: Vec<f64> = xs.windows(2).map(|x| 0.5 * (x[0] + x[1])).collect();
        let even: Vec<f64> = xs.iter().copied().step_by(2).collect();
        let odd: Vec<f64> = xs.iter().copied().skip(1).step_by(2).collect();
        let (fine, coarse) = (axis(width, &xs, &middle), axis(2.0 * width, &even, &odd));
        let lines = Lines::new(values.clone()).unwrap();
        LineFit::new(&lines, &fine, &coarse).unwrap().evidence(1e-4)
    }

    /// Catches a score that prefers a width too wide to follow the samples or too narrow to connect them, and reads past the end of
    /// lines of odd length.
    #[test]
    fn a_useful_width_has_the_smallest_score() {
        for n in [32, 33] {
            let values = Mat::from_fn(n, 3, |i, j| {
                0.5 + 0.3 * (std::f64::consts::TAU * (2 + j) as f64 * i as f64 / n as f64).sin()
            });
            let score = |steps: f64| evidence(&values, steps / n as f64).score(0.0, 0.0);
            let (narrow, good, wide) = (score(0.2), score(1.3), score(12.0));
            assert!(good + 10.0 < narrow && good + 10.0 < wide, "{narrow} {good} {wide}");
        }
    }

    /// Catches a sum of evidence that differs from the evidence of all lines together, and costs with the wrong sign.
    #[test]
    fn evidence_adds_up() {
        let value = |i: usize, j: usize| ((i * (j + 3)) % 7) as f64;
        let (both, first, second) = (
            evidence(&Mat::from_fn(16, 4, value), 0.1),
            evidence(&Mat::from_fn(16, 2, value), 0.1),
            evidence(&Mat::from_fn(16, 2, |i, j| value(i, j + 2)), 0.1),
        );
        let mut sum = Evidence::default();
        sum.add(&first);
        sum.add(&second);
        let (a, b) = (sum.score(0.0, 0.0), both.score(0.0, 0.0));
        assert!((a - b).abs() < 1e-9, "{a} {b}");
        assert!((both.score(2.0, -1.0) - b - 4.5).abs() < 1e-9);
    }

    /// Catches a NaN or infinite score of constant lines, whose errors are zero.
    #[test]
    fn constant_lines_have_a_score() {
        for value in [0.0, 0.5] {
            assert!(evidence(&Mat::from_fn(16, 1, |_, _| value), 0.05).score(0.0, 0.0).is_finite());
        }
        assert!(Lines::new(Mat::zeros(SHORTEST_LINE - 1, 1)).is_err());
        assert!(Lines::new(Mat::from_fn(16, 1, |_, _| f64::NAN)).is_err());
    }
}
