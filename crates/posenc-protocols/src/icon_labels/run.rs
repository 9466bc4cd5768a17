//! Labels of boxes on real screens, from the positions of all boxes of a screen (extension of `lff` Table 1).
//!
//! Random streams are named by item, seed and purpose, but not by group and method. All methods of an item therefore share the split
//! into training and held-out screens, the order of batches, initial weights and dropout masks. The stream of validation screens is the
//! same for all seeds.

use std::collections::BTreeSet;
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
use super::samples::{bounds, cell, split};
use crate::attention::record::{record_cost, record_losses, record_params, with_unit};
use crate::attention::{self, train_state, trains};
use crate::boxes::BoxScale;
use crate::streams::shared_stream;
use posenc_harness::protocol::{Context, UnitResult};

/// State in a checkpoint besides the model.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    /// Trainings that ended, in the order of the learning rates.
    ended: Vec<Training>,
    left: Vec<usize>,
    current: Training,
}

/// Losses and scores of a training at one learning rate.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Training {
    losses: Vec<f64>,
    curve: Vec<Point>,
    /// Scores on validation screens, if there are any, and further values of held-out screens. Absent if training diverged.
    validation: Option<[f64; 2]>,
    seen: Vec<(String, f64)>,
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
    let indices: Vec<usize> = (0..screens.len()).collect();
    let [others, held_out] = split(&indices, s.held_out, &mut draw("split"));
    let [trained, validation] = split(&others, s.validation, &mut draw("validation split"));
    let [trained, validation, held_out] = [trained, validation, held_out]
        .map(|own| own.iter().map(|&i| &screens[i]).collect::<Vec<_>>());
    let (device, sizes) = (attention::device(context)?, layers(s));
    let fresh = |peak: f64| {
        let (mut content, mut code) = (draw("content"), draw("encoding"));
        let model = Labeller::new(sizes, classes, &s.encoding, &mut content, &mut code, &device);
        let mut adam = Adam::new(0.9, s.beta2, 1e-8);
        adam.weight_decay = s.weight_decay;
        let rate = LearningRate { peak, warm_up: s.warm_up, decay: s.decay, steps: s.steps };
        anyhow::Ok(Trainer::new(attention::accepted(model)?, adam, rate))
    };
    let streams = || [draw("batches"), draw("dropout"), draw("dropout of the code")];
    let rates = &s.learning_rates;
    let mut trainer = fresh(rates[0])?;
    let (mut own, mut operations, mut remarks) = (Own::default(), 0.0, Vec::new());
    let count = trained.len();
    train_state::train_repeatedly(
        context,
        &mut trainer,
        &mut streams(),
        &mut own,
        &mut outcome,
        rates.len(),
        |own, steps| {
            let fits = own.current.losses.len() == steps || own.ended.len() == rates.len();
            (fits && own.left.iter().all(|&screen| screen < count)).then_some(own.ended.len())
        },
        |trainer, drawn, own| {
            let [batches, layers, code] = drawn;
            trainer.set_peak(rates[own.ended.len()]);
            let next = |_| attention::next(&mut own.left, count, batches);
            let batch: Vec<&LabelledScreen> =
                (0..s.batch).filter_map(next).map(|i| trained[i]).collect();
            let masks = Masks { layers, code };
            let current = &mut own.current;
            current.losses.push(trainer.step(|model| model.loss(&batch, Some(masks), &device)));
            let model = &trainer.model;
            if trainer.is_measured(s.measure_every) {
                let [accuracy, macro_f1] = scores(model, &held_out, &device)?;
                current.curve.push(Point { step: trainer.steps(), accuracy, macro_f1 });
            }
            if trainer.is_running() {
                return Ok(());
            }
            let rate = rates[own.ended.len()];
            match trainer.diverged() {
                Some(diverged) => remarks.push(format!("learning rate {rate}: {diverged}")),
                None => {
                    current.seen = seen(model, &trained, &held_out, s.scale, &device)?;
                    current.validation = Some(scores(model, &validation, &device)?);
                }
            }
            own.ended.push(std::mem::take(current));
            operations += trainer.operations();
            if let Some(&rate) = rates.get(own.ended.len()) {
                own.left.clear();
                *trainer = fresh(rate)?;
                *drawn = streams();
            }
            Ok(())
        },
    )?;
    outcome.remarks.extend(remarks);
    let accuracy = |i: &usize| own.ended[*i].validation.map_or(f64::NEG_INFINITY, |[a, _]| a);
    let values = &mut outcome.values;
    for (training, &rate) in own.ended.iter().zip(rates).filter(|_| !validation.is_empty()) {
        let [accuracy, macro_f1] = training.validation.unwrap_or([f64::NAN; 2]);
        values.push(Value::new("accuracy_validation", accuracy).unit("%").at(rate));
        values.push(Value::new("macro_f1_validation", macro_f1).unit("%").at(rate));
    }
    // The first of equally good ones.
    let best = (0..rates.len()).rev().max_by(|a, b| accuracy(a).total_cmp(&accuracy(b)));
    let best = best.context("this protocol needs a learning rate")?;
    let training = &own.ended[best];
    values.push(Value::new("learning_rate", rates[best]));
    record_losses(&training.losses, "nats/box", values);
    for point in &training.curve {
        let step = point.step as f64;
        values.push(Value::new("accuracy_curve", point.accuracy).unit("%").at(step));
        values.push(Value::new("macro_f1_curve", point.macro_f1).unit("%").at(step));
    }
    let nothing = Point { step: 0, accuracy: f64::NAN, macro_f1: f64::NAN };
    let last = training.curve.last().filter(|_| training.validation.is_some()).unwrap_or(&nothing);
    values.extend(training.seen.iter().map(|(metric, v)| Value::new(metric.clone(), *v).unit("%")));
    let encoding_params = s.encoding.parameter_count(&[BINS; COORDINATES], s.width);
    let numbers = [
        ("accuracy", last.accuracy, "%"),
        ("macro_f1", last.macro_f1, "%"),
        ("majority", majority(&trained, &held_out, classes), "%"),
        ("held_out_boxes", truth(&held_out).len() as f64, "count"),
    ];
    values.extend(numbers.map(with_unit));
    record_params(&trainer.model, encoding_params, values);
    record_cost(started.elapsed().as_secs_f64(), outcome.earlier, operations, values);
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

