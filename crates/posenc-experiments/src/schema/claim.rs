//! Claims: what a paper says, as something that can be judged.

use serde::Deserialize;
use serde_yaml::{Mapping, Value};

use super::experiment::Group;
use crate::yaml::{Document, FileError, nearest};

/// One statement of a paper and the check that decides it.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Unique inside the experiment.
    pub id: String,
    /// The statement, in our words.
    pub says: String,
    /// Where the paper says it.
    pub source: String,
    /// What decides it.
    pub check: Check,
    /// Set where the statement is wrong as printed.
    pub erratum: Option<ErratumLink>,
}

/// The corrected statement behind a wrong one.
#[derive(Debug, Clone)]
pub struct ErratumLink {
    /// Id on the errata page.
    pub id: String,
    /// The corrected statement, in words.
    pub corrected: String,
    /// What decides the corrected statement.
    pub check: Check,
}

/// What decides a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Check {
    /// The mean of the selected values equals a number.
    Value(ValueCheck),
    /// Several selections stand in a given order.
    Ordering(OrderingCheck),
    /// A quotient lies between limits.
    Ratio(RatioCheck),
    /// Values rise, fall or stay along the abscissa.
    Trend(TrendCheck),
    /// Every selected value keeps a limit.
    Bound(BoundCheck),
    /// Two series agree point by point.
    Equality(EqualityCheck),
}

/// Which rows of the record.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Select {
    /// Measured rows (default) or the published values of the same item.
    #[serde(default)]
    pub from: Source,
    /// Group key.
    pub group: String,
    /// Method; all methods where absent.
    #[serde(default)]
    pub method: Option<String>,
    /// Signal; all where absent.
    #[serde(default)]
    pub signal: Option<String>,
    /// Metric.
    pub metric: String,
    /// Abscissa: a number, or `{from, to}` (both included); all where absent.
    #[serde(default)]
    pub x: Option<Abscissa>,
}

/// Where values come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The record.
    #[default]
    Measured,
    /// The paper.
    Published,
}

/// Part of the abscissa.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Abscissa {
    /// One place, to a relative 1e-9.
    At(f64),
    /// An interval, ends included.
    Between(Interval),
}

/// An interval, ends included.
#[derive(Debug, Clone, PartialEq, Deserialize)]
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

/// How far two numbers may differ. Exactly one of the three is set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// In the unit of the metric.
    #[serde(default)]
    pub absolute: Option<f64>,
    /// As a share of the expected number.
    #[serde(default)]
    pub relative: Option<f64>,
    /// In standard deviations published beside the expected number.
    #[serde(default)]
    pub published_deviations: Option<f64>,
}

/// The number a value is held against.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Expected {
    /// A number, as the paper's text or theory gives it.
    Number(f64),
    /// The word `published`: the value of the same group, method, metric and abscissa.
    Published(PublishedWord),
}

/// The word `published`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PublishedWord {
    /// The word itself.
    Published,
}

/// See [`Check::Value`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueCheck {
    /// Rows whose mean is taken.
    pub of: Select,
    /// What it should be.
    pub expect: Expected,
    /// How far off is still the same.
    pub tolerance: Tolerance,
}

/// See [`Check::Ordering`]: paired over signal, seed and abscissa.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderingCheck {
    /// Selections, in the order that is claimed.
    pub of: Vec<Select>,
    /// Whether the first is the highest (default) or the lowest.
    #[serde(default)]
    pub first: First,
}

/// Which end of the order stands first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum First {
    /// Highest first.
    #[default]
    Highest,
    /// Lowest first.
    Lowest,
}

/// See [`Check::Ratio`]: quotient of the means.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioCheck {
    /// Above the line.
    pub numerator: Select,
    /// Below the line.
    pub denominator: Select,
    /// Smallest quotient that confirms the claim.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// Largest quotient that confirms the claim.
    #[serde(default)]
    pub at_most: Option<f64>,
}

/// See [`Check::Trend`]; means per abscissa, for each method by itself.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrendCheck {
    /// Rows.
    pub of: Select,
    /// What happens as x grows.
    pub direction: Direction,
    /// Steps against the direction up to this share of the value's range are overlooked; for
    /// `constant`, the largest spread as a share of the mean.
    #[serde(default)]
    pub slack: f64,
}

/// What happens to a metric as the abscissa grows.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// It rises.
    Increasing,
    /// It falls.
    Decreasing,
    /// It stays.
    Constant,
}

/// See [`Check::Bound`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundCheck {
    /// Rows, each of which must keep the limits.
    pub of: Select,
    /// Upper limit.
    #[serde(default)]
    pub at_most: Option<Limit>,
    /// Lower limit.
    #[serde(default)]
    pub at_least: Option<Limit>,
    /// Share of the limit that a value may pass it by (rounding).
    #[serde(default)]
    pub slack: f64,
}

/// A limit: a number, or a metric of the same method, signal, seed and abscissa.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Limit {
    /// A number.
    Number(f64),
    /// Name of a metric.
    Metric(String),
}

