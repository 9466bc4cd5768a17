use std::collections::{BTreeMap, BTreeSet};

use posenc_math::random::stream;

use super::captions::{Caption, captions, column, key, ordinal, ordinal_or_last};
use super::*;

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
    let screens = ScreenGrammar::new(1.1).screens(2000, &mut stream(7, "captions"));
    for widget in screens.iter().flat_map(|screen| &screen.widgets) {
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

fn tokens(text: &str) -> Vec<usize> {
    let token = |word| screen_vocabulary().iter().position(|entry| *entry == word).unwrap();
    text.split(' ').map(token).collect()
}

fn tuples(text: &str) -> BTreeSet<String> {
    caption_tuples(&tokens(text)).into_iter().map(|tuple| tuple.join(" ")).collect()
}

/// Catches attributes of the wrong object, lost relations, and captions outside of the grammar that yield nothing or cause a panic.
#[test]
fn tuples_are_objects_attributes_and_relations() {
    let set = |tuples: &[&str]| tuples.iter().map(|&t| t.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(
        tuples("open leftmost image in third row"),
        set(&["image", "image open", "image leftmost", "row", "row third", "image in row"])
    );
    assert_eq!(tuples("play"), set(&["play"]));
    assert_eq!(tuples("toggle shuffle"), set(&["shuffle", "shuffle toggle"]));
    assert_eq!(tuples("go back"), set(&["back", "back go"]));
    assert_eq!(tuples("remind me about news later"), set(&["news", "news remind", "news later"]));
    assert_eq!(
        tuples("dismiss the city dialog"),
        set(&["city", "dialog", "dialog city", "dialog dismiss"])
    );
    // Outside of the grammar.
    assert_eq!(tuples("the of in"), set(&[]));
    assert_eq!(tuples("first first the tab tab"), set(&["tab", "tab first", "tab tab"]));
    assert_eq!(caption_tuples(&[]), Vec::<Vec<String>>::new());
    let mut noisy = tokens("<start> delete <unknown> news <end> <pad>");
    noisy.push(usize::MAX);
    let expected = ["news", "news delete"].map(|t| t.split(' ').map(str::to_owned).collect());
    assert_eq!(caption_tuples(&noisy), Vec::<Vec<String>>::from(expected));
}

/// Catches a caption without tuples, and tuples that lose a slot: captions with different slot words must have different tuples.
#[test]
fn tuples_keep_the_slots() {
    let mut stated = BTreeMap::new();
    for (kind, slots, caption) in all_captions() {
        let tuples = caption_tuples(&caption);
        assert!(!tuples.is_empty());
        for &slot in &slots {
            let word = screen_vocabulary()[slot];
            assert!(tuples.iter().flatten().any(|entry| entry == word), "{tuples:?}");
        }
        let known = stated.entry(tuples).or_insert((kind, slots.clone()));
        assert_eq!(known.1, slots, "{}", caption_text(&caption));
    }
}
