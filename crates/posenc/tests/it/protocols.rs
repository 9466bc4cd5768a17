//! Protocols of attention models and of files end to end: the real binary, real records, files that the tests write.

use std::collections::BTreeSet;
use std::path::Path;

use posenc_data::generate::ScreenGrammar;
use posenc_data::interfaces::write_widget_screens;
use posenc_data::{AnnotatedBox, write_annotated, write_archive};
use posenc_math::random::stream;

use crate::common::{Repository, Run, contents, experiment, has, parse_error, value, values, wait};

/// A file of labelled screens, below the root of a repository.
const BOXES: &str = "data/rico_semantics/val.json";

/// Steps that take a few times the half second to the first checkpoint, by model.
const STEPS: [usize; 8] = [2500, 2000, 200, 1000, 500, 1200, 600, 4000];

/// Small models without a number of steps.
const TRAININGS: [&str; 8] = [
    "kind: image-model, side: 6, levels: 4, held_out: 8, layers: 1, width: 16, heads: 2, feed_forward: 16, batch: 4, \
     learning_rate: 0.01, warm_up: 2, encoding: { features: fourier, learned: true, gamma: 1, modulator: { hidden: 8, \
     layer_norm: true, dropout: 0.1 } }",
    "kind: translation, words: 6, max_len: 8, lengths: uniform, held_out: 4, layers: 1, width: 16, heads: 2, feed_forward: 16, \
     deviation: 0.02, batch: 8, learning_rate: 0.01, warm_up: 1, bin: 2",
    "kind: image-model, side: 8, levels: 256, color_width: 4, held_out: 2, layers: 1, width: 16, heads: 2, feed_forward: 8, lsh: { \
     head_width: 4, chunk: 32, buckets: 4 }, reversible: true, batch: 2, learning_rate: 0.01, warm_up: 0, encoding: { features: sine }",
    "kind: detection, sides: [16, 24], held_out: 8, width: 16, heads: 2, feed_forward: 16, encoder_layers: 1, decoder_layers: 1, \
     queries: 3, batch: 8, learning_rate: 0.002, warm_up: 5, encoding: { features: sine }",
    "kind: detr, held_out: 2, encoding: { features: sine }, model: { blocks: [1, 1, 1, 1], channels: 2, width: 16, heads: 2, \
     feed_forward: 16, encoder_layers: 1, decoder_layers: 1, queries: 3 }, resizing: { short_sides: [32, 40], longest: 64, \
     before_window: [36], window: [24, 36], measured: 40 }",
    "kind: captioning, screens: 24, held_out: 6, width: 16, heads: 2, feed_forward: 16, encoder_layers: 1, decoder_layers: 1, batch: 8, \
     learning_rate: 0.004, warm_up: 2, decay: cosine, encoding: { features: fourier, learned: true, gamma: 10, groups: 2, \
     width: 8, modulator: { hidden: 8, dropout: 0.2 } }",
    "kind: captioning, batch: 2, screens: 6, held_out: 4, learning_rate: 0.01, warm_up: 1, encoding: { features: fourier, learned: true, \
     gamma: 100, groups: 4, width: 4, modulator: { hidden: 4, dropout: 0.2 } }, width: 8, heads: 2, feed_forward: 8, encoder_layers: 1, \
     decoder_layers: 1, beams: 4, max_grad_norm: 5, public: { vocabulary: 120, word_width: 6, types: 12, tree_rows: 30, channels: [2, 3] }",
    "kind: icon-labels, min_count: 20, max_boxes: 4, width: 16, heads: 2, feed_forward: 16, layers: 1, dropout: 0.1, batch: 4, \
     validation: 0.25, learning_rates: [0.004, 0.01], warm_up: 2, decay: cosine, encoding: { features: fourier, learned: true, gamma: 10, groups: 2, width: 8, \
     modulator: { hidden: 8, dropout: 0.2 } }",
];

fn group(data: &str, protocol: &str, variants: &str) -> String {
    let data = if data.is_empty() { String::new() } else { format!("    data: {{ {data} }}\n") };
    experiment(&format!(
        "  - id: group\n{data}    protocol: {{ {protocol} }}\n    variants: [{variants}]\n"
    ))
}

