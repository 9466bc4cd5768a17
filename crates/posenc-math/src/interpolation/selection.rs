//! Selection of kriging settings by cross-validation on the samples.
//!
//! For each candidate, some of the samples are held out and predicted from the others. At random positions, an eighth of the
//! samples is held out, so the density hardly changes. On a regular grid, all samples except every second one along each axis are
//! held out, which leaves the same pattern at twice the spacing. Settings are relative to the spacing of the samples, so they apply
//! to both densities. Only the samples are read.
//!
//! The error at unknown positions is predicted from that at the held-out samples. It is smaller, since all samples are denser than
//! the remaining ones. The squared error of kriging is proportional to the variogram, a power of the distance. At random positions
//! this power is assumed to be 1, as for a random walk. On a grid, a second split yields the error at four times the spacing. The
//! decrease of the error from four times to twice the spacing is extrapolated to the spacing of all samples. The extrapolation and
//! the uncertainty of predictions were determined on eight photographs of `div2k-train`.

use super::adaptive::{self, Settings, Steered};
use super::kriging::Covariance;
use super::lattice::LatticeSamples;
use super::{Parallel, predict};
use crate::quality::psnr_of;
use crate::random::{sample_without_replacement, stream};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Every `step`-th node along each axis.
    Grid {
        step: usize,
    },
    Random,
}

/// A predicted mean squared error with a 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// Settings that cross-validation chose.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    pub settings: Settings,
    /// All candidates with the mean squared error at the held-out samples, in the order in which they were tried; empty if there
    /// are too few samples.
    pub candidates: Vec<(Settings, f64)>,
    pub held_out: usize,
    /// Mean squared error at unknown positions; NaN if there are too few samples.
    pub predicted: Prediction,
}

impl Selection {
    /// The errors that determined the choice, as text; `None` if there are too few samples to hold some out.
    pub fn reason(&self) -> Option<String> {
        let best = |steered: bool| {
            let errors = self.candidates.iter().filter(|(s, _)| s.steering.is_some() == steered);
            errors.map(|(_, error)| *error).min_by(f64::total_cmp).map(psnr_of)
        };
        let held_out = self.held_out;
        Some(match (best(false)?, best(true)) {
            (plain, None) => {
                format!("cross-validation on {held_out} training positions: {plain:.2} dB")
            }
            (plain, Some(steered)) => format!(
                "cross-validation on {held_out} training positions: {steered:.2} dB with distances along \
                 edges, {plain:.2} dB with Euclidean distances"
            ),
        })
    }
}

/// Candidate nuggets (noise of the samples), in units of the variance of values.
const NUGGETS: [f64; 3] = [0.0, 0.02, 0.1];
/// Candidate strengths of steering. The first one is also used for the reconstruction whose edges all candidates follow.
const STRENGTHS: [f64; 3] = [1.5, 1.0, 2.0];

/// Minimum number of samples that remain after a split.
const FEWEST: usize = 64;
/// Largest number of held-out samples at random positions.
const MAX_HELD_OUT: usize = 8192;
/// Standard deviations in dB of the prediction error, in addition to the standard error of the held-out samples: at random positions
/// and on a grid.
const SPREADS: [f64; 2] = [0.3, 0.9];
/// On a grid, halving the spacing to that of all samples reduces the error in dB by this factor times the previous reduction.
const ACCELERATION: f64 = 1.75;

/// Chooses the settings of [`adaptive::reconstruct`].
pub fn choose_for_image(
    known: &LatticeSamples<2>,
    pattern: Pattern,
    parallel: &dyn Parallel,
) -> Selection {
    let Some([held_out, rest]) = hold_out(known, pattern) else {
        return untested();
    };
    let mut trial = Trial::new(&held_out);
    let plain = trial.plain(&rest, pattern, parallel);
    let steered = |strength, pilot: &[f64]| Steered::new(&rest, &plain, strength, pilot);
    // All candidates follow the edges of the same reconstruction.
    let first = adaptive::isotropic(&rest, &plain, parallel);
    let pilot = rest.fill(&steered(STRENGTHS[0], &first), parallel);
    for &strength in candidates(&STRENGTHS, pattern) {
        let positions = held_out.samples().positions();
        let values = predict(&steered(strength, &pilot), positions, parallel);
        trial.record(Settings { steering: Some(strength), ..plain }, &values);
    }
    let coarse = |settings: &Settings| {
        let [held_out, rest] = hold_out(&rest, doubled(pattern)?)?;
        let values = adaptive::reconstruct(&rest, settings, parallel);
        Some(mean(&errors(&held_out, &held_out.at_nodes(&values))))
    };
    trial.finish(known, pattern, coarse)
}

/// Chooses the settings of [`adaptive::isotropic`].
pub fn choose<const D: usize>(
    known: &LatticeSamples<D>,
    pattern: Pattern,
    parallel: &dyn Parallel,
) -> Selection {
    let Some([held_out, rest]) = hold_out(known, pattern) else {
        return untested();
    };
    let mut trial = Trial::new(&held_out);
    trial.plain(&rest, pattern, parallel);
    let coarse = |settings: &Settings| {
        let [held_out, rest] = hold_out(&rest, doubled(pattern)?)?;
        let values =
            adaptive::isotropic_at(&rest, settings, held_out.samples().positions(), parallel);
        Some(mean(&errors(&held_out, &values)))
    };
    trial.finish(known, pattern, coarse)
}

