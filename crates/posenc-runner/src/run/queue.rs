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

#[cfg(test)]
mod tests {
    use posenc_experiments::plan::jobs;
    use posenc_experiments::selector::Selectors;
    use posenc_experiments::{Experiment, Profile};

    use super::*;

    /// An experiment with so many claims and one group with a method per cost.
    fn experiment(item: &str, claims: usize, kind: &str, costs: &[f64]) -> Experiment {
        let claims: String = (0..claims)
            .map(|i| {
                format!(
                    "  - {{ id: c{i}, says: a, source: a, check: {{ kind: value, of: {{ group: g, metric: m }}, expect: 1, tolerance: {{ absolute: 1 }} }} }}\n"
                )
            })
            .collect();
        let embedder = match kind == RANK {
            true => ", embedder: { kind: gaussian, dimension: 8, sigma: 0.1 }",
            false => "",
        };
        let variants: Vec<String> =
            (0..costs.len()).map(|i| format!("{{ id: v{i}{embedder} }}")).collect();
        let text = format!(
            "paper: p\nitem: {item}\nkind: extra\ntitle: a\nshows: a\ngroups:\n  - id: g\n    protocol: {{ {kind} }}\n    variants: [{}]\n{}{claims}",
            variants.join(", "),
            if claims.is_empty() { "" } else { "claims:\n" }
        );
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.yaml");
        std::fs::write(&file, text).unwrap();
        Experiment::read(&file).unwrap_or_else(|e| panic!("{e}"))
    }

    fn work<'a>(experiment: &'a Experiment, costs: &[f64]) -> Vec<Work<'a>> {
        let jobs = jobs(std::iter::once(experiment), &Selectors::default(), Profile::Quick);
        let one = |(job, cost): (Job<'a>, &f64)| Work { job, units: Vec::new(), cost: *cost };
        jobs.into_iter().zip(costs).map(one).collect()
    }

    const RANK: &str = "kind: stable-rank, samples: [4]";

    /// Catches a budget that begins what does not fit, whose order is not that of verdicts, and an item that takes time from
    /// one that could be done as a whole.
    #[test]
    fn with_a_budget_whole_items_come_first_by_seconds_per_claim() {
        let costs = [&[30.0, 10.0][..], &[8.0, 2.0], &[100.0, 1.0], &[500.0]];
        let experiments = [
            // 10 s a claim, 5 s a claim, does not fit whole, fits not at all.
            experiment("a", 4, RANK, costs[0]),
            experiment("b", 2, RANK, costs[1]),
            experiment("c", 0, RANK, costs[2]),
            experiment("d", 9, RANK, costs[3]),
        ];
        let all = experiments.iter().zip(costs).flat_map(|(e, c)| work(e, c)).collect();
        let pace = Pace::default();
        // Two workers of 51 s: 102 s, of which a and b take 50.
        let mut queue = Queue::new(all, Some(51.0), 2, &pace);
        let mut order = Vec::new();
        while let Some(work) = queue.next(Lane::Cpu, 51.0, &pace) {
            order.push((work.job.experiment.item.clone(), work.cost));
        }
        let expected = [("b", 8.0), ("b", 2.0), ("a", 30.0), ("a", 10.0), ("c", 1.0)];
        assert_eq!(order, expected.map(|(item, cost)| (item.to_owned(), cost)));
        assert_eq!(queue.waiting(Lane::Cpu).count(), 2);
        // What such jobs took so far decides, not what was estimated.
        let mut slow = Pace::default();
        slow.add("stable-rank", 1.0, 100.0);
        let all = work(&experiments[1], costs[1]);
        assert!(Queue::new(all, Some(51.0), 2, &slow).next(Lane::Cpu, 51.0, &slow).is_none());
    }

    /// Catches time that jobs which run alone at the end need and do not get, a queue that is closed and hands out, and the
    /// usual order.
    #[test]
    fn jobs_that_run_alone_keep_their_time() {
        let clock = "kind: complexity, scheme: separable, axes: 2, sizes: [16, 24], repeats: 1";
        let experiments =
            [experiment("a", 9, clock, &[20.0]), experiment("b", 0, RANK, &[15.0, 40.0])];
        let all = |costs: [&[f64]; 2]| -> Vec<Work<'_>> {
            experiments.iter().zip(costs).flat_map(|(e, c)| work(e, c)).collect()
        };
        let pace = Pace::default();
        let mut queue = Queue::new(all([&[20.0], &[15.0, 40.0]]), Some(30.0), 1, &pace);
        assert!(queue.next(Lane::Cpu, 30.0, &pace).is_none(), "15 s of 30 where 20 s are kept");
        assert_eq!(queue.next(Lane::Alone, 30.0, &pace).unwrap().cost, 20.0);
        let mut queue = Queue::new(all([&[20.0], &[15.0, 40.0]]), None, 1, &pace);
        assert_eq!(queue.next(Lane::Cpu, 0.0, &pace).unwrap().cost, 40.0, "the longest first");
        queue.close();
        assert!(queue.next(Lane::Cpu, 0.0, &pace).is_none());
    }
}
