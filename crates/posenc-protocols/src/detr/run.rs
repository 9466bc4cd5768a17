//! DETR at the paper's scale (`lff` Table 4, Appendix C): its size, and the cost of a step.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use posenc_attention::detr::{self as model, Architecture, GroundTruth, Holds, ImageInput};
use posenc_attention::parameters;
use posenc_attention::trainer::Trainer;
use posenc_data::generate::ObjectScene;
use posenc_data::{AnnotatedBox, AnnotatedImages, Photograph, Split, WeightFile, write_annotated};
use posenc_experiments::record::Value;
use posenc_math::detection::boxes::{area, center};
use posenc_math::detection::precision::{Image, Truth, average_precision};
use posenc_math::lff::schedule::{Decay, LearningRate};
use posenc_math::random::stream;
use serde::{Deserialize, Serialize};

use super::Detr;
use crate::attention::record::{record_peak_memory, with_unit};
use crate::attention::{self, train_state, trains};
use crate::detection::run::{LIMIT, adam};
use crate::streams::shared_stream;
use posenc_harness::protocol::{Context, UnitResult};

/// Number of generated scenes without `data`.
const GENERATED: usize = 12;

/// Side of generated scenes in pixels.
const SIDE: usize = 96;

/// State in a checkpoint besides the model.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    /// Images that are left in this epoch.
    left: Vec<usize>,
    curve: Vec<f64>,
    seconds: f64,
    work: f64,
}

fn run(context: &Context<'_>, s: &Detr) -> Result<UnitResult> {
    let draw = |purpose: &str| shared_stream(context, purpose);
    let device = attention::device(context)?;
    let architecture = Architecture {
        sizes: s.model.clone(),
        patch: None,
        coordinates: s.coordinates,
        code_at_input: false,
        divergence: None,
    };
    let mut model =
        model::Detr::new(&architecture, &s.encoding, ["content", "encoding"].map(draw), &device);
    let mut outcome = UnitResult::default();
    let encoding_params = s.encoding.parameter_count(&[s.model.cells; 2], s.model.width);
    let counts = [
        ("params", parameters::count(&model) as f64 / 1e6, "M"),
        ("trained_params", parameters::count_trained(&model) as f64 / 1e6, "M"),
        ("encoding_params", encoding_params as f64, "count"),
    ];
    outcome.values.extend(counts.map(with_unit));
    if s.steps == 0 {
        return Ok(outcome);
    }
    model = with_weights(context, model, &mut outcome.remarks)?;
    let (path, _folder) = attention::files(context, "scenes", |folder| generate(context, folder))?;
    let open = |split| -> Result<AnnotatedImages> {
        let images = AnnotatedImages::open(&path, split)?;
        let largest = images.categories().keys().next_back().copied().unwrap_or(0);
        ensure!(
            largest < s.model.classes,
            "{}: category {largest} is none of the model's; allowed: 0 to {}",
            path.display(),
            s.model.classes - 1
        );
        Ok(images)
    };
    let (trained, measured) = (open(Split::Training)?, open(Split::Validation)?);
    let mut adam = adam(s.weight_decay, Some(s.max_grad_norm));
    model.slow_down(&mut adam, s.backbone_rate);
    let (peak, decay) = (s.learning_rate, Decay::Constant);
    let learning_rate = LearningRate { peak, warm_up: 0, decay, steps: s.steps };
    let mut trainer = Trainer::new(model, adam, learning_rate);
    let mut own = Own::default();
    let count = trained.images().len();
    train_state::train(
        context,
        &mut trainer,
        &mut [draw("batches"), draw("masks")],
        &mut own,
        &mut outcome,
        |own, steps| own.curve.len() == steps && own.left.iter().all(|&image| image < count),
        |trainer, [batches, masks], own| {
            let mut batch = Vec::with_capacity(s.batch);
            for _ in 0..s.batch {
                let image = attention::next(&mut own.left, count, batches);
                let photograph = trained.photograph(&trained.images()[image])?;
                batch.push(input(&photograph.augmented(&s.resizing, batches)));
            }
            let batch = trainer.model.batch(&batch, None, &device);
            let started = Instant::now();
            own.curve.push(trainer.step(|model| model.loss(&batch, Some(masks))));
            own.seconds += started.elapsed().as_secs_f64();
            own.work += trainer.model.operations(&batch);
            Ok(())
        },
    )?;
    for (step, loss) in own.curve.iter().enumerate() {
        outcome.values.push(Value::new("training_curve", *loss).at((step + 1) as f64));
    }
    let taken = (own.curve.len() * s.batch) as f64;
    let costs = [
        ("time_of_image", own.seconds / taken, "s"),
        ("operations_of_image", own.work / taken / 1e9, "GFLOP"),
        ("rate", own.work / own.seconds / 1e9, "GFLOP/s"),
        ("images", count as f64, "count"),
    ];
    outcome.values.extend(costs.map(with_unit));
    record_peak_memory(&mut outcome.values);
    if s.held_out > 0 && trainer.diverged().is_none() {
        let mut found = Vec::new();
        for image in measured.images().iter().take(s.held_out) {
            let photograph = measured.photograph(image)?;
            let resized = input(&photograph.resized(s.resizing.measured, s.resizing.longest));
            let truth = |own: &AnnotatedBox| Truth {
                category: own.category,
                corners: own.corners,
                area: own.area,
                crowd: own.is_crowd,
            };
            let truths: Vec<Truth> = image.boxes.iter().map(truth).collect();
            let detections = trainer.model.detections(&[resized], &[image.size], &device);
            let images = detections.into_iter().zip([truths]);
            found.extend(images.map(|(detections, truths)| Image { truths, detections }));
        }
        let ap = average_precision(&found, s.model.classes, LIMIT);
        let numbers = [("ap", ap.mean), ("ap50", ap.at_50), ("ap75", ap.at_75)];
        outcome.values.extend(numbers.map(|(metric, value)| Value::new(metric, value)));
    }
    let mut remarks: Vec<String> = [trained, measured].iter().filter_map(|i| i.remark()).collect();
    remarks.dedup();
    outcome.remarks.extend(remarks);
    Ok(outcome)
}

