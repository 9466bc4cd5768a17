//! Inputs in tiles of points, and the first layer on a tile.

use std::ops::Range;
use std::sync::Arc;

use faer::{Accum, Mat, MatMut, MatRef};

use super::layout::Slot;
use crate::cpu::bands::{compact_order, feature_ranges, threshold};
use crate::cpu::kernels;
use crate::{Factored, Input, Waves};

/// Bands are used if they cover at most this share of the matrix.
const WORTH: f64 = 0.7;

/// Feature ranges with a smaller gap are merged into one product.
const GAP: usize = 16;

/// Embedded points in tiles, in the form that the first layer multiplies.
#[derive(Debug)]
pub struct Tiles {
    form: Form,
    /// Task index of the point at each place; `None` for the identity.
    order: Option<Vec<u32>>,
    points: usize,
    tile: usize,
}

#[derive(Debug)]
enum Form {
    Dense(Arc<Mat<f32>>),
    /// For each tile, the nonzero feature ranges with their values.
    Banded(Vec<Vec<Panel>>),
    Factored(Arc<Factored>),
    /// Waves, expanded tile by tile.
    Waves(Arc<Waves>),
}

/// A feature range of a tile, features × points.
#[derive(Debug)]
struct Panel {
    features: Range<usize>,
    values: Mat<f32>,
}

impl Tiles {
    /// Splits `input` into tiles of `tile` points.
    pub fn new(input: &Input, tile: usize) -> Self {
        let points = input.points();
        let plain = |form| Tiles { form, order: None, points, tile };
        match input {
            Input::Factored(f) => plain(Form::Factored(f.clone())),
            Input::Waves(waves) => plain(Form::Waves(waves.clone())),
            Input::Dense(matrix) => match banded(matrix, tile) {
                Some((order, panels)) => {
                    Tiles { form: Form::Banded(panels), order: Some(order), points, tile }
                }
                None => plain(Form::Dense(matrix.clone())),
            },
            // Unreachable: `Task::check` refuses Kronecker inputs for an affine first layer.
            Input::Kronecker(_) => plain(Form::Dense(Arc::new(input.to_dense()))),
        }
    }

    pub fn count(&self) -> usize {
        self.points.div_ceil(self.tile)
    }

    /// Places of the points of a tile.
    pub fn places(&self, tile: usize) -> Range<usize> {
        tile * self.tile..((tile + 1) * self.tile).min(self.points)
    }

    /// Task index of the point at a place.
    pub fn point(&self, place: usize) -> usize {
        self.order.as_ref().map_or(place, |order| order[place] as usize)
    }

    /// Length of the sum of [`Tiles::add_gradient`].
    pub fn gradient_len(&self, first: &Slot) -> usize {
        match &self.form {
            Form::Factored(f) => {
                first.fan_out * f.tables.iter().map(|table| table.ncols()).sum::<usize>()
            }
            _ => first.fan_out * first.fan_in,
        }
    }

    /// Computes the products W_b T_b (fan out × n_b) of a factored input, which all tiles share. Must be called again
    /// when the weights change; does nothing for other inputs.
    pub fn prepare(&self, first: &Slot, theta: &[f32], products: &mut Vec<f32>) {
        let Form::Factored(f) = &self.form else {
            return;
        };
        products.resize(self.gradient_len(first), 0.0);
        let weights = first.weights(theta);
        let (mut feature, mut at) = (0, 0);
        for table in &f.tables {
            let (rows, columns) = (first.fan_out, table.ncols());
            let size = rows * columns;
            let product = &mut products[at..at + size];
            let product = MatMut::from_column_major_slice_mut(product, rows, columns);
            let weights = weights.subcols(feature, table.nrows());
            kernels::multiply(product, Accum::Replace, weights, table.as_ref());
            feature += table.nrows();
            at += size;
        }
    }

    /// Z ← W Ψ on a tile, fan out × points, without bias. The features of waves are expanded into `expanded`.
    pub fn forward(
        &self,
        tile: usize,
        first: &Slot,
        theta: &[f32],
        products: &[f32],
        expanded: &mut Vec<f32>,
        out: &mut [f32],
    ) {
        let places = self.places(tile);
        let (rows, n) = (first.fan_out, places.len());
        let weights = first.weights(theta);
        if let Form::Waves(waves) = &self.form {
            expanded.resize(first.fan_in * n, 0.0);
            waves.expand(places.start, expanded);
        }
        match &self.form {
            Form::Dense(_) | Form::Waves(_) => {
                let out = MatMut::from_column_major_slice_mut(out, rows, n);
                let features = self.features(&places, first, expanded);
                kernels::multiply(out, Accum::Replace, weights, features);
            }
            Form::Banded(panels) => {
                let mut accum = Accum::Replace;
                if panels[tile].is_empty() {
                    out.fill(0.0);
                }
                for Panel { features, values } in &panels[tile] {
                    let out = MatMut::from_column_major_slice_mut(&mut *out, rows, n);
                    let weights = weights.subcols(features.start, features.len());
                    kernels::multiply(out, accum, weights, values.as_ref());
                    accum = Accum::Add;
                }
            }
            Form::Factored(f) => {
                let mut start = 0;
                for (b, (table, index)) in f.tables.iter().zip(&f.indices).enumerate() {
                    let product = &products[start..start + rows * table.ncols()];
                    start += rows * table.ncols();
                    let index = &index[places.clone()];
                    for (column, &i) in out.chunks_exact_mut(rows).zip(index) {
                        let source = &product[i as usize * rows..][..rows];
                        if b == 0 {
                            column.copy_from_slice(source);
                        } else {
                            kernels::add(source, column);
                        }
                    }
                }
            }
        }
    }

