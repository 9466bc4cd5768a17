//! Captions of generated screens, end to end.

use crate::common;

use common::Repository;
use posenc_experiments::record::CaptionRecord;

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

/// Catches a killed training that starts over or ends with other numbers.
#[test]
fn a_killed_training_resumes_with_the_same_bits() {
    let protocol = format!(
        "{}, encoding: {FOURIER}",
        PROTOCOL.replace("steps: 8", "steps: 2500").replace("batch: 4", "batch: 8")
    );
    let repository = Repository::with_experiment(&experiment(&protocol, "{ id: one }"));
    repository.kill_at_checkpoint("killed");
    let resumed = repository.ok(&["reproduce", "--out", "killed"]);
    assert!(resumed.stderr.contains("resumes after step"), "{}", resumed.stderr);
    let whole = repository.ok(&["reproduce", "--out", "whole"]);
    assert!(!whole.stderr.contains("resumes"), "{}", whole.stderr);
    let rows = repository.rows("whole");
    assert!(rows.len() > 20);
    assert_eq!(repository.rows("killed"), rows);
}

/// Catches captions that are lost between unit and page, depend on the number of workers, or are assigned to another method;
/// captions that are shown without the setting; and damage of the reference that is not detected.
#[test]
fn captions_of_the_first_screens_reach_the_report() {
    let protocol = format!("{PROTOCOL}, shown: 2, encoding: {FOURIER}");
    let variants = "{ id: learned }, { id: sine-4/1, settings: { encoding: { features: sine } } }";
    let repository = Repository::with_experiment(&experiment(&protocol, variants));
    repository.ok(&["reproduce", "--jobs", "1", "--out", "one", "--record"]);
    repository.ok(&["reproduce", "--jobs", "2", "--out", "two"]);
    let name = "record/extensions/mexican-hat/captions.json";
    let text = repository.read(&format!("one/{name}"));
    assert_eq!(text, repository.read(&format!("two/{name}")));
    assert_eq!(text, repository.read(&format!("report/{name}")));

    let record =
        CaptionRecord::read(&repository.path().join("one/record"), "extensions", "mexican-hat");
    let record = record.unwrap();
    assert_eq!(record.lots().len(), 1, "methods share their screens");
    let page = repository.read("report/extensions/mexican-hat.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
    for (method, id) in record.methods.iter().zip(["learned", "sine-4/1"]) {
        assert_eq!((method.method.as_str(), method.captions.layouts.len()), (id, 2));
        let mut widgets = method.captions.widgets.iter();
        let of_method = rows
            .iter()
            .filter(|row| row.starts_with(&format!("| {id} |")) && row.contains(['✓', '❌']));
        for (row, layout) in of_method.zip(&method.captions.layouts) {
            for widget in widgets.by_ref().take(layout.widgets.len()) {
                let said = if widget.said.is_empty() { "*nothing*" } else { &widget.said };
                let mark = if widget.is_right { "✓" } else { "❌" };
                assert!(
                    row.contains(&format!(
                        "{mark} {}",
                        said.replace('<', "&lt;").replace('>', "&gt;")
                    )),
                    "{row}"
                );
            }
        }
        assert_eq!(widgets.count(), 0, "a row per screen");
    }
    for drawing in ["screen-1", "screen-2"] {
        let svg = repository.read(&format!("report/figures/extensions/mexican-hat.{drawing}.svg"));
        assert!(svg.contains(">1</text>") && svg.contains(">3</text>"));
    }
    repository.ok(&["report", "--check"]);

    // A unit with damaged captions runs again. The check of the reference names damage and detects a changed caption.
    let kept: Vec<_> = repository
        .raw("one")
        .into_iter()
        .filter(|file| file.display().to_string().ends_with("-captions.json"))
        .collect();
    assert_eq!(kept.len(), 2);
    std::fs::write(&kept[0], "{}").unwrap();
    let again = repository.ok(&["reproduce", "--out", "one"]);
    assert!(again.stderr.contains("-captions.json: damaged"), "{}", again.stderr);
    assert!(again.stderr.contains("1 of 2 units to run"), "{}", again.stderr);
    assert_eq!(text, repository.read(&format!("one/{name}")));
    let edited = text.replacen("[[\"", "[[\"other ", 1);
    repository.write(&format!("report/{name}"), &edited);
    repository.fails(&["report", "--check"], &["captions.json", "checksum", "git checkout"]);
    let older = common::without_checksum(&text);
    let edited = older.replacen("\"kind\":\"", "\"kind\":\"no ", 1);
    repository.write(&format!("report/{name}"), &edited);
    repository
        .fails(&["report", "--check"], &["captions.json", "sets[0].layouts[0].nodes[0].kind"]);
    repository.write(&format!("report/{name}"), &older.replacen("[[\"", "[[\"other ", 1));
    repository.fails(&["report", "--check"], &["extensions/mexican-hat.md"]);
    repository.write(&format!("report/{name}"), &text);

    // Without the setting, units store captions, but the record has no screens.
    let plain = experiment(&format!("{PROTOCOL}, encoding: {FOURIER}"), "{ id: learned }");
    repository.write("experiments/extensions/01-mexican-hat.yaml", &plain);
    repository.ok(&["reproduce", "--out", "plain"]);
    assert_eq!(repository.raw("plain").len(), 2);
    assert!(!repository.path().join(format!("plain/{name}")).exists());
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
