//! The data that a group reads.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// Data a group reads.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Id of a data set in `data/manifest.yaml`. Each of its signals is a unit. A set of files (`file_sets` in the
    /// manifest) is one unit, and the group is skipped if the files are missing. Allowed: id of a set.
    pub set: String,
    /// Indices of signals, from 0; not with `held_out`. Default: all. Allowed: list of integers.
    pub pick: Option<Vec<usize>>,
    /// Number of signals that the full protocol runs, with a noun. A run of some of them at the full protocol is then recorded and
    /// shown as, for example, `8 of 16 images, full protocol`. Orderings are judged on these signals, values only once all are
    /// there. Allowed: such as `16 images`.
    pub signals: Option<SignalCount>,
    /// Another set, on which the models are evaluated. Both sets together are then one unit. For `image-model`
    /// and `psnr-prediction`. Allowed: id of a set.
    pub held_out: Option<String>,
    /// Initial weights for `detr`, or word vectors for `captioning`; used if available. Allowed: id of a set.
    pub weights: Option<String>,
}

impl Data {
    /// The set whose label rows have if it is not replaced.
    pub fn measured(&self) -> &String {
        self.held_out.as_ref().unwrap_or(&self.set)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

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
