//! Registry entry of an embedder kind.

use rand_chacha::ChaCha8Rng;

use super::registry::{Built, DefaultValue, Parameter, Presence, Values};
use super::{EmbedderError, EmbedderSpec, ParameterValue};

/// Looks up a numeric parameter, in a specification or in a point of a sweep.
pub type Numbers<'a> = &'a dyn Fn(&str) -> Option<f64>;

/// A function of the displacement Δ.
pub type Law = Box<dyn Fn(f64) -> f64 + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// One profile, evaluated at the distances to the centers.
    Shifted,
    /// Sines and cosines: the Gram matrix of equally spaced samples is Toeplitz and needs no matrix product.
    Fourier,
    Other,
}

/// The embedding distance from which the authors' code computes blending weights.
#[derive(Clone, Copy)]
pub enum CodeDistance {
    /// Inner products of the encoding itself.
    Sampled,
    /// The kind's law D(Δ).
    Law,
    /// Another function, up to a factor; inner products if the parameters do not define it.
    Other(fn(Numbers) -> Option<Law>),
}

/// The model, and the way of fitting it, for which a parameter of an embedder is tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FitModel {
    /// A complex encoding, fitted by the minimum-norm closed form.
    ClosedForm,
    /// A complex encoding, trained by gradient descent.
    Complex,
    /// A simple encoding.
    Simple,
    /// A complex encoding, fitted by ridge regression along each axis with [`RIDGE_CUTOFF`](crate::closed_form::RIDGE_CUTOFF).
    Ridge,
}

/// How a parameter depends on the number n of training positions per axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FitUnit {
    /// The value is a width in steps between positions.
    Steps,
    /// The value is a frequency in periods per step.
    PeriodsPerStep,
    /// The value is the exponent of a frequency 2^σ at n = 256.
    Octaves,
    /// The value is a number of levels; an octave is one level.
    Levels,
}

/// Rule for the value of a parameter that is `auto`, or that a user of `fit` omits.
#[derive(Clone, Copy, Debug)]
pub struct FitParameter {
    pub name: &'static str,
    /// How the values scale with the number of training positions.
    pub unit: FitUnit,
    /// One value for each [`FitModel`], in declaration order. For the kinds of *Trading*, the value for ridge regression has the best
    /// mean test PSNR on the even-numbered lines and images of `div2k-train` (32 to 256 training positions per axis), and the others are
    /// its choices, except that of `triangle` for a simple encoding: networks on images of `div2k-train` (32
    /// training positions per axis) are 0.1 dB better with 3.5 than with 5 steps. The values of `siren` and `multilevel` are near the best
    /// mean test PSNR in trials on three to eight images of `div2k-train` (32 to 256 training positions per axis; gradient descent: 32
    /// and 64, simple encoding: 32).
    pub values: [f64; 4],
}

impl FitParameter {
    /// The value at `n` training positions per axis.
    pub fn value(&self, model: FitModel, n: f64) -> f64 {
        self.shifted(model, n, 0.0)
    }

