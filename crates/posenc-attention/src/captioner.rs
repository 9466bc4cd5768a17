//! A transformer that says what a widget of a screen does (LFF Section 4.3), at a reduced scale: no pixels, one memory slot.
//!
//! Every node of a screen is a token: its word, its kind, whether it can be clicked, how deep it lies, and the code of its box.
//! Norms stand before attention and dense layers. What the encoder says of the widget's node is all that the decoder sees: attention
//! on one slot is a linear map of it, which is added to every word of the caption.

mod batch;
mod decode;
mod train;

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, activation};
use posenc_math::lff::divergence::Form;
use posenc_math::lff::encoding::Encoding;
use rand_chacha::ChaCha8Rng;

use crate::divergence::Target;
use crate::draw::Draw;
use crate::encoder::Encoder;
use crate::layers::{Block, Dense, LayerNorm};

pub use batch::{Batch, Node, ReadWords, ScreenInput, WidgetInput};
pub use decode::captions;
pub use posenc_math::lff::widget::{BINS, COORDINATES};
pub use train::{Trainer, Training};

/// Deviation of the words of nodes at the beginning. A node is one of sixteen that attention looks at at first: words
/// that are no larger than all else are not found for a thousand steps.
const WORD_DEVIATION: f64 = 3.0;

/// Depths of nodes that are told apart.
const DEPTHS: usize = 16;

/// Sizes of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// Words of nodes; 0 stands for none.
    pub node_words: usize,
    /// Kinds of nodes.
    pub node_kinds: usize,
    /// Words of captions with the special ones: 0 fills up, 1 ends, 3 begins.
    pub vocabulary: usize,
    /// Most words of a caption.
    pub longest: usize,
    /// Numbers per token.
    pub width: usize,
    /// Heads of attention, which share the width.
    pub heads: usize,
    /// Numbers between the two dense layers of a block.
    pub feed_forward: usize,
    /// Layers of the encoder.
    pub encoder_layers: usize,
    /// Layers of the decoder.
    pub decoder_layers: usize,
}

impl Sizes {
    /// Multiplications and additions of a step of training on screens of so many nodes and captions of so many words, their
    /// ends with them: three times those of a pass forward.
    pub fn operations(&self, nodes: &[usize], captions: &[usize]) -> f64 {
        let [d, f] = [self.width, self.feed_forward].map(|n| n as f64);
        let block = |length: f64| length * (4.0 * d * d + 2.0 * d * f + 2.0 * length * d);
        let encoder: f64 = nodes
            .iter()
            .map(|&n| 4.0 * d * d * n as f64 + self.encoder_layers as f64 * block(n as f64))
            .sum();
        let decoder: f64 = captions
            .iter()
            .map(|&t| {
                let layer = block(t as f64) + d * d;
                self.decoder_layers as f64 * layer + d * (t * self.vocabulary) as f64
            })
            .sum();
        6.0 * (encoder + decoder)
    }
}

/// The model with its position code.
#[derive(Module, Debug)]
pub struct Captioner {
    words: Param<Tensor<2>>,
    kinds: Param<Tensor<2>>,
    clickable: Param<Tensor<2>>,
    depths: Param<Tensor<2>>,
    encoder: Encoder,
    /// Of the parts of a node side by side.
    node: Dense,
    encoder_blocks: Vec<Block>,
    memory_norm: LayerNorm,
    caption_words: Param<Tensor<2>>,
    caption_places: Param<Tensor<2>>,
    decoder_blocks: Vec<Block>,
    memory: Vec<Dense>,
    output_norm: LayerNorm,
    output: Dense,
    /// Of a penalty on the frequencies of the code.
    target: Option<Target>,
}

