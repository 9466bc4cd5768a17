//! Screens as tensors.

use std::collections::BTreeSet;

use burn::tensor::{Device, Int, Tensor};
use posenc_math::lff::widget::{COORDINATES, TREE_PLACES};

use super::{DEPTHS, Sizes};
use crate::caption::{END, START};
use crate::conv::Map;
use crate::draw::constant;
use crate::loss::integers;

/// Maximum number of words of a text that the public model reads.
pub(super) const TEXT_WORDS: usize = 10;

/// Index of the first real word of the public model; lower indices are padding and ends.
const FIRST_WORD: usize = 2;

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Words of its text. The public model reads the first ten, the small one the first; 0 is no word.
    pub text: Vec<usize>,
    /// Words of its resource name, likewise; only for the public model.
    pub resource: Vec<usize>,
    pub kind: usize,
    pub is_clickable: bool,
    /// Depth, pre-order and post-order in the tree; the small model reads the depth.
    pub tree: [usize; TREE_PLACES],
    /// Left, top, right and bottom on the scale of the encoding.
    pub bounds: [f64; COORDINATES],
}

#[derive(Debug, Clone, PartialEq)]
pub struct WidgetInput {
    pub node: usize,
    /// Words of its caption, without start and end words; empty if no target is needed.
    pub caption: Vec<usize>,
    /// For the public model, gray levels of its pixels from 0 to 255, row by row.
    pub pixels: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ScreenInput {
    pub nodes: Vec<Node>,
    pub widgets: Vec<WidgetInput>,
}

/// Decoder input: the words of several captions, concatenated.
#[derive(Debug, Clone)]
pub struct ReadWords {
    /// The words, `[N]`.
    pub(super) words: Tensor<1, Int>,
    /// Position of each word in its caption, `[N]`.
    pub(super) places: Tensor<1, Int>,
    /// Index of the caption of each word, `[N]`.
    pub(super) captions: Tensor<1, Int>,
    pub(super) lengths: Vec<usize>,
}

impl ReadWords {
    /// Concatenates captions without start words and prepends the start word to each. `place` maps words to rows of their table.
    pub(super) fn new<'a>(
        all: impl Iterator<Item = &'a [usize]>,
        place: impl Fn(usize) -> usize,
        device: &Device,
    ) -> Self {
        let [mut words, mut places, mut captions] = [const { Vec::new() }; 3];
        let mut lengths = Vec::new();
        for (index, caption) in all.enumerate() {
            words.push(place(START));
            words.extend(caption.iter().map(|&word| place(word)));
            places.extend(0..=caption.len());
            captions.extend(vec![index; caption.len() + 1]);
            lengths.push(caption.len() + 1);
        }
        let [words, places, captions] = [words, places, captions].map(|own| integers(own, device));
        ReadWords { words, places, captions, lengths }
    }

    /// Concatenates captions of one length that include their start words, `[W, T]`.
    pub(super) fn alike(said: Tensor<2, Int>) -> Self {
        let ([w, t], device) = (said.dims(), said.device());
        let rows = 0..w * t;
        ReadWords {
            words: said.reshape([w * t]),
            places: integers(rows.clone().map(|row| row % t).collect(), &device),
            captions: integers(rows.map(|row| row / t).collect(), &device),
            lengths: vec![t; w],
        }
    }
}

/// A batch of screens, with the nodes of all screens concatenated.
#[derive(Debug, Clone)]
pub struct Batch {
    /// For the public model, the words that occur in the batch and the start word, in increasing order.
    pub(super) known: Vec<usize>,
    /// For the public model, words of texts as indices into `known`, padded with their first word, `[texts · TEXT_WORDS]`. The first text
    /// has no words.
    pub(super) texts: Tensor<1, Int>,
    /// Text, resource name, kind, clickability and tree positions of the nodes, `[N]` each. The index of a text is 0 without words, else its
    /// index in `texts`, or its word in the small model.
    pub(super) columns: [Tensor<1, Int>; 4 + TREE_PLACES],
    pub(super) coordinates: Vec<f64>,
    pub(super) nodes: Vec<usize>,
    /// Rows of the widgets' nodes, screen by screen, `[W]`.
    pub(super) widgets: Tensor<1, Int>,
    /// Pixels of the widgets, from 0 to 1.
    pub(super) pictures: Option<Map>,
    pub(super) read: ReadWords,
    /// Decoder targets: the next word after each input word, or the end word.
    pub(super) targets: Vec<usize>,
    pub(super) device: Device,
}

