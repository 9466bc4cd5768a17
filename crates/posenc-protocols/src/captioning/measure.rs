//! Scores of captions: of all widgets, and of widgets whose position occurs, or does not occur, in training.

use std::collections::{BTreeMap, BTreeSet};

use posenc_attention::captioner::BINS;
use posenc_data::generate::{Screen, Widget, caption_kinds, quantized, screen_vocabulary};
use posenc_data::interfaces::{BORDER, CaptionedWidget, Corners, WidgetScreen, WidgetScreens};
use posenc_experiments::record::Value;
use posenc_math::captions::bleu::bleu;
use posenc_math::captions::cider::Cider;
use posenc_math::captions::meteor::meteor;
use posenc_math::captions::rouge::rouge;
use posenc_math::captions::{Candidate, Scores};

/// Width and height in pixels of the canvas of RICO's trees.
const CANVAS: [f64; 2] = [1440.0, 2560.0];

/// A bin with fewer widgets is rare (Fig. 5).
const RARE: usize = 10;

fn words(caption: &[usize]) -> Vec<String> {
    let vocabulary = screen_vocabulary();
    caption.iter().map(|&word| vocabulary.get(word).copied().unwrap_or("?").to_owned()).collect()
}

/// All widgets of screens with their positions in hundredths.
pub fn widgets(screens: &[Screen]) -> impl Iterator<Item = (&Widget, [u8; 4])> {
    screens.iter().flat_map(|screen| {
        screen.widgets.iter().map(|widget| (widget, quantized(screen.nodes[widget.node].bounds)))
    })
}

/// Records metrics of captions, times 100. Returns the CIDEr scores, whose document frequencies are those of the whole corpus, also for
/// subsets.
fn record_corpus(corpus: &[Candidate], values: &mut Vec<Value>) -> Scores {
    let [first, second] = bleu(corpus);
    let cider = Cider::new(corpus).scores(corpus);
    let numbers = [
        ("bleu_1", first),
        ("bleu_2", second),
        ("rouge", rouge(corpus).mean),
        ("meteor", meteor(corpus).mean),
        ("cider", cider.mean),
    ];
    values.extend(numbers.map(|(metric, value)| Value::new(metric, 100.0 * value)));
    cider
}

/// Records metrics of the captions `said` of the widgets of `held_out`, times 100.
pub fn record(
    trained: &[Screen],
    held_out: &[Screen],
    said: &[Vec<usize>],
    values: &mut Vec<Value>,
) {
    let known: BTreeSet<[u8; 4]> = widgets(trained).map(|(_, place)| place).collect();
    let all: Vec<(&Widget, bool)> =
        widgets(held_out).map(|(widget, place)| (widget, known.contains(&place))).collect();
    let with_said = || all.iter().map(|(widget, _)| widget).zip(said);
    let corpus: Vec<Candidate> = with_said()
        .map(|(widget, said)| Candidate {
            words: words(said),
            references: widget.references.iter().map(|caption| words(caption)).collect(),
        })
        .collect();
    let cider = record_corpus(&corpus, values);
    let mut add = |metric: &str, value: f64| values.push(Value::new(metric, value));
    let is_right = |(own, said): (&&Widget, _)| f64::from(u8::from(own.right.contains(said)));
    let slots = Scores::new(with_said().map(is_right).collect());
    add("slot_accuracy", 100.0 * slots.mean);
    let kinds = caption_kinds();
    let copies = |i: usize| kinds.get(all[i].0.kind).is_some_and(|kind| kind.copies);
    add("slot_accuracy_copied", 100.0 * slots.subset(copies).mean);
    for (name, wanted) in [("seen", true), ("unseen", false)] {
        let is_own = |i: usize| all[i].1 == wanted;
        add(&format!("cider_{name}"), 100.0 * cider.subset(is_own).mean);
        add(&format!("slot_accuracy_{name}"), 100.0 * slots.subset(is_own).mean);
        let count = all.iter().filter(|(_, seen)| *seen == wanted).count();
        add(&format!("{name}_widgets"), count as f64);
        add(&format!("cider_{name}_alike"), 100.0 * alike(&cider, &all, wanted));
        add(&format!("slot_accuracy_{name}_alike"), 100.0 * alike(&slots, &all, wanted));
    }
    for (index, kind) in kinds.iter().enumerate() {
        let own = slots.subset(|i| all[i].0.kind == index);
        let value = Value::new("slot_accuracy_of_kind", 100.0 * own.mean);
        values.push(value.signal(kind.name.to_owned()));
    }
}

