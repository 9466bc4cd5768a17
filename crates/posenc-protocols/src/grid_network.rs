//! Settings of networks on grids, which several protocols share.

use std::collections::BTreeMap;

use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::Fault;
use posenc_math::blending::{InnerProducts, Weights};
use posenc_math::embedder::{self, EmbedderSpec, FitModel};
use posenc_nets::{OutputActivation, Products, Start};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{absent, is_default, preset, ratio};
use crate::network_1d::Scale;

/// Settings of `network-nd`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkNd {
    /// Number of positions per axis to which signals are first reduced by box averages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<usize>,
    /// Every `step`-th position along each axis trains; not with `fraction`. Default: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// A random share of all positions trains, above 0 and below 1, instead of a grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// Positions that test.
    #[serde(default)]
    pub test: TestPositions,
    /// How the features of the axes are combined.
    #[serde(default)]
    pub encoding: Encoding,
    /// Directions along which a simple encoding embeds positions.
    #[serde(default)]
    pub directions: Directions,
    /// Divisor of embedding rows.
    #[serde(default = "by_training_rows")]
    pub scale: Scale,
    /// Factor on the signal.
    #[serde(default = "preset::<1, f64>")]
    pub value_scale: f64,
    /// Whether each channel's mean over the training positions is subtracted from the signal. Not with `pictures` or a sigmoid.
    #[serde(default, skip_serializing_if = "is_default")]
    pub center: bool,
    /// Number of hidden layers.
    #[serde(default)]
    pub depth: usize,
    /// Width of every hidden layer.
    #[serde(default = "preset::<256, usize>")]
    pub width: usize,
    /// Activation function of the outputs.
    #[serde(default)]
    pub output: OutputActivation,
    /// Distribution of the initial weights and biases.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: Start,
    /// Learning rate of Adam.
    pub learning_rate: f64,
    /// L2 weight decay, added to the gradient.
    #[serde(default = "ratio::<1, 100_000_000>")]
    pub weight_decay: f64,
    /// Decay β₂ of Adam's second moment; 0.999 if absent, as in the papers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta2: Option<f64>,
    /// ε of Adam; 1e-8 if absent, as in the papers. The loss is the mean squared error; a loss of half of it corresponds to twice the ε.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// Full-batch steps of Adam.
    pub epochs: u64,
    /// Number of last epochs over which PSNRs are averaged, in dB.
    #[serde(default = "preset::<1, u64>")]
    pub mean_of_last: u64,
    /// Also records mean and standard deviation of both PSNRs over this number of last epochs, since PSNR fluctuates between epochs at a
    /// constant learning rate. Needs `mean_of_last: 1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_epochs: Option<u64>,
    /// Number of epochs between points of curves; 0 records no curves. Not with a sweep.
    #[serde(default)]
    pub curve_every: u64,
    /// Embedder parameters that vary together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<JointSweep>,
    /// How a complex encoding is blended at random positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blending: Option<Blending>,
    /// How a complex encoding on a grid is multiplied; by size if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub products: Option<Products>,
    /// Whether pictures of the reconstruction are stored. Not with a sweep.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pictures: bool,
}

fn by_training_rows() -> Scale {
    Scale::Train
}

/// Positions that test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TestPositions {
    /// All positions that do not train.
    #[default]
    Rest,
    /// With an even `step` s: positions at odd multiples of s/2 along every axis, the centers of the cells.
    Centers,
    /// All positions, those for training included.
    All,
}

/// How the features of the axes are combined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// Concatenation (`trading` Eq. 7).
    #[default]
    Simple,
    /// Kronecker product (`trading` Sec. 5).
    Complex,
}

/// Directions along which a simple encoding embeds positions. The embedder's dimension is that of one direction, unless stated
/// otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// Each axis.
    #[default]
    Axes,
    /// x, y, (x + y)/2 and (x − y + 1)/2; images only.
    Diagonals,
    /// Waves along random directions. The entries of their frequency vectors are sampled independently from the embedder's distribution.
    /// The embedder's dimension is that of the whole encoding.
    Joint,
    /// Products of all pairs of the axes' features (`rethinking` Fig. 11, the equidistant grid). The embedder's dimension is that of one
    /// axis.
    Grid,
}

impl Directions {
    /// Refuses joint directions of an embedder whose frequencies cannot be sampled jointly.
    pub fn check(self, spec: &EmbedderSpec) -> Result<(), Fault> {
        if self != Directions::Joint {
            return Ok(());
        }
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
        )
    }
}

/// How a complex encoding is blended at positions off its virtual grid.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Blending {
    /// Whether the least-squares weights are normalized. The default divides them by their sum, as in the released code.
    pub weights: Weights,
    /// Positions of the nodes of the virtual grid.
    pub nodes: Nodes,
    /// Inner products from which the weights are computed.
    pub distance: InnerProducts,
}

impl Default for Blending {
    fn default() -> Self {
        let (nodes, distance) = (Nodes::default(), InnerProducts::default());
        Blending { weights: Weights::Normalized, nodes, distance }
    }
}

/// Positions of the nodes of the virtual grid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Nodes {
    /// K nodes, encoded at i/K but blended as if at i/(K − 1), as in the released code.
    #[default]
    Released,
    /// K nodes, encoded and blended at i/(K − 1).
    Consistent,
    /// K + 1 nodes, encoded and blended at i/K, as in the authors' notebook.
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
    /// Other parameters, each with the same number of values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub also: BTreeMap<String, NumberList>,
}

impl JointSweep {
    /// The parameters at value `index`; the one that is the abscissa comes first.
    pub fn at(&self, index: usize) -> Vec<(&str, f64)> {
        let own = self.values.0.get(index).map(|v| (self.parameter.as_str(), *v));
        let others = self.also.iter().filter_map(|(k, n)| Some((k.as_str(), *n.0.get(index)?)));
        own.into_iter().chain(others).collect()
    }
}

impl NetworkNd {
    /// Settings of a linear layer on every second position. A simple encoding has the directions that *Trading* uses with the embedder.
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
            center: false,
            depth: 0,
            width: 256,
            output: OutputActivation::Identity,
            start: Start::Uniform,
            learning_rate,
            weight_decay: ratio::<1, 100_000_000>(),
            beta2: None,
            epsilon: None,
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

    /// The model for which `auto` of an embedder is chosen.
    pub fn model(&self) -> FitModel {
        match self.encoding {
            Encoding::Complex => FitModel::Complex,
            Encoding::Simple => FitModel::Simple,
        }
    }

    /// Whether `auto` of an embedder is chosen by training at several widths: with a linear layer on the complex encoding of a grid.
    pub fn chooses_by_training(&self) -> bool {
        self.encoding == Encoding::Complex && self.depth == 0 && self.fraction.is_none()
    }

    /// Distance between training positions along each axis; `None` for random positions.
    pub fn grid_step(&self) -> Option<usize> {
        self.fraction.is_none().then(|| self.step.unwrap_or(2))
    }

    /// The settings at one value of the sweep, and the changed parameters of the embedder.
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