    /// Ψ on a tile: the stored features, or those that [`Tiles::forward`] expanded.
    fn features<'a>(
        &'a self,
        places: &Range<usize>,
        first: &Slot,
        expanded: &'a [f32],
    ) -> MatRef<'a, f32> {
        match &self.form {
            Form::Dense(matrix) => matrix.as_ref().subcols(places.start, places.len()),
            _ => MatRef::from_column_major_slice(expanded, first.fan_in, places.len()),
        }
    }

    /// Adds a tile's share G Ψᵀ of the first layer's gradient to `sum`, where G = `gradient` is fan out × points. For a
    /// factored input, it adds the columns of G to the columns of the tables instead. If `fresh`, the sum is overwritten.
    /// `expanded` must come from [`Tiles::forward`] on the same tile.
    pub fn add_gradient(
        &self,
        tile: usize,
        first: &Slot,
        expanded: &[f32],
        gradient: &[f32],
        sum: &mut [f32],
        fresh: bool,
    ) {
        if fresh && !matches!(self.form, Form::Dense(_) | Form::Waves(_)) {
            sum.fill(0.0);
        }
        let places = self.places(tile);
        let (rows, n) = (first.fan_out, places.len());
        let g = MatRef::from_column_major_slice(gradient, rows, n);
        match &self.form {
            Form::Dense(_) | Form::Waves(_) => {
                let sum = MatMut::from_column_major_slice_mut(sum, rows, first.fan_in);
                let accum = if fresh { Accum::Replace } else { Accum::Add };
                let features = self.features(&places, first, expanded);
                kernels::multiply(sum, accum, g, features.transpose());
            }
            Form::Banded(panels) => {
                for Panel { features, values } in &panels[tile] {
                    let sum = &mut sum[features.start * rows..features.end * rows];
                    let sum = MatMut::from_column_major_slice_mut(sum, rows, features.len());
                    kernels::multiply(sum, Accum::Add, g, values.transpose());
                }
            }
            Form::Factored(f) => {
                let mut start = 0;
                for (table, index) in f.tables.iter().zip(&f.indices) {
                    let sum = &mut sum[start..start + rows * table.ncols()];
                    start += rows * table.ncols();
                    for (column, &i) in gradient.chunks_exact(rows).zip(&index[places.clone()]) {
                        kernels::add(column, &mut sum[i as usize * rows..][..rows]);
                    }
                }
            }
        }
    }

    /// Converts the sum of [`Tiles::add_gradient`] over all tiles to the gradient of the weights. Returns the sum itself,
    /// or for a factored input the gradient written to `weights`.
    pub fn finish_gradient<'a>(
        &self,
        first: &Slot,
        sum: &'a [f32],
        weights: &'a mut Vec<f32>,
    ) -> &'a [f32] {
        let Form::Factored(f) = &self.form else {
            return sum;
        };
        let rows = first.fan_out;
        weights.resize(rows * first.fan_in, 0.0);
        let (mut feature, mut start) = (0, 0);
        for table in &f.tables {
            let size = rows * table.ncols();
            let own = &mut weights[feature * rows..(feature + table.nrows()) * rows];
            let own = MatMut::from_column_major_slice_mut(own, rows, table.nrows());
            let sum = &sum[start..start + size];
            let sum = MatRef::from_column_major_slice(sum, rows, table.ncols());
            kernels::multiply(own, Accum::Replace, sum, table.transpose());
            feature += table.nrows();
            start += size;
        }
        weights
    }
}

/// An order of the points in which tiles need few features, and the panels of the tiles. `None` if this saves too
/// little.
fn banded(matrix: &Mat<f32>, tile: usize) -> Option<(Vec<u32>, Vec<Vec<Panel>>)> {
    let threshold = threshold(matrix);
    let order = compact_order(matrix, threshold, tile);
    let ranges =
        |points: &[u32]| feature_ranges(matrix, threshold, points.iter().map(|&p| p as usize), GAP);
    let ranges: Vec<_> = order.chunks(tile).map(|points| (points, ranges(points))).collect();
    let kept = |(points, ranges): &(&[u32], Vec<Range<usize>>)| {
        ranges.iter().map(Range::len).sum::<usize>() * points.len()
    };
    let kept: usize = ranges.iter().map(kept).sum();
    if kept as f64 > WORTH * (matrix.nrows() * matrix.ncols()) as f64 {
        return None;
    }
    let panel = |points: &[u32], features: Range<usize>| {
        let values = Mat::from_fn(features.len(), points.len(), |k, i| {
            let value = matrix[(features.start + k, points[i] as usize)];
            if value.abs() < threshold { 0.0 } else { value }
        });
        Panel { features, values }
    };
    let panels = ranges.into_iter().map(|(points, ranges)| {
        ranges.into_iter().map(|features| panel(points, features)).collect()
    });
    let panels = panels.collect();
    Some((order, panels))
}
