//! Times and memory of earlier units, from which a run estimates those of other units.
//!
//! They come from earlier runs on this machine (`timings.json` in the output directory) and from the reference record. An estimate uses times
//! of the same computation ([`workload`]) only. If a training had another number of steps, its time is scaled, up to [`MAX_SCALE`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use posenc_experiments::Experiment;
use posenc_experiments::plan::Job;
use posenc_experiments::record::{ItemRecord, Provenance, Table, item};
use posenc_experiments::text::read_text;
use posenc_files::write_atomically;
use posenc_math::embedder::EmbedderSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::device;
use crate::plan::{PlannedJob, all_jobs};
use crate::span::{counted, duration};

/// Name of the file in the output directory.
const FILE: &str = "timings.json";

/// Maximum file size in bytes, ten times the size for all methods of the papers.
const MAX_BYTES: u64 = 1 << 22;

/// Largest factor by which the time of a shorter training is scaled, since part of that time does not grow with the steps.
const MAX_SCALE: f64 = 20.0;

/// Seconds of a training step in [`Timings::rank`] if the time is unknown.
const UNKNOWN_STEP: f64 = 1e-2;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Seconds of the units whose time can be estimated.
    pub seconds: f64,
    /// Number of the other units.
    pub unknown: usize,
}

impl std::iter::Sum for Estimate {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Estimate::default(), |a, b| Estimate {
            seconds: a.seconds + b.seconds,
            unknown: a.unknown + b.unknown,
        })
    }
}

impl std::fmt::Display for Estimate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Estimate { seconds, unknown: 0 } => write!(f, "about {}", duration(seconds)),
            Estimate { seconds: 0.0, .. } => f.write_str("time unknown"),
            Estimate { seconds, unknown } => {
                write!(f, "about {}, plus {} of unknown time", duration(seconds), counted(unknown))
            }
        }
    }
}

/// Sums of seconds and of units, by [`workload`] and by the number of steps.
type Times = BTreeMap<String, BTreeMap<u64, [f64; 2]>>;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    times: Times,
    /// Bytes that a job needs.
    memory: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timings {
    own: Recorded,
    reference: Recorded,
}

