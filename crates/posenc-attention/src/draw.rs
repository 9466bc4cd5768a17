//! Random tensors from a ChaCha8 stream.

use burn::module::{Param, ParamId};
use burn::tensor::{Device, Tensor, TensorData};
use posenc_math::random::{gaussian_vector, uniform_vector};
use rand_chacha::ChaCha8Rng;

#[derive(Debug)]
pub struct Draw<'a> {
    pub rng: &'a mut ChaCha8Rng,
    pub device: &'a Device,
}

impl Draw<'_> {
    /// Independent normal numbers with mean 0.
    pub fn normal<const D: usize>(
        &mut self,
        shape: [usize; D],
        deviation: f64,
    ) -> Param<Tensor<D>> {
        parameter(normal(self.rng, shape.iter().product(), deviation), shape, self.device)
    }

    /// Independent numbers, uniform on [low, high).
    pub fn uniform<const D: usize>(
        &mut self,
        shape: [usize; D],
        low: f64,
        high: f64,
    ) -> Param<Tensor<D>> {
        let count = shape.iter().product();
        let numbers = uniform_vector(self.rng, count, low, high);
        parameter(numbers.into_iter().map(|v| v as f32).collect(), shape, self.device)
    }
}

/// Independent normal numbers with mean 0.
pub fn normal(rng: &mut ChaCha8Rng, count: usize, deviation: f64) -> Vec<f32> {
    gaussian_vector(rng, count).into_iter().map(|z| (deviation * z) as f32).collect()
}

/// A parameter with given numbers, row by row.
pub fn parameter<const D: usize>(
    numbers: Vec<f32>,
    shape: [usize; D],
    device: &Device,
) -> Param<Tensor<D>> {
    Param::from_tensor(constant(numbers, shape, device))
}

/// A parameter that is not trained, with given numbers, row by row.
pub fn frozen<const D: usize>(
    numbers: Vec<f32>,
    shape: [usize; D],
    device: &Device,
) -> Param<Tensor<D>> {
    Param::initialized(ParamId::new(), constant(numbers, shape, device))
}

/// A constant with given numbers, row by row.
pub fn constant<const D: usize>(
    numbers: Vec<f32>,
    shape: [usize; D],
    device: &Device,
) -> Tensor<D> {
    Tensor::from_data(TensorData::new(numbers, shape), device)
}

/// A mask for dropout: 0 with probability `share`, else 1/(1 − `share`).
pub fn dropout_mask<const D: usize>(
    rng: &mut ChaCha8Rng,
    share: f64,
    shape: [usize; D],
    device: &Device,
) -> Tensor<D> {
    let kept = (1.0 / (1.0 - share)) as f32;
    let draws = uniform_vector(rng, shape.iter().product(), 0.0, 1.0);
    constant(draws.iter().map(|&u| if u < share { 0.0 } else { kept }).collect(), shape, device)
}
