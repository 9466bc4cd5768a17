//! A job in flight, shared by the thread that runs it and the supervisor.
//!
//! A thread cannot be ended from outside. Trainings call `Checkpoint::is_due` after every step, which unwinds them if the job
//! must end. A job that never calls it is abandoned: another thread replaces it, and its later results are rejected.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// Why a job is to end before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A unit takes longer than it may.
    Timeout,
    /// The person or the system asked the whole run to end.
    Interrupted,
}

/// What unwinds a training that is to end; it is no panic.
pub struct Stopped;

/// Where the job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A unit is computed.
    Running,
    /// A unit's record is written.
    Writing,
    /// It was given up: nothing more is taken from it.
    GivenUp,
    /// Its thread has come back.
    Ended,
}

struct State {
    phase: Phase,
    /// Since when the unit in flight is computed.
    since: Instant,
    /// Which units have a record.
    written: Vec<bool>,
    /// Whether another thread has taken the place of the job's.
    is_replaced: bool,
}

/// A job in flight.
pub struct Control {
    state: Mutex<State>,
    stop: OnceLock<Stop>,
    is_saving: AtomicBool,
    /// Bits of the share that is done; NaN where it is not known.
    fraction: AtomicU64,
    /// Whether the units are computed together, not one after the other.
    together: bool,
    /// Training steps since the last record.
    steps: AtomicU64,
}

impl Default for Control {
    /// A job that nobody watches.
    fn default() -> Self {
        Control::new(0, false)
    }
}

impl Control {
    /// A job of `units` units that starts now.
    pub fn new(units: usize, together: bool) -> Self {
        let state = State {
            phase: Phase::Running,
            since: Instant::now(),
            written: vec![false; units],
            is_replaced: false,
        };
        Control {
            state: Mutex::new(state),
            stop: OnceLock::new(),
            is_saving: AtomicBool::new(false),
            fraction: AtomicU64::new(f64::NAN.to_bits()),
            together,
            steps: AtomicU64::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Asks the job to end; the first reason stays.
    pub fn stop(&self, stop: Stop) {
        let _ = self.stop.set(stop);
    }

    /// Whether the job is to end.
    pub fn stopped(&self) -> Option<Stop> {
        self.stop.get().copied()
    }

    /// Says how much of the job is done, from 0 to 1.
    pub fn reached(&self, fraction: f64) {
        self.fraction.store(fraction.to_bits(), Ordering::Relaxed);
    }

    /// How much of the job is done, where it is known.
    pub fn fraction(&self) -> Option<f64> {
        let fraction = f64::from_bits(self.fraction.load(Ordering::Relaxed));
        (0.0..=1.0).contains(&fraction).then_some(fraction)
    }

    /// The job did one more training step.
    pub fn count_step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Training steps since this was last asked.
    pub fn take_steps(&self) -> u64 {
        self.steps.swap(0, Ordering::Relaxed)
    }

    /// A checkpoint begins to be written, or has been.
    pub fn saving(&self, is_saving: bool) {
        self.is_saving.store(is_saving, Ordering::Relaxed);
    }

    /// A record is about to be written: `false` if the job was given up, and none may be.
    pub fn begin_record(&self) -> bool {
        let mut state = self.state();
        let is_welcome = state.phase == Phase::Running;
        if is_welcome {
            state.phase = Phase::Writing;
        }
        is_welcome
    }

    /// The record of a unit is on disk, or could not be written; the next unit begins.
    pub fn end_record(&self, unit: usize, is_written: bool) {
        let mut state = self.state();
        if let Some(written) = state.written.get_mut(unit) {
            *written |= is_written;
        }
        if state.phase == Phase::Writing {
            state.phase = Phase::Running;
        }
        if is_written {
            state.since = Instant::now();
        }
    }

    /// Units without a record: those in flight, and those that have not begun.
    pub fn unwritten(&self) -> (Vec<usize>, Vec<usize>) {
        let state = self.state();
        let mut left: Vec<usize> =
            (0..state.written.len()).filter(|i| !state.written[*i]).collect();
        let waiting = if self.together { Vec::new() } else { left.split_off(left.len().min(1)) };
        (left, waiting)
    }

    /// How long the unit in flight has been computed.
    pub fn elapsed(&self) -> Duration {
        self.state().since.elapsed()
    }

    /// Gives the job up if a unit has taken longer than `limit`; a job that computes its units together may take that for each.
    pub fn expire(&self, limit: Duration) -> bool {
        let mut state = self.state();
        let units = if self.together { state.written.len().max(1) as u32 } else { 1 };
        let is_over = state.since.elapsed() > limit.saturating_mul(units);
        let is_done = state.written.iter().all(|written| *written);
        if state.phase != Phase::Running || is_done || !is_over {
            return false;
        }
        state.phase = Phase::GivenUp;
        drop(state);
        self.stop(Stop::Timeout);
        true
    }

    /// Whether a record or a checkpoint is being written.
    pub fn is_writing(&self) -> bool {
        self.is_saving.load(Ordering::Relaxed) || self.state().phase == Phase::Writing
    }

    /// Reports that the job's thread has returned. Returns whether its results still count.
    pub fn end(&self) -> bool {
        let mut state = self.state();
        let counts = state.phase != Phase::GivenUp;
        state.phase = Phase::Ended;
        counts
    }

    /// Whether another thread has taken the place of the job's.
    pub fn is_replaced(&self) -> bool {
        self.state().is_replaced
    }

    /// Takes the job's place from its thread, unless that has come back: whether another is to be started.
    pub fn replace(&self) -> bool {
        let mut state = self.state();
        state.is_replaced |= state.phase != Phase::Ended;
        state.is_replaced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a late result that is taken, a unit that expires while its record is written, and units that have not begun
    /// and fail with the one in flight.
    #[test]
    fn what_expires_is_the_unit_in_flight() {
        let job = Control::new(3, false);
        assert!(!job.expire(Duration::from_secs(60)));
        assert!(job.begin_record());
        assert!(!job.expire(Duration::ZERO), "expired while its record was written");
        job.end_record(0, true);
        std::thread::sleep(Duration::from_millis(2));
        assert!(job.expire(Duration::ZERO));
        assert!(!job.expire(Duration::ZERO), "expired twice");
        assert_eq!(job.unwritten(), (vec![1], vec![2]));
        assert!(!job.begin_record(), "a late result was taken");
        assert_eq!(job.stopped(), Some(Stop::Timeout));
        assert!(job.replace() && !job.end() && job.is_replaced());
    }

    /// Catches units of one training that share the time allowance of one unit, and a training that times only one of its units.
    #[test]
    fn units_computed_together_share_their_time() {
        let job = Control::new(1000, true);
        std::thread::sleep(Duration::from_millis(20));
        assert!(!job.expire(Duration::from_millis(10)), "10 s for 1000 units");
        assert!(job.expire(Duration::ZERO));
        assert_eq!(job.unwritten().0.len(), 1000);
        assert!(!job.end() && !job.replace() && !job.is_replaced());
    }
}
