//! Layout of the parameters of a run in its vector θ.

use faer::{Mat, MatMut, MatRef};

use crate::{Layer, Network, Parameters};

/// One affine layer in θ: weights, then biases.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    pub fan_in: usize,
    pub fan_out: usize,
    /// Start of the weights; the biases follow them.
    pub start: usize,
    /// Whether the weights are stored as fan in × fan out. The last layer has few outputs, and products with a long
    /// contiguous side are several times faster.
    pub transposed: bool,
}

impl Slot {
    pub fn bias_start(&self) -> usize {
        self.start + self.fan_in * self.fan_out
    }

    pub fn end(&self) -> usize {
        self.bias_start() + self.fan_out
    }

    /// Weights as stored: fan out × fan in, or transposed.
    pub fn weights<'a>(&self, theta: &'a [f32]) -> MatRef<'a, f32> {
        let (rows, columns) = self.shape();
        MatRef::from_column_major_slice(&theta[self.start..self.bias_start()], rows, columns)
    }

    pub fn weights_mut<'a>(&self, theta: &'a mut [f32]) -> MatMut<'a, f32> {
        let (rows, columns) = self.shape();
        MatMut::from_column_major_slice_mut(
            &mut theta[self.start..self.bias_start()],
            rows,
            columns,
        )
    }

    pub fn bias<'a>(&self, theta: &'a [f32]) -> &'a [f32] {
        &theta[self.bias_start()..self.end()]
    }

    pub fn bias_mut<'a>(&self, theta: &'a mut [f32]) -> &'a mut [f32] {
        &mut theta[self.bias_start()..self.end()]
    }

    fn shape(&self) -> (usize, usize) {
        if self.transposed { (self.fan_in, self.fan_out) } else { (self.fan_out, self.fan_in) }
    }
}

/// The layers of a network in θ.
#[derive(Debug, Clone)]
pub struct Layout {
    pub slots: Vec<Slot>,
}

impl Layout {
    pub fn new(network: &Network) -> Self {
        let shapes = network.layers();
        let last = shapes.len() - 1;
        let mut start = 0;
        let slots = shapes
            .into_iter()
            .enumerate()
            .map(|(l, (fan_in, fan_out))| {
                let slot = Slot { fan_in, fan_out, start, transposed: l == last && last > 0 };
                start = slot.end();
                slot
            })
            .collect();
        Layout { slots }
    }

    pub fn len(&self) -> usize {
        self.slots.last().map_or(0, Slot::end)
    }

    pub fn first(&self) -> &Slot {
        &self.slots[0]
    }

    pub fn later(&self) -> &[Slot] {
        &self.slots[1..]
    }

    pub fn pack(&self, parameters: &Parameters) -> Vec<f32> {
        let mut theta = vec![0.0; self.len()];
        for (slot, layer) in self.slots.iter().zip(&parameters.layers) {
            let weights = layer.weights.as_ref();
            let weights = if slot.transposed { weights.transpose() } else { weights };
            slot.weights_mut(&mut theta).copy_from(weights);
            slot.bias_mut(&mut theta).copy_from_slice(&layer.bias);
        }
        theta
    }

    pub fn unpack(&self, theta: &[f32]) -> Parameters {
        let layers = self
            .slots
            .iter()
            .map(|slot| {
                let weights = slot.weights(theta);
                let weights: Mat<f32> = if slot.transposed {
                    weights.transpose().to_owned()
                } else {
                    weights.to_owned()
                };
                Layer { weights, bias: slot.bias(theta).to_vec() }
            })
            .collect();
        Parameters { layers }
    }
}
