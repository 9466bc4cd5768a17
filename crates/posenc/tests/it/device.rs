//! `--device` end to end: the real binary and, if installed, a real software adapter.

use crate::common;

use common::{Repository, Run, experiment};
use posenc_files::testing::{Need, skip};

/// One group that trains and one that does not.
const GROUPS: &str = r#"  - id: rank
    protocol: { kind: stable-rank, samples: [16] }
    variants:
      - { id: Gaussian, embedder: { kind: gaussian, dimension: 32, sigma: 0.05 } }
  - id: lines
    protocol:
      kind: network-1d
      lines: { rows: [5, 6] }
      depth: 1
      width: 24
      learning_rate: 1e-3
      epochs: 150
      repeats: 2
      curve_every: 50
    variants:
      - { id: Gaussian, embedder: { kind: gaussian, dimension: 48, sigma: 0.05 } }
"#;

/// Value of `--device` for an installed software adapter; skips the calling test if there is none.
fn software(repository: &Repository) -> Option<String> {
    let run = repository.ok(&["doctor"]);
    let mut lines = run.stdout.lines().filter(|line| line.starts_with("wgpu "));
    let name = lines.find_map(|line| line.split("software adapter ").nth(1));
    let device = name.and_then(|name| name.split_whitespace().next());
    if device.is_none() {
        let why = "there is no software adapter, or this build has no device engine";
        skip(Need::Vulkan, why);
    }
    device.map(|name| format!("wgpu:{name}"))
}

/// Runs the binary as on a machine without a GPU: Vulkan's loader finds at most the software adapter's driver.
#[cfg(target_os = "linux")]
fn run_without_gpu(repository: &Repository, arguments: &[&str]) -> Run {
    let drivers = std::fs::read_dir("/usr/share/vulkan/icd.d").into_iter().flatten().flatten();
    let software = drivers
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("lvp_icd")));
    let software = software.unwrap_or_else(|| "/nonexistent".into());
    let mut command = repository.command(arguments);
    for variable in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"] {
        command.env(variable, &software);
    }
    command.output().unwrap().into()
}

/// The rows of a run without their device, and their values.
fn numbers(repository: &Repository, out: &str) -> Vec<(String, f64)> {
    let number = |row: String| {
        let mut cells: Vec<&str> = row.split(',').collect();
        let value = cells[9].parse().ok()?;
        cells.drain(9..cells.len() - 1);
        Some((cells.join(","), value))
    };
    let mut numbers: Vec<_> = repository.rows(out).into_iter().filter_map(number).collect();
    numbers.sort_by(|a, b| a.0.cmp(&b.0));
    numbers
}

/// Catches a software adapter that is mistaken for a GPU or for the CPU. Its records name it, are separate from those of the CPU,
/// and agree with them. Units without training run on the CPU, and only once.
#[test]
fn a_named_software_adapter_has_records_of_its_own() {
    let repository = Repository::with_experiment(&experiment(GROUPS));
    let Some(device) = software(&repository) else { return };
    let run = repository.ok(&["reproduce", "--device", &device, "--out", "both"]);
    run.says(&["training on software adapter"]);
    let text = |file: &std::path::PathBuf| std::fs::read_to_string(file).unwrap();
    let of_software = |file| text(file).contains("\"device\":\"software adapter ");
    let raw = repository.raw("both");
    assert!(raw.len() == 2 && raw.iter().filter(|file| of_software(file)).count() == 1);
    let csv = repository.table("both/record");
    let is_trained = |l: &str| l.contains("test_psnr") && l.contains("software adapter");
    assert!(csv.lines().any(is_trained), "{csv}");

    // The reference accepts rows of the CPU and none of the adapter.
    repository.ok(&["reproduce", "--device", &device, "--out", "both", "--record"]);
    let reference = repository.table("report/record");
    assert!(reference.contains(",rank,") && !reference.contains("software adapter"), "{reference}");

    // A second run has nothing to do. On the CPU only the training is missing.
    repository
        .ok(&["reproduce", "--device", &device, "--out", "both"])
        .says(&["0 of 2 units to run"]);
    let cpu = repository.ok(&["reproduce", "--device", "cpu", "--out", "both"]);
    cpu.says(&["1 of 2 units to run"]);
    assert!(!cpu.stderr.contains("training on software"), "{}", cpu.stderr);
    assert_eq!(repository.raw("both").len(), 3);
    let csv = repository.table("both/record");
    assert!(!csv.contains("software adapter"), "the CPU's record is not shown: {csv}");

    // The values agree up to single precision.
    repository.ok(&["reproduce", "--device", &device, "--out", "software"]);
    repository.ok(&["reproduce", "--device", "cpu", "--out", "cpu"]);
    let (found, expected) = (numbers(&repository, "software"), numbers(&repository, "cpu"));
    assert!(expected.len() > 20, "{expected:?}");
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.0, expected.0);
        assert!((found.1 - expected.1).abs() < 0.05, "{found:?} and {expected:?}");
    }
    assert_ne!(found, expected, "the adapter has not computed anything");
}

/// Catches `auto` that selects a software adapter, and a requested GPU that is silently replaced.
#[cfg(target_os = "linux")]
#[test]
fn a_missing_gpu_is_an_error_only_if_requested() {
    let repository = Repository::with_experiment(&experiment(GROUPS));
    for device in ["wgpu", "wgpu:no such card"] {
        run_without_gpu(&repository, &["reproduce", "--device", device])
            .ends_with(2)
            .says(&["--device cpu"]);
    }
    assert!(repository.raw("out").is_empty());
    run_without_gpu(&repository, &["reproduce", "--device", "auto"]).ends_with(0);
    assert_eq!(repository.raw("out").len(), 2);
    for file in repository.raw("out") {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains("\"device\":\"cpu\""), "{text}");
    }
}

/// Catches a device from the environment that is ignored, overrides the option, or is wrong and accepted, and an error without the
/// allowed values.
#[test]
fn an_environment_variable_replaces_the_option() {
    let repository = Repository::with_experiment(&experiment(GROUPS));
    let plan = ["reproduce", "--dry-run", "--device"];
    let with = |variable: &str, arguments: &[&str], code: i32| {
        repository.run_with("POSENC_DEVICE", variable, arguments).ends_with(code)
    };
    for run in [with("cuda", &plan[..2], 2), with("cpu", &[&plan[..], &["cuda"]].concat(), 2)] {
        run.says(&["cuda", "POSENC_DEVICE", "auto", "cpu", "wgpu:NAME"]);
    }
    with("cuda", &[&plan[..], &["cpu"]].concat(), 0);
}

/// Catches a killed training on an adapter that starts over or ends with other numbers.
#[test]
fn a_killed_training_on_an_adapter_resumes_with_the_same_bits() {
    let long = GROUPS.replace("epochs: 150", "epochs: 200");
    let repository = Repository::with_experiment(&experiment(&long));
    let Some(device) = software(&repository) else { return };
    repository.kill_at_checkpoint(&device, "killed");
    repository
        .ok(&["reproduce", "--device", &device, "--out", "killed"])
        .says(&["resumes where it was interrupted"]);
    repository.ok(&["reproduce", "--device", &device, "--out", "whole"]);
    assert_eq!(repository.rows("killed"), repository.rows("whole"));
}
