//! Times and memory of earlier units, from which a run estimates those of other units.
//!
//! They come from earlier runs on this machine (`timings.json` in the output directory) and from the reference record. An estimate uses the
//! closest match: the same method at the same profile, at any profile, the same group, the same item if it has one protocol, the same protocol.
//! Times are scaled by [`steps`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use posenc_experiments::Experiment;
use posenc_experiments::plan::Job;
use posenc_experiments::record::table::write_atomically;
use posenc_experiments::record::{ItemRecord, Provenance, Table, item};
use posenc_experiments::schema::Protocol;
use posenc_experiments::text::read_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::{PlannedJob, all_jobs};

/// Name of the file in the output directory.
const FILE: &str = "timings.json";

/// Maximum file size in bytes, ten times the size for all methods of the papers.
const MAX_BYTES: u64 = 1 << 22;

/// Seconds of a step, and of a unit, without any record of its protocol.
const UNKNOWN_STEP: f64 = 1e-3;
const UNKNOWN_UNIT: f64 = 0.05;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    /// Sums of seconds and of steps over units.
    times: BTreeMap<String, [f64; 2]>,
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
        let is_sound = own.times.values().flatten().all(|n| *n >= 0.0);
        let own = if is_sound { own } else { Recorded::default() };
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
    pub fn add(&mut self, job: &Job<'_>, units: usize, seconds: f64) {
        add(&mut self.own.times, job, units as f64 * steps(job.protocol()), seconds);
    }

    /// Adds the peak memory of a job that ran alone.
    pub fn add_memory(&mut self, job: &Job<'_>, bytes: u64) {
        let most = self.own.memory.entry(memory_key(job)).or_default();
        *most = bytes.max(*most);
    }

    /// Adds a reference record. It has times of single units for some protocols only, else the sum over an item.
    fn add_record(&mut self, experiment: &Experiment, table: &Table, provenance: &Provenance) {
        let jobs = all_jobs(experiment);
        let mut by_name = BTreeMap::new();
        for job in &jobs {
            let name = (job.group.id.as_str(), job.variant.id.as_str(), job.recorded_profile);
            by_name.entry(name).or_insert_with(|| (job, steps(job.protocol())));
        }
        let mut units = BTreeMap::new();
        for row in &table.rows {
            let name = (row.group.as_str(), row.method.as_str(), row.profile);
            let Some((job, steps)) = by_name.get(&name) else { continue };
            let unit = (name, row.signal.as_str(), row.seed);
            let (_, _, seconds) = units.entry(unit).or_insert((*job, *steps, 0.0));
            // A sweep has a time for each of its values.
            *seconds += if row.metric == "time" { row.value } else { 0.0 };
        }
        for (job, steps, seconds) in units.values().filter(|(.., seconds)| *seconds > 0.0) {
            add(&mut self.reference.times, job, *steps, *seconds);
        }
        // Steps of different protocols cannot be added.
        let kinds: BTreeSet<&str> = jobs.iter().map(|job| job.protocol().name()).collect();
        if !units.is_empty() && provenance.units > 0 && kinds.len() == 1 {
            let all: f64 = units.values().map(|(_, steps, _)| steps).sum();
            let of_run = all / units.len() as f64 * provenance.units as f64;
            self.reference.times.insert(experiment.id(), [provenance.seconds, of_run]);
        }
        if let Some(bytes) = provenance.peak_memory {
            // The peak of the process, in which as many jobs ran as there are cores. The estimate is that of the largest job of two.
            let shared_by = (provenance.cores as u64 / 2).max(1);
            self.reference.memory.insert(experiment.id(), bytes / shared_by);
        }
    }

    /// Estimated seconds of the units that a job runs.
    pub fn seconds(&self, planned: &PlannedJob<'_>) -> f64 {
        let job = &planned.job;
        let keys = keys(job);
        let [own, reference] = [&self.own, &self.reference].map(|from| &from.times);
        let exact = own.get(&keys[0]).or_else(|| reference.get(&keys[0])).copied();
        let sum = |key: &String| {
            let found = [own.get(key), reference.get(key)].into_iter().flatten();
            found.copied().reduce(|a, b| [a[0] + b[0], a[1] + b[1]])
        };
        let known = exact.or_else(|| keys[1..].iter().find_map(sum)).filter(|[_, n]| *n > 0.0);
        let steps = steps(job.protocol());
        let unit = match known {
            Some([seconds, of_steps]) => seconds / of_steps * steps,
            None => (UNKNOWN_STEP * steps).max(UNKNOWN_UNIT),
        };
        planned.to_run.len() as f64 * unit
    }

    /// Estimated seconds of jobs on `workers` workers, longest job first.
    pub fn makespan(&self, jobs: &[PlannedJob<'_>], workers: usize) -> f64 {
        let mut seconds: Vec<f64> = jobs.iter().map(|job| self.seconds(job)).collect();
        seconds.sort_by(|a, b| b.total_cmp(a));
        makespan(&[], seconds.into_iter(), workers)
    }

    /// Bytes that a job needs; `None` if nothing is recorded.
    pub fn memory(&self, job: &Job<'_>) -> Option<u64> {
        let own = self.own.memory.get(&memory_key(job));
        own.or_else(|| self.reference.memory.get(&job.experiment.id())).copied()
    }
}

