//! Runs the fuzzed functions on every seed, on every input that once failed, and on hostile files, with any compiler.

mod fuzz_targets;
mod hostile;
mod mutations;

// The fuzz targets import their macro from this crate.
extern crate self as libfuzzer_sys;
pub(crate) use fuzz_targets::fuzz_target;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use posenc_data::Manifest;
use posenc_experiments::Catalog;
use posenc_inputs::{TARGETS, Target, in_time, lengthened};
use posenc_report::Records;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Files of a folder of `fuzz/`, by name; none if there is no such folder.
fn files(folder: &str, target: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(fuzz().join(folder).join(target));
    let mut files: Vec<PathBuf> =
        entries.into_iter().flatten().map(|e| e.unwrap().path()).collect();
    files.sort();
    files
}

fn names(folder: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(fuzz().join(folder)).unwrap();
    entries.map(|e| e.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect()
}

fn run(target: Target, what: &str, bytes: &[u8]) -> usize {
    // The output of a failed test shows the input.
    println!("{what}, {} bytes", bytes.len());
    in_time(target, bytes)
}

/// Catches a reader that panics on a seed, and seeds that no reader accepts any more, so that fuzzing would start from nothing.
#[test]
fn every_seed_is_read() {
    for (name, target) in TARGETS {
        let seeds = files("corpus", name);
        assert!(!seeds.is_empty(), "{name} has no seeds");
        for seed in &seeds {
            let accepted = run(*target, &seed.display().to_string(), &std::fs::read(seed).unwrap());
            // These seeds cover the branches that reject them.
            let refused = ["fortran.npy", "structured.npy", "scalar.npy", "clips.npz"];
            let refused = refused.iter().any(|end| seed.ends_with(end));
            assert!(accepted > 0 || refused, "{}: no reader accepts it", seed.display());
        }
    }
}

/// Catches a dictionary that libFuzzer rejects, so that its target would not start. Valid lines are comments, and quoted ASCII with only
/// three escapes: of a backslash, of a quote, and `\xAB`.
#[test]
fn dictionaries_are_valid_for_libfuzzer() {
    for entry in std::fs::read_dir(fuzz().join("dictionaries")).unwrap() {
        let file = entry.unwrap().path();
        for (i, line) in std::fs::read_to_string(&file).unwrap().lines().enumerate() {
            let line = line.trim();
            assert!(is_dictionary_line(line), "{}:{}: {line}", file.display(), i + 1);
        }
    }
    for refused in [r#""|\n""#, "\"π\"", r#""a"#, "a", r#""\x4""#, r#""""#] {
        assert!(!is_dictionary_line(refused), "{refused}");
    }
}

fn is_dictionary_line(line: &str) -> bool {
    if line.is_empty() || line.starts_with('#') {
        return true;
    }
    let inner = line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let Some(mut rest) = inner.filter(|inner| !inner.is_empty()) else { return false };
    while let Some(c) = rest.chars().next() {
        let is_hexadecimal =
            |code: &str| code.len() == 2 && code.bytes().all(|b| b.is_ascii_hexdigit());
        let taken = match c {
            '"' => 0,
            '\\' if matches!(rest.as_bytes().get(1), Some(b'\\' | b'"')) => 2,
            '\\' if rest[1..].starts_with('x') && rest.get(2..4).is_some_and(is_hexadecimal) => 4,
            ' '..='~' if c != '\\' => 1,
            _ => 0,
        };
        if taken == 0 {
            return false;
        }
        rest = &rest[taken..];
    }
    true
}

/// Catches a limit that the repository's own experiments, manifest, records or pictures exceed.
#[test]
fn the_repository_keeps_within_the_limits() {
    let root = fuzz().join("..");
    let catalog = Catalog::read(&root, posenc_protocols::KINDS).unwrap_or_else(|e| panic!("{e}"));
    assert!(catalog.experiments.len() > 30);
    let records = Records::read(&root.join("report/record"), &catalog);
    assert!(records.unwrap_or_else(|e| panic!("{e}")).items.len() > 30);
    Manifest::read(&root.join("data/manifest.yaml")).unwrap_or_else(|e| panic!("{e}"));
}

/// Catches failures that a fuzzer once found.
#[test]
fn what_once_failed_is_survived() {
    for (name, target) in TARGETS {
        for file in files("regressions", name) {
            run(*target, &file.display().to_string(), &std::fs::read(file).unwrap());
        }
    }
}

/// Catches a hostile file that is accepted, or that makes a reader panic.
#[test]
fn hostile_files_are_refused() {
    for (name, what, bytes) in hostile::files() {
        let target = TARGETS.iter().find(|(n, _)| *n == name).unwrap().1;
        assert_eq!(run(target, what, &bytes), 0, "{name}: {what} is accepted");
    }
}

/// Catches a reader whose time grows faster than its file. Inputs are files of megabytes with very many rows, methods, places or nodes,
/// and every seed with one part repeated many times.
#[test]
fn time_grows_with_the_length() {
    for (name, what, bytes) in hostile::large_files() {
        let target = TARGETS.iter().find(|(n, _)| *n == name).unwrap().1;
        run(target, &format!("{name}: {what}"), &bytes);
    }
    for (name, target) in TARGETS {
        for seed in files("corpus", name) {
            let long = lengthened(&std::fs::read(&seed).unwrap());
            run(*target, &format!("{}, lengthened", seed.display()), &long);
        }
    }
}

/// Catches panics on mutated seeds: fuzzing with any compiler, but without coverage feedback. `POSENC_MUTATIONS=100000` runs more
/// mutations, `POSENC_SEED=1` different ones.
#[test]
fn changed_seeds_are_survived() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let count = number("POSENC_MUTATIONS").unwrap_or(300);
    for (name, target) in TARGETS {
        let read = |file: &PathBuf| std::fs::read(file).unwrap();
        let seeds: Vec<Vec<u8>> = files("corpus", name).iter().map(read).collect();
        let mut changes = mutations::Mutations::new(number("POSENC_SEED").unwrap_or(0));
        let mut accepted = 0;
        for i in 0..count {
            let bytes = changes.of(&seeds);
            let outcome = std::panic::catch_unwind(|| target(&bytes));
            let Ok(readers) = outcome else {
                let file = std::env::temp_dir().join(format!("posenc-{name}-{i}"));
                std::fs::write(&file, &bytes).unwrap();
                panic!(
                    "{name}: mutation {i} makes a reader panic; the input is in {}",
                    file.display()
                );
            };
            accepted += u64::from(readers > 0);
        }
        println!("{name}: {count} changed seeds, {accepted} accepted");
        assert!(accepted < count || count == 0, "{name}: nothing is ever refused");
    }
}

