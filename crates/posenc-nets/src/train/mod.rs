//! Training along a schedule of measurements.
//!
//! The papers evaluate both PSNRs after every optimizer step and print their mean over the last 100
//! epochs, in dB. With θ_e the parameters after e steps, a step of a [`Session`] gives the training
//! error of the parameters that it starts from:
//!
//! ```text
//! θ_0 ──step──► θ_1 ──step──► θ_2  …  θ_{E−1} ──step──► θ_E
//!  └─ gives L(θ_0)  └─ gives L(θ_1)      └─ gives L(θ_{E−1})   L(θ_E) is asked for
//! ```
//!
//! so that training errors cost one evaluation at the very end. Test errors are evaluated in the
//! window of the mean and at the points of the curve, and nowhere else; where a session's steps give
//! inexact errors ([`Session::step_errors_are_exact`]), training errors are too.

mod saved;

#[cfg(test)]
mod tests;

use posenc_math::quality::psnr_of;

use crate::{NetError, SampleSet, Session};

/// When to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Number E of epochs, at least 1.
    pub epochs: u64,
    /// The curve has points at the epochs 0, k, 2k, … < E, each measured before that epoch's
    /// step; 0: no curve.
    pub curve_every: u64,
    /// Whether the points of the curve hold the stable ranks of the hidden layers.
    pub layers: bool,
    /// Number of last epochs that means are taken over, at least 1; all epochs if E is smaller.
    pub mean_of_last: u64,
}

impl Schedule {
    /// Refuses a schedule without epochs and a mean of nothing.
    pub fn check(&self) -> Result<(), NetError> {
        if self.epochs == 0 {
            return Err(NetError::Zero("the number of epochs"));
        }
        if self.mean_of_last == 0 {
            return Err(NetError::Zero("the number of last epochs that the mean is over"));
        }
        Ok(())
    }

    /// Whether the curve has a point before the step that follows `done` steps.
    fn has_point(&self, done: u64) -> bool {
        self.curve_every > 0 && done.is_multiple_of(self.curve_every)
    }

    /// Whether the mean takes in the parameters after `done` steps.
    fn has_in_mean(&self, done: u64) -> bool {
        done > self.epochs.saturating_sub(self.mean_of_last)
    }
}

/// What was measured before the step of one epoch. Runs that have diverged hold NaN.
#[derive(Debug, Clone, PartialEq)]
pub struct CurvePoint {
    /// Steps done.
    pub epoch: u64,
    /// Per run, in dB.
    pub train_psnr: Vec<f64>,
    /// Per run, in dB; empty without test samples.
    pub test_psnr: Vec<f64>,
    /// Per run the stable ranks of the hidden layers, from the input on; empty if not asked for.
    pub layers: Vec<Vec<f64>>,
}

/// What remains of one run. PSNRs in dB; NaN if the run has diverged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Mean of the PSNRs after each of the last epochs.
    pub train_psnr: f64,
    /// The same on the test samples; none without them.
    pub test_psnr: Option<f64>,
    /// After the last epoch.
    pub final_train_psnr: f64,
    /// After the last epoch; none without test samples.
    pub final_test_psnr: Option<f64>,
    /// Standard deviation of the PSNRs after each of the last epochs; 0 for a single epoch.
    pub train_deviation: f64,
    /// The same on the test samples; none without them.
    pub test_deviation: Option<f64>,
    /// The epoch (from 1) in whose step the error was not finite; the last one if only its step
    /// has made the error so.
    pub diverged: Option<u64>,
}

/// What [`fit`] has measured.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// In the order of the epochs.
    pub curve: Vec<CurvePoint>,
    /// One per run.
    pub summaries: Vec<Summary>,
}

/// What is called after each epoch: with the number of epochs done, and with what encodes the fit.
pub type AfterEpoch<'a> = dyn FnMut(u64, &dyn Fn() -> Result<Vec<u8>, NetError>) + 'a;