impl Timings {
    /// Reads what earlier runs left in `out`, and the reference records of the items of `planned`. Files that cannot be read are ignored,
    /// because only estimates use them.
    pub fn read(out: &Path, record: &Path, planned: &[PlannedJob<'_>]) -> Self {
        let text = read_text(&out.join(FILE), MAX_BYTES).unwrap_or_default();
        let own: Recorded = serde_json::from_str(&text).unwrap_or_default();
        let mut times = own.times.values().flat_map(BTreeMap::values).flatten();
        let own = if times.all(|n| *n >= 0.0) { own } else { Recorded::default() };
        Timings { own, ..Timings::of_record(record, planned) }
    }

    /// Those of the reference records of the items of `planned`, which are the same on every machine.
    pub fn of_record(record: &Path, planned: &[PlannedJob<'_>]) -> Self {
        let mut timings = Timings::default();
        let items: BTreeMap<String, &Experiment> =
            planned.iter().map(|p| (p.job.experiment.id(), p.job.experiment)).collect();
        for experiment in items.into_values() {
            let folder = item::folder(record, &experiment.paper, &experiment.item);
            if let Ok(Some((table, provenance))) = ItemRecord::read_tables(&folder) {
                timings.add_record(experiment, &table, &provenance);
            }
        }
        timings
    }

    /// Writes those of this machine for later runs. Errors are ignored.
    pub fn write(&self, out: &Path) {
        if let Ok(text) = serde_json::to_string(&self.own) {
            let _ = write_atomically(&out.join(FILE), text.as_bytes());
        }
    }

    /// Adds the seconds that `units` units of a job took together.
    pub fn add(&mut self, planned: &PlannedJob<'_>, units: usize, seconds: f64) {
        add(&mut self.own.times, &planned.job, device_of(planned), units, seconds);
    }

    /// Adds the peak memory of a job that ran alone.
    pub fn add_memory(&mut self, job: &Job<'_>, bytes: u64) {
        let most = self.own.memory.entry(memory_key(job)).or_default();
        *most = bytes.max(*most);
    }

    /// Adds a reference record. Most protocols that take long record a `time`.
    fn add_record(&mut self, experiment: &Experiment, table: &Table, provenance: &Provenance) {
        type Units<'a> = (f64, BTreeSet<(&'a str, u64)>);
        let mut measured: BTreeMap<_, Units<'_>> = BTreeMap::new();
        for row in table.rows.iter().filter(|row| row.metric == "time") {
            let name = (row.group.as_str(), row.method.as_str(), row.profile);
            let (seconds, units) = measured.entry((name, row.device.as_str())).or_default();
            // A sweep has a time for each of its values.
            *seconds += row.value;
            units.insert((&row.signal, row.seed));
        }
        let jobs = all_jobs(experiment);
        for ((name, device), (seconds, units)) in measured {
            let is_own = |job: &&Job<'_>| {
                (job.group.id.as_str(), job.variant.id.as_str(), job.recorded_profile) == name
            };
            if let Some(job) = jobs.iter().find(is_own) {
                let device = device::class_of(device);
                add(&mut self.reference.times, job, device, units.len(), seconds);
            }
        }
        if let Some(bytes) = provenance.peak_memory {
            // The peak of the process, in which as many jobs ran as there are cores. The estimate is that of the largest job of two.
            let shared_by = (provenance.cores as u64 / 2).max(1);
            self.reference.memory.insert(experiment.id(), bytes / shared_by);
        }
    }

    /// Estimated time of the units that a job runs.
    pub fn estimate(&self, planned: &PlannedJob<'_>) -> Estimate {
        let (workload, steps) = workload(&planned.job, device_of(planned));
        let known: Vec<_> = [&self.own, &self.reference]
            .into_iter()
            .filter_map(|from| from.times.get(&workload))
            .collect();
        let exact = known.iter().find_map(|times| times.get_key_value(&steps));
        // Of other lengths, the longest is the most accurate.
        let closest = || known.iter().find_map(|times| times.last_key_value());
        let unit = exact.or_else(closest).and_then(|(&of_steps, &[seconds, units])| {
            let scale = steps as f64 / of_steps as f64;
            (units > 0.0 && scale <= MAX_SCALE).then_some(seconds / units * scale)
        });
        let count = planned.to_run.len();
        match unit {
            Some(unit) => Estimate { seconds: unit * count as f64, unknown: 0 },
            None => Estimate { seconds: 0.0, unknown: count },
        }
    }

    /// Estimated seconds of the units that a job runs, for comparisons with other jobs only: also a number if the time is unknown.
    pub fn rank(&self, planned: &PlannedJob<'_>) -> f64 {
        let Estimate { seconds, unknown } = self.estimate(planned);
        let (_, steps) = workload(&planned.job, device_of(planned));
        seconds + UNKNOWN_STEP * steps as f64 * unknown as f64
    }

    /// Estimated time of jobs on `workers` workers, longest job first.
    pub fn makespan(&self, jobs: &[PlannedJob<'_>], workers: usize) -> Estimate {
        let estimates: Vec<Estimate> = jobs.iter().map(|job| self.estimate(job)).collect();
        let mut seconds: Vec<f64> = estimates.iter().map(|one| one.seconds).collect();
        seconds.sort_by(|a, b| b.total_cmp(a));
        let seconds = makespan(&[], seconds.into_iter(), workers);
        Estimate { seconds, ..estimates.into_iter().sum() }
    }

    /// Bytes that a job needs; `None` if nothing is recorded.
    pub fn memory(&self, job: &Job<'_>) -> Option<u64> {
        let own = self.own.memory.get(&memory_key(job));
        own.or_else(|| self.reference.memory.get(&job.experiment.id())).copied()
    }
}

fn device_of<'a>(planned: &'a PlannedJob<'_>) -> &'a str {
    planned.to_run.first().map_or(device::CPU, |unit| &unit.parts.device)
}

fn memory_key(job: &Job<'_>) -> String {
    format!("{}/{} {}", job.experiment.id(), job.group.id, job.recorded_profile)
}

fn add(times: &mut Times, job: &Job<'_>, device: &str, units: usize, seconds: f64) {
    let (workload, steps) = workload(job, device);
    let [all_seconds, all_units] = times.entry(workload).or_default().entry(steps).or_default();
    *all_seconds += seconds;
    *all_units += units as f64;
}

/// Everything that determines the time of a unit except the number of training steps, and this number. Groups with equal settings share it.
fn workload(job: &Job<'_>, device: &str) -> (String, u64) {
    let (data, protocol) = (job.group.data.as_ref(), job.protocol());
    let (kind, mut settings) = (protocol.name(), protocol.json());
    let steps = take_steps(&mut settings);
    let embedder = job.variant.embedder.as_ref().map(EmbedderSpec::canonical);
    let data = data.map(|data| (&data.set, &data.held_out, &data.weights));
    let all = format!("{kind} {settings} {embedder:?} {data:?} {device}");
    (blake3::hash(all.as_bytes()).to_hex()[..16].to_owned(), steps)
}

