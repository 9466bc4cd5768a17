//! Every reader of files, on every seed of the fuzz targets, on every input that once failed, and on hostile files.

#[path = "inputs/hostile.rs"]
mod hostile;
#[path = "../../../../fuzz/src/lib.rs"]
mod readers;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use posenc_math::random::{below, stream};
use readers::TARGETS;

/// Files of a folder of `fuzz/`, by name; none if there is no such folder.
fn files(folder: &str, target: &str) -> Vec<PathBuf> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let entries = std::fs::read_dir(fuzz.join(folder).join(target));
    let mut files: Vec<PathBuf> =
        entries.into_iter().flatten().map(|e| e.unwrap().path()).collect();
    files.sort();
    files
}

/// Number of readers of a target that accept the bytes.
fn accepted(target: &str, what: &str, bytes: &[u8]) -> usize {
    // The output of a failed test shows the input.
    println!("{target}: {what}, {} bytes", bytes.len());
    let (_, read) = TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    read(bytes)
}

/// Catches a reader that panics on a seed or on an input that once failed, and seeds that no reader accepts any more, so that fuzzing
/// would start from nothing.
#[test]
fn every_seed_is_read() {
    for (name, _) in TARGETS {
        let read = |file: &Path| {
            accepted(name, &file.display().to_string(), &std::fs::read(file).unwrap())
        };
        let seeds = files("corpus", name);
        assert!(!seeds.is_empty(), "{name} has no seeds");
        for seed in &seeds {
            // These seeds cover the branches that reject them.
            let refused = ["fortran.npy", "structured.npy", "scalar.npy", "clips.npz"];
            let refused = refused.iter().any(|end| seed.ends_with(end));
            assert!(read(seed) > 0 || refused, "{}: no reader accepts it", seed.display());
        }
        for file in files("regressions", name) {
            read(&file);
        }
    }
}

/// Catches a reader that panics on a damaged file: seeds with a few other bytes, cut at a random place.
#[test]
fn damaged_seeds_make_no_reader_panic() {
    for (name, _) in TARGETS {
        let mut random = stream(0, name);
        let seeds = files("corpus", name);
        let seeds = seeds.iter().map(|seed| std::fs::read(seed).unwrap());
        for seed in seeds.filter(|seed| (1..=20_000).contains(&seed.len())) {
            for n in 0..20 {
                let mut bytes = seed.clone();
                for _ in 0..4 {
                    let at = below(&mut random, bytes.len());
                    bytes[at] = below(&mut random, 256) as u8;
                }
                if n % 2 == 0 {
                    bytes.truncate(below(&mut random, seed.len()));
                }
                accepted(name, &format!("damage {n}"), &bytes);
            }
        }
    }
}

/// Catches a hostile file that is accepted, or that makes a reader panic.
#[test]
fn hostile_files_are_refused() {
    for (name, what, bytes) in hostile::files() {
        assert_eq!(accepted(name, what, &bytes), 0, "{name}: {what} is accepted");
    }
}

/// Catches a reader whose time grows with the square of its file's length: files of megabytes with very many rows, methods, places or
/// nodes take seconds, or hours.
#[test]
fn time_grows_with_the_length() {
    for (name, what, bytes) in hostile::large_files() {
        let started = Instant::now();
        accepted(name, what, &bytes);
        let spent = started.elapsed();
        assert!(spent < Duration::from_secs(120), "{name}: {what} took {spent:?}");
    }
}
