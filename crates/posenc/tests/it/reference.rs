//! Compares the committed reference record with the numbers of theory and of the papers, digit by digit. Catches a record that was
//! made with a wrong embedder, boundary, seed or cut-off.

use std::collections::BTreeSet;
use std::path::Path;

use posenc_data::Manifest;
use posenc_experiments::Catalog;
use posenc_experiments::record::{Benchmarks, Gallery, ItemRecord, Provenance, Row, Table, item};
use posenc_experiments::schema::Experiment;

fn record(paper: &str, item: &str) -> Table {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = item::folder(&root.join("report/record"), paper, item);
    let record = ItemRecord::read_tables(&folder).unwrap_or_else(|e| panic!("{e}"));
    record.map(|(table, _)| table).unwrap_or_default()
}

fn rows<'a>(table: &'a Table, group: &str, method: &str, metric: &str) -> Vec<&'a Row> {
    let found: Vec<&Row> = table
        .rows
        .iter()
        .filter(|r| r.group == group && r.method == method && r.metric == metric)
        .collect();
    assert!(!found.is_empty(), "{group}/{method} has no {metric}");
    found
}

/// The value at an abscissa, or at all, which is the same for all seeds, printed with `digits` digits.
fn printed(table: &Table, key: [&str; 3], x: Option<f64>, digits: usize) -> String {
    let mut found = rows(table, key[0], key[1], key[2]);
    found.retain(|row| x.is_none() || row.x == x);
    assert!(!found.is_empty(), "{key:?} has no value at {x:?}");
    assert!(found.iter().all(|row| row.value == found[0].value), "{key:?} at {x:?}");
    format!("{:.digits$}", found[0].value)
}

fn check_law(item: (&str, &str), symbol: &str, rows: &[(&str, &str, &str)]) {
    let table = record(item.0, item.1);
    for (parameter, open, periodic) in rows {
        let method = format!("{symbol}={parameter}");
        for (group, expected) in [("open", open), ("periodic", periodic)] {
            let digits = expected.split('.').nth(1).map_or(0, str::len);
            let value = printed(&table, [group, &method, "stable_rank"], None, digits);
            assert_eq!(value, **expected, "{item:?} {group} {method}");
        }
    }
}

/// `rethinking` Proposition 2, N = d = 1000: open interval, periodic.
#[test]
fn gaussian_law() {
    check_law(
        ("rethinking", "prop2"),
        "σ",
        &[
            ("0.1", "2.88", "2.82"),
            ("0.05", "5.60", "5.64"),
            ("0.02", "14.00", "14.10"),
            ("0.01", "28.08", "28.21"),
            ("0.005", "56.27", "56.42"),
            ("0.002", "140.90", "141.05"),
            ("0.001", "282.00", "282.12"),
            ("0.0005", "641", "641"),
        ],
    );
}

/// `rethinking` Proposition 2: the transition between the branches of the law, and the sufficient dimension.
#[test]
fn gaussian_saturation_and_dimension() {
    let table = record("rethinking", "prop2");
    for (n, expected) in [
        (8.0, "8.00"),
        (16.0, "16.00"),
        (24.0, "23.39"),
        (28.0, "25.87"),
        (32.0, "27.25"),
        (48.0, "28.20"),
        (64.0, "28.21"),
        (1000.0, "28.21"),
    ] {
        let key = ["saturation", "σ=0.01", "stable_rank"];
        assert_eq!(printed(&table, key, Some(n), 2), expected, "N = {n}");
    }
    for (d, expected) in [(20.0, "19.7"), (40.0, "39.6"), (50.0, "48.0"), (60.0, "53.1")] {
        let key = ["dimension", "σ=0.005", "stable_rank"];
        assert_eq!(printed(&table, key, Some(d), 1), expected, "d = {d}");
    }
    for (d, expected) in [(100.0, "56.26"), (150.0, "56.30"), (200.0, "56.29"), (256.0, "56.29")] {
        let key = ["dimension", "σ=0.005", "stable_rank"];
        assert_eq!(printed(&table, key, Some(d), 2), expected, "d = {d}");
    }
}

/// `rethinking` Proposition 3: the limit d → ∞ on the open interval. Sampled frequencies must stay within the spread of
/// independent samples (mean ± four standard deviations of six).
#[test]
fn rff_law() {
    let table = record("rethinking", "prop3");
    for (sigma, limit, mean, deviation) in [
        ("1", "2.74", 2.72, 0.14),
        ("5", "12.59", 11.3, 1.1),
        ("10", "25.10", 20.1, 2.3),
        ("20", "50.15", 34.6, 3.8),
        ("40", "100.27", 56.7, 5.3),
        ("70", "175.47", 83.4, 8.2),
        ("100", "250.67", 104.0, 13.0),
    ] {
        let method = format!("σ={sigma}");
        let key = ["thousand", &method, "stable_rank_limit"];
        assert_eq!(printed(&table, key, None, 2), limit, "σ = {sigma}");
        let draws = rows(&table, "thousand", &method, "stable_rank");
        assert_eq!(draws.len(), 6);
        let ours = draws.iter().map(|r| r.value).sum::<f64>() / 6.0;
        assert!((ours - mean).abs() < 4.0 * deviation / 6f64.sqrt() * 2f64.sqrt(), "{ours}");
    }
}

