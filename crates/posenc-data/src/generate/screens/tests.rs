//! Properties of generated screens, checked on samples. A test of the generators pins the bytes of 300 screens.

use std::collections::{BTreeMap, BTreeSet};

use posenc_math::random::stream;

use super::captions::{Caption, captions, column, key, ordinal, ordinal_or_last};
use super::*;

fn screens(label: &str, jitter: f64, count: usize) -> Vec<Screen> {
    ScreenGrammar::new(jitter).screens(count, &mut stream(7, label))
}

/// Derives captions from the boxes, types and words of a screen alone, as a person would.
struct Reader<'a>(&'a [ScreenNode]);

impl Reader<'_> {
    fn middle(&self, node: usize, axis: usize) -> f64 {
        0.5 * (self.0[node].bounds[axis] + self.0[node].bounds[axis + 2])
    }

    fn nodes(&self, kind: NodeKind) -> Vec<usize> {
        (0..self.0.len()).filter(|&i| self.0[i].kind == kind as usize).collect()
    }

    fn contains(&self, outer: usize, node: usize) -> bool {
        let b = self.0[outer].bounds;
        let (x, y) = (self.middle(node, 0), self.middle(node, 1));
        b[0] <= x && x <= b[2] && b[1] <= y && y <= b[3]
    }

    fn is_level(&self, a: usize, b: usize) -> bool {
        (self.middle(a, 1) - self.middle(b, 1)).abs() < 1e-6
    }

    /// Rank of a node among others by the middle along an axis.
    fn rank(&self, node: usize, among: &[usize], axis: usize) -> usize {
        let own = self.middle(node, axis);
        among.iter().filter(|&&i| self.middle(i, axis) < own - 1e-6).count()
    }

    /// Distinct rows or columns of nodes.
    fn levels(&self, among: &[usize], axis: usize) -> Vec<f64> {
        let mut middles: Vec<f64> = among.iter().map(|&i| self.middle(i, axis)).collect();
        middles.sort_by(f64::total_cmp);
        middles.dedup_by(|a, b| (*a - *b).abs() < 1e-6);
        middles
    }

    fn place(&self, node: usize, among: &[usize], axis: usize) -> (usize, usize) {
        let levels = self.levels(among, axis);
        let own = self.middle(node, axis);
        (levels.iter().filter(|&&level| level < own - 1e-6).count(), levels.len())
    }

    /// Word of the text that is nearest by `distance`.
    fn word(&self, distance: impl Fn(usize) -> f64) -> usize {
        let texts = self.nodes(NodeKind::Text);
        let nearest = texts.into_iter().min_by(|&a, &b| distance(a).total_cmp(&distance(b)));
        context_token(self.0[nearest.unwrap()].word)
    }

    fn panel(&self, node: usize) -> Option<usize> {
        let panels = self.nodes(NodeKind::Container);
        panels.into_iter().find(|&i| !self.0[i].is_clickable && self.contains(i, node))
    }

    fn read(&self, node: usize) -> (Caption, Vec<usize>) {
        let bounds = self.0[node].bounds;
        let level = |i: usize| (self.middle(i, 1) - self.middle(node, 1)).abs();
        let same_size = |&i: &usize| {
            let size = |i: usize, axis| self.0[i].bounds[axis + 2] - self.0[i].bounds[axis];
            (0..2).all(|axis| (size(i, axis) - size(node, axis)).abs() < 1e-6)
        };
        use NodeKind::*;
        let kind = [Text, Icon, Button, Field, Image, Check, Switch, Container][self.0[node].kind];
        let mut alike = self.nodes(kind);
        match kind {
            NodeKind::Text => panic!("a text is labelled"),
            NodeKind::Icon => {
                let title = self.nodes(NodeKind::Text).into_iter();
                let title =
                    title.min_by(|&a, &b| self.middle(a, 1).total_cmp(&self.middle(b, 1))).unwrap();
                if self.is_level(title, node) {
                    if bounds[2] <= self.0[title].bounds[0] {
                        return (Caption::Back, Vec::new());
                    }
                    alike.retain(|&i| self.is_level(i, title));
                    let from_right = alike.len() - 1 - self.rank(node, &alike, 0);
                    let all = [Caption::More, Caption::Search, Caption::Share];
                    return (all[from_right], Vec::new());
                }
                if self.panel(node).is_some() {
                    return (Caption::Close, Vec::new());
                }
                alike.retain(|&i| self.is_level(i, node));
                if alike.len() == 1 {
                    return (Caption::Delete, vec![self.word(level)]);
                }
                let all = [
                    Caption::Shuffle,
                    Caption::Previous,
                    Caption::Play,
                    Caption::Next,
                    Caption::Repeat,
                ];
                let first = if alike.len() == 5 { 0 } else { 1 };
                (all[first + self.rank(node, &alike, 0)], Vec::new())
            }
            NodeKind::Button => {
                if let Some(panel) = self.panel(node) {
                    alike.retain(|&i| self.contains(panel, i));
                    let all = [Caption::Later, Caption::Cancel, Caption::Accept];
                    let caption = all[3 - alike.len() + self.rank(node, &alike, 0)];
                    let corner = |i: usize| {
                        let [a, b] = [self.0[i].bounds, self.0[panel].bounds];
                        if self.contains(panel, i) { a[1] - b[1] } else { f64::INFINITY }
                    };
                    return (caption, vec![self.word(corner)]);
                }
                alike.retain(same_size);
                match alike.len() {
                    1 => (Caption::Submit, Vec::new()),
                    12 => {
                        let [x, y] = [0, 1].map(|axis| self.place(node, &alike, axis).0);
                        (Caption::Key, vec![key(3 * y + x)])
                    }
                    count => {
                        let rank = self.rank(node, &alike, 0);
                        (Caption::Tab, vec![ordinal_or_last(rank, count)])
                    }
                }
            }
            NodeKind::Field => {
                let texts = self.nodes(NodeKind::Text);
                let beside = texts.iter().any(|&i| self.is_level(i, node));
                let above = |i: usize| {
                    let distance = bounds[1] - self.0[i].bounds[3];
                    if distance < 0.0 { f64::INFINITY } else { distance }
                };
                let word = if beside { self.word(level) } else { self.word(above) };
                (Caption::Field, vec![word])
            }
            NodeKind::Image => {
                let (x, columns) = self.place(node, &alike, 0);
                let (y, _) = self.place(node, &alike, 1);
                (Caption::Image, vec![column(x, columns), ordinal(y)])
            }
            NodeKind::Check | NodeKind::Switch => (Caption::Setting, vec![self.word(level)]),
            NodeKind::Container => {
                let has_text = |i: usize| {
                    self.nodes(NodeKind::Text).into_iter().any(|text| self.contains(i, text))
                };
                let own = has_text(node);
                alike.retain(|&i| has_text(i) == own);
                let rank = self.rank(node, &alike, 1);
                if own {
                    (Caption::Item, vec![ordinal(rank)])
                } else {
                    (Caption::Sheet, vec![ordinal_or_last(rank, alike.len())])
                }
            }
        }
    }
}