fn pixels(corners: Corners) -> [i64; 4] {
    [0, 1, 2, 3].map(|i| (corners[i] / BORDER * CANVAS[i % 2]).round() as i64)
}

fn hundredths(corners: Corners) -> [i64; 4] {
    quantized(corners).map(i64::from)
}

/// Records metrics of the captions `said` of the widgets of test screens, times 100.
pub fn record_tested(
    all: &WidgetScreens,
    tested: &[WidgetScreen],
    said: Vec<Vec<usize>>,
    values: &mut Vec<Value>,
) {
    let word = |word| all.vocabulary().word(word).unwrap_or("<unknown>").to_owned();
    let widgets =
        || tested.iter().flat_map(|screen| screen.widgets.iter().map(move |own| (screen, &own.0)));
    let corpus: Vec<Candidate> = widgets()
        .zip(said)
        .map(|((_, widget), said)| Candidate {
            words: said.into_iter().map(word).collect(),
            references: widget.captions.clone(),
        })
        .collect();
    values.push(Value::new("test_widgets", corpus.len() as f64));
    if corpus.is_empty() {
        return;
    }
    let cider = record_corpus(&corpus, values);
    let mut add = |metric: String, value: f64| values.push(Value::new(metric, value));
    for (suffix, of) in [("", hundredths as fn(Corners) -> [i64; 4]), ("_pixels", pixels)] {
        let known: BTreeSet<[i64; 4]> = all.trained().iter().map(|&corners| of(corners)).collect();
        let is_seen = |(screen, widget): (&WidgetScreen, &CaptionedWidget)| {
            known.contains(&of(screen.nodes[widget.node].corners))
        };
        let seen: Vec<bool> = widgets().map(is_seen).collect();
        for (name, wanted) in [("seen", true), ("unseen", false)] {
            let count = seen.iter().filter(|&&seen| seen == wanted).count();
            add(format!("{name}_widgets{suffix}"), count as f64);
            // The mean over no widgets is undefined.
            if count > 0 {
                let own = cider.subset(|i| seen.get(i) == Some(&wanted));
                add(format!("cider_{name}{suffix}"), 100.0 * own.mean);
            }
        }
    }
}

/// Mean over the kinds of captions that occur both at seen and at unseen positions, with equal weight for each kind. `wanted` selects the
/// seen or the unseen positions.
fn alike(scores: &Scores, all: &[(&Widget, bool)], wanted: bool) -> f64 {
    let mut sums: BTreeMap<usize, [(f64, usize); 2]> = BTreeMap::new();
    for ((widget, seen), score) in all.iter().zip(&scores.each) {
        let own = &mut sums.entry(widget.kind).or_default()[usize::from(*seen)];
        *own = (own.0 + score, own.1 + 1);
    }
    let both = sums.values().filter(|own| own.iter().all(|(_, count)| *count > 0));
    let means: Vec<f64> = both
        .map(|own| {
            let (sum, count) = own[usize::from(wanted)];
            sum / count as f64
        })
        .collect();
    means.iter().sum::<f64>() / means.len().max(1) as f64
}

