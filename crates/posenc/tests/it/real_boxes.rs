//! Boxes of screens in the format of RICO Semantics, end to end: files written by the tests.

use crate::common;

use common::Repository;

pub const SET: &str = "rico-semantics";
pub const FILE: &str = "data/rico_semantics/val.json";

const FOURIER: &str = "{ features: fourier, learned: true, gamma: 10, groups: 2, width: 8, modulator: { hidden: 8, dropout: 0.2 } }";

const LABELS: &str = "kind: icon-labels, min_count: 20, max_boxes: 4, width: 16, heads: 2, feed_forward: 16, layers: 1, dropout: 0.1, \
                      batch: 4, steps: 8, measure_every: 4, learning_rate: 0.004, warm_up: 2, decay: cosine";

fn experiment(set: &str, protocol: &str, variants: &str) -> String {
    let data = if set.is_empty() { String::new() } else { format!("    data: {{ set: {set} }}\n") };
    common::experiment(&format!(
        "  - id: group\n{data}    protocol: {{ {protocol} }}\n    variants: [{variants}]\n"
    ))
}

/// A pseudorandom number from 0 to below `n`.
fn mixed(i: usize, n: usize) -> usize {
    ((i as u64).wrapping_mul(2_654_435_761) >> 7) as usize % n
}

/// Forty screens with up to five boxes. Boxes on the left have one label, those on the right another; a third label is rare.
pub fn labelled() -> String {
    let screens = (0..40).map(|i| {
        let boxes = (0..mixed(i, 6)).map(|j| {
            let left = mixed(7 * i + j, 80) as f64 / 100.0;
            let top = mixed(31 * i + j, 80) as f64 / 100.0;
            let label = match (i, j) {
                (8, 0) => "ICON_PLAY:PLAY",
                _ if left < 0.4 => "ICON_X:CLOSE",
                _ => "ICON_THREE_DOTS:MORE",
            };
            format!(
                "{{ \"xmin\": {left}, \"ymin\": {top}, \"xmax\": {}, \"ymax\": {}, \"label\": \"{label}\" }}",
                left + 0.1,
                top + 0.05
            )
        });
        let boxes: Vec<String> = boxes.collect();
        format!("{{ \"screen_id\": \"{i}\", \"screen_elements\": [{}] }}", boxes.join(", "))
    });
    format!("[{}]", screens.collect::<Vec<_>>().join(",\n"))
}

/// A repository with an experiment on labelled screens, and their file.
fn repository(protocol: &str, variants: &str) -> Repository {
    let repository = Repository::with_experiment(&experiment(SET, protocol, variants));
    repository.write(FILE, &labelled());
    repository
}

fn value(rows: &[String], method: &str, metric: &str) -> String {
    let fields = rows.iter().map(|r| r.split(',').collect::<Vec<_>>());
    let row = fields.into_iter().find(|f| f[3] == method && f[6] == metric);
    row.unwrap_or_else(|| panic!("{method} {metric}: {rows:#?}"))[9].to_owned()
}

/// Catches results that depend on the number of threads or not on the seed, methods that do not share split, batches and masks, and
/// screens that are skipped without a remark.
#[test]
fn same_seed_gives_same_bits_and_methods_share_samples() {
    let variants = "{ id: one }, { id: other }, { id: none, settings: { encoding: { features: none } } }, \
                    { id: tables, settings: { encoding: { features: embed, summed: true } } }";
    let repository = repository(&format!("{LABELS}, encoding: {FOURIER}"), variants);
    let run = repository.ok(&["reproduce", "--jobs", "1", "--out", "one"]);
    assert!(run.stderr.contains(&format!("other:{SET}")), "{}", run.stderr);
    repository.ok(&["reproduce", "--jobs", "2", "--out", "two"]);
    let rows = repository.rows("one");
    assert_eq!(rows, repository.rows("two"));
    for metric in ["accuracy", "training_loss", "params"] {
        assert_eq!(value(&rows, "one", metric), value(&rows, "other", metric));
    }
    for metric in ["majority", "held_out_boxes"] {
        assert_eq!(value(&rows, "one", metric), value(&rows, "none", metric));
        assert_eq!(value(&rows, "one", metric), value(&rows, "tables", metric));
    }
    assert_ne!(value(&rows, "one", "training_loss"), value(&rows, "none", "training_loss"));
    for raw in repository.raw("one") {
        let text = std::fs::read_to_string(&raw).unwrap();
        for remark in
            ["skipped 7 of 40 screens", "merged 1 labels with fewer than 20 boxes (1 boxes)"]
        {
            assert!(text.contains(remark), "{remark}: {text}");
        }
    }
    repository.ok(&["reproduce", "--seed", "7", "--out", "seven"]);
    let seven = repository.rows("seven");
    assert_ne!(value(&rows, "one", "training_loss"), value(&seven, "one", "training_loss"));
}

