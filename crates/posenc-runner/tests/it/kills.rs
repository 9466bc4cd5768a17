//! A run is killed again and again, at moments that a seed draws, until it is done: nothing may be lost or become other.
//!
//! Compared are, with those of an undisturbed run: of every raw record all bytes of its content but what is read off the machine (`seconds`,
//! `peak_memory`, and values of metrics that begin with `time`, or are `rate` or `peak_memory`) and the checksum over these; all bytes
//! of pictures; all rows of the tables but of such metrics. And after every kill: each file of a record that was there
//! before the process began has the same bytes, whatever is read off the machine included.
//!
//! POSENC_KILLS=200 sets the number of kills.

use crate::common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::Repository;
use serde_json::Value;

const KILLS: usize = 16;

/// 70 units of 6 protocols: closed forms, ranks, trainings with and without checkpoints.
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
        "kind: network-1d, lines: { rows: [3] }, learning_rate: 1e-3, epochs: 12000, repeats: 2",
        variants(2, 1024),
        2,
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

/// Files below a folder with their bytes, but for those that are still written.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if !path.file_name().unwrap().to_string_lossy().starts_with(".writing-") {
                found.insert(path.clone(), std::fs::read(path).unwrap());
            }
        }
    }
    found
}

/// What is compared of records and pictures, by path below `raw`.
fn content(raw: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let is_of_machine =
        |metric: &str| metric.starts_with("time") || ["rate", "peak_memory"].contains(&metric);
    let of = |(path, bytes): (PathBuf, Vec<u8>)| {
        let name = path.strip_prefix(raw).unwrap().to_owned();
        if path.extension().is_none_or(|e| e != "json") {
            return (name, bytes);
        }
        let mut record: Value = serde_json::from_slice(&bytes).unwrap();
        let body = record["body"].as_object_mut().unwrap();
        assert!(body.remove("seconds").is_some());
        body.remove("peak_memory");
        let values = body["values"].as_array_mut().unwrap();
        values.retain(|value| !is_of_machine(value["metric"].as_str().unwrap()));
        (name, record["body"].to_string().into_bytes())
    };
    files(raw).into_iter().map(of).collect()
}

/// The next of a fixed sequence of numbers below `n` (SplitMix64).
fn draw(state: &mut u64, n: u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) % n
}

/// Catches any record that a kill loses, changes or leaves half, and any number that depends on whether its unit was killed and
/// went on.
#[test]
fn killed_runs_end_with_the_bytes_of_an_undisturbed_one() {
    let wanted = std::env::var("POSENC_KILLS").ok();
    let wanted = wanted.map_or(KILLS, |n| n.parse().expect("POSENC_KILLS: a number"));
    let repository = Repository::with_experiment(&experiment());
    let started = Instant::now();
    let whole = repository.ok(&["reproduce", "--out", "whole"]);
    let undisturbed = started.elapsed();
    assert!(whole.stderr.contains("70 of 70 units to run"), "{}", whole.stderr);
    let expected = content(&repository.path().join("whole/raw"));
    let rows = repository.rows("whole");
    // Some kills come while little is done, others when a training has had time for a checkpoint.
    let longest = (undisturbed.as_millis() as u64).clamp(400, 20_000);
    let (mut state, mut kills, mut runs, mut compared, mut resumed) = (7, 0, 0, 0, 0);
    let mut in_flight = 0;
    let events = repository.path().join("events");
    while kills < wanted {
        let out = format!("killed-{runs}");
        let raw = repository.path().join(&out).join("raw");
        runs += 1;
        loop {
            let before = files(&raw);
            let _ = std::fs::remove_file(&events);
            let mut child = repository.start(&["reproduce", "--out", &out, "--events", "events"]);
            // One in four at any moment of the process, the others when units run.
            let begun = if draw(&mut state, 4) == 0 { None } else { Some("unit-started") };
            let part = [longest / 10, longest / 3, longest][draw(&mut state, 3) as usize];
            let delay = Duration::from_millis(draw(&mut state, part.max(1)));
            let mut kill_at = begun.is_none().then(|| Instant::now() + delay);
            let is_over = loop {
                if child.try_wait().unwrap().is_some() {
                    break true;
                }
                if kills < wanted && kill_at.is_some_and(|at| Instant::now() >= at) {
                    break false;
                }
                let said = || std::fs::read_to_string(&events).unwrap_or_default();
                if kill_at.is_none() && begun.is_some_and(|event| said().contains(event)) {
                    kill_at = Some(Instant::now() + delay);
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            if is_over {
                let output = child.wait_with_output().unwrap();
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            } else {
                child.kill().unwrap();
                let output = child.wait_with_output().unwrap();
                kills += 1;
                resumed += usize::from(String::from_utf8_lossy(&output.stderr).contains("goes on"));
                in_flight += usize::from(before.len() < files(&raw).len());
            }
            for (file, bytes) in &before {
                let now = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
                assert_eq!(&now, bytes, "{} is another after kill {kills}", file.display());
            }
            if is_over {
                break;
            }
        }
        let found = content(&raw);
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (file, bytes) in &expected {
            assert_eq!(&found[file], bytes, "{} after {kills} kills", file.display());
            compared += 1;
        }
        assert_eq!(repository.rows(&out), rows, "after {kills} kills");
        assert_eq!(repository.checkpoints(&out), 0, "a checkpoint is left");
        std::fs::remove_dir_all(repository.path().join(&out)).unwrap();
    }
    eprintln!(
        "{kills} kills in {runs} runs of 70 units ({resumed} runs went on from checkpoints before they were killed, {in_flight} had \
         written records), {compared} files compared with those of the undisturbed run ({:.1} s), {:.0} s in all",
        undisturbed.as_secs_f64(),
        started.elapsed().as_secs_f64()
    );
}
