//! DETR at the paper's scale (`lff` Table 4, Appendix C): its size, and the cost of a step.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use posenc_attention::detr::{self as model, Architecture, GroundTruth, Holds, ImageInput};
use posenc_attention::optimizer::Adam;
use posenc_attention::trainer::Trainer;
use posenc_attention::{Device, parameters};
use posenc_data::generate::{CLASSES, ObjectScene};
use posenc_data::{
    AnnotatedBox, AnnotatedImage, AnnotatedImages, Photograph, Split, WeightFile, write_annotated,
};
use posenc_experiments::record::Value;
use posenc_math::detection::boxes::center;
use posenc_math::detection::precision::{AveragePrecision, Image, Truth, average_precision};
use posenc_math::lff::schedule::{Decay, LearningRate};
use posenc_math::random::stream;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Detr;
use crate::attention::record::{record_peak_memory, with_unit};
use crate::attention::{self, train_state, trains};
use crate::detection::run::LIMIT;
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
    let (mut content, mut code) = (draw("content"), draw("encoding"));
    let architecture = Architecture {
        sizes: s.model.clone(),
        patch: None,
        coordinates: s.coordinates,
        code_at_input: false,
        divergence: None,
    };
    let model = model::Detr::new(&architecture, &s.encoding, &mut content, &mut code, &device);
    let mut model = attention::accepted(model)?;
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
    let images = Images::open(context, s)?;
    let mut adam = Adam::new(0.9, 0.999, 1e-8);
    (adam.weight_decay, adam.max_grad_norm) = (s.weight_decay, Some(s.max_grad_norm));
    model.slow_down(&mut adam, s.backbone_rate);
    let (peak, decay) = (s.learning_rate, Decay::Constant);
    let learning_rate = LearningRate { peak, warm_up: 0, decay, steps: s.steps };
    let mut trainer = Trainer::new(model, adam, learning_rate);
    let mut own = Own::default();
    let count = images.trained.images().len();
    train_state::train(
        context,
        &mut trainer,
        &mut [draw("batches"), draw("masks")],
        &mut own,
        &mut outcome,
        |own, steps| own.curve.len() == steps && own.left.iter().all(|&image| image < count),
        |trainer, [batches, masks], own| {
            let batch = images.batch(s, &mut own.left, batches)?;
            let batch = trainer.model.batch(&batch, None, &device);
            let batch = batch.context("a batch without images")?;
            let started = Instant::now();
            own.curve.push(trainer.step(|model| model.loss(&batch, Some(masks))));
            own.seconds += started.elapsed().as_secs_f64();
            own.work += architecture.operations(&vec![batch.filled; s.batch]);
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
        let ap = measure(&trainer.model, s, &images, &device)?;
        let numbers = [("ap", ap.mean), ("ap50", ap.at_50), ("ap75", ap.at_75)];
        outcome.values.extend(numbers.map(|(metric, value)| Value::new(metric, value)));
    }
    outcome.remarks.extend(images.remarks);
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

/// Photographs in COCO's format.
struct Images {
    trained: AnnotatedImages,
    measured: AnnotatedImages,
    remarks: Vec<String>,
    /// Folder of generated scenes, deleted when dropped.
    _folder: Option<tempfile::TempDir>,
}

impl Images {
    fn open(context: &Context<'_>, s: &Detr) -> Result<Self> {
        let (path, folder) =
            attention::files(context, "scenes", |folder| generate(context, folder))?;
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
        let mut remarks: Vec<String> =
            [&trained, &measured].iter().filter_map(|i| i.remark()).collect();
        remarks.dedup();
        Ok(Images { trained, measured, remarks, _folder: folder })
    }

    /// Samples the next images without replacement; `left` contains the images that are left in this epoch.
    fn batch(
        &self,
        s: &Detr,
        left: &mut Vec<usize>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<ImageInput>> {
        let mut batch = Vec::with_capacity(s.batch);
        while batch.len() < s.batch {
            let image = self.trained.next(left, rng);
            batch.push(input(&photograph(&self.trained, image)?.augmented(&s.resizing, rng)));
        }
        Ok(batch)
    }
}

fn photograph(images: &AnnotatedImages, image: &AnnotatedImage) -> Result<Photograph> {
    let read = Photograph::new(images.pixels(image)?, image.size, image.boxes.clone());
    read.context("the size of a photograph differs from its pixels")
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

fn generate(context: &Context<'_>, folder: &Path) -> Result<()> {
    let mut rng = stream(context.seed, "detr scenes");
    let scenes: Vec<_> = (0..GENERATED)
        .map(|_| {
            let image = ObjectScene::draw(&mut rng).whole(SIDE, &mut rng);
            let pixels = image.pixels.iter().map(|v| (v * 255.0).round() as u8).collect();
            let own = |object: &posenc_data::generate::Object| {
                let corners = object.corners.map(|v| v * SIDE as f64);
                let area = posenc_math::detection::boxes::area(corners);
                AnnotatedBox { category: object.class + 1, corners, area, is_crowd: false }
            };
            (pixels, [SIDE, SIDE], image.objects.iter().map(own).collect())
        })
        .collect();
    let names = ["rectangle", "ellipse", "triangle"];
    let names: Vec<&str> = names.into_iter().take(CLASSES).collect();
    Ok(write_annotated(folder, &names, &scenes)?)
}

/// Average precision on the first validation images, one at a time.
fn measure(
    model: &model::Detr,
    s: &Detr,
    images: &Images,
    device: &Device,
) -> Result<AveragePrecision> {
    let mut found = Vec::new();
    for image in images.measured.images().iter().take(s.held_out) {
        let resized =
            photograph(&images.measured, image)?.resized(s.resizing.measured, s.resizing.longest);
        let detections = model.detections(&[input(&resized)], &[image.size], device);
        let detections = detections.and_then(|mut all| all.pop()).context("an empty image")?;
        let truth = |own: &AnnotatedBox| Truth {
            category: own.category,
            corners: own.corners,
            area: own.area,
            crowd: own.is_crowd,
        };
        found.push(Image { truths: image.boxes.iter().map(truth).collect(), detections });
    }
    Ok(average_precision(&found, s.model.classes, LIMIT))
}

trains!(Detr, reads AnnotatedImages);
