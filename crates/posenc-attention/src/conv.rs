//! Convolutions as products: maps are rows of channels, cell by cell, so that a convolution is a choice of rows and a dense layer.

use std::collections::HashMap;

use burn::tensor::{Int, Tensor};

use crate::draw::constant;
use crate::loss::integers;

/// Images as rows of channels.
#[derive(Debug, Clone)]
pub struct Map {
    /// `[B · rows · columns, C]`.
    pub rows: Tensor<2>,
    /// Images.
    pub images: usize,
    /// Rows and columns.
    pub size: [usize; 2],
}

impl Map {
    /// Other rows of as many cells.
    pub fn with(&self, rows: Tensor<2>) -> Map {
        Map { rows, ..*self }
    }
}

/// Images, their size, side and stride of a convolution, its border.
type Shape = (usize, [usize; 2], usize, usize, Border);

/// Rows of the map that the taps of a convolution read, those outside as one more, for the shapes of a pass;
/// `[B · rows' · columns' · taps]` each.
#[derive(Debug, Default)]
pub struct Taps(HashMap<Shape, Tensor<1, Int>>);

/// How many of the zeros around a map precede it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Border {
    /// Half a side at each border, as in PyTorch's models.
    Half,
    /// Half of those that are needed at all, the odd one behind: `same` of TensorFlow.
    Same,
}

impl Border {
    fn before(self, n: usize, out: usize, side: usize, stride: usize) -> usize {
        match self {
            Border::Half => side / 2,
            Border::Same => (out.saturating_sub(1) * stride + side).saturating_sub(n) / 2,
        }
    }
}

impl Taps {
    /// `[B · rows' · columns', taps · C]` of a map, and its new size.
    pub fn read(
        &mut self,
        map: &Map,
        side: usize,
        stride: usize,
        border: Border,
    ) -> (Tensor<2>, [usize; 2]) {
        if (side, stride) == (1, 1) {
            return (map.rows.clone(), map.size);
        }
        let device = map.rows.device();
        let channels = map.rows.dims()[1];
        let out = map.size.map(|n| n.div_ceil(stride));
        let shape = (map.images, map.size, side, stride, border);
        let make = || integers(rows(shape, out), &device);
        let taps = self.0.entry(shape).or_insert_with(make).clone();
        let mut rows = map.rows.clone();
        if side > 1 {
            let outside = constant(vec![0.0; channels], [1, channels], &device);
            rows = Tensor::cat(vec![rows, outside], 0);
        }
        let count = map.images * out[0] * out[1];
        (rows.select(0, taps).reshape([count, side * side * channels]), out)
    }
}

/// Rows of a map that the taps for an output of size `out` read.
fn rows((images, size, side, stride, border): Shape, out: [usize; 2]) -> Vec<usize> {
    let [height, width] = size;
    let outside = images * height * width;
    let before = [0, 1].map(|axis| border.before(size[axis], out[axis], side, stride));
    let inside = |cell: usize, tap: usize, axis: usize| {
        (cell * stride + tap).checked_sub(before[axis]).filter(|&at| at < size[axis])
    };
    let mut rows = Vec::with_capacity(images * out[0] * out[1] * side * side);
    for image in 0..images {
        for cell in 0..out[0] * out[1] {
            for tap in 0..side * side {
                let y = inside(cell / out[1], tap / side, 0);
                let x = inside(cell % out[1], tap % side, 1);
                let row = y.zip(x).map(|(y, x)| (image * height + y) * width + x);
                rows.push(row.unwrap_or(outside));
            }
        }
    }
    rows
}
