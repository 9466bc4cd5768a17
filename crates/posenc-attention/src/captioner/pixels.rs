//! The convolutional network on pixels. Each stage has three convolutions: the output of the second is added to the stage's
//! input, and the third halves both sides. Batch norm and ReLU follow each convolution.

use burn::module::{Module, Param};
use burn::tensor::{Tensor, activation};
use posenc_math::lff::widget::{CONVOLUTIONS, PublicInputs, kernel_sides};

use crate::conv::{Border, Map, Taps};
use crate::draw::{Draw, frozen, parameter};
use crate::kernels;
use crate::layers::{Dense, Dropout};
use crate::parameters::numbers;

/// Added to the variances of batch norms, as in Keras.
const EPSILON: f64 = 1e-3;

/// Fraction of the running statistics that a step keeps (momentum).
const KEPT: f32 = 0.99;

/// Batch statistics: the means and variances of each batch norm, in order.
pub type Statistics = Vec<[Vec<f32>; 2]>;

/// Batch norm over all cells: uses the statistics of the batch in training, and running statistics otherwise.
#[derive(Module, Debug)]
pub struct BatchNorm {
    gain: Param<Tensor<1>>,
    shift: Param<Tensor<1>>,
    /// Running statistics; not trained, but saved with the parameters.
    mean: Param<Tensor<1>>,
    variance: Param<Tensor<1>>,
}

impl BatchNorm {
    fn new(draw: &Draw<'_>, width: usize) -> Self {
        let all = |value: f32| vec![value; width];
        BatchNorm {
            gain: parameter(all(1.0), [width], draw.device),
            shift: parameter(all(0.0), [width], draw.device),
            mean: frozen(all(0.0), [width], draw.device),
            variance: frozen(all(1.0), [width], draw.device),
        }
    }

    /// Normalizes rows `[N, C]`. With `statistics`, uses the statistics of the rows and records them.
    fn forward(&self, x: Tensor<2>, statistics: Option<&mut Statistics>) -> Tensor<2> {
        let (gain, shift) = (self.gain.val().unsqueeze::<2>(), self.shift.val().unsqueeze::<2>());
        let Some(statistics) = statistics else {
            let root = self.variance.val().add_scalar(EPSILON).sqrt().unsqueeze::<2>();
            return (x - self.mean.val().unsqueeze::<2>()) / root * gain + shift;
        };
        let n = x.dims()[0] as f32;
        let mean = x.clone().mean_dim(0);
        let centered = x - mean.clone();
        let variance = (centered.clone() * centered.clone()).mean_dim(0);
        // Running statistics use the unbiased estimate of the variance, as in Keras and PyTorch.
        let unbiased = n / (n - 1.0).max(1.0);
        let own = numbers(variance.clone()).into_iter().map(|v| v * unbiased).collect();
        statistics.push([numbers(mean), own]);
        centered / variance.add_scalar(EPSILON).sqrt() * gain + shift
    }

    /// Moves the running statistics towards those of a batch.
    fn moved(self, [mean, variance]: &[Vec<f32>; 2]) -> Self {
        let device = self.gain.device();
        let moved = |old: &Param<Tensor<1>>, new: &[f32]| {
            let old = numbers(old.val());
            let all = old.iter().zip(new).map(|(old, new)| KEPT * old + (1.0 - KEPT) * new);
            frozen(all.collect(), [old.len()], &device)
        };
        BatchNorm {
            mean: moved(&self.mean, mean),
            variance: moved(&self.variance, variance),
            ..self
        }
    }
}

/// A convolution with bias, and its batch norm.
#[derive(Module, Debug)]
struct Convolution {
    /// `[taps · inputs, outputs]`, taps row by row.
    weights: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
    norm: BatchNorm,
    side: usize,
    stride: usize,
}

