//! What a group of an experiment does: one settings type per protocol.
//!
//! The runner matches [`Protocol`] in one place, so a new protocol is a variant here, a file in
//! the runner, and the compiler lists whatever is missing.

mod blending;
mod boxes;
mod captioning;
mod detection;
mod detr;
mod image_model;
mod network;
mod network_nd;
mod reformer;
mod translation;
mod widget_captioning;

use posenc_math::embedder::EmbedderSpec;
use serde::{Deserialize, Serialize};
use serde_yaml::{Mapping, Value};

use super::Numbers;
use crate::yaml::{Document, FileError, nearest};

pub use blending::{BlendingWeights, InnerProducts, Weights};
pub use boxes::{IconLabels, ReferredBox};
pub use captioning::{BoxPositions, BoxScale, Captioning};
pub use detection::{CodePlace, Detection, PatchCoordinates};
pub use detr::Detr;
pub use image_model::{ImageModel, PixelEntropies};
use network::range;
pub use network::{
    Abscissa, LearningRate, Lines, Network1d, PowerRule, Reconstruction, STEP, Scale, TestSamples,
};
pub use network_nd::{
    Blending, DEPTH, Directions, Encoding, JointSweep, NetworkNd, Nodes, Output, Products,
    TestPositions,
};
pub use reformer::Reformer;
pub use translation::{SentenceLengths, Translation};
pub use widget_captioning::WidgetCaptioning;

/// Settings of one protocol, as typed values.
#[derive(Debug, Clone, PartialEq)]
pub enum Protocol {
    /// ψ(t, x) as a function of t for a few positions x, and the rank of many such rows.
    Embedding(Embedding),
    /// Stable rank against the number of samples or against an embedder parameter.
    StableRank(StableRank),
    /// Embedding distance D against displacement.
    Distance(Distance),
    /// Embedding distance of two-dimensional encodings as a map (`rethinking` Fig. 11).
    DistanceMap(DistanceMap),
    /// Stable rank against preserved length over random parameters (`rethinking`, notebook).
    FeatureCurve(FeatureCurve),
    /// Singular values of the embedding matrix, with stable and numerical rank.
    SingularValues(SingularValues),
    /// Whether an affine model on the embedding memorizes random targets (Proposition 1).
    Memorization(Memorization),
    /// Closed-form least squares on the separable grid of an image (`trading` Eq. 12).
    ClosedForm(ClosedForm),
    /// Affine models and ReLU networks trained on lines of images (`rethinking` Figs. 5–9,
    /// `trading` Fig. 7).
    Network1d(Network1d),
    /// Networks on simple and complex encodings of images and clips (`rethinking` Figs. 10, 11,
    /// `trading` Tables 1–4).
    NetworkNd(NetworkNd),
    /// Counted operations and bytes against measured time (`trading` Appendix C).
    Complexity(Complexity),
    /// Rank of simple and complex 2-D encodings (`trading` Eq. 7–9).
    KroneckerRank(KroneckerRank),
    /// Separable evaluation and closed-form weights against the written-out product (`trading`
    /// Eq. 10–12).
    SeparableSolution(SeparableSolution),
    /// Weights between two nodes of a virtual grid (`trading` Eq. 15, Fig. 6).
    BlendingWeights(BlendingWeights),
    /// Similarity of 2-D position codes to one center (`lff` Fig. 2).
    Similarity(Similarity),
    /// Transformers over pixels with position encodings (`lff` Figs. 3, 6, 7, Eq. 9–10).
    ImageModel(ImageModel),
    /// What neighbors tell about a pixel, by counting.
    PixelEntropies(PixelEntropies),
    /// Detectors with position encodings on generated scenes (`lff` Fig. 4).
    Detection(Detection),
    /// Captions of widgets of generated screens (`lff` Tables 1 and 2, Figs. 5, 8, 9).
    Captioning(Captioning),
    /// How rare positions of widgets are (`lff` Fig. 5).
    BoxPositions(BoxPositions),
    /// Labels of boxes of real screens (extension of `lff`).
    IconLabels(IconLabels),
    /// Boxes of real screens that expressions refer to (extension of `lff`).
    ReferredBox(ReferredBox),
    /// The widget captioner at the paper's scale: its size, steps of training, captions (`lff` Tables 1, 2, 5).
    WidgetCaptioning(WidgetCaptioning),
    /// DETR at the paper's scale: its size, and steps of training (`lff` Table 4, Appendix C).
    Detr(Detr),
    /// The Reformer at the paper's scale: its size, and steps of training (`lff` Table 3, Appendix B).
    Reformer(Reformer),
    /// Learned tables of positions in translation (`lff` Fig. 1).
    Translation(Translation),
    /// Parameter counts by arithmetic from the architecture (`lff` Tables 3–5).
    ParameterCount(ParameterCount),
    /// Numeric checks of errors in a paper.
    Errata(Errata),
}

