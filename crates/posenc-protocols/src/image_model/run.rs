//! Transformers over pixels (`lff` Figs. 3, 6, 7, Eq. 9–10).
//!
//! Random streams are named by item, seed and purpose, but not by group and method. All methods of an item therefore share initial
//! weights, the order of batches, held-out images and, if they use them, frequencies and dropout masks.

use std::f64::consts::LN_2;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use posenc_attention::image_model::{self as model, Evaluation, Sizes};
use posenc_attention::optimizer::Adam;
use posenc_attention::trainer::Trainer;
use posenc_data::GrayCrops;
use posenc_data::generate::GrayLeaves;
use posenc_experiments::record::Value;
use posenc_math::lff::schedule::LearningRate;
use posenc_math::random::stream;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::ImageModel;
use crate::attention::record::{
    displacements, mean, record_cost, record_frequencies, record_params, record_similarities,
    with_unit,
};
use crate::attention::{self, EPSILON, train_state, trains};
use crate::streams::shared_stream;
use posenc_harness::protocol::{Context, UnitResult};

/// Source of images.
pub enum Images {
    Generated(GrayLeaves),
    Photographs { trained: GrayCrops, measured: GrayCrops },
}

impl Images {
    pub fn new(context: &Context<'_>, side: usize, levels: usize, reduce: usize) -> Result<Self> {
        let Some(data) = &context.job.group.data else {
            return Ok(Images::Generated(GrayLeaves::new(side, levels)));
        };
        let Some(held_out) = &data.held_out else {
            bail!("`data.held_out` is missing: pixel models are evaluated on separate photographs");
        };
        let crops = |set: &str| {
            let images = context.data.load(set)?;
            GrayCrops::new(&images.signals, side, levels, reduce).context("cutting photographs")
        };
        Ok(Images::Photographs { trained: crops(&data.set)?, measured: crops(held_out)? })
    }

    /// Samples a training image, or a held-out image.
    pub fn image(&self, is_trained: bool, rng: &mut ChaCha8Rng) -> Vec<u8> {
        match self {
            Images::Generated(law) => law.image(rng),
            Images::Photographs { trained, measured } => {
                let crops = if is_trained { trained } else { measured };
                crops.image(rng)
            }
        }
    }
}

/// State in a checkpoint besides the model.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    /// Bits per pixel of each batch.
    bits: Vec<f64>,
    curve: Vec<(usize, Evaluation)>,
}

fn run(context: &Context<'_>, s: &ImageModel) -> Result<UnitResult> {
    let started = Instant::now();
    let draw = |purpose: &str| shared_stream(context, purpose);
    let images = Images::new(context, s.side, s.levels, s.reduce)?;
    // All seeds share the held-out images.
    let mut rng = stream(context.seed, &format!("{} held out", context.job.experiment.id()));
    let held_out: Vec<Vec<u8>> = (0..s.held_out).map(|_| images.image(false, &mut rng)).collect();
    let sizes = sizes(s);
    let device = attention::device(context)?;
    let (mut content, mut code) = (draw("content"), draw("encoding"));
    let model = model::ImageModel::new(&sizes, &s.encoding, &mut content, &mut code, &device);
    let model = attention::accepted(model)?;
    let drawn = model.position_encoding().frequencies();
    let learning_rate =
        LearningRate { peak: s.learning_rate, warm_up: s.warm_up, decay: s.decay, steps: s.steps };
    let fixed = model.fix(&device);
    let mut trainer = Trainer::new(model, Adam::new(0.9, s.beta2, EPSILON), learning_rate);
    let mut streams = [draw("batches"), draw("dropout")];
    let (mut own, mut outcome) = (Own::default(), UnitResult::default());
    train_state::train(
        context,
        &mut trainer,
        &mut streams,
        &mut own,
        &mut outcome,
        |own, steps| own.bits.len() == steps,
        |trainer, [batches, masks], own| {
            let batch: Vec<_> = (0..s.batch).map(|_| images.image(true, batches)).collect();
            own.bits.push(trainer.step(|model| Some(model.loss(&batch, &fixed, masks))) / LN_2);
            if trainer.is_measured(s.measure_every) {
                own.curve.push((trainer.steps(), trainer.model.evaluate(&fixed, &held_out)));
            }
            Ok(())
        },
    )?;
    let values = &mut outcome.values;
    let mut before = 0;
    for (step, evaluation) in &own.curve {
        let training = mean(&own.bits, before, *step);
        for (metric, bits) in [("bits_curve", evaluation.bits), ("training_curve", training)] {
            values.push(Value::new(metric, bits).unit("bits/dim").at(*step as f64));
        }
        before = *step;
    }
    let last = own.curve.last().filter(|_| trainer.diverged().is_none());
    let bits = last.map_or(f64::NAN, |(_, evaluation)| evaluation.bits);
    let sum: f64 = own.curve.iter().map(|(_, evaluation)| evaluation.bits).sum();
    let mean_bits = last.map_or(f64::NAN, |_| sum / own.curve.len() as f64);
    let numbers = [
        ("bits", bits, "bits/dim"),
        ("share_of_uniform", bits / (s.levels as f64).log2(), ""),
        ("mean_bits", mean_bits, "bits/dim"),
        ("code_norm", code_norm(&trainer.model.codes(&fixed), s.side * s.side), ""),
    ];
    values.extend(numbers.map(with_unit));
    let most = |weights: &[f64]| weights.iter().copied().fold(f64::NAN, f64::max);
    if let Some((_, evaluation)) = last {
        values.push(Value::new("left_attention", most(&evaluation.left)));
        values.push(Value::new("upper_attention", most(&evaluation.upper)));
    }
    let encoding_params = s.encoding.parameter_count(&[s.side; 2], sizes.token_widths().1);
    record_params(&trainer.model, encoding_params, values);
    record_cost(started.elapsed().as_secs_f64(), outcome.earlier, trainer.operations(), values);
    if let Some(largest) = s.similarity {
        let learned = trainer.model.position_encoding().frequencies();
        // Positions are row and column.
        let all = displacements(largest, 1);
        for (when, own) in [("initial", drawn), ("learned", learned)] {
            let Some((rows, coordinates)) = own else { continue };
            record_similarities(when, (&rows, coordinates), &all, [1, 0], values);
            record_frequencies(when, (&rows, coordinates), "pixels", &all, values);
        }
    }
    Ok(outcome)
}

fn sizes(s: &ImageModel) -> Sizes {
    let (side, levels, concatenated) = (s.side, s.levels, s.concatenated);
    let transformer = s.transformer().sizes();
    Sizes { side, levels, concatenated, transformer, divergence: s.divergence }
}

/// Mean norm of the encodings of `count` positions.
fn code_norm(codes: &[f32], count: usize) -> f64 {
    let norm = |code: &[f32]| code.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
    codes.chunks_exact((codes.len() / count).max(1)).map(norm).sum::<f64>() / count as f64
}

trains!(ImageModel);