/// Number of widgets with each value of each coordinate, and statistics of repeated positions.
pub fn positions(all: impl Iterator<Item = [u8; 4]>) -> Vec<Value> {
    let mut counts = [[0usize; BINS]; 4];
    let mut places: BTreeMap<[u8; 4], usize> = BTreeMap::new();
    for place in all {
        for (axis, value) in place.into_iter().enumerate() {
            counts[axis][usize::from(value).min(BINS - 1)] += 1;
        }
        *places.entry(place).or_default() += 1;
    }
    let mut values = Vec::new();
    for (axis, name) in ["left", "top", "right", "bottom"].into_iter().enumerate() {
        for (bin, count) in counts[axis].iter().enumerate() {
            let value = Value::new(format!("{name}_widgets"), *count as f64).unit("count");
            values.push(value.at(bin as f64));
        }
        let rare = counts[axis].iter().filter(|count| **count < RARE).count();
        values.push(Value::new("rare_bins", rare as f64).unit("%").signal(name.to_owned()));
    }
    let all: usize = places.values().sum();
    let once = places.values().filter(|count| **count == 1).count();
    values.push(Value::new("widgets", all as f64).unit("count"));
    values.push(Value::new("distinct_positions", places.len() as f64).unit("count"));
    let share = 100.0 * once as f64 / places.len().max(1) as f64;
    values.push(Value::new("once", share).unit("%"));
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use posenc_data::generate::ScreenGrammar;
    use posenc_math::random::stream;

    fn screens(purpose: &str, count: usize) -> Vec<Screen> {
        ScreenGrammar::new(1.1).screens(count, &mut stream(1, purpose))
    }

    fn measured(said: &dyn Fn(&Widget) -> Vec<usize>) -> BTreeMap<String, f64> {
        let (trained, held_out) = (screens("trained", 300), screens("held out", 60));
        let said: Vec<Vec<usize>> = widgets(&held_out).map(|(widget, _)| said(widget)).collect();
        let mut values = Vec::new();
        record(&trained, &held_out, &said, &mut values);
        let own = values.into_iter().filter(|value| value.signal.is_none());
        own.map(|value| (value.metric, value.value)).collect()
    }

    /// Catches captions that are compared with another widget's references, subsets that overlap or omit widgets, and
    /// shares that are not multiplied by 100.
    #[test]
    fn references_have_perfect_scores_and_other_captions_do_not() {
        let perfect = measured(&|widget| widget.references[0].clone());
        for (metric, least) in
            [("bleu_1", 99.99), ("bleu_2", 99.99), ("rouge", 99.99), ("slot_accuracy", 100.0)]
        {
            assert!(perfect[metric] >= least, "{metric}: {}", perfect[metric]);
        }
        for subset in ["seen", "unseen", "seen_alike", "unseen_alike", "copied"] {
            assert_eq!(perfect[&format!("slot_accuracy_{subset}")], 100.0, "{subset}");
        }
        let count: usize = screens("held out", 60).iter().map(|screen| screen.widgets.len()).sum();
        assert_eq!(perfect["seen_widgets"] + perfect["unseen_widgets"], count as f64);
        assert!(perfect["unseen_widgets"] > perfect["seen_widgets"]);
        // The mean of the subsets, weighted by counts, is that of the whole set.
        let weighted = (perfect["cider_seen"] * perfect["seen_widgets"]
            + perfect["cider_unseen"] * perfect["unseen_widgets"])
            / count as f64;
        assert!((weighted - perfect["cider"]).abs() < 1e-9);
        let nothing = measured(&|_| Vec::new());
        let same = measured(&|_| screens("held out", 1)[0].widgets[0].references[0].clone());
        for metric in ["bleu_1", "rouge", "cider", "meteor", "slot_accuracy"] {
            assert_eq!(nothing[metric], 0.0, "{metric}");
            assert!(same[metric] < 0.7 * perfect[metric], "{metric}: {}", same[metric]);
        }
    }

    /// Catches hundredths that are rounded instead of truncated, and pixels of the wrong axis.
    #[test]
    fn boxes_in_hundredths_and_in_pixels() {
        let corners = [99.0 * 360.0 / 1440.0, 99.0 * 100.0 / 2560.0, 99.0, 98.999];
        assert_eq!(pixels(corners), [360, 100, 1440, 2560]);
        assert_eq!(hundredths(corners), [24, 3, 99, 98]);
    }
}
