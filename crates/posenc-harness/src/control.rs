//! What a job in flight and the run tell each other.
//!
//! A thread cannot be ended from outside. Trainings call `Checkpoint::is_due` after every step, which unwinds them if the run
//! must end. A job that never calls it ends with the process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::interrupts::Interrupts;

/// Panic payload with which a training that must stop unwinds. It does not indicate a bug.
pub struct Stopped;

#[derive(Default)]
pub struct Control {
    interrupts: Interrupts,
    end: Option<Instant>,
    /// Bits of the completed fraction of the job; 0 if unknown.
    fraction: AtomicU64,
    /// Training steps since the last record.
    steps: AtomicU64,
}

impl Control {
    /// The control of a job that these interrupts stop, or the `end` of the budget.
    pub fn new(interrupts: Interrupts, end: Option<Instant>) -> Self {
        Control { interrupts, end, ..Control::default() }
    }

    pub fn is_stopped(&self) -> bool {
        self.interrupts.asked().is_some() || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Reports the completed fraction of the job, from 0 to 1.
    pub fn reached(&self, fraction: f64) {
        self.fraction.store(fraction.to_bits(), Ordering::Relaxed);
    }

    /// Completed fraction of the job, from 0 to 1; `None` if unknown.
    pub fn fraction(&self) -> Option<f64> {
        let fraction = f64::from_bits(self.fraction.load(Ordering::Relaxed));
        (fraction > 0.0 && fraction <= 1.0).then_some(fraction)
    }

    pub fn count_step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Training steps since the last call.
    pub fn take_steps(&self) -> u64 {
        self.steps.swap(0, Ordering::Relaxed)
    }
}
