//! A run is killed repeatedly until it is done: nothing may be lost or changed. A fixed seed sets the times of the kills.
//!
//! The results are compared with those of an undisturbed run: raw records without machine-dependent values, pictures, and rows of tables.
//! After every kill, each file of a record that existed before the process started has the same bytes. `checkpoints.rs` tests a run that
//! ends between two records of one training.
//!
//! POSENC_KILLS=200 sets the number of kills.

use crate::common;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::{EXPERIMENT, Repository, begun, contents, files_in, records};
use posenc_math::random::{below, stream};

const KILLS: usize = 8;

/// 74 units of 6 protocols: closed forms, ranks, trainings with and without checkpoints.
fn experiment() -> String {
    let of_images = "embedded-images";
    let complex = "encoding: complex, learning_rate: 0.1, epochs: 6000, pictures: true";
    let lines =
        "lines: { rows: [3] }, learning_rate: 1e-3, epochs: 4000, repeats: 2, curve_every: 5";
    let deep = "depth: 2, width: 32, learning_rate: 0.01, epochs: 8000";
    // Name, data, protocol, variants, dimension, signals.
    let groups = [
        ("rank", "", "stable-rank, samples: [4, 64, 256]", 9, 256, 0),
        ("values", "", "singular-values, points: 128", 6, 128, 0),
        ("distance", "", "distance, displacements: [0, 0.1]", 9, 64, 0),
        ("images", of_images, "closed-form, side: 64, step: 2", 8, 64, 4),
        ("grid", of_images, &format!("network-nd, side: 32, {complex}"), 2, 32, 3),
        ("lines", of_images, &format!("network-1d, {lines}"), 2, 1024, 4),
        ("deep", of_images, &format!("network-nd, side: 32, {deep}"), 1, 16, 2),
    ];
    let mut text = String::new();
    for (id, set, protocol, variants, dimension, signals) in groups {
        let (data, signals) = match set {
            "" => (String::new(), String::new()),
            set => (format!("    data: {{ set: {set} }}\n"), format!(", signals: {signals}")),
        };
        let variants: String = (0..variants)
            .map(|i| format!("      - {{ id: v{i}, embedder: {{ kind: gaussian, dimension: {dimension}, sigma: 0.0{} }} }}\n", i + 1))
            .collect();
        text += &format!(
            "  - id: {id}\n{data}    protocol: {{ kind: {protocol} }}\n    variants:\n{variants}    profiles: {{ quick: {{ reduced: a test{signals} }} }}\n"
        );
    }
    text += "  - id: model\n    seeds: 2\n    protocol: { kind: image-model, side: 8, levels: 8, held_out: 8, layers: 1, width: 16, heads: 2, feed_forward: 16, batch: 4, steps: 600, learning_rate: 0.01, warm_up: 2, measure_every: 200, encoding: { features: fourier, learned: true, gamma: 1 } }\n    variants: [{ id: one }]\n    profiles: { quick: { reduced: a test } }\n";
    common::experiment(&text)
}

fn wanted() -> usize {
    let wanted = std::env::var("POSENC_KILLS").ok();
    wanted.map_or(KILLS, |n| n.parse().expect("POSENC_KILLS: a number"))
}

/// From when on the delay of a kill counts.
#[derive(Clone, Copy, PartialEq)]
enum Since {
    Start,
    FirstUnit,
    NewCheckpoint,
}

