//! An encoder–decoder transformer with learned tables of positions (LFF Figure 1).
//!
//! Norms stand before attention and dense layers; positions are added to the words of both languages.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use posenc_math::lff::schedule::LearningRate;
use rand_chacha::ChaCha8Rng;

use crate::draw::{Draw, constant};
use crate::layers::{Attention, Block, Dense, FeedForward, LayerNorm, NEVER, causal_bias};
use crate::optimizer::Adam;
use crate::parameters::{number, numbers};
use crate::progress::Progress;
use crate::reached::Reached;

/// Token that begins a translation; words follow the special tokens.
const START: usize = 0;
/// Token that ends one.
const END: usize = 1;
/// Special tokens.
const SPECIAL: usize = 2;

/// Sizes of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// Words of each language.
    pub words: usize,
    /// Rows of the tables of positions.
    pub positions: usize,
    /// Layers of the encoder, and of the decoder.
    pub layers: usize,
    /// Numbers per token.
    pub width: usize,
    /// Heads of attention, which share the width.
    pub heads: usize,
    /// Numbers between the two dense layers of a block.
    pub feed_forward: usize,
}

#[derive(Module, Debug)]
struct DecoderBlock {
    own_norm: LayerNorm,
    own: Attention,
    other_norm: LayerNorm,
    other: Attention,
    dense_norm: LayerNorm,
    dense: FeedForward,
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
    /// Zero where there is a word, [`NEVER`] elsewhere, `[B, 1, 1, S]`.
    source_bias: Tensor<4>,
    /// What the decoder reads, `[B, T]`: the start and the words.
    read: Tensor<2, Int>,
    /// What it is to say, `[B, T]`: the words and the end.
    said: Tensor<2, Int>,
    /// One over the number of tokens that are to be said, where one is, else zero, `[B, T]`.
    share: Tensor<2>,
    /// Of [`causal_bias`], `[1, 1, T, T]`.
    causal: Tensor<4>,
}

impl Batch {
    /// Of pairs of words 0, 1, …, (source, target).
    pub fn new(pairs: &[(Vec<usize>, Vec<usize>)], device: &Device) -> Self {
        let b = pairs.len();
        let s = pairs.iter().map(|p| p.0.len()).max().unwrap_or(0).max(1);
        let t = pairs.iter().map(|p| p.1.len()).max().unwrap_or(0) + 1;
        let mut source = vec![END as i64; b * s];
        let mut source_bias = vec![NEVER; b * s];
        let (mut read, mut said) = (vec![END as i64; b * t], vec![END as i64; b * t]);
        let mut share = vec![0.0; b * t];
        let total: usize = pairs.iter().map(|p| p.1.len() + 1).sum();
        for (i, (from, to)) in pairs.iter().enumerate() {
            for (j, word) in from.iter().enumerate() {
                source[i * s + j] = (word + SPECIAL) as i64;
                source_bias[i * s + j] = 0.0;
            }
            read[i * t] = START as i64;
            for (j, word) in to.iter().enumerate() {
                read[i * t + j + 1] = (word + SPECIAL) as i64;
                said[i * t + j] = (word + SPECIAL) as i64;
            }
            share[i * t..][..=to.len()].fill(1.0 / total as f32);
        }
        let tokens =
            |tokens: Vec<i64>, n| Tensor::from_data(TensorData::new(tokens, [b, n]), device);
        Batch {
            source: tokens(source, s),
            source_bias: constant(source_bias, [b, 1, 1, s], device),
            read: tokens(read, t),
            said: tokens(said, t),
            share: constant(share, [b, t], device),
            causal: causal_bias(t, device),
        }
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
        let (d, h) = (sizes.width, sizes.heads);
        let word = (d as f64).sqrt().recip();
        let tokens = sizes.words + SPECIAL;
        Translator {
            source_words: draw.normal([tokens, d], word),
            source_positions: draw.normal([sizes.positions, d], deviation),
            target_words: draw.normal([tokens, d], word),
            // The start takes a place, too.
            target_positions: draw.normal([sizes.positions + 1, d], deviation),
            encoder: (0..sizes.layers)
                .map(|_| Block::new(&mut draw, d, h, sizes.feed_forward))
                .collect(),
            encoder_norm: draw.layer_norm(d),
            decoder: (0..sizes.layers)
                .map(|_| DecoderBlock {
                    own_norm: draw.layer_norm(d),
                    own: Attention::new(&mut draw, d, h),
                    other_norm: draw.layer_norm(d),
                    other: Attention::new(&mut draw, d, h),
                    dense_norm: draw.layer_norm(d),
                    dense: FeedForward::new(&mut draw, d, sizes.feed_forward),
                })
                .collect(),
            decoder_norm: draw.layer_norm(d),
            output: draw.dense(d, tokens),
        }
    }

