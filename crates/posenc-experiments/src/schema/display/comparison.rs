//! Methods of another item: paired with a baseline, or the best for the time they take.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::yaml::{FileError, YamlPath};

/// Groups of another item whose methods are compared, in a metric and in time.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Unique in the file; part of the name of its figure. Allowed: a key.
    pub id: String,
    /// Title above the table.
    pub title: String,
    /// Item whose record is read, as `paper/item`.
    pub item: String,
    /// Groups whose methods are compared: `group`, `label` (its name in sentences) and `short` (in legends; default: `label`). Without
    /// `front`, the first one is the baseline, with which methods of the same name are paired.
    pub groups: Vec<Compared>,
    /// Metric; higher is better.
    pub metric: String,
    /// Unit of the metric.
    pub unit: String,
    /// Metric of the baseline that is the mean of `metric` over its last epochs. The others are also compared with it, because the last
    /// epoch can be an outlier.
    pub late_metric: Option<String>,
    /// Recorded values, one per signal, that a baseline exceeds if it learns, such as those of one constant color: `group`, `method` and
    /// `metric` of the same item. Signals on which the baseline is at most 0.1 above them are left out.
    pub floor: Option<PerSignal>,
    /// Lists the Pareto-optimal methods (time and metric), instead of pairs: `axes` (1 to 3) and `side` (positions along each axis) of the
    /// signals and their known `positions` (`grid` or `random`), by which `fit --advise` selects a table.
    pub front: Option<Front>,
}

/// One group of a comparison.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    pub group: String,
    /// Its name in sentences.
    pub label: String,
    /// Its name in legends and tables; `label` if absent.
    pub short: Option<String>,
}

/// The Pareto-optimal methods in time and a metric.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Front {
    /// Number of axes of the signals.
    pub axes: usize,
    pub positions: Positions,
    /// Number of positions along each axis.
    pub side: usize,
}

/// Recorded values, one per signal.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PerSignal {
    pub group: String,
    pub method: String,
    pub metric: String,
}

/// Positions at which a signal is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Positions {
    /// Every S-th position along each axis.
    Grid,
    /// Random positions.
    Random,
}

impl Compared {
    /// Its name in legends and tables.
    pub fn short(&self) -> &str {
        self.short.as_deref().unwrap_or(&self.label)
    }
}

impl Comparison {
    pub(super) fn check(&self, place: &YamlPath<'_>) -> Result<(), FileError> {
        match &self.front {
            None if self.groups.len() < 2 => {
                Err(place.error("groups", "allowed: a baseline and at least one other group"))
            }
            Some(_) if self.late_metric.is_some() || self.floor.is_some() => {
                Err(place.error("front", "excludes `late_metric` and `floor`"))
            }
            Some(front) if !(1..=3).contains(&front.axes) => {
                let message = format!("{} axes; allowed: 1 to 3", front.axes);
                Err(place.error("front.axes", message))
            }
            Some(front) if front.side == 0 => {
                Err(place.error("front.side", "no positions; allowed: 1 or more"))
            }
            _ => Ok(()),
        }
    }
}