/// The text of the one raw record.
fn record(repository: &Repository, out: &str) -> String {
    let raw = repository.raw(out);
    assert_eq!(raw.len(), 1, "{raw:?}");
    std::fs::read_to_string(&raw[0]).unwrap()
}

/// An experiment with a group of each of [`TRAININGS`], with files for those that read some.
fn all_trainings(steps: [usize; 8], variants: &str) -> Repository {
    let group = |(i, (protocol, steps)): (usize, (&str, usize))| {
        let kind = protocol.split([' ', ',']).nth(1).unwrap();
        let data = match kind {
            "icon-labels" => "    data: { set: rico-semantics }\n",
            _ => "",
        };
        let every = match kind {
            "icon-labels" | "image-model" | "detection" => {
                format!(", measure_every: {}", steps / 3)
            }
            _ => String::new(),
        };
        format!(
            "  - id: group-{i}\n{data}    protocol: {{ {protocol}, steps: {steps}{every} }}\n    variants: [{variants}]\n"
        )
    };
    let groups: String = TRAININGS.into_iter().zip(steps).enumerate().map(group).collect();
    let repository = Repository::with_experiment(&experiment(&groups));
    repository.write(BOXES, &labelled());
    repository
}

/// Catches a killed training of each model that starts over, ends with other numbers than an uninterrupted one, or leaves its
/// checkpoint behind. A checkpoint has parameters, moments, running statistics, positions in random streams, curves and counts.
#[test]
fn each_training_resumes_with_the_same_bits() {
    let repository = all_trainings(STEPS, "{ id: one }");
    let whole = repository.ok(&["reproduce", "--out", "whole"]);
    assert!(!whole.stderr.contains("resumes"), "{}", whole.stderr);
    // Each run ends what the kill before it interrupted, and is killed at the first checkpoint of another training.
    let (mut interrupted, mut resumed) = (BTreeSet::new(), 0);
    while interrupted.len() < STEPS.len() {
        let mut child = repository.start(&["reproduce", "--out", "killed"]);
        wait("checkpoint", || {
            assert!(child.try_wait().unwrap().is_none(), "it ended: {interrupted:?}");
            let before = interrupted.len();
            interrupted.extend(repository.checkpoint_files("killed"));
            interrupted.len() > before
        });
        child.kill().unwrap();
        let run: Run = child.wait_with_output().unwrap().into();
        resumed += run.stderr.matches("resumes after step").count();
    }
    let last = repository.ok(&["reproduce", "--out", "killed"]);
    resumed += last.stderr.matches("resumes after step").count();
    assert_eq!(resumed, STEPS.len(), "{}", last.stderr);
    assert_eq!(repository.checkpoints("killed"), 0, "a checkpoint is left");
    assert_eq!(repository.rows("killed"), repository.rows("whole"));
}

/// Catches results that depend on the number of workers or not on the seed, and methods that do not share their random samples.
#[test]
fn workers_change_nothing_and_seeds_do() {
    let repository = all_trainings([9; 8], "{ id: one }, { id: other }");
    for (out, options) in [("a", ["--jobs", "1"]), ("b", ["--jobs", "2"]), ("c", ["--seed", "7"])] {
        repository.ok(&[&["reproduce", "--out", out], &options[..]].concat());
    }
    let rows = repository.rows("a");
    assert_eq!(repository.rows("b"), rows);
    let of = |rows: &[String], group: &str, method: &str| -> Vec<String> {
        let name = format!(",{group},{method},");
        rows.iter().filter(|row| row.contains(&name)).map(|row| row.replace(&name, ",")).collect()
    };
    for (i, protocol) in TRAININGS.iter().enumerate() {
        let group = format!("group-{i}");
        let one = of(&rows, &group, "one");
        assert!(one.len() > 3 && one == of(&rows, &group, "other"), "{protocol}: {one:#?}");
        assert_ne!(of(&repository.rows("c"), &group, "one"), one, "{protocol}");
    }
}

