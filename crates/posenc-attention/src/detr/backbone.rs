//! The convolutional network: a ResNet with bottleneck blocks, the stride in the 3 × 3 convolution, and frozen batch norms.
//!
//! Convolutions are products of gathered rows (see `crate::conv`). The first convolution and the first stage are not trained.

use burn::module::{Module, Param};
use burn::tensor::{Tensor, activation};
use posenc_math::lff::detr::{COLORS, EXPANSION, Sizes};

use super::weights::Read;
use crate::conv::{Border, Map, Taps};
use crate::draw::{Draw, constant, frozen, normal};
use crate::kernels;

/// Added to the variances of batch norms.
const EPSILON: f64 = 1e-5;

const FIRST: usize = 7;

/// Kernel side of the max pooling after it.
const POOL: usize = 3;

/// A convolution without bias, and the frozen batch norm after it.
#[derive(Module, Debug)]
struct Convolution {
    /// `[taps · inputs, outputs]`, taps row by row.
    weights: Param<Tensor<2>>,
    /// Scale of the norm, `[outputs]`.
    scale: Param<Tensor<1>>,
    /// Shift of the norm, `[outputs]`.
    shift: Param<Tensor<1>>,
    /// Running mean and variance of the norm, `[outputs]` each.
    mean: Tensor<1>,
    variance: Tensor<1>,
    inputs: usize,
    side: usize,
    stride: usize,
}

impl Convolution {
    /// Normal weights of variance 2/(taps · outputs) (He et al. 2015); the norm only multiplies by `gain`.
    fn new(
        draw: &mut Draw<'_>,
        [inputs, outputs]: [usize; 2],
        [side, stride]: [usize; 2],
        gain: f64,
        is_trained: bool,
    ) -> Self {
        let taps = side * side;
        let deviation = (2.0 / (taps * outputs) as f64).sqrt();
        let numbers = normal(draw.rng, taps * inputs * outputs, deviation);
        let weights = frozen(numbers, [taps * inputs, outputs], draw.device);
        let all = |value: f64| vec![value as f32; outputs];
        Convolution {
            weights: if is_trained { weights.set_require_grad(true) } else { weights },
            scale: frozen(all(gain), [outputs], draw.device),
            shift: frozen(all(0.0), [outputs], draw.device),
            mean: constant(all(0.0), [outputs], draw.device),
            variance: constant(all(1.0), [outputs], draw.device),
            inputs,
            side,
            stride,
        }
    }

    fn forward(&self, map: &Map, known: &mut Taps) -> Map {
        // (x W − mean)/√(variance + ε) scale + shift as one product.
        let factor = self.scale.val() / self.variance.clone().add_scalar(EPSILON).sqrt();
        let shift = self.shift.val() - self.mean.clone() * factor.clone();
        let weights = self.weights.val() * factor.unsqueeze::<2>();
        let (rows, size) = known.read(map, self.side, self.stride, Border::Half);
        Map { rows: kernels::affine(rows, weights, shift), images: map.images, size }
    }

    fn read<E>(self, convolution: &str, norm: &str, read: &mut Read<'_, E>) -> Result<Self, E> {
        let (taps, inputs) = (self.side * self.side, self.inputs);
        let [_, outputs] = self.weights.dims();
        let device = self.mean.device();
        let name = format!("{convolution}.weight");
        let given = read(&name, &[outputs, inputs, self.side, self.side])?;
        let mut weights = vec![0.0; given.len()];
        for output in 0..outputs {
            for input in 0..inputs {
                for tap in 0..taps {
                    weights[(tap * inputs + input) * outputs + output] =
                        given[(output * inputs + input) * taps + tap];
                }
            }
        }
        let is_trained = self.weights.val().is_require_grad();
        let weights = frozen(weights, [taps * inputs, outputs], &device);
        let weights = if is_trained { weights.set_require_grad(true) } else { weights };
        let mut own = |name: &str| read(&format!("{norm}.{name}"), &[outputs]);
        let scale = frozen(own("weight")?, [outputs], &device);
        let shift = frozen(own("bias")?, [outputs], &device);
        let mean = constant(own("running_mean")?, [outputs], &device);
        let variance = constant(own("running_var")?, [outputs], &device);
        Ok(Convolution { weights, scale, shift, mean, variance, ..self })
    }
}

/// A bottleneck block: convolutions of 1 × 1, 3 × 3 and 1 × 1, and a shortcut (the identity if `None`).
#[derive(Module, Debug)]
struct Block {
    first: Convolution,
    middle: Convolution,
    last: Convolution,
    shortcut: Option<Convolution>,
}

