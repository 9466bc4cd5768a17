//! A job in flight, shared by the thread that runs it and the supervisor.
//!
//! A thread cannot be ended from outside. Trainings call `Checkpoint::is_due` after every step, which unwinds them if the job
//! must end. A job that never calls it ends with the process.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Panic payload with which a training that must stop unwinds. It does not indicate a bug.
pub struct Stopped;

struct State {
    /// Whether a unit's record is being written.
    is_writing: bool,
    /// Start time of the current unit.
    since: Instant,
    /// Which units have a record.
    written: Vec<bool>,
}

/// A job in flight.
pub struct Control {
    state: Mutex<State>,
    stop: AtomicBool,
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
        let state = State { is_writing: false, since: Instant::now(), written: vec![false; units] };
        Control {
            state: Mutex::new(state),
            stop: AtomicBool::new(false),
            is_saving: AtomicBool::new(false),
            fraction: AtomicU64::new(f64::NAN.to_bits()),
            together,
            steps: AtomicU64::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Asks the job to stop.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the job must stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
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

    /// Marks the start of writing a record.
    pub fn begin_record(&self) {
        self.state().is_writing = true;
    }

    /// Marks the end of writing the record of `unit`; the next unit starts.
    pub fn end_record(&self, unit: usize, is_written: bool) {
        let mut state = self.state();
        if let Some(written) = state.written.get_mut(unit) {
            *written |= is_written;
        }
        state.is_writing = false;
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

    /// Whether a record or a checkpoint is being written.
    pub fn is_writing(&self) -> bool {
        self.is_saving.load(Ordering::Relaxed) || self.state().is_writing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches units that fail with the current one although they have not started, and units of one training that are not in flight
    /// together.
    #[test]
    fn units_in_flight_are_told_from_waiting_ones() {
        let job = Control::new(3, false);
        job.begin_record();
        assert!(job.is_writing());
        job.end_record(0, true);
        assert!(!job.is_writing());
        assert_eq!(job.unwritten(), (vec![1], vec![2]));
        assert_eq!(Control::new(2, true).unwritten(), (vec![0, 1], vec![]));
    }
}