/// Under which names the times of a job are recorded, the closest first.
fn keys(job: &Job<'_>) -> [String; 5] {
    let (path, item) = (job.path(), job.experiment.id());
    let group = format!("{item}/{}", job.group.id);
    let kind = job.protocol().name().to_owned();
    [format!("{path} {}", job.recorded_profile), path, group, item, kind]
}

fn memory_key(job: &Job<'_>) -> String {
    format!("{}/{} {}", job.experiment.id(), job.group.id, job.recorded_profile)
}

fn add(times: &mut BTreeMap<String, [f64; 2]>, job: &Job<'_>, steps: f64, seconds: f64) {
    for key in keys(job) {
        let [all_seconds, all_steps] = times.entry(key).or_default();
        *all_seconds += seconds;
        *all_steps += steps;
    }
}

/// A number that the time of a unit is roughly proportional to: its training steps, the values that it covers and, if a profile reduces
/// the signals, pixels.
pub fn steps(protocol: &Protocol) -> f64 {
    let text = protocol.canonical();
    let settings = text.split_once(' ').and_then(|(_, json)| serde_json::from_str(json).ok());
    settings.map_or(1.0, |settings| product(&settings))
}

fn product(settings: &Value) -> f64 {
    let factor = |(key, value): (&String, &Value)| match (key.as_str(), value.as_f64()) {
        ("epochs" | "steps" | "iterations" | "repeats", Some(count)) => count.max(1.0),
        // Signals have up to 512 positions on an axis.
        ("side", Some(side)) => (side / 512.0).powi(2),
        _ => product(value),
    };
    match settings {
        Value::Object(settings) => settings.iter().map(factor).product(),
        Value::Array(values) => values.iter().map(product).sum::<f64>().max(1.0),
        _ => 1.0,
    }
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
    const PROFILES: &str = "profiles: { quick: { reduced: a, settings: { epochs: 500 } }, smoke: { reduced: b, settings: { side: 64, epochs: 5 } } }";

    fn planned<'a>(experiment: &'a Experiment, profile: Profile, method: &str) -> PlannedJob<'a> {
        let all = jobs(std::iter::once(experiment), &Selectors::default(), profile);
        let job = all.into_iter().find(|job| job.variant.id == method).unwrap();
        PlannedJob::new(job, vec![crate::queue::testing::unit("a")])
    }

    /// Catches estimates that ignore the steps of a profile, that prefer a distant match to a close one, or that are 0 for something
    /// unknown.
    #[test]
    fn the_closest_record_counts_and_is_scaled_by_steps() {
        let own = experiment("a", TRAINED, &["one", "two"], PROFILES);
        let other = experiment("b", TRAINED, &["three"], PROFILES);
        let mut timings = Timings::default();
        let at = |timings: &Timings, method, profile| {
            let experiment = if method == "three" { &other } else { &own };
            timings.seconds(&planned(experiment, profile, method))
        };
        assert_eq!(at(&timings, "one", Profile::Paper), 2.0, "a millisecond a step");
        timings.add(&planned(&own, Profile::Paper, "one").job, 3, 600.0);
        assert_eq!(at(&timings, "one", Profile::Paper), 200.0);
        assert_eq!(at(&timings, "one", Profile::Quick), 50.0);
        assert_eq!(at(&timings, "one", Profile::Smoke), 0.5 / 64.0, "fewer steps and pixels");
        for method in ["two", "three"] {
            assert_eq!(at(&timings, method, Profile::Quick), 50.0, "{method}");
        }
        timings.add(&planned(&own, Profile::Quick, "one").job, 1, 80.0);
        assert_eq!(at(&timings, "one", Profile::Quick), 80.0);
        assert_eq!(at(&timings, "one", Profile::Paper), 200.0);
    }

    /// Catches a record whose times do not count, and memory that grows with the cores of the machine that measured it.
    #[test]
    fn a_reference_record_has_times_of_units_or_of_the_item() {
        let own = experiment("a", TRAINED, &["one", "two"], PROFILES);
        let row = |method: &str, metric: &str, x: f64, value: f64| Row {
            signal: "image-00".to_owned(),
            x: Some(x),
            profile: Profile::Paper,
            ..Row::new("g", method, metric, value)
        };
        let (cores, bytes) = (64, 32 << 30);
        let provenance = Provenance {
            units: 2,
            seconds: 400.0,
            peak_memory: Some(bytes),
            cores,
            ..Provenance::default()
        };
        let mut timings = Timings::default();
        let rows = vec![row("one", "test_psnr", 1.0, 20.0), row("two", "test_psnr", 1.0, 20.0)];
        timings.add_record(&own, &Table { rows: rows.clone() }, &provenance);
        let one = planned(&own, Profile::Quick, "one");
        assert_eq!(timings.seconds(&one), 50.0, "the mean of the item");
        assert_eq!(timings.memory(&one.job), Some(1 << 30));
        let times = vec![row("one", "time", 1.0, 30.0), row("one", "time", 2.0, 50.0)];
        timings.add_record(&own, &Table { rows: [rows, times].concat() }, &provenance);
        assert_eq!(timings.seconds(&one), 20.0, "both values of the sweep");
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
        timings.add(&job.job, 1, 7.0);
        timings.add_memory(&job.job, 9);
        timings.write(directory.path());
        assert_eq!(read(), timings);
        for text in ["{\"times\":{\"a", "{\"times\":{\"network-nd\":[-1,1]},\"memory\":{}}"] {
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