/// See [`Check::Equality`]: matched over signal, seed and abscissa.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EqualityCheck {
    /// One series.
    pub left: Select,
    /// The other, which relative tolerances refer to.
    pub right: Select,
    /// Largest difference.
    pub tolerance: Tolerance,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireClaim {
    pub id: String,
    says: String,
    source: String,
    check: Mapping,
    #[serde(default)]
    erratum: Option<WireErratum>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireErratum {
    id: String,
    corrected: String,
    check: Mapping,
}

const KINDS: &[&str] = &["value", "ordering", "ratio", "trend", "bound", "equality"];

impl Check {
    /// The kind's name in files.
    pub fn kind(&self) -> &'static str {
        match self {
            Check::Value(_) => KINDS[0],
            Check::Ordering(_) => KINDS[1],
            Check::Ratio(_) => KINDS[2],
            Check::Trend(_) => KINDS[3],
            Check::Bound(_) => KINDS[4],
            Check::Equality(_) => KINDS[5],
        }
    }

    /// All selections, with their keys inside the check.
    pub fn selects(&self) -> Vec<(String, &Select)> {
        match self {
            Check::Value(c) => vec![("of".into(), &c.of)],
            Check::Ordering(c) => {
                c.of.iter().enumerate().map(|(i, s)| (format!("of[{i}]"), s)).collect()
            }
            Check::Ratio(c) => {
                vec![("numerator".into(), &c.numerator), ("denominator".into(), &c.denominator)]
            }
            Check::Trend(c) => vec![("of".into(), &c.of)],
            Check::Bound(c) => vec![("of".into(), &c.of)],
            Check::Equality(c) => vec![("left".into(), &c.left), ("right".into(), &c.right)],
        }
    }

    fn from_mapping(
        document: &Document,
        path: &str,
        mut mapping: Mapping,
        groups: &[Group],
    ) -> Result<Self, FileError> {
        let kind = match mapping.remove("kind") {
            Some(Value::String(kind)) => kind,
            _ => {
                return Err(document
                    .error(path, format!("`kind` is missing; allowed: {}", KINDS.join(", "))));
            }
        };
        let value = Value::Mapping(mapping);
        let check = match kind.as_str() {
            "value" => Check::Value(document.typed(path, value)?),
            "ordering" => Check::Ordering(document.typed(path, value)?),
            "ratio" => Check::Ratio(document.typed(path, value)?),
            "trend" => Check::Trend(document.typed(path, value)?),
            "bound" => Check::Bound(document.typed(path, value)?),
            "equality" => Check::Equality(document.typed(path, value)?),
            other => {
                let hint = nearest(other, KINDS.iter().copied())
                    .map(|n| format!("; did you mean `{n}`?"))
                    .unwrap_or_default();
                return Err(document.error(
                    &format!("{path}.kind"),
                    format!("unknown kind `{other}`{hint} Allowed: {}", KINDS.join(", ")),
                ));
            }
        };
        if let Some((key, message)) = check.problem() {
            return Err(document.error(&format!("{path}.{key}"), message));
        }
        for (key, select) in check.selects() {
            select.check(document, &format!("{path}.{key}"), groups)?;
        }
        Ok(check)
    }

    fn problem(&self) -> Option<(&'static str, String)> {
        match self {
            Check::Value(c) => c.tolerance.problem().or_else(|| {
                let deviations = c.tolerance.published_deviations.is_some();
                (deviations && matches!(c.expect, Expected::Number(_))).then(|| {
                    ("tolerance", "`published_deviations` needs `expect: published`".into())
                })
            }),
            Check::Ordering(c) if c.of.len() < 2 => {
                Some(("of", "an order needs at least two selections".into()))
            }
            Check::Ratio(c) if c.at_least.is_none() && c.at_most.is_none() => {
                Some(("at_least", "set `at_least`, `at_most` or both".into()))
            }
            Check::Bound(c) if c.at_least.is_none() && c.at_most.is_none() => {
                Some(("at_least", "set `at_least`, `at_most` or both".into()))
            }
            Check::Equality(c) => c.tolerance.problem(),
            _ => None,
        }
    }
}

impl Tolerance {
    fn problem(&self) -> Option<(&'static str, String)> {
        let all = [self.absolute, self.relative, self.published_deviations];
        let set: Vec<f64> = all.into_iter().flatten().collect();
        if set.len() != 1 {
            return Some((
                "tolerance",
                "set exactly one of `absolute`, `relative`, `published_deviations`".into(),
            ));
        }
        (!set[0].is_finite() || set[0] < 0.0)
            .then(|| ("tolerance", format!("{} is not allowed; allowed: 0 or more", set[0])))
    }
}

impl Select {
    fn check(&self, document: &Document, path: &str, groups: &[Group]) -> Result<(), FileError> {
        if self.from == Source::Published {
            return Ok(());
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

impl WireClaim {
    pub(super) fn checked(
        self,
        document: &Document,
        path: &str,
        groups: &[Group],
    ) -> Result<Claim, FileError> {
        let check = Check::from_mapping(document, &format!("{path}.check"), self.check, groups)?;
        let erratum = self
            .erratum
            .map(|e| {
                let path = format!("{path}.erratum");
                if !posenc_math::errata::all().iter().any(|known| known.id == e.id) {
                    return Err(document.error(
                        &format!("{path}.id"),
                        format!("no erratum `{}` in posenc_math::errata", e.id),
                    ));
                }
                Ok(ErratumLink {
                    check: Check::from_mapping(
                        document,
                        &format!("{path}.check"),
                        e.check,
                        groups,
                    )?,
                    id: e.id,
                    corrected: e.corrected,
                })
            })
            .transpose()?;
        Ok(Claim { id: self.id, says: self.says, source: self.source, check, erratum })
    }
}