/// Loads trained weights into the model, if available.
fn with_weights(
    context: &Context<'_>,
    model: model::Detr,
    remarks: &mut Vec<String>,
) -> Result<model::Detr> {
    let Some(found) = attention::weights(context)? else {
        remarks.push(
            "found no trained weights; the residual network is sampled like the rest, and its frozen norms only scale the \
             output of each block"
                .to_owned(),
        );
        return Ok(model);
    };
    let file = WeightFile::in_folder(&found.folder)?;
    let holds = match file.has("transformer.decoder.norm.weight") {
        true => Holds::Model,
        false => Holds::Backbone,
    };
    let model = model.with_weights(holds, &mut |name, shape| file.array(name, shape))?;
    remarks.push(format!(
        "started from {} in {} (files {})",
        match holds {
            Holds::Model => "all weights except those of the position encoding",
            Holds::Backbone => "the weights of the residual network",
        },
        file.path().file_name().map(|n| n.to_string_lossy()).unwrap_or_default(),
        found.sha256
    ));
    Ok(model)
}

fn input(photograph: &Photograph) -> ImageInput {
    let size = photograph.size();
    let [height, width] = size.map(|n| n as f64);
    let target = |own: &AnnotatedBox| {
        let [left, top, right, bottom] = own.corners;
        let place = center([left / width, top / height, right / width, bottom / height]);
        GroundTruth { class: own.category, place }
    };
    let targets = photograph.boxes.iter().map(target).collect();
    ImageInput { size, pixels: photograph.pixels(), targets }
}

/// Writes generated scenes in COCO's format.
fn generate(context: &Context<'_>, folder: &Path) -> Result<()> {
    let mut rng = stream(context.seed, "detr scenes");
    let scene = |_| {
        let image = ObjectScene::draw(&mut rng).whole(SIDE, &mut rng);
        let pixels = image.pixels.iter().map(|v| (v * 255.0).round() as u8).collect();
        let boxes = image.objects.iter().map(|object| {
            let corners = object.corners.map(|v| v * SIDE as f64);
            let category = object.class + 1;
            AnnotatedBox { category, corners, area: area(corners), is_crowd: false }
        });
        (pixels, [SIDE, SIDE], boxes.collect())
    };
    let scenes: Vec<_> = (0..GENERATED).map(scene).collect();
    Ok(write_annotated(folder, &["rectangle", "ellipse", "triangle"], &scenes)?)
}

trains!(Detr, reads AnnotatedImages);
