//! Data sets that protocols read themselves, end to end: downsampled images, parallel text and annotated photographs, written by
//! the tests.

use crate::common;

use std::path::Path;

use common::{Repository, experiment};
use posenc_data::{AnnotatedBox, write_annotated, write_archive};

/// A model of one layer on 4 × 4 pixels.
fn reformer(data: &str, settings: &str) -> String {
    experiment(&format!(
        "  - id: images\n{data}    protocol:\n      kind: reformer\n      steps: 2\n      held_out: 2\n      learning_rate: 0.01\n      warm_up: 0\n      encoding: {{ features: sine }}\n      model: {{ side: 4, layers: 1, width: 16, pixel_width: 12, feed_forward: 8, hashing: {{ heads: 1, head_width: 4, chunk: 8, buckets: 4 }} }}\n{settings}    variants: [{{ id: one }}]\n"
    ))
}

/// A detector with the sizes of the stored weights.
fn detr(data: &str) -> String {
    experiment(&format!(
        "  - id: boxes\n{data}    protocol:\n      kind: detr\n      steps: 2\n      batch: 2\n      held_out: 2\n      encoding: {{ features: sine }}\n      model: {{ blocks: [1, 2, 1, 1], channels: 2, width: 16, heads: 2, feed_forward: 24, encoder_layers: 1, decoder_layers: 2, queries: 5, classes: 4 }}\n      resizing: {{ short_sides: [32, 40], longest: 64, before_window: [36], window: [24, 36], measured: 40 }}\n    variants: [{{ id: one }}]\n"
    ))
}

fn text(data: &str, lengths: &str) -> String {
    experiment(&format!(
        "  - id: text\n{data}    protocol: {{ kind: translation, words: 6, max_len: 8, lengths: {lengths}, held_out: 4, layers: 1, width: 8, heads: 2, feed_forward: 8, deviation: 0.02, batch: 4, steps: 3, learning_rate: 0.01, warm_up: 1, bin: 2 }}\n    variants: [{{ id: one }}]\n"
    ))
}

/// Value of a metric, in its first row.
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

/// Catches images that are not read from the data directory, results that differ between two runs, and records that do not name
/// their data.
#[test]
fn a_reformer_trains_on_archives_and_records_them() {
    let repository = Repository::with_experiment(&reformer("    data: { set: imagenet64 }\n", ""));
    images(&repository.path().join("pictures/imagenet64"), 3);
    images(&repository.path().join("other/imagenet64"), 7);
    for (data, out) in [("pictures", "one"), ("pictures", "two"), ("other", "of-other")] {
        let run = repository.ok(&["reproduce", "--data", data, "--out", out]);
        assert!(run.stderr.contains("unverified:imagenet64"), "{}", run.stderr);
    }
    let bits = |out: &str| value(&repository.rows(out), "bits");
    assert!(bits("one") > 6.0 && bits("one") < 12.0, "{}", bits("one"));
    assert_eq!(bits("one").to_bits(), bits("two").to_bits());
    assert_ne!(bits("one"), bits("of-other"));
    let rows = repository.rows("one");
    assert!(
        rows.iter().all(|r| r.ends_with(",unverified:imagenet64") || r.starts_with("paper,")),
        "{rows:#?}"
    );
    assert_eq!(value(&rows, "archives"), 1.0);
    assert!(record(&repository, "one").contains("npz archives"));
}

/// Catches a group that runs on other data if its files are missing, and a message without the origin of the files.
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

/// Catches damaged files that end the run or are accepted: the unit must fail with a message that names the file.
#[test]
fn a_damaged_archive_fails_its_unit() {
    let repository = Repository::with_experiment(&reformer("    data: { set: imagenet64 }\n", ""));
    let folder = repository.path().join("pictures/imagenet64");
    images(&folder, 3);
    let whole = std::fs::read(folder.join("val_data.npz")).unwrap();
    std::fs::write(folder.join("val_data.npz"), &whole[..whole.len() - 40]).unwrap();
    repository.fails(&["reproduce", "--data", "pictures"], &["val_data.npz", "not a complete npz"]);
}

