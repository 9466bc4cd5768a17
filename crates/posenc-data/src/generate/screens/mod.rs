//! Synthetic app screens as typed boxes. Some boxes are labelled with captions that follow from the layout alone.
//!
//! A screen has a bar at the top, one main block and one block at the bottom. Every margin, gap and size is uniform on an interval, so few
//! boxes repeat. Nodes are in random order, and labelled nodes have no text: the function of a widget follows from its position.

mod blocks;
mod captions;
mod main_block;

pub use captions::{
    CONTEXT_WORDS, CaptionKind, MAX_CAPTION_TOKENS, caption_kinds, caption_text, context_token,
    screen_vocabulary,
};
use posenc_math::random::below;
use rand_chacha::ChaCha8Rng;

use self::captions::Caption;
use super::draw;

pub const NODE_KINDS: usize = 8;
pub const MAX_NODES: usize = 24;
pub const LEAST_NODES: usize = 8;
/// Maximum depth of nodes; the minimum is 1.
pub const MAX_DEPTH: usize = 4;

/// Width and height of a screen in pixels.
const CANVAS: [f64; 2] = [1440.0, 2560.0];
/// Boxes are on a scale from 0 to this.
const SCALE: f64 = 99.0;
/// Minimum length of anything, in pixels.
const LEAST_LENGTH: f64 = 2.0;
/// Maximum jitter; with more, blocks would not fit.
const MAX_JITTER: f64 = 2.0;
/// Minimum number of widgets that may be labelled, so that there is a choice.
const LEAST_ELIGIBLE: usize = 4;
const REFERENCES: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeKind {
    Text,
    Icon,
    Button,
    Field,
    Image,
    Check,
    Switch,
    Container,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ScreenNode {
    /// 0, …, [`NODE_KINDS`] − 1: text, icon, button, field, image, check box, switch, container.
    pub kind: usize,
    pub is_clickable: bool,
    /// Depth in the tree of nodes: 1, …, [`MAX_DEPTH`].
    pub depth: usize,
    /// Context word, 1, …, [`CONTEXT_WORDS`], or 0 for none. Only texts have words, and each word occurs once.
    pub word: usize,
    /// Left, top, right, bottom on the scale 0…99, real-valued and clipped.
    pub bounds: [f64; 4],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widget {
    /// Its node: index into [`Screen::nodes`].
    pub node: usize,
    /// Index into [`caption_kinds`].
    pub kind: usize,
    /// Three different captions of `right`, in random order.
    pub references: Vec<Vec<usize>>,
    /// All correct captions: every paraphrase with the correct words in its slots, as tokens without the end token.
    pub right: Vec<Vec<usize>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Screen {
    /// [`LEAST_NODES`] to [`MAX_NODES`] nodes, in random order.
    pub nodes: Vec<ScreenNode>,
    pub widgets: Vec<Widget>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScreenGrammar {
    jitter: f64,
}

impl ScreenGrammar {
    /// `jitter` multiplies the widths of the intervals of all margins, gaps and sizes. It is clamped to [0, 2], so that blocks fit; NaN
    /// counts as 0.
    pub fn new(jitter: f64) -> Self {
        // NaN is not greater than 0.
        ScreenGrammar { jitter: if jitter > 0.0 { jitter.min(MAX_JITTER) } else { 0.0 } }
    }

    /// Samples the next screen. Screens with fewer than [`LEAST_NODES`] nodes or four widgets are resampled.
    fn draw(&self, rng: &mut ChaCha8Rng) -> Screen {
        loop {
            let mut draft = Draft::new(self.jitter, rng);
            let top = blocks::app_bar(&mut draft);
            let bottom = blocks::bottom(&mut draft);
            main_block::main_block(&mut draft, [top, bottom]);
            // About one in a hundred has too few.
            if draft.nodes.len() >= LEAST_NODES && draft.eligible.len() >= LEAST_ELIGIBLE {
                return draft.finish();
            }
        }
    }

    pub fn screens(&self, count: usize, rng: &mut ChaCha8Rng) -> Vec<Screen> {
        (0..count).map(|_| self.draw(rng)).collect()
    }
}

/// A box for models that look coordinates up in a table: truncated to 0, …, 99.
pub fn quantized(bounds: [f64; 4]) -> [u8; 4] {
    // The cast saturates and converts NaN to 0.
    bounds.map(|value| value.clamp(0.0, SCALE) as u8)
}

struct Eligible {
    node: usize,
    caption: Caption,
    /// Tokens for the slots of its captions.
    slots: Vec<usize>,
}

struct Draft<'a> {
    rng: &'a mut ChaCha8Rng,
    jitter: f64,
    nodes: Vec<ScreenNode>,
    eligible: Vec<Eligible>,
    /// Context words in random order; texts take them from the end.
    words: Vec<usize>,
}

impl<'a> Draft<'a> {
    fn new(jitter: f64, rng: &'a mut ChaCha8Rng) -> Self {
        let mut words: Vec<usize> = (1..=CONTEXT_WORDS).collect();
        draw::shuffle(&mut words, rng);
        Draft { rng, jitter, nodes: Vec::new(), eligible: Vec::new(), words }
    }

    /// A length in pixels, uniform on the interval after its width is multiplied by the jitter.
    fn length(&mut self, low: f64, high: f64) -> f64 {
        let (center, half) = (0.5 * (low + high), 0.5 * (high - low) * self.jitter);
        (center + half * (2.0 * self.share() - 1.0)).max(LEAST_LENGTH)
    }

    /// Uniform on [0, 1).
    fn share(&mut self) -> f64 {
        f64::from(draw::unit(self.rng))
    }

    fn count(&mut self, low: usize, high: usize) -> usize {
        low + below(self.rng, high + 1 - low)
    }

    fn chance(&mut self, probability: f32) -> bool {
        draw::chance(self.rng, probability)
    }

    /// Adds a node with left, top, right, bottom in pixels, and returns its index.
    fn node(&mut self, kind: NodeKind, depth: usize, pixels: [f64; 4]) -> usize {
        let on_scale = |axis: usize| (pixels[axis] / CANVAS[axis % 2]).clamp(0.0, 1.0) * SCALE;
        self.nodes.push(ScreenNode {
            kind: kind as usize,
            is_clickable: !matches!(kind, NodeKind::Text | NodeKind::Container),
            depth,
            word: 0,
            bounds: [0, 1, 2, 3].map(on_scale),
        });
        self.nodes.len() - 1
    }

    /// Adds a text with a unique word and returns the word's token.
    fn text(&mut self, depth: usize, pixels: [f64; 4]) -> usize {
        let node = self.node(NodeKind::Text, depth, pixels);
        let word = self.words.pop().unwrap_or(0);
        self.nodes[node].word = word;
        context_token(word)
    }

    /// Adds a widget with these words in the slots of its captions.
    fn widget(
        &mut self,
        kind: NodeKind,
        depth: usize,
        pixels: [f64; 4],
        caption: Caption,
        slots: &[usize],
    ) {
        let node = self.node(kind, depth, pixels);
        self.nodes[node].is_clickable = true;
        self.eligible.push(Eligible { node, caption, slots: slots.to_vec() });
    }

    /// Labels three or four widgets, and puts the nodes in random order.
    fn finish(mut self) -> Screen {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        draw::shuffle(&mut order, self.rng);
        let mut places = vec![0; order.len()];
        for (place, &node) in order.iter().enumerate() {
            places[node] = place;
        }
        let nodes = order.iter().map(|&node| self.nodes[node].clone()).collect();
        draw::shuffle(&mut self.eligible, self.rng);
        let labelled = self.count(3, 4).min(self.eligible.len());
        let mut widgets = Vec::with_capacity(labelled);
        for Eligible { node, caption, slots } in &self.eligible[..labelled] {
            let right = captions::captions(*caption, slots);
            let mut references = right.clone();
            draw::shuffle(&mut references, self.rng);
            references.truncate(REFERENCES);
            widgets.push(Widget {
                node: places[*node],
                kind: *caption as usize,
                references,
                right,
            });
        }
        Screen { nodes, widgets }
    }
}

#[cfg(test)]
mod tests;
