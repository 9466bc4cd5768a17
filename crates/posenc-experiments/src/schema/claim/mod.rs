//! Claims: statements of a paper, each with a check that decides it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_yaml::Mapping;

use super::group::Group;
use super::keys::is_key;
use super::metrics::Metrics;
use crate::yaml::{FileError, YamlPath};

mod floor;
mod select;
mod sentence;

pub use floor::{Ceiling, Floor};
pub(crate) use select::same_place;
pub use select::{Abscissa, Interval, Select, Source, Statistic};
pub use sentence::{Number, Part, Quantity, Sentence};

pub use crate::verdict::checks::{Check, KINDS};

/// One statement of a paper and the check that decides it.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Unique inside the experiment.
    pub id: String,
    pub says: String,
    /// Place in the paper.
    pub source: String,
    /// Whether it is a statement of this project, not of the paper.
    pub is_ours: bool,
    /// The claim of another paper that is the same statement and is counted there.
    pub repeats: Option<ClaimName>,
    /// Lints that are switched off for this claim.
    pub allowed: Vec<LintName>,
    /// The checks that decide it; at least one. The claim holds only if each of them does.
    pub checks: Vec<ClaimCheck>,
    /// Set if the statement is wrong as printed.
    pub erratum: Option<ErratumLink>,
    /// Line of the claim in its file, if known.
    pub line: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ClaimCheck {
    /// What it is about, next to the other checks of the claim; empty for a single check.
    pub label: String,
    pub check: Check,
    /// Whether all its metrics are counted or computed from settings and so have no uncertainty. Set when the rules of metrics are
    /// applied.
    pub is_exact: bool,
}

impl ClaimCheck {
    /// Fills in tolerances, smallest effects and exactness from the rules of metrics.
    fn complete(&mut self, metrics: &Metrics) -> Result<(), String> {
        let is_exact = |metric: &String| metrics.rule(metric).is_some_and(|rule| rule.exact);
        self.check.complete(metrics)?;
        self.is_exact = self.check.selects().iter().all(|(_, select)| {
            is_exact(&select.metric) && select.minus.as_ref().is_none_or(is_exact)
        });
        Ok(())
    }
}

/// A claim by its paper, item and id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimName {
    pub paper: String,
    pub item: String,
    pub claim: String,
}

impl ClaimName {
    /// Reads `PAPER/ITEM#CLAIM`, or `ITEM#CLAIM` of `paper`; `None` for anything else.
    pub fn parse(text: &str, paper: Option<&str>) -> Option<Self> {
        let (place, claim) = text.split_once('#')?;
        let (paper, item) = place.split_once('/').or_else(|| Some((paper?, place)))?;
        let name = || ClaimName {
            paper: paper.to_owned(),
            item: item.to_owned(),
            claim: claim.to_owned(),
        };
        (is_key(paper) && is_key(item) && !claim.is_empty()).then(name)
    }
}

impl std::fmt::Display for ClaimName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}#{}", self.paper, self.item, self.claim)
    }
}

/// A lint of claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LintName {
    /// The claim begins with a conjunction or a pronoun and cannot be read alone.
    Conjunction,
    /// The claim is about all methods or abscissas, but its check selects one.
    Every,
    /// The claim has no source.
    Source,
    /// The check pairs abscissas of different meaning.
    Abscissas,
    /// The check treats numbers of the authors' notebooks or code as the paper's.
    Measured,
    /// A metric has no rule in `experiments/metrics.yaml`.
    Metric,
    /// The check fails on the paper's own published numbers, and the claim names no erratum.
    Print,
    /// No run of the definition can decide the check: too few samples of random features, or one run of a network.
    Samples,
}

impl std::fmt::Display for LintName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

impl Claim {
    /// Fills in tolerances, smallest effects and exactness from the rules of metrics.
    ///
    /// # Errors
    ///
    /// A key of the claim and a message: a missing tolerance, or an erratum whose two checks have different forms.
    pub(crate) fn complete(&mut self, metrics: &Metrics) -> Result<(), (&'static str, String)> {
        for own in &mut self.checks {
            own.complete(metrics).map_err(|message| ("check", message))?;
        }
        if let Some(erratum) = &mut self.erratum {
            for own in &mut erratum.checks {
                own.complete(metrics).map_err(|message| ("erratum.check", message))?;
            }
            let both = self.checks.iter().zip(&erratum.checks);
            let mut differences = both.map(|(a, b)| a.check.difference_in_form(&b.check));
            let counts = (self.checks.len() != erratum.checks.len()).then(|| "their number".into());
            if let Some(what) = counts.or_else(|| differences.find_map(|what| what)) {
                let message = format!(
                    "differs from the printed statement's check in {what}; test both alike, or leave the erratum out"
                );
                return Err(("erratum.check", message));
            }
        }
        Ok(())
    }

