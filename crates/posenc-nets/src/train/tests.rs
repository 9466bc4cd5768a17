use faer::Mat;
use posenc_math::tolerance::{Tolerance, assert_close};

use super::*;
use crate::{Input, Parameters, Progress, State};

/// The target t of every run.
const TARGET: f64 = 1.0;

/// A session with one parameter per run: θ ← θ − 2η(θ − t), so θ_e = t + (1 − 2η)^e (θ_0 − t). The training error is
/// (θ − t)², the test error (θ − t − 1)², and the stable rank of the only "hidden layer" is θ.
struct Quadratic {
    rate: Vec<f64>,
    has_test: bool,
    state: State,
    /// Number of calls of `errors` for the training and for the test samples.
    asked: [u64; 2],
    at_once: usize,
}

impl Quadratic {
    /// Run r starts at θ = 2 + r. Runs with a rate above 1 diverge.
    fn new(rate: &[f64], has_test: bool) -> Self {
        let state = State {
            progress: Progress::new(rate.len()),
            numbers: (0..rate.len()).map(|run| 2.0 + run as f32).collect(),
        };
        Quadratic { rate: rate.to_vec(), has_test, state, asked: [0; 2], at_once: 1 }
    }

    fn squares(&self, shift: f64) -> Vec<f64> {
        let square = |theta: &f32| (f64::from(*theta) - TARGET - shift).powi(2);
        self.state.numbers.iter().map(square).collect()
    }
}

impl Session for Quadratic {
    fn progress(&self) -> &Progress {
        &self.state.progress
    }

    fn step(&mut self) -> Result<Vec<f64>, NetError> {
        let errors = self.squares(0.0);
        self.state.progress.epoch += 1;
        self.state.progress.record(&errors);
        for (number, rate) in self.state.numbers.iter_mut().zip(&self.rate) {
            let theta = f64::from(*number);
            *number = (theta - 2.0 * rate * (theta - TARGET)) as f32;
        }
        Ok(errors)
    }

    fn errors(&mut self, set: SampleSet) -> Result<Vec<f64>, NetError> {
        self.asked[set as usize] += 1;
        Ok(match set {
            SampleSet::Train => self.squares(0.0),
            SampleSet::Test if self.has_test => self.squares(1.0),
            SampleSet::Test => Vec::new(),
        })
    }

    fn epochs_at_once(&self) -> usize {
        self.at_once
    }

    fn predict(&mut self, _: &Input) -> Result<Mat<f32>, NetError> {
        Ok(Mat::zeros(0, 0))
    }

    fn hidden_stable_ranks(&mut self) -> Result<Vec<Vec<f64>>, NetError> {
        Ok(self.state.numbers.iter().map(|&theta| vec![f64::from(theta)]).collect())
    }

    fn parameters(&self) -> Result<Vec<Parameters>, NetError> {
        Ok(Vec::new())
    }

    fn state(&self) -> Result<State, NetError> {
        Ok(self.state.clone())
    }

    fn restore(&mut self, state: &State) -> Result<(), NetError> {
        self.state = state.clone();
        Ok(())
    }
}

fn schedule(epochs: u64, curve_every: u64, mean_of_last: u64) -> Schedule {
    Schedule { epochs, curve_every, layers: true, mean_of_last }
}

fn whole(session: &mut Quadratic, schedule: &Schedule) -> History {
    fit(session, schedule, None, &mut |_, _| {}).unwrap()
}

/// Training PSNR of run 0 with rate 1/4 after `e` steps, in dB: −10 log₁₀ (2^−e)².
fn psnr_after(e: u64) -> f64 {
    20.0 * 2f64.log10() * e as f64
}

/// Compares histories such that NaNs are equal.
fn same(a: &History, b: &History) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

#[test]
fn the_mean_covers_the_errors_after_the_last_steps() {
    // Catches a window that is off by one: the mean is over epochs 8, 9 and 10, not 7, 8 and 9.
    let mut session = Quadratic::new(&[0.25, 0.25], true);
    let history = whole(&mut session, &schedule(10, 0, 3));
    let summary = &history.summaries[0];
    assert_close(summary.train_psnr, psnr_after(9), Tolerance::relative(1e-12));
    assert_close(summary.final_train_psnr, psnr_after(10), Tolerance::relative(1e-12));
    // Test error (2^−e − 1)².
    let test = |e: i32| psnr_of((1.0 - 0.5f64.powi(e)).powi(2));
    let mean = (test(8) + test(9) + test(10)) / 3.0;
    assert_close(summary.test_psnr.unwrap(), mean, Tolerance::relative(1e-12));
    assert_close(summary.final_test_psnr.unwrap(), test(10), Tolerance::relative(1e-12));
    // The training PSNRs of epochs 8, 9 and 10 are 6.02 dB apart, so their sample standard deviation is 6.02 dB.
    assert_close(summary.train_deviation, psnr_after(1), Tolerance::relative(1e-12));
    let squares: f64 = [test(8), test(9), test(10)].iter().map(|psnr| (psnr - mean).powi(2)).sum();
    let deviation = (squares / 2.0).sqrt();
    assert_close(summary.test_deviation.unwrap(), deviation, Tolerance::relative(1e-9));
    // The other run starts twice as far from the target, so its PSNR is 6.02 dB lower.
    let less = summary.train_psnr - history.summaries[1].train_psnr;
    assert_close(less, psnr_after(1), Tolerance::relative(1e-12));
    assert_eq!(summary.diverged, None);
    assert!(history.curve.is_empty());
    // Steps return the training errors, so only the last one is evaluated.
    assert_eq!((session.epoch(), session.asked), (10, [1, 3]));
}