/// Catches a file of a few megabytes that makes a reader allocate gigabytes: the tests above run again in a process with a memory limit
/// of 2 GiB.
#[cfg(unix)]
#[test]
fn no_file_needs_more_than_two_gigabytes() {
    let tests = [
        "every_seed_is_read",
        "what_once_failed_is_survived",
        "hostile_files_are_refused",
        "changed_seeds_are_survived",
    ];
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 2097152 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(tests)
        .args(["--exact", "--test-threads=1", "--nocapture"])
        // The thread pool of Polars reserves memory for each thread.
        .env("POLARS_MAX_THREADS", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("4 passed"), "{said}\n{complaint}");
}

/// Catches a target without a fuzzer or seeds, a fuzzer that no test runs, and large seeds: the repository contains only small seeds
/// written for this project.
#[test]
fn targets_fuzzers_and_seeds_belong_together() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("fuzz_targets"), targets);
    assert_eq!(names("corpus"), targets);
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    let checked = include_str!("fuzz_targets/mod.rs");
    let mut bytes = 0;
    for target in &targets {
        assert!(
            manifest.contains(&format!("name = \"{target}\"")),
            "{target} is not in fuzz/Cargo.toml"
        );
        assert!(
            checked.contains(&format!("fuzz/fuzz_targets/{target}.rs")),
            "{target} is not in tests/fuzz_targets/mod.rs, so that nothing type-checks it"
        );
        let source = fuzz().join(format!("fuzz_targets/{target}.rs"));
        let source = std::fs::read_to_string(source).unwrap();
        assert!(source.contains(&format!("posenc_inputs::{target}, bytes)")), "{target}");
        let all = files("corpus", target).into_iter().chain(files("regressions", target));
        bytes += all.map(|file| std::fs::metadata(file).unwrap().len()).sum::<u64>();
    }
    assert!(bytes < 500_000, "{bytes} bytes of seeds");
}
