//! `auto` at random positions: chooses the width and the iterations of LSMR with the smallest product of two errors, that at held-out
//! training positions and the distance to kriging.

use anyhow::{Result, bail};
use posenc_math::closed_form::{LeastSquaresOptions, ScatteredSystem};
use posenc_math::embedder::{Embedder, EmbedderSpec, FitModel};
use posenc_math::interpolation::lattice::LatticeSamples;
use posenc_math::interpolation::{Sequential, adaptive};

use super::widths::{Best, Widths};
use crate::grid_network::Blending;
use crate::network_1d::Scale;
use crate::reconstruction::ITERATIONS;
use crate::reconstruction::closed::typed_matrix;
use crate::reconstruction::complex::Scattered;
use crate::reconstruction::points::positions_per_axis;
use posenc_data::Signal;

/// Number of folds of the training positions; one fold is held out at a time.
const FOLDS: usize = 8;
/// Folds are held out in turn until they contain this number of positions, at most half of the folds.
const ENOUGH: usize = 2000;
/// Candidate widths in quarter octaves from the rule. Then the widths [`FINER`] octaves from the best one are tried.
const QUARTERS: std::ops::RangeInclusive<i32> = -8..=8;
/// Octaves between the best width and its refinements.
const FINER: f64 = 0.125;
/// Candidate numbers of iterations if none is given.
pub const COUNTS: [usize; 12] = [2, 3, 5, 7, 10, 14, 20, 28, 40, 57, 80, ITERATIONS];

/// LSMR stops when its squared error exceeds its smallest one by this factor.
const FAR: f64 = 2.0;

/// A chosen width and number of iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomChoice {
    pub spec: EmbedderSpec,
    pub iterations: usize,
    /// log₂ of the width relative to the rule.
    pub octaves: f64,
}

/// A search for the best width; its fields do not depend on the width.
pub struct Search<'a> {
    /// The signal. Its values at other than the training positions are not used.
    pub signal: &'a Signal,
    pub train: &'a [u32],
    /// How the encodings of nodes are blended.
    pub blending: Blending,
    /// Candidate numbers of iterations, ascending.
    pub counts: &'a [usize],
    /// Builds an embedder, always with the same random numbers.
    pub build: &'a dyn Fn(&EmbedderSpec) -> Result<Box<dyn Embedder>>,
}