/// Catches a learning rate that is not the best one on validation screens, and a training that depends on those before it: with several
/// rates, a unit has the numbers of the unit that trains at the best one alone.
#[test]
fn the_learning_rate_is_chosen_on_validation_screens() {
    let protocol = |rates: &str| {
        let group = TRAININGS[7].replace("[0.004, 0.01]", rates);
        format!(
            "    data: {{ set: rico-semantics }}\n    protocol: {{ {group}, steps: 600, measure_every: 300 }}\n    variants: [{{ id: one }}]\n"
        )
    };
    let groups: String =
        [("both", "[1.0e-9, 0.01, 1.0e-8]"), ("best", "[0.01]"), ("worst", "[1.0e-9]")]
            .map(|(id, rates)| format!("  - id: {id}\n{}", protocol(rates)))
            .concat();
    let repository = Repository::with_experiment(&experiment(&groups));
    repository.write(BOXES, &labelled());
    repository.ok(&["reproduce"]);
    let rows = repository.rows("out");
    let of = |group: &str, metric: &str| -> Vec<String> {
        let (name, metric) = (format!(",{group},"), format!(",{metric},"));
        let own = rows.iter().filter(|row| row.contains(&name) && row.contains(&metric));
        own.map(|row| row.replace(&name, ",")).collect()
    };
    assert_eq!(of("both", "accuracy_validation").len(), 3, "{rows:#?}");
    for metric in ["learning_rate", "training_curve", "accuracy_curve", "accuracy_unseen", "unseen"]
    {
        let chosen = of("both", metric);
        assert!(!chosen.is_empty(), "{metric}: {rows:#?}");
        assert_eq!(chosen, of("best", metric), "{metric}");
    }
    assert_ne!(of("both", "training_curve"), of("worst", "training_curve"));
}

/// A pseudorandom number from 0 to below `n`.
fn mixed(i: usize, n: usize) -> usize {
    ((i as u64).wrapping_mul(2_654_435_761) >> 7) as usize % n
}

/// Forty screens with up to five boxes. Boxes on the left have one label, those on the right another; a third label is rare.
fn labelled() -> String {
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

fn write_boxes(data: &Path) {
    std::fs::create_dir_all(data.join("rico_semantics")).unwrap();
    std::fs::write(data.join("rico_semantics/val.json"), labelled()).unwrap();
}

fn write_images(data: &Path) {
    let folder = data.join("imagenet64");
    std::fs::create_dir_all(&folder).unwrap();
    let image = |i: usize| (0..48).map(|at| ((at * 5 + i * 3) % 256) as u8).collect();
    for (name, count) in [("train_data_batch_1", 3), ("train_data_batch_2", 2), ("val_data", 2)] {
        let images: Vec<Vec<u8>> = (0..count).map(image).collect();
        write_archive(&folder.join(format!("{name}.npz")), 4, &images).unwrap();
    }
}

/// Parallel text with an empty line.
fn write_text(data: &Path) {
    let folder = data.join("multi30k");
    std::fs::create_dir_all(&folder).unwrap();
    for split in ["train", "val"] {
        for (language, lines) in [
            ("en", "A dog.\n\nTwo cats run.\nA cat\n"),
            ("de", "Ein Hund.\nx\nZwei Katzen laufen.\nEine Katze\n"),
        ] {
            std::fs::write(folder.join(format!("{split}.{language}")), lines).unwrap();
        }
    }
}

/// Photographs with a box each, one of them a crowd.
fn write_photographs(data: &Path) {
    let folder = data.join("coco33");
    std::fs::create_dir_all(&folder).unwrap();
    let image = |i: usize| {
        let pixels = (0..30 * 40 * 3).map(|at| ((at * 7 + i * 50) % 251) as u8).collect();
        let corners = [2.0, 3.0, 20.0 + i as f64, 28.0];
        let own = AnnotatedBox { category: 1 + i % 3, corners, area: 300.0, is_crowd: i == 3 };
        (pixels, [30, 40], vec![own])
    };
    let images: Vec<_> = (0..4).map(image).collect();
    write_annotated(&folder, &["a", "b", "c"], &images).unwrap();
}

/// Generated screens, with captions of nodes and screens that are missing.
fn write_screens(data: &Path) {
    let folder = data.join("rico");
    let grammar = ScreenGrammar::new(1.1);
    let mut rng = stream(3, "screens of the test");
    let [trained, chosen, tested] = [6, 1, 3].map(|count| grammar.screens(count, &mut rng));
    write_widget_screens(&folder, [&trained, &chosen, &tested]).unwrap();
    let table = folder.join("widget_captions.csv");
    let mut text = std::fs::read_to_string(&table).unwrap();
    text.push_str("99999,0.1,never shown,nr\n1,0.1.50,not there,g\n4711,0,in no split,g\n");
    std::fs::write(table, text).unwrap();
}

const REFORMER: &str = "kind: image-model, side: 4, levels: 256, color_width: 4, held_out: 2, layers: 1, width: 16, heads: 1, feed_forward: 8, \
                        lsh: { head_width: 4, chunk: 8, buckets: 4 }, reversible: true, batch: 1, steps: 2, learning_rate: 0.01, warm_up: 0, \
                        measure_every: 2, encoding: { features: sine }";

const TRANSLATION: &str = "kind: translation, words: 6, max_len: 8, lengths: natural, held_out: 4, layers: 1, width: 8, heads: 2, \
                           feed_forward: 8, deviation: 0.02, batch: 4, steps: 3, learning_rate: 0.01, warm_up: 1, bin: 2";

/// A detector with the sizes of the stored weights.
const DETR: &str = "kind: detr, steps: 2, batch: 2, held_out: 2, encoding: { features: sine }, model: { blocks: [1, 2, 1, 1], channels: 2, \
                    width: 16, heads: 2, feed_forward: 24, encoder_layers: 1, decoder_layers: 2, queries: 5, classes: 4 }, resizing: { \
                    short_sides: [32, 40], longest: 64, before_window: [36], window: [24, 36], measured: 40 }";

const LABELS: &str = "kind: icon-labels, min_count: 20, max_boxes: 4, width: 16, heads: 2, feed_forward: 16, layers: 1, dropout: 0.1, batch: 4, \
                      steps: 8, measure_every: 4, learning_rates: [0.004], warm_up: 2, decay: cosine, encoding: { features: sine }";

const WIDGETS: &str = "kind: captioning, steps: 3, batch: 2, screens: 6, held_out: 4, learning_rate: 0.01, warm_up: 1, encoding: { \
                       features: sine }, width: 8, heads: 2, feed_forward: 8, encoder_layers: 1, decoder_layers: 1, beams: 4, public: { \
                       vocabulary: 120, word_width: 6, types: 12, tree_rows: 30, channels: [2, 3] }";

/// A protocol that reads files.
struct Case {
    data: &'static str,
    protocol: &'static str,
    write: fn(&Path),
    /// Where the message about missing files says that they come from.
    origin: &'static str,
    label: &'static str,
    remarks: &'static [&'static str],
}

