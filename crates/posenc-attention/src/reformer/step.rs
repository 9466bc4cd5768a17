//! A training step that stores no activations of the reversible layers.

use burn::module::Module as _;
use burn::tensor::{Device, Int, Tensor};
use rand_chacha::ChaCha8Rng;

use super::hashing::Draws;
use super::{Fixed, Reformer};
use crate::optimizer::Adam;
use crate::parameters::number;

/// A leaf of a new autodiff graph.
fn leaf(values: Tensor<3>, device: &Device) -> Tensor<3> {
    Tensor::from_inner(values).to_device(device).require_grad()
}

impl Reformer {
    /// One training step on `images` `[B, T]`; returns the loss before it in nats per level. If it is not finite, the model is unchanged.
    ///
    /// The backward pass visits the layers from last to first. For each layer, it recomputes the inputs from the outputs, builds the
    /// graph of the layer, and updates its parameters. So only the gradients of one layer are in memory at a time.
    pub fn step(
        &mut self,
        images: &Tensor<2, Int>,
        fixed: &Fixed,
        adam: &mut Adam,
        rate: f64,
        rng: &mut ChaCha8Rng,
    ) -> f64 {
        let device = images.device();
        let x = self.input.forward(images, fixed, Some(rng));
        let values = x.clone().inner();
        let (mut first, mut second) = (values.clone(), values);
        let mut kept = Vec::new();
        for layer in &self.layers {
            let draws = Draws::new(&fixed.hashing, true, rng, &device);
            let layer = layer.clone().no_grad();
            let still = |x: &Tensor<3>| Tensor::from_inner(x.clone()).to_device(&device);
            let (change, orders) = layer.attend(still(&second), &draws, None);
            first = first + change.inner();
            second = second + layer.transform(still(&first)).inner();
            kept.push((draws, orders));
        }
        let streams = [first, second].map(|values| leaf(values, &device));
        let loss = self.head.cross_entropy(streams.clone(), images);
        let nats = number(loss.clone());
        if !nats.is_finite() {
            return nats;
        }
        adam.begin();
        let gradients = loss.backward();
        let (mut dfirst, mut dsecond) = (streams[0].grad(&gradients), streams[1].grad(&gradients));
        let [mut first, mut second] = streams.map(Tensor::inner);
        self.head = adam.update(self.head.clone(), &gradients, rate);
        for (layer, (draws, orders)) in self.layers.iter_mut().zip(kept).rev() {
            // x₂ = y₂ − F(y₁), x₁ = y₁ − A(x₂).
            let y = leaf(first.clone(), &device);
            let change = layer.transform(y.clone());
            second = second - change.clone().inner();
            let gradients = pull(change, dsecond.clone(), &device);
            dfirst = added(dfirst, y.grad(&gradients));
            let x = leaf(second.clone(), &device);
            let (change, _) = layer.attend(x.clone(), &draws, Some(&orders));
            first = first - change.clone().inner();
            let attention = pull(change, dfirst.clone(), &device);
            dsecond = added(dsecond, x.grad(&attention));
            *layer = adam.update(layer.clone(), &gradients, rate);
            *layer = adam.update(layer.clone(), &attention, rate);
        }
        let gradients = pull(x, added(dfirst, dsecond), &device);
        self.input = adam.update(self.input.clone(), &gradients, rate);
        nats
    }
}

/// Gradients of Σ `y` · `dy`.
fn pull(y: Tensor<3>, dy: Option<Tensor<3>>, device: &Device) -> burn::tensor::Gradients {
    let sum = match dy {
        Some(dy) => (y * Tensor::from_inner(dy).to_device(device)).sum(),
        None => y.mul_scalar(0.0).sum(),
    };
    sum.backward()
}

fn added(a: Option<Tensor<3>>, b: Option<Tensor<3>>) -> Option<Tensor<3>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use posenc_math::lff::encoding::{Encoding, Features, Modulator};
    use posenc_math::random::stream;

    use super::super::{Hashing, Reformer, Sizes};
    use super::*;
    use crate::parameters::{gradients, values};

    /// The same training pass with a single autodiff graph.
    fn plain(
        model: &Reformer,
        images: &Tensor<2, Int>,
        fixed: &Fixed,
        rng: &mut ChaCha8Rng,
    ) -> (f64, Vec<f32>) {
        let device = images.device();
        let x = model.input.forward(images, fixed, Some(rng));
        let (mut first, mut second) = (x.clone(), x);
        for layer in &model.layers {
            let draws = Draws::new(&fixed.hashing, true, rng, &device);
            first = first + layer.attend(second.clone(), &draws, None).0;
            second = second + layer.transform(first.clone());
        }
        let loss = model.head.cross_entropy([first, second], images);
        let nats = number(loss.clone());
        (nats, gradients(model, &loss.backward()))
    }

    /// Catches a stream that is reconstructed incorrectly, a gradient that is lost or counted twice, and random numbers or orders that
    /// differ when a layer is recomputed.
    #[test]
    fn reversible_gradients_match_a_plain_graph() {
        let device = crate::cpu();
        let hashing =
            Hashing { heads: 2, head_width: 4, chunk: 6, buckets: 6, rounds: 2, dropout: 0.2 };
        let sizes = Sizes {
            side: 4,
            levels: 8,
            layers: 3,
            width: 16,
            pixel_width: 12,
            feed_forward: 32,
            hashing,
        };
        let encoding = Encoding {
            features: Features::Fourier,
            gamma: Some(1.0),
            learned: true,
            modulator: Some(Modulator { hidden: 8, layer_norm: true, dropout: 0.1 }),
            ..Encoding::none()
        };
        let (mut content, mut code) = (stream(1, "content"), stream(1, "code"));
        let mut model = Reformer::new(&sizes, &encoding, &mut content, &mut code, &device).unwrap();
        let fixed = model.fix(&sizes, &device);
        let levels = |i: usize| (0..sizes.length()).map(|t| ((t * t + i) % 8) as u8).collect();
        let images = crate::image_model::tokens(&[levels(0), levels(3)], &device);
        let (nats, expected) = plain(&model, &images, &fixed, &mut stream(5, "step"));
        let mut adam = Adam::new(0.9, 0.98, 1e-9);
        let before = values(&model);
        let own = model.step(&images, &fixed, &mut adam, 1e-3, &mut stream(5, "step"));
        assert!((own - nats).abs() < 1e-6, "{own} {nats}");
        // After one step the first moment is a tenth of the gradient.
        let (moments, _) = adam.state(&model);
        let largest = expected.iter().fold(0.0f32, |m, g| m.max(g.abs()));
        for (i, (m, g)) in moments.iter().zip(&expected).enumerate() {
            assert!((10.0 * m - g).abs() < 1e-4 * largest, "{i}: {} {g}", 10.0 * m);
        }
        assert!(expected.iter().filter(|g| g.abs() > 1e-4 * largest).count() > expected.len() / 2);
        assert_ne!(before, values(&model));
    }
}
