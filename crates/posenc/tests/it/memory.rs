//! Memory of units: refused units and waiting units. The real binary, real records.

use crate::common;

use common::{RANK, Repository, begun, experiment, finished, has};

/// Catches a unit beyond memory that starts or ends the process, a refusal without required and available memory, and effects on
/// other units.
#[test]
fn a_unit_that_needs_too_much_is_refused_and_the_others_run() {
    let large = "  - id: large
    data: { set: embedded-images, pick: [0, 1] }
    protocol: { kind: network-nd, directions: grid, learning_rate: 0.01, epochs: 1 }
    variants: [{ id: Gau, embedder: { kind: gaussian, dimension: 80, sigma: 0.1 } }]
";
    let repository = Repository::with_experiment(&experiment(&format!("{large}{RANK}")));
    let run = repository.run(&["reproduce", "--memory", "1GiB"]).ends_with(1);
    let refused: Vec<&str> =
        run.stderr.lines().filter(|l| l.starts_with("failed: ") && l.contains("/large/")).collect();
    assert_eq!(refused.len(), 2, "each unit is a failure of its own: {}", run.stderr);
    for line in refused {
        has(line, &["needs 1.6 GiB of memory, 1.0 GiB are available", "--memory"]);
    }
    assert_eq!(repository.raw("out").len(), 2);
    repository.fails(&["reproduce", "--memory", "much"], &["--memory", "8GiB"]);
}

/// Catches two units that run at the same time although only one fits, or although nothing is known about their memory, and units that
/// run one after the other although all fit.
#[test]
fn units_wait_for_memory() {
    let variants: String = (0..6)
        .map(|i| format!("      - {{ id: v{i}, embedder: {{ kind: gaussian, dimension: 512, sigma: 0.0{} }} }}\n", i + 1))
        .collect();
    let repository = Repository::with_experiment(&experiment(&format!(
        "  - id: rank\n    protocol: {{ kind: singular-values, points: 512 }}\n    variants:\n{variants}"
    )));
    let largest = |arguments: &[&str]| -> usize {
        let start = ["reproduce", "--jobs", "3", "--force", "--verbose"];
        let log = repository.ok(&[&start[..], arguments].concat()).stderr;
        // Each job has one unit.
        let in_flight = |end: usize| begun(&log[..end]).count() - finished(&log[..end]).count();
        log.match_indices('\n').map(|(end, _)| in_flight(end + 1)).max().unwrap()
    };
    assert_eq!(largest(&["--memory", "20MiB"]), 1);
    assert!(repository.read("out/timings.json").contains("extensions/mexican-hat/rank paper"));
    assert!(largest(&["--memory", "64GiB"]) > 1);
    assert_eq!(repository.raw("out").len(), 6);
}

/// Catches a memory limit of the process that is ignored: a failed allocation would end the process.
#[cfg(target_os = "linux")]
#[test]
fn the_memory_limit_of_a_shell_is_respected() {
    let large = "  - id: large
    protocol: { kind: singular-values, points: 4096 }
    variants: [{ id: Gau, embedder: { kind: gaussian, dimension: 60000, sigma: 0.1 } }]
";
    let repository = Repository::with_experiment(&experiment(&format!("{large}{RANK}")));
    let run = repository.run_after("ulimit -v 2500000", &["reproduce", "--jobs", "1"]);
    run.ends_with(1).says(&[" are available"]);
    assert_eq!(repository.raw("out").len(), 2);
}
