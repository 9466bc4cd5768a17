//! The files of SPICE's own scorer (Anderson et al., *SPICE: Semantic Propositional Image Caption Evaluation*, 2016), a Java
//! program that is no part of this repository.
//!
//! It parses a candidate and its references into tuples (object), (object, attribute) and (object, relation, object) and computes
//! the F1 of the shared tuples. Its input is a list of captions with their references, its output a list of precision, recall and
//! F1 for all tuples and for subsets of them. COCO-caption's score of a corpus is the mean over images of the F1 of all tuples. An
//! undefined F1 (`null`) makes the mean NaN, there and here.

use std::collections::BTreeSet;
use std::path::Path;

use posenc_experiments::record::UnitCaptions;
use posenc_experiments::text::{MAX_RECORD_BYTES, read_text};
use posenc_experiments::yaml::FileError;
use serde::Serialize;
use serde_json::Value;

/// Java versions that run the scorer. It writes its output with Java's JavaScript engine; later versions lack the engine and leave
/// an empty file.
pub const JAVA: &str = "Java 8 to 14";

/// Scores between 0 and 1.
const SHARES: [&str; 3] = ["pr", "re", "f"];
/// Counts of tuples and images.
const COUNTS: [&str; 4] = ["fn", "numImages", "fp", "tp"];
const ALL: &str = "All";

#[derive(Serialize)]
struct Candidate<'a> {
    /// Number of the widget, from 0.
    image_id: usize,
    test: &'a str,
    refs: &'a [String],
}

/// The scorer's input: every widget is an image.
pub fn input(captions: &UnitCaptions) -> serde_json::Result<String> {
    let candidates = captions.widgets.iter().enumerate().map(|(image_id, widget)| Candidate {
        image_id,
        test: &widget.said,
        refs: &widget.references,
    });
    serde_json::to_string(&candidates.collect::<Vec<_>>())
}

/// F1 of all tuples for each of `widgets` widgets, from the scorer's output; NaN for widgets without a score. Fails, naming file
/// and entry, on another format, on unknown, missing or repeated widgets, and on numbers out of range.
pub fn read(file: &Path, widgets: usize) -> Result<Vec<f64>, FileError> {
    let problem = |line: Option<usize>, key: String, message: String| FileError {
        line,
        ..FileError::of(file, message).key(key)
    };
    let text = read_text(file, MAX_RECORD_BYTES)?;
    let entries: Vec<Value> = serde_json::from_str(&text).map_err(|e| {
        let message =
            format!("not the output of SPICE's scorer: {e}; score the captions again, with {JAVA}");
        problem(Some(e.line()), String::new(), message)
    })?;
    let mut scores: Vec<Option<f64>> = vec![None; widgets];
    for (i, entry) in entries.iter().enumerate() {
        let (id, f) =
            score(entry).map_err(|(key, message)| problem(None, format!("[{i}]{key}"), message))?;
        let key = || format!("[{i}].image_id");
        match scores.get_mut(id) {
            Some(place @ None) => *place = Some(f),
            Some(Some(_)) => return Err(problem(None, key(), format!("{id} appears twice"))),
            None => {
                let message = format!("{id} is not a widget; there are {widgets}, numbered from 0");
                return Err(problem(None, key(), message));
            }
        }
    }
    let missing = scores.iter().filter(|score| score.is_none()).count();
    if let Some(first) = scores.iter().position(Option::is_none) {
        let message = format!(
            "{missing} of {widgets} widgets have no scores, the first is {first}; score the captions again"
        );
        return Err(problem(None, "image_id".into(), message));
    }
    Ok(scores.into_iter().flatten().collect())
}

/// The score of a corpus times 100.
pub fn corpus(scores: &[f64]) -> f64 {
    100.0 * scores.iter().sum::<f64>() / scores.len() as f64
}

/// Widget number and F1 of an entry, or the key of the fault and a message.
fn score(entry: &Value) -> Result<(usize, f64), (String, String)> {
    let id = entry.get("image_id").and_then(Value::as_u64).and_then(|id| usize::try_from(id).ok());
    let id = id.ok_or_else(|| {
        let found = entry.get("image_id").map_or("missing".to_owned(), Value::to_string);
        (".image_id".to_owned(), format!("{found}; allowed: the number of a widget, from 0"))
    })?;
    let Some(scores) = entry.get("scores").and_then(Value::as_object) else {
        return Err((".scores".into(), "missing, or not an object".into()));
    };
    let mut all = None;
    for (category, tuple) in scores {
        let known: BTreeSet<&str> = SHARES.into_iter().chain(COUNTS).collect();
        for name in known {
            let key = || format!(".scores.{category}.{name}");
            let number = match tuple.get(name) {
                // A ratio of zero tuples.
                Some(Value::Null) => f64::NAN,
                Some(Value::Number(number)) => number.as_f64().unwrap_or(f64::NAN),
                Some(other) => return Err((key(), format!("{other} is not a number"))),
                None => return Err((key(), "missing".into())),
            };
            let most = if SHARES.contains(&name) { 1.0 } else { f64::MAX };
            if !number.is_nan() && !(0.0..=most).contains(&number) {
                let allowed = if most == 1.0 { "0 to 1" } else { "0 and above" };
                return Err((key(), format!("{number} is not allowed; allowed: {allowed}")));
            }
            if (category.as_str(), name) == (ALL, "f") {
                all = Some(number);
            }
        }
    }
    let f = all.ok_or_else(|| (format!(".scores.{ALL}"), "missing".to_owned()))?;
    Ok((id, f))
}

