//! Comparisons of methods of another item.

use posenc_experiments::Catalog;
use posenc_experiments::record::Row;
use posenc_experiments::schema::Profile;
use posenc_experiments::schema::display::Positions;
use posenc_report::{Records, Report};

use crate::common::{has, markdown, paper_yaml, records_of, rendered, repository};

const TABLE1: &str = include_str!("fixture/compared.yaml");

const DEPTH: &str = include_str!("fixture/depth.yaml");

const PUBLISHED: &str = include_str!("fixture/compared.csv");

fn catalog(depth: &str) -> Result<Catalog, String> {
    catalog_of(TABLE1, depth)
}

fn catalog_of(table1: &str, depth: &str) -> Result<Catalog, String> {
    let files = [
        ("experiments/demo/paper.yaml", &*paper_yaml("demo", &["table1", "depth"])),
        ("experiments/demo/01-table1.yaml", table1),
        ("experiments/demo/02-depth.yaml", depth),
        ("data/papers/demo.csv", PUBLISHED),
    ];
    repository(&files)
}

fn row(group: &str, method: &str, signal: usize, metric: &str, value: f64) -> Row {
    Row {
        signal: format!("image-{signal:02}"),
        data: "pictures".into(),
        ..Row::new(group, method, metric, value)
    }
}

/// The deep network on 3 images and the linear layer on 4. The linear layer is better with Gau and worse with Tri. With
/// RFF, the deep network has only a reduced run.
fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (method, differences) in [("Gau", [1.0, 1.2, 0.8]), ("Tri", [-2.0, -2.1, -2.2])] {
        for (signal, difference) in differences.into_iter().enumerate() {
            let deep = 20.0 + signal as f64;
            rows.push(row("deep", method, signal, "test_psnr", deep));
            rows.push(row("deep", method, signal, "time", 100.0));
            rows.push(row("linear", method, signal, "test_psnr", deep + difference));
            rows.push(row("linear", method, signal, "time", 10.0));
        }
        rows.push(row("linear", method, 3, "test_psnr", 99.0));
    }
    rows.push(Row { profile: Profile::Smoke, ..row("deep", "RFF", 0, "test_psnr", 5.0) });
    rows.push(row("linear", "RFF", 0, "test_psnr", 20.0));
    rows
}

fn records(rows: Vec<Row>) -> Records {
    records_of("demo", "table1", rows)
}

fn report(catalog: &Catalog, rows: Vec<Row>) -> Report {
    rendered(catalog, &records(rows), None)
}

/// Catches pairs of different signals or of reduced runs, a difference on one signal that is reported like one on several, and a missing
/// figure.
#[test]
fn a_comparison_pairs_signals() {
    let catalog = catalog(DEPTH).expect("a catalog");
    let mut rows = rows();
    let own = report(&catalog, rows.clone());
    let written = markdown(&own);
    let texts = [
        "| one layer | Tri | 3 | **-2.10 (-2.35 to -1.85)** | – | 10 ",
        "|  | Gau | 3 | **+1.00 (+0.50 to +1.50)** | +0.86 | 10 ",
        "|  | RFF | 0 | – | – | – | – |",
        "from the deep network: mean over n of 16 images of",
        "3 of 16 images, full protocol",
    ];
    has(&written, &texts);
    assert!(!written.contains("cargo xtask reproduce demo/depth"), "{written}");
    assert!(own.files.keys().any(|path| path.ends_with("depth-images.svg")));
    rows.push(row("deep", "RFF", 0, "test_psnr", 18.0));
    has(&markdown(&report(&catalog, rows)), &["|  | RFF | 1 | +2.00 | – | – | – |"]);
    let none = vec![row("linear", "Gau", 0, "test_psnr", 20.0)];
    assert!(markdown(&report(&catalog, none)).contains("*Not measured yet at the full protocol.*"));
}

