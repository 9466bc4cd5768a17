//! Specification of an embedder: a kind and its parameters.

use std::collections::BTreeMap;

use super::registry::{self, Presence};
use super::{FitModel, FitParameter, FitUnit};

#[derive(Clone, Debug, PartialEq)]
pub enum ParameterValue {
    Number(f64),
    /// A word or a formula.
    Text(String),
}

impl ParameterValue {
    /// The value as printed in messages and by [`EmbedderSpec::canonical`]: the shortest decimal that
    /// parses back to the same number, or the text in quotes.
    pub fn display(&self) -> String {
        match self {
            Self::Number(value) => format!("{value:?}"),
            Self::Text(text) => format!("{text:?}"),
        }
    }
}

impl From<f64> for ParameterValue {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for ParameterValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for ParameterValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// An embedder by name and parameters; only [`validate`](super::validate) checks them.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbedderSpec {
    /// Name of a kind in the [`registry`](super::registry()).
    pub kind: String,
    pub parameters: BTreeMap<String, ParameterValue>,
}

/// Value of a parameter that is derived from the number of training positions.
const AUTO: &str = "auto";

/// Parameters that change how an embedder is presented, not what it computes.
const PRESENTATION: [&str; 2] = ["label", "latex"];

impl EmbedderSpec {
    pub fn new(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), parameters: BTreeMap::new() }
    }

    #[must_use]
    pub fn number(self, name: impl Into<String>, value: f64) -> Self {
        self.with(name, value)
    }

    #[must_use]
    pub fn text(self, name: impl Into<String>, value: &str) -> Self {
        self.with(name, value)
    }

    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<ParameterValue>) -> Self {
        self.parameters.insert(name.into(), value.into());
        self
    }

    /// The number d of features, if it is known before the embedder is built.
    pub fn dimension(&self) -> Option<f64> {
        self.number_of("dimension")
    }

    /// The parameter that is `auto`; `None` if no parameter is.
    pub fn auto(&self) -> Option<FitParameter> {
        let parameter = registry::find(&self.kind)?.fit.parameter?;
        let written = self.parameters.get(parameter.name)?;
        (*written == ParameterValue::from(AUTO)).then_some(parameter)
    }

    /// Replaces a parameter that is `auto` by its value for `model` and `n` training positions per axis. A number of levels is at most
    /// half the dimension.
    #[must_use]
    pub fn resolved(self, model: FitModel, n: f64) -> Self {
        let Some(parameter) = self.auto() else { return self };
        let value = parameter.value(model, n);
        let value = match (parameter.unit, self.dimension()) {
            (FitUnit::Levels, Some(d)) => value.min((d / 2.0).floor()).max(1.0),
            _ => value,
        };
        self.number(parameter.name, value)
    }

    /// A numeric parameter, if it is given.
    pub fn number_of(&self, name: &str) -> Option<f64> {
        match self.parameters.get(name)? {
            ParameterValue::Number(number) => Some(*number),
            ParameterValue::Text(_) => None,
        }
    }

    /// One line of text that is equal for specifications that compute the same thing.
    ///
    /// Lists parameters in alphabetical order, includes the defaults of a registered kind, and leaves out presentation
    /// (`label`, `latex`).
    pub fn canonical(&self) -> String {
        let mut values: BTreeMap<&str, String> = BTreeMap::new();
        if let Some(kind) = registry::find(&self.kind) {
            for parameter in kind.parameters {
                if let Presence::Default(value) = parameter.presence {
                    values.insert(parameter.name, value.to_value().display());
                }
            }
        }
        for (name, value) in &self.parameters {
            if !PRESENTATION.contains(&name.as_str()) {
                values.insert(name, value.display());
            }
        }
        let listed: Vec<String> =
            values.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{}({})", self.kind, listed.join(", "))
    }

    /// The name in reports: the `label` parameter, or else the label of the kind.
    pub fn label(&self) -> String {
        if let Some(ParameterValue::Text(label)) = self.parameters.get("label") {
            return label.clone();
        }
        registry::find(&self.kind).map_or_else(|| self.kind.clone(), |kind| kind.label.to_owned())
    }
}
