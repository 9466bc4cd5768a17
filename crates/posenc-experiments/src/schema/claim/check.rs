//! Checks: the rules that decide claims.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_yaml::{Mapping, Value};

use super::super::experiment::{Group, find_group};
use super::super::json;
use super::super::metrics::Metrics;
use super::super::protocol::Fault;
use super::select::{Select, Source};
use crate::yaml::{FileError, Place, hint};

/// Defines the kinds of checks, each with its name in files.
macro_rules! checks {
    ($($(#[$doc:meta])* $name:literal $kind:ident($check:ty),)*) => {
        /// A check that decides a claim.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Check {
            $($(#[$doc])* $kind($check),)*
        }

        /// Kinds of checks, in the order of [`Check`].
        pub const KINDS: &[&str] = &[$($name),*];

        impl Check {
            /// The kind's name in files.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Check::$kind(_) => $name,)*
                }
            }

            /// Deserializes a check of this kind; `None` if there is no such kind.
            fn typed(place: &Place<'_>, kind: &str, value: Value) -> Result<Option<Self>, FileError> {
                match kind {
                    $($name => place.typed(value).map(|check| Some(Check::$kind(check))),)*
                    _ => Ok(None),
                }
            }
        }

        impl JsonSchema for Check {
            fn schema_name() -> Cow<'static, str> {
                "Check".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                json::tagged([$(($name, json::labeled(<$check>::json_schema(generator))),)*])
            }
        }
    };
}

checks! {
    /// The mean of the selected values equals a number.
    "value" Value(ValueCheck),
    /// Several selections are in a given order.
    "ordering" Ordering(OrderingCheck),
    /// A quotient is within limits.
    "ratio" Ratio(RatioCheck),
    /// Values increase, decrease or stay constant along the abscissa.
    "trend" Trend(TrendCheck),
    /// The selected values stay within limits.
    "bound" Bound(BoundCheck),
    /// Two series agree point by point.
    "equality" Equality(EqualityCheck),
    /// The means of a curve agree with those of another, or with the published ones.
    "agreement" Agreement(AgreementCheck),
    /// A feature of a curve is at a given place.
    "position" Position(PositionCheck),
}

/// How far two numbers may differ. Exactly one of the first four is set.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// In the unit of the metric.
    pub absolute: Option<f64>,
    /// As a share of the expected number.
    pub relative: Option<f64>,
    /// In standard deviations published next to the expected number.
    pub published_deviations: Option<f64>,
    /// In standard errors of the difference of the two means, √(s²/n + p²/m). If no deviation p is published, the measured one
    /// replaces it.
    pub standard_errors: Option<f64>,
    /// With `standard_errors`: number m of runs behind the published mean.
    pub published_runs: Option<u32>,
}

/// The number that a value is compared with.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Expected {
    /// A number, as the paper's text or theory gives it.
    Number(f64),
    /// The word `published`: the value of the same group, method, metric and abscissa.
    Published(PublishedWord),
}

/// The word `published`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PublishedWord {
    /// The word itself.
    Published,
}

/// The mean of the selected values equals a number.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValueCheck {
    /// Rows whose mean is taken.
    pub of: Select,
    /// Expected mean.
    pub expect: Expected,
    /// Largest difference; the tolerance of the metric if absent.
    pub tolerance: Option<Tolerance>,
    /// Which repetitions determine the uncertainty.
    #[serde(default)]
    pub sample: Sample,
}

/// Which repetitions determine the uncertainty of a value that is compared with a published one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sample {
    /// Both numbers come from the same signals: only seeds differ.
    #[default]
    Seeds,
    /// The signals are a different sample than the paper's, such as random lines.
    Signals,
}

/// Several selections are in a given order, by differences paired over signal, seed and abscissa.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderingCheck {
    /// Selections, in the order that is claimed.
    pub of: Vec<Select>,
    /// Whether the first is the highest (default) or the lowest.
    #[serde(default)]
    pub first: First,
    /// Smallest difference that matters, in the unit of the metric; the smallest effect of the metric if absent.
    pub smallest_effect: Option<f64>,
    /// By how much the higher one may be lower, in the unit of the metric. With a margin above 0, the check is one of
    /// non-inferiority ("at least comparable"), without a smallest effect.
    #[serde(default)]
    pub margin: f64,
}