/// The words of a text that the public model reads.
fn looked_at(text: &[usize]) -> impl Iterator<Item = usize> + Clone {
    text.iter().copied().take(TEXT_WORDS).filter(|&word| word >= FIRST_WORD)
}

impl Batch {
    /// A batch of screens, at least one of them with a widget.
    pub fn new(screens: &[ScreenInput], sizes: &Sizes, device: &Device) -> Self {
        let captions = || {
            let widgets = screens.iter().flat_map(|screen| &screen.widgets);
            widgets.map(|widget| widget.caption.as_slice())
        };
        let mut known = BTreeSet::new();
        if sizes.public.is_some() {
            let texts = screens.iter().flat_map(|s| &s.nodes).flat_map(|n| [&n.text, &n.resource]);
            known.extend(texts.flat_map(|text| looked_at(text)));
            known.extend(captions().flatten().copied().chain([START]));
        }
        let known: Vec<usize> = known.into_iter().collect();
        // Only the public model has known words; the small one has the same indices for all batches.
        let place = |word: usize| known.binary_search(&word).unwrap_or(word);

        let mut texts = vec![place(START); TEXT_WORDS];
        let mut text = |words: &[usize]| {
            if sizes.public.is_none() {
                return words.first().copied().unwrap_or(0);
            }
            let own = looked_at(words).map(place);
            let Some(first) = own.clone().next() else { return 0 };
            // Max pooling is not affected by repeated words.
            texts.extend(own.chain(std::iter::repeat(first)).take(TEXT_WORDS));
            texts.len() / TEXT_WORDS - 1
        };
        let mut columns = [const { Vec::new() }; 4 + TREE_PLACES];
        let (mut coordinates, mut levels) = (Vec::new(), Vec::new());
        let mut rows = Vec::new();
        for screen in screens {
            let first = columns[0].len();
            for node in &screen.nodes {
                let row = |place: usize| match &sizes.public {
                    Some(own) if place < own.tree_rows => place,
                    Some(_) => 0,
                    None => place.min(DEPTHS - 1),
                };
                let [depth, before, after] = node.tree.map(row);
                let [own, resource] = [&node.text, &node.resource].map(|words| text(words));
                let clickable = usize::from(node.is_clickable);
                let numbers = [own, resource, node.kind, clickable, depth, before, after];
                columns.iter_mut().zip(numbers).for_each(|(column, v)| column.push(v));
                coordinates.extend(node.bounds);
            }
            for widget in &screen.widgets {
                rows.push(first + widget.node);
                levels.extend(widget.pixels.iter().map(|&level| f32::from(level) / 255.0));
            }
        }
        let pictures = sizes.public.as_ref().map(|own| Map {
            rows: constant(levels, [rows.len() * own.side() * own.side(), 1], device),
            images: rows.len(),
            size: [own.side(); 2],
        });
        let next = |caption: &[usize]| caption.iter().copied().chain([END]).collect::<Vec<_>>();
        Batch {
            texts: integers(texts, device),
            columns: columns.map(|column| integers(column, device)),
            coordinates,
            nodes: screens.iter().map(|screen| screen.nodes.len()).collect(),
            widgets: integers(rows, device),
            pictures,
            targets: captions().flat_map(next).collect(),
            read: ReadWords::new(captions(), place, device),
            known,
            device: device.clone(),
        }
    }

    /// Floating-point operations of a training step.
    pub fn operations(&self, sizes: &Sizes) -> f64 {
        sizes.operations(&self.nodes, &self.read.lengths, self.known.len())
    }
}
