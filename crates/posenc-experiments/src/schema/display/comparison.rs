//! Comparisons of the groups of another item: quality and time, signal by signal, and the best methods by time.

use schemars::JsonSchema;
use serde::Deserialize;

/// Groups of another item that are compared with one of them, in a metric and in time.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Names the files of its figure.
    pub id: String,
    /// Title above the table.
    pub title: String,
    /// The item of the same paper whose record is compared.
    pub item: String,
    /// Group that the others are compared with.
    pub baseline: Compared,
    /// Groups that are compared.
    pub others: Vec<Compared>,
    /// Metric; higher is better.
    pub metric: String,
    /// Metric of the baseline that is the mean of `metric` over its last epochs. The others are also compared with it, because the last
    /// epoch can be an outlier. Default: none.
    pub late_metric: Option<String>,
    /// Recorded values of `metric`, one per signal, that a baseline exceeds if it learns, such as those of one constant color. Signals on
    /// which the baseline is at most 0.1 above them are left out. Default: none.
    pub floor: Option<PerSignal>,
    /// Unit of both metrics.
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
    /// Its name in sentences, after *the*.
    pub label: String,
    /// Its name in the legend.
    pub short: String,
}

/// The methods of another item that are best for the time they take.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// Title above the table: which signals, and at which positions they are known.
    pub title: String,
    /// Item whose record is read, as `paper/item`.
    pub item: String,
    /// Groups whose methods are compared. Each method of a group is one row at most.
    pub groups: Vec<Chosen>,
    /// Number of axes of the signals. `fit --advise` selects tables by it. Allowed: 1 to 3.
    pub axes: usize,
    /// Which positions are known. `fit --advise` selects tables by it.
    pub positions: Positions,
    /// Number of positions along each axis. `fit --advise` selects the table whose signals are nearest in size. Allowed: 1 or more.
    pub side: usize,
    /// Recorded values that predict the metric of a signal before a method runs: `group`, `method` and `metric` of the same item.
    /// Default: none. Allowed: mapping.
    pub predictor: Option<PerSignal>,
    /// Metric; higher is better.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Metric of the time per signal, in seconds.
    #[serde(default = "time")]
    pub time: String,
}

/// One group of a choice.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    /// The group.
    pub group: String,
    /// What it is, after the name of the method in the table.
    pub label: String,
}

/// Recorded values, one per signal.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PerSignal {
    /// The group.
    pub group: String,
    /// The method.
    pub method: String,
    /// The metric.
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

fn time() -> String {
    "time".into()
}

impl Comparison {
    pub fn groups(&self) -> impl Iterator<Item = &Compared> {
        std::iter::once(&self.baseline).chain(&self.others)
    }
}