impl Captioner {
    /// Draws a model: its content from one stream, its encoding from another, so that models which differ in
    /// their encoding share everything else.
    ///
    /// # Errors
    ///
    /// The key of the encoding that is wrong, and what is allowed.
    pub fn new(
        sizes: &Sizes,
        encoding: &Encoding,
        content: &mut ChaCha8Rng,
        code: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, (&'static str, String)> {
        let sides = [BINS; COORDINATES];
        let encoder = Encoder::new(encoding, &sides, sizes.width, &mut Draw { rng: code, device })?;
        let mut draw = Draw { rng: content, device };
        let (d, h, f) = (sizes.width, sizes.heads, sizes.feed_forward);
        Ok(Captioner {
            words: draw.normal([sizes.node_words, d], WORD_DEVIATION),
            kinds: draw.normal([sizes.node_kinds, d], 1.0),
            clickable: draw.normal([2, d], 1.0),
            depths: draw.normal([DEPTHS, d], 1.0),
            encoder,
            node: draw.dense(4 * d, d),
            encoder_blocks: (0..sizes.encoder_layers)
                .map(|_| Block::new(&mut draw, d, h, f))
                .collect(),
            memory_norm: draw.layer_norm(d),
            caption_words: draw.normal([sizes.vocabulary, d], 1.0),
            caption_places: draw.normal([sizes.longest + 1, d], 1.0),
            decoder_blocks: (0..sizes.decoder_layers)
                .map(|_| Block::new(&mut draw, d, h, f))
                .collect(),
            memory: (0..sizes.decoder_layers).map(|_| draw.dense(d, d)).collect(),
            output_norm: draw.layer_norm(d),
            output: draw.dense(d, sizes.vocabulary),
            target: None,
        })
    }

    /// With a learned variance that a penalty on frequencies compares theirs with; it begins at γ⁻².
    #[must_use]
    pub fn with_target(self, gamma: f64, device: &Device) -> Self {
        Captioner { target: Some(Target::new(gamma, device)), ..self }
    }

    /// The divergence of the trained frequencies; `None` without them or without a target.
    pub fn divergence(&self, form: Form) -> Option<Tensor<1>> {
        let frequencies = self.encoder.trained_frequencies()?;
        Some(self.target.as_ref()?.divergence(frequencies, form))
    }

    /// The position code.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The same model, which no step can be made of: what it computes is not kept.
    #[must_use]
    pub fn without_gradients(&self) -> Self {
        self.clone().no_grad()
    }

    /// What is kept of each widget of a batch, `[W, D]`.
    pub fn memory(&self, batch: &Batch, dropout: Option<&mut ChaCha8Rng>) -> Tensor<2> {
        let rows =
            |table: &Param<Tensor<2>>, at: &Tensor<1, Int>| table.val().select(0, at.clone());
        let flags = rows(&self.clickable, &batch.clickable) + rows(&self.depths, &batch.depths);
        let codes =
            self.encoder.encode(&self.encoder.prepare(&batch.positions, &batch.device), dropout);
        let words = rows(&self.words, &batch.words) * batch.has_word.clone();
        let kinds = rows(&self.kinds, &batch.kinds);
        let parts = Tensor::cat(vec![words, kinds, flags, codes], 1);
        let mut x = activation::relu(self.node.forward(parts));
        for block in &self.encoder_blocks {
            x = block.transform(block.attend_segments(x, &batch.nodes, false));
        }
        self.memory_norm.forward(x).select(0, batch.widgets.clone())
    }

    /// Scores of the word after each of those that were read, `[N, vocabulary]`, for what is kept of each widget `[W, D]`.
    pub fn scores(&self, memory: &Tensor<2>, read: &ReadWords) -> Tensor<2> {
        let rows =
            |table: &Param<Tensor<2>>, at: &Tensor<1, Int>| table.val().select(0, at.clone());
        let mut x =
            rows(&self.caption_words, &read.words) + rows(&self.caption_places, &read.places);
        for (block, map) in self.decoder_blocks.iter().zip(&self.memory) {
            x = block.attend_segments(x, &read.lengths, true);
            x = x + map.forward(memory.clone()).select(0, read.captions.clone());
            x = block.transform(x);
        }
        self.output.forward(self.output_norm.forward(x))
    }
}
