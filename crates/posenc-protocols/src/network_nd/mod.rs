//! Trains affine models or ReLU networks on whole images and clips with full-batch Adam.
//!
//! Signals are the images or clips of the group's `data`. Images have the axes y and x, clips t, y and x. Index i of n on an axis has
//! position i/n. With `fraction`, all methods of an experiment use the same sample per signal.
//!
//! | `directions` | meaning | embedder's `dimension` |
//! |---|---|---|
//! | `axes` | each axis | per direction |
//! | `diagonals` | x, y, (x + y)/2, (x − y + 1)/2; images only | per direction |
//! | `joint` | waves along random directions; kind `rff` only | of the whole encoding |
//! | `grid` | products of the axes' features | per axis |
//!
//! Records per image or clip `test_psnr`, `train_psnr`, `params`, `memory` (four bytes per parameter), `time`, the curves `train_curve`
//! and `test_curve`, and pictures; with `late_epochs` also `late_test_psnr`, `late_test_psnr_sd`, `late_train_psnr` and
//! `late_train_psnr_sd`. `time` is the time that one signal takes on one core, from before the embedding until after the last epoch and its
//! test. The labels of random streams contain experiment, method and signal, but not the group. Groups that vary one setting of a method
//! therefore share their random numbers.
//!
//! With `encoding: complex` and `fraction`, a parameter that is `auto` is chosen from the training samples of each image or clip, as
//! `closed-form` does with 100 iterations, and is recorded under its name. Elsewhere `auto` depends on the number of samples only.

#[cfg(feature = "run")]
pub(crate) mod estimate;
#[cfg(feature = "run")]
pub mod reconstruction;
#[cfg(feature = "run")]
mod run;

use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use std::collections::BTreeMap;

use posenc_math::embedder::{self, EmbedderSpec, FitModel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blending_weights::{InnerProducts, Weights};
use crate::checks::{
    WITHOUT_SWEEP, absent, below_one, check_positions, check_rate, default_decay, is_false,
    positive, preset, range,
};
use crate::limits::check_curves;
use crate::network_1d::Scale;

/// The kind `network-nd`.
pub const KIND: Kind = Kind {
    needs_embedder: true,
    takes_auto: true,
    example: include_str!("example.yaml"),
    runner: runner!(NetworkNd),
    without_data: WithoutData::Defined,
    signals_are_samples: true,
    ..Kind::of::<NetworkNd>("network-nd")
};

/// Settings of `network-nd`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkNd {
    /// Side to which signals are reduced first, by box averages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<usize>,
    /// Every `step`-th position along each axis trains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// A random share of all positions trains, instead of a grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// Which positions test.
    #[serde(default)]
    pub test: TestPositions,
    /// How the axes' features are joined.
    #[serde(default)]
    pub encoding: Encoding,
    /// Along which directions a simple encoding embeds.
    #[serde(default)]
    pub directions: Directions,
    /// Divisor of embedding rows.
    #[serde(default = "by_training_rows")]
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
    /// Function after the last layer.
    #[serde(default)]
    pub output: Output,
    /// Learning rate of Adam.
    pub learning_rate: f64,
    /// L2 weight decay, added to the gradient.
    #[serde(default = "default_decay")]
    pub weight_decay: f64,
    /// Decay β₂ of Adam's second moment; 0.999 if absent, as in the papers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta2: Option<f64>,
    /// Full-batch steps of Adam.
    pub epochs: u64,
    /// PSNRs are means in dB over this number of last epochs.
    #[serde(default = "preset::<1, u64>")]
    pub mean_of_last: u64,
    /// Also record mean and standard deviation of both PSNRs over this number of last epochs. At a constant learning
    /// rate the PSNR of a single epoch fluctuates; these show by how much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_epochs: Option<u64>,
    /// Epochs between points of curves; 0 records no curves.
    #[serde(default)]
    pub curve_every: u64,
    /// Embedder parameters that vary together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<JointSweep>,
    /// Blending of a complex encoding at scattered positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blending: Option<Blending>,
    /// The arithmetic of a complex encoding on a grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub products: Option<Products>,
    /// Whether pictures of the reconstruction are stored.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pictures: bool,
}

fn by_training_rows() -> Scale {
    Scale::Train
}

/// Which positions test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TestPositions {
    /// All that do not train.
    #[default]
    Rest,
    /// With `step` s: those at odd multiples of s/2 along every axis, the centers of the cells.
    Centers,
    /// All positions, those for training included.
    All,
}

/// How the features of the axes are joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// One after the other (`trading` Eq. 7).
    #[default]
    Simple,
    /// Their Kronecker product (`trading` Sec. 5).
    Complex,
}