impl Search<'_> {
    /// Chooses the parameter that is `auto` and the number of iterations, using the mean of the channels. Without an `auto` parameter, it
    /// chooses only the iterations. Fails for signals with one axis, and if the embedder fails at all widths.
    pub fn choose(&self, spec: &EmbedderSpec) -> Result<RandomChoice> {
        let of = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let values = self.signal.values.chunks_exact(self.signal.channels).map(of).collect();
        let gray = Signal {
            name: self.signal.name.clone(),
            sides: self.signal.sides.clone(),
            channels: 1,
            values,
        };
        let kriged = Signal { values: kriged(&gray, self.train)?, ..gray.clone() };
        let mut is_known = vec![false; gray.points()];
        self.train.iter().for_each(|&point| is_known[point as usize] = true);
        let unknown = (0..is_known.len() as u32).filter(|&point| !is_known[point as usize]);
        let unknown: Vec<u32> = unknown.collect();
        let mut smallest = |spec: &EmbedderSpec| -> Result<(f64, usize)> {
            let mut errors =
                Search { signal: &kriged, ..*self }.path(spec, self.train, &unknown)?;
            if self.train.len() >= 2 * FOLDS {
                let held_out = Search { signal: &gray, ..*self }.held_out(spec)?;
                errors.iter_mut().zip(held_out).for_each(|(error, factor)| *error *= factor);
            }
            let pairs = errors.into_iter().zip(self.counts.iter().copied());
            Ok(pairs.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::NAN, ITERATIONS)))
        };
        let Some(parameter) = spec.auto() else {
            let (_, iterations) = smallest(spec)?;
            return Ok(RandomChoice { spec: spec.clone(), iterations, octaves: 0.0 });
        };
        let n = positions_per_axis(self.train.len(), self.signal.sides.len());
        let widths = Widths { open: spec, parameter, model: FitModel::ClosedForm, n };
        let coarse = QUARTERS.map(|quarters| 0.25 * f64::from(quarters));
        let Best { spec, octaves, found: iterations } =
            widths.search(coarse, FINER, &mut smallest)?;
        Ok(RandomChoice { spec, iterations, octaves })
    }

    /// Sum of squared errors at held-out positions after each number of iterations.
    fn held_out(&self, spec: &EmbedderSpec) -> Result<Vec<f64>> {
        let folds = ENOUGH.div_ceil(self.train.len() / FOLDS + 1).clamp(1, FOLDS / 2);
        let mut sums = vec![0.0; self.counts.len()];
        for fold in 0..folds {
            let (mut kept, mut held_out) = (Vec::new(), Vec::new());
            for (index, &point) in self.train.iter().enumerate() {
                let of = if index % FOLDS == fold { &mut held_out } else { &mut kept };
                of.push(point);
            }
            let errors = self.path(spec, &kept, &held_out)?;
            sums.iter_mut().zip(errors).for_each(|(sum, error)| *sum += error);
        }
        Ok(sums)
    }

    /// Sum of squared errors at the positions `test` after each number of iterations, fitted to the positions `train`.
    /// Fails for signals with one axis.
    pub fn path(&self, spec: &EmbedderSpec, train: &[u32], test: &[u32]) -> Result<Vec<f64>> {
        let embedder = (self.build)(spec)?;
        let sides = &self.signal.sides;
        let grid = Scattered::new(&*embedder, spec, sides, self.blending, Scale::None)?;
        match sides.len() {
            2 => self.path_in::<2>(&grid, train, test),
            3 => self.path_in::<3>(&grid, train, test),
            _ => bail!("a closed form needs images or clips"),
        }
    }

    fn path_in<const D: usize>(
        &self,
        grid: &Scattered,
        train: &[u32],
        test: &[u32],
    ) -> Result<Vec<f64>> {
        let psi = typed_matrix::<f32>(&grid.nodes);
        let [of_train, of_test] = [grid.blending::<f32, D>(train)?, grid.blending(test)?];
        let system = ScatteredSystem::new([psi.as_ref(); D], &of_train)?;
        let tested = ScatteredSystem::new([psi.as_ref(); D], &of_test)?;
        let options = LeastSquaresOptions {
            max_iterations: self.counts.last().copied().unwrap_or(ITERATIONS),
            ..LeastSquaresOptions::default()
        };
        let mut sums = vec![0.0; self.counts.len()];
        for channel in 0..self.signal.channels {
            let at = |&point: &u32| self.signal.at(point as usize, channel);
            let target: Vec<f32> = train.iter().map(|point| at(point) as f32).collect();
            let error = |weights: &[f32]| -> Result<f64> {
                let values = tested.apply(weights)?;
                let errors = values.iter().zip(test).map(|(v, p)| (f64::from(*v) - at(p)).powi(2));
                Ok(errors.sum())
            };
            let (mut errors, mut smallest, mut is_far) = (Vec::new(), f64::INFINITY, false);
            let solution =
                system.solve_observed(&target, &options, &mut |iteration, weights| {
                    if !self.counts.contains(&iteration) {
                        return true;
                    }
                    let error = error(weights).unwrap_or(f64::INFINITY);
                    errors.push(error);
                    smallest = smallest.min(error);
                    is_far = error > FAR * smallest;
                    !is_far
                })?;
            // After convergence, the error does not change. After a stop because of a large error, further iterations count as infinite.
            let last = if is_far { f64::INFINITY } else { error(&solution.weights)? };
            for (index, sum) in sums.iter_mut().enumerate() {
                *sum += errors.get(index).copied().unwrap_or(last);
            }
        }
        Ok(sums)
    }
}

