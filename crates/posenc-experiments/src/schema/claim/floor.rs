//! Floors, which a method reaches that learned nothing, and ceilings, which all reach if the task is solved.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::group::{Group, find_group};
use super::super::metrics::Metrics;
use crate::yaml::{FileError, YamlPath};

/// A recorded result that a method must exceed to have learned, such as that of one constant color, of no position, or of chance. Orders,
/// quotients and equalities of methods that do not exceed it are not comparable.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// Group of the floor. Allowed: id of a group.
    pub group: String,
    /// Method of the floor. Allowed: id of a variant.
    pub method: String,
    /// Metric that is compared. Allowed: a metric.
    pub metric: String,
    /// Groups whose methods must exceed it. Default: its own group. Allowed: list of ids of groups.
    #[serde(default)]
    pub applies_to: Vec<String>,
    /// Whether lower values are better.
    #[serde(default)]
    pub lower_is_better: bool,
    /// By how much: the smallest effect of the metric.
    #[serde(skip)]
    pub(crate) margin: f64,
}

impl Floor {
    pub(crate) fn check(&self, place: &YamlPath<'_>, groups: &[Group]) -> Result<(), FileError> {
        let group = find_group(&place.key("group"), &self.group, groups)?;
        group.check_method(place, "method", &self.method)?;
        for (i, name) in self.applies_to.iter().enumerate() {
            find_group(&place.entry("applies_to", i), name, groups)?;
        }
        Ok(())
    }

    /// Fills in the margin from the rules of metrics.
    pub(crate) fn complete(&mut self, metrics: &Metrics) {
        let rule = metrics.rule(&self.metric);
        self.margin = rule.and_then(|rule| rule.smallest_effect).unwrap_or(0.0);
    }

    /// Whether methods of a group must exceed it.
    pub(crate) fn is_for(&self, group: &str) -> bool {
        match self.applies_to.is_empty() {
            true => self.group == group,
            false => self.applies_to.iter().any(|own| own == group),
        }
    }
}

/// A rate of success at which a task is solved. Other metrics then grade solutions, such as the choice between correct phrases. Orders, quotients and
/// equalities of them are not comparable if all compared methods reach it.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// Metric of success. Allowed: a metric.
    pub metric: String,
    /// The mean that each compared method must reach. Allowed: a number.
    pub at_least: f64,
    /// Metrics that decide nothing then. Allowed: list of metrics.
    pub excludes: Vec<String>,
}