/// Which end of the order is first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum First {
    /// Highest first.
    #[default]
    Highest,
    /// Lowest first.
    Lowest,
}

/// The quotient of two means is within limits.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatioCheck {
    /// Numerator.
    pub numerator: Select,
    /// Denominator.
    pub denominator: Select,
    /// Smallest quotient that confirms the claim.
    pub at_least: Option<f64>,
    /// Largest quotient that confirms the claim.
    pub at_most: Option<f64>,
}

/// The means per abscissa increase, decrease or stay constant, for each method separately.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrendCheck {
    /// Rows.
    pub of: Select,
    /// Claimed direction as x grows.
    pub direction: Direction,
    /// Steps against the direction up to this share of the range of values are allowed, by default 0. For `constant`, the largest
    /// range of the means in the unit of the metric; the tolerance of the metric if absent.
    pub slack: Option<f64>,
}

/// What happens to a metric as the abscissa grows.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// It increases.
    Increasing,
    /// It decreases.
    Decreasing,
    /// It stays constant.
    Constant,
}

/// The selected values stay within limits.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoundCheck {
    /// Rows whose values must be within the limits.
    pub of: Select,
    /// Upper limit.
    pub at_most: Option<Limit>,
    /// Lower limit.
    pub at_least: Option<Limit>,
    /// Share of the limit by which a value may exceed it (rounding).
    #[serde(default)]
    pub slack: f64,
    /// Whether each single value must be within the limits, instead of the mean at each point.
    #[serde(default)]
    pub each: bool,
}

/// A limit: a number, or a metric of the same method, signal, seed and abscissa.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Limit {
    /// A number.
    Number(f64),
    /// Name of a metric.
    Metric(String),
}

/// Two series agree point by point, matched over signal, seed and abscissa.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EqualityCheck {
    /// One series.
    pub left: Select,
    /// The other, which relative tolerances refer to.
    pub right: Select,
    /// Largest difference; the tolerance of the metric if absent.
    pub tolerance: Option<Tolerance>,
    /// Whether each single pair must agree, instead of the mean difference at each point.
    #[serde(default)]
    pub each: bool,
}

/// The means of a curve over signals and seeds agree with those of another, matched over method and abscissa.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgreementCheck {
    /// The curve.
    pub of: Select,
    /// The other curve; the published values of the same selection if absent. Methods are matched if neither selection names one.
    /// A published value without abscissa is compared with the mean of the whole curve.
    pub with: Option<Select>,
    /// Largest difference; the tolerance of the metric if absent.
    pub tolerance: Option<Tolerance>,
    /// Share of the points that must agree.
    #[serde(default = "whole")]
    pub share: f64,
    /// Which repetitions determine the uncertainty.
    #[serde(default)]
    pub sample: Sample,
}

fn whole() -> f64 {
    1.0
}

/// A feature of a curve of means per abscissa is at a given place, for each method separately.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PositionCheck {
    /// The curve.
    pub of: Select,
    /// Feature of the curve.
    pub feature: Feature,
    /// With `last-above` and `first-above`: the level; use either `level` or `below_highest`.
    pub level: Option<f64>,
    /// With `last-above` and `first-above`: how far the level is below the highest value of the curve, in the unit of the metric.
    pub below_highest: Option<f64>,
    /// Expected abscissa; use either `at` or `with`.
    pub at: Option<f64>,
    /// Curve whose feature is at the expected abscissa; use either `at` or `with`.
    pub with: Option<Select>,
    /// Number of steps of the curve's grid by which the two places may differ. A place between two points of the grid matches both.
    #[serde(default)]
    pub steps: usize,
    /// With a published curve: which repetitions determine the uncertainty.
    #[serde(default)]
    pub sample: Sample,
}

/// A feature of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// The place of the largest value.
    Highest,
    /// The place of the smallest value.
    Lowest,
    /// The largest abscissa at which the curve is at or above `level`.
    LastAbove,
    /// The smallest abscissa at which the curve is at or above `level`.
    FirstAbove,
}

