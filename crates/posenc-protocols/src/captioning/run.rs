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
use posenc_attention::parameters;
use posenc_attention::trainer::Trainer;
use posenc_data::generate::{
    CONTEXT_WORDS, MOST_CAPTION_TOKENS, NODE_KINDS, Screen, ScreenGrammar, screen_vocabulary,
};
use posenc_data::interfaces::BORDER;
use posenc_experiments::record::Value;
use posenc_math::lff::learned::FrequencyStatistics;
use posenc_math::lff::schedule::LearningRate;
use posenc_math::lff::similarity::FourierFeatures;
use posenc_math::random::{below, stream};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Captioning, measure};
use crate::attention::record::{record_curve, record_peak_memory, six_digits, with_unit};
use crate::attention::{self, EPSILON, train_state};
use crate::boxes::BoxScale;
use crate::streams::shared_stream;
use posenc_harness::protocol::{
    Context, Emit, Estimate, Placement, Protocol, UnitResult, Workload,
};

/// Operations per second of a training step on one core.
const RATE: f64 = 30e9;

/// Number of steps that a point of the loss curve averages.
const MEAN_OVER: usize = 50;

/// State in a checkpoint besides the model.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    places: Vec<u64>,
    left: Vec<usize>,
    losses: Vec<f64>,
}

