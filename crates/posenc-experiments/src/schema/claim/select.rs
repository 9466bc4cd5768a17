//! Selections: the numbers that a claim is about.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::experiment::{Group, find_group};
use crate::yaml::{FileError, Place};

/// Selects rows of the record, or published values.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Select {
    /// The record, or the paper's own numbers.
    #[serde(default)]
    pub from: Source,
    /// Group. Allowed: id of a group.
    pub group: String,
    /// Method. Default: all. Allowed: id of a variant.
    pub method: Option<String>,
    /// Signal. Default: all. Allowed: name.
    pub signal: Option<String>,
    /// Metric. Allowed: a metric.
    pub metric: String,
    /// Metric that is subtracted, unit by unit; measured values only. Allowed: a metric.
    pub minus: Option<String>,
    /// Abscissa, ends included. Default: all. Allowed: a number or `{ from, to }`.
    pub x: Option<Abscissa>,
    /// Values, or their population standard deviation over signals and seeds for each method and abscissa. `mean` is the same as
    /// `each`.
    #[serde(default)]
    pub statistic: Statistic,
}

/// Statistic of the values that share group, method and abscissa, over signals and seeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The values themselves.
    #[default]
    Each,
    /// Their mean.
    Mean,
    /// Their population standard deviation.
    Deviation,
}

/// Where values come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The record.
    #[default]
    Measured,
    /// The paper.
    Published,
}

/// Part of the abscissa.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Abscissa {
    /// One value, within a relative tolerance of 1e-9.
    At(f64),
    /// An interval, ends included.
    Between(Interval),
}

/// An interval, ends included.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Smallest value.
    pub from: f64,
    /// Largest value.
    pub to: f64,
}

/// Whether two abscissas are equal within a relative tolerance of 1e-9, since files round them.
pub(crate) fn same_place(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1e-12)
}

impl Abscissa {
    /// Whether `x` is selected.
    pub fn contains(&self, x: Option<f64>) -> bool {
        let Some(x) = x else { return false };
        match self {
            Abscissa::At(v) => same_place(x, *v),
            Abscissa::Between(i) => (i.from..=i.to).contains(&x),
        }
    }
}

impl Select {
    pub(super) fn check(&self, place: &Place<'_>, groups: &[Group]) -> Result<(), FileError> {
        if self.from == Source::Published {
            let message = "only allowed for measured values; published values cannot be paired";
            return match self.minus {
                None => Ok(()),
                Some(_) => Err(place.error("minus", message)),
            };
        }
        let group = find_group(&place.key("group"), &self.group, groups)?;
        match &self.method {
            Some(method) if !group.variants.iter().any(|v| v.id == *method) => {
                let ids: Vec<_> = group.variants.iter().map(|v| v.id.as_str()).collect();
                let (group, ids) = (&group.id, ids.join(", "));
                let message = format!("no variant `{method}` in group `{group}`; allowed: {ids}");
                Err(place.error("method", message))
            }
            _ => Ok(()),
        }
    }
}
