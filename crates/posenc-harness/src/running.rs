//! Jobs in flight, and the remaining time of running and waiting jobs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use crate::control::Control;
use crate::cost_model::{CostModel, estimate_makespan};
use crate::progress::{InFlight, UnitName, named};
use crate::queue::{Lane, Work};
use crate::unit::Unit;
use crate::worker::{Shared, lock};

pub struct Job {
    pub lane: Lane,
    pub work: Arc<Work<'static>>,
    /// State shared with its thread.
    pub control: Arc<Control>,
    pub started: Instant,
    /// Total seconds of its finished units.
    pub seconds: f64,
    /// Time and value of the first reported fraction.
    pub first: Option<(Instant, f64)>,
}

impl Job {
    /// Seconds until the job ends, from its completed fraction if known, else from the cost model.
    pub fn left(&self, cost_model: &CostModel) -> f64 {
        if let (Some((since, first)), Some(now)) = (self.first, self.control.fraction())
            && now - first > 0.01
        {
            return since.elapsed().as_secs_f64() * (1.0 - now) / (now - first);
        }
        let (in_flight, waiting) = self.control.unwritten();
        let share = (in_flight.len() + waiting.len()) as f64 / self.work.units.len().max(1) as f64;
        let all = share * self.work.seconds(cost_model);
        let elapsed = self.control.elapsed().as_secs_f64();
        // A job that exceeds its estimate will exceed it further.
        (all - elapsed).max(0.1 * elapsed)
    }
}

/// Estimated seconds until all jobs are done.
pub fn time_left(shared: &Shared, jobs: &BTreeMap<u64, Job>, workers: usize) -> f64 {
    let (queue, cost_model) = (lock(&shared.queue), lock(&shared.cost_model));
    let of = |lane: Lane, workers: usize| {
        let in_flight: Vec<f64> = (jobs.values().filter(|job| job.lane == lane))
            .map(|job| job.left(&cost_model))
            .collect();
        let waiting = queue.waiting(lane).map(|work| work.seconds(&cost_model));
        estimate_makespan(&in_flight, waiting, workers)
    };
    of(Lane::Cpu, workers).max(of(Lane::Device, 1)) + of(Lane::Alone, 1)
}

/// A unit's name.
pub fn unit_name(work: &Work<'_>, unit: &Unit) -> UnitName {
    UnitName { path: work.job.path(), signal: unit.signal.clone(), key: unit.parts.key() }
}

/// Jobs in flight, for the progress display.
pub fn in_flight(jobs: &BTreeMap<u64, Job>) -> Vec<InFlight> {
    let one = |job: &Job| {
        let units = job.control.unwritten().0;
        let signal = match units.as_slice() {
            [one] => job.work.units.get(*one).map_or("", |unit| &unit.signal).to_owned(),
            many => format!("({} signals)", many.len()),
        };
        InFlight {
            name: named(&job.work.job.path(), &signal),
            elapsed: job.started.elapsed().as_secs_f64(),
            fraction: job.control.fraction(),
        }
    };
    jobs.values().map(one).collect()
}
