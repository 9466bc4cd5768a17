//! Captions of widgets of generated screens (`lff` Tables 1 and 2, Figs. 8, 9).
//!
//! Random streams are named by item, seed and purpose, but not by group and method. All methods of an item therefore share initial
//! weights, the order of screens, the sampled references and, if they use them, frequencies and dropout masks. All seeds share the
//! screens themselves.

use std::time::Instant;

use anyhow::{Context as _, Result};
use posenc_attention::caption::Search;
use posenc_attention::captioner::{
    BINS, COORDINATES, Captioner, Node, ScreenInput, Sizes, WidgetInput, captions,
};
use posenc_attention::layers::TransformerSizes;
use posenc_attention::optimizer::Adam;
use posenc_attention::trainer::Trainer;
use posenc_data::generate::{
    CONTEXT_WORDS, MAX_CAPTION_TOKENS, NODE_KINDS, Screen, ScreenGrammar, screen_vocabulary,
};
use posenc_data::interfaces::BORDER;
use posenc_experiments::record::Value;
use posenc_math::lff::schedule::LearningRate;
use posenc_math::random::{below, stream};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Captioning, measure};
use crate::attention::record::{
    displacements, record_curve, record_frequencies, record_params, record_peak_memory,
    record_similarities,
};
use crate::attention::{self, EPSILON, train_state, trains};
use crate::boxes::BoxScale;
use crate::streams::shared_stream;
use posenc_harness::protocol::{Context, UnitResult};

/// Number of steps that a point of the loss curve averages.
const MEAN_OVER: usize = 50;

/// State in a checkpoint besides the model.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    left: Vec<usize>,
    losses: Vec<f64>,
}

fn run(context: &Context<'_>, s: &Captioning) -> Result<UnitResult> {
    let started = Instant::now();
    let draw = |purpose: &str| shared_stream(context, purpose);
    let grammar = ScreenGrammar::new(s.jitter);
    let screens = |purpose: &str, count: usize| {
        let name = format!("{} {purpose}", context.job.experiment.id());
        grammar.screens(count, &mut stream(context.seed, &name))
    };
    let (trained, held_out) = (screens("screens", s.screens), screens("held out", s.held_out));
    let sizes = sizes(s);
    let device = attention::device(context)?;
    let (mut content, mut code) = (draw("content"), draw("encoding"));
    let model = Captioner::new(&sizes, &s.encoding, &mut content, &mut code, &device);
    let model = attention::accepted(model)?;
    let drawn = model.position_encoding().frequencies();
    let mut adam = Adam::new(0.9, s.beta2, EPSILON);
    adam.max_grad_norm = s.max_grad_norm;
    let learning_rate =
        LearningRate { peak: s.learning_rate, warm_up: s.warm_up, decay: s.decay, steps: s.steps };
    let mut trainer = Trainer::new(model, adam, learning_rate);
    let mut streams = [draw("batches"), draw("dropout")];
    let mut own = Own::default();
    let mut outcome = UnitResult::default();
    train_state::train(
        context,
        &mut trainer,
        &mut streams,
        &mut own,
        &mut outcome,
        |own, steps| {
            own.losses.len() == steps && own.left.iter().all(|&screen| screen < trained.len())
        },
        |trainer, [batches, masks], own| {
            let next = |_| {
                let screen = attention::next(&mut own.left, trained.len(), batches)?;
                Some(input(&trained[screen], s.scale, Some(batches)))
            };
            let batch: Vec<ScreenInput> = (0..s.batch).filter_map(next).collect();
            own.losses.push(trainer.step(|model| model.loss(&batch, &sizes, masks, &device)));
            Ok(())
        },
    )?;
    record_curve(&own.losses, MEAN_OVER, "nats/word", &mut outcome.values);
    let rate = trainer.operations() / started.elapsed().as_secs_f64() / 1e9;
    let encoding_params = s.encoding.parameter_count(&[BINS; COORDINATES], s.width);
    record_params(&trainer.model, encoding_params, &mut outcome.values);
    outcome.values.push(Value::new("rate", rate).unit("GFLOP/s"));
    if trainer.diverged().is_some() {
        outcome.values.push(Value::new("slot_accuracy", f64::NAN));
        return Ok(outcome);
    }
    let inputs: Vec<ScreenInput> =
        held_out.iter().map(|screen| input(screen, s.scale, None)).collect();
    let how = Search { beams: s.beams, alpha: s.length_penalty, max_len: MAX_CAPTION_TOKENS };
    let said = captions(&trainer.model, &sizes, &inputs, how, &device)
        .context("a screen is not a valid input of the model")?;
    measure::record(&trained, &held_out, &said, &mut outcome.values);
    // Maps are the largest part of a record, so only the first seed stores them.
    let map = s.similarity.filter(|_| context.job.seed_index == 0);
    let learned = trainer.model.position_encoding().frequencies();
    for (when, own) in [("initial", drawn), ("learned", learned)] {
        let Some((rows, coordinates)) = own else { continue };
        record_frequencies(when, (&rows, coordinates), "", &[], &mut outcome.values);
        if let Some([largest, step]) = map {
            // Positions are x and y.
            let all: Vec<[f64; 2]> =
                displacements(largest, step).into_iter().map(|[y, x]| [x, y]).collect();
            record_similarities(when, (&rows, coordinates), &all, [0, 1], &mut outcome.values);
        }
    }
    let seconds = started.elapsed().as_secs_f64() + outcome.earlier;
    outcome.values.push(Value::new("time", seconds).unit("s"));
    record_peak_memory(&mut outcome.values);
    Ok(outcome)
}

fn sizes(s: &Captioning) -> Sizes {
    Sizes {
        node_words: CONTEXT_WORDS + 1,
        node_kinds: NODE_KINDS,
        vocabulary: screen_vocabulary().len(),
        max_len: MAX_CAPTION_TOKENS,
        transformer: TransformerSizes { layers: s.encoder_layers, ..s.transformer(0).sizes() },
        decoder_layers: s.decoder_layers,
        divergence: s.divergence,
    }
}

/// A screen as input of the model. With `rng`, each widget gets one of its reference captions.
fn input(screen: &Screen, scale: BoxScale, mut rng: Option<&mut ChaCha8Rng>) -> ScreenInput {
    let factor = match scale {
        BoxScale::Hundredths => 1.0,
        BoxScale::Shares => 1.0 / BORDER,
    };
    let nodes = screen.nodes.iter().map(|node| Node {
        word: node.word,
        kind: node.kind,
        is_clickable: node.is_clickable,
        depth: node.depth,
        bounds: node.bounds.map(|v| factor * v),
    });
    let widgets = screen.widgets.iter().map(|widget| {
        let caption = rng.as_deref_mut().and_then(|rng| {
            let count = widget.references.len();
            (count > 0).then(|| widget.references[below(rng, count)].clone())
        });
        WidgetInput { node: widget.node, caption: caption.unwrap_or_default() }
    });
    ScreenInput { nodes: nodes.collect(), widgets: widgets.collect() }
}

trains!(Captioning);
