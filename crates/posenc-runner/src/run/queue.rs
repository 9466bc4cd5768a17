//! Which job is next.
//!
//! Without a budget the longest job is first: the last worker then does not end long after the others.
//!
//! With a budget what gives verdicts soonest is first. Items are ordered by their seconds per claim. Those that fit as a whole
//! into what is left of the workers' time are taken in this order, each with its longest jobs first; jobs of the others follow,
//! the shortest first. No job starts that would not end within the budget, by what such jobs took so far; time that jobs which
//! run alone need at the end is kept for them.

use std::collections::{BTreeMap, VecDeque};

use posenc_experiments::plan::Job;

use super::pace::Pace;
use super::plan::Unit;
use crate::device;

/// Units of one job that must run.
#[derive(Clone)]
pub struct Work<'a> {
    /// The job.
    pub job: Job<'a>,
    /// The units.
    pub units: Vec<Unit>,
    /// Estimated seconds on one core.
    pub cost: f64,
}

impl Work<'_> {
    /// The kind of protocol, by which times are foretold.
    pub fn kind(&self) -> &'static str {
        self.job.protocol().name()
    }
}

/// Who runs a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// One of the workers.
    Cpu,
    /// The worker of the device, which does one job at a time, beside those of the CPU.
    Device,
    /// One worker, when all others are done: jobs that read the clock.
    Alone,
}

impl Lane {
    /// The lane of a job.
    pub fn of(work: &Work<'_>) -> Lane {
        if work.job.protocol().measures_time() {
            Lane::Alone
        } else if work.units.iter().any(|unit| unit.parts.device != device::CPU) {
            Lane::Device
        } else {
            Lane::Cpu
        }
    }
}

/// A job that waits.
struct Waiting<'a> {
    work: Work<'a>,
    /// Whether its whole item fits into the budget.
    is_admitted: bool,
}

/// Jobs that wait.
pub struct Queue<'a> {
    lanes: BTreeMap<Lane, VecDeque<Waiting<'a>>>,
    has_budget: bool,
    is_closed: bool,
}

impl<'a> Queue<'a> {
    /// Puts jobs in order; `budget` is the seconds that each of the `workers` has.
    pub fn new(work: Vec<Work<'a>>, budget: Option<f64>, workers: usize, pace: &Pace) -> Self {
        let ordered = match budget {
            None => {
                let mut work: Vec<Waiting<'a>> =
                    work.into_iter().map(|work| Waiting { work, is_admitted: true }).collect();
                work.sort_by(|a, b| b.work.cost.total_cmp(&a.work.cost));
                work
            }
            Some(seconds) => by_verdicts(work, seconds * workers as f64, workers, pace),
        };
        let mut lanes: BTreeMap<Lane, VecDeque<Waiting<'a>>> = BTreeMap::new();
        for waiting in ordered {
            lanes.entry(Lane::of(&waiting.work)).or_default().push_back(waiting);
        }
        Queue { lanes, has_budget: budget.is_some(), is_closed: false }
    }

    /// The next job of a lane that fits into the seconds left; they count with a budget only.
    pub fn next(&mut self, lane: Lane, left: f64, pace: &Pace) -> Option<Work<'a>> {
        if self.is_closed {
            return None;
        }
        let kept = match lane {
            Lane::Alone => 0.0,
            _ => self.admitted_alone(pace),
        };
        let has_budget = self.has_budget;
        let jobs = self.lanes.get_mut(&lane)?;
        let fits = |waiting: &Waiting<'_>| {
            let kept = if waiting.is_admitted { 0.0 } else { kept };
            !has_budget || pace.seconds(waiting.work.kind(), waiting.work.cost) <= left - kept
        };
        let place = jobs.iter().position(fits)?;
        jobs.remove(place).map(|waiting| waiting.work)
    }

    fn admitted_alone(&self, pace: &Pace) -> f64 {
        let alone = self.lanes.get(&Lane::Alone).into_iter().flatten();
        alone
            .filter(|waiting| waiting.is_admitted)
            .map(|waiting| pace.seconds(waiting.work.kind(), waiting.work.cost))
            .sum()
    }

    /// Puts back what is left of a job, as the next one.
    pub fn put_back(&mut self, work: Work<'a>) {
        let lane = Lane::of(&work);
        self.lanes.entry(lane).or_default().push_front(Waiting { work, is_admitted: true });
    }

    /// No further job is handed out.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Jobs of a lane that wait, in order.
    pub fn waiting(&self, lane: Lane) -> impl Iterator<Item = &Work<'a>> {
        self.lanes.get(&lane).into_iter().flatten().map(|waiting| &waiting.work)
    }
}

/// Items by seconds per claim; those that fit whole first, then the jobs of the others.
fn by_verdicts<'a>(
    work: Vec<Work<'a>>,
    capacity: f64,
    workers: usize,
    pace: &Pace,
) -> Vec<Waiting<'a>> {
    struct Item<'a> {
        work: Vec<Work<'a>>,
        claims: usize,
        seconds: f64,
    }
    let mut items: BTreeMap<String, Item<'a>> = BTreeMap::new();
    for work in work {
        let experiment = work.job.experiment;
        let claims = experiment.claims.len().max(1);
        let item = items.entry(experiment.id()).or_insert_with(|| Item {
            work: Vec::new(),
            claims,
            seconds: 0.0,
        });
        // Beside a job that runs alone the other workers have nothing to do.
        let share = if Lane::of(&work) == Lane::Alone { workers as f64 } else { 1.0 };
        item.seconds += share * pace.seconds(work.kind(), work.cost);
        item.work.push(work);
    }
    let mut items: Vec<Item<'a>> = items.into_values().collect();
    let per_claim = |item: &Item<'_>| item.seconds / item.claims as f64;
    items.sort_by(|a, b| per_claim(a).total_cmp(&per_claim(b)));
    let mut left = capacity;
    let (mut ordered, mut others) = (Vec::new(), Vec::new());
    for mut item in items {
        let is_admitted = item.seconds <= left;
        if is_admitted {
            left -= item.seconds;
            item.work.sort_by(|a, b| b.cost.total_cmp(&a.cost));
        }
        let list = if is_admitted { &mut ordered } else { &mut others };
        list.extend(item.work.into_iter().map(|work| Waiting { work, is_admitted }));
    }
    let seconds = |waiting: &Waiting<'_>| pace.seconds(waiting.work.kind(), waiting.work.cost);
    others.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
    ordered.extend(others);
    ordered
}
