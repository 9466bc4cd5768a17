//! Properties of generated screens, checked on samples. A test of the generators pins the bytes of 300 screens, so that captions stay
//! those of the boxes.

use std::collections::{BTreeMap, BTreeSet};

use posenc_math::random::stream;

use super::captions::{Caption, captions, column, key, ordinal, ordinal_or_last};
use super::*;

fn screens(label: &str, jitter: f64, count: usize) -> Vec<Screen> {
    ScreenGrammar::new(jitter).screens(count, &mut stream(7, label))
}

/// Catches boxes that leave the canvas or are empty, wrong numbers of nodes, words on labelled nodes, repeated words, widgets that are
/// labelled twice, and kinds, depths or words out of range.
#[test]
fn screens_are_well_formed() {
    for jitter in [-1.0, 0.0, 1.0, 1.1, 2.0, f64::INFINITY, f64::NAN] {
        for screen in screens("form", jitter, 1500) {
            assert!((LEAST_NODES..=MAX_NODES).contains(&screen.nodes.len()));
            for node in &screen.nodes {
                let [left, top, right, bottom] = node.bounds;
                assert!(0.0 <= left && left < right && right <= 99.0, "{jitter} {node:?}");
                assert!(0.0 <= top && top < bottom && bottom <= 99.0, "{jitter} {node:?}");
                assert!(node.kind < NODE_KINDS && (1..=MAX_DEPTH).contains(&node.depth));
                assert_eq!(node.word > 0, node.kind == NodeKind::Text as usize);
                assert!(node.word <= CONTEXT_WORDS);
            }
            let words: Vec<usize> =
                screen.nodes.iter().map(|node| node.word).filter(|&word| word > 0).collect();
            assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), words.len());
            let labelled: BTreeSet<usize> = screen.widgets.iter().map(|w| w.node).collect();
            assert!(labelled.len() == screen.widgets.len() && (3..=4).contains(&labelled.len()));
            for &node in &labelled {
                assert!(screen.nodes[node].word == 0 && screen.nodes[node].is_clickable);
            }
        }
    }
}

/// Catches captions that are too long, have unknown words, copy a word that is not on the screen or fit two widgets, references that are
/// wrong or repeated, and paraphrases that never occur.
#[test]
fn captions_are_words_and_references_are_right() {
    let vocabulary = screen_vocabulary();
    assert_eq!(vocabulary.len(), 149);
    assert_eq!(vocabulary.iter().collect::<BTreeSet<_>>().len(), vocabulary.len());
    assert_eq!([context_token(1), context_token(16)].map(|i| vocabulary[i]), ["music", "backup"]);
    let mut drawn = BTreeSet::new();
    let all = screens("words", 1.1, 2000);
    for (screen, widget) in all.iter().flat_map(|s| s.widgets.iter().map(move |w| (s, w))) {
        let kind = &caption_kinds()[widget.kind];
        let on_screen = |token| screen.nodes.iter().any(|n| context_token(n.word) == token);
        assert_eq!(screen.widgets.iter().filter(|other| other.right == widget.right).count(), 1);
        assert_eq!(widget.references.len(), 3);
        assert_eq!(widget.references.iter().collect::<BTreeSet<_>>().len(), 3);
        assert!(widget.references.iter().all(|caption| widget.right.contains(caption)));
        assert_eq!(widget.right.len(), kind.phrases.len());
        for (caption, phrase) in widget.right.iter().zip(kind.phrases) {
            assert!((1..=MAX_CAPTION_TOKENS).contains(&caption.len()));
            assert!(caption.iter().all(|&token| (4..149).contains(&token)));
            let text = caption_text(caption);
            for (word, own) in text.split(' ').zip(phrase.split(' ')) {
                assert!(own == word || own == "*", "{text}");
            }
            let copied: Vec<usize> = caption.iter().copied().filter(|&token| token < 20).collect();
            assert_eq!(copied.len(), usize::from(kind.copies), "{text}");
            assert!(copied.into_iter().all(on_screen), "{text}");
            if widget.references.contains(caption) {
                drawn.insert(*phrase);
            }
        }
    }
    assert_eq!(drawn.len(), caption_kinds().iter().map(|kind| kind.phrases.len()).sum::<usize>());
    assert_eq!(caption_text(&[0, 149, usize::MAX]), "<pad> <unknown> <unknown>");
}

