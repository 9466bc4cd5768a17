//! Interrupts that end a run: the real binary, real signals.
#![cfg(unix)]

use crate::common;

use std::collections::BTreeSet;
use std::io::Read;
use std::process::Child;

use common::{RANK, Repository, begun, experiment, kill, wait};

fn training(epochs: u64) -> String {
    experiment(&format!(
        "  - id: lines
    protocol: {{ kind: network-1d, lines: {{ rows: [5, 6, 7] }}, learning_rate: 1e-3, epochs: {epochs}, repeats: 2 }}
    variants:
      - {{ id: Gaussian, embedder: {{ kind: gaussian, dimension: 2000, sigma: 0.1 }} }}
      - {{ id: RFF, embedder: {{ kind: rff, dimension: 2000, sigma: 5 }} }}
{RANK}"
    ))
}

fn send(signal: &str, child: &Child) {
    assert!(kill(signal, child.id().into()));
}

/// Waits for a run that must end; returns its exit status.
fn status(child: &mut Child) -> Option<i32> {
    wait("end of the run", || child.try_wait().unwrap().is_some());
    child.wait().unwrap().code()
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
        let mut child = repository.start(&["reproduce", "--jobs", "1"]);
        wait("checkpoint", || {
            let before = found.len();
            found.extend(repository.checkpoint_files("out"));
            found.len() > before
        });
        send(signal, &child);
        let status = status(&mut child);
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
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
    repository.ok(&["reproduce"]).says(&["resumes where it was interrupted"]);
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
    // The first report is written after ten items.
    let mut lines = String::new();
    for i in 0..10 {
        let text = experiment(RANK).replace("mexican-hat", &format!("item-{i}"));
        repository.write(&format!("experiments/extensions/2{i}-item.yaml"), &text);
        lines += &format!("  - {{ item: item-{i}, name: An item, title: An item }}\n");
    }
    let (paper, anchor) = ("experiments/extensions/paper.yaml", "  # new items: above this line");
    repository.write(paper, &repository.read(paper).replace(anchor, &(lines + anchor)));
    let mut child = repository.start(&["reproduce"]);
    let page = repository.path().join("out/report/README.md");
    let notice = "This run is not finished";
    let is_there = || std::fs::read_to_string(&page).is_ok_and(|text| text.contains(notice));
    wait("report", || {
        assert!(child.try_wait().unwrap().is_none(), "the run has ended");
        is_there()
    });
    send("-TERM", &child);
    assert_eq!(status(&mut child), Some(143));
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(!text.contains(notice) && text.contains("# Are the papers right"), "{text}");
}
