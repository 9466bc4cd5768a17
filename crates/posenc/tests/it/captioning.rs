//! Captions of generated screens, end to end.

use crate::common;

use common::Repository;

const FOURIER: &str = "{ features: fourier, learned: true, gamma: 10, groups: 2, width: 8, modulator: { hidden: 8, dropout: 0.2 } }";

const PROTOCOL: &str = "kind: captioning, screens: 24, held_out: 6, width: 16, heads: 2, feed_forward: 16, encoder_layers: 1, \
                        decoder_layers: 1, batch: 4, steps: 8, learning_rate: 0.004, warm_up: 2, decay: cosine";

fn experiment(protocol: &str, variants: &str) -> String {
    common::experiment(&format!(
        "  - id: group\n    protocol: {{ {protocol} }}\n    variants: [{variants}]\n"
    ))
}

fn value(rows: &[String], method: &str, metric: &str) -> String {
    let fields = rows.iter().map(|r| r.split(',').collect::<Vec<_>>());
    let row = fields.into_iter().find(|f| f[3] == method && f[6] == metric);
    row.unwrap_or_else(|| panic!("{method} {metric}: {rows:#?}"))[9].to_owned()
}

/// Catches results that depend on the number of threads, methods that do not share their screens, and beam search that changes the
/// training.
#[test]
fn same_seed_gives_same_bits_and_methods_share_samples() {
    let protocol = format!("{PROTOCOL}, similarity: [20, 10], encoding: {FOURIER}");
    let variants = "{ id: one }, { id: other }, { id: beams, settings: { beams: 3 } }, { id: penalized, settings: { divergence: { \
                    form: covariance, weight: 1 } } }";
    let repository = Repository::with_experiment(&experiment(&protocol, variants));
    repository.ok(&["reproduce", "--jobs", "1", "--out", "one"]);
    repository.ok(&["reproduce", "--jobs", "2", "--out", "two"]);
    let rows = repository.rows("one");
    assert_eq!(rows, repository.rows("two"));
    for metric in
        ["cider", "slot_accuracy", "training_curve", "learned_similarity", "unseen_widgets"]
    {
        assert_eq!(value(&rows, "one", metric), value(&rows, "other", metric));
        let of_beams = value(&rows, "beams", metric);
        if !metric.contains("cider") && !metric.contains("accuracy") {
            assert_eq!(value(&rows, "one", metric), of_beams, "{metric}");
        }
    }
    assert_ne!(value(&rows, "one", "learned_length"), value(&rows, "penalized", "learned_length"));
    assert_eq!(value(&rows, "one", "initial_length"), value(&rows, "penalized", "initial_length"));
    let maps =
        rows.iter().filter(|r| r.contains(",one,") && r.contains("learned_similarity")).count();
    assert_eq!(maps, 25);
    repository.ok(&["reproduce", "--seed", "7", "--out", "seven"]);
    assert_ne!(value(&rows, "one", "cider"), value(&repository.rows("seven"), "one", "cider"));
}

/// Catches positions of boxes that are not counted; they need no model.
#[test]
fn positions_of_generated_boxes_are_counted() {
    let counted = experiment("kind: box-positions, screens: 50", "{ id: one }");
    let repository = Repository::with_experiment(&counted);
    repository.ok(&["reproduce"]);
    let rows = repository.rows("out");
    assert_eq!(rows.iter().filter(|row| row.contains(",left_widgets,")).count(), 100);
}
