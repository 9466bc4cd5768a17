//! `reproduce --executor slurm` on a real cluster of two nodes: the real binary, real records, a real Slurm.

#![cfg(target_os = "linux")]

mod cluster;
use crate::common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use cluster::{Cluster, kill};
use common::{Repository, Run};
use serde_json::Value;

/// Metrics that depend on the machine: times, rates, memory. All other values must be bitwise equal on all machines.
fn is_of_machine(metric: &str) -> bool {
    metric.starts_with("time") || ["rate", "peak_memory"].contains(&metric)
}

fn command(repository: &Repository, cluster: &Cluster, arguments: &[&str]) -> Command {
    let mut command = repository.command(arguments);
    command.env("SLURM_CONF", cluster.conf());
    command
}

fn run(repository: &Repository, cluster: &Cluster, arguments: &[&str]) -> Run {
    command(repository, cluster, arguments).output().unwrap().into()
}

/// Raw records by name, without the parts that differ between two runs on the same machine: seconds, memory, and the values of
/// metrics for which `is_of_machine` holds. Pictures and captions are compared completely.
fn records(repository: &Repository, out: &str) -> BTreeMap<PathBuf, String> {
    let raw = repository.path().join(out).join("raw");
    let mut all = BTreeMap::new();
    let mut folders = vec![raw.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(&raw).unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let is_record = path.extension().is_some_and(|e| e == "json")
                && !name.to_string_lossy().ends_with("-captions.json");
            if !is_record {
                all.insert(name, format!("{bytes:?}"));
                continue;
            }
            let mut record: Value = serde_json::from_slice(&bytes).unwrap();
            let body = record["body"].as_object_mut().unwrap();
            assert!(body.remove("seconds").is_some());
            body.remove("peak_memory");
            for value in body["values"].as_array_mut().unwrap() {
                if is_of_machine(value["metric"].as_str().unwrap()) {
                    value["value"] = Value::Null;
                }
            }
            all.insert(name, record["body"].to_string());
        }
    }
    all
}

/// Path of a file of the only run in `out/slurm`.
fn of_run(repository: &Repository, out: &str, file: &str) -> PathBuf {
    let folder = repository.path().join(out).join("slurm");
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let runs: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.is_dir()).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs[0].join(file)
}

fn json(file: &Path) -> Value {
    let text = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    serde_json::from_slice(&text).unwrap()
}

/// Number of units with a record in a node's task.
fn recorded_on(repository: &Repository, node: &str) -> usize {
    let folder = of_run(repository, "out", "");
    let tasks = [0, 1].map(|n| folder.join(format!("task-1-{n}.json")));
    let of_node = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.contains(&format!("\"node\": \"{node}\""))
    };
    let Some(number) = tasks.iter().position(of_node) else { return 0 };
    let share = json(&folder.join(format!("share-1-{number}.json")));
    let jobs = share["jobs"].as_array().unwrap();
    let units = jobs.iter().flat_map(|job| job["units"].as_object().unwrap().values());
    let records = repository.raw("out");
    let is_there = |key: &&Value| {
        let start = format!("-{}.json", &key.as_str().unwrap()[..16]);
        records.iter().any(|file| file.to_string_lossy().ends_with(&start))
    };
    units.filter(is_there).count()
}

