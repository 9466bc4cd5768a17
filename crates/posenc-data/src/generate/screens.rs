//! Screens of made-up apps as boxes with types, some of them labelled with what they do: to be captioned from the
//! layout alone.
//!
//! A screen is a bar at the top, one main block and one block at the bottom. Every margin, gap and size is uniform on
//! an interval, so that few boxes come twice. Nodes come in no order, and labelled ones have no text: what a widget
//! does follows from where it is.

mod blocks;
mod captions;
mod main_block;

pub use captions::{
    CONTEXT_WORDS, CaptionKind, MOST_CAPTION_TOKENS, caption_kinds, caption_text, caption_tuples,
    context_token, screen_vocabulary,
};
use posenc_math::random::below;
use rand_chacha::ChaCha8Rng;

use self::captions::Caption;
use super::draw;

/// Kinds of nodes.
pub const NODE_KINDS: usize = 8;
/// Most nodes of a screen.
pub const MOST_NODES: usize = 24;
/// Fewest nodes of a screen.
pub const LEAST_NODES: usize = 8;
/// Depths of nodes are 1, …, this.
pub const MOST_DEPTH: usize = 4;

/// Width and height of a screen in pixels.
const CANVAS: [f64; 2] = [1440.0, 2560.0];
/// Boxes are on a scale from 0 to this.
const SCALE: f64 = 99.0;
/// Least length of anything, in pixels.
const LEAST_LENGTH: f64 = 2.0;
/// Factor of the intervals above which blocks would not fit.
const MOST_JITTER: f64 = 2.0;
/// Fewest widgets that may be labelled, so that there is a choice.
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

/// Something on a screen.
#[derive(Debug, Clone, PartialEq)]
pub struct ScreenNode {
    /// 0, …, [`NODE_KINDS`] − 1: text, icon, button, field, image, check box, switch, container.
    pub kind: usize,
    /// Whether it reacts to a tap.
    pub is_clickable: bool,
    /// In the tree of nodes: 1, …, [`MOST_DEPTH`].
    pub depth: usize,
    /// 0 none, else 1, …, [`CONTEXT_WORDS`]; only texts have one, and no two the same.
    pub word: usize,
    /// Left, top, right, bottom on the scale 0…99, real-valued and clipped.
    pub bounds: [f64; 4],
}

/// A widget with a caption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widget {
    /// Its node: index into [`Screen::nodes`].
    pub node: usize,
    /// Index into [`caption_kinds`].
    pub kind: usize,
    /// Three different ones of `right`, in no order.
    pub references: Vec<Vec<usize>>,
    /// Every caption that is right: all paraphrases with the right words in the slots, as tokens without an end.
    pub right: Vec<Vec<usize>>,
}

/// A screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Screen {
    /// [`LEAST_NODES`] to [`MOST_NODES`] of them, in no order.
    pub nodes: Vec<ScreenNode>,
    /// Three or four, in no order.
    pub widgets: Vec<Widget>,
}

/// Draws screens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScreenGrammar {
    jitter: f64,
}

impl ScreenGrammar {
    /// `jitter` multiplies the widths of all intervals that margins, gaps and sizes come from. Below 0, or no number, it
    /// counts as 0, above 2 as 2, so that blocks have room.
    #[must_use]
    pub fn new(jitter: f64) -> Self {
        // What is no number compares as not above 0.
        ScreenGrammar { jitter: if jitter > 0.0 { jitter.min(MOST_JITTER) } else { 0.0 } }
    }

    /// The next screen. Those of fewer than [`LEAST_NODES`] nodes or four widgets are drawn again.
    #[must_use]
    pub fn draw(&self, rng: &mut ChaCha8Rng) -> Screen {
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
}

/// A box as models see it that look coordinates up: truncated to 0, …, 99.
#[must_use]
pub fn quantized(bounds: [f64; 4]) -> [u8; 4] {
    // The conversion saturates, and takes what is no number for 0.
    bounds.map(|value| value.clamp(0.0, SCALE) as u8)
}

/// A widget that could be labelled.
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

    /// Uniform on the interval, in pixels, after its width is multiplied by the jitter.
    fn length(&mut self, low: f64, high: f64) -> f64 {
        let (center, half) = (0.5 * (low + high), 0.5 * (high - low) * self.jitter);
        (center + half * (2.0 * self.share() - 1.0)).max(LEAST_LENGTH)
    }

    /// Uniform on [0, 1).
    fn share(&mut self) -> f64 {
        f64::from(draw::unit(self.rng))
    }

    /// One of `low`, …, `high`.
    fn count(&mut self, low: usize, high: usize) -> usize {
        low + below(self.rng, high + 1 - low)
    }

    fn chance(&mut self, probability: f32) -> bool {
        draw::chance(self.rng, probability)
    }

    /// Adds a node with left, top, right, bottom in pixels, and gives its index.
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