macro_rules! protocols {
    ($($name:literal => $variant:ident, $clock:literal, $embedder:literal;)*) => {
        /// Names of all protocols, as written under `protocol.kind`.
        pub const NAMES: &[&str] = &[$($name),*];

        impl Protocol {
            /// The name under `protocol.kind`.
            pub fn name(&self) -> &'static str {
                match self { $(Protocol::$variant(_) => $name),* }
            }

            /// Whether the unit measures time, and so must run with nothing beside it.
            pub fn measures_time(&self) -> bool {
                match self { $(Protocol::$variant(_) => $clock),* }
            }

            /// Whether every variant needs an `embedder`.
            pub fn needs_embedder(&self) -> bool {
                match self { $(Protocol::$variant(_) => $embedder),* }
            }

            /// Canonical text of the settings: two protocols do the same if it is the same.
            pub fn canonical(&self) -> String {
                let text = match self {
                    $(Protocol::$variant(s) => serde_json::to_string(s)),*
                };
                format!("{} {}", self.name(), text.unwrap_or_default())
            }

            fn typed(kind: &str, document: &Document, path: &str, settings: Value)
                -> Result<Option<Self>, FileError>
            {
                Ok(Some(match kind {
                    $($name => Protocol::$variant(document.typed(path, settings)?),)*
                    _ => return Ok(None),
                }))
            }
        }
    };
}

protocols! {
    "embedding" => Embedding, false, true;
    "stable-rank" => StableRank, false, true;
    "distance" => Distance, false, true;
    "distance-map" => DistanceMap, false, true;
    "feature-curve" => FeatureCurve, false, false;
    "singular-values" => SingularValues, false, true;
    "memorization" => Memorization, false, false;
    "closed-form" => ClosedForm, false, true;
    "network-1d" => Network1d, false, true;
    "network-nd" => NetworkNd, false, true;
    "complexity" => Complexity, true, false;
    "kronecker-rank" => KroneckerRank, false, true;
    "separable-solution" => SeparableSolution, false, true;
    "blending-weights" => BlendingWeights, false, true;
    "similarity" => Similarity, false, false;
    "image-model" => ImageModel, false, false;
    "pixel-entropies" => PixelEntropies, false, false;
    "detection" => Detection, false, false;
    "captioning" => Captioning, false, false;
    "box-positions" => BoxPositions, false, false;
    "icon-labels" => IconLabels, false, false;
    "referred-box" => ReferredBox, false, false;
    "widget-captioning" => WidgetCaptioning, false, false;
    "detr" => Detr, false, false;
    "reformer" => Reformer, false, false;
    "translation" => Translation, false, false;
    "parameter-count" => ParameterCount, false, false;
    "errata" => Errata, false, false;
}

impl Protocol {
    /// Types `mapping` (with its `kind`), which stands at `path`.
    pub fn from_mapping(
        document: &Document,
        path: &str,
        mut mapping: Mapping,
    ) -> Result<Self, FileError> {
        let kind = match mapping.remove("kind") {
            Some(Value::String(kind)) => kind,
            Some(_) => {
                return Err(document.error(
                    &format!("{path}.kind"),
                    format!("not a name; allowed: {}", NAMES.join(", ")),
                ));
            }
            None => {
                return Err(document
                    .error(path, format!("`kind` is missing; allowed: {}", NAMES.join(", "))));
            }
        };
        let protocol = Protocol::typed(&kind, document, path, Value::Mapping(mapping))?;
        let protocol = protocol.ok_or_else(|| {
            let hint = nearest(&kind, NAMES.iter().copied())
                .map(|n| format!("; did you mean `{n}`?"))
                .unwrap_or_default();
            document.error(
                &format!("{path}.kind"),
                format!("unknown protocol `{kind}`{hint} Allowed: {}", NAMES.join(", ")),
            )
        })?;
        if let Err((key, message)) = protocol.check() {
            return Err(document.error(&format!("{path}.{key}"), message));
        }
        Ok(protocol)
    }

