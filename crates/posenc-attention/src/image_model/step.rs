//! A training step that stores no activations of the reversible layers.

use burn::module::Module as _;
use burn::tensor::{Device, Gradients, Int, Tensor};
use rand_chacha::ChaCha8Rng;

use super::{Fixed, ImageModel, cross_entropy};
use crate::optimizer::Adam;
use crate::parameters::number;

/// A leaf of a new autodiff graph.
fn leaf(values: Tensor<3>, device: &Device) -> Tensor<3> {
    Tensor::from_inner(values).to_device(device).require_grad()
}

impl ImageModel {
    /// One training step on `images` `[B, T]`; returns the loss before it in nats per level. If it is not finite, the model is unchanged.
    ///
    /// The backward pass visits the layers from last to first. For each layer, it recomputes the inputs from the outputs, builds the
    /// graph of the layer, and updates its parameters. So only the gradients of one layer are in memory at a time.
    pub(super) fn reversible_step(
        &mut self,
        images: &Tensor<2, Int>,
        fixed: &Fixed,
        adam: &mut Adam,
        rate: f64,
        draws: &mut ChaCha8Rng,
    ) -> f64 {
        let device = images.device();
        let x = self.input.forward(images, fixed, Some(draws));
        let values = x.clone().inner();
        let (mut first, mut second) = (values.clone(), values);
        let mut kept = Vec::new();
        for layer in &self.layers {
            let before = draws.clone();
            let layer = layer.clone().no_grad();
            let still = |x: &Tensor<3>| Tensor::from_inner(x.clone()).to_device(&device);
            let (change, (_, orders)) =
                layer.attend(still(&second), fixed, (true, &mut *draws), None);
            first = first + change.inner();
            second = second + layer.transform(still(&first)).inner();
            kept.push((before, orders));
        }
        let streams = [first, second].map(|values| leaf(values, &device));
        let [first, second] = streams.clone();
        let loss = cross_entropy(self.head.forward(first, Some(second)), images);
        let nats = number(loss.clone());
        if !nats.is_finite() {
            return nats;
        }
        adam.steps += 1;
        let gradients = loss.backward();
        let [mut dfirst, mut dsecond] = streams.each_ref().map(|stream| slope(stream, &gradients));
        let [mut first, mut second] = streams.map(Tensor::inner);
        self.head = adam.update(self.head.clone(), &gradients, rate);
        for (layer, (mut draws, orders)) in self.layers.iter_mut().zip(kept).rev() {
            // x₂ = y₂ − F(y₁), x₁ = y₁ − A(x₂).
            let y = leaf(first.clone(), &device);
            let change = layer.transform(y.clone());
            second = second - change.clone().inner();
            let gradients = pull(change, dsecond.clone(), &device).backward();
            dfirst = dfirst + slope(&y, &gradients);
            let x = leaf(second.clone(), &device);
            let draws = (true, &mut draws);
            let (change, _) = layer.attend(x.clone(), fixed, draws, orders.as_ref());
            first = first - change.clone().inner();
            let attention = pull(change, dfirst.clone(), &device).backward();
            dsecond = dsecond + slope(&x, &attention);
            *layer = adam.update(layer.clone(), &gradients, rate);
            *layer = adam.update(layer.clone(), &attention, rate);
        }
        let sum = pull(x, dfirst + dsecond, &device);
        let gradients = self.penalty().into_iter().fold(sum, Tensor::add).backward();
        self.input = adam.update(self.input.clone(), &gradients, rate);
        self.target = adam.update(self.target.clone(), &gradients, rate);
        nats
    }
}

/// Σ `y` · `dy`.
fn pull(y: Tensor<3>, dy: Tensor<3>, device: &Device) -> Tensor<1> {
    (y * Tensor::from_inner(dy).to_device(device)).sum()
}

/// The gradient of a leaf on which the loss depends.
fn slope(leaf: &Tensor<3>, gradients: &Gradients) -> Tensor<3> {
    leaf.grad(gradients).expect("the loss depends on all streams")
}
