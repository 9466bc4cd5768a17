//! Finds kinds by name, validates specifications and builds embedders.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;

use super::{
    Embedder, EmbedderError, EmbedderSpec, FitModel, Kind, ParameterValue, unit_row::UnitRow,
};

/// The values that a parameter accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// `0 < value <= most`, and not so small that its square is 0.
    Positive {
        most: f64,
    },
    /// `least <= value <= most`.
    Between {
        least: f64,
        most: f64,
    },
    /// A multiple of `step` from `step` to `most`.
    Multiple {
        step: u32,
        most: u32,
    },
    OneOf(&'static [&'static str]),
    /// Any text of 1 to `longest` characters.
    Text {
        longest: usize,
    },
}

impl Rule {
    /// The allowed values in words.
    pub fn allowed(&self) -> String {
        match self {
            Self::Positive { most } => format!("a number above 0 and at most {most}"),
            Self::Between { least, most } => format!("a number from {least} to {most}"),
            Self::Multiple { step, most } if step == most => format!("{step}"),
            Self::Multiple { step: 1, most } => format!("a whole number from 1 to {most}"),
            Self::Multiple { step, most } => format!("a multiple of {step} from {step} to {most}"),
            Self::OneOf(words) => words.join(" or "),
            Self::Text { longest } => format!("text of 1 to {longest} characters"),
        }
    }

    /// Whether the rule allows the value; no rule allows NaN or infinities.
    pub fn accepts(&self, value: &ParameterValue) -> bool {
        match (self, value) {
            (Self::Positive { most }, ParameterValue::Number(v)) => {
                *v >= LEAST_POSITIVE && v <= most
            }
            (Self::Between { least, most }, ParameterValue::Number(v)) => v >= least && v <= most,
            (Self::Multiple { step, most }, ParameterValue::Number(v)) => {
                *v >= f64::from(*step) && *v <= f64::from(*most) && v % f64::from(*step) == 0.0
            }
            (Self::OneOf(words), ParameterValue::Text(text)) => words.contains(&text.as_str()),
            (Self::Text { longest }, ParameterValue::Text(text)) => {
                !text.trim().is_empty() && text.chars().count() <= *longest
            }
            _ => false,
        }
    }
}

/// Smallest positive parameter: the square of a much smaller one is 0.
const LEAST_POSITIVE: f64 = 1e-150;

/// A default value that a constant can hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DefaultValue {
    Number(f64),
    Text(&'static str),
}

impl DefaultValue {
    pub fn to_value(self) -> ParameterValue {
        match self {
            Self::Number(value) => ParameterValue::Number(value),
            Self::Text(text) => text.into(),
        }
    }
}

/// Whether a specification must contain a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Presence {
    Required,
    /// The parameter has this value if it is omitted.
    Default(DefaultValue),
    /// The parameter may be omitted; the kind defines what that means.
    Optional,
}

#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub presence: Presence,
    pub rule: Rule,
    /// Its meaning, with the unit.
    pub meaning: &'static str,
}

impl Parameter {
    pub(super) const fn required(name: &'static str, rule: Rule, meaning: &'static str) -> Self {
        Self { name, presence: Presence::Required, rule, meaning }
    }

    pub(super) const fn optional(name: &'static str, rule: Rule, meaning: &'static str) -> Self {
        Self { name, presence: Presence::Optional, rule, meaning }
    }

    pub(super) const fn with_default(
        name: &'static str,
        default: DefaultValue,
        rule: Rule,
        meaning: &'static str,
    ) -> Self {
        Self { name, presence: Presence::Default(default), rule, meaning }
    }

    /// The default value; `None` for required parameters and optional ones without a default.
    pub fn default(&self) -> Option<ParameterValue> {
        match self.presence {
            Presence::Default(value) => Some(value.to_value()),
            Presence::Required | Presence::Optional => None,
        }
    }
}

const MAX_DIMENSION: u32 = 10_000_000;

