//! Boxes of real screens that expressions refer to (extension of `lff` Table 1), by cross-validation.
//!
//! Random streams are named by item, seed, fold and purpose, but not by group and method. All methods of an item therefore share the
//! folds, the order of batches, initial weights and dropout masks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use posenc_attention::Device;
use posenc_attention::boxes::{
    BINS, COORDINATES, Candidate, Layers, Masks, Referrer, ReferrerSizes, ReferringScreen,
    ScreenModel as _,
};
use posenc_attention::parameters;
use posenc_attention::trainer::Trainer;
use posenc_data::interfaces::{
    CaptionVocabulary, PADDING, REFERRING_SCREENS, ReferringScreen as Read, ReferringScreens,
    UNKNOWN,
};
use posenc_experiments::record::Value;
use posenc_math::detection::boxes::overlap;
use posenc_math::lff::schedule::LearningRate;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::ReferredBox;
use crate::attention::real_boxes::{adam, batch, bounds, folds};
use crate::attention::record::{record_cost, record_losses};
use crate::attention::{self, train_state};
use crate::limits::Transformer;
use crate::streams::shared_stream;
use posenc_data::Format;
use posenc_harness::protocol::{
    Context, Emit, Estimate, Placement, Protocol, UnitResult, Workload,
};

/// Minimum number of occurrences of a word in the training expressions. Rarer words are unknown, so that the unknown token is trained.
const LEAST_WORDS: usize = 2;

/// Operations per second of a training step on one core.
const RATE: f64 = 24e9;

/// Number of special tokens of a vocabulary.
const SPECIAL: usize = 4;

/// State in a checkpoint besides the model.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    fold: usize,
    places: Vec<u64>,
    left: Vec<usize>,
    /// Losses of each fold.
    losses: Vec<Vec<f64>>,
    /// Whether the box of each screen was found; `None` for screens of later folds.
    right: Vec<Option<bool>>,
}

/// A model that trains on all folds but one.
struct Fold {
    /// All screens, encoded with the vocabularies of this fold.
    screens: Vec<ReferringScreen>,
    trained: Vec<usize>,
    measured: Vec<usize>,
    trainer: Trainer<Referrer>,
    streams: [ChaCha8Rng; 3],
}

fn run(context: &Context<'_>, s: &ReferredBox) -> Result<UnitResult> {
    let started = Instant::now();
    let mut outcome = UnitResult::default();
    let data = context.job.group.data.as_ref().context("this protocol needs `data`")?;
    let all = ReferringScreens::read(&context.data.folder(&data.set)?.join(REFERRING_SCREENS))?;
    let screens = kept(&all, s, &mut outcome.remarks)?;
    let draw = |purpose: &str| shared_stream(context, purpose);
    let names: Vec<&str> = screens.iter().map(|screen| screen.screen.as_str()).collect();
    let fold_of = folds(&names, s.folds, &mut draw("folds"));
    let nodes: Vec<Vec<Option<usize>>> = screens.iter().map(|screen| nodes(screen)).collect();
    let device = attention::device(context)?;
    let begin = |fold: usize| {
        let own = |purpose: &str| draw(&format!("fold {fold} {purpose}"));
        begin(s, fold, &screens, &nodes, &fold_of, &own, &device)
    };
    let mut fold = begin(0)?;
    let (losses, right) = (vec![Vec::new()], vec![None; screens.len()]);
    let mut own = Own { losses, right, ..Own::default() };
    train_state::resume(context, s.steps, &mut outcome.remarks, |reached, found: Own| {
        let fits = found.fold < s.folds
            && found.losses.len() == found.fold + 1
            && found.losses.last().is_some_and(|losses| losses.len() == reached.steps)
            && found.right.len() == screens.len()
            && found.left.iter().all(|&screen| screen < screens.len());
        let Some(mut other) = fits.then(|| begin(found.fold).ok()).flatten() else {
            return false;
        };
        let fits = other.trainer.restore(reached)
            && train_state::move_to(other.streams.each_mut(), &found.places);
        if fits {
            (fold, own) = (other, found);
        }
        fits
    });
    context.checkpoint.begin(s.steps * s.folds, own.losses.iter().map(Vec::len).sum());
    let mut work = 0.0;
    loop {
        while fold.trainer.is_running() {
            let [batches, layers, code] = &mut fold.streams;
            let drawn = batch(&fold.trained, &mut own.left, s.batch, batches);
            let drawn: Vec<&ReferringScreen> =
                drawn.into_iter().map(|i| &fold.screens[i]).collect();
            let masks = Masks { layers, code };
            let loss = fold.trainer.step(|model| model.loss(&drawn, Some(masks), &device));
            own.losses.last_mut().context("no fold")?.push(loss);
            train_state::keep(context, || {
                let places = train_state::places(fold.streams.each_ref());
                (fold.trainer.state(), Own { places, ..own.clone() })
            });
        }
        work += fold.trainer.operations();
        if let Some(diverged) = fold.trainer.diverged() {
            outcome.remarks.push(format!("fold {}: {diverged}", own.fold));
            // Screens without a choice make the means NaN.
            break;
        }
        let measured: Vec<&ReferringScreen> =
            fold.measured.iter().map(|&i| &fold.screens[i]).collect();
        let choices = fold.trainer.model.choices(&measured, &device);
        let choices = choices.context("a screen is not a valid input of the model")?;
        for ((&i, screen), choice) in fold.measured.iter().zip(measured).zip(choices) {
            own.right[i] = Some(screen.referred == choice);
        }
        own.fold += 1;
        if own.fold == s.folds {
            break;
        }
        fold = begin(own.fold)?;
        own.left.clear();
        own.losses.push(Vec::new());
    }
    outcome.earlier = context.checkpoint.earlier();
    let values = &mut outcome.values;
    record_losses(&own.losses, "nats/screen", values);
    record(&screens, &own.right, values);
    let mut add = |metric: &str, value: f64| values.push(Value::new(metric, value).unit("count"));
    add("params", parameters::count(&fold.trainer.model) as f64);
    let sides = [BINS; COORDINATES];
    add("encoding_params", s.encoding.parameter_count(&sides, s.width) as f64);
    record_cost(started.elapsed().as_secs_f64(), outcome.earlier, work, values);
    Ok(outcome)
}

