//! An encoder–decoder transformer with learned position embeddings (LFF Figure 1).
//!
//! Layers are pre-norm; position embeddings are added to the word embeddings of both languages.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, activation};
use rand_chacha::ChaCha8Rng;

use crate::draw::{Draw, constant};
use crate::layers::{
    Dense, Layer, LayerDropout, LayerNorm, LayerStyle, MASK_BIAS, TransformerSizes, causal_bias,
};
use crate::loss::{integers, weighted_cross_entropy};
use crate::parameters::{number, numbers};
use crate::trainer::Loss;

/// Token that starts a translation. Word i is token i + [`SPECIAL`].
const START: usize = 0;
const END: usize = 1;
const SPECIAL: usize = 2;

const CHUNK: usize = 32;

#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// Vocabulary size of each language.
    pub words: usize,
    /// Number of rows of the position embedding tables.
    pub positions: usize,
    /// Sizes of the layers; the decoder has as many layers as the encoder.
    pub transformer: TransformerSizes,
}

impl Sizes {
    /// Floating-point operations of a training step on `pairs` pairs that are padded to `length` words, three times those of a forward
    /// pass.
    pub fn operations(&self, pairs: usize, length: usize) -> f64 {
        let TransformerSizes { width, feed_forward, layers, .. } = self.transformer;
        let [d, f, n] = [width, feed_forward, length].map(|v| v as f64);
        let dense = 12.0 * d * d + 4.0 * d * f;
        let attention = 6.0 * n * d;
        let token = layers as f64 * (dense + attention) + d * self.words as f64;
        6.0 * pairs as f64 * n * token
    }
}

#[derive(Module, Debug)]
pub struct Translator {
    source_words: Param<Tensor<2>>,
    source_positions: Param<Tensor<2>>,
    target_words: Param<Tensor<2>>,
    target_positions: Param<Tensor<2>>,
    encoder: Vec<Layer>,
    encoder_norm: LayerNorm,
    decoder: Vec<Layer>,
    decoder_norm: LayerNorm,
    output: Dense,
}

/// Pairs of sentences as tensors, padded to the longest.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Source tokens `[B, S]`.
    source: Tensor<2, Int>,
    /// Zero for words, [`MASK_BIAS`] for the padding, `[B, 1, 1, S]`.
    source_bias: Tensor<4>,
    /// Decoder input `[B, T]`: the start token and the words.
    read: Tensor<2, Int>,
    /// Decoder targets `[B T]`: the words and the end token.
    targets: Tensor<1, Int>,
    /// Loss weights `[B T, 1]`: one over the number of all words and ends, zero for the padding.
    weights: Tensor<2>,
    /// The mask of [`causal_bias`], `[1, 1, T, T]`.
    causal: Tensor<4>,
}

impl Batch {
    /// A batch of (source, target) pairs, whose words are numbered from 0.
    pub fn new(pairs: &[Pair], device: &Device) -> Self {
        let b = pairs.len();
        let s = pairs.iter().map(|p| p.0.len()).max().unwrap_or(0).max(1);
        let t = pairs.iter().map(|p| p.1.len()).max().unwrap_or(0) + 1;
        let total: usize = pairs.iter().map(|p| p.1.len() + 1).sum();
        let [mut source, mut read, mut targets] = [s, t, t].map(|length| vec![END; b * length]);
        let (mut source_bias, mut weights) = (vec![MASK_BIAS; b * s], vec![0.0; b * t]);
        let write = |to: &mut [usize], words: &[usize]| {
            to.iter_mut().zip(words).for_each(|(to, word)| *to = word + SPECIAL);
        };
        for (i, (from, to)) in pairs.iter().enumerate() {
            write(&mut source[i * s..][..s], from);
            source_bias[i * s..][..from.len()].fill(0.0);
            read[i * t] = START;
            write(&mut read[i * t + 1..][..t - 1], to);
            write(&mut targets[i * t..][..t], to);
            weights[i * t..][..=to.len()].fill(1.0 / total as f32);
        }
        Batch {
            source: integers(source, device).reshape([b, s]),
            source_bias: constant(source_bias, [b, 1, 1, s], device),
            read: integers(read, device).reshape([b, t]),
            targets: integers(targets, device),
            weights: constant(weights, [b * t, 1], device),
            causal: causal_bias(t, device),
        }
    }
}

