//! A run is killed repeatedly until it is done: nothing may be lost or changed. A fixed seed sets the times of the kills. At least
//! one kill in six comes between two records of one training, as soon as the first of them is on disk.
//!
//! The results are compared with those of an undisturbed run:
//! - raw records: all bytes except the checksum and machine-dependent values (`seconds`, `peak_memory`, and metrics of the machine);
//! - pictures: all bytes;
//! - tables: all rows except those of machine-dependent metrics.
//!
//! After every kill, each file of a record that existed before the process started has the same bytes, including machine-dependent
//! values. A training with a record on disk is never repeated: units that are written later take no training step.
//!
//! POSENC_KILLS=200 sets the number of kills.

use crate::common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{EXPERIMENT, Repository, begun, contents, files_in, finished, records};

const KILLS: usize = 8;

/// 74 units of 6 protocols: closed forms, ranks, trainings with and without checkpoints.
fn experiment() -> String {
    let variants = |n: usize, dimension: usize| -> String {
        (0..n)
            .map(|i| {
                format!("      - {{ id: v{i}, embedder: {{ kind: gaussian, dimension: {dimension}, sigma: 0.0{} }} }}\n", i + 1)
            })
            .collect()
    };
    let group = |id: &str, data: &str, protocol: &str, variants: String, signals: usize| {
        let (data, signals) = match data {
            "" => (String::new(), String::new()),
            set => (format!("    data: {{ set: {set} }}\n"), format!(", signals: {signals}")),
        };
        format!(
            "  - id: {id}\n{data}    protocol: {{ {protocol} }}\n    variants:\n{variants}    profiles: {{ quick: {{ reduced: a test{signals} }} }}\n"
        )
    };
    let mut text = String::from(
        "paper: extensions\nitem: mexican-hat\nkind: extra\ntitle: A test\nshows: A test\ngroups:\n",
    );
    text += &group("rank", "", "kind: stable-rank, samples: [4, 64, 256]", variants(9, 256), 0);
    text += &group("values", "", "kind: singular-values, points: 128", variants(6, 128), 0);
    text += &group("distance", "", "kind: distance, displacements: [0, 0.1]", variants(9, 64), 0);
    text += &group(
        "images",
        "embedded-images",
        "kind: closed-form, side: 64, step: 2",
        variants(8, 64),
        4,
    );
    text += &group(
        "grid",
        "embedded-images",
        "kind: network-nd, side: 32, encoding: complex, learning_rate: 0.1, epochs: 6000, pictures: true",
        variants(2, 32),
        3,
    );
    text += &group(
        "lines",
        "embedded-images",
        "kind: network-1d, lines: { rows: [3] }, learning_rate: 1e-3, epochs: 4000, repeats: 2, curve_every: 5",
        variants(2, 1024),
        UNITS_OF_TRAINING,
    );
    text += &group(
        "deep",
        "embedded-images",
        "kind: network-nd, side: 32, depth: 2, width: 32, learning_rate: 0.01, epochs: 8000",
        variants(1, 16),
        2,
    );
    text += "  - id: model\n    seeds: 2\n    protocol: { kind: image-model, side: 8, levels: 8, held_out: 8, layers: 1, width: 16, heads: 2, feed_forward: 16, batch: 4, steps: 600, learning_rate: 0.01, warm_up: 2, measure_every: 200, encoding: { features: fourier, learned: true, gamma: 1 } }\n    variants: [{ id: one }]\n    profiles: { quick: { reduced: a test } }\n";
    text
}

/// The next pseudorandom number below `n` (SplitMix64).
fn draw(state: &mut u64, n: u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) % n
}

fn wanted() -> usize {
    let wanted = std::env::var("POSENC_KILLS").ok();
    wanted.map_or(KILLS, |n| n.parse().expect("POSENC_KILLS: a number"))
}

