//! The kinds of checks, one file each with its keys and how it is judged. A new kind needs its file, and its lines here.

mod agreement;
mod bound;
mod equality;
mod ordering;
mod position;
mod ratio;
mod trend;
mod value;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use serde_yaml::{Mapping, Value};

pub use self::agreement::AgreementCheck;
pub use self::bound::BoundCheck;
pub use self::equality::EqualityCheck;
pub use self::ordering::OrderingCheck;
pub use self::position::PositionCheck;
pub use self::ratio::RatioCheck;
pub(super) use self::ratio::quotient;
pub use self::trend::TrendCheck;
pub use self::value::ValueCheck;
use super::clusters::Clusters;
use super::points::{Context, not_run, show};
use super::{Judged, Unjudged};
use crate::schema::Group;
use crate::schema::claim::{Select, Source};
use crate::schema::json;
use crate::schema::metrics::Metrics;
use crate::schema::protocol::Fault;
use crate::yaml::{FileError, YamlPath, hint};

/// What a kind of check consists of.
pub(super) trait Rule {
    /// All selections, with their keys inside the check.
    fn selects(&self) -> Vec<(String, &Select)>;

    /// The selection whose own published values it reads, in addition to selections `from: published`.
    fn published(&self) -> Option<&Select> {
        None
    }

    /// Whether it compares with numbers of the same signals, so that only seeds differ.
    fn is_on_same_signals(&self) -> bool {
        false
    }

    /// A setting that is not allowed.
    fn problem(&self, groups: &[Group]) -> Option<Fault>;

    /// Fills in tolerance, slack or smallest effect from the rules of metrics; a message if they lack what the check needs.
    fn complete(&mut self, _: &Metrics) -> Result<(), String> {
        Ok(())
    }

    fn judge(&self, clusters: Clusters, context: Context<'_>) -> Judged;
}

/// What the selected values are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Against {
    /// Methods with each other, in pairs.
    Methods,
    /// A number or a place that print states.
    Print,
    Limits,
}

