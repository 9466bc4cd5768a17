//! The protocol `widget-captioning` end to end: on generated screens, and on files in RICO's format, written by the tests.

use crate::common;

use common::Repository;
use posenc_data::generate::ScreenGrammar;
use posenc_data::interfaces::write_widget_screens;
use posenc_math::random::stream;

const PROTOCOL: &str = "kind: widget-captioning, steps: 3, batch: 2, screens: 6, held_out: 4, learning_rate: 0.01, warm_up: 1, encoding: { features: \
                        fourier, learned: true, gamma: 100, groups: 4, width: 4, modulator: { hidden: 4, dropout: 0.2 } }, model: { vocabulary: 120, \
                        word_width: 6, types: 12, tree_rows: 30, width: 8, heads: 2, feed_forward: 8, encoder_layers: 1, decoder_layers: 1, \
                        channels: [2, 3] }";

const DATA: &str = "    data: { set: rico-widget-captioning, weights: glove-6b-300d }\n";

fn experiment(data: &str, protocol: &str) -> String {
    common::experiment(&format!(
        "  - id: group\n{data}    protocol: {{ {protocol} }}\n    variants: [{{ id: one }}]\n"
    ))
}

/// Writes generated screens into the folder of the set.
fn screens(repository: &Repository) -> std::path::PathBuf {
    let folder = repository.path().join("data/rico");
    let grammar = ScreenGrammar::new(1.1);
    let mut rng = stream(3, "screens of the test");
    let mut some =
        |count: usize| -> Vec<_> { (0..count).map(|_| grammar.draw(&mut rng)).collect() };
    let [trained, chosen, tested] = [some(6), some(1), some(3)];
    write_widget_screens(&folder, [&trained, &chosen, &tested]).unwrap();
    folder
}

/// Value of a metric, in its first row.
fn value(rows: &[String], metric: &str) -> f64 {
    let fields = rows.iter().map(|r| r.split(',').collect::<Vec<_>>());
    let row = fields.into_iter().find(|f| f[6] == metric);
    row.unwrap_or_else(|| panic!("{metric}: {rows:#?}"))[9].parse().unwrap()
}

/// Rows of losses and scores, without times.
fn learned(repository: &Repository, out: &str) -> Vec<String> {
    let mut rows = repository.rows(out);
    let kept = [",training_curve,", ",cider", ",bleu_", ",rouge,", ",meteor,", ",test_widgets,"];
    rows.retain(|row| kept.iter().any(|metric| row.contains(metric)));
    assert!(rows.len() >= 9, "{rows:#?}");
    rows
}

fn record(repository: &Repository, out: &str) -> String {
    let raw = repository.raw(out);
    assert_eq!(raw.len(), 1, "{raw:?}");
    std::fs::read_to_string(&raw[0]).unwrap()
}

/// Without data, generated screens go through the reader of RICO's files. Catches results that depend on the number of threads, or
/// not on the seed.
#[test]
fn generated_screens_give_the_same_bits() {
    let repository = Repository::with_experiment(&experiment("", PROTOCOL));
    repository.ok(&["reproduce", "--jobs", "1", "--out", "one"]);
    repository.ok(&["reproduce", "--jobs", "2", "--out", "two"]);
    assert_eq!(learned(&repository, "one"), learned(&repository, "two"));
    repository.ok(&["reproduce", "--seed", "7", "--out", "other"]);
    assert_ne!(learned(&repository, "one"), learned(&repository, "other"));
    let rows = repository.rows("one");
    assert_eq!(value(&rows, "screens"), 6.0);
    let test = value(&rows, "test_widgets");
    assert!((12.0..=16.0).contains(&test), "{test}");
    for suffix in ["", "_pixels"] {
        let of = |name: &str| value(&rows, &format!("{name}_widgets{suffix}"));
        assert_eq!(of("seen") + of("unseen"), test);
    }
    let text = record(&repository, "one");
    assert!(text.contains("found no word vectors"), "{text}");
    assert!(text.contains("train: ") && text.contains("vocabulary: "), "{text}");
}

/// Catches widgets of other splits among those of Figure 5, and boxes of all nodes instead of those with captions.
#[test]
fn positions_are_those_of_training_widgets() {
    let data = "    data: { set: rico-widget-captioning }\n";
    let protocol = "kind: box-positions, captioned: true";
    let repository = Repository::with_experiment(&experiment(data, protocol));
    let folder = screens(&repository);
    let trained = std::fs::read_to_string(folder.join("split/train.txt")).unwrap();
    let table = std::fs::read_to_string(folder.join("widget_captions.csv")).unwrap();
    let is_trained =
        |row: &&str| trained.lines().any(|screen| row.split(',').next() == Some(screen));
    let widgets = table.lines().skip(1).filter(is_trained).count();
    assert!(widgets > 12 && table.lines().count() > widgets + 8);
    repository.ok(&["reproduce"]);
    assert_eq!(value(&repository.rows("out"), "widgets"), widgets as f64);
    assert!(record(&repository, "out").contains("train: "));
}

