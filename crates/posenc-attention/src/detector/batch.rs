//! Images of different sizes as one batch.

use burn::tensor::{Device, Int, Tensor};

use super::{COLORS, Grids, Sizes};
use crate::draw::constant;
use crate::layers::MASK_BIAS;
use crate::loss::integers;

/// An image whose sides are multiples of the patch side.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageInput {
    /// Rows and columns of pixels.
    pub size: [usize; 2],
    /// Red, green and blue of every pixel, row by row.
    pub pixels: Vec<f32>,
    pub targets: Vec<GroundTruth>,
}

/// An object on an image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroundTruth {
    pub class: usize,
    /// Center, width and height as fractions of the image.
    pub place: [f64; 4],
}

/// Images as tokens, padded to one size.
#[derive(Debug, Clone)]
pub struct Batch {
    /// `[B, N, 3 patch²]`.
    pub(super) patches: Tensor<3>,
    /// Zero for patches of the image, [`MASK_BIAS`] for the padding, `[B, 1, 1, N]`.
    pub(super) bias: Tensor<4>,
    /// Indices of the encodings of [`Grids`], `[B · N]`.
    pub(super) places: Tensor<1, Int>,
    /// The objects on each image.
    pub(super) targets: Vec<Vec<GroundTruth>>,
}

impl Batch {
    /// `None` if the patch grid of an image is not among `grids`, or its number of pixels does not match its size.
    pub fn new(
        images: &[ImageInput],
        sizes: &Sizes,
        grids: &Grids,
        device: &Device,
    ) -> Option<Self> {
        let (side, cells) = (sizes.patch, grids.cells);
        let n = cells * cells;
        let mut patches = vec![0.0; images.len() * n * sizes.patch_numbers()];
        let mut bias = vec![MASK_BIAS; images.len() * n];
        let mut places = Vec::with_capacity(images.len() * n);
        for (i, image) in images.iter().enumerate() {
            let [rows, columns] = image.size.map(|pixels| pixels / side);
            let start = grids.start([rows, columns])?;
            places.extend(start..start + n);
            let width = image.size[1];
            if image.pixels.len() != COLORS * image.size[0] * width || rows.max(columns) > cells {
                return None;
            }
            for row in 0..rows {
                for column in 0..columns {
                    let token = i * n + row * cells + column;
                    bias[token] = 0.0;
                    let out = &mut patches[token * sizes.patch_numbers()..];
                    for y in 0..side {
                        let from = COLORS * ((row * side + y) * width + column * side);
                        let line = &image.pixels[from..from + COLORS * side];
                        // From [0, 1] to [−1, 1].
                        let to = &mut out[COLORS * side * y..][..COLORS * side];
                        to.iter_mut().zip(line).for_each(|(to, v)| *to = 2.0 * v - 1.0);
                    }
                }
            }
        }
        let b = images.len();
        Some(Batch {
            patches: constant(patches, [b, n, sizes.patch_numbers()], device),
            bias: constant(bias, [b, 1, 1, n], device),
            places: integers(places, device),
            targets: images.iter().map(|image| image.targets.clone()).collect(),
        })
    }
}