    /// Its checks and those of its correction.
    pub fn all_checks(&self) -> impl Iterator<Item = &Check> {
        let corrected = self.erratum.iter().flat_map(|erratum| &erratum.checks);
        self.checks.iter().chain(corrected).map(|own| &own.check)
    }

    /// All selections of its checks in order, as sentences with numbers count them.
    pub fn selects(&self) -> impl Iterator<Item = &Select> {
        self.checks.iter().flat_map(|own| own.check.selects()).map(|(_, select)| select)
    }
}

/// The correction of a statement that is wrong as printed.
#[derive(Debug, Clone)]
pub struct ErratumLink {
    pub id: String,
    pub corrected: String,
    /// The checks of the corrected statement, one for each check of the printed one.
    pub checks: Vec<ClaimCheck>,
}

/// A statement of the paper, and the check that decides it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WireClaim {
    /// Unique in the file; part of links. Allowed: a key.
    pub id: String,
    /// The statement, in our words. Allowed: one sentence.
    says: String,
    /// Place in the paper.
    source: String,
    /// `true` for a statement of this project, not of the paper. It is counted in a class of its own and never shown as reproduced.
    #[serde(default)]
    ours: bool,
    /// Claim of another paper that makes the same statement and is counted instead. Allowed: `PAPER/ITEM#CLAIM`.
    repeats: Option<String>,
    /// [Lints](#lints) that are switched off for this claim.
    #[serde(default)]
    allow: Vec<LintName>,
    /// `kind` and the keys below. Not with `checks`. Allowed: mapping.
    #[schemars(with = "Option<Check>")]
    check: Option<Mapping>,
    /// Several checks of one statement, each like `check` with a `label` of a few words. The claim holds only if each check does.
    #[serde(default)]
    #[schemars(with = "Vec<Check>")]
    checks: Vec<Mapping>,
    /// For a statement that is wrong as printed: `id` on the errata page, `corrected` in words, and the `check` or `checks` of the
    /// corrected statement. Both need the same form, or the file is refused: number of checks and of selections, and all keys except
    /// `at`, `direction`, `expect`, `feature`, `first`, the values of limits, and `group`, `method`, `signal` and `metric` of selections.
    erratum: Option<WireErratum>,
}

/// The correction of a statement that is wrong as printed.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WireErratum {
    /// Id on the errata page.
    id: String,
    /// The corrected statement, in words.
    corrected: String,
    /// The check of the corrected statement. Not with `checks`. Allowed: mapping.
    #[schemars(with = "Option<Check>")]
    check: Option<Mapping>,
    /// The checks of the corrected statement.
    #[serde(default)]
    #[schemars(with = "Vec<Check>")]
    checks: Vec<Mapping>,
}

/// Reads `check` or `checks` of the mapping at `place`; exactly one of them must be given.
fn checked(
    place: &YamlPath<'_>,
    check: Option<Mapping>,
    checks: Vec<Mapping>,
    groups: &[Group],
) -> Result<Vec<ClaimCheck>, FileError> {
    let one = |place: YamlPath<'_>, mut mapping: Mapping| {
        let label = match mapping.remove("label") {
            None => String::new(),
            Some(serde_yaml::Value::String(label)) => label,
            Some(_) => return Err(place.error("label", "not a text; allowed: a few words")),
        };
        let check = Check::from_mapping(&place, mapping, groups)?;
        Ok(ClaimCheck { label, check, is_exact: false })
    };
    match (check, checks.is_empty()) {
        (Some(check), true) => Ok(vec![one(place.key("check"), check)?]),
        (None, false) => {
            let all = checks.into_iter().enumerate();
            all.map(|(i, check)| one(place.entry("checks", i), check)).collect()
        }
        _ => Err(place.error("check", "set exactly one of `check` and `checks`")),
    }
}

impl WireClaim {
    pub(super) fn checked(
        self,
        place: &YamlPath<'_>,
        groups: &[Group],
    ) -> Result<Claim, FileError> {
        let checks = checked(place, self.check, self.checks, groups)?;
        let erratum = self.erratum.map(|e| {
            let place = place.key("erratum");
            if !posenc_math::errata::all().iter().any(|known| known.id == e.id) {
                let message = format!("no erratum `{}` in posenc_math::errata", e.id);
                return Err(place.error("id", message));
            }
            let checks = checked(&place, e.check, e.checks, groups)?;
            Ok(ErratumLink { checks, id: e.id, corrected: e.corrected })
        });
        let erratum = erratum.transpose()?;
        let named = |text: String| {
            ClaimName::parse(&text, None).ok_or_else(|| {
                let message =
                    format!("`{text}` is not a claim name; write PAPER/ITEM#CLAIM, such as trading/table1#tri-closed-form");
                place.error("repeats", message)
            })
        };
        Ok(Claim {
            id: self.id,
            says: self.says,
            source: self.source,
            is_ours: self.ours,
            repeats: self.repeats.map(named).transpose()?,
            allowed: self.allow,
            checks,
            erratum,
            line: place.line(),
        })
    }
}
