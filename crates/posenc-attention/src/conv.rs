//! Convolutions as matrix products (im2col). A feature map is a matrix with a row of channels per cell. A convolution gathers the rows
//! that its taps read and applies a dense layer to them.

use std::collections::HashMap;

use burn::tensor::{Int, Tensor};

use crate::draw::constant;
use crate::loss::integers;

#[derive(Debug, Clone)]
pub struct Map {
    /// `[B · rows · columns, C]`.
    pub rows: Tensor<2>,
    pub images: usize,
    /// Rows and columns of each map.
    pub size: [usize; 2],
}

impl Map {
    /// A map of the same size with other rows.
    pub fn with(&self, rows: Tensor<2>) -> Map {
        Map { rows, ..*self }
    }
}

/// Number of images and their size; kernel side, stride and border of a convolution.
type Shape = (usize, [usize; 2], usize, usize, Border);

/// The rows that the taps of a convolution read, `[B · rows' · columns' · taps]`, cached by shape for one forward pass. Taps outside the
/// map read an extra row after the last one.
#[derive(Debug, Default)]
pub struct Taps(HashMap<Shape, Tensor<1, Int>>);

/// How zero padding is split between the start and the end of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Border {
    /// Half the kernel side at each border, as in PyTorch's models.
    Half,
    /// Half of the padding that the stride requires, with an odd one at the end: `same` in TensorFlow.
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
    /// Gathers the inputs of all taps, `[B · rows' · columns', taps · C]`. Also returns the size of the output map.
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

/// The rows of a map that the taps read for an output of size `out`.
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