/// Catches a layer that is called better than a network that did not learn.
#[test]
fn networks_that_do_not_learn_are_left_out() {
    let floor = "    floor: { group: constant, method: Tri, metric: test_psnr }\n";
    let constant = "  - id: constant\n    data: { set: pictures }\n    protocol: { kind: closed-form, step: 2 }\n    variants: *both\nclaims:\n";
    let missing = catalog(&format!("{DEPTH}{floor}")).expect_err("no such group");
    assert!(missing.contains("no group in `demo/table1` named `constant`"), "{missing}");
    let table1 = TABLE1.replace("claims:\n", constant);
    let read = |floor: &str| catalog_of(&table1, &format!("{DEPTH}{floor}"));
    let wrong = read(&floor.replace("Tri", "Tir")).expect_err("no such method");
    assert!(wrong.contains("named `Tir`; allowed: Tri, Gau, RFF"), "{wrong}");
    let catalog = read(floor).expect("a catalog");
    let mut rows = rows();
    // The second network is at the floor with both methods, the third one with Gau only.
    for (signal, value) in [(0, 5.0), (1, 20.95), (2, 21.95)] {
        rows.push(row("constant", "Tri", signal, "test_psnr", value));
    }
    rows.iter_mut()
        .filter(|row| row.group == "deep" && row.method == "Tri" && row.signal == "image-02")
        .for_each(|row| row.value += 1.0);
    let text = markdown(&report(&catalog, rows));
    let remark = "The deep network does not learn with Tri on 1 signal, Gau on 2 signals: there, it is at most 0.1 dB above Tri";
    has(&text, &[remark, "| Gau | 1 | +1.00 |", "| Tri | 2 |"]);
}

/// Catches a mean or a ratio of times of different devices.
#[test]
fn times_of_different_devices_are_not_combined() {
    let catalog = catalog(DEPTH).expect("a catalog");
    let on_gpu = |row: &mut Row| {
        row.device = "GPU".into();
        if row.metric == "time" {
            row.value = 1.0;
        }
    };
    // Some signals of the deep network ran on a GPU: the times are those of the others.
    let mut mixed = rows();
    let last = mixed.iter_mut().filter(|row| row.group == "deep" && row.signal == "image-02");
    last.for_each(on_gpu);
    let gau = |rows| {
        let text = markdown(&report(&catalog, rows));
        text.lines().find(|line| line.contains("| Gau | 3 |")).expect("a row").to_owned()
    };
    let difference = "|  | Gau | 3 | **+1.00 (+0.50 to +1.50)** | +0.86 | ";
    let line = gau(mixed);
    assert!(line.starts_with(&format!("{difference}10<br>")), "{line}");
    assert!(line.contains("<sub>n = 2</sub>"), "{line}");
    // All of them did: there are no pairs of times.
    let mut apart = rows();
    apart.iter_mut().filter(|row| row.group == "deep").for_each(on_gpu);
    assert_eq!(gau(apart), format!("{difference}– | – |"));
    // All methods did: the ratio is that of the GPU.
    let mut together = rows();
    together.iter_mut().for_each(on_gpu);
    assert!(gau(together).starts_with(&format!("{difference}1 ")));
}

/// Catches a claim that is judged on some of the signals.
#[test]
fn claims_on_some_of_the_signals_are_not_comparable() {
    let catalog = catalog(DEPTH).expect("a catalog");
    let verdict = |rows| {
        let report = report(&catalog, rows);
        let verdicts = &report.verdicts[&("demo".to_owned(), "table1".to_owned())];
        verdicts[0].verdict.name().to_owned()
    };
    assert_eq!(verdict(rows()), "not comparable");
    let all = (0..16).map(|signal| row("deep", "Gau", signal, "test_psnr", 20.0)).collect();
    assert_eq!(verdict(all), "reproduced");
}

/// Catches a comparison of an item or a group that does not exist, or of signals without axes or positions, and an error without its line.
#[test]
fn comparisons_of_unknown_items_or_groups_are_refused() {
    let unknown = "02-depth.yaml:7: `comparisons[0]`: no group in `demo/table1` named `liner`; allowed: deep, linear";
    let no_item =
        "02-depth.yaml:7: `comparisons[0]`: `demo/table9` is not an item with an experiment";
    for (file, from, to, expected) in [
        (DEPTH, "group: linear", "group: liner", unknown),
        (FRONT, "group: linear", "group: liner", unknown),
        (DEPTH, "item: demo/table1", "item: demo/table9", no_item),
        (
            DEPTH,
            "- { group: linear",
            "# - { group: linear",
            "a baseline and at least one other group",
        ),
        (FRONT, "axes: 2", "axes: 0", "`comparisons[0].front.axes`: 0 axes; allowed: 1 to 3"),
        (FRONT, "axes: 2", "axes: 4", "`comparisons[0].front.axes`: 4 axes; allowed: 1 to 3"),
        (FRONT, "side: 512", "side: 0", "`comparisons[0].front.side`: no positions; allowed: 1"),
        (FRONT, "unit: dB", "unit: dB\n    late_metric: a", "excludes `late_metric` and `floor`"),
    ] {
        let error = catalog(&file.replace(from, to)).expect_err("refused");
        assert!(error.contains("02-depth.yaml:") && error.contains(expected), "{error}");
    }
}

