//! Training and test positions of a grid.

use crate::grid_network::TestPositions;
use anyhow::{Result, ensure};
use posenc_math::quality::psnr_of;
use posenc_math::random::sample_without_replacement;
use rand_chacha::ChaCha8Rng;

use posenc_data::Signal;

/// Training and test positions, as indices on the grid. The last axis varies fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Training positions, ascending.
    pub train: Vec<u32>,
    /// Test positions, batch after batch.
    pub test: Vec<u32>,
    /// Lengths of the test batches, which the authors' code embeds and therefore scales separately. On a grid, they are the cosets of the
    /// training grid.
    pub batches: Vec<usize>,
}

impl Split {
    /// PSNR in dB at the test positions; NaN if there are none. `values` are those at all positions (channels fastest).
    pub fn psnr(&self, signal: &Signal, values: &[f64]) -> f64 {
        mean_squared_error(signal, values, self.test.iter().map(|&point| point as usize))
            .map_or(f64::NAN, psnr_of)
    }
}

/// Number of training positions per axis, rounded, from their total number.
pub fn positions_per_axis(positions: usize, axes: usize) -> f64 {
    (positions as f64).powf(1.0 / axes as f64).round().max(2.0)
}

/// Mean squared error at some positions; `None` without positions. `values` are those at all positions (channels fastest).
pub fn mean_squared_error(
    signal: &Signal,
    values: &[f64],
    points: impl Iterator<Item = usize>,
) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0usize);
    for point in points {
        let span = point * signal.channels..(point + 1) * signal.channels;
        for (value, target) in values[span.clone()].iter().zip(&signal.values[span]) {
            let difference = value - target;
            sum += difference * difference;
            count += 1;
        }
    }
    (count > 0).then(|| sum / count as f64)
}

/// Rule for the training positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// Every `step`-th position along each axis.
    Grid {
        /// Distance between training positions.
        step: usize,
    },
    /// A random share of all positions.
    Random { fraction: f64 },
}

impl Rule {
    /// A random share of all positions if `fraction` is given, otherwise every `step`-th position, by default every second one.
    pub fn new(step: Option<usize>, fraction: Option<f64>) -> Self {
        match fraction {
            Some(fraction) => Rule::Random { fraction },
            None => Rule::Grid { step: step.unwrap_or(2) },
        }
    }
}

/// Splits a grid into training and test positions; `rng` samples random training positions.
pub fn split(
    sides: &[usize],
    rule: Rule,
    tests: TestPositions,
    rng: &mut ChaCha8Rng,
) -> Result<Split> {
    let points: usize = sides.iter().product();
    ensure!(
        points <= 1 << 28,
        "a signal of {points} positions; allowed: up to {}, reduce it with `side`",
        1 << 28
    );
    let all = || (0..points as u32).collect::<Vec<u32>>();
    let (train, rest) = match rule {
        Rule::Grid { step } => {
            let smallest = sides.iter().copied().min().unwrap_or(0);
            ensure!(
                smallest >= step,
                "a side of {smallest} positions is shorter than `step: {step}`; allowed: at most {smallest}"
            );
            let cosets = step.pow(sides.len() as u32);
            let mut cosets: Vec<Vec<u32>> = vec![Vec::new(); cosets];
            for point in 0..points {
                cosets[coset(sides, step, point)].push(point as u32);
            }
            let test = match tests {
                // The coset of step/2 on every axis.
                TestPositions::Centers => {
                    let center = sides.iter().fold(0, |c, _| c * step + step / 2);
                    vec![std::mem::take(&mut cosets[center])]
                }
                _ => cosets.drain(1..).collect(),
            };
            (std::mem::take(&mut cosets[0]), test)
        }
        Rule::Random { fraction } => {
            let count = (fraction * points as f64).round() as usize;
            ensure!(
                count > 0 && count < points,
                "`fraction: {fraction}` of {points} positions is {count}; at least one must train and one test"
            );
            let mut trains = vec![false; points];
            for point in sample_without_replacement(rng, points, count) {
                trains[point] = true;
            }
            let chosen = |wanted: bool| {
                (0..points).filter(|&p| trains[p] == wanted).map(|p| p as u32).collect()
            };
            (chosen(true), vec![chosen(false)])
        }
    };
    let batches = if tests == TestPositions::All { vec![all()] } else { rest };
    let lengths = batches.iter().map(Vec::len).filter(|&len| len > 0).collect();
    Ok(Split { train, test: batches.concat(), batches: lengths })
}

/// Number of the coset of a point: its indices modulo the step, with the last axis fastest. The training grid is coset 0.
fn coset(sides: &[usize], step: usize, point: usize) -> usize {
    let (mut rest, mut stride, mut number) = (point, 1, 0);
    for &n in sides.iter().rev() {
        number += rest % n % step * stride;
        rest /= n;
        stride *= step;
    }
    number
}

#[cfg(test)]
mod tests {
    use posenc_math::random::stream;

    use super::*;

    const GRID: Rule = Rule::Grid { step: 2 };

    fn of(sides: &[usize], rule: Rule, tests: TestPositions) -> Split {
        split(sides, rule, tests, &mut stream(0, "mask")).unwrap()
    }

    /// Catches a training grid with a wrong origin, and a test position that trains.
    #[test]
    fn a_grid_trains_on_multiples_of_the_step() {
        let split = of(&[4, 4], GRID, TestPositions::Rest);
        assert_eq!(split.train, [0, 2, 8, 10]);
        assert_eq!(split.test, [1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15]);
        assert_eq!(split.batches, [4, 4, 4]);
        assert_eq!(of(&[4, 4], GRID, TestPositions::Centers).test, [5, 7, 13, 15]);
        let all = of(&[4, 4], GRID, TestPositions::All);
        assert_eq!((all.test.len(), all.batches), (16, vec![16]));
        assert_eq!(of(&[2, 2, 2], GRID, TestPositions::Rest).train, [0]);
        assert_eq!(of(&[2, 2, 2], GRID, TestPositions::Centers).test, [7]);
        // Sides that the step does not divide.
        assert_eq!(of(&[3, 5], GRID, TestPositions::Rest).train, [0, 2, 4, 10, 12, 14]);
    }

    /// Catches a mask of the wrong size, with repeated positions, or that the seed does not determine.
    #[test]
    fn random_positions_are_a_share_of_all() {
        let quarter = Rule::Random { fraction: 0.25 };
        let one = of(&[32, 32], quarter, TestPositions::Rest);
        assert_eq!((one.train.len(), one.test.len()), (256, 768));
        let mut all = [one.train.clone(), one.test.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..1024).collect::<Vec<u32>>());
        assert_eq!(one, of(&[32, 32], quarter, TestPositions::Rest));
        assert!(one.train.windows(2).all(|w| w[0] < w[1]));
    }

    /// Catches a split without training or without test positions.
    #[test]
    fn empty_and_full_masks_are_refused() {
        for fraction in [1e-9, 0.999999] {
            let (rule, rest) = (Rule::Random { fraction }, TestPositions::Rest);
            let error = split(&[16, 16], rule, rest, &mut stream(0, "")).unwrap_err().to_string();
            assert!(error.contains("at least one must train"), "{error}");
        }
        assert!(split(&[1, 8], GRID, TestPositions::Rest, &mut stream(0, "")).is_err());
    }
}
