//! Order in which jobs run.
//!
//! Items are sorted by estimated seconds per claim, cheapest first. Within an item, the longest jobs come first. The longest waiting job
//! starts out of this order once it would otherwise finish after all others.
//!
//! With a budget, this order applies only to items that fit completely into the remaining time of the workers. Jobs of the other items
//! follow, shortest first. No job starts that would exceed the budget, judged by measured times of its kind. Time is reserved for jobs that
//! run alone at the end.
//!
//! A job waits until its estimated memory is available, while smaller jobs start. A job that needs more than the whole run may use is
//! returned as refused.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use posenc_experiments::plan::Job;
use posenc_experiments::record::{Failure, UnitFailure};

use crate::cost_model::CostModel;
use crate::device;
use crate::memory::{Bytes, Fit, Memory};
use crate::plan::{PlannedJob, lookup};
use crate::protocol::Workload;
use crate::shape::SignalShape;
use crate::store::Store;
use crate::unit::Unit;

/// Units of one job that must run.
#[derive(Clone)]
pub struct Work<'a> {
    /// The job.
    pub job: Job<'a>,
    /// All units that the plan has for the job, including those with records.
    pub all: Arc<[Unit]>,
    /// The units that must run.
    pub units: Vec<Unit>,
    /// The size of its signals.
    pub shape: SignalShape,
    /// Estimated seconds on one core.
    pub cost: f64,
    /// Estimated peak memory in bytes.
    pub memory: u64,
}

impl<'a> Work<'a> {
    /// Work for these units of a planned job; `None` if there are none.
    pub fn of(planned: &PlannedJob<'a>, units: Vec<Unit>) -> Option<Self> {
        let (job, all, shape) = (planned.job.clone(), planned.units.clone(), planned.shape);
        let none = Work { job, all, units: Vec::new(), shape, cost: 0.0, memory: 0 };
        (!units.is_empty()).then(|| none.only(units))
    }

    /// The units of a plan that must run, job by job; with `force` all of them.
    pub fn pending(planned: &[PlannedJob<'a>], store: &Store, force: bool) -> Vec<Self> {
        let units = |planned: &PlannedJob<'a>| {
            let pending = lookup(planned, store, force, false).pending;
            pending.into_iter().map(|(unit, _)| unit).collect()
        };
        planned.iter().filter_map(|planned| Work::of(planned, units(planned))).collect()
    }

    /// The same job with other units.
    pub fn only(&self, units: Vec<Unit>) -> Self {
        let workload = Workload { job: &self.job, shape: self.shape, units: units.len() };
        let (cost, memory) = (workload.seconds(), workload.memory());
        Work { units, cost, memory, ..self.clone() }
    }

    /// Whether the units are computed together, so that all their records come at the end.
    pub fn emits_as_batch(&self) -> bool {
        self.job.protocol().kind().emits_as_batch
    }

    /// The kind of protocol, under which the cost model stores times.
    pub fn kind(&self) -> &'static str {
        self.job.protocol().name()
    }

    /// Estimated seconds, corrected by the cost model.
    pub fn seconds(&self, cost_model: &CostModel) -> f64 {
        cost_model.seconds(self.kind(), self.cost)
    }

    /// The failure of one of its units after `seconds`.
    pub fn failure(&self, unit: &Unit, reason: &str, seconds: f64) -> UnitFailure {
        UnitFailure {
            parts: unit.parts.clone(),
            failure: Failure {
                group: self.job.group.id.clone(),
                method: self.job.variant.id.clone(),
                signal: unit.signal.clone(),
                seed: self.job.seed_index,
                reason: reason.to_owned(),
                seconds,
            },
        }
    }
}

/// The pool of workers that runs a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// One of the CPU workers.
    Cpu,
    /// The device worker, which runs one job at a time in parallel with the CPU workers.
    Device,
    /// One worker, after all others are done, for jobs that measure time.
    Alone,
}

impl Lane {
    /// The lane of a job.
    pub fn of(work: &Work<'_>) -> Lane {
        if work.job.protocol().kind().measures_time {
            Lane::Alone
        } else if work.units.iter().any(|unit| unit.parts.device != device::CPU) {
            Lane::Device
        } else {
            Lane::Cpu
        }
    }
}

struct Waiting<'a> {
    work: Work<'a>,
    /// Whether its whole item fits into the budget.
    is_admitted: bool,
}

