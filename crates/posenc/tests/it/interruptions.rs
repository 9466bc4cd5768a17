//! Interrupts that end a run: the real binary, real signals.
#![cfg(unix)]

use crate::common;

use std::collections::BTreeSet;
use std::io::Read;
use std::process::{Child, Command};

use common::{Repository, begun, experiment, wait};

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

/// Waits for a run that must end; returns its exit status.
fn status(child: &mut Child) -> Option<i32> {
    let mut status = None;
    wait("end of the run", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.and_then(|status| status.code())
}

/// Waits for a run that must end; returns its exit status and standard error.
fn ended(mut child: Child) -> (Option<i32>, String) {
    let status = status(&mut child);
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (status, text)
}

/// Catches an interrupt that loses the progress of a training, starts further units, leaves no report, has an exit status other
/// than that of its signal, or changes results.
#[test]
fn the_first_interrupt_keeps_the_training_progress() {
    // A unit takes seconds, also on a fast machine: its first checkpoint is written after half a second, and the signal must reach it
    // before its end.
    let repository = Repository::with_experiment(&training(40_000));
    repository.ok(&["reproduce", "--out", "whole"]);
    // The second run ends the first training and is interrupted in the second one.
    let mut found = BTreeSet::new();
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let child = repository.start(&["reproduce", "--jobs", "1"]);
        wait("checkpoint", || {
            let before = found.len();
            found.extend(repository.checkpoint_files("out"));
            found.len() > before
        });
        send(signal, &child);
        let (status, stderr) = ended(child);
        assert_eq!(status, Some(code), "{stderr}");
        assert!(
            stderr.contains(" left (") && stderr.contains("to continue: cargo xtask"),
            "{stderr}"
        );
        let resumes = stderr.contains("resumes where it was interrupted");
        assert!(resumes || signal == "-INT", "{stderr}");
        assert_eq!(repository.checkpoints("out"), 1, "{stderr}");
        assert!(repository.path().join("out/report/README.md").exists(), "{stderr}");
        assert!(repository.raw("out").len() < 3, "further units began: {stderr}");
    }
    let again = repository.ok(&["reproduce"]);
    assert!(again.stderr.contains("resumes where it was interrupted"), "{}", again.stderr);
    assert_eq!(repository.rows("out"), repository.rows("whole"));
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
    let log = || repository.read("log");
    let start = || {
        let child = repository.start_verbose(&["reproduce"]);
        wait("unit", || begun(&log()).count() > 0);
        child
    };
    let mut child = start();
    send("-INT", &child);
    assert_eq!(status(&mut child), Some(130), "{}", log());
    assert!(log().contains("1 unit left"), "{}", log());
    let mut child = start();
    send("-INT", &child);
    // Sends the second interrupt as soon as the first was handled, within the grace period of the unit.
    wait("interrupt", || log().contains("starting no further units"));
    send("-INT", &child);
    assert_eq!(status(&mut child), Some(130), "{}", log());
    assert!(!log().contains(" left, about "), "it did not end at once: {}", log());
}

/// Catches a report that exists only after the run, an interim report without a notice, and a final report that still has it.
#[test]
fn the_report_is_written_during_the_run() {
    let repository = Repository::with_experiment(&training(100_000_000));
    let mut child = repository.start(&["reproduce", "--report-every", "1s"]);
    let page = repository.path().join("out/report/README.md");
    let notice = "This run is not finished";
    let is_there = || std::fs::read_to_string(&page).is_ok_and(|text| text.contains(notice));
    wait("report", || {
        assert!(child.try_wait().unwrap().is_none(), "the run has ended");
        is_there()
    });
    send("-TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(!text.contains(notice) && text.contains("# Are the papers right"), "{text}");
}
