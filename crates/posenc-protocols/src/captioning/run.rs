//! Captions of widgets (`lff` Tables 1, 2 and 5, Figs. 8, 9).

use std::time::Instant;

use anyhow::Result;
use posenc_attention::caption::Search;
use posenc_attention::captioner::{BINS, Batch, COORDINATES, Captioner, Sizes, Statistics};
use posenc_attention::layers::TransformerSizes;
use posenc_attention::optimizer::Adam;
use posenc_attention::parameters;
use posenc_attention::trainer::Trainer;
use posenc_data::generate::{CONTEXT_WORDS, MAX_CAPTION_TOKENS, NODE_KINDS, screen_vocabulary};
use posenc_data::interfaces::{WidgetScreens, WordVectors};
use posenc_experiments::record::Value;
use posenc_math::lff::schedule::LearningRate;
use posenc_math::lff::widget::PublicInputs;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::screens::{Screens, Source};
use super::{Captioning, measure};
use crate::attention::record::{
    displacements, record_curve, record_frequencies, record_params, record_peak_memory,
    record_similarities, with_unit,
};
use crate::attention::{self, EPSILON, train_state, trains};
use crate::streams::shared_stream;
use posenc_harness::protocol::{Context, UnitResult};

/// Number of steps that a point of the loss curve of the small model averages.
const MEAN_OVER: usize = 50;

/// Maximum number of points of the loss curve of the public model.
const POINTS: usize = 1000;

/// Standard deviation of sampled word vectors, about that of GloVe vectors.
const VECTOR_DEVIATION: f64 = 0.4;

/// State in a checkpoint besides the model.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    /// Screens that are left in this epoch.
    left: Vec<usize>,
    losses: Vec<f64>,
    /// Seconds and floating-point operations of all steps.
    seconds: f64,
    work: f64,
}

fn run(context: &Context<'_>, s: &Captioning) -> Result<UnitResult> {
    let started = Instant::now();
    let draw = |purpose: &str| shared_stream(context, purpose);
    let mut outcome = UnitResult::default();
    let mut screens = match s.steps {
        0 => None,
        _ => Some(Screens::open(context, s, &mut outcome.remarks)?),
    };
    let vectors = match (&s.public, screens.as_ref().map(|own| &own.source)) {
        (Some(own), Some(Source::Files { all, .. })) => {
            word_vectors(context, own, all, &mut draw("word vectors"), &mut outcome.remarks)?
        }
        (own, _) => vec![0.0; own.as_ref().map_or(0, |own| own.vocabulary * own.word_width)],
    };
    let (device, sizes) = (attention::device(context)?, sizes(s));
    let model =
        Captioner::new(&sizes, &s.encoding, vectors, ["content", "encoding"].map(draw), &device);
    let Some(screens) = &mut screens else {
        record_size(&model, s, &mut outcome.values);
        return Ok(outcome);
    };
    let drawn = model.position_encoding().frequencies();
    let mut adam = Adam::new(0.9, s.beta2, EPSILON);
    adam.max_grad_norm = s.max_grad_norm;
    let learning_rate =
        LearningRate { peak: s.learning_rate, warm_up: s.warm_up, decay: s.decay, steps: s.steps };
    let mut trainer = Trainer::new(model, adam, learning_rate);
    let mut own = Own::default();
    let count = screens.count();
    train_state::train(
        context,
        &mut trainer,
        &mut [draw("batches"), draw("dropout")],
        &mut own,
        &mut outcome,
        |own, steps| own.losses.len() == steps && own.left.iter().all(|&screen| screen < count),
        |trainer, [batches, masks], own| {
            let inputs = screens.batch(s.batch, &mut own.left, batches)?;
            let batch = Batch::new(&inputs, &sizes, &device);
            let mut statistics = Statistics::new();
            let started = Instant::now();
            let loss = trainer.step(|model| model.loss(&batch, &mut statistics, masks));
            if trainer.diverged().is_none() && !statistics.is_empty() {
                trainer.model = trainer.model.clone().moved(&statistics);
            }
            own.losses.push(loss);
            own.seconds += started.elapsed().as_secs_f64();
            own.work += batch.operations(&sizes);
            Ok(())
        },
    )?;
    let every = s.public.as_ref().map_or(MEAN_OVER, |_| s.steps.div_ceil(POINTS));
    let values = &mut outcome.values;
    record_curve(&own.losses, every, "nats/word", values);
    record_size(&trainer.model, s, values);
    let how = Search { beams: s.beams, alpha: s.length_penalty, max_len: sizes.max_len };
    let said = |inputs: &[_]| trainer.model.captions(inputs, how, &device);
    match &screens.source {
        Source::Files { all, side, .. } => {
            let taken = (own.losses.len() * s.batch) as f64;
            let costs = [
                ("time_of_screen", own.seconds / taken, "s"),
                ("operations_of_screen", own.work / taken / 1e9, "GFLOP"),
                ("rate", own.work / own.seconds / 1e9, "GFLOP/s"),
                ("screens", count as f64, "count"),
                ("widgets", all.trained().len() as f64, "count"),
            ];
            values.extend(costs.map(with_unit));
            if s.held_out > 0 && trainer.diverged().is_none() {
                let (tested, inputs) = screens.tested(all, *side, s.held_out)?;
                measure::record_tested(all, &tested, said(&inputs), values);
            }
        }
        Source::Generated { trained, held_out } => {
            let rate = trainer.operations / started.elapsed().as_secs_f64() / 1e9;
            values.push(Value::new("rate", rate).unit("GFLOP/s"));
            if trainer.diverged().is_some() {
                values.push(Value::new("slot_accuracy", f64::NAN));
                return Ok(outcome);
            }
            measure::record(trained, held_out, &said(&screens.held_out(held_out)), values);
            // Maps are the largest part of a record, so only the first seed stores them.
            let map = s.similarity.filter(|_| context.job.seed_index == 0);
            let learned = trainer.model.position_encoding().frequencies();
            for (when, own) in [("initial", drawn), ("learned", learned)] {
                let Some((rows, coordinates)) = own else { continue };
                record_frequencies(when, (&rows, coordinates), "", &[], values);
                if let Some([largest, step]) = map {
                    // Positions are x and y.
                    let all: Vec<[f64; 2]> =
                        displacements(largest, step).into_iter().map(|[y, x]| [x, y]).collect();
                    record_similarities(when, (&rows, coordinates), &all, [0, 1], values);
                }
            }
            let seconds = started.elapsed().as_secs_f64() + outcome.earlier;
            values.push(Value::new("time", seconds).unit("s"));
        }
    }
    record_peak_memory(values);
    Ok(outcome)
}