/// Drives `session` to the end of the schedule, or until every run has diverged.
///
/// After each epoch, or after as many as the session takes at once, `after_epoch` is called with the
/// number of epochs done and a function that
/// encodes the session and everything measured so far. Given to `resume` later, with a session of
/// the same task, such bytes lead to the same history, bit for bit, as if there had been no
/// interruption. Encoding takes time; call the function only when the bytes are wanted.
///
/// # Errors
///
/// A schedule of nothing; a session that has already begun, or saved bytes that are damaged or
/// belong to something else ([`NetError::State`]); what the session's device does not do.
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
                "the session has already done {} epochs and nothing was saved of what it measured; \
                 start a new one",
                session.epoch()
            );
            return Err(NetError::State(why));
        }
    };

    while done < schedule.epochs && session.diverged().contains(&None) {
        let has_layers = |done: u64| schedule.layers && schedule.has_point(done);
        let layers = if has_layers(done) { session.hidden_stable_ranks()? } else { Vec::new() };
        // Stable ranks belong to the current parameters, so they end a batch of epochs.
        let at_once = session.epochs_at_once().max(1) as u64;
        let latest = schedule.epochs.min(done.saturating_add(at_once));
        let end = (done + 1..latest).find(|later| has_layers(*later)).unwrap_or(latest);
        let is_measured = |done| schedule.has_point(done) || schedule.has_in_mean(done);
        let wanted: Vec<bool> = (done..end).map(is_measured).collect();
        let epochs = session.advance(&wanted)?;
        let mut layers = Some(layers);
        for epoch in epochs {
            // The step of this epoch is the one that finds an error which is not finite.
            let train = psnrs(&epoch.train, session.diverged(), done + 1);
            // Test errors were known before it.
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
        after_epoch(done, &|| Ok(saved::encode(schedule, &session.state()?, measured)));
    }

    // If all runs diverged before the window, this says whether there are test samples.
    let has_test = measured.test.is_some() || !session.errors(SampleSet::Test)?.is_empty();
    Ok(measured.finish(schedule, session.diverged(), has_test))
}

/// PSNRs in dB of mean squared errors; NaN for runs that had diverged by the end of an epoch.
fn psnrs(errors: &[f64], diverged: &[Option<u64>], epoch: u64) -> Vec<f64> {
    let psnr = |(&error, diverged): (&f64, &Option<u64>)| match diverged {
        Some(noted) if *noted <= epoch => f64::NAN,
        _ => psnr_of(error),
    };
    errors.iter().zip(diverged).map(psnr).collect()
}

/// PSNRs of the window of the mean, one entry per run.
#[derive(Debug, Clone, PartialEq)]
struct Window {
    /// Their sum so far.
    sum: Vec<f64>,
    /// The latest.
    last: Vec<f64>,
    /// The first; deviations are summed around it, since PSNRs vary little around a large value.
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
        // Rounding may leave a little below zero. `max` alone would turn NaN into zero.
        if variance.is_nan() { f64::NAN } else { variance.max(0.0).sqrt() }
    }
}

/// Everything measured so far.
#[derive(Debug, Clone, PartialEq)]
struct Measured {
    train: Window,
    /// None until something is measured.
    test: Option<Window>,
    curve: Vec<CurvePoint>,
}

impl Measured {
    fn new(runs: usize) -> Self {
        Measured { train: Window::new(runs), test: None, curve: Vec::new() }
    }

    /// PSNRs of the test samples in the window; none without them.
    fn add_test(&mut self, psnrs: &[f64]) {
        if !psnrs.is_empty() {
            self.test.get_or_insert_with(|| Window::new(psnrs.len())).add(psnrs);
        }
    }

    fn finish(self, schedule: &Schedule, diverged: &[Option<u64>], has_test: bool) -> History {
        let count = schedule.mean_of_last.min(schedule.epochs) as f64;
        let summary = |(run, noted): (usize, &Option<u64>)| {
            let last = self.train.last[run];
            // −∞ dB is an infinite error: the last step went wrong and no other came to note it.
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