const CASES: [Case; 5] = [
    Case {
        data: "set: imagenet64",
        protocol: REFORMER,
        write: write_images,
        origin: "image-net.org",
        label: "unverified:imagenet64",
        remarks: &["npz archives"],
    },
    Case {
        data: "set: multi30k",
        protocol: TRANSLATION,
        write: write_text,
        origin: "multi30k",
        label: "other:multi30k",
        remarks: &["1 of 4 lines of train"],
    },
    Case {
        data: "set: coco33, weights: resnet50",
        protocol: DETR,
        write: write_photographs,
        origin: "coco33",
        label: "coco33",
        remarks: &["found no trained weights", "1 crowds are excluded from training"],
    },
    Case {
        data: "set: rico-semantics",
        protocol: LABELS,
        write: write_boxes,
        origin: "google-research-datasets/rico_semantics",
        label: "other:rico-semantics",
        remarks: &["skipped 7 of 40 screens", "merged 1 labels with fewer than 20 boxes (1 boxes)"],
    },
    Case {
        data: "set: rico-widget-captioning, weights: glove-6b-300d",
        protocol: WIDGETS,
        write: write_screens,
        origin: "interactionmining",
        label: "unverified:rico-widget-captioning",
        remarks: &[
            "1 about screens that were never released",
            "1 about screens in no split",
            "1 whose node is missing",
            "found no word vectors",
            "train: ",
            "vocabulary: ",
        ],
    },
];

