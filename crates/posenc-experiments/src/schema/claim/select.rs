//! Which numbers a claim is about.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::experiment::Group;
use crate::yaml::{Document, FileError};

/// Which rows of the record.
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
    /// One place, to a relative 1e-9.
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

impl Abscissa {
    /// Whether `x` is selected.
    pub fn contains(&self, x: Option<f64>) -> bool {
        let Some(x) = x else { return false };
        match self {
            Abscissa::At(v) => (x - v).abs() <= 1e-9 * v.abs().max(1e-12),
            Abscissa::Between(i) => (i.from..=i.to).contains(&x),
        }
    }
}

impl Select {
    pub(super) fn check(
        &self,
        document: &Document,
        path: &str,
        groups: &[Group],
    ) -> Result<(), FileError> {
        if self.from == Source::Published {
            return match self.minus {
                None => Ok(()),
                Some(_) => Err(document.error(
                    &format!("{path}.minus"),
                    "belongs to measured values; published ones have no units that could be paired",
                )),
            };
        }
        let Some(group) = groups.iter().find(|g| g.id == self.group) else {
            let ids: Vec<_> = groups.iter().map(|g| g.id.as_str()).collect();
            return Err(document.error(
                &format!("{path}.group"),
                format!("no group `{}`; allowed: {}", self.group, ids.join(", ")),
            ));
        };
        match &self.method {
            Some(method) if !group.variants.iter().any(|v| v.id == *method) => {
                let ids: Vec<_> = group.variants.iter().map(|v| v.id.as_str()).collect();
                Err(document.error(
                    &format!("{path}.method"),
                    format!(
                        "no variant `{method}` in group `{}`; allowed: {}",
                        group.id,
                        ids.join(", ")
                    ),
                ))
            }
            _ => Ok(()),
        }
    }
}
