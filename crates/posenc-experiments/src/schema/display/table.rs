//! Tables of records.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{By, yes};
use crate::schema::group::{Group, find_group};
use crate::yaml::{FileError, YamlPath};

/// One table: a row per method (or signal, or abscissa) of each group.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Unique in the file.
    pub id: String,
    /// Title above the table.
    pub title: String,
    /// One row per method, signal, abscissa, or pair of signal and abscissa. Default: `method`. Allowed: `method`, `signal`, `x`, `signal-x`.
    #[serde(default)]
    pub rows: By,
    /// Heading of the row names. Default: after `rows`.
    pub row_label: Option<String>,
    /// Groups, in order; a group may have published values only.
    pub groups: Vec<String>,
    /// Methods. Default: all. Allowed: list of variants.
    pub methods: Option<Vec<String>>,
    /// Published values of a `group` that belong in the rows of a `signal`. Default: none.
    #[serde(default)]
    pub published_as: Vec<PublishedSignal>,
    /// Heading of published values. Default: `paper`.
    pub published_label: Option<String>,
    /// Heading of measured values, for example to name data other than the paper's. Default: `measured`.
    pub measured_label: Option<String>,
    /// Columns, see below. Allowed: at least one.
    pub columns: Vec<Column>,
}

/// Published values of a group, in the rows of a signal.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedSignal {
    pub group: String,
    pub signal: String,
}

/// A column of a table.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Metric. Allowed: a metric.
    pub metric: String,
    /// Heading, with its unit.
    pub label: String,
    /// Digits after the decimal point. Allowed: 0 to 12.
    #[serde(default = "two")]
    pub digits: usize,
    /// `mean-deviation`: mean ± population standard deviation; `mean`: the mean alone; `median`: the median with the 90th percentile in
    /// parentheses.
    /// Default: `mean-deviation`.
    #[serde(default)]
    pub aggregate: Aggregate,
    /// Shows published values in an adjacent column.
    #[serde(default = "yes")]
    pub published: bool,
    /// Shows measured − paper below a measured number with a published value. Use `false` if the two measure different
    /// things.
    #[serde(default = "yes")]
    pub difference: bool,
    /// Metric of the published values if its name differs. Published values without an abscissa then match any. Default:
    /// the metric. Allowed: a metric.
    pub published_metric: Option<String>,
    /// Group of the published values if it differs. Default: the row's group. Allowed: a group.
    pub published_group: Option<String>,
    /// A single abscissa. Default: all.
    pub x: Option<f64>,
    /// Value shown in bold. Default: `none`.
    #[serde(default)]
    pub best: Best,
}

/// Which value of a column is bold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Best {
    #[default]
    None,
    Highest,
    Lowest,
}

fn two() -> usize {
    2
}

/// How several values are combined into one cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregate {
    /// Mean ± population standard deviation, if there is more than one value.
    #[default]
    MeanDeviation,
    Mean,
    /// Median, with the 90th percentile in parentheses.
    Median,
}

impl Table {
    pub(super) fn check(&self, place: &YamlPath<'_>, groups: &[Group]) -> Result<(), FileError> {
        if self.columns.is_empty() {
            return Err(place.error("columns", "empty"));
        }
        if !self.groups.iter().any(|t| groups.iter().any(|g| g.id == *t)) {
            let first = self.groups.first().map_or("", String::as_str);
            find_group(&place.key("groups"), first, groups)?;
        }
        if self.rows == By::Metric {
            return Err(place.error("rows", "allowed: method, signal, x or signal-x"));
        }
        for (j, column) in self.columns.iter().enumerate() {
            if column.digits > 12 {
                return Err(place.entry("columns", j).error("digits", "allowed: 0 to 12"));
            }
        }
        Ok(())
    }
}
