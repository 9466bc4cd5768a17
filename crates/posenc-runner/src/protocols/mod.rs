//! One file per protocol: a unit becomes numbers.

mod blending_weights;
mod captioning;
mod closed_form;
mod complexity;
mod detection;
mod detr;
mod distance_map;
mod embedding;
mod errata;
mod estimate;
mod feature_curve;
mod icon_labels;
mod image_model;
mod kronecker_rank;
mod memorization;
mod memory;
mod network_1d;
mod network_nd;
mod parameter_count;
mod rank;
mod reached;
mod real_boxes;
mod referred_box;
mod reformer;
mod saved;
mod separable_solution;
mod similarity;
mod translation;
mod widget_captioning;

use anyhow::{Context as _, Result, ensure};
use faer::Mat;
use posenc_data::Format;
use posenc_experiments::plan::Job;
use posenc_experiments::record::{Picture, UnitCaptions, Value};
use posenc_experiments::schema::Protocol;
use posenc_math::embedder::{self, Embedder, EmbedderSpec, ParameterValue};
use posenc_math::random::stream;
use posenc_nets::Engine;
use rand_chacha::ChaCha8Rng;

use crate::device::{CPU, Devices};
use crate::run::checkpoint::Checkpoint;
use crate::run::data::DataSets;
use crate::run::plan::Unit;

pub use estimate::{Estimate, SignalShape, cost, estimate};
pub use memory::memory;

/// What a protocol is given.
pub struct Context<'a> {
    /// The job.
    pub job: &'a Job<'a>,
    /// Its units that must run.
    pub units: &'a [Unit],
    /// Data sets.
    pub data: &'a DataSets,
    /// Where training runs.
    pub devices: &'a Devices,
    /// Seed of the run.
    pub seed: u64,
    /// Where a protocol of long units keeps what it has reached.
    pub checkpoint: &'a Checkpoint,
    /// Tells the person who waits something about the job.
    pub note: &'a dyn Fn(&str),
}

/// What a unit gave.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The numbers.
    pub values: Vec<Value>,
    /// What the report shows beside the numbers.
    pub pictures: Vec<Picture>,
    /// What it said of widgets.
    pub captions: Option<UnitCaptions>,
    /// What a reader should know.
    pub remarks: Vec<String>,
    /// Seconds that killed runs spent on it before.
    pub earlier: f64,
}

impl From<Vec<Value>> for Outcome {
    fn from(values: Vec<Value>) -> Self {
        Outcome { values, ..Outcome::default() }
    }
}

/// Takes the outcome of the unit of that index; it is on disk when this returns.
pub type Emit<'a> = dyn FnMut(usize, Outcome) -> Result<()> + 'a;

impl Context<'_> {
    /// The engine that trains the units of this job.
    pub fn engine(&self) -> &dyn Engine {
        let class = self.units.first().map_or(CPU, |unit| &unit.parts.device);
        self.devices.engine(class)
    }

    /// Where the attention models of this job train.
    pub fn attention_device(&self) -> posenc_attention::Device {
        let class = self.units.first().map_or(CPU, |unit| &unit.parts.device);
        self.devices.attention(class)
    }

    /// The random stream of a purpose.
    pub fn stream(&self, purpose: &str) -> ChaCha8Rng {
        stream(self.seed, &self.job.stream_label(purpose))
    }

    /// The variant's embedder, with its own stream.
    pub fn embedder(&self) -> Result<Box<dyn Embedder>> {
        self.embedder_from("embedder", None)
    }

    /// The variant's embedder with one parameter changed. It draws from the same stream, so that
    /// along a sweep only the parameter differs.
    pub fn embedder_with(&self, parameter: &str, value: f64) -> Result<Box<dyn Embedder>> {
        self.embedder_from("embedder", Some((parameter, value)))
    }

    /// The variant's embedder, drawn from the stream of `purpose`, with a parameter changed or none.
    pub fn embedder_from(
        &self,
        purpose: &str,
        changed: Option<(&str, f64)>,
    ) -> Result<Box<dyn Embedder>> {
        let mut spec = self.spec()?.clone();
        if let Some((parameter, value)) = changed {
            spec.parameters.insert(parameter.to_owned(), ParameterValue::Number(value));
        }
        Ok(embedder::build(&spec, &mut self.stream(purpose))?)
    }

    /// The variant's embedder as it stands in the file.
    pub fn spec(&self) -> Result<&EmbedderSpec> {
        self.job.variant.embedder.as_ref().context("this protocol needs an embedder")
    }
}

/// No unit may ask for more: an allocation that fails would take the whole run with it.
const LARGEST_BYTES: f64 = 4.0 * (1u64 << 30) as f64;

/// Refuses what would need more memory than a unit may have; `numbers` of eight bytes each.
pub fn check_memory(what: &str, numbers: f64) -> Result<()> {
    let bytes = 8.0 * numbers;
    ensure!(
        bytes <= LARGEST_BYTES,
        "{what} would take {:.1} GiB; allowed are {:.0} GiB: lower `dimension` or the number of points",
        bytes / f64::from(1 << 30),
        LARGEST_BYTES / f64::from(1 << 30)
    );
    Ok(())
}

/// The N × d embedding matrix, if it fits.
pub fn embedding_matrix(embedder: &dyn Embedder, positions: &[f64]) -> Result<Mat<f64>> {
    let (n, d) = (positions.len(), embedder.dimension());
    check_memory(&format!("a {n} × {d} embedding matrix"), n as f64 * d as f64)?;
    Ok(embedder::matrix(embedder, positions))
}

