//! Data that protocols read by themselves, end to end: downsampled images and parallel text made by the test.

mod common;

use std::path::Path;

use common::Repository;
use posenc_data::write_archive;

fn experiment(group: &str) -> String {
    format!(
        "paper: extensions\nitem: mexican-hat\nkind: extra\ntitle: A test\nshows: A test\ngroups:\n{group}"
    )
}

/// A model of one layer on 4 × 4 pixels.
fn reformer(data: &str, settings: &str) -> String {
    experiment(&format!(
        "  - id: images\n{data}    protocol:\n      kind: reformer\n      steps: 2\n      held_out: 2\n      learning_rate: 0.01\n      warm_up: 0\n      encoding: {{ features: sine }}\n      model: {{ side: 4, layers: 1, width: 16, pixel_width: 12, feed_forward: 8, hashing: {{ heads: 1, head_width: 4, chunk: 8, buckets: 4 }} }}\n{settings}    variants: [{{ id: one }}]\n"
    ))
}

fn text(data: &str, lengths: &str) -> String {
    experiment(&format!(
        "  - id: text\n{data}    protocol: {{ kind: translation, words: 6, longest: 8, lengths: {lengths}, held_out: 4, layers: 1, width: 8, heads: 2, feed_forward: 8, deviation: 0.02, batch: 4, steps: 3, learning_rate: 0.01, warm_up: 1, bin: 2 }}\n    variants: [{{ id: one }}]\n"
    ))
}

/// Value of a metric, of the row without abscissa.
fn value(rows: &[String], metric: &str) -> f64 {
    let fields = rows.iter().map(|r| r.split(',').collect::<Vec<_>>());
    let row = fields.into_iter().find(|f| f[6] == metric);
    row.unwrap_or_else(|| panic!("{metric}: {rows:#?}"))[9].parse().unwrap()
}

/// The text of the one raw record.
fn record(repository: &Repository, out: &str) -> String {
    let raw = repository.raw(out);
    assert_eq!(raw.len(), 1, "{raw:?}");
    std::fs::read_to_string(&raw[0]).unwrap()
}

fn images(folder: &Path, seed: usize) {
    std::fs::create_dir_all(folder).unwrap();
    let image = |i: usize| (0..48).map(|at| ((at * 5 + i * seed) % 256) as u8).collect();
    for (name, count) in [("train_data_batch_1", 3), ("train_data_batch_2", 2), ("val_data", 2)] {
        let images: Vec<Vec<u8>> = (0..count).map(image).collect();
        write_archive(&folder.join(format!("{name}.npz")), 4, &images).unwrap();
    }
}

/// Catches images that are not read from where they lie, runs that differ between two starts, and records that do not say
/// what they were measured on.
#[test]
fn a_reformer_trains_on_archives_and_says_which() {
    let repository = Repository::with_experiment(&reformer("    data: { set: imagenet64 }\n", ""));
    images(&repository.path().join("pictures/imagenet64"), 3);
    images(&repository.path().join("other/imagenet64"), 7);
    for (data, out) in [("pictures", "one"), ("pictures", "two"), ("other", "other")] {
        let run = repository.ok(&["reproduce", "--data", data, "--out", out]);
        assert!(run.stderr.contains("unverified:imagenet64"), "{}", run.stderr);
    }
    let bits = |out: &str| value(&repository.rows(out), "bits");
    assert!(bits("one") > 6.0 && bits("one") < 12.0, "{}", bits("one"));
    assert_eq!(bits("one").to_bits(), bits("two").to_bits());
    assert_ne!(bits("one"), bits("other"));
    let rows = repository.rows("one");
    assert!(
        rows.iter().all(|r| r.ends_with(",unverified:imagenet64") || r.starts_with("paper,")),
        "{rows:#?}"
    );
    assert_eq!(value(&rows, "archives"), 1.0);
    assert!(record(&repository, "one").contains("npz archives"));
}

/// Catches a group that runs on something else where its files are missing, and a message without a place to look.
#[test]
fn without_its_files_a_group_does_not_run() {
    let repository = Repository::with_experiment(&reformer("    data: { set: imagenet64 }\n", ""));
    let run = repository.ok(&["reproduce"]);
    for needle in
        ["not run: extensions/mexican-hat/images", "imagenet64", "image-net.org", "0 of 0 units"]
    {
        assert!(run.stderr.contains(needle), "{needle}: {}", run.stderr);
    }
}

