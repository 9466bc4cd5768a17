//! A transformer that captions the widgets of a screen (LFF Section 4.3), at a reduced scale: no pixels, one memory slot.
//!
//! Every node of a screen is a token: its word, kind, clickability and depth, and the position encoding of its box. Layers are pre-norm.
//! The decoder sees only the encoder output of the widget's node. Cross-attention to a single slot reduces to a linear map of that slot,
//! whose result is added to every word of the caption.

mod batch;
mod decode;

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, activation};
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::encoding::Encoding;
use rand_chacha::ChaCha8Rng;

use crate::divergence::TargetVariance;
use crate::draw::Draw;
use crate::kernels;
use crate::layers::{Dense, Layer, LayerDropout, LayerNorm, LayerStyle, TransformerSizes};
use crate::position_encoding::PositionEncoding;
use crate::trainer::Loss;

pub use batch::{Batch, Node, ReadWords, ScreenInput, WidgetInput};
pub use decode::captions;
pub use posenc_math::lff::widget::{BINS, COORDINATES};

/// Initial standard deviation of the word embeddings of nodes. Attention starts almost uniform over about sixteen nodes. Word embeddings
/// that are no larger than the other parts of a token go unused for about a thousand steps.
const WORD_DEVIATION: f64 = 3.0;

/// Number of depths with an embedding of their own; deeper nodes use the last one.
const DEPTHS: usize = 16;

#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// Vocabulary size of nodes; 0 means no word.
    pub node_words: usize,
    pub node_kinds: usize,
    /// Vocabulary size of captions, with the special words: 0 is padding, 1 the end, 3 the start.
    pub vocabulary: usize,
    /// Maximum number of words of a caption.
    pub max_len: usize,
    pub transformer: TransformerSizes,
    pub decoder_layers: usize,
    /// The term that Eq. 10 adds to the loss.
    pub divergence: Option<Divergence>,
}

impl Sizes {
    /// Floating-point operations of a training step: three times those of a forward pass. `nodes` has the number of nodes of
    /// each screen, `captions` the number of words of each caption, including the end word.
    pub fn operations(&self, nodes: &[usize], captions: &[usize]) -> f64 {
        let d = self.transformer.width as f64;
        let block = |length: usize| length as f64 * self.transformer.layer_operations(length);
        let layers = self.transformer.layers as f64;
        let encoder = |&n: &usize| 4.0 * d * d * n as f64 + layers * block(n);
        let decoder = |&t: &usize| {
            let layer = block(t) + d * d;
            self.decoder_layers as f64 * layer + d * (t * self.vocabulary) as f64
        };
        let encoder: f64 = nodes.iter().map(encoder).sum();
        let decoder: f64 = captions.iter().map(decoder).sum();
        6.0 * (encoder + decoder)
    }
}

/// The model with its position encoding.
#[derive(Module, Debug)]
pub struct Captioner {
    words: Param<Tensor<2>>,
    kinds: Param<Tensor<2>>,
    clickable: Param<Tensor<2>>,
    depths: Param<Tensor<2>>,
    position: PositionEncoding,
    /// Projects the concatenated parts of a node.
    node: Dense,
    encoder_layers: Vec<Layer>,
    memory_norm: LayerNorm,
    caption_words: Param<Tensor<2>>,
    caption_places: Param<Tensor<2>>,
    decoder_layers: Vec<Layer>,
    memory: Vec<Dense>,
    output_norm: LayerNorm,
    output: Dense,
    /// Target variance of the penalty on learned frequencies.
    target: Option<TargetVariance>,
}