#[test]
fn an_infinite_psnr_makes_the_deviation_nan() {
    // Catches a deviation of 0 for a run with infinite PSNRs. A rate of 1/2 reaches the target in one step.
    let history = whole(&mut Quadratic::new(&[0.5], false), &schedule(3, 0, 3));
    let summary = &history.summaries[0];
    assert_eq!(summary.train_psnr, f64::INFINITY);
    assert!(summary.train_deviation.is_nan(), "{}", summary.train_deviation);
}

#[test]
fn a_window_longer_than_the_schedule_excludes_epoch_zero() {
    let history = whole(&mut Quadratic::new(&[0.25], false), &schedule(4, 0, 100));
    // The mean is over epochs 1 to 4.
    assert_close(history.summaries[0].train_psnr, psnr_after(5) / 2.0, Tolerance::relative(1e-12));
    assert_eq!(history.summaries[0].test_psnr, None);
    assert_eq!(history.summaries[0].final_test_psnr, None);
}

#[test]
fn curve_points_belong_to_the_parameters_before_the_step() {
    let mut session = Quadratic::new(&[0.25], true);
    let history = whole(&mut session, &schedule(10, 3, 1));
    let epochs: Vec<u64> = history.curve.iter().map(|point| point.epoch).collect();
    assert_eq!(epochs, [0, 3, 6, 9]);
    for point in &history.curve {
        let theta = 1.0 + 0.5f64.powi(point.epoch as i32);
        assert_close(point.train_psnr[0], psnr_after(point.epoch), Tolerance::absolute(1e-9));
        assert_eq!(point.test_psnr, [psnr_of((theta - 2.0).powi(2))]);
        assert_eq!(point.layers, [[theta]]);
    }
    // Catches -10 log10(0) = NaN: the initial θ has a test error of 0.
    assert_eq!(history.curve[0].test_psnr, [f64::INFINITY]);
    assert_eq!(session.asked, [1, 5]);

    // Curve points in the window reuse its test errors: 10 evaluations for the window and 1 before the first step.
    let mut session = Quadratic::new(&[0.25], true);
    assert_eq!(whole(&mut session, &schedule(10, 1, 10)).curve.len(), 10);
    assert_eq!(session.asked, [1, 11]);

    // Without layers and test samples, these lists are empty.
    let plain = Schedule { layers: false, ..schedule(2, 1, 1) };
    let point = whole(&mut Quadratic::new(&[0.25], false), &plain).curve.remove(1);
    assert!(point.layers.is_empty() && point.test_psnr.is_empty());
}

#[test]
fn a_run_that_diverges_leaves_the_others_alone() {
    // θ − 1 = 2 (1 − 1e13)^e overflows f32 at e = 3, and the step of epoch 4 detects it.
    let mut session = Quadratic::new(&[0.25, 5e12], true);
    let history = whole(&mut session, &schedule(8, 1, 6));
    let alone = whole(&mut Quadratic::new(&[0.25], true), &schedule(8, 1, 6));
    let [fine, broken] = &history.summaries[..] else { panic!("two runs") };
    assert_eq!(fine, &alone.summaries[0]);
    assert_eq!((broken.diverged, session.epoch()), (Some(4), 8));
    assert!(broken.train_psnr.is_nan() && broken.final_train_psnr.is_nan());
    assert!(broken.test_psnr.unwrap().is_nan() && broken.final_test_psnr.unwrap().is_nan());
    for point in &history.curve {
        let is_over = point.epoch >= 3;
        let values = [point.train_psnr[1], point.test_psnr[1], point.layers[1][0]];
        assert!(values.iter().all(|value| value.is_nan() == is_over), "{point:?}");
        assert!(point.train_psnr[0].is_finite() && point.layers[0][0].is_finite());
    }
}