    /// Ranges that the types cannot say; the error names the key.
    fn check(&self) -> Result<(), (&'static str, String)> {
        let whole = |key, numbers: &Numbers, least: f64, most: f64| {
            for v in &numbers.0 {
                if v.fract() != 0.0 || *v < least || *v > most {
                    return Err((
                        key,
                        format!(
                            "{v} is not allowed; allowed: whole numbers from {least} to {most}"
                        ),
                    ));
                }
            }
            Ok(())
        };
        let between = |key, v: usize, least: usize, most: usize| {
            if v < least || v > most {
                Err((key, format!("{v} is not allowed; allowed: {least} to {most}")))
            } else {
                Ok(())
            }
        };
        match self {
            Protocol::Embedding(s) => {
                between("rank_points", s.rank_points, 2, 4096)?;
                for x in &s.positions.0 {
                    if !(0.0..=1.0).contains(x) {
                        return Err(("positions", format!("{x} is not allowed; allowed: 0 to 1")));
                    }
                }
                Ok(())
            }
            Protocol::StableRank(s) => whole("samples", &s.samples, 1.0, 8192.0),
            Protocol::Distance(s) => match s.displacements.0.iter().find(|v| v.abs() > 1.0) {
                Some(v) => Err(("displacements", format!("{v} is not allowed; allowed: -1 to 1"))),
                None => Ok(()),
            },
            Protocol::DistanceMap(s) => {
                between("points", s.points, 3, 512)?;
                range("extent", s.extent, 1e-6, 0.5)
            }
            Protocol::FeatureCurve(s) => {
                between("draws", s.draws, 1, 10_000)?;
                whole("dimensions", &s.dimensions, 2.0, 20_000.0)
            }
            Protocol::SingularValues(s) => between("points", s.points, 1, 4096),
            Protocol::Memorization(s) => {
                between("samples", s.samples, 1, 2048)?;
                between("dimension", s.dimension, 1, 4096)?;
                between("rank", s.rank, 1, s.samples.min(s.dimension))
            }
            Protocol::ClosedForm(s) => s.check(),
            Protocol::Network1d(s) => s.check(),
            Protocol::NetworkNd(s) => s.check(),
            Protocol::Complexity(s) => {
                between("repeats", s.repeats, 1, 1000)?;
                between("axes", s.axes, 2, 3)?;
                whole("sizes", &s.sizes, 2.0, 4096.0)
            }
            Protocol::KroneckerRank(s) => {
                between("points", s.points, 2, 64)?;
                match s.position.iter().find(|x| !(0.0..=1.0).contains(*x)) {
                    Some(x) => Err(("position", format!("{x} is not allowed; allowed: 0 to 1"))),
                    None => Ok(()),
                }
            }
            Protocol::SeparableSolution(s) => {
                s.points.iter().try_for_each(|&n| between("points", n, 1, 256))
            }
            Protocol::BlendingWeights(s) => s.check(),
            Protocol::Similarity(s) => {
                between("grid", s.grid, 2, 256)?;
                between("dimension", s.dimension, 2, 16_384)?;
                if s.center.iter().any(|c| *c >= s.grid) {
                    return Err(("center", format!("outside the grid of side {}", s.grid)));
                }
                match s.gamma {
                    Some(g) if g <= 0.0 || !g.is_finite() => {
                        Err(("gamma", format!("{g} is not allowed; allowed: above 0")))
                    }
                    _ => Ok(()),
                }
            }
            Protocol::ImageModel(s) => s.check(),
            Protocol::PixelEntropies(s) => s.check(),
            Protocol::Detection(s) => s.check(),
            Protocol::Captioning(s) => s.check(),
            Protocol::BoxPositions(s) => s.check(),
            Protocol::IconLabels(s) => s.check(),
            Protocol::ReferredBox(s) => s.check(),
            Protocol::WidgetCaptioning(s) => s.check(),
            Protocol::Detr(s) => s.check(),
            Protocol::Reformer(s) => s.check(),
            Protocol::Translation(s) => s.check(),
            Protocol::ParameterCount(_) | Protocol::Errata(_) => Ok(()),
        }
    }