impl Captioner {
    /// Initializes a model. `content` samples its weights, `code` those of the position encoding.
    ///
    /// # Errors
    ///
    /// Returns the invalid key of `encoding` and a message with the allowed values.
    pub fn new(
        sizes: &Sizes,
        encoding: &Encoding,
        content: &mut ChaCha8Rng,
        code: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, (&'static str, String)> {
        let sides = [BINS; COORDINATES];
        let TransformerSizes { width: d, layers, .. } = sizes.transformer;
        let position = PositionEncoding::new(encoding, &sides, d, &mut Draw { rng: code, device })?;
        let mut draw = Draw { rng: content, device };
        let stack =
            |draw: &mut _, count| Layer::stack(draw, &sizes.transformer, count, LayerStyle::GELU);
        Ok(Captioner {
            words: draw.normal([sizes.node_words, d], WORD_DEVIATION),
            kinds: draw.normal([sizes.node_kinds, d], 1.0),
            clickable: draw.normal([2, d], 1.0),
            depths: draw.normal([DEPTHS, d], 1.0),
            position,
            node: draw.dense(4 * d, d),
            encoder_layers: stack(&mut draw, layers),
            memory_norm: draw.layer_norm(d),
            caption_words: draw.normal([sizes.vocabulary, d], 1.0),
            caption_places: draw.normal([sizes.max_len + 1, d], 1.0),
            decoder_layers: stack(&mut draw, sizes.decoder_layers),
            memory: (0..sizes.decoder_layers).map(|_| draw.dense(d, d)).collect(),
            output_norm: draw.layer_norm(d),
            output: draw.dense(d, sizes.vocabulary),
            target: TargetVariance::of(sizes.divergence, encoding, device),
        })
    }

    pub fn position_encoding(&self) -> &PositionEncoding {
        &self.position
    }

    /// The loss of a training step on screens, in nats per word; `None` if the screens do not fit the model. `dropout` samples the
    /// dropout masks.
    pub fn loss(
        &self,
        screens: &[ScreenInput],
        sizes: &Sizes,
        dropout: &mut ChaCha8Rng,
        device: &Device,
    ) -> Option<Loss> {
        let batch = Batch::new(screens, sizes, device)?;
        let memory = self.memory(&batch, Some(dropout));
        Some(Loss {
            value: kernels::cross_entropy(self.scores(&memory, &batch.read), &batch.targets),
            penalty: self.target.as_ref().and_then(|target| target.penalty(&self.position)),
            operations: sizes.operations(&batch.nodes, &batch.read.lengths),
        })
    }

    /// The encoder output of each widget of a batch, `[W, D]`.
    pub fn memory(&self, batch: &Batch, dropout: Option<&mut ChaCha8Rng>) -> Tensor<2> {
        let rows =
            |table: &Param<Tensor<2>>, at: &Tensor<1, Int>| table.val().select(0, at.clone());
        let flags = rows(&self.clickable, &batch.clickable) + rows(&self.depths, &batch.depths);
        let codes =
            self.position.encode(&self.position.prepare(&batch.positions, &batch.device), dropout);
        let words = rows(&self.words, &batch.words) * batch.has_word.clone();
        let kinds = rows(&self.kinds, &batch.kinds);
        let parts = Tensor::cat(vec![words, kinds, flags, codes], 1);
        let mut x = activation::relu(self.node.forward(parts));
        let none = &mut LayerDropout::none();
        for layer in &self.encoder_layers {
            x = layer.transform(layer.attend_segments(x, &batch.nodes, false), none);
        }
        self.memory_norm.forward(x).select(0, batch.widgets.clone())
    }

    /// Logits `[N, vocabulary]` of the word that follows each word of `read`. `memory` `[W, D]` comes from [`Captioner::memory`].
    pub fn scores(&self, memory: &Tensor<2>, read: &ReadWords) -> Tensor<2> {
        let rows =
            |table: &Param<Tensor<2>>, at: &Tensor<1, Int>| table.val().select(0, at.clone());
        let mut x =
            rows(&self.caption_words, &read.words) + rows(&self.caption_places, &read.places);
        for (layer, map) in self.decoder_layers.iter().zip(&self.memory) {
            x = layer.attend_segments(x, &read.lengths, true);
            x = x + map.forward(memory.clone()).select(0, read.captions.clone());
            x = layer.transform(x, &mut LayerDropout::none());
        }
        self.output.forward(self.output_norm.forward(x))
    }
}
