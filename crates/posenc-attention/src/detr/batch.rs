//! Images of different sizes as one batch.

use burn::tensor::{Device, Int, Tensor};
use posenc_math::lff::detr::{COLORS, STRIDE};
use posenc_math::lff::encoding::Coordinates;

use super::Detr;
use crate::conv::Map;
use crate::draw::constant;
use crate::layers::MASK_BIAS;
use crate::loss::integers;
use crate::position_encoding::{Positions, Prepared};

/// Means of red, green and blue over ImageNet.
const MEANS: [f32; COLORS] = [0.485, 0.456, 0.406];

/// Standard deviations of red, green and blue over ImageNet.
const DEVIATIONS: [f32; COLORS] = [0.229, 0.224, 0.225];

#[derive(Debug, Clone, PartialEq)]
pub struct ImageInput {
    /// Rows and columns of pixels; for models of patches, multiples of their side.
    pub size: [usize; 2],
    /// Red, green and blue of every pixel, row by row.
    pub pixels: Vec<f32>,
    pub targets: Vec<GroundTruth>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroundTruth {
    pub class: usize,
    /// Center, width and height as fractions of the image.
    pub place: [f64; 4],
}

#[derive(Debug, Clone)]
pub struct Batch {
    /// Patches, with all their colors in a row, or pixels with standardized colors.
    pub(super) pixels: Map,
    /// Zero for cells of the image, [`MASK_BIAS`] for the padding, `[B, 1, 1, N]`.
    pub(super) bias: Tensor<4>,
    /// The positions that are encoded, and the index of each cell's, `[B · N]`; without indices, they are those of the cells.
    pub(super) positions: Prepared,
    pub(super) places: Option<Tensor<1, Int>>,
    pub(super) targets: Vec<Vec<GroundTruth>>,
}

/// Patch positions of images of every size, prepared once; they are encoded once per step.
#[derive(Debug, Clone)]
pub struct Grids {
    prepared: Prepared,
    sizes: Vec<[usize; 2]>,
    /// Rows, and columns, of patches to which images are padded.
    cells: usize,
}

/// The coordinate of a cell among `count` cells of an axis.
fn coordinate(coordinates: Coordinates, cell: usize, count: usize, is_table: bool) -> f64 {
    match coordinates {
        Coordinates::Cells if is_table => cell as f64,
        Coordinates::Cells => (cell + 1) as f64,
        Coordinates::Normalized => std::f64::consts::TAU * (cell + 1) as f64 / count as f64,
    }
}

impl Detr {
    /// Prepares the patch positions of grids with the given rows and columns, for images padded to `cells` rows and columns of patches.
    pub fn grids(&self, grids: &[[usize; 2]], cells: usize, device: &Device) -> Grids {
        let mut all = Vec::with_capacity(2 * grids.len() * cells * cells);
        let (kind, is_table) = (self.architecture.coordinates, self.position.is_table());
        for grid in grids {
            for place in 0..cells * cells {
                for (axis, cell) in [place / cells, place % cells].into_iter().enumerate() {
                    all.push(coordinate(kind, cell, grid[axis], is_table));
                }
            }
        }
        Grids { prepared: self.prepare(all, device), sizes: grids.to_vec(), cells }
    }

    fn prepare(&self, coordinates: Vec<f64>, device: &Device) -> Prepared {
        let sides = vec![self.architecture.table_rows(); 2];
        self.position.prepare(&Positions { sides, coordinates }, device)
    }

    /// A batch of images, at least one. In models of patches, their grids must be among `grids`, if given.
    pub fn batch(&self, images: &[ImageInput], grids: Option<&Grids>, device: &Device) -> Batch {
        let targets = images.iter().map(|image| image.targets.clone()).collect();
        match self.architecture.patch {
            Some(side) => self.patches(images, side, grids, targets, device),
            None => self.photographs(images, targets, device),
        }
    }

