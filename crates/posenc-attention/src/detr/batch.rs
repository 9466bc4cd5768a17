//! Photographs of different sizes as one batch.

use burn::tensor::Device;
use posenc_math::lff::detr::{COLORS, Sizes};

use crate::conv::Map;
use crate::detector::{Coordinates, GroundTruth, ImageInput};
use crate::draw::constant;
use crate::layers::MASK_BIAS;
use crate::position_encoding::Positions;

/// Means of red, green and blue over ImageNet.
const MEANS: [f32; COLORS] = [0.485, 0.456, 0.406];

/// Standard deviations of red, green and blue over ImageNet.
const DEVIATIONS: [f32; COLORS] = [0.229, 0.224, 0.225];

/// Photographs with standardized colors, padded with zeros to one size.
#[derive(Debug, Clone)]
pub struct Batch {
    pub(super) images: Map,
    /// The objects on each image.
    pub(super) targets: Vec<Vec<GroundTruth>>,
    /// Rows and columns of pixels of each image.
    pub sizes: Vec<[usize; 2]>,
}

impl Batch {
    /// `None` if there is no image, or if an image has no pixels or a number of pixels that does not match its size.
    pub fn new(images: &[ImageInput], device: &Device) -> Option<Self> {
        let largest = |axis: usize| images.iter().map(|image| image.size[axis]).max();
        let [height, width] = [largest(0)?, largest(1)?];
        let mut rows = vec![0.0; images.len() * height * width * COLORS];
        for (image, all) in images.iter().zip(rows.chunks_exact_mut(height * width * COLORS)) {
            let own = COLORS * image.size[1];
            if own == 0 || image.pixels.is_empty() || image.pixels.len() != own * image.size[0] {
                return None;
            }
            let lines = all.chunks_exact_mut(COLORS * width).zip(image.pixels.chunks_exact(own));
            for (line, pixels) in lines {
                let colors = line.as_chunks_mut::<COLORS>().0.iter_mut();
                for (out, pixel) in colors.zip(pixels.as_chunks::<COLORS>().0) {
                    for color in 0..COLORS {
                        out[color] = (pixel[color] - MEANS[color]) / DEVIATIONS[color];
                    }
                }
            }
        }
        let count = images.len() * height * width;
        let rows = constant(rows, [count, COLORS], device);
        Some(Batch {
            images: Map { rows, images: images.len(), size: [height, width] },
            targets: images.iter().map(|image| image.targets.clone()).collect(),
            sizes: images.iter().map(|image| image.size).collect(),
        })
    }

    /// Positions of the cells of a feature map with `cells` rows and columns, and the attention bias that masks padding. A cell
    /// belongs to an image if the image contains the cell's first pixel.
    pub(super) fn places(
        &self,
        cells: [usize; 2],
        coordinates: Coordinates,
        is_table: bool,
        sizes: &Sizes,
    ) -> (Positions, Vec<f32>) {
        let mut all = Vec::with_capacity(2 * self.sizes.len() * cells[0] * cells[1]);
        let mut bias = Vec::with_capacity(self.sizes.len() * cells[0] * cells[1]);
        for size in &self.sizes {
            let own = [0, 1].map(|axis| {
                let is_inside =
                    |cell: &usize| cell * self.images.size[axis] / cells[axis] < size[axis];
                (0..cells[axis]).take_while(is_inside).count()
            });
            for cell in 0..cells[0] * cells[1] {
                let place = [cell / cells[1], cell % cells[1]];
                let is_hidden = place[0] >= own[0] || place[1] >= own[1];
                bias.push(if is_hidden { MASK_BIAS } else { 0.0 });
                for axis in [0, 1] {
                    let at = place[axis].min(own[axis] - 1);
                    // Cells beyond the end of the embedding table use its last row.
                    let at = if is_table && coordinates == Coordinates::Cells {
                        at.min(sizes.cells - 1)
                    } else {
                        at
                    };
                    all.push(coordinates.of(at, own[axis], is_table));
                }
            }
        }
        (Positions { sides: vec![sizes.cells; 2], coordinates: all }, bias)
    }
}
