//! Detectors on generated scenes (`lff` Fig. 4).

use std::time::Instant;

use anyhow::Result;
use posenc_attention::detr::{Architecture, Detr, GroundTruth, ImageInput};
use posenc_attention::optimizer::Adam;
use posenc_attention::trainer::Trainer;
use posenc_data::generate::{CLASSES, ObjectImage, ObjectScene};
use posenc_experiments::record::Value;
use posenc_math::detection::boxes::center;
use posenc_math::detection::precision::average_precision;
use posenc_math::lff::detr::Sizes;
use posenc_math::lff::schedule::LearningRate;
use posenc_math::random::stream;

use super::{CodePlace, Detection, pictures};
use crate::attention::record::{record_cost, record_params, with_unit};
use crate::attention::{self, train_state, trains};
use crate::streams::shared_stream;
use posenc_harness::protocol::{Context, UnitResult};

/// Maximum number of detections per image and class that are evaluated.
pub const LIMIT: usize = 100;

/// A step with AP, AP50 and AP75 after it.
type Point = (usize, [f64; 3]);

fn run(context: &Context<'_>, s: &Detection) -> Result<UnitResult> {
    let started = Instant::now();
    let item = context.job.experiment.id();
    let draw = |purpose: &str| shared_stream(context, purpose);
    let device = attention::device(context)?;
    // All seeds share the held-out scenes, which are rendered at each side.
    let mut rng = stream(context.seed, &format!("{item} held out"));
    let scenes: Vec<ObjectScene> = (0..s.held_out).map(|_| ObjectScene::draw(&mut rng)).collect();
    let painted = |side: usize| -> Vec<ImageInput> {
        let mut rng = stream(context.seed, &format!("{item} held out noise {side}"));
        scenes.iter().map(|scene| input(scene.whole(side, &mut rng))).collect()
    };
    let largest = s.sides.iter().copied().max().unwrap_or(s.patch);
    let held_out = painted(largest);
    let sizes = Sizes {
        width: s.width,
        heads: s.heads,
        feed_forward: s.feed_forward,
        encoder_layers: s.encoder_layers,
        decoder_layers: s.decoder_layers,
        queries: s.queries,
        classes: CLASSES,
        cells: largest / s.patch,
        dropout: 0.0,
        ..Sizes::default()
    };
    let architecture = Architecture {
        sizes,
        patch: Some(s.patch),
        coordinates: s.coordinates,
        code_at_input: s.code == CodePlace::AttentionAndInput,
        divergence: s.divergence,
    };
    let model = Detr::new(&architecture, &s.encoding, ["content", "encoding"].map(draw), &device);
    let learning_rate =
        LearningRate { peak: s.learning_rate, warm_up: s.warm_up, decay: s.decay, steps: s.steps };
    let cells = s.sides.iter().map(|side| side / s.patch);
    let grids: Vec<[usize; 2]> =
        cells.clone().flat_map(|rows| cells.clone().map(move |columns| [rows, columns])).collect();
    let grids = model.grids(&grids, largest / s.patch, &device);
    let precision = |model: &Detr, images: &[ImageInput]| {
        average_precision(&model.evaluated(images, &device), CLASSES, LIMIT)
    };
    let adam = adam(s.weight_decay, s.max_grad_norm);
    let mut trainer = Trainer::new(model, adam, learning_rate);
    let (mut curve, mut outcome) = (Vec::<Point>::new(), UnitResult::default());
    train_state::train(
        context,
        &mut trainer,
        &mut [draw("batches")],
        &mut curve,
        &mut outcome,
        |_, _| true,
        |trainer, [batches], curve| {
            let images: Vec<ImageInput> = (0..s.batch)
                .map(|_| input(ObjectScene::training_image(&s.sides, batches)))
                .collect();
            trainer.step(|model| model.loss(&model.batch(&images, Some(&grids), &device), None));
            if trainer.is_measured(s.measure_every) {
                let ap = precision(&trainer.model, &held_out);
                curve.push((trainer.steps(), [ap.mean, ap.at_50, ap.at_75]));
            }
            Ok(())
        },
    )?;
    let values = &mut outcome.values;
    for (step, [ap, _, ap75]) in &curve {
        values.push(Value::new("ap_curve", *ap).at(*step as f64));
        values.push(Value::new("ap75_curve", *ap75).at(*step as f64));
    }
    let last = curve.last().filter(|_| trainer.diverged().is_none());
    let [ap, ap50, ap75] = last.map_or([f64::NAN; 3], |(_, own)| *own);
    let sum: f64 = curve.iter().map(|(_, [ap, ..])| ap).sum();
    let numbers = [
        ("ap", ap, ""),
        ("ap50", ap50, ""),
        ("ap75", ap75, ""),
        // Rises if AP at a tight overlap (IoU 0.75) gains more than mean AP.
        ("ap75_less_ap", ap75 - ap, ""),
        ("mean_ap", sum / curve.len() as f64, ""),
        ("steps_to_level", steps_to(&curve, s.level), "steps"),
    ];
    values.extend(numbers.map(with_unit));
    let sides = [2 * (largest / s.patch); 2];
    record_params(&trainer.model, s.encoding.parameter_count(&sides, s.width), values);
    record_cost(started.elapsed().as_secs_f64(), outcome.earlier, trainer.operations, values);
    if trainer.diverged().is_some() {
        return Ok(outcome);
    }
    let mut unseen = Vec::new();
    for &side in &s.test_sides {
        let ap = precision(&trainer.model, &painted(side));
        values.push(Value::new("ap_at_side", ap.mean).at(side as f64));
        if !s.sides.contains(&side) {
            unseen.push(ap.mean);
        }
    }
    if !unseen.is_empty() {
        let mean = unseen.iter().sum::<f64>() / unseen.len() as f64;
        values.push(Value::new("ap_unseen_side", mean));
    }
    if context.job.seed_index == 0 {
        let found = trainer.model.evaluated(&held_out, &device);
        outcome.pictures = pictures::pictures(&held_out, &found);
    }
    Ok(outcome)
}