/// Screens with at most `max_boxes` boxes. A remark reports what is left out.
fn kept<'a>(
    all: &'a ReferringScreens,
    s: &ReferredBox,
    remarks: &mut Vec<String>,
) -> Result<Vec<&'a Read>> {
    let fits = |screen: &&Read| screen.objects.len() <= s.max_boxes;
    let screens: Vec<&Read> = all.screens.iter().filter(fits).collect();
    let names: BTreeSet<&str> = screens.iter().map(|screen| screen.screen.as_str()).collect();
    ensure!(
        names.len() >= s.folds,
        "{REFERRING_SCREENS}: {} screens have at most {} boxes; at least {} screens are required (`protocol.folds`)",
        names.len(),
        s.max_boxes,
        s.folds
    );
    let cut = screens.iter().filter(|screen| screen.words.len() > s.max_len).count();
    remarks.push(format!(
        "{REFERRING_SCREENS}: skipped {} of {} screens (more than {} boxes); cut {cut} expressions to {} words",
        all.screens.len() - screens.len(),
        all.screens.len(),
        s.max_boxes,
        s.max_len
    ));
    remarks.extend(all.remark());
    Ok(screens)
}

/// The node that overlaps each box of a screen most; the first one of ties, and `None` without an overlap.
fn nodes(screen: &Read) -> Vec<Option<usize>> {
    let best = |object: &[f64; 4]| {
        let mut best = (None, 0.0);
        for (i, node) in screen.candidates.iter().enumerate() {
            let own = overlap(*object, node.corners);
            if own > best.1 {
                best = (Some(i), own);
            }
        }
        best.0
    };
    screen.objects.iter().map(best).collect()
}

/// A vocabulary of up to `most` words, the most frequent of those that occur at least `least` times in `all`.
fn vocabulary<'a>(
    all: impl Iterator<Item = &'a str> + Clone,
    least: usize,
    most: usize,
) -> CaptionVocabulary {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    all.clone().for_each(|word| *counts.entry(word).or_default() += 1);
    let size = counts.values().filter(|count| **count >= least).count();
    CaptionVocabulary::new(all, size.min(most) + SPECIAL)
}

