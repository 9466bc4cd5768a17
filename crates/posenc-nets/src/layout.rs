//! Layout of the parameters of several runs in one buffer; the moments use the same layout.

use faer::Mat;

use crate::{Layer, Network, Parameters};

/// Position of one affine layer: first the weights of all runs, run by run and row by row of W, then the biases
/// of all runs.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    pub fan_in: usize,
    pub fan_out: usize,
    /// Number of biases per run: `fan_out` or 0.
    pub biases: usize,
    /// Index of the first weight of the first run.
    pub weights: usize,
    /// Index of the first bias of the first run.
    pub bias: usize,
}

/// Layout of all layers of several runs.
#[derive(Debug, Clone)]
pub struct Layout {
    pub slots: Vec<Slot>,
    pub runs: usize,
    pub len: usize,
}

impl Layout {
    pub fn new(network: &Network, runs: usize) -> Self {
        let mut len = 0;
        let slots = network
            .layers()
            .into_iter()
            .zip(network.biases())
            .map(|((fan_in, fan_out), biases)| {
                let (weights, bias) = (len, len + runs * fan_out * fan_in);
                len = bias + runs * biases;
                Slot { fan_in, fan_out, biases, weights, bias }
            })
            .collect();
        Layout { slots, runs, len }
    }

    /// Flattens the parameters of all runs in the order of the buffer.
    pub fn pack(&self, parameters: &[Parameters]) -> Vec<f32> {
        let mut numbers = Vec::with_capacity(self.len);
        for (l, slot) in self.slots.iter().enumerate() {
            for run in parameters {
                let weights = &run.layers[l].weights;
                for o in 0..slot.fan_out {
                    numbers.extend((0..slot.fan_in).map(|i| weights[(o, i)]));
                }
            }
            parameters.iter().for_each(|run| numbers.extend(&run.layers[l].bias));
        }
        numbers
    }

    pub fn unpack(&self, numbers: &[f32]) -> Vec<Parameters> {
        let layer = |run: usize, slot: &Slot| {
            let first = slot.weights + run * slot.fan_out * slot.fan_in;
            let at = |o, i| numbers[first + o * slot.fan_in + i];
            let bias = slot.bias + run * slot.biases;
            Layer {
                weights: Mat::from_fn(slot.fan_out, slot.fan_in, at),
                bias: numbers[bias..bias + slot.biases].to_vec(),
            }
        };
        let parameters =
            |run| Parameters { layers: self.slots.iter().map(|slot| layer(run, slot)).collect() };
        (0..self.runs).map(parameters).collect()
    }
}
