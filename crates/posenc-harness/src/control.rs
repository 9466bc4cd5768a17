//! A job in flight, shared by the thread that runs it and the supervisor.
//!
//! A thread cannot be ended from outside. Trainings call `Checkpoint::is_due` after every step, which unwinds them if the job
//! must end. A job that never calls it is abandoned: another thread replaces it, and its later results are rejected.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// Reason to stop a job early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A unit exceeded its time limit.
    Timeout,
    /// An interrupt asked the whole run to stop.
    Interrupted,
}

/// Panic payload with which a training that must stop unwinds. It does not indicate a bug.
pub struct Stopped;

/// Phase of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A unit is being computed.
    Running,
    /// A unit's record is being written.
    Writing,
    /// The job was given up; later results are rejected.
    GivenUp,
    /// The job's thread has returned.
    Ended,
}

struct State {
    phase: Phase,
    /// Start time of the current unit.
    since: Instant,
    /// Which units have a record.
    written: Vec<bool>,
    /// Whether another thread has replaced the job's thread.
    is_replaced: bool,
}

/// A job in flight.
pub struct Control {
    state: Mutex<State>,
    stop: OnceLock<Stop>,
    is_saving: AtomicBool,
    /// Bits of the completed fraction of the job; NaN if unknown.
    fraction: AtomicU64,
    /// Whether the units are computed together, not one after the other.
    together: bool,
    /// Training steps since the last record.
    steps: AtomicU64,
}

impl Default for Control {
    /// A job without a supervisor.
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

    /// Asks the job to stop. The first reason wins.
    pub fn stop(&self, stop: Stop) {
        let _ = self.stop.set(stop);
    }

    /// The reason to stop, if the job must stop.
    pub fn stopped(&self) -> Option<Stop> {
        self.stop.get().copied()
    }

    /// Reports the completed fraction of the job, from 0 to 1.
    pub fn reached(&self, fraction: f64) {
        self.fraction.store(fraction.to_bits(), Ordering::Relaxed);
    }

    /// Completed fraction of the job, from 0 to 1; `None` if unknown.
    pub fn fraction(&self) -> Option<f64> {
        let fraction = f64::from_bits(self.fraction.load(Ordering::Relaxed));
        (0.0..=1.0).contains(&fraction).then_some(fraction)
    }

    /// Counts one more training step.
    pub fn count_step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Training steps since the last call.
    pub fn take_steps(&self) -> u64 {
        self.steps.swap(0, Ordering::Relaxed)
    }

    /// Marks the start (`true`) or the end (`false`) of writing a checkpoint.
    pub fn saving(&self, is_saving: bool) {
        self.is_saving.store(is_saving, Ordering::Relaxed);
    }

    /// Marks the start of writing a record. Returns `false` if the job was given up and must not write one.
    pub fn begin_record(&self) -> bool {
        let mut state = self.state();
        let is_welcome = state.phase == Phase::Running;
        if is_welcome {
            state.phase = Phase::Writing;
        }
        is_welcome
    }

    /// Marks the end of writing the record of `unit`; the next unit starts.
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

    /// Units without a record: those in flight, then those that have not started.
    pub fn unwritten(&self) -> (Vec<usize>, Vec<usize>) {
        let state = self.state();
        let mut left: Vec<usize> =
            (0..state.written.len()).filter(|i| !state.written[*i]).collect();
        let waiting = if self.together { Vec::new() } else { left.split_off(left.len().min(1)) };
        (left, waiting)
    }

    /// Time since the current unit started.
    pub fn elapsed(&self) -> Duration {
        self.state().since.elapsed()
    }

    /// Gives the job up if its current unit exceeds `limit`, and returns whether it did. A job that computes its units together gets
    /// `limit` for each of them.
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

    /// Whether another thread has replaced the job's thread.
    pub fn is_replaced(&self) -> bool {
        self.state().is_replaced
    }

    /// Marks the job's thread as replaced, unless it has returned. Returns whether another thread must start.
    pub fn replace(&self) -> bool {
        let mut state = self.state();
        state.is_replaced |= state.phase != Phase::Ended;
        state.is_replaced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a late result that is accepted, a unit that expires while its record is written, and units that fail with the current one
    /// although they have not started.
    #[test]
    fn only_the_unit_in_flight_expires() {
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