#[cfg(test)]
mod tests {
    use super::*;
    use posenc_experiments::record::captions::Described;

    /// Output of the scorer for three captions, written manually in the form that its classes `SpiceStats` and `Evaluation` write
    /// and COCO-caption's `spice.py` reads: a list of `image_id` and `scores`. `scores` has precision, recall, F1 and counts of all
    /// tuples and, with `-subset`, of each category; `null` marks a category without tuples in the references.
    const OUTPUT: &str = r#"[
  {"scores": {"Relation": {"pr": 0, "re": 0, "f": 0, "fn": 1, "numImages": 1, "fp": 0, "tp": 0},
              "All": {"pr": 1, "re": 0.5, "f": 0.6666666666666666, "fn": 2, "numImages": 1, "fp": 0, "tp": 2},
              "Color": {"pr": null, "re": null, "f": null, "fn": 0, "numImages": 1, "fp": 0, "tp": 0}},
   "image_id": 1},
  {"scores": {"All": {"pr": 0.25, "re": 0.25, "f": 0.25, "fn": 3, "numImages": 1, "fp": 3, "tp": 1}},
   "image_id": 0},
  {"scores": {"All": {"pr": 0, "re": 0, "f": 0, "fn": 3, "numImages": 1, "fp": 1, "tp": 0}}, "image_id": 2}
]"#;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    /// Catches scores that are assigned to another widget, and a corpus score that differs from COCO-caption's.
    #[test]
    fn scores_are_joined_by_number() {
        let scores = read(file(OUTPUT).path(), 3).unwrap();
        assert_eq!(scores, [0.25, 0.6666666666666666, 0.0]);
        assert!((corpus(&scores) - 100.0 * (0.25 + 0.6666666666666666) / 3.0).abs() < 1e-12);
        let without = OUTPUT.replace("\"f\": 0.25", "\"f\": null");
        let scores = read(file(&without).path(), 3).unwrap();
        assert!(scores[0].is_nan() && scores[1] > 0.6);
        assert!(corpus(&scores).is_nan(), "numpy's mean of a NaN is none");
    }

    /// Catches damaged output that is accepted; the message names the file and the entry.
    #[test]
    fn damaged_output_is_refused() {
        for (from, to, needles) in [
            ("\"image_id\": 2", "\"image_id\": 0", ["[2].image_id", "0 appears twice"]),
            ("\"image_id\": 2", "\"image_id\": 3", ["[2].image_id", "3 is not a widget"]),
            ("\"image_id\": 2", "\"image_id\": \"2\"", ["[2].image_id", "\"2\""]),
            (",\n   \"image_id\": 0", "", ["[1].image_id", "missing"]),
            ("\"f\": 0.25", "\"f\": 1.25", ["[1].scores.All.f", "0 to 1"]),
            ("\"f\": 0.25", "\"f\": -0.25", ["[1].scores.All.f", "-0.25"]),
            ("\"f\": 0.25", "\"f\": \"0.25\"", ["[1].scores.All.f", "not a number"]),
            ("\"f\": 0.25, ", "", ["[1].scores.All.f", "missing"]),
            ("\"pr\": 0.25", "\"pr\": 2", ["[1].scores.All.pr", "0 to 1"]),
            ("\"tp\": 1}", "\"tp\": -1}", ["[1].scores.All.tp", "0 and above"]),
            ("{\"All\": {\"pr\": 0.25", "{\"Al\": {\"pr\": 0.25", ["[1].scores.All", "missing"]),
            ("{\"All\": {\"pr\": 0.25,", "{\"All\": 7, \"a\": {", ["[1].scores.All", "missing"]),
            ("\"image_id\": 2}\n]", "\"image_id\": 2}", ["line", "score the captions again"]),
            ("\"f\": 0.25", "\"f\": NaN", ["not the output", "score the captions again"]),
        ] {
            assert!(OUTPUT.contains(from), "{from}");
            let file = file(&OUTPUT.replacen(from, to, 1));
            let message = read(file.path(), 3).unwrap_err().to_string();
            let name = file.path().file_name().unwrap().to_string_lossy().into_owned();
            for needle in needles.into_iter().filter(|n| *n != "line").chain([name.as_str()]) {
                assert!(message.contains(needle), "{to}: no `{needle}` in {message}");
            }
        }
        let message = read(file(OUTPUT).path(), 5).unwrap_err().to_string();
        assert!(message.contains("2 of 5 widgets have no scores, the first is 3"), "{message}");
        assert!(read(file(OUTPUT).path(), 2).unwrap_err().to_string().contains("is not a widget"));
        assert!(read(Path::new("nowhere.json"), 1).unwrap_err().to_string().contains("nowhere"));
        assert!(read(file("").path(), 1).unwrap_err().to_string().contains("Java 8 to 14"));
    }

    /// Catches input that the scorer does not read: `spice.py` writes a list of `image_id`, `test` and `refs`.
    #[test]
    fn input_has_the_scorers_form() {
        let widget = |said: &str| Described {
            references: vec!["go \"up\"".into(), "go back".into()],
            said: said.into(),
            is_right: false,
        };
        let captions =
            UnitCaptions { layouts: Vec::new(), widgets: vec![widget("go down"), widget("")] };
        assert_eq!(
            input(&captions).unwrap(),
            "[{\"image_id\":0,\"test\":\"go down\",\"refs\":[\"go \\\"up\\\"\",\"go back\"]},\
             {\"image_id\":1,\"test\":\"\",\"refs\":[\"go \\\"up\\\"\",\"go back\"]}]"
        );
    }
}
