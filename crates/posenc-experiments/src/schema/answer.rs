//! Answers of items and papers: sentences, each shown only where the verdicts that it states are those of the record.

use serde::Deserialize;
use serde_yaml::Value;

use super::claim::Sentence;
use crate::verdict::Verdict;
use crate::yaml::{FileError, YamlPath};

/// A sentence of an answer, and the verdicts under which it is true.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSentence {
    pub sentence: Sentence,
    /// Claims that must have the stated outcome; at least one.
    pub states: Vec<(String, Outcome)>,
}

impl AnswerSentence {
    /// Whether it states something about a claim.
    pub fn names(&self, claim: &str) -> bool {
        self.states.iter().any(|(own, _)| own == claim)
    }
}

/// What a sentence states about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It holds, as printed or corrected.
    Holds,
    /// It fails as printed, and its correction or another reading holds.
    Corrected,
    Fails,
    /// It was measured and is not decided.
    Open,
    /// It was measured; the sentence has numbers only.
    Measured,
}

impl Outcome {
    pub fn is(self, verdict: Verdict) -> bool {
        if self == Outcome::Measured {
            return verdict != Verdict::NotRun;
        }
        match verdict {
            Verdict::Reproduced | Verdict::Holds => self == Outcome::Holds,
            Verdict::Erratum | Verdict::Ambiguous => {
                matches!(self, Outcome::Holds | Outcome::Corrected)
            }
            Verdict::NotReproduced | Verdict::DoesNotHold => self == Outcome::Fails,
            Verdict::WithinNoise
            | Verdict::Negligible
            | Verdict::NotDecided
            | Verdict::NotComparable => self == Outcome::Open,
            Verdict::NotRun => false,
        }
    }
}

/// A sentence with the verdicts that it states.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireSentence {
    text: String,
    #[serde(default)]
    holds: Vec<String>,
    #[serde(default)]
    corrected: Vec<String>,
    #[serde(default)]
    fails: Vec<String>,
    #[serde(default)]
    open: Vec<String>,
    #[serde(default)]
    measured: Vec<String>,
}

/// Reads the answer at `place`: a text, or a list of texts and of mappings with `text`, `holds`, `corrected`, `fails`, `open` and `measured`.
/// `selections` returns the number of selections of a claim, or that there is no such claim.
pub(crate) fn parse(
    place: &YamlPath<'_>,
    value: &Value,
    selections: impl Fn(&str) -> Result<usize, String>,
) -> Result<Vec<AnswerSentence>, FileError> {
    let Value::Sequence(list) = value else {
        return Ok(vec![sentence(place, value, &selections)?]);
    };
    let one = |(i, value)| sentence(&place.entry("", i), value, &selections);
    list.iter().enumerate().map(one).collect()
}

fn sentence(
    place: &YamlPath<'_>,
    value: &Value,
    selections: &impl Fn(&str) -> Result<usize, String>,
) -> Result<AnswerSentence, FileError> {
    let wire = match value {
        Value::String(text) => WireSentence { text: text.clone(), ..WireSentence::default() },
        Value::Mapping(_) => place.typed(value.clone())?,
        _ => return Err(place.error("", "allowed: a text, or a mapping with `text`")),
    };
    let parsed = Sentence::parse(&wire.text, selections);
    let key = if value.is_string() { "" } else { "text" };
    let sentence = parsed.map_err(|message| place.error(key, message))?;
    let mut states: Vec<(String, Outcome)> = Vec::new();
    for (key, claims, outcome) in [
        ("holds", wire.holds, Outcome::Holds),
        ("corrected", wire.corrected, Outcome::Corrected),
        ("fails", wire.fails, Outcome::Fails),
        ("open", wire.open, Outcome::Open),
        ("measured", wire.measured, Outcome::Measured),
    ] {
        if let Some(message) = claims.iter().find_map(|claim| selections(claim).err()) {
            return Err(place.error(key, message));
        }
        states.extend(claims.into_iter().map(|claim| (claim, outcome)));
    }
    for claim in sentence.numbers().map(|number| &number.claim) {
        if !states.iter().any(|(name, _)| name == claim) {
            states.push((claim.clone(), Outcome::Holds));
        }
    }
    match states.is_empty() {
        true => Err(place.error(
            "",
            "the sentence names no claim, so nothing shows whether it is true; take a number from a claim, or name \
             claims under `holds`, `corrected`, `fails`, `open` or `measured`",
        )),
        false => Ok(AnswerSentence { sentence, states }),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::yaml::Document;

    fn parsed(text: &str) -> Result<Vec<AnswerSentence>, FileError> {
        let document = Document::parse(Path::new("a.yaml"), text).unwrap();
        let selections = |claim: &str| match claim {
            "a" | "b" => Ok(2),
            _ => Err(format!("there is no claim `{claim}`")),
        };
        parse(&document.root().key("answer"), &document.value, selections)
    }

    /// Catches sentences that are shown whatever the verdict, and conditions that are read as others.
    #[test]
    fn each_sentence_states_verdicts() {
        let found =
            parsed("- It is {a.1}.\n- { text: 'It is {b.1}.', fails: [b], open: [a] }\n").unwrap();
        assert_eq!(found[0].states, [("a".to_owned(), Outcome::Holds)]);
        let (a, b) = (("a".to_owned(), Outcome::Open), ("b".to_owned(), Outcome::Fails));
        assert_eq!(found[1].states, [b, a]);
        for (text, key, message) in [
            ("Nothing.", "", "names no claim"),
            ("- It is {c.1}.", "[0]", "there is no claim `c`"),
            ("- { text: 'It is {c.1}.' }", "[0].text", "there is no claim `c`"),
            ("- { text: x, fails: [c] }", "[0].fails", "there is no claim `c`"),
            ("- { text: x, is: [a] }", "[0].is", "unknown field `is`"),
            ("- { fails: [a] }", "[0]", "missing field `text`"),
        ] {
            let error = parsed(text).unwrap_err();
            assert_eq!(error.key, format!("answer{key}"), "{text}");
            assert!(error.message.contains(message), "{text}: {error}");
        }
    }
}
