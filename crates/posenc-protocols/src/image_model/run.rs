//! Transformers over the levels of images (`lff` Table 3, Figs. 3, 6, 7, Eq. 9–10).

use std::f64::consts::LN_2;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use posenc_attention::image_model::{self as model, Evaluation, Sizes, tokens};
use posenc_attention::optimizer::Adam;
use posenc_attention::parameters;
use posenc_attention::trainer::Trainer;
use posenc_data::generate::{GrayLeaves, dead_leaves};
use posenc_data::{Channels, DownsampledImages, GrayCrops, Place, Split, Variant, write_archive};
use posenc_experiments::record::Value;
use posenc_math::lff::schedule::LearningRate;
use posenc_math::random::stream;
use posenc_math::statistics::median;
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

/// Number of generated images with colors of each split.
const GENERATED: usize = 16;

enum GrayImages {
    Generated(GrayLeaves),
    Photographs { trained: GrayCrops, measured: GrayCrops },
}

impl GrayImages {
    fn new(context: &Context<'_>, side: usize, levels: usize, reduce: usize) -> Result<Self> {
        let Some(data) = &context.job.group.data else {
            return Ok(GrayImages::Generated(GrayLeaves::new(side, levels)));
        };
        let Some(held_out) = &data.held_out else {
            bail!("`data.held_out` is missing: pixel models are evaluated on separate photographs");
        };
        let crops = |set: &str| {
            let images = context.data.load_images(set)?;
            GrayCrops::new(&images, side, levels, reduce).context("cutting photographs")
        };
        Ok(GrayImages::Photographs { trained: crops(&data.set)?, measured: crops(held_out)? })
    }

    /// Samples a training image, or a held-out image.
    fn image(&self, is_trained: bool, rng: &mut ChaCha8Rng) -> Vec<u8> {
        match self {
            GrayImages::Generated(law) => law.image(rng),
            GrayImages::Photographs { trained, measured } => {
                let crops = if is_trained { trained } else { measured };
                crops.image(rng)
            }
        }
    }
}

/// Images with colors, from files of downsampled ImageNet.
struct ColorImages {
    trained: DownsampledImages,
    measured: DownsampledImages,
    /// Folder of generated images, deleted when dropped.
    _folder: Option<tempfile::TempDir>,
}

impl ColorImages {
    fn open(context: &Context<'_>, side: usize, remarks: &mut Vec<String>) -> Result<Self> {
        let (path, folder) = attention::files(context, "images", |folder| {
            for (name, set) in [("train_data_batch_1", "train"), ("val_data", "validation")] {
                let one = |i| {
                    let image = dead_leaves(context.seed, set, i, side, Channels::Rgb);
                    image.values.iter().map(|v| (v * 255.0).round() as u8).collect()
                };
                let generated: Vec<Vec<u8>> = (0..GENERATED).map(one).collect();
                write_archive(&folder.join(format!("{name}.npz")), side, &generated)?;
            }
            Ok(())
        })?;
        let open = |split| DownsampledImages::open(&path, side, split);
        let (trained, measured) = (open(Split::Training)?, open(Split::Validation)?);
        if folder.is_none() {
            let variant = match trained.variant() {
                Variant::Archives => "npz archives (box-filtered, Chrabaszcz et al.)",
                Variant::Pictures => "PNG files (van den Oord et al.)",
            };
            remarks.push(format!(
                "trained on {variant}; do not compare with numbers on the other variant of downsampled ImageNet"
            ));
        }
        let skipped = trained.skipped() + measured.skipped();
        if skipped > 0 {
            remarks.push(format!("skipped {skipped} files that are not PNG"));
        }
        Ok(ColorImages { trained, measured, _folder: folder })
    }

    /// The next training images; `place` is the one after the last batch.
    fn batch(
        &mut self,
        count: usize,
        place: &mut Place,
        context: &Context<'_>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<Vec<u8>>> {
        if self.trained.place() != place {
            // The first step after an interruption.
            let fits = self.trained.go_on(place.clone())?;
            let file = context.checkpoint.file();
            ensure!(fits, "{} does not fit the images; delete it", file.display());
        }
        let batch = self.trained.batch(count, rng)?;
        *place = self.trained.place().clone();
        Ok(batch)
    }
}

enum Images {
    Gray(GrayImages),
    Color(Box<ColorImages>),
}

/// State in a checkpoint besides the model.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    /// Bits per level of each batch.
    bits: Vec<f64>,
    curve: Vec<(usize, Evaluation)>,
    /// The place in the files after the last batch, and the time of each step; with colors.
    place: Place,
    seconds: Vec<f64>,
}