/// Without data, the model trains on generated images through the same reader. Catches results that depend on the number of
/// workers, and wrong sizes that are not rejected before anything runs.
#[test]
fn generated_images_go_through_the_same_reader_and_wrong_sizes_are_named() {
    let repository = Repository::with_experiment(&reformer("", ""));
    repository.ok(&["reproduce", "--jobs", "1", "--out", "one"]);
    repository.ok(&["reproduce", "--jobs", "2", "--out", "two"]);
    let bits = |out: &str| value(&repository.rows(out), "bits");
    assert_eq!(bits("one").to_bits(), bits("two").to_bits());
    for (settings, needle) in [
        ("{ model: { side: 4, hashing: { chunk: 7 } } }", "7 must divide the 96 slots"),
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

/// Catches text that is not used, lines that are dropped without a count, and meaningless lengths that are accepted.
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
    Repository::with_experiment(&picked).fails(&["reproduce"], &["multi30k", "remove `data.pick`"]);
    let images = Repository::with_experiment(&text("    data: { set: div2k-test }\n", "natural"));
    images.fails(
        &["reproduce"],
        &["div2k-test", "images or clips", "`translation` reads parallel text"],
    );
}

fn photographs(folder: &Path, categories: usize) {
    let image = |i: usize| {
        let pixels = (0..30 * 40 * 3).map(|at| ((at * 7 + i * 50) % 251) as u8).collect();
        let corners = [2.0, 3.0, 20.0 + i as f64, 28.0];
        let own =
            AnnotatedBox { category: 1 + i % categories, corners, area: 300.0, is_crowd: i == 3 };
        (pixels, [30, 40], vec![own])
    };
    let names = ["a", "b", "c", "d"];
    let images: Vec<_> = (0..4).map(image).collect();
    write_annotated(folder, &names[..categories], &images).unwrap();
}

/// Catches photographs that are not read from the data directory, weights that are not used or do not change the unit's key, and
/// records that name neither.
#[test]
fn a_detector_trains_on_photographs_and_weights_and_records_them() {
    let repository =
        Repository::with_experiment(&detr("    data: { set: coco33, weights: resnet50 }\n"));
    let folder = repository.path().join("pictures/coco33");
    std::fs::create_dir_all(&folder).unwrap();
    photographs(&folder, 3);
    let arguments = ["reproduce", "--data", "pictures"];
    repository.ok(&arguments);
    let drawn = record(&repository, "out");
    assert!(drawn.contains("found no trained weights"), "{drawn}");
    assert!(drawn.contains("1 crowds are excluded from training"), "{drawn}");
    let loss = |out: &str| {
        let rows = repository.rows(out);
        let row = rows.iter().find(|r| r.contains(",training_curve,1,")).unwrap().clone();
        row.split(',').nth(9).unwrap().parse::<f64>().unwrap()
    };
    let before = loss("out");
    assert!(before.is_finite() && value(&repository.rows("out"), "images") == 4.0);
    let again = repository.ok(&arguments);
    assert!(again.stderr.contains("0 of 1 units"), "{}", again.stderr);
    // Adding weights next to the same files changes the unit.
    let weights = repository.path().join("pictures/weights/resnet50");
    std::fs::create_dir_all(&weights).unwrap();
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("../posenc-attention/tests/data");
    for (name, needle) in [
        ("detr.pth", "all weights except those of the position encoding in detr.pth"),
        ("network.safetensors", "the weights of the residual network in network.safetensors"),
    ] {
        let _ = std::fs::remove_file(weights.join("detr.pth"));
        std::fs::copy(stored.join(name), weights.join(name)).unwrap();
        let run = repository.run(&["reproduce", "--data", "pictures", "--out", name]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let text = record(&repository, name);
        assert!(text.contains(needle), "{text}");
        assert_ne!(loss(name), before);
    }
    let run = repository.ok(&arguments);
    assert!(run.stderr.contains("1 of 1 units"), "{}", run.stderr);
    // Damaged weights, and two files of them.
    std::fs::write(weights.join("network.safetensors"), "no weights").unwrap();
    repository.fails(&arguments, &["network.safetensors", "not a readable file of weights"]);
    std::fs::copy(stored.join("detr.pth"), weights.join("detr.pth")).unwrap();
    repository.fails(&arguments, &["single file of weights (there are 2)"]);
}

/// Catches damage that is reported without its location, and meaningless settings that are accepted.
#[test]
fn wrong_photographs_and_settings_of_a_detector_are_named() {
    let data = "    data: { set: coco33 }\n";
    let repository = Repository::with_experiment(&detr(data));
    let folder = repository.path().join("pictures/coco33");
    std::fs::create_dir_all(&folder).unwrap();
    photographs(&folder, 4);
    let arguments = ["reproduce", "--data", "pictures"];
    // The model has the classes 0 to 3.
    repository.fails(&arguments, &["category 4 is none of the model's", "0 to 3"]);
    photographs(&folder, 3);
    std::fs::write(folder.join("images/000000000002.jpg"), "no picture").unwrap();
    repository.fails(&arguments, &["000000000002.jpg", "not a readable image"]);
    std::fs::remove_file(folder.join("images/000000000002.jpg")).unwrap();
    repository.fails(&arguments, &["instances.json", "images[1] (id 2)", "not found"]);
    std::fs::write(folder.join("instances.json"), "{ \"images\": [").unwrap();
    repository.fails(&arguments, &["instances.json", "EOF"]);
    for (old, new, needle) in [
        ("heads: 2", "heads: 3", "3 heads do not divide a width of 16"),
        ("window: [24, 36]", "window: [40, 60]", "window: the smallest side 40 exceeds"),
        ("steps: 2", "steps: 2\n      learning_rate: 0", "learning_rate"),
        ("features: sine }", "features: embed }", "set `cells`"),
        ("set: coco33", "set: coco33, weights: coco33", "is not a set of weights"),
        ("set: coco33", "set: multi30k", "annotated images"),
    ] {
        let text = detr(data).replace(old, new);
        let repository = Repository::with_experiment(&text);
        let run = repository.run(&["reproduce", "--dry-run", "--data", "."]);
        assert_eq!(run.code, 2, "{new}: {}", run.stderr);
        assert!(run.stderr.contains(needle), "{new}: {}", run.stderr);
    }
}

/// Without data, the model trains on generated scenes through the same reader. Catches results that depend on the number of
/// threads, or not on the seed.
#[test]
fn a_detector_trains_on_generated_scenes_with_the_same_bits() {
    let repository = Repository::with_experiment(&detr(""));
    repository.ok(&["reproduce", "--jobs", "1", "--out", "one"]);
    repository.ok(&["reproduce", "--jobs", "2", "--out", "two"]);
    let rows = |out: &str| {
        let mut rows = repository.rows(out);
        rows.retain(|row| row.contains(",training_curve,") || row.contains(",ap"));
        rows
    };
    assert!(rows("one").len() >= 5);
    assert_eq!(rows("one"), rows("two"));
    repository.ok(&["reproduce", "--seed", "7", "--out", "other"]);
    assert_ne!(rows("one"), rows("other"));
}
