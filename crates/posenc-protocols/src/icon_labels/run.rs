//! Labels of boxes on real screens, from the positions of all boxes of a screen (extension of `lff` Table 1).
//!
//! Random streams are named by item, seed and purpose, but not by group and method. All methods of an item therefore share the split
//! into training and held-out screens, the order of batches, initial weights and dropout masks.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use posenc_attention::Device;
use posenc_attention::boxes::{BINS, COORDINATES, LabelledScreen, Labeller, Layers, Masks};
use posenc_attention::optimizer::Adam;
use posenc_attention::trainer::Trainer;
use posenc_data::interfaces::{LABELLED_SCREENS, LabelledScreens};
use posenc_experiments::record::Value;
use posenc_math::classification::{accuracy, macro_f1};
use posenc_math::lff::schedule::LearningRate;
use serde::{Deserialize, Serialize};

use super::IconLabels;
use super::samples::{bounds, split};
use crate::attention::record::{record_cost, record_losses, record_params, with_unit};
use crate::attention::{self, train_state, trains};
use crate::streams::shared_stream;
use posenc_harness::protocol::{Context, UnitResult};

/// State in a checkpoint besides the model.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    left: Vec<usize>,
    losses: Vec<f64>,
    curve: Vec<Point>,
}

/// Scores on held-out boxes after a step, in percent.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Point {
    step: usize,
    accuracy: f64,
    macro_f1: f64,
}

fn run(context: &Context<'_>, s: &IconLabels) -> Result<UnitResult> {
    let started = Instant::now();
    let draw = |purpose: &str| shared_stream(context, purpose);
    let mut outcome = UnitResult::default();
    let data = context.job.group.data.as_ref().context("this protocol needs `data`")?;
    let all = LabelledScreens::read(&context.data.folder(&data.set)?.join(LABELLED_SCREENS))?;
    let (screens, classes) = inputs(&all, s, &mut outcome.remarks)?;
    let [trained, held_out] = split(screens.len(), s.held_out, &mut draw("split"));
    let [trained, held_out] =
        [trained, held_out].map(|own| own.iter().map(|&i| &screens[i]).collect::<Vec<_>>());
    let (device, sizes) = (attention::device(context)?, layers(s));
    let (mut content, mut code) = (draw("content"), draw("encoding"));
    let model = Labeller::new(sizes, classes, &s.encoding, &mut content, &mut code, &device);
    let model = attention::accepted(model)?;
    let learning_rate =
        LearningRate { peak: s.learning_rate, warm_up: s.warm_up, decay: s.decay, steps: s.steps };
    let mut adam = Adam::new(0.9, s.beta2, 1e-8);
    adam.weight_decay = s.weight_decay;
    let mut trainer = Trainer::new(model, adam, learning_rate);
    let mut streams = [draw("batches"), draw("dropout"), draw("dropout of the code")];
    let mut own = Own::default();
    let count = trained.len();
    train_state::train(
        context,
        &mut trainer,
        &mut streams,
        &mut own,
        &mut outcome,
        |own, steps| own.losses.len() == steps && own.left.iter().all(|&screen| screen < count),
        |trainer, [batches, layers, code], own| {
            let next = |_| attention::next(&mut own.left, count, batches);
            let drawn: Vec<&LabelledScreen> =
                (0..s.batch).filter_map(next).map(|i| trained[i]).collect();
            let masks = Masks { layers, code };
            own.losses.push(trainer.step(|model| model.loss(&drawn, Some(masks), &device)));
            if trainer.is_measured(s.measure_every) {
                own.curve.push(measure(&trainer.model, trainer.steps(), &held_out, &device)?);
            }
            Ok(())
        },
    )?;
    let values = &mut outcome.values;
    record_losses(&own.losses, "nats/box", values);
    for point in &own.curve {
        let step = point.step as f64;
        values.push(Value::new("accuracy_curve", point.accuracy).unit("%").at(step));
        values.push(Value::new("macro_f1_curve", point.macro_f1).unit("%").at(step));
    }
    let nothing = Point { step: 0, accuracy: f64::NAN, macro_f1: f64::NAN };
    let last = own.curve.last().filter(|_| trainer.diverged().is_none()).unwrap_or(&nothing);
    let encoding_params = s.encoding.parameter_count(&[BINS; COORDINATES], s.width);
    let numbers = [
        ("accuracy", last.accuracy, "%"),
        ("macro_f1", last.macro_f1, "%"),
        ("majority", majority(&trained, &held_out, classes), "%"),
        ("held_out_boxes", truth(&held_out).len() as f64, "count"),
    ];
    values.extend(numbers.map(with_unit));
    record_params(&trainer.model, encoding_params, values);
    record_cost(started.elapsed().as_secs_f64(), outcome.earlier, trainer.operations(), values);
    Ok(outcome)
}

