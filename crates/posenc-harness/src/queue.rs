//! Order in which jobs run.
//!
//! Jobs are sorted by the selectors of the run, in the order given. For each selector, items are sorted by estimated seconds, cheapest first.
//! Within an item, the longest jobs come first. The longest waiting job starts out of this order once it would otherwise finish after all
//! others. With a budget, the shortest jobs of a selector come first, those of unknown time last, and no job starts that would end later.
//!
//! A job waits until its memory is available, while smaller jobs start. A job without recorded memory, or that needs more than the run may
//! use, runs alone.

use std::collections::BTreeMap;

use posenc_experiments::selector::Selectors;

use crate::device;
use crate::memory::Bytes;
use crate::plan::PlannedJob;
use crate::timings::{Estimate, Timings, makespan};

/// The pool of workers that runs a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// One of the CPU workers.
    Cpu,
    /// The device worker, which runs one job at a time in parallel with the CPU workers.
    Device,
}

impl Lane {
    pub fn of(job: &PlannedJob<'_>) -> Lane {
        match job.to_run.iter().any(|unit| unit.parts.device != device::CPU) {
            true => Lane::Device,
            false => Lane::Cpu,
        }
    }
}

struct Waiting<'a> {
    job: PlannedJob<'a>,
    lane: Lane,
    /// Estimated time, and the seconds that decide the order.
    estimate: Estimate,
    rank: f64,
    memory: Option<u64>,
}

/// What a worker does next.
pub enum Next<'a> {
    /// Run this job. The number is the bytes reserved for it.
    Run(PlannedJob<'a>, u64),
    /// Wait until other jobs return memory.
    Wait,
    /// Stop, because no further job may start.
    End,
}

/// Waiting jobs, and the memory that those in flight hold.
pub struct Queue<'a> {
    waiting: Vec<Waiting<'a>>,
    workers: usize,
    limit: u64,
    held: u64,
    in_flight: usize,
    is_closed: bool,
}

impl<'a> Queue<'a> {
    /// Sorts jobs. Without a `limit`, memory is unlimited.
    pub fn new(
        jobs: Vec<PlannedJob<'a>>,
        timings: &Timings,
        workers: usize,
        limit: Option<Bytes>,
        selectors: &Selectors,
        has_budget: bool,
    ) -> Self {
        let mut waiting: Vec<Waiting<'a>> =
            jobs.into_iter().map(|job| Waiting::new(job, timings)).collect();
        let mut items: BTreeMap<String, f64> = BTreeMap::new();
        for one in &waiting {
            *items.entry(one.job.job.experiment.id()).or_default() += one.rank;
        }
        let rank = |one: &Waiting<'_>| match has_budget {
            true => (one.estimate.unknown.min(1) as f64, one.rank),
            false => (items.get(&one.job.job.experiment.id()).copied().unwrap_or(0.0), -one.rank),
        };
        waiting.sort_by(|a, b| {
            let (a, b) = (rank(a), rank(b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        waiting.sort_by_cached_key(|one| {
            let job = &one.job.job;
            let (paper, item) = (&job.experiment.paper, &job.experiment.item);
            selectors.place(paper, item, &job.group.id, &job.variant.id)
        });
        let limit = limit.map_or(u64::MAX, |limit| limit.0);
        Queue { waiting, workers, limit, held: 0, in_flight: 0, is_closed: false }
    }

    /// Takes the next job of a lane that fits into the memory and into the seconds that are left, if there is a budget.
    pub fn next(&mut self, lane: Lane, left: Option<f64>) -> Next<'a> {
        let in_time =
            |one: &Waiting<'_>| left.is_none_or(|left| left > 0.0 && one.estimate.seconds <= left);
        let is_candidate = |one: &Waiting<'_>| one.lane == lane && in_time(one);
        if self.is_closed || !self.waiting.iter().any(is_candidate) {
            return Next::End;
        }
        let fits = |one: &Waiting<'_>| {
            self.in_flight == 0 || self.held.saturating_add(one.bytes()) <= self.limit
        };
        let places = || {
            let all = self.waiting.iter().enumerate();
            all.filter(|(_, one)| is_candidate(one) && fits(one))
        };
        let all: f64 = self.of(lane).map(|one| one.rank).sum();
        let is_urgent = |one: &Waiting<'_>| {
            left.is_none() && lane == Lane::Cpu && one.rank * self.workers as f64 >= all
        };
        let longest = places().max_by(|(_, a), (_, b)| a.rank.total_cmp(&b.rank));
        let Some((place, _)) =
            longest.filter(|(_, one)| is_urgent(one)).or_else(|| places().next())
        else {
            return Next::Wait;
        };
        let one = self.waiting.remove(place);
        let bytes = one.bytes();
        self.held = self.held.saturating_add(bytes);
        self.in_flight += 1;
        Next::Run(one.job, bytes)
    }

