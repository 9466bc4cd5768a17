//! Screens with words and pixels as tensors.

use std::collections::BTreeMap;

use burn::tensor::{Device, Int, Tensor};
use posenc_math::lff::widget::{BINS, BatchSize, COORDINATES, Sizes, TREE_PLACES};

use crate::caption::{END, FILLING, START, Sentences};
use crate::conv::Map;
use crate::draw::constant;
use crate::layers::MASK_BIAS;
use crate::loss::integers;
use crate::position_encoding::Positions;

/// Maximum number of words of a text that the model reads.
pub(super) const TEXT_WORDS: usize = 10;

/// Index of the first real word; lower indices are padding and ends.
const FIRST_WORD: usize = 2;

/// A node of a screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Words of its text; the model reads the first ten.
    pub text: Vec<usize>,
    /// Words of its resource name, likewise.
    pub resource: Vec<usize>,
    pub kind: usize,
    /// Whether it can be clicked.
    pub is_clickable: bool,
    /// Depth, pre-order and post-order in the tree.
    pub tree: [usize; TREE_PLACES],
    /// Left, top, right and bottom on 0 … 99.
    pub bounds: [f64; COORDINATES],
}

#[derive(Debug, Clone, PartialEq)]
pub struct WidgetInput {
    pub node: usize,
    /// Words of its caption, without start and end words; empty if no target is needed.
    pub caption: Vec<usize>,
    /// Gray levels of its pixels from 0 to 255, row by row.
    pub pixels: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ScreenInput {
    /// All nodes, in any order.
    pub nodes: Vec<Node>,
    pub widgets: Vec<WidgetInput>,
}

/// Texts as indices into [`Batch::known`].
#[derive(Debug, Clone)]
pub(super) struct Texts {
    /// The texts that have words, padded with their first word, `[texts · TEXT_WORDS]`.
    pub words: Tensor<1, Int>,
    pub count: usize,
    /// Index of each node's text, `[B N]`; the number of texts for nodes without one.
    pub of_text: Tensor<1, Int>,
    /// Index of each node's resource name, in the same form as `of_text`.
    pub of_resource: Tensor<1, Int>,
}

/// A batch of screens, padded to the largest number of nodes.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The words that occur in the batch, in increasing order.
    pub(super) known: Tensor<1, Int>,
    /// `None` if no node has a word.
    pub(super) texts: Option<Texts>,
    /// Types of the nodes, `[B N]`; `clickable` and `tree` have the same shape.
    pub(super) kinds: Tensor<1, Int>,
    pub(super) clickable: Tensor<1, Int>,
    pub(super) tree: [Tensor<1, Int>; TREE_PLACES],
    pub(super) positions: Positions,
    /// Zero for nodes, [`MASK_BIAS`] for the padding, `[B, 1, 1, N]`.
    pub(super) bias: Tensor<4>,
    /// Rows of the widgets' nodes, screen by screen, `[W]`.
    pub(super) widgets: Tensor<1, Int>,
    /// Pixels of the widgets, from 0 to 1.
    pub(super) pictures: Map,
    /// Decoder input `[W T]`, as indices into `known`; the start has the index after the last word.
    pub(super) read: Tensor<1, Int>,
    pub(super) captions: Sentences,
    pub(super) device: Device,
    size: BatchSize,
}

/// Indices of the words that occur in a batch.
#[derive(Default)]
struct Words {
    places: BTreeMap<usize, usize>,
}

impl Words {
    fn of<'a>(words: impl Iterator<Item = &'a usize>) -> Self {
        let mut places: BTreeMap<usize, usize> = words.map(|&word| (word, 0)).collect();
        places.values_mut().enumerate().for_each(|(i, place)| *place = i);
        Words { places }
    }

    /// The index of a word; for other words, the number of words in the list.
    fn place(&self, word: usize) -> i64 {
        self.places.get(&word).copied().unwrap_or(self.places.len()) as i64
    }

    /// Appends the word indices of a text and returns the index of the text; `none` for a text without words.
    fn pooled(&self, text: &[usize], texts: &mut Vec<i64>, none: usize) -> i64 {
        let Some(first) = looked_at(text).next() else {
            return none as i64;
        };
        let place = texts.len() / TEXT_WORDS;
        // Max pooling is not affected by repeated words.
        let filled = looked_at(text).chain(std::iter::repeat(first));
        texts.extend(filled.take(TEXT_WORDS).map(|&word| self.place(word)));
        place as i64
    }
}

/// The words of a text that the model reads.
fn looked_at(text: &[usize]) -> impl Iterator<Item = &usize> {
    text.iter().take(TEXT_WORDS).filter(|&&word| word >= FIRST_WORD)
}