/// Catches damage that is ignored or ends the run: the unit must fail with file and entry, and others must continue.
#[test]
fn damaged_files_fail_their_unit_and_are_named() {
    let labels = labelled();
    let protocol = format!("{LABELS}, encoding: {FOURIER}");
    let cases = [
        (labels[..labels.len() / 2].to_owned(), vec!["val.json", "may be incomplete"]),
        (
            labels.replacen("\"xmin\"", "\"x\"", 1),
            vec!["val.json", ".screen_elements[0]", "missing field `xmin`"],
        ),
        (
            "[{ \"screen_id\": \"1\", \"screen_elements\": [] }]".to_owned(),
            vec!["val.json", "0 screens have boxes"],
        ),
    ];
    for (text, needles) in cases {
        let other = "  - id: rank\n    protocol: { kind: stable-rank, samples: [4] }\n    variants: [{ id: Gaussian, embedder: { kind: \
                     gaussian, dimension: 16, sigma: 0.1 } }]\n";
        let text_of = experiment(SET, &protocol, "{ id: one }");
        let repository = Repository::with_experiment(&format!("{text_of}{other}"));
        repository.write(FILE, &text);
        let needles: Vec<&str> =
            [&["failed: extensions/mexican-hat/group/one"], &needles[..]].concat();
        repository.fails(&["reproduce"], &needles);
        assert!(repository.rows("out").iter().any(|row| row.contains(",stable_rank,")));
    }
    // A folder without its file.
    let repository = self::repository(&protocol, "{ id: one }");
    std::fs::remove_file(repository.path().join(FILE)).unwrap();
    repository.fails(&["reproduce"], &["val.json", "file not found"]);
    let text = protocol.replace("min_count: 20", "min_count: 500");
    let repository = self::repository(&text, "{ id: one }");
    repository.fails(&["reproduce"], &["no label has 500 boxes", "protocol.min_count"]);
}

/// Catches a group that runs on other data if its files are missing, and a message without their origin.
#[test]
fn groups_without_data_do_not_run_and_name_its_origin() {
    let text = experiment(SET, &format!("{LABELS}, encoding: {FOURIER}"), "{ id: one }");
    let run = Repository::with_experiment(&text).ok(&["reproduce"]);
    let line = run.stderr.lines().find(|line| line.contains("not run:")).unwrap_or("");
    let origin = "google-research-datasets/rico_semantics";
    for needle in ["extensions/mexican-hat/group", SET, "looked for", origin] {
        assert!(line.contains(needle), "{needle}: {}", run.stderr);
    }
    assert!(run.stderr.contains("0 of 0 units"), "{}", run.stderr);
}

/// Catches sets of another format that are accepted.
#[test]
fn sets_of_another_format_are_refused() {
    let sine = "encoding: { features: sine }";
    let wrong = experiment("multi30k", &format!("{LABELS}, {sine}"), "{ id: one }");
    Repository::with_experiment(&wrong)
        .fails(&["reproduce"], &["parallel text", "`icon-labels` reads labelled screens"]);
}

/// Catches boxes that are not counted, or counted under another coordinate.
#[test]
fn positions_of_labelled_boxes_are_counted() {
    let repository = repository("kind: box-positions", "{ id: one }");
    repository.ok(&["reproduce"]);
    let rows = repository.rows("out");
    let boxes = labelled().matches("xmin").count() as f64;
    assert_eq!(value(&rows, "one", "widgets").parse::<f64>().unwrap(), boxes);
    for (metric, from, to) in [("left_widgets", 0.0, 80.0), ("bottom_widgets", 4.0, 85.0)] {
        let own: Vec<[f64; 2]> = rows
            .iter()
            .map(|row| row.split(',').collect::<Vec<_>>())
            .filter(|fields| fields[6] == metric)
            .map(|fields| [fields[7].parse().unwrap(), fields[9].parse().unwrap()])
            .collect();
        assert_eq!(own.len(), 100);
        assert_eq!(own.iter().map(|[_, count]| count).sum::<f64>(), boxes);
        let is_outside = |[at, count]: &&[f64; 2]| *count > 0.0 && (*at < from || *at > to);
        assert_eq!(own.iter().filter(is_outside).count(), 0, "{metric}");
    }
}