impl Check {
    /// All selections, with their keys inside the check.
    pub fn selects(&self) -> Vec<(String, &Select)> {
        match self {
            Check::Ordering(c) => {
                c.of.iter().enumerate().map(|(i, s)| (format!("of[{i}]"), s)).collect()
            }
            Check::Ratio(c) => {
                vec![("numerator".into(), &c.numerator), ("denominator".into(), &c.denominator)]
            }
            Check::Value(ValueCheck { of, .. })
            | Check::Trend(TrendCheck { of, .. })
            | Check::Bound(BoundCheck { of, .. }) => vec![("of".into(), of)],
            Check::Equality(c) => vec![("left".into(), &c.left), ("right".into(), &c.right)],
            Check::Agreement(AgreementCheck { of, with, .. })
            | Check::Position(PositionCheck { of, with, .. }) => {
                let with = with.iter().map(|w| ("with".to_owned(), w));
                std::iter::once(("of".to_owned(), of)).chain(with).collect()
            }
        }
    }

    /// The selections whose published values it reads: those `from: published`, and those that are compared with the same published
    /// selection.
    pub fn published(&self) -> Vec<&Select> {
        let implied = match self {
            Check::Value(c) if matches!(c.expect, Expected::Published(_)) => Some(&c.of),
            Check::Agreement(c) if c.with.is_none() => Some(&c.of),
            _ => None,
        };
        let named = self.selects().into_iter().map(|(_, select)| select);
        named.filter(|select| select.from == Source::Published).chain(implied).collect()
    }

    /// Fills in tolerance, slack or smallest effect from the rules of metrics.
    ///
    /// # Errors
    ///
    /// A message if neither the check nor its metric has the tolerance or slack that the check needs.
    pub(super) fn complete(&mut self, metrics: &Metrics) -> Result<(), String> {
        let missing = |key: &str, metric: &str| {
            format!(
                "no {key}: set `{key}` in the check, or add `{metric}` with a `tolerance` to experiments/metrics.yaml"
            )
        };
        let tolerance = |metric: &str| metrics.rule(metric).and_then(|rule| rule.tolerance);
        let (own, metric) = match self {
            Check::Value(c) => (&mut c.tolerance, &c.of.metric),
            Check::Equality(c) => (&mut c.tolerance, &c.left.metric),
            Check::Agreement(c) => (&mut c.tolerance, &c.of.metric),
            Check::Ordering(c) => {
                let rule = c.of.first().and_then(|select| metrics.rule(&select.metric));
                c.smallest_effect = c.smallest_effect.or(rule.and_then(|r| r.smallest_effect));
                return Ok(());
            }
            Check::Trend(c) if c.direction == Direction::Constant => {
                let metric = &c.of.metric;
                c.slack = c.slack.or(tolerance(metric));
                return c.slack.map(drop).ok_or_else(|| missing("slack", metric));
            }
            _ => return Ok(()),
        };
        if own.is_none() {
            let rule = tolerance(metric).ok_or_else(|| missing("tolerance", metric))?;
            *own = Some(Tolerance::of(rule));
        }
        Ok(())
    }

    pub(super) fn from_mapping(
        place: &Place<'_>,
        mut mapping: Mapping,
        groups: &[Group],
    ) -> Result<Self, FileError> {
        let allowed = KINDS.join(", ");
        let Some(Value::String(kind)) = mapping.remove("kind") else {
            return Err(place.error("", format!("`kind` is missing; allowed: {allowed}")));
        };
        let Some(check) = Check::typed(place, &kind, Value::Mapping(mapping))? else {
            let hint = hint(&kind, KINDS.iter().copied());
            let message = format!("unknown kind `{kind}`; allowed: {allowed}{hint}");
            return Err(place.error("kind", message));
        };
        if let Some((key, message)) = check.problem() {
            return Err(place.error(key, message));
        }
        for (key, select) in check.selects() {
            select.check(&place.key(&key), groups)?;
        }
        if let Check::Bound(BoundCheck { of, at_most, at_least, .. }) = &check {
            for (key, limit) in [("at_most", at_most), ("at_least", at_least)] {
                if let (Some(Limit::Metric(metric)), Source::Measured) = (limit, of.from) {
                    find_group(place, &of.group, groups)?.check_metric(place, key, metric)?;
                }
            }
        }
        Ok(check)
    }