/// Waits until a condition holds while a child process runs.
fn wait(what: &str, child: &mut Child, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before {what}");
        assert!(started.elapsed() < Duration::from_secs(300), "no {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn finish(child: Child) -> Run {
    child.wait_with_output().unwrap().into()
}

/// `units` units of about half a second each on one core, and `failing` units that fail because their features are all zero at the
/// last value of their sweep.
fn experiment(units: u32, failing: u32) -> Repository {
    let mut text = String::from(
        r#"
paper: extensions
item: mexican-hat
kind: extra
title: A test
shows: A test
groups:
  - id: lines
    protocol: { kind: network-1d, lines: { rows: [5, 6, 7] }, learning_rate: 1e-3, epochs: 2500, repeats: 2 }
    variants:
"#,
    );
    for n in 0..units {
        let sigma = 0.1 + f64::from(n) / 100.0;
        text += &format!(
            "      - {{ id: width {n}, embedder: {{ kind: gaussian, dimension: 1000, sigma: {sigma} }} }}\n"
        );
    }
    let embedder = "{ kind: formula, dimension: 64, psi: sigma*u, sigma: 5 }";
    let sweep = "settings: { sweep: { parameter: sigma, values: [5, 0] } }";
    if failing > 0 {
        text +=
            "  - id: rank\n    protocol: { kind: stable-rank, samples: [4, 16] }\n    variants:\n";
    }
    for n in 0..failing {
        text += &format!("      - {{ id: failing {n}, embedder: {embedder}, {sweep} }}\n");
    }
    Repository::with_experiment(&text)
}

/// Catches results that depend on the node, units that run twice or not at all, a second submission or a local run next to the
/// first, and a cluster run without a report.
#[test]
fn two_nodes_give_the_records_of_one_machine() {
    let Some(cluster) = Cluster::start() else { return };
    let repository = Repository::new();
    let items = [
        "rethinking/prop2",
        "rethinking/fig3",
        "rethinking/fig9",
        "trading/table1/closed-form",
        "trading/appendix-c",
        "trading/fig10/embedded-complex-0",
        "lff/fig2",
        "lff/eq9",
    ];
    let at =
        |more: &[&'static str]| [&["reproduce", "--profile", "smoke"], more, &items[..]].concat();
    // A path with characters that a shell and Slurm would expand.
    let out = "out of $HOME's 100%";
    let slurm = at(&[
        "--out",
        out,
        "--executor",
        "slurm",
        "--array-size",
        "5",
        // Held until the second submission has seen it.
        "--sbatch-arg=--hold",
    ]);
    let started = Instant::now();
    let first = run(&repository, &cluster, &[&slurm[..], &["--detach"]].concat());
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(first.stderr.contains("scancel --name=posenc-1-"), "{}", first.stderr);
    let here = run(&repository, &cluster, &at(&["--out", out]));
    assert!(here.code == 2 && here.stderr.contains("Slurm run 1-"), "{}", here.stderr);
    let other =
        ["reproduce", "--profile", "smoke", "--out", out, "--executor", "slurm", "lff/fig2"];
    let other = run(&repository, &cluster, &other);
    assert!(other.code == 2 && other.stderr.contains("with other arguments"), "{}", other.stderr);
    let mut second = command(&repository, &cluster, &slurm).spawn().unwrap();
    let mut lines = BufReader::new(second.stderr.take().unwrap());
    let mut seen = String::new();
    while !seen.contains("is already running this") {
        assert!(lines.read_line(&mut seen).unwrap() > 0, "it does not see the first: {seen}");
    }
    cluster.release();
    let reader = std::thread::spawn(move || lines.read_to_string(&mut seen).map(|_| seen));
    let second = finish(second);
    assert_eq!(second.code, 0, "{}", reader.join().unwrap().unwrap());
    let page = second.stdout.lines().last().unwrap();
    assert!(std::fs::read_to_string(page).unwrap().contains("Reproducibility"));
    let seconds = started.elapsed().as_secs_f64();

    repository.ok(&at(&["--out", "here"]));
    let (there, here) = (records(&repository, out), records(&repository, "here"));
    assert!(here.len() >= 20, "{} records", here.len());
    assert_eq!(there, here);
    assert_eq!(repository.rows(out), repository.rows("here"));
    let ending = json(&of_run(&repository, out, "result.json"));
    assert_eq!((&ending["rounds"], &ending["restarts"]), (&1.into(), &0.into()), "{ending}");
    let nodes: std::collections::BTreeSet<String> = (0..5)
        .map(|n| json(&of_run(&repository, out, &format!("task-1-{n}.json"))))
        .map(|task| task["attempts"][0]["node"].to_string())
        .collect();
    assert_eq!(nodes.len(), 2, "{nodes:?}");
    // Units that measure time had a node to themselves.
    assert!(of_run(&repository, out, "task-1-clock.json").exists());
    eprintln!("{} files equal, 6 tasks on 2 nodes, {seconds:.1} s", here.len());

    // Nothing is left to run: the tables are written locally, and nothing is submitted.
    let again = run(&repository, &cluster, &slurm);
    assert!(again.code == 0 && again.stderr.contains("0 of "), "{}", again.stderr);
    assert!(!repository.path().join(out).join("slurm/current.json").exists());
}

/// Catches a dead node that loses more than its unit in flight, records that are written again, and a run that ends without the
/// units of a dead node.
#[test]
fn a_dead_node_costs_its_units_in_flight() {
    let Some(mut cluster) = Cluster::start() else { return };
    let repository = experiment(24, 0);
    repository.ok(&["reproduce", "--profile", "smoke", "--out", "here"]);
    let slurm = ["reproduce", "--profile", "smoke", "--executor", "slurm", "--array-size", "2"];
    let mut child = command(&repository, &cluster, &slurm).spawn().unwrap();
    wait("records of both", &mut child, || {
        repository.raw("out").len() >= 6 && recorded_on(&repository, "n2") >= 2
    });
    cluster.kill_node("n2");
    let inodes = |files: &[PathBuf]| -> Vec<(u64, i64, i64)> {
        let of = |f: &PathBuf| std::fs::metadata(f).unwrap();
        files.iter().map(of).map(|m| (m.ino(), m.mtime(), m.mtime_nsec())).collect()
    };
    let before = repository.raw("out");
    let of_before = inodes(&before);
    let killed = Instant::now();
    let ended = finish(child);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(inodes(&before), of_before, "records were written again");
    let here = records(&repository, "here");
    assert_eq!((here.len(), records(&repository, "out")), (24, here));
    let ending = json(&of_run(&repository, "out", "result.json"));
    assert_eq!((&ending["rounds"], &ending["restarts"]), (&1.into(), &1.into()), "{ending}");
    let tasks = [0, 1].map(|n| json(&of_run(&repository, "out", &format!("task-1-{n}.json"))));
    let attempts = |task: &Value| task["attempts"].as_array().unwrap().clone();
    let died =
        tasks.iter().find(|t| attempts(t).len() == 2).expect("a task that was started again");
    let [first, second] = &attempts(died)[..] else { panic!("{died}") };
    assert_eq!((first["node"].as_str(), second["node"].as_str()), (Some("n2"), Some("n1")));
    // Units with a record when the node died did not run again, at most the unit in flight did.
    let runs = first["to_run"].as_u64().unwrap();
    let on_record = second["on_record"].as_u64().unwrap();
    assert_eq!(second["to_run"].as_u64().unwrap(), runs - on_record);
    assert!(on_record >= 1, "{died}");
    eprintln!(
        "{} records when n2 died; {on_record} of its {runs} kept, {} run on n1, 1 in flight lost at most; {:.1} s later done",
        before.len(),
        runs - on_record,
        killed.elapsed().as_secs_f64()
    );
}

/// Catches tasks that continue after Ctrl-C, and a later run that starts over.
#[test]
fn ctrl_c_cancels_the_array() {
    let Some(cluster) = Cluster::start() else { return };
    let repository = experiment(24, 0);
    let slurm = ["reproduce", "--profile", "smoke", "--executor", "slurm", "--array-size", "4"];
    let mut child = command(&repository, &cluster, &slurm).spawn().unwrap();
    wait("records", &mut child, || repository.raw("out").len() >= 2);
    kill(child.id(), "INT");
    let cancelled = finish(child);
    assert_eq!(cancelled.code, 130, "{}", cancelled.stderr);
    assert!(cancelled.stderr.contains("cancelled: "), "{}", cancelled.stderr);
    assert_eq!(cluster.queue(), "");
    assert!(cluster.processes(None).is_empty());
    let kept = repository.raw("out").len();
    let rest = run(&repository, &cluster, &["reproduce", "--profile", "smoke"]);
    assert!(
        rest.code == 0 && rest.stderr.contains(&format!("{kept} on record")),
        "{}",
        rest.stderr
    );
    eprintln!("{kept} of 24 records kept");
}

/// Catches a dead task whose units never run, a failing unit that affects others or loses its reason, and failures that are
/// submitted endlessly.
#[test]
fn a_failing_unit_is_named_and_a_dead_task_is_submitted_again() {
    let Some(cluster) = Cluster::start() else { return };
    let repository = experiment(18, 6);
    let slurm = ["reproduce", "--profile", "smoke", "--executor", "slurm", "--array-size", "2"];
    let mut child = command(&repository, &cluster, &slurm).spawn().unwrap();
    wait("records", &mut child, || repository.raw("out").len() >= 3);
    // Kills the task's own process, as the kernel would if memory runs out.
    let processes = cluster.processes(Some("n1"));
    assert!(!processes.is_empty());
    for (process, _) in processes {
        kill(process, "KILL");
    }
    let ended = finish(child);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let named = ended
        .stderr
        .lines()
        .filter(|l| l.starts_with("failed: extensions/mexican-hat/rank/failing"));
    assert_eq!(
        named.filter(|l| l.contains("sigma = 0") && l.contains(".log")).count(),
        6,
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("18 of 24 units on record"), "{}", ended.stderr);
    assert_eq!(repository.raw("out").len(), 18);
    let ending = json(&of_run(&repository, "out", "result.json"));
    assert_eq!(ending["rounds"], 2, "{ending}");
}

/// Catches options that are silently ignored, and rejections by Slurm without an explanation.
#[test]
fn slurm_refusals_are_reported() {
    let repository = Repository::with_experiment(common::EXPERIMENT);
    repository
        .fails(&["reproduce", "--partition", "a"], &["--partition requires --executor slurm"]);
    repository.fails(&["reproduce", "--detach"], &["--detach requires --executor slurm"]);
    repository.fails(&["reproduce", "--executor", "slurm", "--force"], &["--force", "--out"]);
    let word = ["reproduce", "--executor", "slurm", "--sbatch-arg=evil.sh"];
    repository.fails(&word, &["evil.sh", "begins with `-`"]);
    let nowhere =
        repository.command(&["reproduce", "--executor", "slurm"]).env("PATH", "").output();
    let nowhere: Run = nowhere.unwrap().into();
    assert!(
        nowhere.code == 2 && nowhere.stderr.contains("sbatch was not found"),
        "{}",
        nowhere.stderr
    );

    let Some(cluster) = Cluster::start() else { return };
    let refused = |more: &[&str], needle: &str| {
        let all = [&["reproduce", "--profile", "smoke", "--executor", "slurm"], more].concat();
        let run = run(&repository, &cluster, &all);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains(needle) && run.stderr.contains("task.sh"), "{}", run.stderr);
        assert_eq!(cluster.queue(), "");
        assert!(!repository.path().join("out/slurm/current.json").exists());
    };
    refused(&["--partition", "no such"], "invalid partition");
    refused(&["--gres", "gpu:1"], "generic resource");
    refused(&["--time", "soon; rm -rf x"], "time");
}

/// Catches a node that runs its share although its data or definitions differ from the submitter's.
#[test]
fn a_node_with_other_definitions_refuses_its_share() {
    let Some(cluster) = Cluster::start() else { return };
    let repository = Repository::with_experiment(common::EXPERIMENT);
    // Held until the definition has changed.
    let slurm =
        ["reproduce", "--executor", "slurm", "--sbatch-arg=--hold", "extensions/mexican-hat/rank"];
    let mut child = command(&repository, &cluster, &slurm).spawn().unwrap();
    let there = |file: &str| {
        let folder = repository.path().join("out/slurm");
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|e| e.path().join(file)).any(|path| path.exists())
    };
    wait("state.json", &mut child, || there("state.json"));
    let file = "experiments/extensions/01-mexican-hat.yaml";
    let before = repository.read(file);
    repository.write(file, &before.replace("sigma: 5", "sigma: 6"));
    cluster.release();
    wait("report of the task", &mut child, || there("task-1-0.json"));
    repository.write(file, &before);
    let ended = finish(child);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("settings differ"), "{}", ended.stderr);
    assert!(repository.raw("out").is_empty());
    // The report lists these failures like any other failure of this machine.
    let page = repository.read("out/report/extensions/mexican-hat.md");
    assert!(page.contains("settings differ"), "{page}");
    let again = run(&repository, &cluster, &["reproduce", "extensions/mexican-hat/rank"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(!repository.raw("out").is_empty());
    assert!(!repository.read("out/report/extensions/mexican-hat.md").contains("settings differ"));
}
