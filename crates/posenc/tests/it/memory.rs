//! Memory of units: refused units, waiting units, and estimates compared with measured peaks. The real binary, real records.

use crate::common;

use common::{Repository, begun, experiment, finished};
use serde_json::Value;

const QUICK: &str = "  - id: rank
    protocol: { kind: stable-rank, samples: [4, 16] }
    variants:
      - { id: Gaussian, embedder: { kind: gaussian, dimension: 128, sigma: 0.02 } }
      - { id: RFF, embedder: { kind: rff, dimension: 128, sigma: 5 } }
";

/// Catches a unit beyond memory that starts or ends the process, a refusal without required and available memory, and effects on
/// other units.
#[test]
fn a_unit_that_needs_too_much_is_refused_and_the_others_run() {
    let large = "  - id: large
    data: { set: embedded-images, pick: [0, 1] }
    protocol: { kind: network-nd, directions: grid, learning_rate: 0.01, epochs: 1 }
    variants: [{ id: Gau, embedder: { kind: gaussian, dimension: 40, sigma: 0.1 } }]
";
    let repository = Repository::with_experiment(&experiment(&format!("{large}{QUICK}")));
    let run = repository.run(&["reproduce", "--memory", "1GiB"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let refused: Vec<&str> =
        run.stderr.lines().filter(|l| l.starts_with("failed: ") && l.contains("/large/")).collect();
    assert_eq!(refused.len(), 2, "each unit is a failure of its own: {}", run.stderr);
    for line in refused {
        assert!(line.contains("needs about ") && line.contains("1.0 GiB are available"), "{line}");
        assert!(line.contains("--memory"), "{line}");
    }
    assert_eq!(repository.raw("out").len(), 2);
    assert!(
        repository.read("out/report/extensions/mexican-hat.md").contains("Failed on this machine")
    );
    repository.fails(&["reproduce", "--memory", "much"], &["--memory", "8GiB"]);
}

/// Catches two units that run at the same time although only one fits.
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
    // Each unit is estimated at slightly more than 64 MiB.
    assert_eq!(largest(&["--memory", "100MiB"]), 1);
    assert!(largest(&["--memory", "170MiB"]) <= 2);
    assert_eq!(repository.raw("out").len(), 6);
}

/// Catches a memory limit of the process that is ignored: a failed allocation would end the process.
#[cfg(target_os = "linux")]
#[test]
fn the_memory_limit_of_a_shell_is_respected() {
    let large = "  - id: large
    protocol: { kind: singular-values, points: 4096 }
    variants: [{ id: Gau, embedder: { kind: gaussian, dimension: 30000, sigma: 0.1 } }]
";
    let repository = Repository::with_experiment(&experiment(&format!("{large}{QUICK}")));
    let script =
        format!("ulimit -v 2500000; exec {} reproduce --jobs 1", env!("CARGO_BIN_EXE_posenc"));
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &script]).current_dir(repository.path());
    command.env_remove("POSENC_DATA").env_remove("POSENC_ROOT").env("POSENC_DEVICE", "cpu");
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("large/Gau: needs about"), "{stderr}");
    assert_eq!(repository.raw("out").len(), 2, "{stderr}");
}

/// Peak memory in the only record of `out`, in MiB.
fn peak(repository: &Repository, out: &str) -> f64 {
    let files = repository.raw(out);
    assert_eq!(files.len(), 1, "{files:?}");
    let record: Value = serde_json::from_slice(&std::fs::read(&files[0]).unwrap()).unwrap();
    record["body"]["peak_memory"].as_f64().unwrap() / f64::from(1 << 20)
}

/// Catches estimates below half or above several times the measured memory, for protocols with large arrays. Each unit runs alone
/// in a process; the peak of a process with a small unit is subtracted.
#[cfg(target_os = "linux")]
#[test]
fn estimates_are_near_measured_peaks() {
    let image = "data: { set: embedded-images, pick: [0] }\n    protocol: ";
    let clip = "data: { set: embedded-clips, pick: [0] }\n    protocol: ";
    let gaussian = |d: usize| format!("{{ kind: gaussian, dimension: {d}, sigma: 0.05 }}");
    let cases = [
        ("points", "protocol: { kind: singular-values, points: 1600 }".to_owned(), gaussian(6000)),
        ("stable", "protocol: { kind: stable-rank, samples: [3000] }".to_owned(), gaussian(5000)),
        ("closed", format!("{image}{{ kind: closed-form, step: 2 }}"), gaussian(2000)),
        ("clip", format!("{clip}{{ kind: closed-form, step: 2 }}"), gaussian(128)),
        (
            "simple",
            format!(
                "{image}{{ kind: network-nd, directions: grid, learning_rate: 0.01, epochs: 1 }}"
            ),
            gaussian(24),
        ),
        (
            "deep",
            format!("{image}{{ kind: network-nd, learning_rate: 0.01, epochs: 1, depth: 2 }}"),
            gaussian(256),
        ),
        (
            "joint",
            format!(
                "{image}{{ kind: network-nd, directions: joint, learning_rate: 0.01, epochs: 1 }}"
            ),
            "{ kind: rff, dimension: 400, sigma: 5 }".to_owned(),
        ),
        (
            "complex",
            format!(
                "{image}{{ kind: network-nd, encoding: complex, learning_rate: 0.01, epochs: 1 }}"
            ),
            gaussian(3000),
        ),
        (
            "lines",
            format!(
                "{image}{{ kind: network-1d, lines: {{ rows: [3, 4, 5, 6] }}, learning_rate: 1e-3, epochs: 2, repeats: 4, depth: 3, width: 512 }}"
            ),
            gaussian(8000),
        ),
    ];
    let mut groups = String::from(QUICK);
    for (id, settings, embedder) in &cases {
        groups += &format!(
            "  - id: {id}\n    {settings}\n    variants: [{{ id: v, embedder: {embedder} }}]\n"
        );
    }
    groups += "  - id: model\n    protocol: { kind: image-model, side: 16, levels: 8, held_out: 4, layers: 4, width: 128, heads: 8, feed_forward: 512, batch: 16, steps: 2, learning_rate: 0.01, warm_up: 2, measure_every: 2, encoding: { features: fourier, learned: true, gamma: 1 } }\n    variants: [{ id: v }]\n";
    let repository = Repository::with_experiment(&experiment(&groups));
    let of = |id: &str| format!("extensions/mexican-hat/{id}");
    repository.ok(&["reproduce", "--jobs", "1", "--out", "least", &of("rank/RFF")]);
    let least = peak(&repository, "least");
    let mut wrong = Vec::new();
    for id in cases.iter().map(|(id, ..)| *id).chain(["model"]) {
        // A refusal prints the estimate.
        let refused =
            repository.run(&["reproduce", "--memory", "1MiB", "--out", "refused", &of(id)]);
        let (_, text) = refused.stderr.split_once("needs about ").expect("a refusal");
        let mut words = text.split_whitespace();
        let number: f64 = words.next().unwrap().parse().unwrap();
        let estimated = number * if words.next() == Some("GiB") { 1024.0 } else { 1.0 };
        repository.ok(&["reproduce", "--jobs", "1", "--out", id, &of(id)]);
        let measured = peak(&repository, id) - least;
        eprintln!("{id}: {estimated:.0} MiB estimated, {measured:.0} MiB measured");
        if estimated < 0.5 * measured || estimated > 4.0 * measured + 128.0 {
            wrong.push(format!("{id}: {estimated:.0} MiB estimated, {measured:.0} MiB measured"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
