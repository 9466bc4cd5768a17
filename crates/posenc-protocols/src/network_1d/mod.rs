//! Trains affine models or ReLU networks on 1-D signals with full-batch Adam.
//!
//! A signal is a row or a column of the luminance of an image of the group's `data`. Without `data`, the image is a 512 × 512 array of
//! standard normal noise. Sample i of a line with n values has position i/n. Samples 0, 2s, 4s, … are used for training. All lines and
//! repeats of a variant share one embedding, unless `redraw` is set. All groups and variants of an experiment use the same lines. Runs at
//! all values of a sweep start from the same random numbers.
//!
//! Records, by line (`row 158`, `row 426 (2)`, after the image's name if the set has several) with the repeat as seed:
//!
//! - `train_psnr`, `test_psnr` (dB). An error of exactly zero has a PSNR of `inf`.
//! - `stable_rank` of the scaled training embedding and `params`, the number of parameters of one run. Their signal is `-`; with `redraw`,
//!   every run records its own.
//! - `diverged_epoch` of runs that diverged. Their other values are NaN.
//! - With `curve_every`, curves over the epoch, as means over the repeats: `train_curve` and `test_curve` (dB), and with `layers` also
//!   `stable_rank_input` and `stable_rank_layer_N`, N = 1, 2, ….
//! - With `mean_of_first`, `train_psnr_run_mean` and `test_psnr_run_mean` (dB): means over the points of a curve before that epoch.
//! - With `reconstruction`, `prediction` and `target` over the position, for the first repeat.

mod inputs;
mod run;
mod signals;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_math::embedder::{EmbedderSpec, ParameterValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use posenc_experiments::schema::NumberList;

use crate::checks::{
    MAX_RATE, MIN_RATE, WITHOUT_SWEEP, absent, below_one, check_rate, positive, preset, range,
    ratio, whole,
};
use crate::limits::check_curves;
use crate::sweep::Sweep;

/// The kind `network-1d`.
pub const KIND: Kind = Kind {
    needs_embedder: true,
    emits_as_batch: true,
    repeats_key: Some("repeats"),
    without_data: WithoutData::Defined,
    signals_are_samples: true,
    ..kind!(Network1d, "network-1d")
};

/// The name under which a sweep varies the sample step instead of an embedder parameter.
pub const STEP: &str = "step";

/// Maximum length of a line, and therefore the largest step.
const MAX_LINE: usize = 1 << 16;

/// Maximum number of runs of one image, so that a typo in `repeats` does not start years of work.
const MAX_RUNS: usize = 100_000;

/// Settings of `network-1d`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network1d {
    /// Lines of each image that are signals.
    pub lines: Lines,
    /// Sample step s. Samples 0, 2s, 4s, … of a line train.
    #[serde(default = "preset::<1, usize>")]
    pub step: usize,
    /// Samples that test.
    #[serde(default)]
    pub test: TestSamples,
    /// Divisor of embedding rows.
    #[serde(default)]
    pub scale: Scale,
    /// Factor on the signal.
    #[serde(default = "preset::<1, f64>")]
    pub value_scale: f64,
    /// Number of hidden layers.
    #[serde(default)]
    pub depth: usize,
    /// Width of every hidden layer.
    #[serde(default = "preset::<256, usize>")]
    pub width: usize,
    /// Learning rate of Adam.
    pub learning_rate: LearningRate,
    /// L2 weight decay, added to the gradient.
    #[serde(default = "ratio::<1, 100_000_000>")]
    pub weight_decay: f64,
    /// Full-batch steps of Adam.
    pub epochs: u64,
    /// Number of runs of each line, each with its own initial weights.
    #[serde(default = "preset::<1, usize>")]
    pub repeats: usize,
    /// Whether every run samples a new embedder.
    #[serde(default)]
    pub redraw: bool,
    /// Number of last epochs over which PSNRs are averaged, in dB.
    #[serde(default = "preset::<100, u64>")]
    pub mean_of_last: u64,
    /// A parameter that varies: a parameter of the embedder, or [`STEP`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// Abscissa of the recorded values.
    #[serde(default)]
    pub abscissa: Abscissa,
    /// Number of epochs between points of curves; 0 records no curves. Not with a sweep.
    #[serde(default)]
    pub curve_every: u64,
    /// Also records means over the points of a curve before this epoch; 0 records none.
    #[serde(default)]
    pub mean_of_first: u64,
    /// Whether curves include the stable rank of the input and of the hidden layers.
    #[serde(default)]
    pub layers: bool,
    /// Records the trained model as a function of the position, in steps of 1/n. Not with a sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconstruction: Option<Reconstruction>,
}