fn run(context: &Context<'_>, s: &ImageModel) -> Result<UnitResult> {
    let started = Instant::now();
    let draw = |purpose: &str| shared_stream(context, purpose);
    let sizes = Sizes {
        side: s.side,
        levels: s.levels,
        color_width: s.color_width,
        concatenated: s.concatenated,
        transformer: s.transformer(0).sizes(),
        lsh: s.lsh,
        reversible: s.reversible,
        divergence: s.divergence,
    };
    let device = attention::device(context)?;
    let model =
        model::ImageModel::new(&sizes, &s.encoding, ["content", "encoding"].map(draw), &device);
    let (sides, width) = sizes.positions(&s.encoding);
    let encoding_params = s.encoding.parameter_count(&sides, width);
    let mut outcome = UnitResult::default();
    if s.steps == 0 {
        let params = parameters::count(&model) as f64 / 1e6;
        let counts =
            [("params", params, "M"), ("encoding_params", encoding_params as f64, "count")];
        outcome.values.extend(counts.map(with_unit));
        return Ok(outcome);
    }
    let (mut images, held_out) = match s.color_width {
        None => {
            let images = GrayImages::new(context, s.side, s.levels, s.reduce)?;
            // All seeds share the held-out images.
            let mut rng =
                stream(context.seed, &format!("{} held out", context.job.experiment.id()));
            let held_out = (0..s.held_out).map(|_| images.image(false, &mut rng)).collect();
            (Images::Gray(images), held_out)
        }
        Some(_) => {
            let images = ColorImages::open(context, s.side, &mut outcome.remarks)?;
            let held_out = images.measured.first(s.held_out)?;
            (Images::Color(Box::new(images)), held_out)
        }
    };
    let drawn = model.position_encoding().frequencies();
    let learning_rate =
        LearningRate { peak: s.learning_rate, warm_up: s.warm_up, decay: s.decay, steps: s.steps };
    let fixed = model.fix(&device);
    let mut trainer = Trainer::new(model, Adam::new(0.9, s.beta2, EPSILON), learning_rate);
    let draws = if s.lsh.is_some() { "hashes and masks" } else { "dropout" };
    let mut streams = [draw("batches"), draw(draws)];
    let mut own = Own::default();
    train_state::train(
        context,
        &mut trainer,
        &mut streams,
        &mut own,
        &mut outcome,
        |own, steps| own.bits.len() == steps,
        |trainer, [batches, draws], own| {
            let batch = match &mut images {
                Images::Gray(images) => (0..s.batch).map(|_| images.image(true, batches)).collect(),
                Images::Color(images) => images.batch(s.batch, &mut own.place, context, batches)?,
            };
            let batch = tokens(&batch, &device);
            let started = Instant::now();
            let nats = model::ImageModel::step(trainer, &batch, &fixed, draws);
            if s.color_width.is_some() {
                own.seconds.push(started.elapsed().as_secs_f64());
            }
            own.bits.push(nats / LN_2);
            if trainer.is_measured(s.measure_every) {
                let mut hashes = draw("hashes of measurements");
                let evaluation = trainer.model.evaluate(&fixed, &held_out, &mut hashes);
                own.curve.push((trainer.steps(), evaluation));
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
        ("code_norm", code_norm(&trainer.model.codes(&fixed), sides.iter().product()), ""),
    ];
    values.extend(numbers.map(with_unit));
    let most = |weights: &[f64]| weights.iter().copied().fold(f64::NAN, f64::max);
    if let Some((_, evaluation)) = last.filter(|_| s.lsh.is_none()) {
        values.push(Value::new("left_attention", most(&evaluation.left)));
        values.push(Value::new("upper_attention", most(&evaluation.upper)));
    }
    record_params(&trainer.model, encoding_params, values);
    record_cost(started.elapsed().as_secs_f64(), outcome.earlier, trainer.operations, values);
    if let Images::Color(images) = &images {
        let is_archives = images.trained.variant() == Variant::Archives;
        values.push(Value::new("archives", f64::from(u8::from(is_archives))));
        values.push(Value::new("time_of_step", median(&own.seconds)).unit("s"));
    }
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

/// Mean norm of the encodings of `count` positions.
fn code_norm(codes: &[f32], count: usize) -> f64 {
    let norm = |code: &[f32]| code.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
    codes.chunks_exact((codes.len() / count).max(1)).map(norm).sum::<f64>() / count as f64
}

trains!(ImageModel, reads DownsampledImages with color_width);