/// Catches damaged files that end the run or pass for others: the unit fails, the message names file and array.
#[test]
fn a_damaged_archive_fails_its_unit() {
    let repository = Repository::with_experiment(&reformer("    data: { set: imagenet64 }\n", ""));
    let folder = repository.path().join("pictures/imagenet64");
    images(&folder, 3);
    let whole = std::fs::read(folder.join("val_data.npz")).unwrap();
    std::fs::write(folder.join("val_data.npz"), &whole[..whole.len() - 40]).unwrap();
    repository.fails(&["reproduce", "--data", "pictures"], &["val_data.npz", "not a complete npz"]);
}

/// Without data the model is trained on generated images through the same reader. Catches sizes that are refused after
/// the model was built, or not at all.
#[test]
fn generated_images_go_through_the_same_reader_and_wrong_sizes_are_named() {
    let repository = Repository::with_experiment(&reformer("", ""));
    repository.ok(&["reproduce", "--jobs", "1", "--out", "one"]);
    repository.ok(&["reproduce", "--jobs", "2", "--out", "two"]);
    let bits = |out: &str| value(&repository.rows(out), "bits");
    assert_eq!(bits("one").to_bits(), bits("two").to_bits());
    for (settings, needle) in [
        ("{ model: { side: 4, hashing: { chunk: 7 } } }", "7 does not divide the 96 slots"),
        ("{ model: { levels: 16 } }", "images have 256"),
        ("{ model: { pixel_width: 1024 } }", "pixel_width: 1024"),
        ("{ encoding: { features: fourier } }", "gamma: missing"),
        ("{ model: { depth: 3 } }", "depth"),
    ] {
        let text =
            reformer("", "").replace("id: one }", &format!("id: one, settings: {settings} }}"));
        let run = Repository::with_experiment(&text).run(&["list"]);
        assert_eq!(run.code, 2, "{settings}: {}", run.stderr);
        let is_placed = run.stderr.contains("01-mexican-hat.yaml:");
        assert!(is_placed && run.stderr.contains(needle), "{settings}: {}", run.stderr);
    }
}

/// Catches text that is not learned from, lines that are lost without a word, and lengths that have no meaning.
#[test]
fn text_is_translated_and_left_out_lines_are_counted() {
    let data = "    data: { set: multi30k }\n";
    let repository = Repository::with_experiment(&text(data, "natural"));
    let folder = repository.path().join("books/multi30k");
    std::fs::create_dir_all(&folder).unwrap();
    for split in ["train", "val"] {
        std::fs::write(folder.join(format!("{split}.en")), "A dog.\n\nTwo cats run.\nA cat\n")
            .unwrap();
        std::fs::write(
            folder.join(format!("{split}.de")),
            "Ein Hund.\nx\nZwei Katzen laufen.\nEine Katze\n",
        )
        .unwrap();
    }
    let run = repository.ok(&["reproduce", "--data", "books"]);
    assert!(run.stderr.contains("other:multi30k"), "{}", run.stderr);
    let rows = repository.rows("out");
    assert!(value(&rows, "loss") > 0.0 && value(&rows, "loss_of_guessing") < (7.0f64).ln());
    assert!(record(&repository, "out").contains("1 of 4 lines of train"));
    std::fs::remove_file(folder.join("val.de")).unwrap();
    repository.fails(&["reproduce", "--data", "books"], &["val.de or val.de.gz"]);
    for (data, lengths, needle) in
        [(data, "uniform", "natural, filled"), ("", "natural", "log-normal, constant, uniform")]
    {
        let run = Repository::with_experiment(&text(data, lengths)).run(&["list"]);
        assert!(run.code == 2 && run.stderr.contains(needle), "{}", run.stderr);
    }
    let picked = text("    data: { set: multi30k, pick: [0] }\n", "natural");
    Repository::with_experiment(&picked).fails(&["reproduce"], &["multi30k", "leave `data.pick`"]);
    let images = Repository::with_experiment(&text("    data: { set: div2k-test }\n", "natural"));
    images.fails(
        &["reproduce"],
        &["div2k-test", "images or clips", "`translation` reads parallel text"],
    );
}