/// Sums of word and position embeddings `[B, N, D]`.
fn embed(
    words: &Param<Tensor<2>>,
    positions: &Param<Tensor<2>>,
    tokens: &Tensor<2, Int>,
) -> Tensor<3> {
    let [b, n] = tokens.dims();
    let words = words.val().select(0, tokens.clone().reshape([b * n]));
    let positions = positions.val();
    let width = positions.dims()[1];
    words.reshape([b, n, width]) + positions.slice([0..n, 0..width]).unsqueeze::<3>()
}

impl Translator {
    /// Initializes a model; `deviation` is the initial standard deviation of its position embeddings.
    pub fn new(sizes: &Sizes, deviation: f64, rng: &mut ChaCha8Rng, device: &Device) -> Self {
        let mut draw = Draw { rng, device };
        let TransformerSizes { width: d, layers, .. } = sizes.transformer;
        let word = (d as f64).sqrt().recip();
        let (tokens, style) = (sizes.words + SPECIAL, LayerStyle::GELU);
        let decoder = LayerStyle { has_memory: true, ..style };
        Translator {
            source_words: draw.normal([tokens, d], word),
            source_positions: draw.normal([sizes.positions, d], deviation),
            target_words: draw.normal([tokens, d], word),
            // The start token needs a position, too.
            target_positions: draw.normal([sizes.positions + 1, d], deviation),
            encoder: Layer::stack(&mut draw, &sizes.transformer, layers, style),
            encoder_norm: draw.layer_norm(d),
            decoder: Layer::stack(&mut draw, &sizes.transformer, layers, decoder),
            decoder_norm: draw.layer_norm(d),
            output: draw.dense(d, tokens),
        }
    }

    /// Log-probabilities of the next token after the start and after each word, `[B, T, tokens]`.
    pub fn log_probabilities(&self, batch: &Batch) -> Tensor<3> {
        let mut x = embed(&self.source_words, &self.source_positions, &batch.source);
        let none = &mut LayerDropout::uniform(0.0, None);
        for layer in &self.encoder {
            x = layer.encode(x, None, &batch.source_bias, none);
        }
        let memory = self.encoder_norm.forward(x);
        let (memory, biases) = ([memory.clone(), memory], [&batch.causal, &batch.source_bias]);
        let mut x = embed(&self.target_words, &self.target_positions, &batch.read);
        for layer in &self.decoder {
            x = layer.decode(x, None, &memory, biases, true, none);
        }
        activation::log_softmax(self.output.forward(self.decoder_norm.forward(x)), 2)
    }

    /// The loss of a training step on pairs.
    pub fn loss(&self, pairs: &[Pair], sizes: &Sizes, device: &Device) -> Loss {
        let batch = Batch::new(pairs, device);
        let length = batch.source.dims()[1].max(batch.read.dims()[1]);
        let operations = sizes.operations(pairs.len(), length);
        Loss { value: self.cross_entropy(&batch), penalty: None, operations }
    }

    /// Mean cross-entropy of the target words and ends, in nats.
    pub fn cross_entropy(&self, batch: &Batch) -> Tensor<1> {
        let log_probabilities = self.log_probabilities(batch);
        let [b, t, words] = log_probabilities.dims();
        let rows = log_probabilities.reshape([b * t, words]);
        weighted_cross_entropy(rows, batch.targets.clone(), batch.weights.clone())
    }

    /// Position embeddings, row by row: of the source, and of the target without the row of the start token.
    pub fn positions(&self) -> [Vec<f32>; 2] {
        let width = self.source_positions.val().dims()[1];
        let target = numbers(self.target_positions.val());
        [numbers(self.source_positions.val()), target[width.min(target.len())..].to_vec()]
    }
}

/// A sentence and its translation, as word indices.
pub type Pair = (Vec<usize>, Vec<usize>);

/// Mean loss in nats per token, including the ends, without gradients.
pub fn evaluate(model: &Translator, pairs: &[Pair], device: &Device) -> f64 {
    let model = model.clone().no_grad();
    // Weighted by tokens, not by sentences or chunks.
    let tokens = |chunk: &[Pair]| chunk.iter().map(|p| p.1.len() + 1).sum::<usize>() as f64;
    let loss =
        |chunk: &[Pair]| tokens(chunk) * number(model.cross_entropy(&Batch::new(chunk, device)));
    pairs.chunks(CHUNK).map(loss).sum::<f64>() / tokens(pairs)
}