    /// Log-probabilities of what is said next, `[B, T, tokens]`, after the start and each word.
    pub fn log_probabilities(&self, batch: &Batch) -> Tensor<3> {
        let mut x = embed(&self.source_words, &self.source_positions, &batch.source);
        for block in &self.encoder {
            x = block.transform(block.attend(x, batch.source_bias.clone(), false).0);
        }
        let memory = self.encoder_norm.forward(x);
        let mut x = embed(&self.target_words, &self.target_positions, &batch.read);
        for block in &self.decoder {
            let y = block.own_norm.forward(x.clone());
            x = x + block.own.forward(y.clone(), y, batch.causal.clone(), true).0;
            let y = block.other_norm.forward(x.clone());
            x = x + block.other.forward(y, memory.clone(), batch.source_bias.clone(), false).0;
            x = x.clone() + block.dense.forward(block.dense_norm.forward(x));
        }
        activation::log_softmax(self.output.forward(self.decoder_norm.forward(x)), 2)
    }

    /// Mean of −log p of the tokens that are to be said, in nats.
    pub fn cross_entropy(&self, batch: &Batch) -> Tensor<1> {
        let predictions = self.log_probabilities(batch);
        let [b, t, tokens] = predictions.dims();
        let rows = predictions.reshape([b * t, tokens]);
        let said = rows.gather(1, batch.said.clone().reshape([b * t, 1])).reshape([b, t]);
        (said * batch.share.clone()).sum().neg()
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

/// A training in flight.
#[derive(Debug)]
pub struct Trainer<'a> {
    progress: Progress<Translator>,
    last: usize,
    measure_every: usize,
    held_out: &'a [Pair],
    device: &'a Device,
    losses: Vec<(usize, f64)>,
}

impl<'a> Trainer<'a> {
    /// At the beginning. The loss on `held_out` is taken after every `measure_every` steps and after the last.
    pub fn new(
        model: Translator,
        rate: &LearningRate,
        measure_every: usize,
        held_out: &'a [Pair],
        device: &'a Device,
    ) -> Self {
        let progress = Progress::new(model, Adam::new(0.9, 0.98, 1e-9), *rate);
        let losses = Vec::new();
        Trainer { progress, last: rate.steps, measure_every, held_out, device, losses }
    }

    /// Steps done.
    pub fn steps(&self) -> usize {
        self.progress.steps()
    }

    /// Whether there is a step to do.
    pub fn goes_on(&self) -> bool {
        self.progress.goes_on()
    }

    /// One step on a batch.
    pub fn step(&mut self, batch: &[Pair]) {
        let loss = self.progress.model.cross_entropy(&Batch::new(batch, self.device));
        self.progress.learn(loss, |_| None);
        let step = self.steps();
        let is_due = step.is_multiple_of(self.measure_every) || step == self.last;
        if is_due && self.progress.diverged().is_none() {
            let still = self.progress.model.clone().no_grad();
            // Of tokens, not of sentences or chunks.
            let tokens = |chunk: &[Pair]| chunk.iter().map(|p| p.1.len() + 1).sum::<usize>() as f64;
            let sum: f64 = (self.held_out.chunks(32))
                .map(|c| tokens(c) * number(still.cross_entropy(&Batch::new(c, self.device))))
                .sum();
            self.losses.push((step, sum / tokens(self.held_out).max(1.0)));
        }
    }

    /// What can be gone on from: the model, and losses in nats per token.
    pub fn reached(&self) -> (Reached, &[(usize, f64)]) {
        (self.progress.reached(), &self.losses)
    }

    /// Goes on from what was reached; `false`, and at the beginning, if it is not this training's.
    pub fn resume(&mut self, reached: &Reached, losses: Vec<(usize, f64)>) -> bool {
        let is_own = self.progress.resume(reached);
        if is_own {
            self.losses = losses;
        }
        is_own
    }

    /// Losses in nats per token after the measured steps, and the model; `None` where a loss was no number.
    pub fn finish(self) -> (Vec<(usize, f64)>, Option<Translator>) {
        let is_whole = self.progress.diverged().is_none();
        (self.losses, is_whole.then_some(self.progress.model))
    }
}

/// Trains on the batches that `batches` gives; see [`Trainer`].
pub fn train(
    model: Translator,
    rate: &LearningRate,
    measure_every: usize,
    batches: &mut dyn FnMut() -> Vec<Pair>,
    held_out: &[Pair],
    device: &Device,
) -> (Vec<(usize, f64)>, Option<Translator>) {
    let mut trainer = Trainer::new(model, rate, measure_every, held_out, device);
    while trainer.goes_on() {
        trainer.step(&batches());
    }
    trainer.finish()
}