/// Catches screens that are not read from the data directory, word vectors without effect, rows that are skipped without a count,
/// and records that do not name their data.
#[test]
fn files_are_read_and_skipped_rows_are_counted() {
    let repository = Repository::with_experiment(&experiment(DATA, PROTOCOL));
    let without = repository.ok(&["reproduce", "--out", "nothing"]);
    for needle in
        ["not run: extensions/mexican-hat/group", "rico-widget-captioning", "interactionmining"]
    {
        assert!(without.stderr.contains(needle), "{needle}: {}", without.stderr);
    }
    let folder = screens(&repository);
    let table = folder.join("widget_captions.csv");
    let mut text = std::fs::read_to_string(&table).unwrap();
    text.push_str("99999,0.1,never shown,nr\n1,0.1.50,not there,g\n4711,0,in no split,g\n");
    std::fs::write(&table, text).unwrap();
    let run = repository.ok(&["reproduce", "--out", "drawn"]);
    assert!(run.stderr.contains("unverified:rico-widget-captioning"), "{}", run.stderr);
    let drawn = record(&repository, "drawn");
    for needle in [
        "1 about screens that were never released",
        "1 about screens in no split",
        "1 whose node is missing",
        "found no word vectors",
    ] {
        assert!(drawn.contains(needle), "{needle}: {drawn}");
    }
    repository.ok(&["reproduce", "--jobs", "2", "--out", "again"]);
    assert_eq!(learned(&repository, "drawn"), learned(&repository, "again"));
    let vectors = repository.path().join("data/glove");
    std::fs::create_dir_all(&vectors).unwrap();
    let line = |word: &str, v: f64| format!("{word} {v} {} 0.3 -0.4 0.5 1.5\n", -v);
    let lines = [line("open", 0.7), line("the", -0.2), line("list", 0.1)].concat();
    std::fs::write(vectors.join("glove.6B.6d.txt"), &lines).unwrap();
    repository.ok(&["reproduce", "--out", "vectors"]);
    let read = record(&repository, "vectors");
    assert!(read.contains("read word vectors"), "{read}");
    assert_ne!(learned(&repository, "drawn"), learned(&repository, "vectors"));
    // Errors name the file and the line.
    let arguments = ["reproduce", "--out", "damaged"];
    std::fs::write(vectors.join("glove.6B.6d.txt"), &lines[..lines.len() - 9]).unwrap();
    repository.fails(&arguments, &["glove.6B.6d.txt:3", "numbers after the word"]);
    std::fs::write(vectors.join("glove.6B.6d.txt"), "other 1 2 3 4 5 6\n").unwrap();
    repository.fails(&arguments, &["glove.6B.6d.txt", "none of the"]);
}

/// Catches damaged or missing files that are not named, cause a panic, or are accepted.
#[test]
fn damaged_files_are_named() {
    let repository = Repository::with_experiment(&experiment(DATA, PROTOCOL));
    let folder = screens(&repository);
    let spoil = |file: &str, change: &dyn Fn(Vec<u8>) -> Option<Vec<u8>>, needles: &[&str]| {
        let path = folder.join(file);
        let whole = std::fs::read(&path).unwrap();
        match change(whole.clone()) {
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        repository.fails(&["reproduce"], needles);
        std::fs::write(&path, whole).unwrap();
    };
    let half = |bytes: Vec<u8>| Some(bytes[..bytes.len() / 2].to_vec());
    let without = |key: &'static str| {
        move |bytes: Vec<u8>| {
            Some(String::from_utf8(bytes).unwrap().replace(key, "\"other\"").into_bytes())
        }
    };
    spoil("combined/2.jpg", &half, &["combined/2.jpg", "truncated"]);
    spoil(
        "combined/8.jpg",
        &|_| Some(b"no picture".to_vec()),
        &["combined/8.jpg", "not a readable"],
    );
    spoil("combined/3.jpg", &|_| None, &["combined/3.jpg", "1 of 10 screens with captions"]);
    spoil("combined/4.json", &half, &["combined/4.json", "EOF"]);
    spoil(
        "combined/5.json",
        &without("\"bounds\""),
        &["combined/5.json", "missing field `bounds`"],
    );
    let column = without("nodeId");
    spoil("widget_captions.csv", &column, &["widget_captions.csv:1", "no column `nodeId`"]);
    let cut = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        Some(text.trim_end().rsplit_once(',').unwrap().0.as_bytes().to_vec())
    };
    spoil("widget_captions.csv", &cut, &["widget_captions.csv:", "3 fields, but the header has 4"]);
    spoil("split/dev.txt", &|_| None, &["split/dev.txt"]);
    spoil(
        "split/dev.txt",
        &|_| Some(b"7\n1\n".to_vec()),
        &["split/dev.txt:2", "screen 1 is also in"],
    );
    repository.ok(&["reproduce"]);
}

/// Catches sets of another protocol that are accepted.
#[test]
fn sets_of_another_format_are_refused() {
    for (data, needle) in [
        ("    data: { set: multi30k }\n", "widget captions"),
        (
            "    data: { set: rico-widget-captioning, weights: resnet50 }\n",
            "is not a set of word vectors",
        ),
    ] {
        let repository = Repository::with_experiment(&experiment(data, PROTOCOL));
        let run = repository.run(&["reproduce", "--dry-run"]);
        assert!(run.code == 2 && run.stderr.contains(needle), "{data}: {}", run.stderr);
    }
}
