//! Labels of boxes on real screens, from the positions of all boxes of a screen (extension of `lff` Table 1).

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use posenc_attention::boxes::{BINS, Bounds, COORDINATES, LabelledScreen, Labeller, Masks};
use posenc_attention::optimizer::Adam;
use posenc_attention::trainer::Trainer;
use posenc_data::interfaces::{LABELLED_SCREENS, LabelledScreens};
use posenc_experiments::record::Value;
use posenc_math::classification::{accuracy, macro_f1};
use posenc_math::lff::schedule::LearningRate;
use posenc_math::random::below;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::IconLabels;
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

/// A training at one learning rate.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Training {
    /// Losses, without one that is not finite, which JSON does not have.
    losses: Vec<f64>,
    /// Accuracy and macro F1 on held-out boxes after a step, in percent.
    curve: Vec<(usize, [f64; 2])>,
    /// Labels of held-out boxes at the last point of the curve.
    predicted: Vec<usize>,
    /// Scores on validation screens after the last step, if there are any.
    validation: Option<[f64; 2]>,
    /// Why training stopped before the last step.
    diverged: Option<String>,
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
    let sizes = s.transformer().sizes();
    let fresh = |peak: f64| {
        let drawn = ["content", "encoding"].map(draw);
        let model = Labeller::new(sizes, s.dropout, classes, &s.encoding, drawn, &device);
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
            trainer.learning_rate.peak = rates[own.ended.len()];
            let next = |_| attention::next(&mut own.left, count, batches);
            let batch: Vec<&LabelledScreen> = (0..s.batch).map(next).map(|i| trained[i]).collect();
            let masks = Masks { layers, code };
            let current = &mut own.current;
            current.losses.push(trainer.step(|model| model.loss(&batch, Some(masks), &device)));
            let model = &trainer.model;
            if trainer.is_measured(s.measure_every) {
                current.predicted = model.labels(&held_out, &device);
                let scores = scores(&held_out_labels, &current.predicted);
                current.curve.push((trainer.steps(), scores));
            }
            if trainer.is_running() {
                return Ok(());
            }
            if let Some(diverged) = trainer.diverged() {
                current.losses.pop();
                current.diverged = Some(diverged);
            } else if !validation.is_empty() {
                let predicted = model.labels(&validation, &device);
                current.validation = Some(scores(&truth(&validation), &predicted));
            }
            own.ended.push(std::mem::take(current));
            operations += trainer.operations;
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
    let chosen_by = |i: &usize| own.ended[*i].validation.map_or(f64::NEG_INFINITY, |[a, _]| a);
    let values = &mut outcome.values;
    for (training, &rate) in own.ended.iter().zip(rates).filter(|_| !validation.is_empty()) {
        let [accuracy, macro_f1] = training.validation.unwrap_or([f64::NAN; 2]);
        values.push(Value::new("accuracy_validation", accuracy).unit("%").at(rate));
        values.push(Value::new("macro_f1_validation", macro_f1).unit("%").at(rate));
    }
    // The first of equally good ones.
    let best = (0..rates.len()).rev().max_by(|a, b| chosen_by(a).total_cmp(&chosen_by(b)));
    let best = best.context("this protocol needs a learning rate")?;
    let training = &own.ended[best];
    values.push(Value::new("learning_rate", rates[best]));
    let last_loss = training.diverged.as_ref().map(|_| f64::NAN);
    let losses: Vec<f64> = training.losses.iter().copied().chain(last_loss).collect();
    record_losses(&losses, "nats/box", values);
    for (step, [accuracy, macro_f1]) in &training.curve {
        values.push(Value::new("accuracy_curve", *accuracy).unit("%").at(*step as f64));
        values.push(Value::new("macro_f1_curve", *macro_f1).unit("%").at(*step as f64));
    }
    let last = training.curve.last().filter(|_| training.diverged.is_none());
    let [accuracy, macro_f1] = last.map_or([f64::NAN; 2], |(_, scores)| *scores);
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
        ("accuracy", accuracy, "%"),
        ("macro_f1", macro_f1, "%"),
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
            boxes: own().map(|own| s.scale.bounds(own.corners)).collect(),
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

/// The position of a box in whole hundredths, the resolution of embedding tables.
fn cell(bounds: Bounds, scale: BoxScale) -> [u8; 4] {
    bounds.map(|v| (v * scale.hundredths()) as u8)
}

/// Splits screens into a rest and a part with a share of them. With a share above 0 and at least two screens, neither is empty.
fn split(screens: &[usize], share: f64, rng: &mut ChaCha8Rng) -> [Vec<usize>; 2] {
    let count = screens.len();
    if share == 0.0 {
        return [screens.to_vec(), Vec::new()];
    }
    let measured = (share * count as f64).round() as usize;
    let measured = measured.clamp(1.min(count), count.saturating_sub(1).max(1));
    let mut left = screens.to_vec();
    let mut order: Vec<usize> =
        (0..count).map(|_| left.swap_remove(below(rng, left.len()))).collect();
    let mut trained = order.split_off(measured.min(count));
    order.sort_unstable();
    trained.sort_unstable();
    [trained, order]
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
    use posenc_math::random::stream;

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

    /// Catches a screen in both parts or in neither, a wrong size of the held-out part, and a split that does not depend on the seed.
    #[test]
    fn a_split_is_a_partition_that_depends_on_the_seed() {
        for (count, share, measured) in
            [(100, 0.2, 20), (2, 0.2, 1), (2, 0.9, 1), (7, 0.5, 4), (3, 0.99, 2)]
        {
            let screens: Vec<usize> = (0..count).collect();
            let [trained, held_out] = split(&screens, share, &mut stream(1, "split"));
            assert_eq!((trained.len(), held_out.len()), (count - measured, measured));
            let both: BTreeSet<usize> = trained.iter().chain(&held_out).copied().collect();
            assert_eq!(both, (0..count).collect());
        }
        let all: Vec<usize> = (0..100).collect();
        let of = |share, seed| split(&all, share, &mut stream(seed, "split"));
        assert_eq!(of(0.2, 1), of(0.2, 1));
        assert_ne!(of(0.2, 1), of(0.2, 2));
        assert_eq!(of(0.0, 1), [all.clone(), vec![]]);
    }

    /// Catches cells of another width, and a scale that moves a box to another cell.
    #[test]
    fn cells_are_whole_hundredths_at_both_scales() {
        let corners = [0.0, 12.9, 50.0, 99.0];
        for scale in [BoxScale::Hundredths, BoxScale::Shares] {
            assert_eq!(cell(scale.bounds(corners), scale), [0, 12, 50, 99]);
        }
    }
}