/// A new model of a fold, and the screens as its inputs. The vocabularies of words and classes come from its training screens.
fn begin(
    s: &ReferredBox,
    fold: usize,
    screens: &[&Read],
    nodes: &[Vec<Option<usize>>],
    fold_of: &[usize],
    draw: &dyn Fn(&str) -> ChaCha8Rng,
    device: &Device,
) -> Result<Fold> {
    let (measured, trained): (Vec<usize>, Vec<usize>) =
        (0..screens.len()).partition(|&i| fold_of[i] == fold);
    let read = || trained.iter().map(|&i| screens[i]);
    let words = read().flat_map(|screen| screen.words.iter().map(String::as_str));
    let words = vocabulary(words, LEAST_WORDS, usize::MAX - SPECIAL);
    let classes = read().flat_map(|screen| screen.candidates.iter().map(|n| n.class.as_str()));
    let classes = vocabulary(classes, 1, s.classes);
    let inputs =
        screens.iter().zip(nodes).map(|(screen, nodes)| input(screen, nodes, &words, &classes, s));
    let inputs = inputs.collect();
    let sizes = ReferrerSizes {
        layers: layers(s),
        vocabulary: words.size(),
        max_len: s.max_len,
        classes: classes.size(),
    };
    let (mut content, mut code) = (draw("content"), draw("encoding"));
    let model = Referrer::new(&sizes, &s.encoding, &mut content, &mut code, device);
    let model = attention::accepted(model)?;
    let learning_rate =
        LearningRate { peak: s.learning_rate, warm_up: s.warm_up, decay: s.decay, steps: s.steps };
    let trainer = Trainer::new(model, adam(s.beta2, s.weight_decay), learning_rate);
    let streams = [draw("batches"), draw("dropout"), draw("dropout of the code")];
    Ok(Fold { screens: inputs, trained, measured, trainer, streams })
}

/// A screen as input of a model: its boxes with the features of the nodes that overlap them most.
fn input(
    screen: &Read,
    nodes: &[Option<usize>],
    words: &CaptionVocabulary,
    classes: &CaptionVocabulary,
    s: &ReferredBox,
) -> ReferringScreen {
    let said: BTreeSet<&String> = screen.words.iter().collect();
    let found = |own: &[String]| {
        let own: BTreeSet<&String> = own.iter().collect();
        said.intersection(&own).count() as f64
    };
    let candidate = |(object, node): (&[f64; 4], &Option<usize>)| {
        let bounds = bounds(*object, s.scale);
        match node.and_then(|node| screen.candidates.get(node)) {
            None => Candidate { class: PADDING, found: [0.0; 2], bounds },
            Some(node) => Candidate {
                class: classes.number(&node.class).unwrap_or(UNKNOWN),
                found: [found(&node.text), found(&node.resource)],
                bounds,
            },
        }
    };
    let mut numbers = words.text(&screen.words);
    numbers.truncate(s.max_len);
    ReferringScreen {
        words: numbers,
        candidates: screen.objects.iter().zip(nodes).map(candidate).collect(),
        referred: screen.object,
    }
}

/// Records the accuracy in percent: of all screens, and of those whose expression has, or does not have, a spatial word.
fn record(screens: &[&Read], right: &[Option<bool>], values: &mut Vec<Value>) {
    let spatial: Vec<bool> = screens.iter().map(|screen| screen.is_spatial()).collect();
    let mean = |wanted: &dyn Fn(usize) -> bool| {
        let own = right.iter().enumerate().filter(|(i, _)| wanted(*i));
        let scores: Vec<f64> = own
            .map(|(_, right)| right.map_or(f64::NAN, |right| if right { 100.0 } else { 0.0 }))
            .collect();
        (scores.iter().sum::<f64>() / scores.len() as f64, scores.len())
    };
    for (name, (score, count)) in [
        ("", mean(&|_| true)),
        ("_spatial", mean(&|i| spatial[i])),
        ("_other", mean(&|i| !spatial[i])),
    ] {
        // The accuracy of no screens is undefined.
        if count > 0 {
            values.push(Value::new(format!("accuracy{name}"), score).unit("%"));
        }
        values.push(Value::new(format!("screens{name}"), count as f64).unit("count"));
    }
    let chance = screens.iter().map(|screen| 100.0 / screen.objects.len() as f64).sum::<f64>();
    values.push(Value::new("chance", chance / screens.len() as f64).unit("%"));
}

fn layers(s: &ReferredBox) -> Layers {
    Layers { sizes: s.transformer().sizes(), dropout: s.dropout }
}