    /// Whether both build a model of the same size, whatever it is trained on and for how long.
    pub fn has_model_of(&self, other: &Protocol) -> bool {
        match (self, other) {
            (Protocol::ClosedForm(_), Protocol::ClosedForm(_)) => true,
            (Protocol::Network1d(a), Protocol::Network1d(b)) => {
                (a.depth, a.width, &a.sweep) == (b.depth, b.width, &b.sweep)
            }
            (Protocol::NetworkNd(a), Protocol::NetworkNd(b)) => {
                (a.depth, a.width, a.encoding, a.directions, &a.sweep)
                    == (b.depth, b.width, b.encoding, b.directions, &b.sweep)
            }
            _ => self == other,
        }
    }

    /// Values of the sweep, each of which is an embedder of its own.
    pub(super) fn swept(&self) -> usize {
        match self {
            Protocol::StableRank(s) => s.sweep.as_ref().map_or(0, |w| w.values.0.len()),
            Protocol::Network1d(s) => s.sweep.as_ref().map_or(0, |w| w.values.0.len()),
            Protocol::NetworkNd(s) => s.sweep.as_ref().map_or(0, |w| w.values.0.len()),
            _ => 0,
        }
    }

    /// What the settings ask of the variant's embedder; the error names the key.
    pub(super) fn check_embedder(&self, spec: &EmbedderSpec) -> Result<(), (&'static str, String)> {
        match self {
            Protocol::Network1d(s) => s.check_embedder(spec),
            Protocol::NetworkNd(s) => s.check_embedder(spec),
            _ => Ok(()),
        }
    }
}

/// Settings of `embedding`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// Positions x whose rows are drawn.
    pub positions: Numbers,
    /// Number of equispaced positions whose rows give the numerical rank.
    #[serde(default = "rank_points")]
    pub rank_points: usize,
}

fn rank_points() -> usize {
    64
}

/// Settings of `stable-rank`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StableRank {
    /// Numbers of equispaced samples N. With `sweep`, each N is a signal of its own.
    pub samples: Numbers,
    /// An embedder parameter that varies instead of N.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
}

/// An embedder parameter and the values it takes.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Name of the embedder's parameter.
    pub parameter: String,
    /// Its values, the abscissa of the records.
    pub values: Numbers,
}

/// Settings of `distance`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Distance {
    /// Displacements Δ from the center x = 1/2.
    pub displacements: Numbers,
    /// Exponent k of the threshold 10^-k for the preserved length.
    #[serde(default = "one")]
    pub threshold_exponent: f64,
}

fn one() -> f64 {
    1.0
}

/// Settings of `distance-map`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DistanceMap {
    /// Along which directions the plane is embedded.
    #[serde(default)]
    pub directions: Directions,
    /// Displacements along each axis.
    #[serde(default = "rank_points")]
    pub points: usize,
    /// Largest displacement along each axis.
    pub extent: f64,
}

/// Settings of `feature-curve`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureCurve {
    /// The embedder.
    pub embedder: CurveEmbedder,
    /// Number of random parameters.
    pub draws: usize,
    /// Embedding dimensions d; the stable rank is taken on all N = d points.
    pub dimensions: Numbers,
    /// Exponent k of the threshold 10^-k.
    #[serde(default = "one")]
    pub threshold_exponent: f64,
}

/// The two embedders of the feature curve.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CurveEmbedder {
    /// σ log-uniform on [1e-3, 1e-1], periodic.
    Gaussian,
    /// σ = 100^u with u uniform on [0, 1].
    Rff,
}

/// Settings of `singular-values`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SingularValues {
    /// Number of positions N.
    pub points: usize,
    /// How positions are chosen.
    #[serde(default)]
    pub sampling: Sampling,
}

/// How positions are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// x_i = i/N.
    #[default]
    Regular,
    /// Independent uniform draws on [0, 1).
    Random,
}

/// Settings of `memorization`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Memorization {
    /// Number of samples N.
    pub samples: usize,
    /// Embedding dimension d.
    pub dimension: usize,
    /// Rank of the N×d matrix X, drawn at random.
    pub rank: usize,
    /// Whether the columns' means are removed first, so that X has zero-mean features.
    #[serde(default)]
    pub centered: bool,
    /// Whether the target is drawn in the range of [X, 1] instead of at random.
    #[serde(default)]
    pub target_in_range: bool,
}