/// The optimizer of DETR, which clips gradients to a global norm if one is given.
pub fn adam(weight_decay: f64, max_grad_norm: Option<f64>) -> Adam {
    let mut adam = Adam::new(0.9, 0.999, 1e-8);
    (adam.weight_decay, adam.max_grad_norm) = (weight_decay, max_grad_norm);
    adam
}

fn input(image: ObjectImage) -> ImageInput {
    let targets = image.objects.iter();
    let targets =
        targets.map(|o| GroundTruth { class: o.class, place: center(o.corners) }).collect();
    ImageInput { size: [image.height, image.width], pixels: image.pixels, targets }
}

/// The step at which a curve first reaches a level, interpolated linearly between measurements; infinite if it does not.
fn steps_to(curve: &[Point], level: f64) -> f64 {
    let mut before = (0.0, 0.0);
    for &(step, [ap, ..]) in curve {
        let here = (step as f64, ap);
        if here.1 >= level {
            let rise = here.1 - before.1;
            let share = if rise > 0.0 { (level - before.1) / rise } else { 1.0 };
            return before.0 + share * (here.0 - before.0);
        }
        before = here;
    }
    f64::INFINITY
}

trains!(Detection);

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a step that is not interpolated between two measurements.
    #[test]
    fn steps_to_a_level_are_interpolated() {
        let curve = [(100, [0.1; 3]), (200, [0.3; 3]), (300, [0.2; 3])];
        assert_eq!(steps_to(&curve, 0.2), 150.0);
        assert_eq!(steps_to(&curve, 0.05), 50.0);
        assert_eq!(steps_to(&curve, 0.3), 200.0);
        assert_eq!(steps_to(&curve, 0.4), f64::INFINITY);
        assert_eq!(steps_to(&[], 0.0), f64::INFINITY);
    }
}
