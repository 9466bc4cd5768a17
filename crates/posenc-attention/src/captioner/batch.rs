//! Screens as tensors.

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::{COORDINATES, DEPTHS, Sizes};
use crate::caption::Captions;
use crate::draw::constant;
use crate::encoder::Positions;
use crate::layers::NEVER;

/// A node of a screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its word; 0 for none.
    pub word: usize,
    /// Its kind.
    pub kind: usize,
    /// Whether it can be clicked.
    pub is_clickable: bool,
    /// How deep it lies in the tree.
    pub depth: usize,
    /// Left, top, right and bottom on the scale of the encoding.
    pub bounds: [f64; COORDINATES],
}

/// A widget that is to be described.
#[derive(Debug, Clone, PartialEq)]
pub struct WidgetInput {
    /// Place of its node.
    pub node: usize,
    /// Words of a caption, without start and end; empty where none is needed.
    pub caption: Vec<usize>,
}

/// A screen.
#[derive(Debug, Clone, PartialEq)]
pub struct ScreenInput {
    /// All nodes, in any order.
    pub nodes: Vec<Node>,
    /// Those of them that are described.
    pub widgets: Vec<WidgetInput>,
}

/// Screens, filled up to the most nodes.
#[derive(Debug, Clone)]
pub struct Batch {
    /// `[B, N]`.
    pub(super) words: Tensor<2, Int>,
    pub(super) kinds: Tensor<2, Int>,
    pub(super) clickable: Tensor<2, Int>,
    pub(super) depths: Tensor<2, Int>,
    /// One for nodes with a word, else zero, `[B N, 1]`.
    pub(super) has_word: Tensor<2>,
    pub(super) positions: Positions,
    /// Zero for nodes, [`NEVER`] for the filling, `[B, 1, 1, N]`.
    pub(super) bias: Tensor<4>,
    /// Rows of the widgets' nodes, screen by screen, `[W]`.
    pub(super) widgets: Tensor<1, Int>,
    pub(super) captions: Captions,
    pub(super) device: Device,
    /// Screens, nodes of each, widgets.
    counts: [usize; 3],
}

impl Batch {
    /// `None` if there is no widget, a widget's node is none of its screen's, a caption is longer than allowed, or a word or kind
    /// is unknown.
    pub fn new(screens: &[ScreenInput], sizes: &Sizes, device: &Device) -> Option<Self> {
        let b = screens.len();
        let n = screens.iter().map(|screen| screen.nodes.len()).max()?;
        let mut columns = [const { Vec::new() }; 4];
        let mut coordinates = Vec::with_capacity(COORDINATES * b * n);
        let mut bias = vec![NEVER; b * n];
        let mut rows = Vec::new();
        let mut captions = Vec::new();
        for (i, screen) in screens.iter().enumerate() {
            for node in &screen.nodes {
                if node.word >= sizes.node_words || node.kind >= sizes.node_kinds {
                    return None;
                }
                let depth = node.depth.min(DEPTHS - 1);
                let numbers = [node.word, node.kind, usize::from(node.is_clickable), depth];
                columns.iter_mut().zip(numbers).for_each(|(column, v)| column.push(v as i64));
                coordinates.extend(node.bounds);
            }
            let missing = n - screen.nodes.len();
            columns.iter_mut().for_each(|column| column.extend(vec![0; missing]));
            coordinates.extend(vec![0.0; COORDINATES * missing]);
            bias[i * n..][..screen.nodes.len()].fill(0.0);
            for widget in &screen.widgets {
                let is_known = widget.caption.iter().all(|&word| word < sizes.vocabulary);
                if widget.node >= screen.nodes.len()
                    || widget.caption.len() > sizes.longest
                    || !is_known
                {
                    return None;
                }
                rows.push((i * n + widget.node) as i64);
                captions.push(&widget.caption[..]);
            }
        }
        let w = captions.len();
        let has_word = columns[0].iter().map(|&word| if word > 0 { 1.0 } else { 0.0 }).collect();
        let table =
            |numbers, shape| Tensor::<2, Int>::from_data(TensorData::new(numbers, shape), device);
        let [words, kinds, clickable, depths] = columns.map(|column| table(column, [b, n]));
        Some(Batch {
            words,
            kinds,
            clickable,
            depths,
            has_word: constant(has_word, [b * n, 1], device),
            positions: Positions { sides: vec![super::BINS; COORDINATES], coordinates },
            bias: constant(bias, [b, 1, 1, n], device),
            widgets: Tensor::from_data(TensorData::new(rows, [w]), device),
            captions: Captions::new(&captions, device)?,
            device: device.clone(),
            counts: [b, n, w],
        })
    }

    /// Screens, nodes of each with the filling, and widgets.
    pub fn counts(&self) -> [usize; 3] {
        self.counts
    }
}