/// Defines the kinds of checks, each with its name in files and what it compares with.
macro_rules! checks {
    ($($name:literal $kind:ident($check:ty) against $against:ident,)*) => {
        #[derive(Debug, Clone, PartialEq)]
        pub enum Check {
            $($kind($check),)*
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

            pub(super) fn against(&self) -> Against {
                match self {
                    $(Check::$kind(_) => Against::$against,)*
                }
            }

            pub(super) fn rule(&self) -> &dyn Rule {
                match self {
                    $(Check::$kind(check) => check,)*
                }
            }

            fn json(&self) -> Json {
                match self {
                    $(Check::$kind(check) => serde_json::to_value(check).unwrap_or_default(),)*
                }
            }

            fn rule_mut(&mut self) -> &mut dyn Rule {
                match self {
                    $(Check::$kind(check) => check,)*
                }
            }

            /// Deserializes a check of this kind; `None` if there is no such kind.
            fn typed(place: &YamlPath<'_>, kind: &str, value: Value) -> Result<Option<Self>, FileError> {
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
    "value" Value(ValueCheck) against Print,
    "ordering" Ordering(OrderingCheck) against Methods,
    "ratio" Ratio(RatioCheck) against Methods,
    "trend" Trend(TrendCheck) against Limits,
    "bound" Bound(BoundCheck) against Limits,
    "equality" Equality(EqualityCheck) against Methods,
    "agreement" Agreement(AgreementCheck) against Print,
    "position" Position(PositionCheck) against Print,
}

impl Check {
    /// All selections, with their keys inside the check.
    pub fn selects(&self) -> Vec<(String, &Select)> {
        self.rule().selects()
    }

    pub(super) fn measured(&self) -> impl Iterator<Item = &Select> {
        let all = self.selects().into_iter().map(|(_, select)| select);
        all.filter(|select| select.from == Source::Measured)
    }

    /// The selections whose published values it reads.
    pub fn published(&self) -> Vec<&Select> {
        let named = self.selects().into_iter().map(|(_, select)| select);
        named.filter(|s| s.from == Source::Published).chain(self.rule().published()).collect()
    }

    /// Neighbors among selections that are compared with each other.
    pub fn compared(&self) -> Vec<(&Select, &Select)> {
        let all: Vec<&Select> = self.selects().into_iter().map(|(_, select)| select).collect();
        let all = if self.against() == Against::Methods { all } else { Vec::new() };
        all.iter().zip(all.iter().skip(1)).map(|(a, b)| (*a, *b)).collect()
    }

    /// Fills in tolerance, slack or smallest effect from the rules of metrics.
    pub(crate) fn complete(&mut self, metrics: &Metrics) -> Result<(), String> {
        self.rule_mut().complete(metrics)
    }

    pub(crate) fn from_mapping(
        place: &YamlPath<'_>,
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
        if let Some((key, message)) = check.rule().problem(groups) {
            return Err(place.error(key, message));
        }
        for (key, select) in check.selects() {
            select.check(&place.key(&key), groups)?;
            if select.from == Source::Published && key != "with" {
                let message = "only allowed in `with` of an `agreement`";
                return Err(place.key(&key).error("from", message));
            }
        }
        Ok(check)
    }

    /// The first difference in form to the check of a statement's correction; `None` if they have the same form.
    pub(crate) fn difference_in_form(&self, corrected: &Check) -> Option<String> {
        let (own, other) = (self.form(), corrected.form());
        let keys = ["kind"].into_iter().chain(own.keys().chain(other.keys()).map(String::as_str));
        { keys }.find(|key| own.get(*key) != other.get(*key)).map(|key| format!("`{key}`"))
    }

    /// What a printed statement and its correction must share, by key.
    fn form(&self) -> Map<String, Json> {
        let Json::Object(mut keys) = self.json() else { return Map::new() };
        keys.retain(|key, _| !FREE.contains(&key.as_str()));
        let mut is_set = |key: &str| keys.remove(key).is_some_and(|limit| !limit.is_null());
        let limits = usize::from(is_set("at_least")) + usize::from(is_set("at_most"));
        let selections = keys.values_mut().flat_map(|value| match value {
            Json::Array(all) => all.iter_mut().collect(),
            one => vec![one],
        });
        for selection in selections.filter_map(Json::as_object_mut) {
            if selection.contains_key("group") {
                selection.retain(|key, _| ["x", "statistic"].contains(&key.as_str()));
            }
        }
        keys.insert("kind".into(), self.kind().into());
        keys.insert("number of limits".into(), limits.into());
        keys
    }
}

/// Keys in which a printed statement and its correction may differ.
const FREE: [&str; 5] = ["at", "direction", "expect", "feature", "first"];

/// How far two numbers may differ. Exactly one of the first three is set.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// In the unit of the metric.
    absolute: Option<f64>,
    /// As a share of the expected number.
    relative: Option<f64>,
    /// In standard errors of the difference of the two means, √(s²/n + p²/m). If no deviation p is published, the measured one
    /// replaces it.
    standard_errors: Option<f64>,
    /// With `standard_errors`: number m of runs behind the published mean.
    published_runs: Option<u32>,
}

impl Tolerance {
    /// A setting that is not allowed; standard errors exist only next to published values.
    fn problem(&self, has_errors: bool) -> Option<Fault> {
        let set: Vec<f64> =
            [self.absolute, self.relative, self.standard_errors].into_iter().flatten().collect();
        let message: String = match set[..] {
            [_] if self.standard_errors.is_some()
                != self.published_runs.is_some_and(|m| m >= 2) =>
            {
                "set `standard_errors` together with `published_runs` (at least 2)".into()
            }
            [_] if self.standard_errors.is_some() && !has_errors => {
                "`standard_errors` are only allowed in an `agreement`".into()
            }
            [one] => not_negative(one)?,
            _ => "set exactly one of `absolute`, `relative`, `standard_errors`".into(),
        };
        Some(("tolerance", message))
    }

    /// Sets an absent tolerance to that of the metric.
    fn complete(own: &mut Option<Self>, metric: &str, metrics: &Metrics) -> Result<(), String> {
        if own.is_none() {
            let absolute = Some(metric_tolerance("tolerance", metric, metrics)?);
            let (relative, standard_errors, published_runs) = (None, None, None);
            *own = Some(Tolerance { absolute, relative, standard_errors, published_runs });
        }
        Ok(())
    }

    fn given(own: &Option<Self>) -> Result<&Self, Unjudged> {
        own.as_ref().ok_or_else(|| {
            not_run("no tolerance: the check has none, and neither has its metric in experiments/metrics.yaml")
        })
    }

    /// How far a mean may be from the expected number, as a number and in words; `None` for standard errors.
    fn margin(&self, expected: f64) -> Option<(f64, String)> {
        match (self.absolute, self.relative) {
            (Some(absolute), _) => Some((absolute, format!("allowed ± {}", show(absolute)))),
            (None, Some(relative)) => {
                Some((relative * expected.abs(), format!("allowed ± {} %", show(100.0 * relative))))
            }
            (None, None) => None,
        }
    }
}

/// The tolerance of a metric, which replaces the absent `key` of a check.
fn metric_tolerance(key: &str, metric: &str, metrics: &Metrics) -> Result<f64, String> {
    metrics.rule(metric).and_then(|rule| rule.tolerance).ok_or_else(|| {
        format!("no {key}: set `{key}` in the check, or add `{metric}` with a `tolerance` to experiments/metrics.yaml")
    })
}

/// An error message if a number is negative or not finite.
fn not_negative(value: f64) -> Option<String> {
    let is_wrong = !value.is_finite() || value < 0.0;
    is_wrong.then(|| format!("{value} is not allowed; allowed: 0 or more"))
}

/// What is wrong with two limits. At least one must be set.
fn limit_problem(at_least: Option<f64>, at_most: Option<f64>) -> Option<Fault> {
    match (at_least, at_most) {
        (Some(least), Some(most)) if least > most => {
            Some(("at_least", format!("{least} is above `at_most`, {most}; exchange the two")))
        }
        (None, None) => Some(("at_least", "set `at_least`, `at_most` or both".into())),
        _ => None,
    }
}

/// Intervals at several places are joint: all of them together have the level.
fn joint(places: usize) -> &'static str {
    if places > 1 { "joint " } else { "" }
}