impl Convolution {
    /// Weights uniform on ±√(6/(taps (inputs + outputs))).
    fn new(draw: &mut Draw<'_>, [inputs, outputs]: [usize; 2], [side, stride]: [usize; 2]) -> Self {
        let taps = side * side;
        let limit = (6.0 / (taps * (inputs + outputs)) as f64).sqrt();
        Convolution {
            weights: draw.uniform([taps * inputs, outputs], -limit, limit),
            bias: parameter(vec![0.0; outputs], [outputs], draw.device),
            norm: BatchNorm::new(draw, outputs),
            side,
            stride,
        }
    }

    fn forward(&self, map: &Map, known: &mut Taps, statistics: Option<&mut Statistics>) -> Map {
        let (rows, size) = known.read(map, self.side, self.stride, Border::Same);
        let rows = kernels::affine(rows, self.weights.val(), self.bias.val());
        Map { rows: self.norm.forward(rows, statistics), images: map.images, size }
    }
}

#[derive(Module, Debug)]
struct Stage {
    convolutions: [Convolution; CONVOLUTIONS],
}

impl Stage {
    fn forward(
        &self,
        map: &Map,
        mut statistics: Option<&mut Statistics>,
        dropout: &mut Dropout<'_>,
    ) -> Map {
        let [first, second, third] = &self.convolutions;
        // Taps are cached per stage, since no other stage has maps of these sizes.
        let mut known = Taps::default();
        let mut rectified = |map: Map| {
            let rows = dropout.apply(activation::relu(map.rows.clone()));
            map.with(rows)
        };
        let inner = rectified(first.forward(map, &mut known, statistics.as_deref_mut()));
        let inner = second.forward(&inner, &mut known, statistics.as_deref_mut());
        let inner = rectified(inner.with(inner.rows.clone() + map.rows.clone()));
        rectified(third.forward(&inner, &mut known, statistics))
    }
}

/// Encodes gray pictures as vectors, and combines them with the vectors of nodes.
#[derive(Module, Debug)]
pub struct PixelEncoder {
    stages: Vec<Stage>,
    pub(super) fusion: Dense,
}

impl PixelEncoder {
    pub(super) fn new(draw: &mut Draw<'_>, own: &PublicInputs, width: usize) -> Self {
        let mut inputs = 1;
        let stages = own.channels.iter().enumerate().map(|(stage, &outputs)| {
            let [first, second, third] = kernel_sides(stage);
            let convolutions = [
                Convolution::new(draw, [inputs, inputs], [first, 1]),
                Convolution::new(draw, [inputs, inputs], [second, 1]),
                Convolution::new(draw, [inputs, outputs], [third, 2]),
            ];
            inputs = outputs;
            Stage { convolutions }
        });
        let stages = stages.collect();
        PixelEncoder { stages, fusion: draw.dense(own.pixel_width() + width, width) }
    }

    /// Combines nodes `[W, D]` with their pictures.
    pub(super) fn forward(
        &self,
        nodes: Tensor<2>,
        pictures: Map,
        mut statistics: Option<&mut Statistics>,
        dropout: &mut Dropout<'_>,
    ) -> Tensor<2> {
        let mut map = pictures;
        for stage in &self.stages {
            map = stage.forward(&map, statistics.as_deref_mut(), dropout);
        }
        // The last map of each picture has one cell.
        activation::relu(self.fusion.forward(Tensor::cat(vec![map.rows, nodes], 1)))
    }

    /// Moves the running statistics towards those of a batch.
    pub(super) fn moved(self, statistics: &Statistics) -> Self {
        let mut statistics = statistics.iter();
        let stages = self.stages.into_iter().map(|stage| Stage {
            convolutions: stage.convolutions.map(|own| match statistics.next() {
                Some(statistics) => Convolution { norm: own.norm.moved(statistics), ..own },
                None => own,
            }),
        });
        PixelEncoder { stages: stages.collect(), ..self }
    }

    pub(super) fn norms(&self) -> impl Iterator<Item = &BatchNorm> {
        self.stages.iter().flat_map(|stage| &stage.convolutions).map(|own| &own.norm)
    }
}