/// Along which directions a simple encoding embeds; every direction has the embedder's dimension,
/// unless said otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// Each axis.
    #[default]
    Axes,
    /// x, y, (x + y)/2 and (x − y + 1)/2; images only.
    Diagonals,
    /// Random directions: waves whose frequency vectors have independent entries, each drawn as
    /// the embedder draws its frequencies. The embedder's dimension is that of the whole.
    Joint,
    /// The products of all pairs of the axes' features (`rethinking` Fig. 11, the equidistant grid);
    /// the embedder's dimension is that of one axis.
    Grid,
}

/// Function after the last layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Nothing.
    #[default]
    Identity,
    /// 1/(1 + e^-z).
    Sigmoid,
}

/// How a complex encoding on a grid is multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Products {
    /// With the Gram matrices of the axes.
    Gram,
    /// With the embedding matrices, as the authors' code does.
    Residual,
}

/// How a complex encoding is blended to positions off its virtual grid.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Blending {
    /// What is done to the least-squares weights; they are divided by their sum, as in the
    /// released code.
    pub weights: Weights,
    /// Where the nodes of the virtual grid lie.
    pub nodes: Nodes,
    /// What the weights are computed from.
    pub distance: InnerProducts,
}

impl Default for Blending {
    fn default() -> Self {
        let (nodes, distance) = (Nodes::default(), InnerProducts::default());
        Blending { weights: Weights::Normalized, nodes, distance }
    }
}

/// Where the nodes of the virtual grid lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Nodes {
    /// As in the released code: K nodes, encoded at i/K, blended as if at i/(K − 1).
    #[default]
    Released,
    /// K nodes at i/(K − 1), for both.
    Consistent,
    /// K + 1 nodes at i/K, for both, as in the authors' notebook.
    Closed,
}

/// The name under which a sweep varies the number of hidden layers.
pub const DEPTH: &str = "depth";

/// Parameters of the embedder, or [`DEPTH`], that vary together.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JointSweep {
    /// The parameter whose values are the abscissa of the records.
    pub parameter: String,
    /// Its values.
    pub values: NumberList,
    /// Other parameters, each with as many values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub also: BTreeMap<String, NumberList>,
}

impl JointSweep {
    /// The parameters at place `index`, the swept one first.
    pub fn at(&self, index: usize) -> Vec<(&str, f64)> {
        let own = self.values.0.get(index).map(|v| (self.parameter.as_str(), *v));
        let others = self.also.iter().filter_map(|(k, n)| Some((k.as_str(), *n.0.get(index)?)));
        own.into_iter().chain(others).collect()
    }
}

impl Settings for NetworkNd {
    fn check(&self) -> Result<(), Fault> {
        self.side.map_or(Ok(()), |side| range("side", side, 4, 4096))?;
        check_positions(self.step, self.fraction)?;
        let even_step = self.grid_step().is_some_and(|step| step % 2 == 0);
        if self.test == TestPositions::Centers && !even_step {
            return Err(("test", "`centers` needs an even `step`".into()));
        }
        positive("value_scale", self.value_scale, 1e6)?;
        range("depth", self.depth, 0, 16)?;
        range("width", self.width, 1, 8192)?;
        check_rate("learning_rate", self.learning_rate)?;
        below_one("weight_decay", self.weight_decay)?;
        below_one("beta2", self.beta2.unwrap_or(0.0))?;
        range("epochs", self.epochs, 1, 100_000_000)?;
        range("mean_of_last", self.mean_of_last, 1, 100_000_000)?;
        if let Some(late_epochs) = self.late_epochs {
            range("late_epochs", late_epochs, 2, 100_000_000)?;
            if self.mean_of_last != 1 {
                let message =
                    "needs `mean_of_last: 1`, since `test_psnr` is then that of the last epoch";
                return Err(("late_epochs", message.to_owned()));
            }
        }
        range("curve_every", self.curve_every, 0, self.epochs)?;
        check_curves(self.epochs, self.curve_every, 1)?;
        if self.scale == Scale::Unit {
            let message = "`unit` is not allowed; allowed: train, batch, none".to_owned();
            return Err(("scale", message));
        }
        self.check_encoding()?;
        self.check_sweep()
    }

    fn check_embedder(&self, spec: &EmbedderSpec) -> Result<(), Fault> {
        if self.directions == Directions::Joint {
            if !embedder::find(&spec.kind).is_some_and(|kind| kind.is_joint) {
                let joint = embedder::registry().iter().filter(|kind| kind.is_joint);
                let allowed: Vec<&str> = joint.map(|kind| kind.name).collect();
                let message = format!(
                    "`joint` samples frequencies, which `{}` does not have; allowed: {}",
                    spec.kind,
                    allowed.join(", ")
                );
                return Err(("directions", message));
            }
            absent(
                &[("directions", spec.parameters.contains_key("scaling"))],
                "`joint` needs plain sines and cosines; leave out the embedder's `scaling`",
            )?;
            absent(
                &[("directions", spec.parameters.contains_key("torch_seed"))],
                "`joint` samples the frequencies of each axis from a stream of its own; leave out the embedder's \
                 `torch_seed`",
            )?;
        }
        let Some(sweep) = &self.sweep else {
            return Ok(());
        };
        for index in 0..sweep.values.0.len() {
            let changed = changed(spec, &self.at(index).1);
            embedder::validate(&changed).map_err(|error| ("sweep", error.to_string()))?;
        }
        Ok(())
    }

