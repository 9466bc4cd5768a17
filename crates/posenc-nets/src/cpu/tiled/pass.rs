//! Forward and backward pass of one tile of points through the network.

use faer::{Accum, Mat, MatMut, MatRef};

use super::input::Tiles;
use super::layout::Layout;
use crate::OutputActivation;
use crate::cpu::kernels;

#[derive(Debug, Default)]
pub struct Scratch {
    /// Activations of every hidden layer, width × points.
    hidden: Vec<Vec<f32>>,
    /// Outputs in the order of [`output_place`].
    output: Vec<f32>,
    /// Features that the first layer expanded on the current tile.
    expanded: Vec<f32>,
    /// Gradients with respect to the output and the input of a layer.
    gradient: [Vec<f32>; 2],
}

impl Scratch {
    pub fn new(layout: &Layout, tile: usize) -> Self {
        let last = layout.slots.len() - 1;
        let widest = layout.slots.iter().map(|slot| slot.fan_out).max().unwrap_or(1);
        Scratch {
            hidden: layout.slots[..last].iter().map(|s| vec![0.0; s.fan_out * tile]).collect(),
            output: vec![0.0; layout.slots[last].fan_out * tile],
            expanded: Vec::new(),
            gradient: [vec![0.0; widest * tile], vec![0.0; widest * tile]],
        }
    }

    /// Activations of a hidden layer after [`forward`] on a tile of `points` points.
    pub fn activations(&self, layer: usize, width: usize, points: usize) -> MatRef<'_, f32> {
        MatRef::from_column_major_slice(&self.hidden[layer][..width * points], width, points)
    }
}

/// Gradient sums of a lane.
pub struct Sums<'a> {
    /// Sum of [`Tiles::add_gradient`].
    pub first: &'a mut [f32],
    /// Gradient of θ without the first layer's weights.
    pub rest: &'a mut [f32],
    /// Whether this tile overwrites the sums.
    pub fresh: bool,
}

/// Forward and backward passes of a run with fixed parameters.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a> {
    layout: &'a Layout,
    activation: OutputActivation,
    tiles: &'a Tiles,
    theta: &'a [f32],
    /// Products of [`Tiles::prepare`] for θ.
    products: &'a [f32],
}

/// Index of output `o` of point `p` in the output buffer. Points are contiguous if the last layer is stored
/// transposed; outputs are contiguous if there is only one layer.
fn output_place(layout: &Layout, points: usize) -> impl Fn(usize, usize) -> usize {
    let outputs = layout.slots[layout.slots.len() - 1].fan_out;
    let transposed = layout.slots.len() > 1;
    move |p, o| if transposed { o * points + p } else { p * outputs + o }
}

impl<'a> Pass<'a> {
    /// Creates a pass with the parameters `theta` and updates `products` for them.
    pub fn new(
        layout: &'a Layout,
        activation: OutputActivation,
        tiles: &'a Tiles,
        theta: &'a [f32],
        products: &'a mut Vec<f32>,
    ) -> Self {
        tiles.prepare(layout.first(), theta, products);
        Pass { layout, activation, tiles, theta, products }
    }

    fn outputs(&self) -> usize {
        self.layout.slots[self.layout.slots.len() - 1].fan_out
    }

    /// Computes the activations and outputs of a tile.
    pub fn forward(&self, tile: usize, scratch: &mut Scratch) {
        let n = self.tiles.places(tile).len();
        let first = self.layout.first();
        let later = self.layout.later();
        let bias = first.bias(self.theta);
        let expanded = &mut scratch.expanded;
        if later.is_empty() {
            let out = &mut scratch.output[..first.fan_out * n];
            self.tiles.forward(tile, first, self.theta, self.products, expanded, out);
            kernels::add_bias(out, bias);
        } else {
            let out = &mut scratch.hidden[0][..first.fan_out * n];
            self.tiles.forward(tile, first, self.theta, self.products, expanded, out);
            kernels::add_bias_and_rectify(out, bias);
        }
        for (l, slot) in later.iter().enumerate() {
            let (before, after) = scratch.hidden.split_at_mut(l + 1);
            let input =
                MatRef::from_column_major_slice(&before[l][..slot.fan_in * n], slot.fan_in, n);
            let (weights, bias) = (slot.weights(self.theta), slot.bias(self.theta));
            if slot.transposed {
                // Yᵀ (n × o) = Hᵀ S with S = Wᵀ.
                let out = &mut scratch.output[..slot.fan_out * n];
                for (column, b) in out.chunks_exact_mut(n).zip(bias) {
                    column.fill(*b);
                }
                let out = MatMut::from_column_major_slice_mut(out, n, slot.fan_out);
                kernels::multiply(out, Accum::Add, input.transpose(), weights);
            } else {
                let out = &mut after[0][..slot.fan_out * n];
                let view = MatMut::from_column_major_slice_mut(&mut *out, slot.fan_out, n);
                kernels::multiply(view, Accum::Replace, weights, input);
                kernels::add_bias_and_rectify(out, bias);
            }
        }
        if self.activation == OutputActivation::Sigmoid {
            kernels::sigmoid(&mut scratch.output[..self.outputs() * n]);
        }
    }