    /// The value at `n` training positions per axis, raised by a number of octaves.
    pub fn shifted(&self, model: FitModel, n: f64, octaves: f64) -> f64 {
        let value = self.values[model as usize];
        match self.unit {
            FitUnit::Steps => value * octaves.exp2() / n,
            FitUnit::PeriodsPerStep => n * value * octaves.exp2(),
            FitUnit::Octaves => (value + octaves + (n / 256.0).log2()).max(0.5),
            FitUnit::Levels => (value + octaves).round().max(1.0),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct FitDefaults {
    /// Features per axis of a simple encoding.
    pub features: u32,
    /// The parameter other than the dimension that has a default.
    pub parameter: Option<FitParameter>,
    /// Whether a simple encoding of two axes also encodes the diagonals.
    pub diagonals: bool,
}

/// One kind of embedder. To add a kind, add its file and a line in the list of kinds.
pub struct Kind {
    pub name: &'static str,
    /// The name in prose.
    pub label: &'static str,
    /// The name in tables and legends, as the papers abbreviate it.
    pub symbol: &'static str,
    /// Where it is defined: paper and equation or figure.
    pub source: &'static str,
    /// The formula of a feature, in LaTeX without delimiters.
    pub latex: &'static str,
    /// The law D(Δ) in the limit d → ∞, in LaTeX without delimiters; empty if none is known.
    pub distance: &'static str,
    /// The stable rank of N samples in the limit d → ∞, in LaTeX without delimiters; empty if none is known.
    pub stable_rank: &'static str,
    /// Example values of the parameters without a default, except `dimension`.
    pub example: &'static [(&'static str, DefaultValue)],
    pub parameters: &'static [Parameter],
    /// Whether a specification may contain further numeric parameters, with names that its author chooses.
    pub takes_extra_numbers: bool,
    pub family: Family,
    /// The color of its curves in OKLCH: lightness, chroma, hue in degrees. If absent, the report assigns one.
    pub color: Option<[f64; 3]>,
    /// Lower-case prefixes of method names that get the color of this kind if an experiment names no embedder.
    pub method_names: &'static [&'static str],
    /// Whether features are sampled, so that seeds differ.
    pub is_random: bool,
    /// Whether frequencies of all axes can be sampled jointly.
    pub is_joint: bool,
    /// The embedding distance from which the authors' code computes blending weights.
    pub code_distance: CodeDistance,
    /// D(Δ)/D(0) as printed in a paper, if it differs from the law.
    pub printed_law: Option<fn(Numbers) -> Option<Law>>,
    pub fit: FitDefaults,
    /// Checks that involve more than one parameter.
    pub(super) check: fn(&Values) -> Result<(), EmbedderError>,
    pub(super) build: fn(&Values, &mut ChaCha8Rng) -> Built,
}

impl Kind {
    /// A kind with this constructor and neutral values of all other fields.
    pub(super) const fn built_by(build: fn(&Values, &mut ChaCha8Rng) -> Built) -> Self {
        Kind {
            name: "",
            label: "",
            symbol: "",
            source: "",
            latex: "",
            distance: "",
            stable_rank: "",
            example: &[],
            parameters: &[],
            takes_extra_numbers: false,
            family: Family::Other,
            color: None,
            method_names: &[],
            is_random: false,
            is_joint: false,
            code_distance: CodeDistance::Sampled,
            printed_law: None,
            fit: FitDefaults { features: 128, parameter: None, diagonals: false },
            check: |_| Ok(()),
            build,
        }
    }

    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// Whether a specification must contain `dimension`.
    pub fn needs_dimension(&self) -> bool {
        self.parameter("dimension").is_some_and(|p| p.presence == Presence::Required)
    }

    /// The example specification of the kind, with `dimension` features if the kind requires a dimension.
    pub fn example(&self, dimension: usize) -> EmbedderSpec {
        let mut spec = EmbedderSpec::new(self.name);
        for (name, value) in self.example {
            spec = spec.with(*name, value.to_value());
        }
        if self.needs_dimension() {
            spec = spec.number("dimension", dimension as f64);
        }
        spec
    }

    /// The formula in Markdown, followed by the parameter values of the specification.
    ///
    /// The specification may be invalid ([`super::validate`]); its values are printed unchecked.
    pub fn formula(&self, spec: &EmbedderSpec) -> String {
        let text = |name: &str| match spec.parameters.get(name) {
            Some(ParameterValue::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let latex = match (text("latex"), text("psi")) {
            (Some(latex), _) => format!("${latex}$"),
            (None, Some(psi)) => format!("$\\psi_j(x) =$ `{psi}`, $u = t_j - x$"),
            (None, None) => format!("${}$", self.latex),
        };
        let values: Vec<String> = spec
            .parameters
            .iter()
            .filter(|(name, _)| !["label", "latex", "psi"].contains(&name.as_str()))
            .map(|(name, value)| match value {
                ParameterValue::Number(number) => format!("{name} = {number}"),
                ParameterValue::Text(text) => format!("{name} = {text}"),
            })
            .collect();
        if values.is_empty() { latex } else { format!("{latex}; {}", values.join(", ")) }
    }
}
