//! An encoder–decoder transformer with learned tables of positions (LFF Figure 1).
//!
//! Layer norms come before attention and feed-forward networks; positions are added to the words of both languages.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, activation};
use rand_chacha::ChaCha8Rng;

use crate::caption::Sentences;
use crate::draw::{Draw, constant};
use crate::layers::{
    Block, DecoderBlock, Dense, LayerNorm, LayerStyle, MASK_BIAS, TransformerSizes, causal_bias,
};
use crate::loss::integers;
use crate::parameters::{number, numbers};
use crate::trainer::Loss;

/// Token that begins a translation; words follow the special tokens.
const START: usize = 0;
/// Token that ends one.
const END: usize = 1;
/// Special tokens.
const SPECIAL: usize = 2;

/// Pairs that are evaluated at once.
const CHUNK: usize = 32;

/// Sizes of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// Words of each language.
    pub words: usize,
    /// Rows of the tables of positions.
    pub positions: usize,
    /// Sizes of the layers; the decoder has as many as the encoder.
    pub transformer: TransformerSizes,
}

impl Sizes {
    /// Multiplications and additions of a step of training on `pairs` pairs that are filled up to `length` words, three times those of
    /// a forward pass.
    pub fn operations(&self, pairs: usize, length: usize) -> f64 {
        let TransformerSizes { width, feed_forward, layers, .. } = self.transformer;
        let [d, f, n] = [width, feed_forward, length].map(|v| v as f64);
        let dense = 12.0 * d * d + 4.0 * d * f;
        let attention = 6.0 * n * d;
        let token = layers as f64 * (dense + attention) + d * self.words as f64;
        6.0 * pairs as f64 * n * token
    }
}

/// The model.
#[derive(Module, Debug)]
pub struct Translator {
    source_words: Param<Tensor<2>>,
    source_positions: Param<Tensor<2>>,
    target_words: Param<Tensor<2>>,
    target_positions: Param<Tensor<2>>,
    encoder: Vec<Block>,
    encoder_norm: LayerNorm,
    decoder: Vec<DecoderBlock>,
    decoder_norm: LayerNorm,
    output: Dense,
}

/// Pairs of sentences as tensors; shorter ones are filled up.
#[derive(Debug, Clone)]
pub struct Batch {
    /// `[B, S]`.
    source: Tensor<2, Int>,
    /// Zero if there is a word, [`MASK_BIAS`] elsewhere, `[B, 1, 1, S]`.
    source_bias: Tensor<4>,
    /// What the decoder reads and predicts.
    target: Sentences,
    /// Of [`causal_bias`], `[1, 1, T, T]`.
    causal: Tensor<4>,
}

impl Batch {
    /// Of pairs of words 0, 1, …, (source, target); `None` without pairs.
    pub fn new(pairs: &[Pair], device: &Device) -> Option<Self> {
        let b = pairs.len();
        let s = pairs.iter().map(|p| p.0.len()).max()?.max(1);
        let mut source = vec![END; b * s];
        let mut source_bias = vec![MASK_BIAS; b * s];
        let tokens = |words: &[usize]| words.iter().map(|word| word + SPECIAL).collect::<Vec<_>>();
        for (i, (from, _)) in pairs.iter().enumerate() {
            source[i * s..][..from.len()].copy_from_slice(&tokens(from));
            source_bias[i * s..][..from.len()].fill(0.0);
        }
        let targets: Vec<Vec<usize>> = pairs.iter().map(|pair| tokens(&pair.1)).collect();
        let targets: Vec<&[usize]> = targets.iter().map(Vec::as_slice).collect();
        let target = Sentences::new(&targets, [END, END, START], device)?;
        Some(Batch {
            source: integers(source, device).reshape([b, s]),
            source_bias: constant(source_bias, [b, 1, 1, s], device),
            causal: causal_bias(target.read.dims()[1], device),
            target,
        })
    }
}

/// Words and positions `[B, N, D]`.
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
    /// Draws a model; its tables of positions have `deviation`.
    pub fn new(sizes: &Sizes, deviation: f64, rng: &mut ChaCha8Rng, device: &Device) -> Self {
        let mut draw = Draw { rng, device };
        let TransformerSizes { width: d, layers, .. } = sizes.transformer;
        let word = (d as f64).sqrt().recip();
        let tokens = sizes.words + SPECIAL;
        Translator {
            source_words: draw.normal([tokens, d], word),
            source_positions: draw.normal([sizes.positions, d], deviation),
            target_words: draw.normal([tokens, d], word),
            // The start takes a place, too.
            target_positions: draw.normal([sizes.positions + 1, d], deviation),
            encoder: Block::stack(&mut draw, &sizes.transformer, layers, LayerStyle::GELU),
            encoder_norm: draw.layer_norm(d),
            decoder: DecoderBlock::stack(&mut draw, &sizes.transformer, layers, LayerStyle::GELU),
            decoder_norm: draw.layer_norm(d),
            output: draw.dense(d, tokens),
        }
    }

    /// Log-probabilities of what is said next, `[B, T, tokens]`, after the start and each word.
    pub fn log_probabilities(&self, batch: &Batch) -> Tensor<3> {
        let mut x = embed(&self.source_words, &self.source_positions, &batch.source);
        for block in &self.encoder {
            x = block.transform(block.attend(x, None, batch.source_bias.clone(), false).0);
        }
        let memory = self.encoder_norm.forward(x);
        let mut x = embed(&self.target_words, &self.target_positions, &batch.target.read);
        for block in &self.decoder {
            let (memory, biases) = (memory.clone(), [&batch.causal, &batch.source_bias]);
            x = block.forward(x, None, [memory.clone(), memory], biases, true);
        }
        activation::log_softmax(self.output.forward(self.decoder_norm.forward(x)), 2)
    }

    /// The loss of a training step on pairs; `None` without pairs.
    pub fn loss(&self, pairs: &[Pair], sizes: &Sizes, device: &Device) -> Option<Loss> {
        let batch = Batch::new(pairs, device)?;
        let length = batch.source.dims()[1].max(batch.target.read.dims()[1]);
        let operations = sizes.operations(pairs.len(), length);
        Some(Loss { value: self.cross_entropy(&batch), penalty: None, operations })
    }

    /// Mean of −log p of the target words and ends, in nats.
    pub fn cross_entropy(&self, batch: &Batch) -> Tensor<1> {
        batch.target.cross_entropy(self.log_probabilities(batch))
    }

    /// Tables of positions, row by row: of the source, and of the target without the place of the start.
    pub fn positions(&self) -> [Vec<f32>; 2] {
        let width = self.source_positions.val().dims()[1];
        let target = numbers(self.target_positions.val());
        [numbers(self.source_positions.val()), target[width.min(target.len())..].to_vec()]
    }
}

/// A sentence and its translation in numbers.
pub type Pair = (Vec<usize>, Vec<usize>);

/// Mean loss in nats per token, the ends included, without gradients; zero without pairs.
pub fn evaluate(model: &Translator, pairs: &[Pair], device: &Device) -> f64 {
    let model = model.clone().no_grad();
    // Weighted by tokens, not by sentences or chunks.
    let tokens = |chunk: &[Pair]| chunk.iter().map(|p| p.1.len() + 1).sum::<usize>() as f64;
    let loss = |chunk: &[Pair]| {
        let batch = Batch::new(chunk, device);
        tokens(chunk) * batch.map_or(f64::NAN, |batch| number(model.cross_entropy(&batch)))
    };
    pairs.chunks(CHUNK).map(loss).sum::<f64>() / tokens(pairs).max(1.0)
}