/// Starts a run and kills it after `delay`; returns whether the run was done before, and whether it resumed a training.
fn run_until(repository: &Repository, out: &str, delay: Duration, from: Since) -> [bool; 2] {
    let old = repository.checkpoint_files(out);
    let before = contents(&repository.path().join(out).join("raw"));
    let mut child = repository.start_verbose(&["reproduce", "--out", out]);
    let log = || repository.read("log");
    let mut since = None;
    let is_over = loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{}", log());
            break true;
        }
        let has_begun = || match from {
            Since::Start => true,
            Since::FirstUnit => begun(&log()).count() > 0,
            Since::NewCheckpoint => {
                repository.checkpoint_files(out).iter().any(|file| !old.contains(file))
            }
        };
        if since.is_none() && has_begun() {
            since = Some(Instant::now());
        }
        if since.is_some_and(|since| since.elapsed() >= delay) {
            child.kill().unwrap();
            child.wait().unwrap();
            break false;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    for (file, bytes) in &before {
        let now = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        assert_eq!(&now, bytes, "{} is another", file.display());
    }
    [is_over, log().contains("resumes")]
}

/// Catches a record that a kill loses, changes or truncates, and a result that depends on whether its unit was killed and resumed.
#[test]
fn killed_runs_end_with_the_bytes_of_an_undisturbed_one() {
    let wanted = wanted();
    let repository = Repository::with_experiment(&experiment());
    let started = Instant::now();
    let whole = repository.ok(&["reproduce", "--out", "whole"]);
    // Some kills come early, others after a training had time for a checkpoint.
    let longest = (started.elapsed().as_millis() as u64).clamp(400, 20_000);
    whole.says(&["74 of 74 units to run"]);
    let expected = records(&repository.path().join("whole/raw"));
    let rows = repository.rows("whole");
    let (mut random, mut kills, mut resumed) = (stream(7, "kills"), 0, 0);
    let mut draw = |n: u64| below(&mut random, n as usize) as u64;
    while kills < wanted {
        let earlier = kills;
        loop {
            let part = [longest / 10, longest / 3, longest][draw(3) as usize];
            let delay = Duration::from_millis(draw(part.max(1)));
            let delay = if kills < wanted { delay } else { Duration::MAX };
            let (from, delay) = match draw(4) {
                0 => (Since::Start, delay),
                1 => (Since::FirstUnit, delay),
                _ => (Since::NewCheckpoint, delay / 100),
            };
            let [is_over, resumes] = run_until(&repository, "killed", delay, from);
            resumed += usize::from(resumes);
            if is_over {
                break;
            }
            kills += 1;
        }
        let found = records(&repository.path().join("killed/raw"));
        assert!(found.keys().eq(expected.keys()), "after {kills} kills: {:?}", found.keys());
        for (file, bytes) in &expected {
            assert_eq!(&found[file], bytes, "{} after {kills} kills", file.display());
        }
        assert_eq!(repository.rows("killed"), rows, "after {kills} kills");
        // A kill between the last record of a training and the removal of its checkpoint leaves it.
        assert!(repository.checkpoints("killed") <= kills - earlier, "checkpoints are left");
        std::fs::remove_dir_all(repository.path().join("killed")).unwrap();
    }
    assert!(resumed > 0, "no training was resumed");
}

/// Catches a file of the reference that a kill of `reproduce --record` or `report` loses, truncates or mixes with that of another run.
#[test]
fn killed_recordings_lose_no_file_of_the_reference() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let record = ["reproduce", "--profile", "smoke", "--force", "--record"];
    repository.ok(&record);
    let started = Instant::now();
    repository.ok(&record);
    let longest = (started.elapsed().as_millis() as usize).max(100);
    let folder = repository.path().join("report");
    let (names, rows) = (contents(&folder).into_keys(), repository.rows("report"));
    let names: Vec<PathBuf> = names.collect();
    let (mut random, mut hits) = (stream(11, "kills"), 0);
    // Each takes as long as a run.
    let wanted = wanted() / 2;
    for kill in 0..wanted {
        let arguments = if kill % 3 == 0 { &["report"][..] } else { &record };
        // Pages that must be written again.
        for page in files_in(&folder, "md") {
            std::fs::write(&page, "# Another page\n").unwrap();
        }
        let mut child = repository.start(arguments);
        std::thread::sleep(Duration::from_millis(below(&mut random, longest) as u64));
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
