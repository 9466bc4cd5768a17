//! Small transformers over the boxes of a screen: what each box is ([`Labeller`]), and which of them an expression refers to
//! ([`Referrer`]).
//!
//! A box is a token made of the code of its position, left, top, right, bottom; in a labeller it is nothing else. Norms stand
//! before attention and dense layers, and a last one after them. Screens of a batch are filled up to the most boxes; what fills up
//! is never looked at. Codes are computed for boxes alone, and brought to their places afterwards.

mod labels;
mod referred;

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;

use crate::draw::{Draw, constant};
use crate::encoder::{Encoder, Positions};
use crate::layers::{Block, Dropout, LayerNorm, NEVER};
use crate::optimizer::Adam;
use crate::progress::Progress;
use posenc_math::lff::schedule::LearningRate;

pub use crate::captioner::{BINS, COORDINATES};
pub use labels::{LabelledScreen, Labeller};
pub use referred::{Candidate, Referrer, ReferrerSizes, ReferringScreen};

/// Left, top, right and bottom of a box on the scale of the encoding.
pub type Bounds = [f64; COORDINATES];

/// Screens that are looked at at once where nothing is learned.
const CHUNK: usize = 64;

/// Sizes that both models have.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// Numbers per token.
    pub width: usize,
    /// Heads of attention, which share the width.
    pub heads: usize,
    /// Numbers between the two dense layers of a block.
    pub feed_forward: usize,
    /// Layers.
    pub layers: usize,
    /// Share of the numbers that are dropped of what attention and dense layers add.
    pub dropout: f64,
}

impl Sizes {
    /// Multiplications and additions of a step of training through the layers on `screens` screens of `length` tokens, three times
    /// those of a pass forward.
    pub fn operations(&self, screens: usize, length: usize) -> f64 {
        let [d, f, n] = [self.width, self.feed_forward, length].map(|v| v as f64);
        let token = 4.0 * d * d + 2.0 * d * f + 2.0 * n * d;
        6.0 * (screens * length) as f64 * self.layers as f64 * token
    }
}

/// Streams of masks of a step of training. The code's are its own: codes that draw none leave the masks of the layers as they
/// are.
#[derive(Debug)]
pub struct Masks<'a> {
    /// Of the layers.
    pub layers: &'a mut ChaCha8Rng,
    /// Of the modulator of the code.
    pub code: &'a mut ChaCha8Rng,
}

/// A model that learns from screens.
pub trait ScreenModel: Module {
    /// What it reads.
    type Screen;

    /// The loss on a batch in nats, and the operations of a step on it; `None` if the screens are no batch. With `masks`, numbers
    /// are dropped: this is training.
    fn loss(
        &self,
        screens: &[&Self::Screen],
        masks: Option<Masks<'_>>,
        device: &Device,
    ) -> Option<(Tensor<1>, f64)>;
}

/// A training in flight.
#[derive(Debug)]
pub struct Trainer<'a, M> {
    /// The model, and how far it has come.
    pub progress: Progress<M>,
    device: &'a Device,
    work: f64,
}

impl<'a, M: ScreenModel> Trainer<'a, M> {
    /// At the beginning.
    pub fn new(model: M, adam: Adam, learning_rate: LearningRate, device: &'a Device) -> Self {
        Trainer { progress: Progress::new(model, adam, learning_rate), device, work: 0.0 }
    }

    /// Multiplications and additions of the steps of this training, without those before it was resumed.
    pub fn work(&self) -> f64 {
        self.work
    }

    /// One step; gives the loss before it. Screens that are no batch end the training like a loss that is no number.
    pub fn step(&mut self, screens: &[&M::Screen], masks: Masks<'_>) -> f64 {
        let Some((loss, work)) = self.progress.model.loss(screens, Some(masks), self.device) else {
            self.progress.end();
            return f64::NAN;
        };
        self.work += work;
        self.progress.learn(loss, |_| None)
    }
}

/// Blocks and the norm after them.
#[derive(Module, Debug)]
struct Stack {
    blocks: Vec<Block>,
    norm: LayerNorm,
    #[module(skip)]
    dropout: f64,
}

impl Stack {
    fn new(draw: &mut Draw<'_>, sizes: &Sizes) -> Self {
        let (d, h, f) = (sizes.width, sizes.heads, sizes.feed_forward);
        let blocks = (0..sizes.layers).map(|_| Block::new(draw, d, h, f)).collect();
        Stack { blocks, norm: draw.layer_norm(d), dropout: sizes.dropout }
    }

