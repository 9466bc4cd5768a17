//! The number of signals in the full protocol.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::Profile;
use super::experiment::Group;
use crate::record::Row;

/// A count with its noun, such as `16 images`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct SignalCount {
    /// The number, at least 1.
    pub count: usize,
    /// What the signals are, in the plural.
    pub noun: String,
}

impl TryFrom<String> for SignalCount {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = || {
            format!("`{text}` is not allowed; allowed: a number and a noun, such as `16 images`")
        };
        let (count, noun) = text.trim().split_once(' ').ok_or_else(wrong)?;
        let count = count.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?;
        Ok(SignalCount { count, noun: noun.trim().to_owned() })
    }
}

impl JsonSchema for SignalCount {
    fn schema_name() -> Cow<'static, str> {
        "SignalCount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^ *0*[1-9][0-9]* " })
    }
}

impl Group {
    /// Number of signals that the full protocol runs, if the file states it.
    pub fn signals(&self) -> Option<&SignalCount> {
        self.data.as_ref()?.signals.as_ref()
    }

    /// Descriptions of incomplete sets of signals at the full protocol, such as `8 of 16 images, full protocol`. Empty if the rows
    /// cover all signals, or if the file does not state their number.
    ///
    /// Other groups' rows are ignored. Methods are counted separately.
    pub fn parts<'a>(&self, rows: impl IntoIterator<Item = &'a Row>) -> BTreeSet<String> {
        let Some(full) = self.signals().filter(|_| self.reduced(Profile::Paper).is_none()) else {
            return BTreeSet::new();
        };
        let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for row in rows.into_iter().filter(|r| r.group == self.id && r.profile == Profile::Paper) {
            found.entry(&row.method).or_default().insert(&row.signal);
        }
        let counts = found.values().map(BTreeSet::len).filter(|count| *count < full.count);
        counts.map(|n| format!("{n} of {} {}, full protocol", full.count, full.noun)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::protocol::testing::demo;

    /// Catches a part of the signals that is treated as all of them, and rows of a reduced run that are counted.
    #[test]
    fn parts_are_counted_by_method() {
        let text = "data: { set: pictures, signals: 2 images }, protocol: { kind: stable-rank }, \
                    profiles: { smoke: { reduced: half, settings: { samples: 2 } } }";
        let group = &demo(text, "").groups[0];
        let row = |method: &str, signal: &str, profile| Row {
            signal: signal.into(),
            unit: "dB".into(),
            profile,
            data: "pictures".into(),
            ..Row::new("run", method, "psnr", 1.0)
        };
        let mut rows = vec![
            row("A", "one", Profile::Paper),
            row("A", "two", Profile::Paper),
            row("B", "one", Profile::Paper),
            row("B", "two", Profile::Smoke),
        ];
        let expected = BTreeSet::from(["1 of 2 images, full protocol".to_owned()]);
        assert_eq!(group.parts(&rows), expected);
        rows.push(row("B", "two", Profile::Paper));
        assert!(group.parts(&rows).is_empty());
    }

    #[test]
    fn counts_are_a_number_and_a_noun() {
        let read = |text: &str| SignalCount::try_from(text.to_owned());
        let expected = SignalCount { count: 16, noun: "images".into() };
        assert_eq!(read("16 images"), Ok(expected));
        for wrong in ["16", "images", "0 images", "-1 images", ""] {
            assert!(read(wrong).unwrap_err().contains("is not allowed"), "{wrong}");
        }
    }
}