    /// Sum of squared errors of a tile after [`Pass::forward`]. The targets of the run start at column `column`.
    pub fn squares(
        &self,
        tile: usize,
        scratch: &Scratch,
        targets: &Mat<f32>,
        column: usize,
    ) -> f64 {
        let places = self.tiles.places(tile);
        let place = output_place(self.layout, places.len());
        let mut sum = 0.0;
        for o in 0..self.outputs() {
            let target = targets.col_as_slice(column + o);
            for p in 0..places.len() {
                let error =
                    scratch.output[place(p, o)] - target[self.tiles.point(places.start + p)];
                sum += f64::from(error) * f64::from(error);
            }
        }
        sum
    }

    /// Copies the outputs of a tile to the rows of its points in `out`, from column `column` on.
    pub fn write(&self, tile: usize, scratch: &Scratch, out: &mut Mat<f32>, column: usize) {
        let places = self.tiles.places(tile);
        let place = output_place(self.layout, places.len());
        for o in 0..self.outputs() {
            let out = out.col_as_slice_mut(column + o);
            for p in 0..places.len() {
                out[self.tiles.point(places.start + p)] = scratch.output[place(p, o)];
            }
        }
    }

    /// Adds a tile's share of the gradient of `scale`/2 · Σ error² after [`Pass::forward`]. Returns the tile's sum of
    /// squared errors.
    pub fn backward(
        &self,
        tile: usize,
        scratch: &mut Scratch,
        targets: &Mat<f32>,
        column: usize,
        scale: f32,
        sums: Sums<'_>,
    ) -> f64 {
        let Sums { first, rest, fresh } = sums;
        let accum = if fresh { Accum::Replace } else { Accum::Add };
        let squares = self.output_gradient(tile, scratch, targets, column, scale);
        let n = self.tiles.places(tile).len();
        let slots = &self.layout.slots;
        let skipped = slots[0].bias_start();
        if fresh {
            for slot in slots {
                rest[slot.bias_start() - skipped..slot.end() - skipped].fill(0.0);
            }
        }
        let [mut g, mut next] =
            [std::mem::take(&mut scratch.gradient[0]), std::mem::take(&mut scratch.gradient[1])];
        for l in (1..slots.len()).rev() {
            let slot = &slots[l];
            let input = &scratch.hidden[l - 1][..slot.fan_in * n];
            let h = MatRef::from_column_major_slice(input, slot.fan_in, n);
            let range = slot.start - skipped..slot.end() - skipped;
            let below = &mut next[..slot.fan_in * n];
            let (weights, bias) = rest[range].split_at_mut(slot.fan_in * slot.fan_out);
            let theta = slot.weights(self.theta);
            let view = MatMut::from_column_major_slice_mut(&mut *below, slot.fan_in, n);
            if slot.transposed {
                // dS += H G, where G is n × o; the gradient of H is S Gᵀ.
                let g = &g[..slot.fan_out * n];
                for (b, column) in bias.iter_mut().zip(g.chunks_exact(n)) {
                    *b += kernels::sum(column);
                }
                let g = MatRef::from_column_major_slice(g, n, slot.fan_out);
                let sum = MatMut::from_column_major_slice_mut(weights, slot.fan_in, slot.fan_out);
                kernels::multiply(sum, accum, h, g);
                kernels::multiply(view, Accum::Replace, theta, g.transpose());
            } else {
                let g = MatRef::from_column_major_slice(&g[..slot.fan_out * n], slot.fan_out, n);
                let sum = MatMut::from_column_major_slice_mut(weights, slot.fan_out, slot.fan_in);
                kernels::multiply(sum, accum, g, h.transpose());
                kernels::multiply(view, Accum::Replace, theta.transpose(), g);
            }
            // Backward through the ReLU of the layer below, and sum for its bias.
            let lower = &slots[l - 1];
            let bias = lower.bias_start() - skipped..lower.end() - skipped;
            kernels::mask_and_sum(below, input, &mut rest[bias]);
            std::mem::swap(&mut g, &mut next);
        }
        let lowest = &g[..slots[0].fan_out * n];
        if slots.len() == 1 {
            for column in lowest.chunks_exact(slots[0].fan_out) {
                kernels::add(column, &mut rest[..slots[0].fan_out]);
            }
        }
        self.tiles.add_gradient(tile, &slots[0], &scratch.expanded, lowest, first, fresh);
        scratch.gradient = [g, next];
        squares
    }

    /// Writes the gradient with respect to the outputs before their activation to `gradient[0]`; returns the sum of
    /// squared errors.
    fn output_gradient(
        &self,
        tile: usize,
        scratch: &mut Scratch,
        targets: &Mat<f32>,
        column: usize,
        scale: f32,
    ) -> f64 {
        let places = self.tiles.places(tile);
        let place = output_place(self.layout, places.len());
        let mut sum = 0.0;
        for o in 0..self.outputs() {
            let target = targets.col_as_slice(column + o);
            for p in 0..places.len() {
                let at = place(p, o);
                let y = scratch.output[at];
                let error = y - target[self.tiles.point(places.start + p)];
                sum += f64::from(error) * f64::from(error);
                let slope = match self.activation {
                    OutputActivation::Identity => 1.0,
                    OutputActivation::Sigmoid => y * (1.0 - y),
                };
                scratch.gradient[0][at] = scale * error * slope;
            }
        }
        sum
    }
}
