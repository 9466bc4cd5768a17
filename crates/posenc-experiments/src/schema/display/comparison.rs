//! Comparisons of the groups of another item: quality and time, signal by signal.

use schemars::JsonSchema;
use serde::Deserialize;

/// Groups of another item that are compared with one of them, in a metric and in time.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Names the files of its figure.
    pub id: String,
    /// Above the table.
    pub title: String,
    /// The item of the same paper whose record is compared.
    pub item: String,
    /// What the others are compared with.
    pub baseline: Compared,
    /// What is compared.
    pub others: Vec<Compared>,
    /// The metric; more is better.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The metric of the time per signal, in seconds.
    #[serde(default = "time")]
    pub time: String,
}

/// One group of a comparison.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    /// The group.
    pub group: String,
    /// What it is, in the text.
    pub label: String,
    /// What it is, in the legend.
    pub short: String,
}

fn time() -> String {
    "time".into()
}

impl Comparison {
    /// All groups, the baseline first.
    pub fn groups(&self) -> impl Iterator<Item = &Compared> {
        std::iter::once(&self.baseline).chain(&self.others)
    }
}