/// Runs all units of a job.
pub fn run(context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
    let single = |outcome: Result<Vec<Value>>, emit: &mut Emit<'_>| emit(0, outcome?.into());
    let whole = |outcome: Result<Outcome>, emit: &mut Emit<'_>| emit(0, outcome?);
    match context.job.protocol() {
        Protocol::Embedding(s) => single(embedding::run(context, s), emit),
        Protocol::StableRank(s) => single(rank::stable_rank(context, s), emit),
        Protocol::Distance(s) => single(embedding::distance(context, s), emit),
        Protocol::DistanceMap(s) => single(distance_map::run(context, s), emit),
        Protocol::FeatureCurve(s) => single(feature_curve::run(context, s), emit),
        Protocol::SingularValues(s) => single(rank::singular_values(context, s), emit),
        Protocol::Memorization(s) => single(memorization::run(context, s), emit),
        Protocol::ClosedForm(s) => closed_form::run(context, s, emit),
        Protocol::Network1d(s) => network_1d::run(context, s, emit),
        Protocol::NetworkNd(s) => network_nd::run(context, s, emit),
        Protocol::Complexity(s) => single(complexity::run(context, s), emit),
        Protocol::KroneckerRank(s) => single(kronecker_rank::run(context, s), emit),
        Protocol::SeparableSolution(s) => single(separable_solution::run(context, s), emit),
        Protocol::BlendingWeights(s) => single(blending_weights::run(context, s), emit),
        Protocol::Similarity(s) => single(similarity::run(context, s), emit),
        Protocol::ImageModel(s) => whole(image_model::run(context, s), emit),
        Protocol::PixelEntropies(s) => whole(image_model::entropies(context, s), emit),
        Protocol::Detection(s) => whole(detection::run(context, s), emit),
        Protocol::Captioning(s) => whole(captioning::run(context, s), emit),
        Protocol::BoxPositions(s) => whole(captioning::positions(context, s), emit),
        Protocol::IconLabels(s) => whole(icon_labels::run(context, s), emit),
        Protocol::ReferredBox(s) => whole(referred_box::run(context, s), emit),
        Protocol::WidgetCaptioning(s) => whole(widget_captioning::run(context, s), emit),
        Protocol::Detr(s) => whole(detr::run(context, s), emit),
        Protocol::Reformer(s) => whole(reformer::run(context, s), emit),
        Protocol::Translation(s) => whole(translation::run(context, s), emit),
        Protocol::ParameterCount(s) => single(parameter_count::run(context, s), emit),
        Protocol::Errata(_) => single(errata::run(context), emit),
    }
}

/// What a protocol reads of `data` where that is files, not images or clips.
pub fn reads(protocol: &Protocol) -> Option<Format> {
    match protocol {
        Protocol::Detr(_) => Some(Format::AnnotatedImages),
        Protocol::IconLabels(_) => Some(Format::LabelledScreens),
        Protocol::BoxPositions(s) if s.captioned => Some(Format::WidgetCaptions),
        Protocol::BoxPositions(s) if s.screens.is_none() => Some(Format::LabelledScreens),
        Protocol::ReferredBox(_) => Some(Format::ReferringScreens),
        Protocol::Reformer(_) => Some(Format::DownsampledImages),
        Protocol::Translation(_) => Some(Format::ParallelText),
        Protocol::WidgetCaptioning(_) => Some(Format::WidgetCaptions),
        _ => None,
    }
}

/// What a protocol reads of `data.weights`.
pub fn begins_from(protocol: &Protocol) -> Format {
    match protocol {
        Protocol::WidgetCaptioning(_) => Format::WordVectors,
        _ => Format::Weights,
    }
}

/// Numbers to bump by hand when a change of ours moves a protocol's results. They enter the keys
/// of exactly the units concerned, which then run again; a changed comment runs nothing again.
pub fn epochs(protocol: &Protocol) -> String {
    /// Embedders and the random streams they draw from.
    const EMBEDDERS: u32 = 1;
    let own = match protocol {
        Protocol::Embedding(_) => 1,
        Protocol::StableRank(_) => 1,
        Protocol::Distance(_) => 1,
        Protocol::DistanceMap(_) => 1,
        Protocol::FeatureCurve(_) => 1,
        Protocol::SingularValues(_) => 1,
        Protocol::Memorization(_) => 1,
        Protocol::ClosedForm(_) => 1,
        // Also when the bits of the engine change.
        Protocol::Network1d(_) => 1,
        Protocol::NetworkNd(_) => 1,
        Protocol::Complexity(_) => 1,
        // 2: stable ranks.
        Protocol::KroneckerRank(_) => 2,
        Protocol::SeparableSolution(_) => 1,
        Protocol::BlendingWeights(_) => 1,
        Protocol::Similarity(_) => 1,
        // Also when the bits of the kernels change.
        Protocol::ImageModel(_) => 1,
        Protocol::PixelEntropies(_) => 1,
        Protocol::Detection(_) => 1,
        // 2: words and nodes without filling.
        Protocol::Captioning(_) => 2,
        Protocol::BoxPositions(_) => 1,
        Protocol::IconLabels(_) => 1,
        Protocol::ReferredBox(_) => 1,
        Protocol::WidgetCaptioning(_) => 1,
        Protocol::Detr(_) => 1,
        Protocol::Reformer(_) => 1,
        // 2: the rate; one map instead of one per table and seed.
        Protocol::Translation(_) => 2,
        Protocol::ParameterCount(_) => 1,
        // 2: names of quantities.
        Protocol::Errata(_) => 2,
    };
    format!("embedders {EMBEDDERS}, {} {own}", protocol.name())
}