/// When a run is killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    /// This long after the start.
    Any(Duration),
    /// This long after its first unit started.
    Running(Duration),
    /// When the first record of a training of several units is on disk.
    BetweenRecords,
}

/// Trainings of several units with the number of their records; each has [`UNITS_OF_TRAINING`] units.
fn trainings(raw: &Path) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for file in files_in(raw, "json") {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if let Some(method) = name.strip_prefix("lines.").and_then(|rest| rest.get(..2)) {
            *found.entry(format!("extensions/mexican-hat/lines/{method}")).or_default() += 1;
        }
    }
    found
}

const UNITS_OF_TRAINING: usize = 4;

/// Trainings with some of their records on disk.
fn partly_recorded(raw: &Path) -> Vec<String> {
    let all = trainings(raw).into_iter();
    all.filter(|(_, records)| *records < UNITS_OF_TRAINING).map(|(path, _)| path).collect()
}

#[derive(Debug, Default)]
struct Counts {
    kills: usize,
    /// Kills between the records of a training.
    between: usize,
    /// Units that were written from a checkpoint whose training was complete.
    without_training: usize,
    /// Processes that resumed a training.
    resumed: usize,
}

/// Whether a unit with this name, a path and a signal, is of the path.
fn is_of(name: &str, path: &str) -> bool {
    name.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Starts a run and kills it at a moment; returns whether the run was done before.
fn run_until(
    repository: &Repository,
    out: &str,
    moment: Option<Moment>,
    counts: &mut Counts,
) -> bool {
    let raw = repository.path().join(out).join("raw");
    let (before, incomplete) = (contents(&raw), partly_recorded(&raw));
    let recorded = trainings(&raw);
    let mut child = repository.start_verbose(&["reproduce", "--out", out]);
    let started = Instant::now();
    let mut first_unit = None;
    let is_over = loop {
        if child.try_wait().unwrap().is_some() {
            break true;
        }
        let is_time = match moment {
            None => false,
            Some(Moment::Any(delay)) => started.elapsed() >= delay,
            Some(Moment::Running(delay)) => {
                if first_unit.is_none() && begun(&repository.read("log")).count() > 0 {
                    first_unit = Some(Instant::now());
                }
                first_unit.is_some_and(|since| since.elapsed() >= delay)
            }
            Some(Moment::BetweenRecords) => trainings(&raw).iter().any(|(path, records)| {
                *records < UNITS_OF_TRAINING && recorded.get(path).is_none_or(|n| n < records)
            }),
        };
        if is_time {
            child.kill().unwrap();
            break false;
        }
        if moment != Some(Moment::BetweenRecords) {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let status = child.wait().unwrap();
    let stderr = repository.read("log");
    counts.resumed += usize::from(stderr.contains("resumes"));
    if is_over {
        assert!(status.success(), "{stderr}");
    } else {
        counts.kills += 1;
        let now = trainings(&raw);
        let grew = |path: &String| recorded.get(path).is_none_or(|n| *n < now[path]);
        counts.between += usize::from(partly_recorded(&raw).iter().any(grew));
    }
    for (name, steps) in finished(&stderr) {
        if incomplete.iter().any(|training| is_of(name, training)) {
            assert_eq!(steps, 0, "a training was repeated: {name}\n{stderr}");
            counts.without_training += 1;
        }
    }
    for (file, bytes) in &before {
        let now = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        assert_eq!(&now, bytes, "{} is another after {counts:?}", file.display());
    }
    is_over
}

/// Catches a record that a kill loses, changes or truncates, a result that depends on whether its unit was killed and resumed, and
/// a complete training that is repeated.
#[test]
fn killed_runs_end_with_the_bytes_of_an_undisturbed_one() {
    let wanted = wanted();
    let repository = Repository::with_experiment(&experiment());
    let started = Instant::now();
    let whole = repository.ok(&["reproduce", "--out", "whole", "--verbose"]);
    let undisturbed = started.elapsed();
    assert!(whole.stderr.contains("74 of 74 units to run"), "{}", whole.stderr);
    let whole_raw = repository.path().join("whole/raw");
    let all = trainings(&whole_raw);
    assert!(all.len() == 2 && all.values().all(|n| *n == UNITS_OF_TRAINING), "{all:?}");
    // The first unit of a training has all its steps.
    let steps = |path: &str| -> u64 {
        finished(&whole.stderr).filter(|(name, _)| is_of(name, path)).map(|(_, steps)| steps).sum()
    };
    assert!(all.keys().all(|path| steps(path) >= 4000), "steps are not counted");
    let expected = records(&whole_raw);
    let rows = repository.rows("whole");
    // Some kills come early, others after a training had time for a checkpoint.
    let longest = (undisturbed.as_millis() as u64).clamp(400, 20_000);
    let mut state = 7;
    let mut counts = Counts::default();
    let out = "killed";
    while counts.kills < wanted {
        loop {
            let part = [longest / 10, longest / 3, longest][draw(&mut state, 3) as usize];
            let delay = Duration::from_millis(draw(&mut state, part.max(1)));
            let moment = match counts.kills {
                kills if kills >= wanted => None,
                kills if 4 * counts.between <= kills => Some(Moment::BetweenRecords),
                _ if draw(&mut state, 4) == 0 => Some(Moment::Any(delay)),
                _ => Some(Moment::Running(delay)),
            };
            if run_until(&repository, out, moment, &mut counts) {
                break;
            }
        }
        let raw = repository.path().join(out).join("raw");
        let found = records(&raw);
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (file, bytes) in &expected {
            assert_eq!(&found[file], bytes, "{} after {counts:?}", file.display());
        }
        assert_eq!(repository.rows(out), rows, "after {counts:?}");
        assert_eq!(repository.checkpoints(out), 0, "a checkpoint is left after {counts:?}");
        std::fs::remove_dir_all(repository.path().join(out)).unwrap();
    }
    assert!(6 * counts.between >= counts.kills, "too few kills between records: {counts:?}");
    assert!(counts.resumed > 0 && 2 * counts.without_training >= counts.between, "{counts:?}");
}

/// Catches a file of the reference that a kill of `reproduce --record` or `report` loses, truncates or mixes with that of another run.
#[test]
fn killed_recordings_lose_no_file_of_the_reference() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let record = ["reproduce", "--profile", "smoke", "--force", "--record"];
    repository.ok(&record);
    let started = Instant::now();
    repository.ok(&record);
    let longest = (started.elapsed().as_millis() as u64).max(100);
    let folder = repository.path().join("report");
    let (names, rows) = (contents(&folder).into_keys(), repository.rows("report"));
    let names: Vec<PathBuf> = names.collect();
    let (mut state, mut hits) = (11, 0);
    // Each takes as long as a run.
    let wanted = wanted() / 2;
    for kill in 0..wanted {
        let arguments = if kill % 3 == 0 { &["report"][..] } else { &record };
        // Pages that must be written again.
        for page in files_in(&folder, "md") {
            std::fs::write(&page, "# Another page\n").unwrap();
        }
        let mut child = repository.start(arguments);
        std::thread::sleep(Duration::from_millis(draw(&mut state, longest)));
        child.kill().unwrap();
        hits += usize::from(!child.wait().unwrap().success());
        let now = contents(&folder);
        assert!(names.iter().all(|name| now.contains_key(name)), "kill {kill} of {arguments:?}");
        assert_eq!(repository.rows("report"), rows, "kill {kill} of {arguments:?}");
        // Reads the tables, which must match their provenance.
        repository.ok(&["diff", "report/record", "report/record"]);
    }
    assert!(2 * hits >= wanted, "too few kills hit a process: {hits}");
    repository.ok(&record);
    repository.ok(&["report", "--check"]);
}
