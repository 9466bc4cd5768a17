//! The committed reference record: what it must have.

use crate::common::{files_in, has};

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use posenc_data::Manifest;
use posenc_experiments::Catalog;
use posenc_experiments::record::{Benchmarks, ItemRecord, Provenance, Table, item, picture};
use posenc_experiments::schema::Experiment;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn record(paper: &str, item: &str) -> Table {
    let folder = item::folder(&root().join("report/record"), paper, item);
    let record = ItemRecord::read_tables(&folder).unwrap_or_else(|e| panic!("{e}"));
    record.map(|(table, _)| table).unwrap_or_default()
}

/// Catches a data set whose `used_by` lacks an item that reads the set, or names another, and a list of a paper's data that names an unknown
/// set, a replacement, or generated data.
#[test]
fn manifest_items_and_papers_name_each_other() {
    let manifest = Manifest::read(&root().join("data/manifest.yaml")).unwrap();
    let catalog = Catalog::read(&root(), posenc_protocols::KINDS).unwrap();
    let signals = manifest.sets().iter().map(|set| (&set.id, &set.used_by));
    let files = manifest.file_sets().iter().map(|set| (&set.id, &set.used_by));
    for (set, used_by) in signals.chain(files) {
        let reads = |e: &&Experiment| {
            let data = e.groups.iter().filter_map(|g| g.data.as_ref());
            let sets = data.flat_map(|d| [Some(&d.set), d.held_out.as_ref(), d.weights.as_ref()]);
            sets.flatten().any(|id| id == set)
        };
        let reading: BTreeSet<String> =
            catalog.experiments.iter().filter(reads).map(Experiment::id).collect();
        let named: BTreeSet<String> = used_by.iter().cloned().collect();
        assert_eq!(named, reading, "used_by of {set}");
    }
    for paper in &catalog.papers {
        for set in &paper.data {
            let is_papers = match (manifest.get(set), manifest.file_set(set)) {
                (Ok(set), _) => set.substitutes_for.is_none() && !set.id.starts_with("embedded-"),
                (_, Some(files)) => files.substitutes_for.is_none(),
                _ => false,
            };
            assert!(is_papers, "{}: {set}", paper.key);
        }
    }
    let photographs = catalog.experiment("lff", "fig3").and_then(|e| e.group("photographs"));
    assert!(!photographs.unwrap().is_papers_data("div2k-train"), "the paper trained on ImageNet");
}

/// Catches a profile whose definition was removed or cut while rows of the reference record still refer to it: their reduction
/// would be unknown, and they would be compared with published values as if they had run at full scale. Also catches committed pictures of
/// data other than generated signals, and pictures that no table names.
#[test]
fn recorded_rows_have_their_profiles_and_pictures_are_of_generated_signals() {
    let catalog = Catalog::read(&root(), posenc_protocols::KINDS).unwrap();
    let (mut checked, mut listed) = (0, 0);
    for experiment in &catalog.experiments {
        let Table { rows, pictures } = record(&experiment.paper, &experiment.item);
        for row in &rows {
            let group = experiment.group(&row.group);
            let group =
                group.unwrap_or_else(|| panic!("{}: no group {}", experiment.id(), row.group));
            // Counts, such as numbers of parameters, do not depend on the profile.
            let is_counted = catalog.metrics.rule(&row.metric).is_some_and(|rule| rule.exact);
            assert!(
                is_counted || group.runs_at(row.profile),
                "{}/{} at {}",
                experiment.id(),
                row.group,
                row.profile
            );
            checked += 1;
        }
        for picture in &pictures {
            let own = picture::is_publishable(&picture.data);
            assert!(own, "{}: {} of {}", experiment.id(), picture.unit, picture.data);
        }
        listed += pictures.iter().map(|p| &p.unit).collect::<BTreeSet<_>>().len();
    }
    assert!(checked > 10_000, "{checked} rows were checked");
    let files = files_in(&root().join("report"), "png");
    assert_eq!(files.len(), listed, "pictures that no table names");
}

/// Catches a reference record whose definition has changed since: its page would state settings with which its numbers were not measured.
/// Only inputs of errata (`data`), which are recomputed for each report, may be older.
#[test]
fn records_are_of_the_current_definitions() {
    let mut verify = Command::new(env!("CARGO_BIN_EXE_posenc"));
    let output = verify.args(["verify", "--sample", "1"]).current_dir(root()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    has(&text, &["1 of ", " recorded units are repeated"]);
    let changed = text.lines().filter(|line| line.starts_with("changed: "));
    let is_errata = |line: &str| {
        let names = line["changed: ".len()..].split(": definition").next().unwrap_or_default();
        names.split(", ").all(|name| name.contains("/errata/"))
    };
    let is_stale = |line: &&str| !(is_errata(line) && line.contains("(record → here): data "));
    let stale: Vec<&str> = changed.filter(is_stale).collect();
    assert!(stale.is_empty(), "record again: {stale:#?}");
}

/// Catches a changed bit of a committed file that goes unnoticed, a checksum that depends on line ends, and files of earlier versions
/// that no longer read.
#[test]
fn checksums_cover_every_byte() {
    type Parse = fn(&Path, &str) -> bool;
    let files: [(&str, Parse); 2] = [
        ("benchmarks.json", |file, text| Benchmarks::parse(file, text).is_ok()),
        ("trading/fig8/provenance.json", |file, text| Provenance::parse(file, text).is_ok()),
    ];
    for (file, parse) in files {
        let text = std::fs::read_to_string(root().join("report/record").join(file)).unwrap();
        let reads = |text: &str| parse(Path::new(file), text);
        assert!(reads(&text) && reads(&text.replace('\n', "\r\n")), "{file}");
        let (_, rest) = text.split_once(",\n").unwrap();
        assert!(reads(&format!("{{\n{rest}")), "{file}");
        for (place, bit) in (0..100).chain((100..text.len()).step_by(97)).zip((0..7).cycle()) {
            let mut changed = text.clone().into_bytes();
            changed[place] ^= 1 << bit;
            let Ok(changed) = String::from_utf8(changed) else { continue };
            assert!(!reads(&changed), "{file}: bit {bit} of byte {place}");
        }
    }
}