impl Protocol for ReferredBox {
    fn reads(&self) -> Option<Format> {
        Some(Format::ReferringScreens)
    }

    fn placement(&self) -> Placement {
        attention::PLACEMENT
    }

    fn estimate_unit(&self, _: &Workload<'_>) -> Estimate {
        let step = layers(self).operations(self.batch, self.max_len + self.max_boxes);
        Estimate::training((self.folds * self.steps) as f64 * step, RATE)
    }

    fn memory(&self, _: &Workload<'_>) -> f64 {
        Transformer { length: self.max_boxes + self.max_len, ..self.transformer() }.bytes()
    }

    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        emit(0, run(context, self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posenc_data::interfaces::Candidate as Node;
    use posenc_math::random::stream;

    fn settings() -> ReferredBox {
        let text = "{ encoding: { features: none }, max_boxes: 8, max_len: 4, classes: 1, folds: 2, width: 4, heads: 1, \
                    feed_forward: 4, layers: 1, batch: 1, steps: 1, learning_rate: 0.01, warm_up: 0 }";
        serde_yaml::from_str(text).unwrap()
    }

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Two boxes with a node each, a node around both, and a box without a node.
    fn screen(expression: &str, class: &str) -> Read {
        let node = |corners, class: &str, text, resource| Node {
            corners,
            class: class.to_owned(),
            text: words(text),
            resource: words(resource),
        };
        Read {
            screen: expression.to_owned(),
            expression: expression.to_owned(),
            words: words(expression),
            objects: vec![
                [0.0, 0.0, 10.0, 10.0],
                [20.0, 0.0, 30.0, 10.0],
                [60.0, 60.0, 70.0, 70.0],
            ],
            object: 1,
            candidates: vec![
                node([0.0, 0.0, 30.0, 10.0], "LIST", "", ""),
                node([0.0, 0.0, 9.0, 10.0], class, "the search the", "search icon"),
                node([20.0, 0.0, 30.0, 10.0], "RARE", "the", "menu"),
            ],
            referred: Some(2),
            overlap: 1.0,
        }
    }

    /// Catches a container node that replaces a box's own node, words that are counted twice or in another node, and classes with the
    /// number of another class.
    #[test]
    fn nodes_of_boxes_are_found() {
        let screen = screen("the search the icon far away", "TEXT");
        let nodes = nodes(&screen);
        assert_eq!(nodes, [Some(1), Some(2), None]);
        let words = vocabulary(["the", "the", "icon"].into_iter(), 2, 100);
        let classes = vocabulary(["TEXT", "TEXT", "RARE"].into_iter(), 1, 1);
        let read = input(&screen, &nodes, &words, &classes, &settings());
        let the = words.number("the").unwrap();
        assert_eq!(read.words, [the, UNKNOWN, the, UNKNOWN]);
        let told: Vec<_> = read.candidates.iter().map(|c| (c.class, c.found)).collect();
        let text = classes.number("TEXT").unwrap();
        assert_eq!(told, [(text, [2.0, 2.0]), (UNKNOWN, [1.0, 0.0]), (PADDING, [0.0, 0.0])]);
        assert_eq!((read.referred, read.candidates[1].bounds), (1, screen.objects[1]));
    }

    /// Catches words and classes that come from the held-out fold.
    #[test]
    fn vocabularies_come_from_the_training_folds() {
        let own = [("left left", "A"), ("right right", "B"), ("right right", "B")];
        let all: Vec<Read> = own.iter().map(|(words, class)| screen(words, class)).collect();
        let screens: Vec<&Read> = all.iter().collect();
        let nodes: Vec<_> = all.iter().map(nodes).collect();
        let device = posenc_attention::cpu();
        let known = |fold: usize| {
            let mut s = settings();
            s.classes = 3;
            let draw = |purpose: &str| stream(1, purpose);
            let fold = begin(&s, fold, &screens, &nodes, &[0, 1, 1], &draw, &device).unwrap();
            let is_known = |screen: &ReferringScreen| {
                (screen.words[0] != UNKNOWN, screen.candidates[0].class != UNKNOWN)
            };
            (fold.trained.clone(), fold.screens.iter().map(is_known).collect::<Vec<_>>())
        };
        let (yes, no) = ((true, true), (false, false));
        assert_eq!(known(0), (vec![1, 2], vec![no, yes, yes]));
        assert_eq!(known(1), (vec![0], vec![yes, no, no]));
    }
}