fn run(context: &Context<'_>, s: &Captioning) -> Result<UnitResult> {
    let started = Instant::now();
    let seed = context.job.seed_index;
    let draw = |purpose: &str| shared_stream(context, purpose);
    let grammar = ScreenGrammar::new(s.jitter);
    let screens = |purpose: &str, count: usize| -> Vec<Screen> {
        let name = format!("{} {purpose}", context.job.experiment.id());
        let mut rng = stream(context.seed, &name);
        (0..count).map(|_| grammar.draw(&mut rng)).collect()
    };
    let (trained, held_out) = (screens("screens", s.screens), screens("held out", s.held_out));
    let sizes = sizes(s);
    let device = attention::device(context)?;
    let (mut content, mut code) = (draw("content"), draw("encoding"));
    let model = Captioner::new(&sizes, &s.encoding, &mut content, &mut code, &device);
    let mut model = attention::accepted(model)?;
    if s.divergence.is_some() {
        model = model.with_target(s.encoding.gamma.unwrap_or(1.0), &device);
    }
    let drawn = model.position_encoding().frequencies();
    let mut adam = Adam::new(0.9, s.beta2, EPSILON);
    adam.max_grad_norm = s.max_grad_norm;
    let learning_rate =
        LearningRate { peak: s.learning_rate, warm_up: s.warm_up, decay: s.decay, steps: s.steps };
    let mut trainer = Trainer::new(model, adam, learning_rate);
    let (mut batches, mut masks) = (draw("batches"), draw("dropout"));
    let mut own = Own::default();
    let mut outcome = UnitResult::default();
    train_state::resume(context, s.steps, &mut outcome.remarks, |reached, found: Own| {
        let fits = found.losses.len() == reached.steps
            && found.places.len() == 2
            && found.left.iter().all(|&screen| screen < trained.len())
            && trainer.restore(reached);
        if fits {
            own = found;
        }
        fits && train_state::move_to([&mut batches, &mut masks], &own.places)
    });
    while trainer.is_running() {
        let batch: Vec<ScreenInput> = (0..s.batch)
            .map(|_| {
                if own.left.is_empty() {
                    own.left.extend(0..trained.len());
                }
                let screen = own.left.swap_remove(below(&mut batches, own.left.len()));
                input(&trained[screen], s.scale, Some(&mut batches))
            })
            .collect();
        own.losses.push(
            trainer.step(|model| model.loss(&batch, &sizes, s.divergence, &mut masks, &device)),
        );
        train_state::keep(context, || {
            let places = train_state::places([&batches, &masks]);
            (trainer.state(), Own { places, ..own.clone() })
        });
        if trainer.steps().is_multiple_of(500) {
            (context.note)(&format!("step {} of {}", trainer.steps(), s.steps));
        }
    }
    outcome.earlier = context.checkpoint.earlier();
    record_curve(&own.losses, MEAN_OVER, "nats/word", &mut outcome.values);
    let rate = trainer.operations() / started.elapsed().as_secs_f64() / 1e9;
    let encoding_params = s.encoding.parameter_count(&[BINS; COORDINATES], s.width);
    let numbers = [
        ("params", parameters::count(&trainer.model) as f64, "count"),
        ("encoding_params", encoding_params as f64, "count"),
        ("rate", rate, "GFLOP/s"),
    ];
    outcome.values.extend(numbers.map(with_unit));
    if let Some(diverged) = trainer.diverged() {
        outcome.remarks.push(diverged.to_string());
        outcome.values.push(Value::new("slot_accuracy", f64::NAN));
        return Ok(outcome);
    }
    let inputs: Vec<ScreenInput> =
        held_out.iter().map(|screen| input(screen, s.scale, None)).collect();
    let how = Search { beams: s.beams, alpha: s.length_penalty, max_len: MOST_CAPTION_TOKENS };
    let said = captions(&trainer.model, &sizes, &inputs, how, &device)
        .context("a screen is not a valid input of the model")?;
    measure::record(&trained, &held_out, &said, &mut outcome.values);
    if let Some((before, coordinates)) = drawn {
        let after = trainer.model.position_encoding().frequencies();
        let after = after.map_or_else(|| before.clone(), |(rows, _)| rows);
        for (when, rows) in [("initial", &before), ("learned", &after)] {
            shape(when, rows, coordinates, &mut outcome.values);
            // Maps are the largest part of a record, so only the first seed stores them.
            if seed == 0 {
                map(s, when, rows, coordinates, &mut outcome.values);
            }
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
        max_len: MOST_CAPTION_TOKENS,
        transformer: TransformerSizes { layers: s.encoder_layers, ..s.transformer(0).sizes() },
        decoder_layers: s.decoder_layers,
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

/// Records length scale, anisotropy and correlation of frequencies.
fn shape(when: &str, rows: &[f64], coordinates: usize, values: &mut Vec<Value>) {
    let Some(statistics) = FrequencyStatistics::new(rows, coordinates, &[]) else {
        return;
    };
    let mut add = |metric: &str, value: f64| {
        values.push(Value::new(format!("{when}_{metric}"), value));
    };
    add("length", statistics.length);
    add("anisotropy", statistics.anisotropy);
    if coordinates == 2 {
        add("correlation", statistics.correlation(0, 1));
    }
}

/// Records the similarity over displacements of a corner.
fn map(s: &Captioning, when: &str, rows: &[f64], coordinates: usize, values: &mut Vec<Value>) {
    let Some([largest, step]) = s.similarity.map(|pair| pair.map(|n| n as i64)) else {
        return;
    };
    let Ok(features) = FourierFeatures::from_weights(rows.to_vec(), coordinates) else {
        return;
    };
    let side: Vec<i64> = (-largest..=largest).filter(|at| at % step == 0).collect();
    for &y in &side {
        for &x in &side {
            let h = six_digits(2.0 * features.kernel(&[x as f64, y as f64]));
            let value = Value::new(format!("{when}_similarity"), h);
            values.push(value.at(x as f64).and(y as f64));
        }
    }
}

impl Protocol for Captioning {
    fn placement(&self) -> Placement {
        attention::PLACEMENT
    }

    fn estimate_unit(&self, _: &Workload<'_>) -> Estimate {
        let sizes = sizes(self);
        // On average, screens have 17 nodes and 3.5 widgets, and captions 4 words and an end token.
        let of = |screens: usize| sizes.operations(&vec![17; screens], &vec![5; screens * 7 / 2]);
        let (step, said) = (of(self.batch), of(self.held_out) * self.beams as f64);
        Estimate::training(step * self.steps as f64 + said, RATE)
    }

    fn memory(&self, _: &Workload<'_>) -> f64 {
        // 17 nodes of a screen and 20 words of its captions.
        self.transformer(17 + 20).bytes()
    }

    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        emit(0, run(context, self)?)
    }
}
