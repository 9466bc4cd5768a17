//! Transformers over pixels (`lff` Figs. 3, 6, 7, Eq. 9–10).
//!
//! Random streams are named by item, seed and purpose, but not by group and method. All methods of an item therefore share initial
//! weights, the order of batches, held-out images and, if they use them, frequencies and dropout masks.

use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use posenc_attention::Device;
use posenc_attention::image_model::{self as model, Measured, Sizes, evaluate};
use posenc_attention::optimizer::Adam;
use posenc_attention::parameters;
use posenc_attention::trainer::Trainer;
use posenc_data::GrayCrops;
use posenc_data::generate::GrayLeaves;
use posenc_experiments::record::Value;
use posenc_math::lff::learned::FrequencyStatistics;
use posenc_math::lff::schedule::LearningRate;
use posenc_math::lff::similarity::FourierFeatures;
use posenc_math::random::stream;
use rand_chacha::ChaCha8Rng;

use super::ImageModel;
use crate::attention::record::{record_peak_memory, six_digits, with_unit};
use crate::attention::{self, EPSILON, train_state};
use crate::streams::shared_stream;
use posenc_harness::protocol::{Context, Emit, Placement, Protocol, UnitResult};

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
    let mut model = attention::accepted(model)?;
    if s.divergence.is_some() {
        model = model.with_target(s.encoding.gamma.unwrap_or(1.0), &device);
    }
    let mut values = Vec::new();
    let drawn = model.position_encoding().frequencies();
    let learning_rate =
        LearningRate { peak: s.learning_rate, warm_up: s.warm_up, decay: s.decay, steps: s.steps };
    let mut streams = [draw("batches"), draw("dropout")];
    let mut remarks = Vec::new();
    let fixed = model.fix(&sizes, &device);
    let mut trainer = Trainer::new(model, Adam::new(0.9, s.beta2, EPSILON), learning_rate);
    let mut measured = Measured::default();
    let task = (&mut trainer, s.steps);
    let fits = |_: &Measured, _| true;
    train_state::train(
        context,
        task,
        &mut streams,
        &mut measured,
        &mut remarks,
        fits,
        |trainer, [batches, masks], measured| {
            let batch: Vec<_> = (0..s.batch).map(|_| images.image(true, batches)).collect();
            let loss = |model: &model::ImageModel| {
                Some(model.loss(&batch, &sizes, &fixed, s.divergence, masks))
            };
            let nats = trainer.step(loss);
            let evaluated =
                |model: &model::ImageModel| evaluate(model, &sizes, &fixed, &held_out, &device);
            measured.record(trainer, nats, s.measure_every, evaluated);
            Ok(())
        },
    )?;
    let seconds = started.elapsed().as_secs_f64() + context.checkpoint.earlier();
    record(s, &sizes, &trainer, &measured, seconds, &device, &mut values)?;
    if let Some((before, coordinates)) = drawn {
        let after = trainer.model.position_encoding().frequencies();
        let after = after.map_or(before.clone(), |(rows, _)| rows);
        shape(s, "initial", &before, coordinates, &mut values);
        shape(s, "learned", &after, coordinates, &mut values);
    }
    let earlier = context.checkpoint.earlier();
    remarks.extend(trainer.diverged().map(|diverged| diverged.to_string()));
    Ok(UnitResult { values, remarks, earlier, ..UnitResult::default() })
}

fn sizes(s: &ImageModel) -> Sizes {
    Sizes {
        side: s.side,
        levels: s.levels,
        concatenated: s.concatenated,
        transformer: s.transformer().sizes(),
    }
}

/// Records the curve, final scores, parameters and costs.
fn record(
    s: &ImageModel,
    sizes: &Sizes,
    trainer: &Trainer<model::ImageModel>,
    Measured { measurements, .. }: &Measured,
    seconds: f64,
    device: &Device,
    values: &mut Vec<Value>,
) -> Result<()> {
    for m in measurements {
        let step = m.step as f64;
        values.push(Value::new("bits_curve", m.evaluation.bits).unit("bits/dim").at(step));
        values.push(Value::new("training_curve", m.training_bits).unit("bits/dim").at(step));
    }
    let last = measurements.last().filter(|_| trainer.diverged().is_none());
    let bits = last.map_or(f64::NAN, |m| m.evaluation.bits);
    let mean =
        measurements.iter().map(|m| m.evaluation.bits).sum::<f64>() / measurements.len() as f64;
    let mean = if trainer.diverged().is_some() { f64::NAN } else { mean };
    let numbers = [
        ("bits", bits, "bits/dim"),
        ("share_of_uniform", bits / (s.levels as f64).log2(), ""),
        ("mean_bits", mean, "bits/dim"),
    ];
    values.extend(numbers.map(with_unit));
    let most = |weights: &[f64]| weights.iter().copied().fold(f64::NAN, f64::max);
    if let Some(m) = last {
        values.push(Value::new("left_attention", most(&m.evaluation.left)));
        values.push(Value::new("upper_attention", most(&m.evaluation.upper)));
    }
    let fixed = trainer.model.fix(sizes, device);
    let codes = trainer.model.codes(&fixed);
    let [count, width] = codes.dims();
    let codes = parameters::numbers(codes);
    if codes.len() != count * width {
        bail!("could not read the encodings of {count} positions");
    }
    let norms = codes
        .chunks_exact(width)
        .map(|c| c.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt());
    let encoding_params = s.encoding.parameter_count(&[s.side; 2], sizes.token_widths().1);
    let steps = trainer.diverged().map_or(s.steps, |diverged| diverged.step) as f64;
    let numbers = [
        ("code_norm", norms.sum::<f64>() / count as f64, ""),
        ("params", parameters::count(&trainer.model) as f64, "count"),
        ("encoding_params", encoding_params as f64, "count"),
        ("time", seconds, "s"),
        ("rate", sizes.operations(s.batch) * steps / seconds / 1e9, "GFLOP/s"),
    ];
    values.extend(numbers.map(with_unit));
    record_peak_memory(values);
    Ok(())
}

/// Records statistics of frequencies and a map of the similarity over displacements.
fn shape(s: &ImageModel, when: &str, rows: &[f64], coordinates: usize, values: &mut Vec<Value>) {
    let Some(largest) = s.similarity.map(|largest| largest as i64) else {
        return;
    };
    let Ok(features) = FourierFeatures::from_weights(rows.to_vec(), coordinates) else {
        return;
    };
    let side = -largest..=largest;
    let displacements: Vec<f64> =
        side.clone().flat_map(|y| side.clone().flat_map(move |x| [y as f64, x as f64])).collect();
    if coordinates == 2 {
        for delta in displacements.chunks_exact(2) {
            let h = six_digits(2.0 * features.kernel(delta));
            values.push(Value::new(format!("{when}_similarity"), h).at(delta[1]).and(delta[0]));
        }
    }
    let all: &[f64] = if coordinates == 2 { &displacements } else { &[] };
    if let Some(statistics) = FrequencyStatistics::new(rows, coordinates, all) {
        let mut add = |metric: &str, value: f64, unit: &str| {
            values.push(Value::new(format!("{when}_{metric}"), value).unit(unit));
        };
        add("length", statistics.length, "pixels");
        add("anisotropy", statistics.anisotropy, "");
        if coordinates == 2 {
            add("correlation", statistics.correlation(0, 1), "");
            add("gaussian_residual", statistics.gaussian_residual, "");
        }
    }
}

impl Protocol for ImageModel {
    fn placement(&self) -> Placement {
        attention::PLACEMENT
    }

    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        emit(0, run(context, self)?)
    }
}