/// Catches a group that runs on other data if its files are missing, files that are not read, entries that are left out without a count,
/// records that do not name their data, and a damaged file that ends the run instead of its unit.
#[test]
fn files_are_read_and_missing_ones_are_named() {
    for Case { data, protocol, write, origin, label, remarks } in CASES {
        let rank = "  - id: rank\n    protocol: { kind: stable-rank, samples: [4] }\n    variants: [{ id: Gaussian, embedder: { kind: gaussian, dimension: 16, sigma: 0.1 } }]\n";
        let text = group(data, protocol, "{ id: one }") + rank;
        let repository = Repository::with_experiment(&text);
        let run = repository.ok(&["reproduce", "extensions/mexican-hat/group", "--out", "none"]);
        let line = run.stderr.lines().find(|line| line.contains("not run:")).unwrap_or("");
        has(line, &["extensions/mexican-hat/group", "looked for", origin]);
        run.says(&["0 of 0 units"]);

        write(&repository.path().join("files"));
        let of_group = ["reproduce", "extensions/mexican-hat/group", "--data", "files"];
        repository.ok(&of_group).says(&[label]);
        has(&record(&repository, "out"), remarks);
        repository.ok(&of_group).says(&["0 of 1 units"]);

        // All files are cut off. Cut text stays readable.
        if protocol.starts_with("kind: translation") {
            continue;
        }
        let mut names = Vec::new();
        for (file, bytes) in contents(&repository.path().join("files")) {
            std::fs::write(&file, &bytes[..bytes.len() / 3]).unwrap();
            names.push(file.file_name().unwrap().to_string_lossy().into_owned());
        }
        let damaged = ["reproduce", "--data", "files", "--out", "damaged"];
        let run = repository.run(&damaged).ends_with(1);
        let failed = "failed: extensions/mexican-hat/group/one";
        let line = run.stderr.lines().find(|line| line.starts_with(failed)).unwrap_or("");
        assert!(names.iter().any(|name| line.contains(name)), "{names:?}: {}", run.stderr);
        assert_eq!(values(&repository.rows("damaged"), ["rank", "", "stable_rank"]).len(), 1);
    }
}

/// Catches trained weights or word vectors that are not used or do not change the unit's key, records that name neither, and files of them
/// that are damaged or ambiguous and accepted.
#[test]
fn weights_and_word_vectors_change_the_unit() {
    let loss = |repository: &Repository, out: &str| {
        values(&repository.rows(out), ["", "one", "training_curve"])[0].to_bits()
    };
    let run = |repository: &Repository, out: &str| {
        repository.ok(&["reproduce", "--data", "files", "--out", out]);
    };
    let prepared = |case: &Case| {
        let text = group(case.data, case.protocol, "{ id: one }");
        let repository = Repository::with_experiment(&text);
        (case.write)(&repository.path().join("files"));
        run(&repository, "without");
        repository
    };
    let repository = prepared(&CASES[2]);
    let before = loss(&repository, "without");
    let weights = repository.path().join("files/weights/resnet50");
    std::fs::create_dir_all(&weights).unwrap();
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("../posenc-attention/tests/data");
    for (name, needle) in [
        ("detr.pth", "all weights except those of the position encoding in detr.pth"),
        ("network.safetensors", "the weights of the residual network in network.safetensors"),
    ] {
        let _ = std::fs::remove_file(weights.join("detr.pth"));
        std::fs::copy(stored.join(name), weights.join(name)).unwrap();
        run(&repository, name);
        has(&record(&repository, name), &[needle]);
        assert_ne!(loss(&repository, name), before);
    }
    let again = ["reproduce", "--data", "files", "--out", "without"];
    repository.ok(&again).says(&["1 of 1 units"]);
    std::fs::write(weights.join("network.safetensors"), "no weights").unwrap();
    repository.fails(&again, &["network.safetensors", "not a readable file of weights"]);
    std::fs::copy(stored.join("detr.pth"), weights.join("detr.pth")).unwrap();
    repository.fails(&again, &["single file of weights (there are 2)"]);

    let repository = prepared(&CASES[4]);
    let vectors = repository.path().join("files/glove");
    std::fs::create_dir_all(&vectors).unwrap();
    let line = |word: &str, v: f64| format!("{word} {v} {} 0.3 -0.4 0.5 1.5\n", -v);
    let lines = [line("open", 0.7), line("the", -0.2), line("list", 0.1)].concat();
    let file = vectors.join("glove.6B.6d.txt");
    std::fs::write(&file, &lines).unwrap();
    run(&repository, "vectors");
    assert!(record(&repository, "vectors").contains("read word vectors"));
    assert_ne!(loss(&repository, "without"), loss(&repository, "vectors"));
    std::fs::write(&file, &lines[..lines.len() - 9]).unwrap();
    repository.fails(&again, &["glove.6B.6d.txt:3", "numbers after the word"]);
    std::fs::write(&file, "other 1 2 3 4 5 6\n").unwrap();
    repository.fails(&again, &["glove.6B.6d.txt", "none of the"]);
}

