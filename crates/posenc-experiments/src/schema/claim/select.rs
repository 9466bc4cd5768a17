//! Selections: the numbers that a claim is about.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::group::{Group, find_group};
use crate::record::Row;
use crate::yaml::{FileError, YamlPath};

/// Selects rows of the record, or published values.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Select {
    /// The record, or the paper's own numbers (only `with` of an `agreement`).
    #[serde(default)]
    pub from: Source,
    /// Group. Allowed: id of a group.
    pub group: String,
    /// Method. Default: all. Allowed: id of a variant.
    pub method: Option<String>,
    /// Methods, each compared with itself; not with `method`. Default: all. Allowed: list of variants.
    pub methods: Option<Vec<String>>,
    /// Signal. Default: all. Allowed: name.
    pub signal: Option<String>,
    /// Signals; all of them must be on record; not with `signal`. Default: all. Allowed: list of names.
    pub signals: Option<Vec<String>>,
    /// Metric. Allowed: a metric.
    pub metric: String,
    /// Metric that is subtracted, unit by unit; measured values only. Allowed: a metric.
    pub minus: Option<String>,
    /// Abscissa, ends included. Default: all. Allowed: a number or `{ from, to }`.
    pub x: Option<Abscissa>,
    /// Values, or their population standard deviation over signals and seeds for each method and abscissa.
    #[serde(default)]
    pub statistic: Statistic,
}

/// Statistic of the values that share group, method and abscissa, over signals and seeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    #[default]
    Each,
    Deviation,
}

/// Where values come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    #[default]
    Measured,
    Published,
}

/// Part of the abscissa.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Abscissa {
    /// One value, within a relative tolerance of 1e-9.
    At(f64),
    /// An interval, ends included.
    Between(Interval),
}

/// An interval, ends included.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    pub from: f64,
    pub to: f64,
}

/// Whether two abscissas are equal within a relative tolerance of 1e-9, since files round them.
pub(crate) fn same_place(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1e-12)
}

impl Abscissa {
    pub fn contains(&self, x: Option<f64>) -> bool {
        let Some(x) = x else { return false };
        match self {
            Abscissa::At(v) => same_place(x, *v),
            Abscissa::Between(i) => (i.from..=i.to).contains(&x),
        }
    }
}

fn takes(one: &Option<String>, many: &Option<Vec<String>>, name: &str) -> bool {
    one.as_ref().is_none_or(|own| own == name)
        && many.as_ref().is_none_or(|all| all.iter().any(|own| own == name))
}

impl Select {
    /// Whether it selects values of this method.
    pub fn takes_method(&self, method: &str) -> bool {
        takes(&self.method, &self.methods, method)
    }

    /// The metric, with the one that is subtracted from it.
    pub fn metric_text(&self) -> String {
        match &self.minus {
            Some(minus) => format!("{} − {minus}", self.metric),
            None => self.metric.clone(),
        }
    }

    /// Whether it selects values of this method on this signal.
    pub fn takes(&self, method: &str, signal: &str) -> bool {
        self.takes_method(method) && takes(&self.signal, &self.signals, signal)
    }

    /// Whether it selects a row; its `from` is ignored.
    pub fn takes_row(&self, row: &Row) -> bool {
        self.group == row.group
            && self.metric == row.metric
            && self.takes(&row.method, &row.signal)
            && self.x.as_ref().is_none_or(|x| x.contains(row.x))
    }

    pub(crate) fn check(&self, place: &YamlPath<'_>, groups: &[Group]) -> Result<(), FileError> {
        for (name, one, names, many) in [
            ("method", &self.method, "methods", &self.methods),
            ("signal", &self.signal, "signals", &self.signals),
        ] {
            if many.as_ref().is_some_and(|all| one.is_some() || all.is_empty()) {
                let message = format!("allowed: at least one name, and not with `{name}`");
                return Err(place.error(names, message));
            }
        }
        if let Some(Abscissa::Between(Interval { from, to })) = &self.x
            && from > to
        {
            return Err(place.error("x", format!("`from` {from} is above `to` {to}")));
        }
        if self.from == Source::Published {
            let message = "only allowed for measured values; published values cannot be paired";
            return match self.minus {
                None => Ok(()),
                Some(_) => Err(place.error("minus", message)),
            };
        }
        let group = find_group(&place.key("group"), &self.group, groups)?;
        let one = self.method.iter().map(|method| ("method", method));
        let mut named = one.chain(self.methods.iter().flatten().map(|own| ("methods", own)));
        named.try_for_each(|(key, method)| group.check_method(place, key, method))?;
        let metrics = [("metric", Some(&self.metric)), ("minus", self.minus.as_ref())];
        let mut problems = metrics
            .into_iter()
            .filter_map(|(key, metric)| Some((key, group.metric_problem(metric?)?)));
        problems.next().map_or(Ok(()), |(key, message)| Err(place.error(key, message)))
    }
}