fn texts_of(node: &Node) -> [&[usize]; 2] {
    [&node.text, &node.resource]
}

impl Batch {
    /// `None` if there is no widget, a widget's node index is out of range, a caption is too long or contains the start word, a word or
    /// type is unknown, or a picture does not have the model's number of pixels.
    pub fn new(screens: &[ScreenInput], sizes: &Sizes, device: &Device) -> Option<Self> {
        if !screens.iter().all(|screen| is_fitting(screen, sizes)) {
            return None;
        }
        let b = screens.len();
        let n = screens.iter().map(|screen| screen.nodes.len()).max()?;
        let widgets = || screens.iter().flat_map(|screen| &screen.widgets);
        let captions: Vec<&[usize]> = widgets().map(|widget| &widget.caption[..]).collect();
        let all_texts = || screens.iter().flat_map(|s| &s.nodes).flat_map(texts_of);
        let words = all_texts().flat_map(looked_at).chain(captions.iter().copied().flatten());
        let words = Words::of(words);

        let mut texts = Vec::new();
        // Columns of nodes and padding: text, resource name, type, clickability, places in the tree.
        let mut columns = [const { Vec::new() }; 4 + TREE_PLACES];
        let mut coordinates = Vec::with_capacity(COORDINATES * b * n);
        let mut bias = vec![MASK_BIAS; b * n];
        let mut rows = Vec::new();
        let count = all_texts().filter(|text| looked_at(text).next().is_some()).count();
        for (i, screen) in screens.iter().enumerate() {
            for node in &screen.nodes {
                let texts = texts_of(node).map(|text| words.pooled(text, &mut texts, count));
                let row = |place: usize| if place < sizes.tree_rows { place as i64 } else { 0 };
                let [depth, before, after] = node.tree.map(row);
                let (kind, clickable) = (node.kind as i64, i64::from(node.is_clickable));
                let numbers = [texts[0], texts[1], kind, clickable, depth, before, after];
                columns.iter_mut().zip(numbers).for_each(|(column, v)| column.push(v));
                coordinates.extend(node.bounds);
            }
            let missing = n - screen.nodes.len();
            for (k, column) in columns.iter_mut().enumerate() {
                column.extend(vec![if k < 2 { count as i64 } else { 0 }; missing]);
            }
            coordinates.extend(vec![0.0; COORDINATES * missing]);
            bias[i * n..][..screen.nodes.len()].fill(0.0);
            rows.extend(screen.widgets.iter().map(|widget| (i * n + widget.node) as i64));
        }
        let captions_of = Sentences::new(&captions, [FILLING, END, START], device)?;
        let [w, t] = captions_of.read.dims();
        let mut read = Vec::with_capacity(w * t);
        for caption in &captions {
            read.push(words.place(START));
            read.extend(caption.iter().map(|&word| words.place(word)));
            // The padding after the last word is read but has no loss.
            read.extend(vec![words.place(START); t - 1 - caption.len()]);
        }
        let levels = widgets().flat_map(|widget| &widget.pixels);
        let levels: Vec<f32> = levels.map(|&level| f32::from(level) / 255.0).collect();
        let side = sizes.side();
        let pictures = Map {
            rows: constant(levels, [w * side * side, 1], device),
            images: w,
            size: [side, side],
        };
        let [of_text, of_resource, kinds, clickable, depth, before, after] =
            columns.map(|column| integers(column, device));
        let texts = (count > 0).then(|| Texts {
            words: integers(texts, device),
            count,
            of_text,
            of_resource,
        });
        let size =
            BatchSize { screens: b, nodes: n, widgets: w, words: words.places.len(), said: t };
        Some(Batch {
            known: integers(words.places.keys().copied().collect(), device),
            texts,
            kinds,
            clickable,
            tree: [depth, before, after],
            positions: Positions { sides: vec![BINS; COORDINATES], coordinates },
            bias: constant(bias, [b, 1, 1, n], device),
            widgets: integers(rows, device),
            pictures,
            read: integers(read, device),
            captions: captions_of,
            device: device.clone(),
            size,
        })
    }

    pub fn size(&self) -> BatchSize {
        self.size
    }
}

fn is_fitting(screen: &ScreenInput, sizes: &Sizes) -> bool {
    let is_known = |words: &[usize]| words.iter().all(|&word| word < sizes.vocabulary);
    let pixels = sizes.side() * sizes.side();
    screen
        .nodes
        .iter()
        .all(|node| node.kind < sizes.types && is_known(&node.text) && is_known(&node.resource))
        && screen.widgets.iter().all(|widget| {
            widget.node < screen.nodes.len()
                && widget.caption.len() <= sizes.longest
                && is_known(&widget.caption)
                && !widget.caption.contains(&START)
                && widget.pixels.len() == pixels
        })
}