    fn problem(&self) -> Option<Fault> {
        let at_least_0 = |key, value: f64| Some((key, not_negative(value)?));
        match self {
            Check::Value(ValueCheck { tolerance: Some(tolerance), expect, .. }) => {
                tolerance.problem().or_else(|| {
                    let needs = tolerance.needs_published()?;
                    matches!(expect, Expected::Number(_))
                        .then(|| ("tolerance", format!("`{needs}` needs `expect: published`")))
                })
            }
            Check::Ordering(c) if c.of.len() < 2 => {
                Some(("of", "an order needs at least two selections".into()))
            }
            Check::Ordering(c) => {
                let effect = c.smallest_effect.and_then(|v| at_least_0("smallest_effect", v));
                effect.or_else(|| at_least_0("margin", c.margin))
            }
            Check::Trend(TrendCheck { slack: Some(slack), .. }) => at_least_0("slack", *slack),
            Check::Ratio(RatioCheck { at_least: Some(least), at_most: Some(most), .. })
            | Check::Bound(BoundCheck {
                at_least: Some(Limit::Number(least)),
                at_most: Some(Limit::Number(most)),
                ..
            }) if least > most => {
                let message = format!("{least} is above `at_most`, {most}; exchange the two");
                Some(("at_least", message))
            }
            Check::Ratio(RatioCheck { at_least: None, at_most: None, .. })
            | Check::Bound(BoundCheck { at_least: None, at_most: None, .. }) => {
                Some(("at_least", "set `at_least`, `at_most` or both".into()))
            }
            Check::Equality(EqualityCheck { tolerance: Some(tolerance), .. }) => {
                tolerance.problem().or_else(|| {
                    let needs = tolerance.needs_published()?;
                    Some(("tolerance", format!("an equality has no `{needs}`")))
                })
            }
            Check::Agreement(c) => {
                c.tolerance.as_ref().and_then(Tolerance::problem).or_else(|| {
                    let (fits, share) = (c.share > 0.0 && c.share <= 1.0, c.share);
                    let message = || format!("{share} is not allowed; allowed: above 0, at most 1");
                    (!fits).then(|| ("share", message()))
                })
            }
            Check::Position(c) => c.problem(),
            _ => None,
        }
    }
}

/// An error message if a number is negative or not finite.
fn not_negative(value: f64) -> Option<String> {
    let is_wrong = !value.is_finite() || value < 0.0;
    is_wrong.then(|| format!("{value} is not allowed; allowed: 0 or more"))
}

impl PositionCheck {
    fn problem(&self) -> Option<Fault> {
        let by_level = matches!(self.feature, Feature::LastAbove | Feature::FirstAbove);
        let levels = usize::from(self.level.is_some()) + usize::from(self.below_highest.is_some());
        if levels != usize::from(by_level) {
            let message = "the features `last-above` and `first-above`, and no others, need exactly one of `level` and `below_highest`";
            return Some(("level", message.into()));
        }
        if let Some(message) = self.below_highest.and_then(not_negative) {
            return Some(("below_highest", message));
        }
        let is_one = self.at.is_some() != self.with.is_some();
        (!is_one).then(|| ("at", "set exactly one of `at` and `with`".into()))
    }
}

impl Tolerance {
    /// A tolerance in the unit of the metric.
    pub fn of(absolute: f64) -> Self {
        Tolerance {
            absolute: Some(absolute),
            relative: None,
            published_deviations: None,
            standard_errors: None,
            published_runs: None,
        }
    }

    fn problem(&self) -> Option<Fault> {
        let all = [self.absolute, self.relative, self.published_deviations, self.standard_errors];
        let set: Vec<f64> = all.into_iter().flatten().collect();
        let message: String = match set[..] {
            [_] if self.standard_errors.is_some() != self.published_runs.is_some_and(|m| m >= 2) => {
                "set `standard_errors` together with `published_runs` (at least 2)".into()
            }
            [one] => not_negative(one)?,
            _ => "set exactly one of `absolute`, `relative`, `published_deviations`, `standard_errors`"
                .into(),
        };
        Some(("tolerance", message))
    }

    /// The key in use that requires published values, if any.
    fn needs_published(&self) -> Option<&'static str> {
        let deviations = self.published_deviations.map(|_| "published_deviations");
        deviations.or(self.standard_errors.map(|_| "standard_errors"))
    }
}
