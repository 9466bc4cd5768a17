//! Which raw records of a variant become its rows.

use std::collections::BTreeSet;
use std::path::Path;

use posenc_data::{DataDirectory, DataSource, Manifest};
use posenc_experiments::record::{UnitRecord, Value};
use posenc_experiments::yaml::Document;
use posenc_experiments::{Catalog, Experiment, Profile};
use posenc_harness::collect::{Collected, collect};
use posenc_harness::data::DataSets;
use posenc_harness::device::Devices;
use posenc_harness::plan::Plans;
use posenc_harness::repository::Repository;
use posenc_harness::store::Store;

/// Sixteen images at the full protocol. `quick` runs the first two of them with the same settings, `smoke` three with others.
const EXPERIMENT: &str = "
paper: p
item: i
kind: extra
title: A test
shows: A test
groups:
  - id: images
    data: { set: div2k-test, signals: 16 images }
    metrics: [test_psnr]
    protocol: { kind: closed-form }
    variants:
      - { id: Gau, embedder: { kind: gaussian, dimension: 16, sigma: 0.1 } }
    profiles:
      smoke: { reduced: small images, signals: 3, settings: { side: 64 } }
      quick: { reduced: two images, signals: 2 }
";

/// The profile of the collected rows, their number, and whether the variant is complete.
fn collected(text: &str, stored: &[(Profile, usize)]) -> (Profile, usize, bool) {
    let collected = collect_from(text, stored, &[""]);
    let profiles: BTreeSet<Profile> = collected.table.rows.iter().map(|row| row.profile).collect();
    let [profile] = profiles.iter().copied().collect::<Vec<_>>()[..] else {
        panic!("{profiles:?}");
    };
    (profile, collected.table.rows.len(), collected.incomplete.is_empty())
}

/// Collects from a store that has the first units of some profiles, measured at these commits in turn.
fn collect_from(text: &str, stored: &[(Profile, usize)], commits: &[&str]) -> Collected {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for folder in ["experiments", "data"] {
        std::fs::create_dir(root.join(folder)).unwrap();
    }
    let repository = Repository::find(Some(root)).unwrap();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/manifest.yaml");
    let source = DataSource::new(
        Manifest::read(&manifest).unwrap(),
        DataDirectory::resolve(Some(&root.join("data")), root).unwrap(),
    );
    let data = DataSets::new(source, 0);
    let document = Document::parse(Path::new("a.yaml"), text).unwrap();
    let experiment = Experiment::from_document(&document, posenc_protocols::KINDS).unwrap();
    let catalog = Catalog::default();
    let plans = Plans::new(&catalog, &data, String::new(), 0);
    let store = Store::new(&root.join("out"));
    let planned = plans.of(&experiment).unwrap();
    for (profile, count) in stored {
        let jobs = planned.iter().filter(|planned| planned.job.profile == *profile);
        let units = jobs.flat_map(|planned| planned.units.iter()).take(*count);
        for (unit, commit) in units.zip(commits.iter().cycle()) {
            let record = UnitRecord {
                parts: unit.parts.clone(),
                device: "cpu".into(),
                data: unit.data.clone(),
                seconds: 1.0,
                values: ["test_psnr", "params"].map(|metric| Value::new(metric, 20.0)).into(),
                commit: (*commit).into(),
                ..UnitRecord::default()
            };
            store.write("p", "i", record, &[]).unwrap();
        }
    }
    collect(&experiment, &plans, &store, &Devices::cpu(), &repository).unwrap().unwrap()
}

/// Catches images at the full protocol that a complete smaller run hides, and a part of the full protocol that replaces a smaller
/// run with the same units.
#[test]
fn part_of_the_full_protocol_precedes_a_smaller_profile() {
    use Profile::{Paper, Quick, Smoke};
    let of = |stored: &[(Profile, usize)]| collected(EXPERIMENT, stored);
    assert_eq!(of(&[(Paper, 16)]), (Paper, 16, true));
    // An image that no smaller profile ran.
    assert_eq!(of(&[(Paper, 1), (Smoke, 3)]), (Paper, 1, false));
    assert_eq!(of(&[(Paper, 3), (Smoke, 3)]), (Paper, 3, false));
    // The units of the complete `quick`, which are the first of the full protocol.
    assert_eq!(of(&[(Paper, 2), (Smoke, 3)]), (Quick, 2, true));
    assert_eq!(of(&[(Quick, 2)]), (Quick, 2, true));
    // A part of a smaller profile never precedes a complete one.
    assert_eq!(of(&[(Quick, 0), (Smoke, 3)]), (Smoke, 3, true));
}

/// Catches a part of the full protocol that is used although its size is not stated or repetitions are missing.
#[test]
fn part_needs_a_stated_number_of_signals_and_one_repetition() {
    use Profile::{Paper, Quick, Smoke};
    let stored = [(Paper, 3), (Smoke, 3)];
    let unstated = EXPERIMENT.replace(", signals: 16 images", "");
    assert_eq!(collected(&unstated, &stored), (Quick, 2, true));
    let repeated = EXPERIMENT
        .replace("    variants:", "    seeds: 2\n    variants:")
        .replace("signals: 2 }", "signals: 2, seeds: 1 }");
    assert_eq!(collected(&repeated, &stored), (Quick, 2, true));
}

/// Catches a metric that enters records although its group does not name it, and one that is omitted although the group names no
/// metrics.
#[test]
fn groups_name_the_metrics_of_their_records() {
    let all = EXPERIMENT.replace("    metrics: [test_psnr]\n", "");
    assert_eq!(collected(&all, &[(Profile::Paper, 16)]), (Profile::Paper, 32, true));
}

/// Catches records of a modified working tree that are attributed to the commit at which they are collected.
#[test]
fn rows_come_from_the_commit_of_their_units() {
    let of = |commits: &[&str]| {
        let provenance = collect_from(EXPERIMENT, &[(Profile::Paper, 16)], commits).provenance;
        (provenance.commit_of("images", "Gau").to_owned(), provenance.commits.len())
    };
    assert_eq!(of(&["a"]), ("a".to_owned(), 0));
    assert_eq!(of(&["a", "b-dirty", ""]), ("b-dirty".to_owned(), 0));
    // Older records have no commit, and the folder is no repository.
    assert_eq!(of(&[""]), (String::new(), 0));
}