/// `dimension`: the number d of features.
pub(super) const DIMENSION: Parameter = Parameter::required(
    "dimension",
    Rule::Multiple { step: 1, most: MAX_DIMENSION },
    "number d of features",
);

/// `dimension` of a kind whose features are pairs of a sine and a cosine.
pub(super) const EVEN_DIMENSION: Parameter = Parameter::required(
    "dimension",
    Rule::Multiple { step: 2, most: MAX_DIMENSION },
    "number d of features, d/2 sines and then d/2 cosines",
);

/// `boundary`: how a profile continues beyond the ends of [0, 1].
pub(super) const BOUNDARY: Parameter = Parameter::with_default(
    "boundary",
    DefaultValue::Text("open"),
    Rule::OneOf(&["open", "periodic"]),
    "'periodic' wraps t - x into [-1/2, 1/2), as a circulant matrix does",
);

/// `scaling`: normalization of a row of features.
pub(super) const SCALING: Parameter = Parameter::with_default(
    "scaling",
    DefaultValue::Text("none"),
    Rule::OneOf(&["none", "unit-row"]),
    "'unit-row' divides every row by its Euclidean norm",
);

/// The checked values of a specification, defaults filled in.
pub struct Values<'a> {
    kind: &'static Kind,
    spec: &'a EmbedderSpec,
}

impl<'a> Values<'a> {
    /// The value in the specification, or the default.
    pub(super) fn value(&self, name: &str) -> Option<ParameterValue> {
        self.spec.parameters.get(name).cloned().or_else(|| self.kind.parameter(name)?.default())
    }

    /// A number, if the specification contains it or it has a default.
    pub(super) fn optional_number(&self, name: &str) -> Option<f64> {
        match self.value(name) {
            Some(ParameterValue::Number(value)) => Some(value),
            _ => None,
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<f64, EmbedderError> {
        self.optional_number(name).ok_or_else(|| self.missing(name))
    }

    pub(super) fn text(&self, name: &str) -> Result<String, EmbedderError> {
        match self.value(name) {
            Some(ParameterValue::Text(text)) => Ok(text),
            _ => Err(self.missing(name)),
        }
    }

    pub(super) fn dimension(&self) -> Result<usize, EmbedderError> {
        Ok(self.number("dimension")? as usize)
    }

    /// Numbers in the specification that are not parameters of the kind, by name.
    pub(super) fn extra_numbers(&self) -> BTreeMap<&'a str, f64> {
        self.spec
            .parameters
            .iter()
            .filter(|(name, _)| self.kind.parameter(name).is_none())
            .filter_map(|(name, value)| match value {
                ParameterValue::Number(number) => Some((name.as_str(), *number)),
                ParameterValue::Text(_) => None,
            })
            .collect()
    }

    fn missing(&self, name: &str) -> EmbedderError {
        let (meaning, allowed) = match self.kind.parameter(name) {
            Some(parameter) => (parameter.meaning, parameter.rule.allowed()),
            None => ("", "a value".to_owned()),
        };
        let kind = self.kind.name;
        let message =
            format!("embedder '{kind}' needs the parameter '{name}' ({meaning}): {allowed}");
        EmbedderError::new(Some(name), message)
    }
}

pub(super) type Built = Result<Box<dyn Embedder>, EmbedderError>;

/// All kinds, in the order in which reports list them.
pub fn registry() -> &'static [Kind] {
    super::KINDS
}

pub fn find(name: &str) -> Option<&'static Kind> {
    registry().iter().find(|kind| kind.name == name)
}