    fn patches(
        &self,
        images: &[ImageInput],
        side: usize,
        grids: Option<&Grids>,
        targets: Vec<Vec<GroundTruth>>,
        device: &Device,
    ) -> Batch {
        let of_images: Vec<[usize; 2]> =
            images.iter().map(|image| image.size.map(|pixels| pixels / side)).collect();
        let grids = grids.cloned().unwrap_or_else(|| {
            let mut sizes = of_images.clone();
            sizes.dedup();
            let largest = sizes.iter().flatten().max().copied().unwrap_or(0);
            self.grids(&sizes, largest, device)
        });
        let cells = grids.cells;
        let (n, numbers) = (cells * cells, COLORS * side * side);
        let mut patches = vec![0.0; images.len() * n * numbers];
        let mut bias = vec![MASK_BIAS; images.len() * n];
        let mut places = Vec::with_capacity(images.len() * n);
        for (i, (image, [rows, columns])) in images.iter().zip(of_images).enumerate() {
            let grid = grids.sizes.iter().position(|size| *size == [rows, columns]);
            let start = grid.expect("the grid of each image is known") * n;
            places.extend(start..start + n);
            for row in 0..rows {
                for column in 0..columns {
                    let token = i * n + row * cells + column;
                    bias[token] = 0.0;
                    let out = &mut patches[token * numbers..];
                    for y in 0..side {
                        let from = COLORS * ((row * side + y) * image.size[1] + column * side);
                        let line = &image.pixels[from..from + COLORS * side];
                        // From [0, 1] to [−1, 1].
                        let to = &mut out[COLORS * side * y..][..COLORS * side];
                        to.iter_mut().zip(line).for_each(|(to, v)| *to = 2.0 * v - 1.0);
                    }
                }
            }
        }
        let b = images.len();
        let rows = constant(patches, [b * n, numbers], device);
        Batch {
            pixels: Map { rows, images: b, size: [cells; 2] },
            bias: constant(bias, [b, 1, 1, n], device),
            positions: grids.prepared,
            places: Some(integers(places, device)),
            targets,
        }
    }

    fn photographs(
        &self,
        images: &[ImageInput],
        targets: Vec<Vec<GroundTruth>>,
        device: &Device,
    ) -> Batch {
        let largest = |axis: usize| images.iter().map(|image| image.size[axis]).max().unwrap_or(0);
        let filled @ [height, width] = [0, 1].map(largest);
        let mut rows = vec![0.0; images.len() * height * width * COLORS];
        for (image, all) in images.iter().zip(rows.chunks_exact_mut(height * width * COLORS)) {
            let own = image.pixels.chunks_exact(COLORS * image.size[1]);
            for (line, pixels) in all.chunks_exact_mut(COLORS * width).zip(own) {
                let colors = line.as_chunks_mut::<COLORS>().0.iter_mut();
                for (out, pixel) in colors.zip(pixels.as_chunks::<COLORS>().0) {
                    for color in 0..COLORS {
                        out[color] = (pixel[color] - MEANS[color]) / DEVIATIONS[color];
                    }
                }
            }
        }
        let cells = filled.map(|pixels| pixels.div_ceil(STRIDE));
        let (positions, bias) = self.cells(images, filled, cells);
        let (b, n) = (images.len(), cells[0] * cells[1]);
        let rows = constant(rows, [b * height * width, COLORS], device);
        Batch {
            pixels: Map { rows, images: b, size: filled },
            bias: constant(bias, [b, 1, 1, n], device),
            positions: self.prepare(positions, device),
            places: None,
            targets,
        }
    }

    /// Coordinates of the cells of a feature map with `cells` rows and columns, and the attention bias that masks padding. A cell belongs
    /// to an image if the image contains the cell's first pixel.
    fn cells(
        &self,
        images: &[ImageInput],
        filled: [usize; 2],
        cells: [usize; 2],
    ) -> (Vec<f64>, Vec<f32>) {
        let (kind, is_table) = (self.architecture.coordinates, self.position.is_table());
        let (mut all, mut bias) = (Vec::new(), Vec::new());
        for image in images {
            let own = [0, 1].map(|axis| {
                let is_inside = |cell: &usize| cell * filled[axis] / cells[axis] < image.size[axis];
                (0..cells[axis]).take_while(is_inside).count()
            });
            for cell in 0..cells[0] * cells[1] {
                let place = [cell / cells[1], cell % cells[1]];
                let is_hidden = place[0] >= own[0] || place[1] >= own[1];
                bias.push(if is_hidden { MASK_BIAS } else { 0.0 });
                for axis in [0, 1] {
                    let mut at = place[axis].min(own[axis] - 1);
                    if is_table {
                        // Cells beyond the end of the embedding table use its last row.
                        at = at.min(self.architecture.table_rows() - 1);
                    }
                    all.push(coordinate(kind, at, own[axis], is_table));
                }
            }
        }
        (all, bias)
    }
}