/// Settings whose numbers do not change the time of a step.
const UNTIMED: [&str; 5] = ["learning_rate", "weight_decay", "beta2", "epsilon", "gamma"];

/// Replaces the numbers of epochs or steps, and those that do not change the time, in settings, and returns the product of the former.
fn take_steps(settings: &mut Value) -> u64 {
    let Value::Object(settings) = settings else { return 1 };
    let take = |(key, value): (&String, &mut Value)| match value.as_u64() {
        Some(count) if ["epochs", "steps"].contains(&key.as_str()) => {
            *value = Value::Null;
            count.max(1)
        }
        _ if UNTIMED.contains(&key.as_str()) && value.is_number() => {
            *value = Value::Null;
            1
        }
        _ => take_steps(value),
    };
    settings.iter_mut().map(take).fold(1, u64::saturating_mul)
}

/// Seconds until the last of `workers` workers finishes if they take the waiting work in order. `in_flight` has the seconds left
/// of the jobs that they are running.
pub fn makespan(in_flight: &[f64], waiting: impl Iterator<Item = f64>, workers: usize) -> f64 {
    let mut ends = in_flight.to_vec();
    ends.resize(workers.max(in_flight.len()).max(1), 0.0);
    for seconds in waiting {
        if let Some(first) = ends.iter_mut().min_by(|a, b| a.total_cmp(b)) {
            *first += seconds;
        }
    }
    ends.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use posenc_experiments::Profile;
    use posenc_experiments::plan::jobs;
    use posenc_experiments::record::Row;
    use posenc_experiments::selector::Selectors;

    use super::*;
    use crate::queue::testing::experiment;

    const TRAINED: &str = "{ kind: network-nd, learning_rate: 0.01, epochs: 2000 }";
    const PROFILES: &str = "profiles: { quick: { reduced: a, settings: { epochs: 500 } }, smoke: { reduced: b, settings: { side: 64, epochs: 500 } } }";
    const UNKNOWN: Estimate = Estimate { seconds: 0.0, unknown: 1 };

    fn known(seconds: f64) -> Estimate {
        Estimate { seconds, unknown: 0 }
    }

    fn planned<'a>(experiment: &'a Experiment, profile: Profile, method: &str) -> PlannedJob<'a> {
        let all = jobs(std::iter::once(experiment), &Selectors::default(), profile);
        let job = all.into_iter().find(|job| job.variant.id == method).unwrap();
        PlannedJob::new(job, vec![crate::queue::testing::unit("a")])
    }

    /// Catches times of smaller images, of other settings or of another device that count, a learning rate that counts, a training whose
    /// length is ignored, and the time of a short training that is scaled to a long one although most of it may be setup.
    #[test]
    fn only_times_of_the_same_computation_count() {
        let own = experiment("a", TRAINED, &["one"], PROFILES);
        let like_own = |protocol: &str| {
            let mut other = experiment("b", protocol, &["other name"], "");
            other.groups[0].variants[0].embedder = own.groups[0].variants[0].embedder.clone();
            other
        };
        let copy = like_own(&TRAINED.replace("0.01", "0.02"));
        let narrow = like_own(&TRAINED.replace("0.01", "0.01, width: 8"));
        let long = like_own(&TRAINED.replace("2000", "40001"));
        let mut timings = Timings::default();
        let at = |timings: &Timings, profile| timings.estimate(&planned(&own, profile, "one"));
        assert_eq!(at(&timings, Profile::Paper), UNKNOWN);
        timings.add(&planned(&own, Profile::Paper, "one"), 3, 600.0);
        assert_eq!(at(&timings, Profile::Paper), known(200.0));
        assert_eq!(at(&timings, Profile::Quick), known(50.0), "a quarter of the epochs");
        assert_eq!(at(&timings, Profile::Smoke), UNKNOWN, "smaller images");
        let of = |other| timings.estimate(&planned(other, Profile::Paper, "other name"));
        assert_eq!(of(&copy), known(200.0), "another learning rate elsewhere");
        assert_eq!(of(&narrow), UNKNOWN);
        assert_eq!(of(&long), UNKNOWN, "more than 20 times as long");
        let mut on_gpu = planned(&own, Profile::Paper, "one");
        on_gpu.to_run[0].parts.device = device::GPU.to_owned();
        assert_eq!(timings.estimate(&on_gpu), UNKNOWN);
        timings.add(&planned(&own, Profile::Quick, "one"), 1, 80.0);
        assert_eq!(at(&timings, Profile::Quick), known(80.0));
        assert_eq!(at(&timings, Profile::Paper), known(200.0));
    }

    /// Catches units of unknown time that a sum hides or that count as no time in an order.
    #[test]
    fn sums_count_units_of_unknown_time() {
        let own = experiment("a", TRAINED, &["one", "two"], PROFILES);
        let mut timings = Timings::default();
        let all = ["one", "two"].map(|method| planned(&own, Profile::Paper, method));
        assert_eq!(timings.makespan(&all[..0], 2).to_string(), "about 0.0 s");
        assert_eq!(timings.makespan(&all[1..], 2).to_string(), "time unknown");
        assert_eq!(timings.rank(&all[1]), 20.0, "10 ms per epoch");
        timings.add(&all[0], 1, 7.0);
        assert_eq!(
            timings.makespan(&all, 2).to_string(),
            "about 7.0 s, plus 1 unit of unknown time"
        );
    }

    /// Catches a record whose times do not count, times of a GPU that count for the CPU, and memory that grows with the cores of the machine
    /// that measured it.
    #[test]
    fn a_reference_record_has_times_of_units() {
        let own = experiment("a", TRAINED, &["one", "two"], PROFILES);
        let row = |method: &str, metric: &str, signal: &str, x: f64, value: f64| Row {
            signal: signal.to_owned(),
            x: Some(x),
            profile: Profile::Paper,
            ..Row::new("g", method, metric, value)
        };
        let (cores, bytes) = (64, 32 << 30);
        let provenance =
            Provenance { seconds: 400.0, peak_memory: Some(bytes), cores, ..Provenance::default() };
        let [one, two] = ["one", "two"].map(|method| planned(&own, Profile::Paper, method));
        let mut timings = Timings::default();
        let mut rows = vec![
            row("one", "time", "a", 1.0, 30.0),
            row("one", "time", "a", 2.0, 50.0),
            row("one", "time", "b", 1.0, 20.0),
            row("two", "test_psnr", "a", 1.0, 20.0),
            row("two", "time", "a", 1.0, 1.0),
        ];
        rows[4].device = "NVIDIA (vulkan)".to_owned();
        timings.add_record(&own, &rows.into(), &provenance);
        assert_eq!(timings.estimate(&one), known(50.0), "both values of the sweep, of two images");
        assert_eq!(timings.estimate(&planned(&own, Profile::Quick, "one")), known(12.5));
        assert_eq!(timings.estimate(&two), UNKNOWN);
        assert_eq!(timings.memory(&one.job), Some(1 << 30));
        timings.add_memory(&one.job, 7);
        assert_eq!(timings.memory(&one.job), Some(7), "measured alone on this machine");
    }

    /// Catches times that are lost between runs, and a damaged file that causes an error or yields times.
    #[test]
    fn times_are_kept_and_damage_is_ignored() {
        let own = experiment("a", TRAINED, &["one"], PROFILES);
        let job = planned(&own, Profile::Paper, "one");
        let directory = tempfile::tempdir().unwrap();
        let read = || Timings::read(directory.path(), directory.path(), &[]);
        assert_eq!(read(), Timings::default());
        let mut timings = Timings::default();
        timings.add(&job, 1, 7.0);
        timings.add_memory(&job.job, 9);
        timings.write(directory.path());
        assert_eq!(read(), timings);
        for text in ["{\"times\":{\"a", "{\"times\":{\"a\":{\"1\":[-1,1]}},\"memory\":{}}"] {
            std::fs::write(directory.path().join(FILE), text).unwrap();
            assert_eq!(read(), Timings::default(), "{text}");
        }
    }

    /// Catches an estimate that divides the work evenly although one long job finishes last.
    #[test]
    fn the_makespan_ends_with_the_last_worker() {
        assert_eq!(makespan(&[], [10.0, 1.0, 1.0, 1.0].into_iter(), 2), 10.0);
        assert_eq!(makespan(&[5.0], [2.0, 2.0].into_iter(), 2), 5.0);
        assert_eq!(makespan(&[], [1.0; 6].into_iter(), 2), 3.0);
        assert_eq!(makespan(&[], [].into_iter(), 0), 0.0);
    }
}