/// Screens with boxes, and the number of labels: frequent labels, and one label for all others. A remark reports what is left out.
fn inputs(
    all: &LabelledScreens,
    s: &IconLabels,
    remarks: &mut Vec<String>,
) -> Result<(Vec<LabelledScreen>, usize)> {
    let filled: Vec<_> = all.screens.iter().filter(|screen| !screen.boxes.is_empty()).collect();
    ensure!(
        filled.len() >= 2,
        "{LABELLED_SCREENS}: {} screens have boxes; at least two are required, for training and evaluation",
        filled.len()
    );
    let mut counts = vec![0usize; all.labels.len()];
    for own in all.screens.iter().flat_map(|screen| &screen.boxes) {
        counts[own.label] += 1;
    }
    let kept: Vec<usize> =
        (0..counts.len()).filter(|&label| counts[label] >= s.min_count).collect();
    ensure!(
        !kept.is_empty(),
        "{LABELLED_SCREENS}: no label has {} boxes; lower `protocol.min_count` (the most frequent label has {} boxes)",
        s.min_count,
        counts.iter().max().unwrap_or(&0)
    );
    let number = |label: usize| kept.binary_search(&label).unwrap_or(kept.len());
    let one = |screen: &&posenc_data::interfaces::LabelledScreen| {
        let own = || screen.boxes.iter().take(s.max_boxes);
        LabelledScreen {
            boxes: own().map(|own| bounds(own.corners, s.scale)).collect(),
            labels: own().map(|own| number(own.label)).collect(),
        }
    };
    let screens: Vec<LabelledScreen> = filled.iter().map(one).collect();
    let over = filled.iter().map(|screen| screen.boxes.len().saturating_sub(s.max_boxes));
    let others: usize = counts.iter().filter(|count| **count < s.min_count).sum();
    remarks.push(format!(
        "{LABELLED_SCREENS}: skipped {} of {} screens (no boxes); dropped {} of {} boxes (beyond the first {} of their \
         screen); merged {} labels with fewer than {} boxes ({others} boxes)",
        all.screens.len() - filled.len(),
        all.screens.len(),
        over.sum::<usize>(),
        counts.iter().sum::<usize>(),
        s.max_boxes,
        counts.len() - kept.len(),
        s.min_count
    ));
    Ok((screens, kept.len() + 1))
}

/// Labels of all boxes, screen by screen.
fn truth(screens: &[&LabelledScreen]) -> Vec<usize> {
    screens.iter().flat_map(|screen| screen.labels.iter().copied()).collect()
}

fn measure(
    model: &Labeller,
    step: usize,
    screens: &[&LabelledScreen],
    device: &Device,
) -> Result<Point> {
    let said = model.labels(screens, device).context("a screen without boxes")?;
    let truth = truth(screens);
    let (accuracy, macro_f1) = (accuracy(&truth, &said), macro_f1(&truth, &said));
    Ok(Point { step, accuracy: 100.0 * accuracy, macro_f1: 100.0 * macro_f1 })
}

/// Percentage of the boxes of `measured` with the most frequent label of `trained`.
fn majority(trained: &[&LabelledScreen], measured: &[&LabelledScreen], classes: usize) -> f64 {
    let mut counts = vec![0usize; classes];
    truth(trained).into_iter().for_each(|label| counts[label] += 1);
    let most = (0..classes).max_by_key(|&label| counts[label]).unwrap_or(0);
    let truth = truth(measured);
    100.0 * accuracy(&truth, &vec![most; truth.len()])
}

fn layers(s: &IconLabels) -> Layers {
    Layers { sizes: s.transformer().sizes(), dropout: s.dropout }
}

trains!(IconLabels, reads LabelledScreens);