/// Catches batches of epochs that are measured at the wrong epochs, record a divergence too early, or report the
/// stable ranks of a later epoch, and a resumed fit that forgets an epoch.
#[test]
fn batches_and_resumed_fits_give_the_same_history() {
    let plain = |schedule: &Schedule| Schedule { layers: false, ..*schedule };
    for has_test in [true, false] {
        for schedule in [schedule(23, 5, 7), schedule(8, 1, 6), plain(&schedule(23, 5, 7))] {
            let expected = whole(&mut Quadratic::new(&[0.25, 5e12], has_test), &schedule);
            for at_once in [1, 2, 3, 7, 100] {
                let mut session = Quadratic::new(&[0.25, 5e12], has_test);
                session.at_once = at_once;
                let mut saved = Vec::new();
                let history = fit(&mut session, &schedule, None, &mut |done, save| {
                    saved.push((done, save().unwrap()))
                });
                assert!(same(&history.unwrap(), &expected), "{at_once} of {schedule:?}");
                for (done, bytes) in &saved {
                    let mut session = Quadratic::new(&[0.25, 5e12], has_test);
                    let mut again = Vec::new();
                    let resumed = fit(&mut session, &schedule, Some(bytes), &mut |done, save| {
                        again.push((done, save().unwrap()))
                    });
                    assert!(same(&resumed.unwrap(), &expected), "{at_once}, resumed after {done}");
                    // Later saves have the same bytes too, so a fit may be interrupted repeatedly.
                    if at_once == 1 {
                        assert!(again == saved[*done as usize..], "saved again after {done}");
                    }
                }
            }
        }
    }
}

#[test]
fn training_stops_once_all_runs_have_diverged() {
    let mut session = Quadratic::new(&[5e12, 5e19], true);
    let mut seen = Vec::new();
    let history =
        fit(&mut session, &schedule(1000, 2, 10), None, &mut |done, _| seen.push(done)).unwrap();
    let epochs: Vec<_> = history.summaries.iter().map(|summary| summary.diverged).collect();
    assert_eq!((epochs, seen), (vec![Some(4), Some(3)], vec![1, 2, 3, 4]));
    // The summary has a test PSNR, although training ended before any test error was due.
    assert!(history.summaries[0].test_psnr.unwrap().is_nan());

    // Only the error after the last step is infinite, and no later step could record it.
    let history = whole(&mut Quadratic::new(&[5e12], false), &schedule(3, 0, 1));
    assert_eq!(history.summaries[0].diverged, Some(3));
    assert!(history.summaries[0].train_psnr.is_nan());
}

/// Bytes of a fit of two runs, saved after 7 of 9 epochs.
fn saved() -> (Schedule, Vec<u8>) {
    let schedule = schedule(9, 2, 4);
    let mut bytes = Vec::new();
    let mut session = Quadratic::new(&[0.25, 0.1], true);
    fit(&mut session, &schedule, None, &mut |done, save| {
        if done == 7 {
            bytes = save().unwrap();
        }
    })
    .unwrap();
    (schedule, bytes)
}

fn reason(schedule: &Schedule, bytes: &[u8], runs: usize) -> String {
    match saved::decode(bytes, schedule, runs) {
        Err(NetError::State(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn forged_bytes_never_panic() {
    // Catches an allocation of an unchecked length, and a read past the end.
    let (schedule, bytes) = saved();
    saved::decode(&bytes, &schedule, 2).unwrap();
    for position in 0..bytes.len() {
        for value in [0, 0x7f, 0xff] {
            let mut forged = bytes.clone();
            forged[position] = value;
            // A changed number may be accepted, and a changed length is refused. Neither may panic.
            let _ = saved::decode(&forged, &schedule, 2);
        }
        reason(&schedule, &bytes[..position], 2);
    }
    let mut newer = bytes.clone();
    newer[0] = 200;
    assert!(reason(&schedule, &newer, 2).contains("version 200"));
    assert!(reason(&schedule, &[&bytes[..], &[0]].concat(), 2).contains("after its end"));
    let forged = |change: fn(&mut State, &mut Measured)| {
        let (mut state, mut measured) = saved::decode(&bytes, &schedule, 2).unwrap();
        change(&mut state, &mut measured);
        reason(&schedule, &saved::encode(&schedule, &state, &measured).unwrap(), 2)
    };
    let further = forged(|state, _| state.progress.epoch = 10);
    assert!(further.contains("10 completed epochs, but the schedule has 9"), "{further}");
    assert!(forged(|_, measured| measured.train.sum.clear()).contains("one per run"));
    assert!(forged(|_, measured| measured.curve[0].test_psnr.push(0.0)).contains("one per run"));
}

#[test]
fn bytes_of_another_fit_are_refused_with_a_reason() {
    let (schedule, bytes) = saved();
    let longer = Schedule { epochs: 10, ..schedule };
    assert!(reason(&longer, &bytes, 2).contains("another schedule"));
    assert!(reason(&schedule, &bytes, 3).contains("2 runs, but the session has 3"));

    let mut session = Quadratic::new(&[0.25], false);
    whole(&mut session, &schedule);
    let error = fit(&mut session, &schedule, None, &mut |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("already done 9 epochs"), "{error}");
}

#[test]
fn empty_schedules_are_refused() {
    for nothing in [schedule(0, 1, 1), schedule(1, 1, 0)] {
        let error = fit(&mut Quadratic::new(&[0.25], false), &nothing, None, &mut |_, _| {});
        assert!(matches!(error, Err(NetError::Zero { .. })));
    }
}
