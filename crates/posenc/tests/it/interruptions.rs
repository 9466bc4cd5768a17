//! Interrupts that end a run, and its events: the real binary, real signals.
#![cfg(unix)]

use crate::common;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use common::{Repository, events, experiment, with_a_failing_unit};
use serde_json::Value;

fn training(epochs: u64) -> String {
    experiment(&format!(
        "  - id: lines
    protocol: {{ kind: network-1d, lines: {{ rows: [5, 6, 7] }}, learning_rate: 1e-3, epochs: {epochs}, repeats: 2 }}
    variants:
      - {{ id: Gaussian, embedder: {{ kind: gaussian, dimension: 2000, sigma: 0.1 }} }}
      - {{ id: RFF, embedder: {{ kind: rff, dimension: 2000, sigma: 5 }} }}
  - id: rank
    protocol: {{ kind: stable-rank, samples: [4, 16] }}
    variants: [{{ id: Gaussian, embedder: {{ kind: gaussian, dimension: 128, sigma: 0.02 }} }}]
"
    ))
}

fn send(signal: &str, child: &Child) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// A run that takes longer counts as hanging; no test measures its speed.
const HANGS: Duration = Duration::from_secs(300);

/// Waits for a run that must end; returns its exit status and standard error.
fn ended(mut child: Child) -> (Option<i32>, String) {
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > HANGS {
            child.kill().unwrap();
            panic!("the run does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (status.code(), text)
}

/// Waits until a run fulfills a condition.
fn wait(what: &str, mut is_there: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_there() {
        assert!(started.elapsed() < Duration::from_secs(120), "no {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Catches an interrupt that loses the progress of a training, starts further units, leaves no report, has an exit status other
/// than that of its signal, or changes results.
#[test]
fn the_first_interrupt_keeps_the_training_progress() {
    // A unit takes seconds: its first checkpoint is written after half a second, and the signal must reach it before its end.
    let repository = Repository::with_experiment(&training(20_000));
    repository.ok(&["reproduce", "--out", "whole"]);
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let out = format!("out{signal}");
        let child = repository.start(&["reproduce", "--jobs", "1", "--out", &out]);
        wait("checkpoint", || repository.checkpoints(&out) > 0);
        send(signal, &child);
        let (status, stderr) = ended(child);
        assert_eq!(status, Some(code), "{stderr}");
        assert!(
            stderr.contains("units left") && stderr.contains("to continue: cargo xtask"),
            "{stderr}"
        );
        assert_eq!(repository.checkpoints(&out), 1, "{stderr}");
        assert!(repository.path().join(&out).join("report/README.md").exists(), "{stderr}");
        assert!(repository.raw(&out).len() < 3, "further units began: {stderr}");
        let again = repository.ok(&["reproduce", "--out", &out]);
        assert!(again.stderr.contains("resumes where it was interrupted"), "{}", again.stderr);
        assert_eq!(repository.rows(&out), repository.rows("whole"));
    }
}

/// Catches a second interrupt that waits for the unit in flight, and a first one that hangs. The unit takes at least half an hour
/// and never checks for a stop.
#[test]
fn the_second_interrupt_ends_the_run_at_once() {
    let repository = Repository::with_experiment(&experiment(
        "  - id: slow
    protocol: { kind: stable-rank, samples: { from: 3001, to: 5000, step: 1 } }
    variants: [{ id: dense, embedder: { kind: gaussian, dimension: 4000, sigma: 0.3 } }]
",
    ));
    let start = || {
        let child = repository.start(&["reproduce", "--events", "events"]);
        let events = repository.path().join("events");
        wait("unit", || std::fs::read_to_string(&events).is_ok_and(|t| t.contains("unit-started")));
        std::fs::remove_file(events).unwrap();
        child
    };
    let child = start();
    send("-INT", &child);
    let (status, stderr) = ended(child);
    assert_eq!(status, Some(130), "{stderr}");
    assert!(stderr.contains("1 units left"), "{stderr}");
    let mut child = start();
    send("-INT", &child);
    // Sends the second interrupt as soon as the first was handled, within the grace period of the unit.
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut seen = String::new();
    while !seen.contains("starting no further units") {
        assert!(lines.read_line(&mut seen).unwrap() > 0, "it ended at the first signal: {seen}");
    }
    send("-INT", &child);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(!rest.contains("units left"), "it did not end at once: {rest}");
}

/// Fields of an event except `event` and `at`.
fn fields(event: &Value) -> Vec<&str> {
    let all = event.as_object().unwrap().keys().map(String::as_str);
    all.filter(|key| !["event", "at"].contains(key)).collect()
}

/// Catches events that are not JSON, fields that differ from FORMAT.md, units without an end, and a changed verdict that is not
/// reported.
#[test]
fn events_are_whole_lines_with_stable_fields() {
    let repository = Repository::with_experiment(&with_a_failing_unit());
    let run = repository.run(&["reproduce", "--events", "-"]);
    assert_eq!(run.code, 1);
    let all = events(&run.stdout);
    assert_eq!(all.len(), run.stdout.lines().count(), "{}", run.stdout);
    assert!(run.stderr.contains("out/report/README.md"), "{}", run.stderr);
    assert_eq!(all[0]["event"], "run-started");
    assert_eq!((&all[0]["units"], &all[0]["profile"]), (&12.into(), &"quick".into()));
    let of = |name: &str| all.iter().filter(|e| e["event"] == name).collect::<Vec<_>>();
    let unit = ["key", "path", "repetition", "signal"];
    for (name, count, own) in [
        (
            "run-started",
            1,
            &["estimated_seconds", "profile", "seed", "units", "version", "workers"][..],
        ),
        ("unit-started", 12, &[]),
        ("unit-finished", 11, &["metric", "seconds", "steps", "value", "value_unit", "values"]),
        ("unit-failed", 1, &["reason", "seconds"]),
        (
            "run-finished",
            1,
            &["failed", "interrupted", "left", "report", "seconds", "units", "verdicts"],
        ),
    ] {
        assert_eq!(of(name).len(), count, "{name}: {}", run.stdout);
        let mut expected: Vec<&str> = own.to_vec();
        if name.starts_with("unit") {
            expected.extend(unit);
        }
        expected.sort_unstable();
        of(name).iter().for_each(|event| assert_eq!(fields(event), expected, "{event}"));
    }
    let psnr = of("unit-finished").into_iter().find(|e| e["metric"] == "test_psnr").unwrap();
    assert!(psnr["value"].as_f64().unwrap() > 1.0 && psnr["value_unit"] == "dB", "{psnr}");
    assert!(of("unit-failed")[0]["reason"].as_str().unwrap().contains("sigma = 0"));
    let last = all.last().unwrap();
    assert_eq!(
        (&last["units"], &last["failed"], &last["left"]),
        (&11.into(), &1.into(), &0.into())
    );
    let verdict = &last["verdicts"][0];
    assert_eq!((&verdict["claim"], &verdict["before"]), (&"rises".into(), &"not run".into()));
    let times: Vec<f64> = all.iter().map(|e| e["at"].as_f64().unwrap()).collect();
    assert!(times.windows(2).all(|pair| pair[0] <= pair[1]), "{times:?}");
    repository.fails(&["reproduce", "--events", "-", "--dry-run"], &["--dry-run"]);
    repository.fails(&["reproduce", "--events", "no/such/folder"], &["no/such/folder"]);
}

/// Catches a kill that truncates a line other than the last.
#[test]
fn events_of_a_killed_run_are_whole_lines() {
    let repository = Repository::with_experiment(&training(1_000_000));
    let mut child = repository.start(&["reproduce", "--events", "events", "--verbose"]);
    wait("checkpoint", || repository.checkpoints("out") > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let all = events(&repository.read("events"));
    assert!(all.len() >= 3 && all[0]["event"] == "run-started", "{all:?}");
    assert!(all.iter().all(|event| event["event"] != "run-finished"));
}

/// Catches a report that exists only after the run, an interim report without a notice, and a final report that still has it.
#[test]
fn the_report_is_written_during_the_run() {
    let repository = Repository::with_experiment(&training(100_000_000));
    let mut child = repository.start(&["reproduce", "--report-every", "1s"]);
    let page = repository.path().join("out/report/README.md");
    let notice = "This run is not finished";
    let started = std::time::Instant::now();
    let is_there = || std::fs::read_to_string(&page).is_ok_and(|text| text.contains(notice));
    while !is_there() {
        assert!(child.try_wait().unwrap().is_none(), "the run has ended");
        assert!(started.elapsed() < std::time::Duration::from_secs(120), "no report");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    send("-TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(!text.contains(notice) && text.contains("# Reproducibility summary"), "{text}");
}
