//! Training with measurements on a schedule.
//!
//! The papers evaluate both PSNRs after every optimizer step and print their mean over the last 100
//! epochs, in dB. Let θ_e be the parameters after e steps. A step of a [`Session`] returns the training
//! error of the parameters before it:
//!
//! ```text
//! θ_0 ──step──► θ_1 ──step──► θ_2  …  θ_{E−1} ──step──► θ_E
//!  └─ L(θ_0)     └─ L(θ_1)             └─ L(θ_{E−1})     └─ L(θ_E): extra evaluation
//! ```
//!
//! Training errors therefore cost only one extra evaluation, after the last step. Test errors are evaluated only
//! in the window of the mean and at the points of the curve. If the errors returned by steps are inexact
//! ([`Session::step_errors_are_exact`]), training errors are evaluated at the same epochs.

mod saved;

#[cfg(test)]
mod tests;

use posenc_math::quality::psnr_of;
use serde::{Deserialize, Serialize};

use crate::{NetError, SampleSet, Session};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Number E of epochs, at least 1.
    pub epochs: u64,
    /// The curve has points at the epochs 0, k, 2k, … < E, each measured before that epoch's
    /// step; 0: no curve.
    pub curve_every: u64,
    /// Whether curve points include the stable ranks of the hidden layers.
    pub layers: bool,
    /// Number of last epochs to average over, at least 1; all epochs if E is smaller.
    pub mean_of_last: u64,
}

impl Schedule {
    /// Refuses a schedule without epochs or with an empty mean.
    pub fn check(&self) -> Result<(), NetError> {
        if self.epochs == 0 {
            return Err(NetError::Zero("the number of epochs"));
        }
        if self.mean_of_last == 0 {
            return Err(NetError::Zero("mean_of_last (number of epochs to average over)"));
        }
        Ok(())
    }

    /// Whether the curve has a point before the step that follows `done` steps.
    fn has_point(&self, done: u64) -> bool {
        self.curve_every > 0 && done.is_multiple_of(self.curve_every)
    }

    /// Whether the mean includes the parameters after `done` steps.
    fn has_in_mean(&self, done: u64) -> bool {
        done > self.epochs.saturating_sub(self.mean_of_last)
    }
}

/// Measurements before the step of one epoch; NaN for diverged runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    pub epoch: u64,
    /// PSNR of each run on the training samples, in dB.
    pub train_psnr: Vec<f64>,
    /// PSNR of each run on the test samples, in dB; empty without test samples.
    pub test_psnr: Vec<f64>,
    /// For each run, the stable ranks of the hidden layers, from the input on; empty unless scheduled.
    pub layers: Vec<Vec<f64>>,
}

/// Results of one run. PSNRs are in dB, and NaN if the run has diverged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Mean training PSNR over the last epochs (see [`Schedule::mean_of_last`]).
    pub train_psnr: f64,
    /// Mean test PSNR over the last epochs; `None` without test samples.
    pub test_psnr: Option<f64>,
    pub final_train_psnr: f64,
    /// Test PSNR after the last epoch; `None` without test samples.
    pub final_test_psnr: Option<f64>,
    /// Standard deviation of the training PSNR over the last epochs; 0 for a single epoch.
    pub train_deviation: f64,
    /// Standard deviation of the test PSNR over the last epochs; `None` without test samples.
    pub test_deviation: Option<f64>,
    /// The epoch (from 1) whose error was not finite; the last epoch if its step made the error infinite or NaN.
    pub diverged: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Curve points in the order of the epochs.
    pub curve: Vec<CurvePoint>,
    pub summaries: Vec<Summary>,
}

/// Callback of [`fit`]. Its arguments are the number of completed epochs and a function that encodes the fit.
pub type AfterEpoch<'a> = dyn FnMut(u64, &dyn Fn() -> Result<Vec<u8>, NetError>) + 'a;

