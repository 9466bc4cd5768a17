//! The Reformer at the paper's scale (`lff` Table 3, Appendix B): its size, and the cost of a step.

use std::time::Instant;

use anyhow::{Result, ensure};
use posenc_attention::image_model::tokens;
use posenc_attention::optimizer::Adam;
use posenc_attention::parameters;
use posenc_attention::reformer as model;
use posenc_attention::trainer::Trainer;
use posenc_data::generate::dead_leaves;
use posenc_data::{Channels, DownsampledImages, Place, Split, Variant, write_archive};
use posenc_experiments::record::Value;
use posenc_math::lff::schedule::LearningRate;
use posenc_math::statistics::median;
use serde::{Deserialize, Serialize};

use super::Reformer;
use crate::attention::record::{record_peak_memory, with_unit};
use crate::attention::{self, EPSILON, train_state, trains};
use crate::streams::shared_stream;
use posenc_harness::protocol::{Context, UnitResult};

/// Number of generated images of each split without `data`.
const GENERATED: usize = 16;

fn run(context: &Context<'_>, s: &Reformer) -> Result<UnitResult> {
    let draw = |purpose: &str| shared_stream(context, purpose);
    let device = attention::device(context)?;
    let (mut content, mut code) = (draw("content"), draw("encoding"));
    let model = model::Reformer::new(&s.model, &s.encoding, &mut content, &mut code, &device);
    let model = model.map_err(|(key, message)| anyhow::anyhow!("{key}: {message}"))?;
    let flat = [s.model.side, s.model.side, 3];
    let (sides, width) = if s.encoding.flat {
        (&flat[..], s.model.width)
    } else {
        (&flat[..2], s.model.pixel_width)
    };
    let mut outcome = UnitResult::default();
    let counts = [
        ("params", parameters::count(&model) as f64 / 1e6, "M"),
        ("encoding_params", s.encoding.parameter_count(sides, width) as f64, "count"),
    ];
    outcome.values.extend(counts.map(with_unit));
    if s.steps == 0 {
        return Ok(outcome);
    }
    let mut images = Images::open(context, s)?;
    let fixed = model.fix(&s.model, &device);
    let learning_rate =
        LearningRate { peak: s.learning_rate, warm_up: s.warm_up, decay: s.decay, steps: s.steps };
    let mut trainer = Trainer::new(model, Adam::new(0.9, 0.98, EPSILON), learning_rate);
    let place = images.trained.place().clone();
    let mut own = Own { place, curve: Vec::new(), seconds: Vec::new() };
    train_state::train(
        context,
        &mut trainer,
        &mut [draw("batches"), draw("hashes and masks")],
        &mut own,
        &mut outcome,
        |own, steps| own.curve.len() == steps,
        |trainer, [batches, masks], own| {
            let trained = &mut images.trained;
            if *trained.place() != own.place {
                // The first step after an interruption.
                let fits = trained.go_on(own.place.clone())?;
                ensure!(
                    fits,
                    "{} does not fit the images; delete it",
                    context.checkpoint.file().display()
                );
            }
            let batch = tokens(&trained.batch(s.batch, batches)?, &device);
            own.place = trained.place().clone();
            let started = Instant::now();
            let nats = trainer
                .step_with(|model, adam, rate| model.step(&batch, &fixed, adam, rate, masks));
            own.seconds.push(started.elapsed().as_secs_f64());
            own.curve.push(nats / std::f64::consts::LN_2);
            Ok(())
        },
    )?;
    for (step, bits) in own.curve.iter().enumerate() {
        let value = Value::new("training_curve", *bits).unit("bits/dim").at((step + 1) as f64);
        outcome.values.push(value);
    }
    let is_archives = images.trained.variant() == Variant::Archives;
    let middle = median(&own.seconds);
    let costs = [
        ("archives", f64::from(u8::from(is_archives)), ""),
        ("time_of_step", middle, "s"),
        ("rate", s.model.operations(s.batch) / middle / 1e9, "GFLOP/s"),
    ];
    outcome.values.extend(costs.map(with_unit));
    record_peak_memory(&mut outcome.values);
    if s.held_out > 0 {
        let (mut sum, mut count) = (0.0, 0);
        let mut hashes = draw("hashes of measurements");
        for image in images.measured.first(s.held_out)? {
            sum += trainer.model.bits(&tokens(&[image], &device), &fixed, &mut hashes);
            count += 1;
        }
        outcome.values.push(Value::new("bits", sum / f64::from(count)).unit("bits/dim"));
    }
    outcome.remarks.extend(images.remarks);
    Ok(outcome)
}

/// State in a checkpoint besides the model.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    /// The place in the files after the last batch.
    place: Place,
    curve: Vec<f64>,
    seconds: Vec<f64>,
}

/// Images of downsampled ImageNet.
struct Images {
    trained: DownsampledImages,
    measured: DownsampledImages,
    remarks: Vec<String>,
    /// Folder of generated images, deleted when dropped.
    _folder: Option<tempfile::TempDir>,
}

impl Images {
    fn open(context: &Context<'_>, s: &Reformer) -> Result<Self> {
        let side = s.model.side;
        let mut remarks = Vec::new();
        let (path, folder) = attention::files(context, "images", |folder| {
            for (name, set) in [("train_data_batch_1", "train"), ("val_data", "validation")] {
                let one = |i| {
                    let image = dead_leaves(context.seed, set, i, side, Channels::Rgb);
                    image.pixels.iter().map(|v| (v * 255.0).round() as u8).collect()
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
        Ok(Images { trained, measured, remarks, _folder: folder })
    }
}

trains!(Reformer, reads DownsampledImages);