/// Catches sets of another format that are accepted, parts of a set that is read as a whole, and unknown sets.
#[test]
fn sets_of_another_format_are_refused() {
    for (data, protocol, needles) in [
        ("set: multi30k", LABELS, ["parallel text", "reads labelled screens"]),
        ("set: multi30k", WIDGETS, ["multi30k", "widget captions"]),
        ("set: multi30k", DETR, ["multi30k", "annotated images"]),
        ("set: div2k-test", TRANSLATION, ["images or clips", "`translation` reads parallel text"]),
        ("set: multi30k, pick: [0]", TRANSLATION, ["multi30k", "remove `data.pick`"]),
        ("set: coco33, weights: coco33", DETR, ["coco33", "is not a set of weights"]),
        (
            "set: rico-widget-captioning, weights: resnet50",
            WIDGETS,
            ["resnet50", "is not a set of word vectors"],
        ),
        (
            "set: div2k-train, held_out: no-set",
            "kind: image-model, side: 6, levels: 4, held_out: 8, layers: 1, width: 16, heads: 2, feed_forward: 16, batch: 4, steps: 6, \
             learning_rate: 0.01, warm_up: 2, measure_every: 2, reduce: 2, encoding: { features: sine }",
            ["no-set", "div2k-test"],
        ),
    ] {
        let repository = Repository::with_experiment(&group(data, protocol, "{ id: one }"));
        repository.fails(&["reproduce", "--dry-run"], &needles);
    }
}

/// Catches meaningless settings of models that read files, and messages without location or remedy.
#[test]
fn wrong_settings_are_named() {
    for (data, protocol, old, new, needle) in [
        ("", REFORMER, "chunk: 8", "chunk: 7", "7 must divide the 96 slots"),
        ("", REFORMER, "levels: 256", "levels: 16", "colors have 256"),
        ("", REFORMER, "color_width: 4", "color_width: 16", "16 is not allowed; allowed: 1 to 15"),
        ("", REFORMER, "side: 4", "side: 4, reduce: 2", "only allowed for gray images"),
        ("set: imagenet64, held_out: div2k-test", REFORMER, "side", "side", "remove `held_out`"),
        ("", REFORMER, "kind: image-model", "kind: reformer", "it is now `image-model`"),
        ("", WIDGETS, "kind: captioning", "kind: widget-captioning", "it is now `captioning` with"),
        ("", REFORMER, "features: sine", "features: fourier", "gamma: missing"),
        ("", REFORMER, "side: 4", "side: 4, depth: 3", "depth"),
        ("set: coco33", DETR, "heads: 2", "heads: 3", "3 heads do not divide a width of 16"),
        ("set: coco33", DETR, "window: [24, 36]", "window: [40, 60]", "smallest side 40 exceeds"),
        ("set: coco33", DETR, "features: sine", "features: embed", "set `cells`"),
        ("set: coco33", DETR, "steps: 2", "steps: 2, learning_rate: 0", "learning_rate"),
        ("set: multi30k", TRANSLATION, "natural", "uniform", "natural, filled"),
        ("", TRANSLATION, "word", "word", "log-normal, constant, uniform"),
    ] {
        let text = group(data, &protocol.replace(old, new), "{ id: one }");
        let error = parse_error(&text);
        assert!(error.starts_with("a.yaml:") && error.contains(needle), "{new}: {error}");
    }
}

