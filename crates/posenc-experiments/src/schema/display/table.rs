//! How records are tabulated.

use serde::Deserialize;

use super::{By, no_group, yes};
use crate::schema::experiment::Group;
use crate::yaml::{Document, FileError};

/// One table: a row per method (or signal, or abscissa) of each group.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Unique inside the experiment.
    pub id: String,
    /// Above the table.
    pub title: String,
    /// What makes a row of its own.
    #[serde(default)]
    pub rows: By,
    /// Heading of the column that names the rows; `Method`, `Signal` or `x` where absent.
    pub row_label: Option<String>,
    /// Groups, in order. A group that is only published (not run yet) may stand here too.
    pub groups: Vec<String>,
    /// Methods; all where absent.
    pub methods: Option<Vec<String>>,
    /// Columns.
    pub columns: Vec<Column>,
    /// Whether the values of single signals stand in tables of their own, folded away.
    #[serde(default)]
    pub per_signal: bool,
}

/// A column of a table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Metric.
    pub metric: String,
    /// Heading, with its unit.
    pub label: String,
    /// Digits after the point.
    #[serde(default = "two")]
    pub digits: usize,
    /// How several values become one cell.
    #[serde(default)]
    pub aggregate: Aggregate,
    /// Whether published values stand in a column beside.
    #[serde(default = "yes")]
    pub published: bool,
    /// Whether the difference from the published value stands below the measured one; not where they are of different things.
    #[serde(default = "yes")]
    pub difference: bool,
    /// Metric of the published values where it has another name; values without an abscissa then
    /// belong to any.
    pub published_metric: Option<String>,
    /// One abscissa; all where absent.
    pub x: Option<f64>,
    /// Which value stands in bold: `highest`, `lowest` or `none` (default).
    #[serde(default)]
    pub best: Best,
}

/// Which value of a column stands in bold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Best {
    /// No value is better than another.
    #[default]
    None,
    /// The highest.
    Highest,
    /// The lowest.
    Lowest,
}

fn two() -> usize {
    2
}

/// How several values become one cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregate {
    /// Mean ± population standard deviation, where there is more than one value.
    #[default]
    MeanDeviation,
    /// Mean.
    Mean,
}

pub(super) fn check(
    document: &Document,
    tables: &[Table],
    groups: &[Group],
) -> Result<(), FileError> {
    for (i, table) in tables.iter().enumerate() {
        if table.columns.is_empty() {
            return Err(document.error(&format!("tables[{i}].columns"), "empty"));
        }
        if !table.groups.iter().any(|t| groups.iter().any(|g| g.id == *t)) {
            let first = table.groups.first().map(String::as_str).unwrap_or("");
            return Err(no_group(document, &format!("tables[{i}].groups"), first, groups));
        }
        if table.rows == By::Metric {
            return Err(
                document.error(&format!("tables[{i}].rows"), "allowed: method, signal or x")
            );
        }
        if table.per_signal && table.rows != By::Method {
            let what = "only a table whose `rows` are methods has other values behind its own";
            return Err(document.error(&format!("tables[{i}].per_signal"), what));
        }
        for (j, column) in table.columns.iter().enumerate() {
            if column.digits > 12 {
                return Err(
                    document.error(&format!("tables[{i}].columns[{j}].digits"), "allowed: 0 to 12")
                );
            }
        }
    }
    Ok(())
}