const FRONT: &str = include_str!("fixture/front.yaml");

/// Catches dominated methods in the list, means over different signals that are compared, and methods with only a
/// reduced run.
#[test]
fn the_pareto_front_is_listed() {
    let small = FRONT.split_once("comparisons:\n").expect("comparisons").1;
    let small = small.replace("large", "small").replace("Images on a grid", "Small images");
    let both = format!("{FRONT}{}", small.replace("512", "128"));
    let catalog = catalog(&both).expect("a catalog");
    let mut rows = Vec::new();
    for (group, method, seconds, quality, signals) in [
        ("linear", "Tri", 0.01, 20.0, 4),
        ("linear", "Gau", 0.5, 19.0, 4),
        ("linear", "RFF", 2.0, 22.0, 4),
        // One dB above RFF on the signals that both have, which are the hardest.
        ("deep", "Gau", 60.0, 23.0, 2),
        ("deep", "Tri", 90.0, 21.0, 2),
    ] {
        for signal in 0..signals {
            let value = quality + 10.0 * signal as f64;
            rows.push(row(group, method, signal, "test_psnr", value));
            rows.push(row(group, method, signal, "time", seconds));
        }
    }
    rows.push(Row { profile: Profile::Smoke, ..row("deep", "RFF", 0, "test_psnr", 99.0) });
    rows.push(Row { profile: Profile::Smoke, ..row("deep", "RFF", 0, "time", 0.001) });
    // The times of a GPU are not those of a core.
    for (metric, value) in [("test_psnr", 99.0), ("time", 0.001)] {
        rows.push(Row { device: "GPU".into(), ..row("deep", "RFF", 0, metric, value) });
    }
    let text = markdown(&report(&catalog, rows.clone()));
    let table = "| 10 ms | Tri (one layer) | 35.00 | 4 | all methods |\n\
                 | 2.0 s | RFF (one layer) | 37.00 | 4 | all methods |\n\
                 | 60.0 s | Gau (network) | ≈ 38.00 | 2 | all methods |\n\n";
    assert!(text.contains(table), "{text}");

    let records = records(rows);
    let advice =
        |sides: &[usize], positions| posenc_report::advice(&catalog, &records, (sides, positions));
    let found = advice(&[300, 400], Positions::Grid);
    assert!(found.contains("all methods                 Gau (network)"), "{found}");
    assert!(found.contains("Images on a grid") && !found.contains("Small images"), "{found}");
    assert!(advice(&[100, 200], Positions::Grid).contains("Small images"));
    assert_eq!(advice(&[512; 3], Positions::Grid), "");
    assert_eq!(advice(&[512; 2], Positions::Random), "");
}

/// Catches a text on the line on which a table begins, which turns the table into a paragraph. With a local run, the name of the run
/// precedes each table.
#[test]
fn tables_of_a_local_run_begin_at_the_start_of_a_line() {
    let front = FRONT.split_once("comparisons:\n").expect("comparisons").1;
    let catalog = catalog(&format!("{DEPTH}{front}")).expect("a catalog");
    let records = records(rows());
    let text = markdown(&rendered(&catalog, &records, Some(&records)));
    let lines: Vec<&str> = text.lines().collect();
    let is_ruler = |line: &str| line.starts_with("| -") && line.chars().all(|c| "|-: ".contains(c));
    let pairs = lines.windows(2).filter(|pair| is_ruler(pair[1]));
    let heads: Vec<&str> = pairs.map(|pair| pair[0]).collect();
    let fronts = heads.iter().filter(|head| head.starts_with("| Time | Method |"));
    assert_eq!(fronts.count(), 2, "{text}");
    assert!(heads.iter().all(|head| head.starts_with("| ")), "{heads:?}");
}