/// The selection for too few samples to hold some out.
fn untested() -> Selection {
    let predicted = Prediction { mean: f64::NAN, low: f64::NAN, high: f64::NAN };
    Selection { settings: adaptive::FAST, candidates: Vec::new(), held_out: 0, predicted }
}

/// The values to try. On a grid this is only the first, since details look like noise at the spacing of the remaining samples.
fn candidates(all: &[f64], pattern: Pattern) -> &[f64] {
    match pattern {
        Pattern::Random => all,
        Pattern::Grid { .. } => &all[..1],
    }
}

/// The pattern of the remaining samples of a grid: a grid with twice the spacing.
fn doubled(pattern: Pattern) -> Option<Pattern> {
    match pattern {
        Pattern::Grid { step } => Some(Pattern::Grid { step: 2 * step }),
        Pattern::Random => None,
    }
}

/// Held-out samples, and the others; `None` if there are too few.
fn hold_out<const D: usize>(
    known: &LatticeSamples<D>,
    pattern: Pattern,
) -> Option<[LatticeSamples<D>; 2]> {
    let count = known.nodes().len();
    let mut held_out = vec![false; count];
    match pattern {
        Pattern::Random => {
            let mut rng = stream(0, "interpolation: held-out samples");
            for i in sample_without_replacement(&mut rng, count, (count / 8).min(MAX_HELD_OUT)) {
                held_out[i] = true;
            }
        }
        Pattern::Grid { step } => {
            for (held_out, position) in held_out.iter_mut().zip(known.samples().positions()) {
                *held_out = position.iter().any(|&c| !(c as usize).is_multiple_of(2 * step));
            }
        }
    }
    let left = held_out.iter().filter(|&&held_out| !held_out).count();
    if left < FEWEST || left == count {
        return None;
    }
    known.split(|i| held_out[i]).ok()
}

/// Squared errors at held-out samples, means over the channels.
fn errors<const D: usize>(held_out: &LatticeSamples<D>, values: &[f64]) -> Vec<f64> {
    let channels = held_out.samples().channels();
    let truth = held_out.samples().values().chunks_exact(channels);
    let error = |(truth, value): (&[f64], &[f64])| {
        truth.iter().zip(value).map(|(t, v)| (t - v) * (t - v)).sum::<f64>() / channels as f64
    };
    truth.zip(values.chunks_exact(channels)).map(error).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Candidates and their errors at the held-out samples.
struct Trial<'a, const D: usize> {
    held_out: &'a LatticeSamples<D>,
    candidates: Vec<(Settings, f64)>,
    /// Errors of the best candidate.
    best: Vec<f64>,
    settings: Settings,
}

impl<'a, const D: usize> Trial<'a, D> {
    fn new(held_out: &'a LatticeSamples<D>) -> Self {
        Trial {
            held_out,
            candidates: Vec::new(),
            best: vec![f64::INFINITY],
            settings: adaptive::FAST,
        }
    }

    fn record(&mut self, settings: Settings, values: &[f64]) {
        let errors = errors(self.held_out, values);
        let error = mean(&errors);
        self.candidates.push((settings, error));
        if error < mean(&self.best) {
            (self.best, self.settings) = (errors, settings);
        }
    }

    /// Tries all nuggets with Euclidean distances and returns the best settings.
    fn plain(
        &mut self,
        rest: &LatticeSamples<D>,
        pattern: Pattern,
        parallel: &dyn Parallel,
    ) -> Settings {
        for &nugget in candidates(&NUGGETS, pattern) {
            let covariance = Covariance { nugget, ..adaptive::FAST.covariance };
            let settings = Settings { covariance, ..adaptive::FAST };
            let positions = self.held_out.samples().positions();
            let values = adaptive::isotropic_at(rest, &settings, positions, parallel);
            self.record(settings, &values);
        }
        self.settings
    }

    /// Predicts the error at unknown positions. `coarse` computes the error of settings on a second split of a grid.
    fn finish(
        self,
        known: &LatticeSamples<D>,
        pattern: Pattern,
        coarse: impl Fn(&Settings) -> Option<f64>,
    ) -> Selection {
        let held_out = self.best.len();
        let error = mean(&self.best);
        let factor = match pattern {
            // The distance between samples falls with the root of their density in D dimensions.
            Pattern::Random => {
                let left = 1.0 - held_out as f64 / known.nodes().len() as f64;
                left.powf(1.0 / D as f64)
            }
            Pattern::Grid { .. } => coarse(&self.settings)
                .map_or(0.5, |coarse| (error / coarse).min(1.0).powf(ACCELERATION)),
        };
        let spread = SPREADS[usize::from(pattern != Pattern::Random)];
        // Standard error of the mean in dB, combined with the other uncertainty.
        let squares: f64 = self.best.iter().map(|e| (e - error) * (e - error)).sum();
        // Errors of 0, as in a black image, have no spread.
        let relative = if error == 0.0 { 0.0 } else { squares.sqrt() / (held_out as f64 * error) };
        let deviation = (10.0 / std::f64::consts::LN_10 * relative).hypot(spread);
        let mean = error * factor;
        let width = 10f64.powf(1.96 * deviation / 10.0);
        Selection {
            settings: self.settings,
            candidates: self.candidates,
            held_out,
            predicted: Prediction { mean, low: mean / width, high: mean * width },
        }
    }
}