/// What a worker does next.
pub enum Next<'a> {
    /// Run this job.
    Run(Work<'a>),
    /// Refuse this job, because only this much memory is available.
    Refuse(Work<'a>, Bytes),
    /// Wait until other jobs return memory.
    Wait,
    /// Stop, because no further job may start.
    End,
}

/// Waiting jobs.
pub struct Queue<'a> {
    lanes: BTreeMap<Lane, VecDeque<Waiting<'a>>>,
    /// Memory budget that jobs in flight must fit into. Without a budget, memory is unlimited.
    pub memory: Memory,
    workers: usize,
    has_budget: bool,
    is_closed: bool,
}

impl<'a> Queue<'a> {
    /// Sorts jobs. `budget` is the time of each of the `workers` in seconds.
    pub fn new(
        work: Vec<Work<'a>>,
        budget: Option<f64>,
        workers: usize,
        cost_model: &CostModel,
    ) -> Self {
        let capacity = budget.map_or(f64::INFINITY, |seconds| seconds * workers as f64);
        let ordered = by_verdicts(work, capacity, workers, cost_model);
        let mut lanes: BTreeMap<Lane, VecDeque<Waiting<'a>>> = BTreeMap::new();
        for waiting in ordered {
            lanes.entry(Lane::of(&waiting.work)).or_default().push_back(waiting);
        }
        let memory = Memory::new(None);
        Queue { lanes, memory, workers, has_budget: budget.is_some(), is_closed: false }
    }

    /// Takes the next job of a lane that fits into the memory and, with a budget, into the seconds left. Its memory is reserved until
    /// [`Memory::give_back`].
    pub fn next(&mut self, lane: Lane, left: f64, cost_model: &CostModel) -> Next<'a> {
        if self.is_closed {
            return Next::End;
        }
        let kept = if lane == Lane::Alone { 0.0 } else { self.admitted_alone(cost_model) };
        let has_budget = self.has_budget;
        let Some(jobs) = self.lanes.get_mut(&lane) else { return Next::End };
        let seconds = |waiting: &Waiting<'_>| waiting.work.seconds(cost_model);
        let is_in_time = |waiting: &Waiting<'_>| {
            let kept = if waiting.is_admitted { 0.0 } else { kept };
            !has_budget || seconds(waiting) <= left - kept
        };
        let memory = self.memory;
        let in_time = || jobs.iter().enumerate().filter(|(_, waiting)| is_in_time(waiting));
        let fit = |waiting: &Waiting<'_>| memory.fit(waiting.work.memory);
        let now = || in_time().filter(|(_, waiting)| fit(waiting) == Fit::Now);
        let longest = now().max_by(|(_, a), (_, b)| seconds(a).total_cmp(&seconds(b)));
        let all: f64 = jobs.iter().map(seconds).sum();
        let is_urgent = |waiting: &Waiting<'_>| {
            !has_budget && lane == Lane::Cpu && seconds(waiting) * self.workers as f64 >= all
        };
        let now = longest.filter(|(_, waiting)| is_urgent(waiting)).or_else(|| now().next());
        let Some((place, fit)) = now.or_else(|| in_time().next()).map(|(i, w)| (i, fit(w))) else {
            return Next::End;
        };
        if fit == Fit::Later {
            return Next::Wait;
        }
        let Some(Waiting { work, .. }) = jobs.remove(place) else { return Next::End };
        self.memory.take(work.memory);
        match fit {
            Fit::Never(there) => Next::Refuse(work, there),
            _ => Next::Run(work),
        }
    }

    fn admitted_alone(&self, cost_model: &CostModel) -> f64 {
        let alone = self.lanes.get(&Lane::Alone).into_iter().flatten();
        let admitted = alone.filter(|waiting| waiting.is_admitted);
        admitted.map(|waiting| waiting.work.seconds(cost_model)).sum()
    }

    /// Puts back the rest of a job, as the next one.
    pub fn put_back(&mut self, work: Work<'a>) {
        let lane = Lane::of(&work);
        self.lanes.entry(lane).or_default().push_front(Waiting { work, is_admitted: true });
    }

    /// Closes the queue: no further job starts.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Waiting jobs of a lane, in order.
    pub fn waiting(&self, lane: Lane) -> impl Iterator<Item = &Work<'a>> {
        self.lanes.get(&lane).into_iter().flatten().map(|waiting| &waiting.work)
    }
}