/// A signal with one channel, interpolated from the positions `train` by kriging with Euclidean distances.
fn kriged(signal: &Signal, train: &[u32]) -> Result<Vec<f64>> {
    fn of<const D: usize>(signal: &Signal, sides: [usize; D], train: &[u32]) -> Result<Vec<f64>> {
        let known = train.iter().map(|&point| signal.values[point as usize]).collect();
        let known = LatticeSamples::new(sides, train.to_vec(), known, 1)?;
        Ok(adaptive::isotropic(&known, &adaptive::PLAIN, &Sequential))
    }
    match signal.sides[..] {
        [rows, columns] => of(signal, [rows, columns], train),
        [frames, rows, columns] => of(signal, [frames, rows, columns], train),
        _ => bail!("a closed form needs images or clips"),
    }
}

#[cfg(test)]
mod tests {
    use posenc_math::embedder::build;
    use posenc_math::random::stream;

    use super::*;
    use crate::grid_network::TestPositions;
    use crate::reconstruction::{Rule, Split, signal, split};

    fn waves(sides: &[usize], periods: f64) -> (Signal, Split) {
        let rule = Rule::Random { fraction: 0.25 };
        let split = split(sides, rule, TestPositions::Rest, &mut stream(0, "mask")).unwrap();
        (signal::waves(sides, 1, periods), split)
    }

    fn chosen(signal: &Signal, train: &[u32], counts: &[usize]) -> RandomChoice {
        let spec = EmbedderSpec::new("gaussian").number("dimension", 16.0).with("sigma", "auto");
        let build = |spec: &EmbedderSpec| Ok(build(spec, &mut stream(0, "auto"))?);
        let search = Search { signal, train, blending: Blending::default(), counts, build: &build };
        search.choose(&spec).unwrap()
    }

    /// Catches a choice that does not depend on the samples or that reads test positions, and images or clips that are refused.
    #[test]
    fn smooth_samples_get_wider_embedders() {
        for (sides, periods) in [(&[32, 32][..], [0.6, 4.0]), (&[12, 14, 16], [0.4, 1.5])] {
            let octaves = periods.map(|periods| {
                let (mut signal, split) = waves(sides, periods);
                let choice = chosen(&signal, &split.train, &COUNTS);
                assert!(COUNTS.contains(&choice.iterations) && choice.spec.auto().is_none());
                split.test.iter().for_each(|&point| signal.values[point as usize] = f64::NAN);
                assert_eq!(choice, chosen(&signal, &split.train, &COUNTS));
                choice.octaves
            });
            assert!(octaves[0] > octaves[1], "{sides:?}: {octaves:?}");
        }
    }

    /// Catches a number of iterations that is not among those allowed, and a choice that is worse than the rule.
    #[test]
    fn a_choice_is_better_than_the_rule() {
        let (signal, split) = waves(&[32, 32], 1.5);
        let build = |spec: &EmbedderSpec| Ok(build(spec, &mut stream(0, "auto"))?);
        let error = |choice: &RandomChoice| {
            let counts = [choice.iterations];
            let (train, blending) = (&split.train[..], Blending::default());
            let search =
                Search { signal: &signal, train, blending, counts: &counts, build: &build };
            search.path(&choice.spec, train, &split.test).unwrap()[0]
        };
        for few in [1, 2 * FOLDS - 1] {
            let choice = chosen(&signal, &split.train[..few], &COUNTS);
            assert!(COUNTS.contains(&choice.iterations) && choice.spec.auto().is_none());
        }
        let choice = chosen(&signal, &split.train, &COUNTS);
        let limited = chosen(&signal, &split.train, &[3]);
        assert_eq!(limited.iterations, 3);
        let n = positions_per_axis(split.train.len(), 2);
        let open = EmbedderSpec::new("gaussian").number("dimension", 16.0).with("sigma", "auto");
        let spec = open.resolved(FitModel::ClosedForm, n);
        let rule = RandomChoice { spec, iterations: ITERATIONS, octaves: 0.0 };
        assert!(error(&choice) < error(&limited) && error(&choice) < 0.5 * error(&rule));
    }
}