/// "did you mean 'x'? " for the nearest name, if any is near.
fn suggestion<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> String {
    // Skip long texts, since the comparison takes quadratic time.
    if written.chars().count() > 60 {
        return String::new();
    }
    let lowercase = written.to_lowercase();
    let mut near: Vec<(f64, &str)> = names
        .map(|name| (strsim::jaro_winkler(&lowercase, name), name))
        .filter(|(similarity, _)| *similarity >= 0.75)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let quoted: Vec<String> = near.iter().take(2).map(|(_, name)| format!("'{name}'")).collect();
    if quoted.is_empty() {
        String::new()
    } else {
        format!("did you mean {}? ", quoted.join(" or "))
    }
}

/// Checks names, types, ranges and combinations of parameters, and compiles a formula. A parameter may be `auto` if the kind has
/// a rule for it ([`EmbedderSpec::resolved`]).
///
/// # Errors
///
/// The first fault found; [`EmbedderError::parameter`] is its key. Never panics.
pub fn validate(spec: &EmbedderSpec) -> Result<(), EmbedderError> {
    match spec.auto() {
        Some(_) => checked(&spec.clone().resolved(FitModel::Ridge, 256.0)).map(|_| ()),
        None => checked(spec).map(|_| ()),
    }
}

fn checked(spec: &EmbedderSpec) -> Result<Values<'_>, EmbedderError> {
    let Some(kind) = find(&spec.kind) else {
        let names = || registry().iter().map(|kind| kind.name);
        let (kind, known) = (&spec.kind, names().collect::<Vec<_>>().join(", "));
        let suggestion = suggestion(kind, names());
        let message = format!("unknown embedder kind '{kind}'; {suggestion}known kinds: {known}");
        return Err(EmbedderError::new(None, message));
    };
    for (name, value) in &spec.parameters {
        let all = || kind.parameters.iter().map(|parameter| parameter.name);
        let listed = || all().collect::<Vec<_>>().join(", ");
        let refuse = |message| Err(EmbedderError::new(Some(name), message));
        let must_be = |allowed: &str| {
            let (kind, value) = (kind.name, value.display());
            format!("embedder '{kind}': {name} must be {allowed}, got {value}")
        };
        match (kind.parameter(name), value) {
            (Some(parameter), _) if parameter.rule.accepts(value) => continue,
            (Some(_), ParameterValue::Number(v)) if *v > 0.0 && *v < LEAST_POSITIVE => {
                return refuse(must_be(&format!("at least {LEAST_POSITIVE:e}")));
            }
            (Some(parameter), _) => return refuse(must_be(&parameter.rule.allowed())),
            (None, _) if !kind.takes_extra_numbers => {
                let (suggestion, allowed) = (suggestion(name, all()), listed());
                return refuse(format!(
                    "embedder '{}' has no parameter '{name}'; {suggestion}it takes {allowed}",
                    kind.name
                ));
            }
            (None, ParameterValue::Number(number)) if number.is_finite() => continue,
            (None, _) => {
                let message = must_be("a finite number");
                return refuse(format!("{message}; other parameters are {}", listed()));
            }
        }
    }
    let values = Values { kind, spec };
    let is_absent = |parameter: &&Parameter| {
        parameter.presence == Presence::Required && !spec.parameters.contains_key(parameter.name)
    };
    if let Some(parameter) = kind.parameters.iter().find(is_absent) {
        return Err(values.missing(parameter.name));
    }
    (kind.check)(&values)?;
    Ok(values)
}

/// Builds the embedder of a specification; random kinds sample from `rng`.
///
/// The number of samples depends on `dimension` alone, and a scale is applied to them afterwards. Two
/// specifications that differ only in a scale thus share their samples. Other kinds leave `rng` unused.
///
/// # Errors
///
/// Those of [`validate`], and a parameter that is `auto`.
pub fn build(spec: &EmbedderSpec, rng: &mut ChaCha8Rng) -> Built {
    let values = checked(spec)?;
    let embedder = (values.kind.build)(&values, rng)?;
    match values.value("scaling") {
        Some(ParameterValue::Text(scaling)) if scaling == "unit-row" => {
            Ok(Box::new(UnitRow(embedder)))
        }
        _ => Ok(embedder),
    }
}