impl Block {
    fn forward(&self, map: Map, known: &mut Taps) -> Map {
        let rectified = |map: Map| map.with(activation::relu(map.rows.clone()));
        let inner = rectified(self.first.forward(&map, known));
        let inner = rectified(self.middle.forward(&inner, known));
        let inner = self.last.forward(&inner, known);
        let beside = match &self.shortcut {
            Some(shortcut) => shortcut.forward(&map, known),
            None => map,
        };
        inner.with(activation::relu(inner.rows.clone() + beside.rows))
    }

    fn read<E>(self, name: &str, read: &mut Read<'_, E>) -> Result<Self, E> {
        let mut inner = |own: Convolution, i: usize| {
            own.read(&format!("{name}.conv{i}"), &format!("{name}.bn{i}"), read)
        };
        let first = inner(self.first, 1)?;
        let middle = inner(self.middle, 2)?;
        let last = inner(self.last, 3)?;
        let (own, norm) = (format!("{name}.downsample.0"), format!("{name}.downsample.1"));
        let shortcut = self.shortcut.map(|shortcut| shortcut.read(&own, &norm, read));
        Ok(Block { first, middle, last, shortcut: shortcut.transpose()? })
    }
}

/// The network up to the last feature map.
#[derive(Module, Debug)]
pub struct Backbone {
    first: Convolution,
    /// The blocks of all stages, in order.
    blocks: Vec<Block>,
    stages: [usize; 4],
}

impl Backbone {
    /// Samples weights. The norms only scale the residual branches, so that their sum does not grow with the number of blocks.
    pub(super) fn new(draw: &mut Draw<'_>, sizes: &Sizes) -> Self {
        let first = Convolution::new(draw, [COLORS, sizes.channels], [FIRST, 2], 1.0, false);
        let count: usize = sizes.blocks.iter().sum();
        let gain = 1.0 / (count as f64).sqrt();
        let mut blocks = Vec::with_capacity(count);
        let mut inputs = sizes.channels;
        for (stage, &count) in sizes.blocks.iter().enumerate() {
            let (inner, is_trained) = (sizes.channels << stage, stage > 0);
            let outputs = EXPANSION * inner;
            for block in 0..count {
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                let mut convolution =
                    |widths, shape, gain| Convolution::new(draw, widths, shape, gain, is_trained);
                blocks.push(Block {
                    first: convolution([inputs, inner], [1, 1], 1.0),
                    middle: convolution([inner, inner], [3, stride], 1.0),
                    last: convolution([inner, outputs], [1, 1], gain),
                    shortcut: (block == 0)
                        .then(|| convolution([inputs, outputs], [1, stride], 1.0)),
                });
                inputs = outputs;
            }
        }
        Backbone { first, blocks, stages: sizes.blocks }
    }

    /// The last feature map of images `[B · rows · columns, 3]`, with one cell per 32 × 32 pixels or part of them.
    pub(super) fn forward(&self, images: Map) -> Map {
        // These taps are not cached: they are large, and no other convolution has their shape.
        let first = self.first.forward(&images, &mut Taps::default());
        let first = first.with(activation::relu(first.rows.clone()));
        // ReLU outputs are not negative, so zero padding does not change the maximum.
        let channels = first.rows.dims()[1];
        let (rows, size) = Taps::default().read(&first, POOL, 2, Border::Half);
        let count = rows.dims()[0];
        let rows = rows.reshape([count, POOL * POOL, channels]).max_dim(1);
        let mut map = Map { rows: rows.reshape([count, channels]), images: images.images, size };
        let mut known = Taps::default();
        for block in &self.blocks {
            map = block.forward(map, &mut known);
        }
        map
    }

    /// Replaces weights and norms by those of a file, whose names begin with `prefix`.
    pub(super) fn read<E>(self, prefix: &str, read: &mut Read<'_, E>) -> Result<Self, E> {
        let first = self.first.read(&format!("{prefix}conv1"), &format!("{prefix}bn1"), read)?;
        let stages = self.stages.iter().enumerate();
        let names = stages.flat_map(|(stage, &count)| {
            (0..count).map(move |block| format!("{prefix}layer{}.{block}", stage + 1))
        });
        let blocks = self.blocks.into_iter().zip(names);
        let blocks =
            blocks.map(|(block, name)| block.read(&name, read)).collect::<Result<_, E>>()?;
        Ok(Backbone { first, blocks, stages: self.stages })
    }
}