/// Records the number of parameters of the model, its modules and its position encoding.
fn record_size(model: &Captioner, s: &Captioning, values: &mut Vec<Value>) {
    let encoding = s.encoding.parameter_count(&[BINS; COORDINATES], s.width);
    if s.public.is_none() {
        return record_params(model, encoding, values);
    }
    let params = parameters::count_trained(model) as f64 / 1e6;
    let counts = [("params", params, "M"), ("encoding_params", encoding as f64, "count")];
    values.extend(counts.map(with_unit));
    let parts = model.parts().into_iter();
    values
        .extend(parts.map(|(part, count)| {
            Value::new("module_params", count as f64).signal(part.to_owned())
        }));
}

fn sizes(s: &Captioning) -> Sizes {
    let (node_words, node_kinds, vocabulary, max_len) = match &s.public {
        None => (CONTEXT_WORDS + 1, NODE_KINDS, screen_vocabulary().len(), MAX_CAPTION_TOKENS),
        Some(own) => (own.vocabulary, own.types, own.vocabulary, own.max_len),
    };
    Sizes {
        node_words,
        node_kinds,
        vocabulary,
        max_len,
        transformer: TransformerSizes { layers: s.encoder_layers, ..s.transformer(0).sizes() },
        decoder_layers: s.decoder_layers,
        divergence: s.divergence,
        public: s.public.clone(),
    }
}

/// Word vectors of the vocabulary, row by row, from a file if available, otherwise sampled.
fn word_vectors(
    context: &Context<'_>,
    own: &PublicInputs,
    files: &WidgetScreens,
    rng: &mut ChaCha8Rng,
    remarks: &mut Vec<String>,
) -> Result<Vec<f32>> {
    let (rows, width) = (own.vocabulary, own.word_width);
    let Some(found) = attention::weights(context)? else {
        remarks.push(format!(
            "found no word vectors; they are sampled with standard deviation {VECTOR_DEVIATION} and carry no meaning"
        ));
        return Ok(posenc_attention::draw::normal(rng, rows * width, VECTOR_DEVIATION));
    };
    let vectors = WordVectors::in_folder(&found.folder, files.vocabulary(), width)?;
    remarks.push(format!(
        "read word vectors (files {}); {} of {} words have none and are sampled as in the public code",
        found.sha256,
        vectors.absent(),
        files.vocabulary().size()
    ));
    let mut table = vectors.table(rng);
    // Pads rows without a word, which nothing reads.
    table.resize(rows * width, 0.0);
    Ok(table)
}

trains!(Captioning, reads WidgetCaptions with public, weights WordVectors);