/// Catches boxes that are not counted, or counted under another coordinate or in another split.
#[test]
fn positions_of_boxes_are_counted() {
    let counted = group("", "kind: box-positions, screens: 50", "{ id: one }");
    let repository = Repository::with_experiment(&counted);
    repository.ok(&["reproduce"]);
    assert_eq!(values(&repository.rows("out"), ["", "", "left_widgets"]).len(), 100);

    let labels = group("set: rico-semantics", "kind: box-positions", "{ id: one }");
    let repository = Repository::with_experiment(&labels);
    repository.write(BOXES, &labelled());
    repository.ok(&["reproduce"]);
    let rows = repository.rows("out");
    let boxes = labelled().matches("xmin").count() as f64;
    assert_eq!(value(&rows, "one", "widgets"), boxes);
    for (metric, from, to) in [("left_widgets", 0.0, 80.0), ("bottom_widgets", 4.0, 85.0)] {
        let own: Vec<[f64; 2]> = rows
            .iter()
            .map(|row| row.split(',').collect::<Vec<_>>())
            .filter(|fields| fields[6] == metric)
            .map(|fields| [fields[7].parse().unwrap(), fields[9].parse().unwrap()])
            .collect();
        assert_eq!(own.iter().map(|[_, count]| count).sum::<f64>(), boxes);
        let is_outside = |[at, count]: &&[f64; 2]| *count > 0.0 && (*at < from || *at > to);
        assert_eq!(own.iter().filter(is_outside).count(), 0, "{metric}");
    }

    // Widgets with captions of the training split only, as in Figure 5.
    let captioned = "kind: box-positions, captioned: true";
    let text = group("set: rico-widget-captioning", captioned, "{ id: one }");
    let repository = Repository::with_experiment(&text);
    let data = repository.path().join("data");
    write_screens(&data);
    let trained = std::fs::read_to_string(data.join("rico/split/train.txt")).unwrap();
    let table = std::fs::read_to_string(data.join("rico/widget_captions.csv")).unwrap();
    let is_trained = |row: &&str| {
        trained.lines().any(|screen| row.split(',').next() == Some(screen))
            && !row.contains("not there")
    };
    let widgets = table.lines().skip(1).filter(is_trained).count();
    assert!(widgets > 12 && table.lines().count() > widgets + 8);
    repository.ok(&["reproduce"]);
    assert_eq!(value(&repository.rows("out"), "one", "widgets"), widgets as f64);
}

/// Catches models of photographs that are evaluated on their training set, random frequencies that differ between fixed and learned
/// ones, and beam search or a penalty that changes what it must not change.
#[test]
fn variants_share_what_they_do_not_change() {
    let image = format!("{}, steps: 6, measure_every: 2", TRAININGS[0]);
    let fixed = "learning_rate: 1e-9, encoding: { features: fourier, gamma: 1, learned: false } }";
    let slow = "learning_rate: 1e-9, encoding: { features: fourier, gamma: 1, learned: true } }";
    let variants =
        format!("{{ id: fixed, settings: {{ {fixed} }}, {{ id: slow, settings: {{ {slow} }}");
    let plain = image.replace(", modulator: { hidden: 8, layer_norm: true, dropout: 0.1 }", "");
    let repository = Repository::with_experiment(&group("", &plain, &variants));
    repository.ok(&["reproduce"]);
    let rows = repository.rows("out");
    let [fixed, slow] = ["fixed", "slow"].map(|method| value(&rows, method, "bits"));
    assert!((fixed - slow).abs() < 1e-4, "{fixed} {slow}");

    let data = "set: div2k-train, held_out: div2k-test";
    let photographs = group(data, &format!("{plain}, reduce: 2"), "{ id: one }");
    let repository = Repository::with_experiment(&photographs);
    repository.ok(&["reproduce"]);
    let rows = repository.rows("out");
    let own = rows.iter().filter(|row| row.contains(",one,"));
    assert!(own.clone().count() > 10 && own.clone().all(|r| r.contains(",one,all,")), "{rows:#?}");
    let bits = value(&rows, "one", "bits");
    assert!(bits > 0.0 && bits < 4.0, "{bits}");

    let captions = format!("{}, steps: 8, similarity: [20, 10]", TRAININGS[5]);
    let variants = "{ id: one }, { id: beams, settings: { beams: 3 } }, { id: penalized, settings: { divergence: { form: covariance, \
                    weight: 1 } } }";
    let repository = Repository::with_experiment(&group("", &captions, variants));
    repository.ok(&["reproduce"]);
    let rows = repository.rows("out");
    let of = |method, metric| value(&rows, method, metric);
    for metric in ["training_curve", "learned_similarity", "unseen_widgets"] {
        assert_eq!(of("one", metric), of("beams", metric), "{metric}");
    }
    assert_ne!(of("one", "learned_length"), of("penalized", "learned_length"));
    assert_eq!(of("one", "initial_length"), of("penalized", "initial_length"));
    assert_eq!(values(&rows, ["", "one", "learned_similarity"]).len(), 25);
}
