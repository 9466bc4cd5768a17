//! Labels of boxes on real screens, from the positions of all boxes of a screen (extension of `lff` Table 1).
//!
//! Random streams are named by item, seed and purpose, but not by group and method. All methods of an item therefore share the split
//! into training and held-out screens, the order of batches, initial weights and dropout masks. The stream of validation screens is the
//! same for all seeds.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
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

/// A training at one learning rate.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Training {
    /// Losses, without one that is not finite, which JSON does not have.
    losses: Vec<f64>,
    curve: Vec<Point>,
    /// Labels of held-out boxes at the last point of the curve.
    predicted: Vec<usize>,
    /// Scores on validation screens after the last step, if there are any.
    validation: Option<[f64; 2]>,
    /// Why training stopped before the last step.
    diverged: Option<String>,
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
    ensure!(
        !trained.is_empty(),
        "{LABELLED_SCREENS}: no screens are left for training; lower `protocol.held_out` or `protocol.validation`"
    );
    let device = attention::device(context)?;
    let layers = Layers { sizes: s.transformer().sizes(), dropout: s.dropout };
    let fresh = |peak: f64| {
        let (mut content, mut code) = (draw("content"), draw("encoding"));
        let model = Labeller::new(layers, classes, &s.encoding, &mut content, &mut code, &device);
        let mut adam = Adam::new(0.9, s.beta2, 1e-8);
        adam.weight_decay = s.weight_decay;
        let rate = LearningRate { peak, warm_up: s.warm_up, decay: s.decay, steps: s.steps };
        Trainer::new(model, adam, rate)
    };
    let streams = || [draw("batches"), draw("dropout"), draw("dropout of the code")];
    let rates = &s.learning_rates;
    let mut trainer = fresh(rates[0]);
    let (mut own, mut operations) = (Own::default(), 0.0);
    let (count, held_out_labels) = (trained.len(), truth(&held_out));
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
            let batch: Vec<&LabelledScreen> = (0..s.batch).map(next).map(|i| trained[i]).collect();
            let masks = Masks { layers, code };
            let current = &mut own.current;
            current.losses.push(trainer.step(|model| model.loss(&batch, Some(masks), &device)));
            let model = &trainer.model;
            if trainer.is_measured(s.measure_every) {
                current.predicted = model.labels(&held_out, &device);
                let [accuracy, macro_f1] = scores(&held_out_labels, &current.predicted);
                current.curve.push(Point { step: trainer.steps(), accuracy, macro_f1 });
            }
            if trainer.is_running() {
                return Ok(());
            }
            if let Some(diverged) = trainer.diverged() {
                current.losses.pop();
                current.diverged = Some(diverged.to_string());
            } else if !validation.is_empty() {
                let predicted = model.labels(&validation, &device);
                current.validation = Some(scores(&truth(&validation), &predicted));
            }
            own.ended.push(std::mem::take(current));
            operations += trainer.operations();
            if let Some(&rate) = rates.get(own.ended.len()) {
                own.left.clear();
                *trainer = fresh(rate);
                *drawn = streams();
            }
            Ok(())
        },
    )?;
    for (Training { diverged, .. }, rate) in own.ended.iter().zip(rates) {
        outcome.remarks.extend(diverged.as_ref().map(|why| format!("learning rate {rate}: {why}")));
    }
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
    let last_loss = training.diverged.as_ref().map(|_| f64::NAN);
    let losses: Vec<f64> = training.losses.iter().copied().chain(last_loss).collect();
    record_losses(&losses, "nats/box", values);
    for point in &training.curve {
        let step = point.step as f64;
        values.push(Value::new("accuracy_curve", point.accuracy).unit("%").at(step));
        values.push(Value::new("macro_f1_curve", point.macro_f1).unit("%").at(step));
    }
    let nothing = Point { step: 0, accuracy: f64::NAN, macro_f1: f64::NAN };
    let last = training.curve.last().filter(|_| training.diverged.is_none()).unwrap_or(&nothing);
    if training.diverged.is_none() {
        let cells = |screens: &[&LabelledScreen]| -> Vec<[u8; COORDINATES]> {
            screens.iter().flat_map(|screen| &screen.boxes).map(|&own| cell(own, s.scale)).collect()
        };
        let known: BTreeSet<_> = cells(&trained).into_iter().collect();
        let is_seen = cells(&held_out).into_iter().map(|cell| known.contains(&cell)).collect();
        record_seen(&held_out_labels, &training.predicted, is_seen, values);
    }
    let encoding_params = s.encoding.parameter_count(&[BINS; COORDINATES], s.width);
    let numbers = [
        ("accuracy", last.accuracy, "%"),
        ("macro_f1", last.macro_f1, "%"),
        ("majority", majority(&trained, &held_out, classes), "%"),
        ("held_out_boxes", held_out_labels.len() as f64, "count"),
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

fn truth(screens: &[&LabelledScreen]) -> Vec<usize> {
    screens.iter().flat_map(|screen| screen.labels.iter().copied()).collect()
}

fn scores(truth: &[usize], predicted: &[usize]) -> [f64; 2] {
    [accuracy(truth, predicted), macro_f1(truth, predicted)].map(|share| 100.0 * share)
}

/// Records the accuracy of boxes at positions with and without a training box, and the share of the latter. A part without boxes has no
/// accuracy.
fn record_seen(truth: &[usize], predicted: &[usize], is_seen: Vec<bool>, values: &mut Vec<Value>) {
    let mut parts = [const { (Vec::new(), Vec::new()) }; 2];
    for ((&truth, &predicted), seen) in truth.iter().zip(predicted).zip(is_seen) {
        let (truths, predictions) = &mut parts[usize::from(!seen)];
        truths.push(truth);
        predictions.push(predicted);
    }
    let unseen = 100.0 * parts[1].0.len() as f64 / truth.len() as f64;
    values.push(Value::new("unseen", unseen).unit("%"));
    for (metric, (truth, predicted)) in ["accuracy_seen", "accuracy_unseen"].into_iter().zip(parts)
    {
        if !truth.is_empty() {
            values.push(Value::new(metric, 100.0 * accuracy(&truth, &predicted)).unit("%"));
        }
    }
}

/// Percentage of the boxes of `measured` with the most frequent label of `trained`.
fn majority(trained: &[&LabelledScreen], measured: &[&LabelledScreen], classes: usize) -> f64 {
    let mut counts = vec![0usize; classes];
    truth(trained).into_iter().for_each(|label| counts[label] += 1);
    let most = (0..classes).max_by_key(|&label| counts[label]).unwrap_or(0);
    let truth = truth(measured);
    100.0 * accuracy(&truth, &vec![most; truth.len()])
}

trains!(IconLabels, reads LabelledScreens);

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches seen and unseen boxes that are swapped or counted together, and an accuracy of no boxes.
    #[test]
    fn seen_and_unseen_boxes_are_scored_apart() {
        let recorded = |is_seen: [bool; 4]| {
            let mut values = Vec::new();
            record_seen(&[0, 1, 2, 2], &[0, 1, 0, 2], is_seen.to_vec(), &mut values);
            values.into_iter().map(|v| (v.metric, v.value)).collect::<Vec<_>>()
        };
        let expected =
            [("unseen", 75.0), ("accuracy_seen", 100.0), ("accuracy_unseen", 100.0 * (2.0 / 3.0))];
        assert_eq!(recorded([true, false, false, false]), expected.map(|(m, v)| (m.to_owned(), v)));
        let expected = [("unseen", 0.0), ("accuracy_seen", 75.0)];
        assert_eq!(recorded([true; 4]), expected.map(|(m, v)| (m.to_owned(), v)));
    }
}