/// `trading` Propositions 4 and 5, N = d = 1000: open interval, periodic.
#[test]
fn rectangle_and_triangle_laws() {
    check_law(
        ("trading", "prop4"),
        "w",
        &[
            ("0.201", "4.87", "4.98"),
            ("0.101", "9.73", "9.90"),
            ("0.051", "19.40", "19.61"),
            ("0.021", "47.39", "47.62"),
            ("0.011", "90.67", "90.91"),
        ],
    );
    check_law(
        ("trading", "prop5"),
        "w",
        &[
            ("0.201", "6.57", "6.63"),
            ("0.101", "13.09", "13.20"),
            ("0.051", "26.00", "26.14"),
            ("0.021", "63.34", "63.49"),
            ("0.011", "121.05", "121.20"),
        ],
    );
}

/// `trading` Figure 9 with the parameters of Table 1, except RFF, which depends on its random frequencies.
#[test]
fn singular_values() {
    let table = record("trading", "fig9");
    for (method, stable_rank, count) in [
        ("LinF", "43.6", "51"),
        ("LogF", "15.1", "126"),
        ("Gau", "70.4", "256"),
        ("Tri", "95.9", "240"),
    ] {
        assert_eq!(printed(&table, ["regular", method, "stable_rank"], None, 1), stable_rank);
        assert_eq!(
            printed(&table, ["regular", method, "rank_above_one_percent"], None, 0),
            count,
            "{method}"
        );
    }
}

/// `trading` Table 1, closed form: 16 images of the paper's data, full protocol.
#[test]
fn table_1_closed_form() {
    let table = record("trading", "table1");
    let psnr = |method: &str| {
        let rows = rows(&table, "closed-form", method, "test_psnr");
        assert_eq!(rows.len(), 16, "{method}");
        assert!(rows.iter().all(|r| r.data == "div2k-test" && r.profile.name() == "paper"));
        let mean = rows.iter().map(|r| r.value).sum::<f64>() / 16.0;
        let variance = rows.iter().map(|r| (r.value - mean).powi(2)).sum::<f64>() / 16.0;
        (mean, variance.sqrt())
    };
    let (mean, deviation) = psnr("Tri");
    assert_eq!(format!("{mean:.2} ± {deviation:.2}"), "26.36 ± 3.39");
    assert!((psnr("Gau").0 - 26.63).abs() < 0.15);
}

/// `lff` Figure 2 (a): similarity along an axis and along the diagonal, and the ratio of the decays (1 − similarity).
#[test]
fn sine_code_decay() {
    let table = record("lff", "fig2");
    for (distance, axis, diagonal, ratio) in [
        (2.0, "0.9521", "0.9478", "1.09"),
        (4.0, "0.8836", "0.8386", "1.39"),
        (8.0, "0.8609", "0.7357", "1.90"),
        (16.0, "0.8149", "0.6631", "1.82"),
        (24.0, "0.7935", "0.6209", "1.84"),
        (31.0, "0.7815", "0.5975", "1.84"),
    ] {
        let at = |metric, digits| {
            printed(&table, ["similarity", "Sine-2D", metric], Some(distance), digits)
        };
        assert_eq!(at("similarity_axis", 4), axis);
        assert_eq!(at("similarity_diagonal", 4), diagonal);
        assert_eq!(at("decay_ratio", 2), ratio);
    }
}

/// Catches a data set whose `used_by` lacks an item that reads the set, or names another.
#[test]
fn the_manifest_names_the_items_that_read_each_set() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = Manifest::read(&root.join("data/manifest.yaml")).unwrap();
    let catalog = Catalog::read(&root, posenc_protocols::KINDS).unwrap();
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
}

/// Catches a list of a paper's data that names an unknown set, a replacement, or generated data.
#[test]
fn papers_name_sets_that_they_used() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = Manifest::read(&root.join("data/manifest.yaml")).unwrap();
    let catalog = Catalog::read(&root, posenc_protocols::KINDS).unwrap();
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
/// would be unknown, and they would be compared with published values as if they had run at full scale.
#[test]
fn every_recorded_row_has_its_profile() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let catalog = Catalog::read(&root, posenc_protocols::KINDS).unwrap();
    let mut checked = 0;
    for experiment in &catalog.experiments {
        for row in &record(&experiment.paper, &experiment.item).rows {
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
    }
    assert!(checked > 10_000, "{checked} rows were checked");
}

/// Catches a changed bit of a committed file that goes unnoticed, a checksum that depends on line ends, and files of earlier versions
/// that no longer read.
#[test]
fn checksums_cover_every_byte() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../report/record");
    type Parse = fn(&Path, &str) -> bool;
    let files: [(&str, Parse); 3] = [
        ("benchmarks.json", |file, text| Benchmarks::parse(file, text).is_ok()),
        ("trading/fig8/provenance.json", |file, text| Provenance::parse(file, text).is_ok()),
        ("trading/fig8/pictures.json", |file, text| Gallery::parse(file, text).is_ok()),
    ];
    for (file, parse) in files {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
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
