//! Floors: what a method that learned nothing reaches. Ceilings: the rate at which a task is solved.

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
        check_metric(place, "metric", &self.metric, &[group])?;
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

/// A rate of success at which a task is solved. Other metrics then grade solutions, such as the choice between correct phrases. An order, a
/// quotient or an equality is not comparable if all its metrics are such and all its methods reach the rate.
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

impl Ceiling {
    pub(crate) fn check(&self, place: &YamlPath<'_>, groups: &[Group]) -> Result<(), FileError> {
        if self.excludes.is_empty() {
            let message = "empty; list the metrics that decide nothing, or remove the ceiling";
            return Err(place.error("excludes", message));
        }
        let groups: Vec<&Group> = groups.iter().collect();
        check_metric(place, "metric", &self.metric, &groups)?;
        let mut excluded = self.excludes.iter();
        excluded.try_for_each(|metric| check_metric(place, "excludes", metric, &groups))
    }
}

/// Refuses a metric that none of the groups records.
fn check_metric(
    place: &YamlPath<'_>,
    key: &str,
    metric: &str,
    groups: &[&Group],
) -> Result<(), FileError> {
    let problems: Option<Vec<String>> =
        groups.iter().map(|group| group.metric_problem(metric)).collect();
    match problems.and_then(|all| all.into_iter().next()) {
        Some(why) => Err(place.error(key, why)),
        None => Ok(()),
    }
}