/// Lines of an image. Indices may repeat.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// Indices of rows, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<NumberList>,
    /// Indices of columns, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<NumberList>,
    /// Number of rows, and of columns, sampled per image.
    #[serde(default)]
    pub random: usize,
}

impl Lines {
    /// Number of lines of an image.
    pub fn count(&self) -> usize {
        let listed = |list: &Option<NumberList>| list.as_ref().map_or(0, |n| n.0.len());
        listed(&self.rows) + listed(&self.columns) + 2 * self.random
    }
}

/// Samples of a line that test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TestSamples {
    /// s, 3s, 5s, …: halfway between the training samples.
    #[default]
    Midpoints,
    /// All samples of the line, those for training included.
    All,
}

/// Divisor of embedding rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Training rows and test rows are each divided by their own largest norm, as in the authors' code.
    #[default]
    Batch,
    /// All rows are divided by the largest norm of the training rows.
    Train,
    /// Each row is divided by its own norm.
    Unit,
    /// Rows are not scaled.
    None,
}

/// Learning rate: a number, or a power of the embedder's `sigma`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "a number or {base, sigma, exponent}")]
pub enum LearningRate {
    /// The learning rate, for all σ.
    Constant(f64),
    /// base·(σ / sigma)^exponent.
    Power(PowerRule),
}

/// base·(σ / sigma)^exponent, where σ is the embedder's parameter `sigma`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerRule {
    /// The learning rate at σ = `sigma`.
    pub base: f64,
    /// The σ at which the learning rate is `base`.
    pub sigma: f64,
    /// The exponent.
    pub exponent: f64,
}

impl LearningRate {
    /// The rate for an embedder of this σ; `None` if the rule needs a σ and the embedder has none.
    pub fn at(&self, sigma: Option<f64>) -> Option<f64> {
        match self {
            LearningRate::Constant(rate) => Some(*rate),
            LearningRate::Power(rule) => {
                Some(rule.base * (sigma? / rule.sigma).powf(rule.exponent))
            }
        }
    }
}

/// Abscissa of the recorded values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Abscissa {
    /// The value of the sweep; without a sweep, values have no abscissa.
    #[default]
    Parameter,
    /// The number of training samples.
    Samples,
}

/// The trained model as a function of the position.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reconstruction {
    /// Distance beyond both ends of [0, 1) up to which the model is recorded.
    #[serde(default = "ratio::<25, 100>")]
    pub outside: f64,
}

impl Settings for Network1d {
    fn check(&self) -> Result<(), Fault> {
        self.check_lines()?;
        range("step", self.step, 1, MAX_LINE)?;
        positive("value_scale", self.value_scale, 1e6)?;
        range("depth", self.depth, 0, 16)?;
        range("width", self.width, 1, 8192)?;
        below_one("weight_decay", self.weight_decay)?;
        range("epochs", self.epochs, 1, 100_000_000)?;
        range("mean_of_last", self.mean_of_last, 1, 100_000_000)?;
        range("curve_every", self.curve_every, 0, self.epochs)?;
        range("mean_of_first", self.mean_of_first, 0, self.epochs)?;
        check_curves(self.epochs, self.curve_every, self.lines.count() * self.repeats)?;
        match self.learning_rate {
            LearningRate::Constant(rate) => check_rate("learning_rate", rate)?,
            LearningRate::Power(rule) => {
                positive("learning_rate.base", rule.base, MAX_RATE)?;
                positive("learning_rate.sigma", rule.sigma, 1e9)?;
                range("learning_rate.exponent", rule.exponent, -10.0, 10.0)?;
            }
        }
        if self.curve_every == 0 {
            let of_curves = [("mean_of_first", self.mean_of_first > 0), ("layers", self.layers)];
            absent(&of_curves, "is taken from curves; set `curve_every` to at least 1")?;
        }
        if let Some(reconstruction) = self.reconstruction {
            range("reconstruction.outside", reconstruction.outside, 0.0, 1.0)?;
        }
        self.check_sweep()
    }