    fn swept(&self) -> usize {
        self.sweep.as_ref().map_or(0, |sweep| sweep.values.0.len())
    }

    fn has_model_of(&self, other: &dyn Settings) -> Option<bool> {
        let other = other.downcast_ref::<Self>()?;
        let model = |s: &Self| (s.depth, s.width, s.encoding, s.directions, s.sweep.clone());
        Some(model(self) == model(other))
    }
}

impl NetworkNd {
    /// Trains a linear layer on every second position. A simple encoding has the directions that *Trading* uses with the embedder.
    pub fn of(
        spec: &EmbedderSpec,
        axes: usize,
        encoding: Encoding,
        learning_rate: f64,
        epochs: u64,
    ) -> Self {
        let directions = match embedder::find(&spec.kind) {
            Some(kind) if kind.is_joint && encoding == Encoding::Simple => Directions::Joint,
            Some(kind) if kind.fit.diagonals && encoding == Encoding::Simple && axes == 2 => {
                Directions::Diagonals
            }
            _ => Directions::Axes,
        };
        NetworkNd {
            side: None,
            step: None,
            fraction: None,
            test: TestPositions::Rest,
            encoding,
            directions,
            scale: by_training_rows(),
            value_scale: 1.0,
            depth: 0,
            width: 256,
            output: Output::Identity,
            learning_rate,
            weight_decay: default_decay(),
            beta2: None,
            epochs,
            mean_of_last: 1,
            late_epochs: None,
            curve_every: 0,
            sweep: None,
            blending: None,
            products: None,
            pictures: false,
        }
    }

    /// What `auto` of an embedder is chosen for.
    pub fn model(&self) -> FitModel {
        match self.encoding {
            Encoding::Complex => FitModel::Complex,
            Encoding::Simple => FitModel::Simple,
        }
    }

    /// Distance between training positions along each axis; `None` for random positions.
    pub fn grid_step(&self) -> Option<usize> {
        match (self.step, self.fraction) {
            (step, None) => Some(step.unwrap_or(2)),
            _ => None,
        }
    }

    fn check_encoding(&self) -> Result<(), Fault> {
        if self.encoding == Encoding::Complex {
            absent(
                &[("directions", self.directions != Directions::Axes)],
                "belongs to a simple encoding; a complex one has its axes",
            )?;
            if self.depth > 1 {
                let message =
                    format!("{} is not allowed for a complex encoding; allowed: 0, 1", self.depth);
                return Err(("depth", message));
            }
            return Ok(());
        }
        let of_complex =
            [("blending", self.blending.is_some()), ("products", self.products.is_some())];
        absent(&of_complex, "belongs to `encoding: complex`")
    }

    fn check_sweep(&self) -> Result<(), Fault> {
        let Some(sweep) = &self.sweep else {
            return Ok(());
        };
        for (name, numbers) in &sweep.also {
            let (found, expected) = (numbers.0.len(), sweep.values.0.len());
            if found != expected {
                let message =
                    format!("`{name}` has {found} values, `{}` {expected}", sweep.parameter);
                return Err(("sweep.also", message));
            }
            if *name == sweep.parameter {
                return Err(("sweep.also", format!("`{name}` is the swept parameter itself")));
            }
        }
        let depths = std::iter::once((&sweep.parameter, &sweep.values)).chain(&sweep.also);
        for (_, values) in depths.filter(|(name, _)| *name == DEPTH) {
            let most = if self.encoding == Encoding::Complex { 1.0 } else { 16.0 };
            if let Some(v) = values.0.iter().find(|v| v.fract() != 0.0 || **v < 0.0 || **v > most) {
                let message = format!("{v} hidden layers; allowed: whole numbers from 0 to {most}");
                return Err(("sweep.values", message));
            }
        }
        let of_one_value = [("curve_every", self.curve_every > 0), ("pictures", self.pictures)];
        absent(&of_one_value, WITHOUT_SWEEP)
    }

    /// The settings at one value of the sweep, and the embedder's parameters that change.
    pub fn at(&self, index: usize) -> (NetworkNd, Vec<(&str, f64)>) {
        let mut settings = self.clone();
        let mut changes = self.sweep.as_ref().map_or(Vec::new(), |sweep| sweep.at(index));
        changes.retain(|&(name, value)| {
            if name == DEPTH {
                settings.depth = value as usize;
            }
            name != DEPTH
        });
        (settings, changes)
    }
}

/// The specification with some parameters changed.
fn changed(spec: &EmbedderSpec, changes: &[(&str, f64)]) -> EmbedderSpec {
    changes.iter().fold(spec.clone(), |spec, &(name, value)| spec.number(name, value))
}