/// Settings of `closed-form`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedForm {
    /// Every `step`-th pixel along each axis trains; the rest tests.
    #[serde(default = "two")]
    pub step: usize,
    /// Arithmetic of factorization and products.
    #[serde(default)]
    pub precision: Precision,
    /// Singular values below `cutoff` times the largest count as zero. Default: single
    /// precision's ε times the larger side, as in the authors' library, for both precisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cutoff: Option<f64>,
    /// Side to which signals are reduced by area averages before anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<usize>,
    /// A random share of all positions trains instead of a grid, and the least squares are solved
    /// iteratively (ours; the papers have no closed form there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// With `fraction`: how the grid is blended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blending: Option<Blending>,
    /// With `fraction`: when the iteration ends. Default: 1e-6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// With `fraction`: largest number of iterations; fewer regularize. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<usize>,
    /// With `fraction`: factor λ of the term λ‖W‖². Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ridge: Option<f64>,
    /// Whether the reconstruction is kept as pictures.
    #[serde(default, skip_serializing_if = "network_nd::is_false")]
    pub pictures: bool,
}

impl ClosedForm {
    fn check(&self) -> Result<(), (&'static str, String)> {
        range("step", self.step, 2, 64)?;
        if let Some(side) = self.side {
            range("side", side, 4, 4096)?;
        }
        let share = |key, value: Option<f64>| match value {
            Some(v) if !(0.0..1.0).contains(&v) => {
                Err((key, format!("{v} is not allowed; allowed: 0 up to below 1")))
            }
            _ => Ok(()),
        };
        share("cutoff", self.cutoff)?;
        if let Some(fraction) = self.fraction {
            network_nd::check_fraction(fraction)?;
            if self.cutoff.is_some() {
                let message = "belongs to a grid; an iteration ends by `tolerance` or `iterations`";
                return Err(("cutoff", message.to_owned()));
            }
            share("tolerance", self.tolerance)?;
            range("iterations", self.iterations.unwrap_or(1), 1, 1_000_000)?;
            range("ridge", self.ridge.unwrap_or(0.0), 0.0, 1e12)?;
            return Ok(());
        }
        for (key, given) in [
            ("blending", self.blending.is_some()),
            ("tolerance", self.tolerance.is_some()),
            ("iterations", self.iterations.is_some()),
            ("ridge", self.ridge.is_some()),
        ] {
            if given {
                return Err((key, "belongs to random positions; set `fraction`".into()));
            }
        }
        Ok(())
    }
}

fn two() -> usize {
    2
}

/// Floating-point arithmetic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// 24-bit significand, as PyTorch's default.
    Single,
    /// 53-bit significand.
    #[default]
    Double,
}

/// Settings of `complexity`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Complexity {
    /// The way the encoding is evaluated.
    pub scheme: Scheme,
    /// Sizes N = K along each axis.
    pub sizes: Numbers,
    /// Number of axes D.
    #[serde(default = "two")]
    pub axes: usize,
    /// Timed repetitions per size; the median is recorded.
    #[serde(default = "five")]
    pub repeats: usize,
}

fn five() -> usize {
    5
}

/// How a linear layer on an encoding is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Concatenated encodings of the axes, one linear layer.
    Simple,
    /// The Kronecker product written out point by point.
    Naive,
    /// Mode products, one axis after another.
    Separable,
}

/// Settings of `kronecker-rank`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KroneckerRank {
    /// Points along each axis.
    pub points: usize,
    /// The position whose simple and complex encoding are recorded.
    pub position: [f64; 2],
}

/// Settings of `separable-solution`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SeparableSolution {
    /// Points along x and along y, equally spaced on [0, 1).
    pub points: [usize; 2],
}

/// Settings of `similarity`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Similarity {
    /// The position code.
    pub code: PositionCode,
    /// Side of the square grid, in cells.
    pub grid: usize,
    /// The cell that all others are compared with, (row, column).
    pub center: [usize; 2],
    /// Width of the code: per axis for `sine`, |F| for `fourier`.
    pub dimension: usize,
    /// Length scale γ of `fourier`, in cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// Distances from the center, in cells, at which the decay is recorded.
    pub distances: Numbers,
}

/// A 2-D position code of `lff`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PositionCode {
    /// Sine codes of row and column, concatenated (Eq. 1).
    Sine,
    /// Fourier features at initialization (Eq. 2, 3).
    Fourier,
}

/// Settings of `parameter-count`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ParameterCount {
    /// The paper's model.
    pub model: Model,
}

/// The three models whose parameters `lff` counts.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Table 3.
    Reformer,
    /// Table 4.
    Detr,
    /// Table 5.
    WidgetCaptioning,
    /// Table 5 on the public code instead of a fitted base.
    PublicWidgetCaptioning,
}

/// Settings of `errata`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Errata {}
