//! Answers of items and papers: sentences, each shown only where the verdicts that it states are those of the record.

use serde_yaml::Value;

use super::claim::Sentence;
use crate::verdict::Verdict;

/// A sentence of an answer, and the verdicts under which it is true.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSentence {
    pub sentence: Sentence,
    /// Claims that must have the stated outcome; at least one.
    pub states: Vec<(String, Outcome)>,
}

/// What a sentence states about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It holds, as printed or corrected.
    Holds,
    Fails,
    /// It was measured and is not decided.
    Open,
}

impl Outcome {
    pub fn is(self, verdict: Verdict) -> bool {
        match verdict {
            Verdict::Reproduced | Verdict::Holds | Verdict::Erratum | Verdict::Ambiguous => {
                self == Outcome::Holds
            }
            Verdict::NotReproduced => self == Outcome::Fails,
            Verdict::WithinNoise
            | Verdict::Negligible
            | Verdict::NotDecided
            | Verdict::NotComparable => self == Outcome::Open,
            Verdict::NotRun => false,
        }
    }
}

/// Reads an answer: a text, or a list of texts and of mappings with `text`, `holds`, `fails` and `open`. `selections` returns the number
/// of selections of a claim.
///
/// # Errors
///
/// The key, relative to the answer, and a message: a wrong form, an unknown claim, a sentence that names no claim.
pub(crate) fn parse(
    value: &Value,
    selections: impl Fn(&str) -> Option<usize>,
) -> Result<Vec<AnswerSentence>, (String, String)> {
    match value {
        Value::Sequence(list) => {
            let one = |(i, value): (usize, &Value)| {
                sentence(value, &selections).map_err(|(key, message)| {
                    let dot = if key.is_empty() { "" } else { "." };
                    (format!("[{i}]{dot}{key}"), message)
                })
            };
            list.iter().enumerate().map(one).collect()
        }
        one => Ok(vec![sentence(one, &selections)?]),
    }
}

/// The key of a part of an answer in its file.
pub(crate) fn key(part: &str) -> String {
    let dot = if part.is_empty() || part.starts_with('[') { "" } else { "." };
    format!("answer{dot}{part}")
}

fn sentence(
    value: &Value,
    selections: &impl Fn(&str) -> Option<usize>,
) -> Result<AnswerSentence, (String, String)> {
    let at = |key: &str, message: String| (key.to_owned(), message);
    let known = ["text", "holds", "fails", "open"];
    let (text, mapping) = match value {
        Value::String(text) => (text, None),
        Value::Mapping(mapping) => {
            let mut keys = mapping.keys().map(|key| key.as_str().unwrap_or("?"));
            if let Some(key) = keys.find(|key| !known.contains(key)) {
                let message = format!("unknown key; allowed: {}", known.join(", "));
                return Err(at(key, message));
            }
            match mapping.get("text") {
                Some(Value::String(text)) => (text, Some(mapping)),
                _ => return Err(at("text", "missing, or not a text".into())),
            }
        }
        _ => return Err(at("", "allowed: a text, or a mapping with `text`".into())),
    };
    let parsed = Sentence::parse(text, |claim| selections(claim?));
    let sentence = parsed.map_err(|message| at("text", message))?;
    let mut states: Vec<(String, Outcome)> = Vec::new();
    for (key, outcome) in
        [("holds", Outcome::Holds), ("fails", Outcome::Fails), ("open", Outcome::Open)]
    {
        let list = match mapping.and_then(|mapping| mapping.get(key)) {
            None => continue,
            Some(Value::Sequence(list)) => list,
            Some(_) => return Err(at(key, "allowed: a list of claims".into())),
        };
        for claim in list {
            let name = claim.as_str().unwrap_or_default();
            if selections(name).is_none() {
                return Err(at(key, format!("there is no claim `{name}`")));
            }
            states.push((name.to_owned(), outcome));
        }
    }
    for claim in sentence.numbers().filter_map(|number| number.claim.as_ref()) {
        if !states.iter().any(|(name, _)| name == claim) {
            states.push((claim.clone(), Outcome::Holds));
        }
    }
    match states.is_empty() {
        true => Err(at(
            "",
            "the sentence names no claim, so nothing shows whether it is true; take a number from a claim, or name \
             claims under `holds`, `fails` or `open`"
                .into(),
        )),
        false => Ok(AnswerSentence { sentence, states }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<AnswerSentence>, (String, String)> {
        let value: Value = serde_yaml::from_str(text).unwrap();
        parse(&value, |claim| ["a", "b"].contains(&claim).then_some(2))
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
            ("- It is {c.1}.", "[0].text", "there is no claim `c`"),
            ("- { text: x, fails: [c] }", "[0].fails", "there is no claim `c`"),
            ("- { text: x, is: [a] }", "[0].is", "unknown key"),
            ("- { fails: [a] }", "[0].text", "missing"),
        ] {
            let error = parsed(text).unwrap_err();
            assert_eq!(error.0, key, "{text}");
            assert!(error.1.contains(message), "{text}: {}", error.1);
        }
    }

    /// Catches an undecided or failed claim that counts as holding.
    #[test]
    fn every_verdict_has_at_most_one_outcome() {
        for verdict in Verdict::ALL {
            let all = [Outcome::Holds, Outcome::Fails, Outcome::Open];
            let count = all.into_iter().filter(|outcome| outcome.is(verdict)).count();
            assert_eq!(count, usize::from(verdict != Verdict::NotRun), "{verdict:?}");
        }
    }
}
