//! Screens as tensors.

use burn::tensor::{Device, Int, Tensor};

use super::{COORDINATES, DEPTHS, Sizes};
use crate::caption::{END, START};
use crate::draw::constant;
use crate::loss::integers;
use crate::position_encoding::Positions;

/// A node of a screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its word; 0 if it has none.
    pub word: usize,
    pub kind: usize,
    /// Whether it can be clicked.
    pub is_clickable: bool,
    /// Its depth in the tree.
    pub depth: usize,
    /// Left, top, right and bottom on the scale of the encoding.
    pub bounds: [f64; COORDINATES],
}

#[derive(Debug, Clone, PartialEq)]
pub struct WidgetInput {
    pub node: usize,
    /// Words of its caption, without start and end words; empty if no target is needed.
    pub caption: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ScreenInput {
    /// All nodes, in any order.
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
    /// Number of words of each caption.
    pub(super) lengths: Vec<usize>,
}

impl ReadWords {
    /// Concatenates captions without start words and prepends the start word to each.
    pub fn new<'a>(all: impl Iterator<Item = &'a [usize]>, device: &Device) -> Self {
        let [mut words, mut places, mut captions] = [const { Vec::new() }; 3];
        let mut lengths = Vec::new();
        for (index, caption) in all.enumerate() {
            words.push(START);
            words.extend(caption);
            places.extend(0..=caption.len());
            captions.extend(vec![index; caption.len() + 1]);
            lengths.push(caption.len() + 1);
        }
        let [words, places, captions] = [words, places, captions].map(|own| integers(own, device));
        ReadWords { words, places, captions, lengths }
    }

    /// Concatenates captions of one length that include their start words, `[W, T]`.
    pub fn alike(said: Tensor<2, Int>) -> Self {
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
    /// Words of the nodes, `[N]`. The next three fields have the same shape.
    pub(super) words: Tensor<1, Int>,
    pub(super) kinds: Tensor<1, Int>,
    pub(super) clickable: Tensor<1, Int>,
    pub(super) depths: Tensor<1, Int>,
    /// 1 for nodes that have a word, else 0, `[N, 1]`.
    pub(super) has_word: Tensor<2>,
    pub(super) positions: Positions,
    /// Nodes of each screen.
    pub(super) nodes: Vec<usize>,
    /// Rows of the widgets' nodes, screen by screen, `[W]`.
    pub(super) widgets: Tensor<1, Int>,
    /// Decoder input.
    pub(super) read: ReadWords,
    /// Decoder targets: the next word after each input word, or the end word.
    pub(super) targets: Vec<usize>,
    pub(super) device: Device,
}

impl Batch {
    /// `None` if there is no widget, a widget's node index is out of range, a caption is too long, or a word or kind is unknown.
    pub fn new(screens: &[ScreenInput], sizes: &Sizes, device: &Device) -> Option<Self> {
        let mut columns = [const { Vec::new() }; 4];
        let mut coordinates = Vec::new();
        let mut rows = Vec::new();
        let mut captions = Vec::new();
        for screen in screens {
            let first = columns[0].len();
            for node in &screen.nodes {
                if node.word >= sizes.node_words || node.kind >= sizes.node_kinds {
                    return None;
                }
                let depth = node.depth.min(DEPTHS - 1);
                let numbers = [node.word, node.kind, usize::from(node.is_clickable), depth];
                columns.iter_mut().zip(numbers).for_each(|(column, v)| column.push(v));
                coordinates.extend(node.bounds);
            }
            for widget in &screen.widgets {
                let is_known = widget.caption.iter().all(|&word| word < sizes.vocabulary);
                if widget.node >= screen.nodes.len()
                    || widget.caption.len() > sizes.max_len
                    || !is_known
                {
                    return None;
                }
                rows.push(first + widget.node);
                captions.push(widget.caption.as_slice());
            }
        }
        if captions.is_empty() {
            return None;
        }
        let next = |caption: &&[usize]| caption.iter().copied().chain([END]).collect::<Vec<_>>();
        let has_word: Vec<f32> =
            columns[0].iter().map(|&word| if word > 0 { 1.0 } else { 0.0 }).collect();
        let count = has_word.len();
        let [words, kinds, clickable, depths] = columns.map(|column| integers(column, device));
        Some(Batch {
            words,
            kinds,
            clickable,
            depths,
            has_word: constant(has_word, [count, 1], device),
            positions: Positions { sides: vec![super::BINS; COORDINATES], coordinates },
            nodes: screens.iter().map(|screen| screen.nodes.len()).collect(),
            widgets: integers(rows, device),
            targets: captions.iter().flat_map(next).collect(),
            read: ReadWords::new(captions.into_iter(), device),
            device: device.clone(),
        })
    }
}