/// Every caption that a screen can have, with its kind and slots.
fn all_captions() -> Vec<(usize, Vec<usize>, Vec<usize>)> {
    let words: Vec<Vec<usize>> =
        (1..=CONTEXT_WORDS).map(|word| vec![context_token(word)]).collect();
    let one = |slots: Vec<usize>| slots.into_iter().map(|slot| vec![slot]).collect::<Vec<_>>();
    let ordinals = || (0..4).map(ordinal);
    let cells = (2..=4).flat_map(|columns| {
        let cell = move |i: usize| vec![column(i % columns, columns), ordinal(i / columns)];
        (0..3 * columns).map(cell)
    });
    use Caption::*;
    let mut kinds = vec![
        (Tab, one(ordinals().chain([ordinal_or_last(4, 5)]).collect())),
        (Sheet, one(ordinals().take(3).chain([ordinal_or_last(3, 4)]).collect())),
        (Item, one(ordinals().collect())),
        (Key, one((0..12).map(key).collect())),
        (Image, cells.collect::<BTreeSet<_>>().into_iter().collect()),
    ];
    kinds.extend([Delete, Setting, Field, Cancel, Accept, Later].map(|kind| (kind, words.clone())));
    let plain = [Back, More, Search, Share, Previous, Play, Next, Shuffle, Repeat, Submit, Close];
    kinds.extend(plain.map(|kind| (kind, vec![Vec::new()])));
    let mut all = Vec::new();
    for (caption, fills) in kinds {
        for slots in fills {
            for right in captions(caption, &slots) {
                all.push((caption as usize, slots.clone(), right));
            }
        }
    }
    all
}

/// Catches a caption that is correct for two kinds or two slot fillings, a slot word in a fixed phrase, a kind without three or four
/// paraphrases, and a caption that [`all_captions`] lacks.
#[test]
fn captions_are_unambiguous() {
    let mut meanings = BTreeMap::new();
    for (kind, slots, caption) in all_captions() {
        let text = caption_text(&caption);
        assert!(meanings.insert(caption, (kind, slots)).is_none(), "{text} says two things");
    }
    for widget in screens("captions", 1.1, 2000).iter().flat_map(|screen| &screen.widgets) {
        for caption in &widget.right {
            assert_eq!(meanings[caption].0, widget.kind, "{}", caption_text(caption));
        }
    }
    // The words of slots come right after the special tokens.
    let slot_words = &screen_vocabulary()[4..44];
    assert_eq!((slot_words[0], slot_words[39]), ("music", "hash"));
    for kind in caption_kinds() {
        assert!((3..=4).contains(&kind.phrases.len()));
        let mut words = kind.phrases.iter().flat_map(|phrase| phrase.split(' '));
        assert!(words.all(|word| !slot_words.contains(&word)), "{}", kind.name);
    }
}

/// Catches wrong rounding, and bounds that leave the range of the type.
#[test]
fn quantized_boxes_are_truncated() {
    assert_eq!(quantized([0.0, 0.999, 98.999, 99.0]), [0, 0, 98, 99]);
    assert_eq!(quantized([-3.0, f64::NAN, f64::INFINITY, 54.5]), [0, 0, 99, 54]);
}

/// Truncated boxes of all labelled widgets.
fn labelled_boxes(screens: &[Screen]) -> Vec<[u8; 4]> {
    let of = |screen: &Screen| {
        let of = |w: &Widget| quantized(screen.nodes[w.node].bounds);
        screen.widgets.iter().map(of).collect::<Vec<_>>()
    };
    screens.iter().flat_map(of).collect()
}

/// Share of the widgets of 1,000 test screens whose box no widget of 4,000 training screens has.
fn unseen_share(jitter: f64) -> f64 {
    let train = labelled_boxes(&screens("train", jitter, 4000));
    let test = labelled_boxes(&screens("test", jitter, 1000));
    let known: BTreeSet<[u8; 4]> = train.into_iter().collect();
    test.iter().filter(|bounds| !known.contains(*bounds)).count() as f64 / test.len() as f64
}

/// Catches intervals for which the share of test widgets with an unseen box leaves 55–65 % (59 % in the paper's data), and a jitter that
/// does not increase this share.
#[test]
fn three_fifths_of_test_boxes_are_unseen() {
    let shares = [0.25, 0.6, 1.0, 1.1].map(unseen_share);
    assert!((0.55..0.65).contains(&shares[3]), "{shares:?}");
    assert!(shares.is_sorted() && shares[0] < 0.25, "{shares:?}");
}