    /// Notes that a job has ended, for which `bytes` were reserved.
    pub fn ended(&mut self, bytes: u64) {
        self.held = self.held.saturating_sub(bytes);
        self.in_flight -= 1;
    }

    /// Estimates the waiting jobs of an item again.
    pub fn estimate_again(&mut self, item: &PlannedJob<'_>, timings: &Timings) {
        for one in &mut self.waiting {
            if std::ptr::eq(one.job.job.experiment, item.job.experiment) {
                (one.estimate, one.rank) = (timings.estimate(&one.job), timings.rank(&one.job));
                one.memory = timings.memory(&one.job.job);
            }
        }
    }

    /// Puts back the rest of a job, as the next one.
    pub fn put_back(&mut self, job: PlannedJob<'a>, timings: &Timings) {
        self.waiting.insert(0, Waiting::new(job, timings));
    }

    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// The waiting jobs of a lane, in order.
    fn of(&self, lane: Lane) -> impl Iterator<Item = &Waiting<'a>> {
        self.waiting.iter().filter(move |one| one.lane == lane)
    }

    pub fn count(&self, lane: Lane) -> usize {
        self.of(lane).count()
    }

    /// Estimated time until all jobs are done; `in_flight` has that of running jobs.
    pub fn time_left(&self, in_flight: &[(Lane, Estimate)]) -> Estimate {
        let of = |lane: Lane, workers: usize| {
            let running = in_flight.iter().filter(|(own, _)| *own == lane);
            let running: Vec<f64> = running.map(|(_, estimate)| estimate.seconds).collect();
            makespan(&running, self.of(lane).map(|one| one.estimate.seconds), workers)
        };
        let seconds = of(Lane::Cpu, self.workers).max(of(Lane::Device, 1));
        let waiting = self.waiting.iter().map(|one| one.estimate);
        let all: Estimate = waiting.chain(in_flight.iter().map(|(_, estimate)| *estimate)).sum();
        Estimate { seconds, ..all }
    }
}

impl<'a> Waiting<'a> {
    fn new(job: PlannedJob<'a>, timings: &Timings) -> Self {
        let (lane, estimate, rank) = (Lane::of(&job), timings.estimate(&job), timings.rank(&job));
        Waiting { lane, estimate, rank, memory: timings.memory(&job.job), job }
    }

