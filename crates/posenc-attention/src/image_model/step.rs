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
        adam.begin();
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
        let gradients = match self.penalty() {
            Some(penalty) => sum + penalty,
            None => sum,
        }
        .backward();
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

#[cfg(test)]
mod tests {
    use posenc_math::lff::divergence::{Divergence, Form};
    use posenc_math::lff::encoding::{Encoding, Features, Modulator};
    use posenc_math::random::stream;

    use super::super::{Lsh, Sizes, tokens};
    use super::*;
    use crate::layers::TransformerSizes;
    use crate::parameters::{gradients, values};

    /// Catches a stream that is reconstructed incorrectly, a gradient that is lost or counted twice, and random numbers or orders that
    /// differ when a layer is recomputed. The reference is one graph of the whole model.
    #[test]
    fn reversible_gradients_match_a_plain_graph() {
        let device = crate::cpu();
        let lsh = Lsh { head_width: 4, chunk: 6, buckets: 6, rounds: 2, dropout: 0.2 };
        let encoding = Encoding {
            features: Features::Fourier,
            gamma: Some(1.0),
            learned: true,
            modulator: Some(Modulator { hidden: 8, layer_norm: true, dropout: 0.1 }),
            ..Encoding::none()
        };
        let divergence = Some(Divergence { form: Form::Pooled, weight: 0.5 });
        for (lsh, divergence) in [(Some(lsh), None), (None, divergence)] {
            let sizes = Sizes {
                side: 4,
                levels: 8,
                color_width: Some(4),
                concatenated: None,
                transformer: TransformerSizes { width: 16, heads: 2, feed_forward: 32, layers: 3 },
                lsh,
                reversible: true,
                divergence,
            };
            let streams = [stream(1, "content"), stream(1, "code")];
            let mut model = ImageModel::new(&sizes, &encoding, streams, &device);
            let fixed = model.fix(&device);
            let levels = |i: usize| (0..sizes.length()).map(|t| ((t * t + i) % 8) as u8).collect();
            let images = tokens(&[levels(0), levels(3)], &device);
            let loss = model.loss(&images, &fixed, &mut stream(5, "step"));
            let nats = number(loss.value.clone());
            let whole = loss.penalty.into_iter().fold(loss.value, |loss, penalty| loss + penalty);
            let expected = gradients(&model, &whole.backward());
            let mut adam = Adam::new(0.9, 0.98, 1e-9);
            let before = values(&model);
            let mut draws = stream(5, "step");
            let own = model.reversible_step(&images, &fixed, &mut adam, 1e-3, &mut draws);
            assert!((own - nats).abs() < 1e-6, "{own} {nats}");
            // After one step the first moment is a tenth of the gradient.
            let (moments, _) = adam.state(&model);
            let largest = expected.iter().fold(0.0f32, |m, g| m.max(g.abs()));
            for (i, (m, g)) in moments.iter().zip(&expected).enumerate() {
                assert!((10.0 * m - g).abs() < 1e-4 * largest, "{i}: {} {g}", 10.0 * m);
            }
            let moved = expected.iter().filter(|g| g.abs() > 1e-4 * largest).count();
            assert!(moved > expected.len() / 2);
            assert_ne!(before, values(&model));
        }
    }
}