/// Trains `session` to the end of the schedule, or until every run has diverged.
///
/// After each epoch, or each batch of [`Session::epochs_at_once`] epochs, `after_epoch` is called with the number
/// of completed epochs and a function that encodes the session and all measurements so far. Passing these bytes
/// as `resume` later, with a session of the same task, gives the same history, bit for bit, as an uninterrupted
/// fit. Encoding takes time, so call the function only if the bytes are needed.
///
/// # Errors
///
/// Returns an error if the schedule is empty, if the session has already started, if the saved bytes are damaged
/// or belong to another fit ([`NetError::State`]), or if the session's device fails.
pub fn fit(
    session: &mut dyn Session,
    schedule: &Schedule,
    resume: Option<&[u8]>,
    after_epoch: &mut AfterEpoch<'_>,
) -> Result<History, NetError> {
    schedule.check()?;
    let (mut done, mut measured) = match resume {
        Some(bytes) => {
            let (state, measured) = saved::decode(bytes, schedule, session.runs())?;
            session.restore(&state)?;
            (state.progress.epoch, measured)
        }
        None if session.epoch() == 0 => (0, Measured::new(session.runs())),
        None => {
            let why = format!(
                "the session has already done {} epochs, but no saved measurements were passed; \
                 pass the saved fit or start a new session",
                session.epoch()
            );
            return Err(NetError::Combination(why));
        }
    };

    while done < schedule.epochs && session.diverged().contains(&None) {
        let has_layers = |done: u64| schedule.layers && schedule.has_point(done);
        let layers = if has_layers(done) { session.hidden_stable_ranks()? } else { Vec::new() };
        // Stable ranks need the current parameters, so a batch ends before the next epoch that measures them.
        let at_once = session.epochs_at_once().max(1) as u64;
        let latest = schedule.epochs.min(done.saturating_add(at_once));
        let end = (done + 1..latest).find(|later| has_layers(*later)).unwrap_or(latest);
        let is_measured = |done| schedule.has_point(done) || schedule.has_in_mean(done);
        let wanted: Vec<bool> = (done..end).map(is_measured).collect();
        let epochs = session.advance(&wanted)?;
        let mut layers = Some(layers);
        for epoch in epochs {
            // The step of this epoch detects training errors that are not finite.
            let train = psnrs(&epoch.train, session.diverged(), done + 1);
            // Test errors were measured before that step.
            let test = psnrs(&epoch.test, session.diverged(), done);
            if schedule.has_in_mean(done) {
                measured.train.add(&train);
                measured.add_test(&test);
            }
            if schedule.has_point(done) {
                let mut layers = layers.take().unwrap_or_default();
                let diverged = |noted: &Option<u64>| noted.is_some_and(|noted| noted <= done + 1);
                let gone = layers.iter_mut().zip(session.diverged()).filter(|(_, d)| diverged(d));
                gone.for_each(|(ranks, _)| ranks.fill(f64::NAN));
                let test_psnr = psnrs(&epoch.test, session.diverged(), done + 1);
                let point = CurvePoint { epoch: done, train_psnr: train, test_psnr, layers };
                measured.curve.push(point);
            }
            done += 1;
        }
        if done == schedule.epochs {
            let errors = session.errors(SampleSet::Test)?;
            measured.add_test(&psnrs(&errors, session.diverged(), done));
            let errors = session.errors(SampleSet::Train)?;
            measured.train.add(&psnrs(&errors, session.diverged(), done));
        }
        let (session, measured) = (&*session, &measured);
        after_epoch(done, &|| saved::encode(schedule, &session.state()?, measured));
    }

    // If all runs diverged before the window, evaluate once to see whether there are test samples.
    let has_test = measured.test.is_some() || !session.errors(SampleSet::Test)?.is_empty();
    Ok(measured.finish(schedule, session.diverged(), has_test))
}

/// Converts mean squared errors to PSNRs in dB; NaN for runs that diverged in `epoch` or before.
fn psnrs(errors: &[f64], diverged: &[Option<u64>], epoch: u64) -> Vec<f64> {
    let psnr = |(&error, diverged): (&f64, &Option<u64>)| match diverged {
        Some(noted) if *noted <= epoch => f64::NAN,
        _ => psnr_of(error),
    };
    errors.iter().zip(diverged).map(psnr).collect()
}

