//! `reproduce --share` and `--slurm`; the latter on a real cluster of two nodes: the real binary, real records, a real Slurm.

#![cfg(target_os = "linux")]

mod cluster;
use crate::common;

use std::collections::BTreeMap;
use std::path::PathBuf;

use cluster::Cluster;
use common::{Repository, Run, kill, wait};

fn run(repository: &Repository, cluster: &Cluster, arguments: &[&str]) -> Run {
    repository.run_with("SLURM_CONF", cluster.conf().to_str().unwrap(), arguments)
}

/// What the raw records below `out` contain, except what differs between two runs.
fn records(repository: &Repository, out: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    common::records(&repository.path().join(out).join("raw"))
}

/// Number of units that a run says it starts with, for each run in a log.
fn units_to_run(log: &str) -> Vec<usize> {
    let of_line = |line: &str| {
        let (before, _) = line.split_once(" units to run")?;
        before.rsplit_once(" of ")?.0.rsplit(' ').next()?.parse().ok()
    };
    log.lines().filter_map(of_line).collect()
}

/// Catches a unit that no share runs or that two run, shares that disturb each other, a share that promotes or renders, and a run
/// next to shares that removes their files.
#[test]
fn shares_side_by_side_give_the_records_of_one_run() {
    let repository = Repository::with_experiment(common::EXPERIMENT);
    let run = |more: &[&'static str]| [&["reproduce", "--profile", "smoke"], more].concat();
    repository.ok(&run(&["--out", "here"]));
    let shares = ["1/3", "2/3", "3/3"].map(|share| repository.start(&run(&["--share", share])));
    let units = shares.map(|share| {
        let ended: Run = share.wait_with_output().unwrap().into();
        assert!(ended.code == 0 && ended.stdout.is_empty(), "{}{}", ended.stdout, ended.stderr);
        units_to_run(&ended.stderr)[0]
    });
    let all = repository.raw("out").len();
    assert_eq!(units.iter().sum::<usize>(), all, "{units:?}");
    assert!(units.iter().all(|units| *units > 0), "{units:?}");
    assert!(!repository.path().join("out/report").exists());

    let lock = std::fs::File::open(repository.path().join("out/.lock")).unwrap();
    lock.lock_shared().unwrap();
    repository.fails(&run(&[]), &["another reproduce is running", "share "]);
    lock.lock().unwrap();
    repository.fails(&run(&["--share", "1/2"]), &["without --share is running"]);
    drop(lock);
    let last = repository.ok(&run(&[]));
    assert_eq!(units_to_run(&last.stderr), [0], "{}", last.stderr);
    assert_eq!(records(&repository, "out"), records(&repository, "here"));
    assert_eq!(repository.rows("out"), repository.rows("here"));
}

/// Catches a killed task or a dead node whose units are lost or run from the start, results that depend on the node, a second
/// submission next to the first, and a job after the array that does not collect or record.
#[test]
fn a_killed_task_and_a_dead_node_lose_nothing() {
    let Some(mut cluster) = Cluster::start() else { return };
    let mut groups = String::from(
        "  - id: lines
    protocol: { kind: network-1d, lines: { rows: [5, 6, 7] }, learning_rate: 1e-3, epochs: 2500, repeats: 2 }
    variants:
",
    );
    for n in 0..16 {
        let sigma = 0.1 + f64::from(n) / 100.0;
        groups += &format!(
            "      - {{ id: width {n}, embedder: {{ kind: gaussian, dimension: 1000, sigma: {sigma} }} }}\n"
        );
    }
    let repository = Repository::with_experiment(&common::experiment(&groups));
    repository.ok(&["reproduce", "--profile", "smoke", "--out", "here"]);
    // A path with characters that a shell and Slurm would expand.
    let out = "out of $HOME's 100%";
    let slurm = ["reproduce", "--profile", "smoke", "--record", "--out", out, "--slurm", "3"];
    let submitted = run(&repository, &cluster, &slurm).ends_with(0);
    submitted.says(&["an array of 3 tasks for 16 units", "logs:", "scancel --name=posenc-"]);
    run(&repository, &cluster, &slurm).ends_with(2).says(&["already run this"]);
    let started = |node: &str| !cluster.processes(node).is_empty();
    wait("records of two tasks", || {
        repository.raw(out).len() >= 4 && started("n1") && started("n2")
    });
    // The process of a task, as the kernel would if memory runs out.
    for (process, _) in cluster.processes("n1") {
        kill("-KILL", process);
    }
    cluster.kill_node("n2");
    let kept = repository.raw(out);
    let of_kept = || kept.iter().map(|file| std::fs::metadata(file).unwrap().modified().unwrap());
    let written: Vec<_> = of_kept().collect();
    wait("end of all jobs", || cluster.queue().trim().is_empty());

    let folder = repository.path().join(out).join("slurm");
    let mut logs: Vec<String> = common::files_in(&folder, "log")
        .iter()
        .map(|log| std::fs::read_to_string(log).unwrap())
        .collect();
    let told = logs.join("\n");
    assert_eq!(logs.len(), 4, "{told}");
    assert!(of_kept().eq(written), "records were written again: {told}");
    assert_eq!(records(&repository, out), records(&repository, "here"), "{told}");
    assert_eq!(repository.rows(out), repository.rows("here"));
    assert!(
        !common::files_in(&repository.path().join("report/record/extensions"), "csv").is_empty()
    );
    // Slurm started the task of the dead node again. The rest of the killed one was left to the last job.
    logs.sort_by_key(|log| units_to_run(log).len());
    let runs: Vec<Vec<usize>> = logs.iter().map(|log| units_to_run(log)).collect();
    assert!(runs[2].len() == 1 && runs[3].len() == 2 && runs[3][1] <= runs[3][0], "{told}");
    let last = logs.iter().find(|log| log.contains("report/extensions/mexican-hat.md")).unwrap();
    assert!(units_to_run(last)[0] > 0, "{told}");

    // Nothing is left to run, and nothing is submitted.
    let again = run(&repository, &cluster, &slurm);
    assert!(again.code == 0 && units_to_run(&again.stderr) == [0], "{}", again.stderr);
    assert_eq!(cluster.queue(), "");
}

/// Catches options that are silently ignored, another plan than the submitter's, and rejections by Slurm without an explanation.
#[test]
fn refusals_are_reported() {
    let repository = Repository::with_experiment(common::EXPERIMENT);
    repository.fails(&["reproduce", "--sbatch-arg=--hold"], &["--slurm"]);
    repository.fails(&["reproduce", "--slurm", "2", "--force"], &["--force"]);
    repository.fails(&["reproduce", "--share", "1/2", "--record"], &["--record"]);
    repository.fails(&["reproduce", "--share", "3/2"], &["3/8, the third of eight"]);
    repository.fails(&["reproduce", "--share", "1/2", "--plan", "0"], &["the plan differs"]);
    let word = ["reproduce", "--slurm", "2", "--sbatch-arg=evil.sh"];
    repository.fails(&word, &["evil.sh", "begins with `-`"]);
    let nowhere = repository.run_with("PATH", "", &["reproduce", "--slurm", "2"]).ends_with(2);
    nowhere.says(&["squeue was not found"]);

    let Some(cluster) = Cluster::start() else { return };
    for (option, needle) in [
        ("--sbatch-arg=--partition=no such", "invalid partition"),
        ("--sbatch-arg=--time=soon; rm -rf x", "time"),
    ] {
        let run = run(&repository, &cluster, &["reproduce", "--slurm", "2", option]);
        run.ends_with(2).says(&[needle, "job.sh"]);
        assert_eq!(cluster.queue(), "");
    }
}