/// Catches a kind or slot that does not follow from boxes, types and words, at usual and extreme jitters.
#[test]
fn layouts_determine_captions() {
    for jitter in [0.0, 0.5, 1.1, 2.0] {
        let (mut right, mut all) = (BTreeMap::new(), BTreeMap::new());
        for screen in screens("oracle", jitter, 2000) {
            for widget in &screen.widgets {
                let (caption, slots) = Reader(&screen.nodes).read(widget.node);
                let is_right =
                    caption as usize == widget.kind && captions(caption, &slots) == widget.right;
                let name = caption_kinds()[widget.kind].name;
                *all.entry(name).or_insert(0usize) += 1;
                *right.entry(name).or_insert(0usize) += usize::from(is_right);
            }
        }
        assert_eq!(all.len(), caption_kinds().len());
        assert_eq!(right, all, "jitter {jitter}");
    }
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

/// Catches captions that are too long or have unknown words, references that are wrong or repeated, and paraphrases that never occur.
#[test]
fn captions_are_words_and_references_are_right() {
    let vocabulary = screen_vocabulary();
    assert_eq!(vocabulary.len(), 149);
    assert_eq!(vocabulary.iter().collect::<BTreeSet<_>>().len(), vocabulary.len());
    assert_eq!([context_token(1), context_token(16)].map(|i| vocabulary[i]), ["music", "backup"]);
    let mut drawn = BTreeSet::new();
    for widget in screens("words", 1.1, 2000).iter().flat_map(|screen| &screen.widgets) {
        let kind = &caption_kinds()[widget.kind];
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
            let copied = caption.iter().filter(|&&token| token < 20).count();
            assert_eq!(copied, usize::from(kind.copies), "{text}");
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