    /// Tokens `[B, T, D]` under the bias `[B, 1, 1, T]`.
    fn forward(
        &self,
        mut x: Tensor<3>,
        bias: &Tensor<4>,
        masks: Option<&mut ChaCha8Rng>,
    ) -> Tensor<3> {
        let mut dropout = Dropout::new(self.dropout, masks);
        for block in &self.blocks {
            x = block.forward(x, bias.clone(), &mut dropout);
        }
        self.norm.forward(x)
    }
}

/// Where the boxes of a batch are.
#[derive(Debug)]
struct Layout {
    /// Boxes of each screen.
    counts: Vec<usize>,
    /// The most of them, N.
    longest: usize,
    /// Coordinates of all boxes, screen by screen.
    coordinates: Vec<f64>,
}

impl Layout {
    /// `None` if a screen has no boxes, or there is no screen.
    fn new<'a>(screens: impl Iterator<Item = &'a [Bounds]>) -> Option<Self> {
        let (mut counts, mut coordinates) = (Vec::new(), Vec::new());
        for boxes in screens {
            counts.push(boxes.len());
            coordinates.extend(boxes.iter().flatten());
        }
        let longest = counts.iter().copied().max()?;
        counts.iter().all(|&count| count > 0).then_some(Layout { counts, longest, coordinates })
    }

    /// Codes of the boxes, `[W, D]`.
    fn codes(
        &self,
        encoder: &Encoder,
        masks: Option<&mut ChaCha8Rng>,
        device: &Device,
    ) -> Tensor<2> {
        let coordinates = self.coordinates.clone();
        let positions = Positions { sides: vec![BINS; COORDINATES], coordinates };
        encoder.encode(&encoder.prepare(&positions, device), masks)
    }

    /// What is known of each box, `[W, D]`, filled up to `[B, N, D]`. The filling is a copy of a box, which nothing may read.
    fn filled(&self, rows: Tensor<2>, device: &Device) -> Tensor<3> {
        let width = rows.dims()[1];
        let (mut places, mut first) = (Vec::new(), 0);
        for &count in &self.counts {
            places.extend((0..self.longest).map(|i| (first + i.min(count - 1)) as i64));
            first += count;
        }
        let b = self.counts.len();
        rows.select(0, integers(places, device)).reshape([b, self.longest, width])
    }

    /// Rows of the boxes among `[B N]`.
    fn rows(&self, device: &Device) -> Tensor<1, Int> {
        let n = self.longest;
        let own = self.counts.iter().enumerate();
        integers(
            own.flat_map(|(b, &count)| (0..count).map(move |i| (b * n + i) as i64)).collect(),
            device,
        )
    }

    /// Zero for boxes, [`NEVER`] for the filling, `[B, N]` row by row.
    fn bias(&self) -> Vec<f32> {
        bias(&self.counts, self.longest)
    }
}

/// Zero for the first ones of each row, as many as `counts` says, [`NEVER`] for the others.
fn bias(counts: &[usize], longest: usize) -> Vec<f32> {
    let one = |&count: &usize| (0..longest).map(move |i| if i < count { 0.0 } else { NEVER });
    counts.iter().flat_map(one).collect()
}

fn integers(numbers: Vec<i64>, device: &Device) -> Tensor<1, Int> {
    let count = numbers.len();
    Tensor::from_data(TensorData::new(numbers, [count]), device)
}

/// −log p of what is true of each row of logarithms `[W, C]`, in the mean.
fn cross_entropy(logarithms: Tensor<2>, truth: Vec<i64>, device: &Device) -> Tensor<1> {
    let count = truth.len();
    let truth: Tensor<2, Int> = Tensor::from_data(TensorData::new(truth, [count, 1]), device);
    logarithms.gather(1, truth).mean().neg()
}

/// The place of the largest number, the first of equal ones.
fn largest(numbers: &[f32]) -> usize {
    let mut best = 0;
    for (i, number) in numbers.iter().enumerate() {
        if *number > numbers[best] {
            best = i;
        }
    }
    best
}

/// A bias for attention, `[B, 1, 1, T]`.
fn attention_bias(bias: Vec<f32>, screens: usize, device: &Device) -> Tensor<4> {
    let length = bias.len() / screens.max(1);
    constant(bias, [screens, 1, 1, length], device)
}