    fn check_embedder(&self, spec: &EmbedderSpec) -> Result<(), Fault> {
        let swept = self.sweep.as_ref().filter(|s| s.parameter != STEP);
        swept.map_or(Ok(()), |sweep| sweep.check(spec)).map_err(|(key, message)| match key {
            "sweep.parameter" => (key, format!("{message}; `step` varies the number of samples")),
            _ => (key, message),
        })?;
        let LearningRate::Power(_) = self.learning_rate else {
            return Ok(());
        };
        let sigmas = match (swept, spec.parameters.get("sigma")) {
            (Some(sweep), _) if sweep.parameter == "sigma" => sweep.values.0.clone(),
            (_, Some(ParameterValue::Number(sigma))) => vec![*sigma],
            _ => {
                let message = format!(
                    "depends on `sigma`, which the embedder `{}` does not have; write a number",
                    spec.kind
                );
                return Err(("learning_rate", message));
            }
        };
        for sigma in sigmas {
            let rate = self.learning_rate.at(Some(sigma)).unwrap_or(f64::NAN);
            if !(MIN_RATE..=MAX_RATE).contains(&rate) {
                let message = format!(
                    "is {rate:e} at sigma = {sigma}; allowed: {MIN_RATE:e} to {MAX_RATE:e}"
                );
                return Err(("learning_rate", message));
            }
        }
        Ok(())
    }

    fn swept(&self) -> usize {
        Sweep::count(self.sweep.as_ref())
    }

    fn random_samples(&self, seeds: usize) -> usize {
        // Curves are means over the repeats.
        if self.redraw { seeds.max(self.repeats) } else { 1 }
    }

    fn depends_on_start(&self, _x: Option<f64>) -> bool {
        self.depth > 0
    }

    fn has_model_of(&self, other: &dyn Settings) -> Option<bool> {
        let other = other.downcast_ref::<Self>()?;
        Some((self.depth, self.width, &self.sweep) == (other.depth, other.width, &other.sweep))
    }
}

impl Network1d {
    /// The values of the sweep; a single `None` without a sweep.
    fn swept_values(&self) -> Vec<Option<f64>> {
        match &self.sweep {
            Some(sweep) => sweep.values.0.iter().copied().map(Some).collect(),
            None => vec![None],
        }
    }

    fn check_lines(&self) -> Result<(), Fault> {
        for (key, list) in
            [("lines.rows", &self.lines.rows), ("lines.columns", &self.lines.columns)]
        {
            let last = (MAX_LINE - 1) as f64;
            list.as_ref().map_or(Ok(()), |list| whole(key, list, 0.0, last))?;
        }
        range("lines.random", self.lines.random, 0, MAX_LINE)?;
        if self.lines.count() == 0 {
            return Err(("lines", "no line; give `rows`, `columns` or `random`".into()));
        }
        range("repeats", self.repeats, 1, MAX_RUNS)?;
        let runs = self.lines.count() * self.repeats;
        if runs > MAX_RUNS {
            let message = format!("{runs} runs of each image; allowed: at most {MAX_RUNS}");
            return Err(("repeats", message));
        }
        Ok(())
    }

    fn check_sweep(&self) -> Result<(), Fault> {
        let Some(sweep) = &self.sweep else {
            return Ok(());
        };
        if sweep.parameter == STEP {
            whole("sweep.values", &sweep.values, 1.0, MAX_LINE as f64)?;
        } else if self.abscissa == Abscissa::Samples {
            let message = format!(
                "the number of samples does not depend on `{}`; allowed: parameter",
                sweep.parameter
            );
            return Err(("abscissa", message));
        }
        let of_one_value = [
            ("curve_every", self.curve_every > 0),
            ("reconstruction", self.reconstruction.is_some()),
        ];
        absent(&of_one_value, WITHOUT_SWEEP)
    }
}