/// Accuracy and macro F1 on screens, in percent.
fn scores(model: &Labeller, screens: &[&LabelledScreen], device: &Device) -> Result<[f64; 2]> {
    let predicted = model.labels(screens, device).context("a screen without boxes")?;
    let truth = truth(screens);
    Ok([accuracy(&truth, &predicted), macro_f1(&truth, &predicted)].map(|share| 100.0 * share))
}

/// Accuracy of boxes at positions with and without a training box, and the share of the latter. A part without boxes has no accuracy.
fn seen(
    model: &Labeller,
    trained: &[&LabelledScreen],
    held_out: &[&LabelledScreen],
    scale: BoxScale,
    device: &Device,
) -> Result<Vec<(String, f64)>> {
    let cells = |screens: &[&LabelledScreen]| -> Vec<[u8; COORDINATES]> {
        screens.iter().flat_map(|screen| &screen.boxes).map(|&own| cell(own, scale)).collect()
    };
    let known: BTreeSet<_> = cells(trained).into_iter().collect();
    let is_seen: Vec<bool> = cells(held_out).iter().map(|cell| known.contains(cell)).collect();
    let predicted = model.labels(held_out, device).context("a screen without boxes")?;
    let truth = truth(held_out);
    let unseen = is_seen.iter().filter(|&&seen| !seen).count() as f64;
    let mut values = vec![("unseen".to_owned(), 100.0 * unseen / truth.len() as f64)];
    for (metric, part) in [("accuracy_seen", true), ("accuracy_unseen", false)] {
        let of = |labels: &[usize]| -> Vec<usize> {
            let own = labels.iter().zip(&is_seen).filter(|(_, seen)| **seen == part);
            own.map(|(label, _)| *label).collect()
        };
        let truth = of(&truth);
        if !truth.is_empty() {
            values.push((metric.to_owned(), 100.0 * accuracy(&truth, &of(&predicted))));
        }
    }
    Ok(values)
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