/// Running statistics of the PSNRs in the window of the mean, one entry per run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Window {
    sum: Vec<f64>,
    last: Vec<f64>,
    /// First PSNR. Squares are summed relative to it, since PSNRs vary little around a large value.
    first: Vec<f64>,
    /// Sum of squared differences from `first` so far.
    squares: Vec<f64>,
}

impl Window {
    fn new(runs: usize) -> Self {
        Window {
            sum: vec![0.0; runs],
            last: vec![f64::NAN; runs],
            first: vec![f64::NAN; runs],
            squares: vec![0.0; runs],
        }
    }

    fn add(&mut self, psnrs: &[f64]) {
        self.sum.iter_mut().zip(psnrs).for_each(|(sum, psnr)| *sum += psnr);
        self.last.copy_from_slice(psnrs);
        for ((first, squares), psnr) in self.first.iter_mut().zip(&mut self.squares).zip(psnrs) {
            if first.is_nan() {
                *first = *psnr;
            }
            *squares += (psnr - *first).powi(2);
        }
    }

    /// Sample standard deviation of a run's PSNRs in a window of `count` epochs; NaN if one of them is not finite.
    fn deviation(&self, run: usize, count: f64) -> f64 {
        if count < 2.0 {
            return 0.0;
        }
        let shift = self.sum[run] - count * self.first[run];
        let variance = (self.squares[run] - shift * shift / count) / (count - 1.0);
        // Rounding may make the variance slightly negative. `max` alone would turn NaN into zero.
        if variance.is_nan() { f64::NAN } else { variance.max(0.0).sqrt() }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Measured {
    train: Window,
    /// `None` until test errors are measured.
    test: Option<Window>,
    curve: Vec<CurvePoint>,
}

impl Measured {
    fn new(runs: usize) -> Self {
        Measured { train: Window::new(runs), test: None, curve: Vec::new() }
    }

    /// Adds PSNRs of the test samples; does nothing if `psnrs` is empty.
    fn add_test(&mut self, psnrs: &[f64]) {
        if !psnrs.is_empty() {
            self.test.get_or_insert_with(|| Window::new(psnrs.len())).add(psnrs);
        }
    }

    /// Whether it has one number per run everywhere, as in a fit of `runs` runs.
    fn is_of(&self, runs: usize) -> bool {
        let windows = std::iter::once(&self.train).chain(&self.test);
        let lists = windows.flat_map(|w| [&w.sum, &w.last, &w.first, &w.squares]);
        let curve = self.curve.iter().flat_map(|point| {
            std::iter::once(&point.train_psnr)
                .chain(Some(&point.test_psnr).filter(|t| !t.is_empty()))
        });
        lists.chain(curve).all(|list| list.len() == runs)
    }

    fn finish(self, schedule: &Schedule, diverged: &[Option<u64>], has_test: bool) -> History {
        let count = schedule.mean_of_last.min(schedule.epochs) as f64;
        let summary = |(run, noted): (usize, &Option<u64>)| {
            let last = self.train.last[run];
            // −∞ dB means that the last step made the error infinite; no later step recorded it.
            let broken = last.is_nan() || last == f64::NEG_INFINITY;
            let diverged = noted.or(broken.then_some(schedule.epochs));
            let unless_diverged = |psnr: f64| if diverged.is_some() { f64::NAN } else { psnr };
            let test = |of: &dyn Fn(&Window) -> f64| {
                let psnr = self.test.as_ref().map_or(f64::NAN, of);
                has_test.then_some(unless_diverged(psnr))
            };
            Summary {
                train_psnr: unless_diverged(self.train.sum[run] / count),
                test_psnr: test(&|window| window.sum[run] / count),
                final_train_psnr: unless_diverged(last),
                final_test_psnr: test(&|window| window.last[run]),
                train_deviation: unless_diverged(self.train.deviation(run, count)),
                test_deviation: test(&|window| window.deviation(run, count)),
                diverged,
            }
        };
        let summaries = diverged.iter().enumerate().map(summary).collect();
        History { curve: self.curve, summaries }
    }
}