    /// Bytes to reserve: all if unknown.
    fn bytes(&self) -> u64 {
        self.memory.unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
pub mod testing {
    use std::path::Path;

    use posenc_experiments::Experiment;
    use posenc_experiments::record::KeyParts;
    use posenc_experiments::yaml::Document;

    use crate::unit::Unit;

    /// An experiment with a group `g` of this protocol and these methods, which have widths of their own.
    pub fn experiment(item: &str, protocol: &str, methods: &[&str], more: &str) -> Experiment {
        let sigma =
            |id: &str| item.bytes().chain(id.bytes()).fold(1, |a, b| (31 * a + u32::from(b)) % 997);
        let method = |id: &&str| {
            format!(
                "{{ id: {id}, embedder: {{ kind: gaussian, dimension: 8, sigma: 0.{:03} }} }}",
                sigma(id)
            )
        };
        let methods: Vec<String> = methods.iter().map(method).collect();
        let data = if protocol.contains("network-nd") { ", data: { set: div2k-test }" } else { "" };
        let more = if more.is_empty() { String::new() } else { format!(", {more}") };
        let text = format!(
            "paper: extensions\nitem: {item}\nkind: extra\ntitle: a\nshows: a\ngroups:\n  - {{ id: g, protocol: {protocol}, variants: [{}]{data}{more} }}\n",
            methods.join(", ")
        );
        let document = Document::parse(Path::new("a.yaml"), &text).unwrap();
        Experiment::from_document(&document, posenc_protocols::KINDS).unwrap()
    }

    pub fn unit(signal: &str) -> Unit {
        let device = crate::device::CPU.to_owned();
        let parts = KeyParts { identity: signal.to_owned(), device, ..KeyParts::default() };
        Unit { signal: signal.to_owned(), signal_index: 0, parts, data: "-".to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use posenc_experiments::plan::jobs;
    use posenc_experiments::{Experiment, Profile};

    use super::testing::{experiment, unit};
    use super::*;

    const RANK: &str = "{ kind: stable-rank, samples: [4] }";

    /// A queue of these items: a protocol, and the seconds of each method; 0 if unknown.
    fn queue<'a>(
        experiments: &'a [Experiment],
        seconds: &[&[f64]],
        memory: &[u64],
        limit: Option<Bytes>,
        selectors: &[&str],
        has_budget: bool,
    ) -> Queue<'a> {
        let mut timings = Timings::default();
        let mut all = Vec::new();
        for (experiment, seconds) in experiments.iter().zip(seconds) {
            let own = jobs(std::iter::once(experiment), &Selectors::default(), Profile::Paper);
            for (job, seconds) in own.into_iter().zip(*seconds) {
                let planned = PlannedJob::new(job, vec![unit("a")]);
                if *seconds > 0.0 {
                    timings.add(&planned, 1, *seconds);
                }
                all.push(planned);
            }
        }
        let selectors: Vec<String> = selectors.iter().map(ToString::to_string).collect();
        let selectors = Selectors::parse(&selectors).unwrap();
        let mut queue = Queue::new(all, &timings, 2, limit, &selectors, has_budget);
        for one in &mut queue.waiting {
            let place: usize = one.job.job.variant.id[1..].parse().unwrap();
            one.memory = memory.get(place).copied();
        }
        queue
    }

    fn items(all: &[(&str, &[f64])]) -> Vec<Experiment> {
        let of = |(place, (protocol, seconds)): (usize, &(&str, &[f64]))| {
            let methods: Vec<String> = (0..seconds.len()).map(|i| format!("v{i}")).collect();
            let methods: Vec<&str> = methods.iter().map(String::as_str).collect();
            experiment(&format!("item{place}"), protocol, &methods, "")
        };
        all.iter().enumerate().map(of).collect()
    }

    /// `item/method` of all jobs of a lane that start one after the other.
    fn order(queue: &mut Queue<'_>, lane: Lane, left: Option<f64>) -> Vec<String> {
        let mut found = Vec::new();
        while let Next::Run(job, bytes) = queue.next(lane, left) {
            queue.ended(bytes);
            found.push(format!("{}{}", &job.job.experiment.item[4..], job.job.variant.id));
        }
        found
    }

    /// Catches cheap items that come late, short jobs before long ones of an item, a long job that starts last and then runs alone, and
    /// jobs of another lane.
    #[test]
    fn cheap_items_come_first_and_a_long_job_starts_in_time() {
        let all: [(&str, &[f64]); 2] = [(RANK, &[40.0, 2.0]), (RANK, &[4.0, 6.0])];
        let experiments = items(&all);
        let seconds: Vec<&[f64]> = all.iter().map(|(_, seconds)| *seconds).collect();
        let new = || queue(&experiments, &seconds, &[0, 0], None, &[], false);
        let mut waiting = new();
        // 40 s of two workers exceed the sum of all jobs, so this job comes first.
        assert_eq!(order(&mut waiting, Lane::Cpu, None), ["0v0", "1v1", "1v0", "0v1"]);
        assert!(order(&mut new(), Lane::Device, None).is_empty());
        let mut closed = new();
        closed.close();
        assert!(order(&mut closed, Lane::Cpu, None).is_empty());
        let experiments = items(&[(RANK, &[5.0, 6.0, 5.0]), (RANK, &[3.0, 4.0])]);
        let mut waiting =
            queue(&experiments, &[&[5.0, 6.0, 5.0], &[3.0, 4.0]], &[0; 3], None, &[], false);
        assert_eq!(order(&mut waiting, Lane::Cpu, None)[..3], ["1v1", "1v0", "0v1"]);
    }

    /// Catches a budget that starts jobs that would end later, or long jobs first, or jobs of unknown time before others or after its end.
    #[test]
    fn with_a_budget_short_jobs_come_first() {
        let seconds: [&[f64]; 2] = [&[8.0, 0.0, 30.0, 2.0], &[10.0, 60.0]];
        let experiments = items(&[(RANK, seconds[0]), (RANK, seconds[1])]);
        let mut waiting = queue(&experiments, &seconds, &[0; 4], None, &[], true);
        assert!(order(&mut waiting, Lane::Cpu, Some(0.0)).is_empty());
        let left = waiting.time_left(&[(Lane::Cpu, Estimate { seconds: 7.0, unknown: 2 })]);
        assert_eq!(left, Estimate { seconds: 77.0, unknown: 3 });
        assert_eq!(order(&mut waiting, Lane::Cpu, Some(31.0)), ["0v3", "0v0", "1v0", "0v2", "0v1"]);
        assert_eq!(waiting.count(Lane::Cpu), 1);
    }

    /// Catches jobs of a later selector that start before those of an earlier one, with a budget or without.
    #[test]
    fn selectors_run_in_the_order_given() {
        let seconds: [&[f64]; 2] = [&[1.0, 2.0], &[3.0, 4.0]];
        let experiments = items(&[(RANK, seconds[0]), (RANK, seconds[1])]);
        let selectors = ["*/*/*/v1", "*/item1", "extensions"];
        let order_of = |has_budget| {
            let mut waiting = queue(&experiments, &seconds, &[0; 2], None, &selectors, has_budget);
            order(&mut waiting, Lane::Cpu, has_budget.then_some(60.0))
        };
        assert_eq!(order_of(true), ["0v1", "1v1", "1v0", "0v0"]);
        assert_eq!(order_of(false), ["0v1", "1v1", "1v0", "0v0"]);
    }

    /// Catches jobs that exceed the memory, small jobs that wait behind a large one, and jobs that never start because they need more
    /// than there is or because nothing is known about them.
    #[test]
    fn jobs_in_flight_fit_into_the_memory() {
        let seconds: &[f64] = &[50.0, 40.0, 30.0, 20.0, 10.0];
        let experiments = items(&[(RANK, seconds)]);
        // The last one is unknown.
        let memory = [6, 5, 4, 20];
        let mut waiting = queue(&experiments, &[seconds], &memory, Some(Bytes(10)), &[], false);
        let next = |waiting: &mut Queue<'_>| match waiting.next(Lane::Cpu, None) {
            Next::Run(job, bytes) => (job.job.variant.id.clone(), bytes),
            Next::Wait => ("wait".to_owned(), 0),
            Next::End => ("end".to_owned(), 0),
        };
        let (six, four) = (next(&mut waiting), next(&mut waiting));
        assert_eq!((six.1, four.1), (6, 4), "five do not fit beside six");
        assert_eq!(next(&mut waiting).0, "wait");
        waiting.ended(six.1);
        waiting.ended(four.1);
        for (id, bytes) in [("v1", 5), ("v3", 20), ("v4", u64::MAX)] {
            assert_eq!(next(&mut waiting), (id.to_owned(), bytes));
            assert_eq!(next(&mut waiting).0, if id == "v4" { "end" } else { "wait" });
            waiting.ended(bytes);
        }
        assert_eq!(next(&mut waiting).0, "end");
    }
}