/// Sorts jobs: those of items that fit completely, by seconds per claim of the item, then the others.
fn by_verdicts<'a>(
    work: Vec<Work<'a>>,
    capacity: f64,
    workers: usize,
    cost_model: &CostModel,
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
        let new = || Item { work: Vec::new(), claims, seconds: 0.0 };
        let item = items.entry(experiment.id()).or_insert_with(new);
        // While a job runs alone, the other workers are idle.
        let share = if Lane::of(&work) == Lane::Alone { workers as f64 } else { 1.0 };
        item.seconds += share * work.seconds(cost_model);
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
    let seconds = |waiting: &Waiting<'_>| waiting.work.seconds(cost_model);
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

    /// An experiment with `claims` claims and one group that has a method per cost.
    fn experiment(item: &str, claims: usize, kind: &str, costs: &[f64]) -> Experiment {
        let metric = if kind == RANK { "stable_rank" } else { "time" };
        let claims: String = (0..claims)
            .map(|i| {
                format!(
                    "  - {{ id: c{i}, says: a, source: a, check: {{ kind: value, of: {{ group: g, metric: {metric} }}, expect: 1, tolerance: {{ absolute: 1 }} }} }}\n"
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
        Experiment::read(&file, posenc_protocols::KINDS).unwrap_or_else(|e| panic!("{e}"))
    }

    fn work<'a>(experiment: &'a Experiment, costs: &[f64]) -> Vec<Work<'a>> {
        let jobs = jobs(std::iter::once(experiment), &Selectors::default(), Profile::Quick);
        let one = |(job, cost): (Job<'a>, &f64)| Work {
            job,
            all: Arc::default(),
            units: Vec::new(),
            shape: SignalShape { axes: 2, side: 512.0 },
            cost: *cost,
            memory: 10,
        };
        jobs.into_iter().zip(costs).map(one).collect()
    }

    /// The work that is next in a lane with `left` seconds left.
    fn next<'a>(queue: &mut Queue<'a>, lane: Lane, left: f64) -> Option<Work<'a>> {
        match queue.next(lane, left, &CostModel::default()) {
            Next::Run(work) => Some(work),
            _ => None,
        }
    }

    /// Item and cost of all CPU jobs, in order.
    fn order<'a>(queue: &mut Queue<'a>, left: f64) -> Vec<(&'a str, f64)> {
        let next = || next(queue, Lane::Cpu, left);
        std::iter::from_fn(next).map(|work| (&*work.job.experiment.item, work.cost)).collect()
    }

    const RANK: &str = "kind: stable-rank, samples: [4]";

    /// Catches a budget that starts jobs that do not fit, a wrong order of items, and an item that takes time from one that could run
    /// completely.
    #[test]
    fn with_a_budget_whole_items_come_first_by_seconds_per_claim() {
        let costs = [&[30.0, 10.0][..], &[8.0, 2.0], &[100.0, 1.0], &[500.0]];
        let experiments = [
            // 10 s per claim, 5 s per claim, does not fit completely, does not fit at all.
            experiment("a", 4, RANK, costs[0]),
            experiment("b", 2, RANK, costs[1]),
            experiment("c", 0, RANK, costs[2]),
            experiment("d", 9, RANK, costs[3]),
        ];
        let all = experiments.iter().zip(costs).flat_map(|(e, c)| work(e, c)).collect();
        // Two workers of 51 s have 102 s; a and b take 50 of them.
        let mut queue = Queue::new(all, Some(51.0), 2, &CostModel::default());
        let expected = [("b", 8.0), ("b", 2.0), ("a", 30.0), ("a", 10.0), ("c", 1.0)];
        assert_eq!(order(&mut queue, 51.0), expected);
        assert_eq!(queue.waiting(Lane::Cpu).count(), 2);
        // Measured times decide, not estimates.
        let mut slow = CostModel::default();
        slow.add("stable-rank", 1.0, 100.0);
        let all = work(&experiments[1], costs[1]);
        let next = Queue::new(all, Some(51.0), 2, &slow).next(Lane::Cpu, 51.0, &slow);
        assert!(matches!(next, Next::End));
    }

    /// Catches jobs that run alone at the end without reserved time, a closed queue that returns jobs, and a long job that does not start
    /// first.
    #[test]
    fn jobs_that_run_alone_keep_their_time() {
        let clock = "kind: complexity, scheme: separable, axes: 2, sizes: [16, 24], repeats: 1";
        let experiments =
            [experiment("a", 9, clock, &[20.0]), experiment("b", 0, RANK, &[15.0, 40.0])];
        let all: Vec<Work<'_>> =
            [work(&experiments[0], &[20.0]), work(&experiments[1], &[15.0, 40.0])].concat();
        let mut queue = Queue::new(all.clone(), Some(30.0), 1, &CostModel::default());
        let cpu = next(&mut queue, Lane::Cpu, 30.0);
        assert!(cpu.is_none(), "15 s of 30 where 20 s are kept");
        assert_eq!(next(&mut queue, Lane::Alone, 30.0).unwrap().cost, 20.0);
        let mut queue = Queue::new(all, None, 1, &CostModel::default());
        let longest = next(&mut queue, Lane::Cpu, 0.0).unwrap();
        assert_eq!(longest.cost, 40.0, "the longest first");
        queue.close();
        assert!(next(&mut queue, Lane::Cpu, 0.0).is_none());
    }

    /// Catches cheap verdicts that come late, and a long job that starts last and then runs alone.
    #[test]
    fn cheap_verdicts_come_first_and_a_long_job_starts_in_time() {
        let costs = [&[40.0, 2.0][..], &[6.0, 4.0], &[30.0, 30.0, 30.0]];
        let experiments = [
            // 42 s, 1 s and 45 s a claim.
            experiment("a", 1, RANK, costs[0]),
            experiment("b", 10, RANK, costs[1]),
            experiment("c", 2, RANK, costs[2]),
        ];
        let all = experiments.iter().zip(costs).flat_map(|(e, c)| work(e, c)).collect();
        let mut queue = Queue::new(all, None, 2, &CostModel::default());
        let order_of_all = order(&mut queue, 0.0);
        assert_eq!(order_of_all[..4], [("b", 6.0), ("b", 4.0), ("a", 40.0), ("a", 2.0)]);
        assert_eq!(order_of_all[4..], [("c", 30.0); 3]);
        // 50 s of two workers are left when the job of 60 s starts, before its turn.
        let costs = [&[25.0, 25.0][..], &[60.0]];
        let experiments = [experiment("a", 9, RANK, costs[0]), experiment("b", 1, RANK, costs[1])];
        let all = experiments.iter().zip(costs).flat_map(|(e, c)| work(e, c)).collect();
        let mut queue = Queue::new(all, None, 2, &CostModel::default());
        assert_eq!(order(&mut queue, 0.0)[..2], [("b", 60.0), ("a", 25.0)]);
    }

    /// Catches jobs that exceed the memory, small jobs that wait behind a large one, a large job that does not start although its memory is
    /// available, and a job that waits for memory that never becomes available.
    #[test]
    fn jobs_in_flight_fit_into_the_memory() {
        let experiment = experiment("a", 0, RANK, &[40.0, 30.0, 20.0, 10.0]);
        let mut all = work(&experiment, &[40.0, 30.0, 20.0, 10.0]);
        for (work, memory) in all.iter_mut().zip([6, 5, 4, 20]) {
            work.memory = memory;
        }
        let cost_model = CostModel::default();
        let mut queue = Queue::new(all, None, 2, &cost_model);
        queue.memory = Memory::new(Some(Bytes(10)));
        let mut run = || next(&mut queue, Lane::Cpu, 0.0).unwrap();
        let (six, four) = (run(), run());
        assert_eq!((six.memory, four.memory), (6, 4), "five do not fit beside six");
        assert!(matches!(queue.next(Lane::Cpu, 0.0, &cost_model), Next::Wait));
        queue.memory.give_back(four.memory);
        assert!(matches!(queue.next(Lane::Cpu, 0.0, &cost_model), Next::Wait));
        queue.memory.give_back(six.memory);
        let five = next(&mut queue, Lane::Cpu, 0.0).unwrap();
        assert_eq!(five.memory, 5);
        assert!(matches!(queue.next(Lane::Cpu, 0.0, &cost_model), Next::Wait));
        queue.memory.give_back(five.memory);
        let Next::Refuse(large, there) = queue.next(Lane::Cpu, 0.0, &cost_model) else { panic!() };
        assert_eq!((large.memory, there), (20, Bytes(10)));
        queue.memory.give_back(large.memory);
        assert!(matches!(queue.next(Lane::Cpu, 0.0, &cost_model), Next::End));
    }
}
