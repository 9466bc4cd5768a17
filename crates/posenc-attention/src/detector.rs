//! An object detector after DETR (Carion et al. 2020; LFF Section 4.2) at a reduced scale: patches instead of a convolutional network,
//! and pre-norm layers.
//!
//! The patches of an image are tokens. Position encodings are added to the queries and keys of encoder self-attention and to the keys of
//! decoder cross-attention; optionally also to the tokens. Each decoder query predicts one object with its box, or no object. A
//! minimum-cost matching assigns objects to queries.

mod batch;
mod detections;
mod loss;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, activation};
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::encoding::{Encoding, Features};
use rand_chacha::ChaCha8Rng;

use crate::divergence::{TargetVariance, penalty};
use crate::draw::{Draw, constant};
use crate::layers::{
    Activation, Block, DecoderBlock, Dense, Dropout, FeedForward, LayerNorm, LayerStyle,
    TransformerSizes,
};
use crate::position_encoding::{PositionEncoding, Positions, Prepared};
use crate::trainer::Loss;

pub use batch::{Batch, GroundTruth, ImageInput};
pub use detections::{detections, into_detections};
pub use loss::loss;

/// Color channels of a pixel.
const COLORS: usize = 3;

/// The coordinates of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coordinates {
    /// Row and column, from 1 (embedding tables: from 0).
    Cells,
    /// Row and column, from 1, over the number of rows and columns of the image without padding, times 2π.
    Normalized,
}

impl Coordinates {
    /// The coordinate of a cell among `count` cells of an axis.
    pub(crate) fn of(self, cell: usize, count: usize, is_table: bool) -> f64 {
        match self {
            Coordinates::Cells if is_table => cell as f64,
            Coordinates::Cells => (cell + 1) as f64,
            Coordinates::Normalized => std::f64::consts::TAU * (cell + 1) as f64 / count as f64,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Maximum number of rows, and of columns, of patches in training.
    pub cells: usize,
    pub transformer: TransformerSizes,
    pub decoder_layers: usize,
    pub queries: usize,
    pub classes: usize,
    /// The coordinates of a patch.
    pub coordinates: Coordinates,
    /// Whether position encodings are also added to the tokens.
    pub code_at_input: bool,
}

impl Sizes {
    pub(crate) fn patch_numbers(&self) -> usize {
        COLORS * self.patch * self.patch
    }

    /// Floating-point operations of a training step on `images` images of full size, three times those of a forward pass.
    pub fn operations(&self, images: usize) -> f64 {
        let TransformerSizes { width, feed_forward, layers, .. } = self.transformer;
        let [d, f, q] = [width, feed_forward, self.queries].map(|n| n as f64);
        let cells = self.cells * self.cells;
        let n = cells as f64;
        let stem = n * (self.patch_numbers() as f64 * d + d * d);
        let encoder = n * self.transformer.layer_operations(cells);
        let own = q * (4.0 * d * d + 2.0 * q * d);
        let cross = 2.0 * q * d * d + 2.0 * n * d * d + 2.0 * q * n * d;
        let heads = q * (d * (self.classes + 1) as f64 + 2.0 * d * d + 4.0 * d);
        let decoder = own + cross + q * 2.0 * d * f + heads;
        let (encoders, decoders) = (layers as f64, self.decoder_layers as f64);
        6.0 * images as f64 * (stem + encoders * encoder + decoders * decoder)
    }
}

/// The model with its position encoding.
#[derive(Module, Debug)]
pub struct Detector {
    stem: FeedForward,
    position: PositionEncoding,
    encoder_layers: Vec<Block>,
    memory_norm: LayerNorm,
    /// Learned query embeddings `[Q, D]`.
    queries: Param<Tensor<2>>,
    decoder_layers: Vec<DecoderBlock>,
    head: PredictionHead,
    /// Target variance of the divergence of LFF Eq. 9.
    target: Option<TargetVariance>,
}

/// The predictions of a decoder layer.
#[derive(Debug, Clone)]
pub struct Predictions {
    /// Logits of the classes and, last, of “no object”, `[B, Q, C + 1]`.
    pub classes: Tensor<3>,
    /// Centers, widths and heights as fractions of the image, `[B, Q, 4]`.
    pub boxes: Tensor<3>,
}

/// Maps decoder tokens to predictions: a layer norm, then class logits and a box network.
#[derive(Module, Debug)]
pub(crate) struct PredictionHead {
    pub(crate) norm: LayerNorm,
    pub(crate) classes: Dense,
    pub(crate) boxes: [Dense; 3],
}

impl PredictionHead {
    pub(crate) fn new(draw: &mut Draw<'_>, width: usize, classes: usize) -> Self {
        PredictionHead {
            norm: draw.layer_norm(width),
            classes: draw.dense(width, classes + 1),
            boxes: [draw.dense(width, width), draw.dense(width, width), draw.dense(width, 4)],
        }
    }

    pub(crate) fn forward(&self, x: Tensor<3>) -> Predictions {
        let y = self.norm.forward(x);
        let [first, second, last] = &self.boxes;
        let inner = activation::relu(first.forward(y.clone()));
        let inner = activation::relu(second.forward(inner));
        let boxes = activation::sigmoid(last.forward(inner));
        Predictions { classes: self.classes.forward(y), boxes }
    }
}

/// Patch positions of images of every size, prepared once; they are encoded once per step.
#[derive(Debug, Clone)]
pub struct Grids {
    prepared: Prepared,
    /// Rows and columns of each grid.
    sizes: Vec<[usize; 2]>,
    /// Rows, and columns, of patches to which images are padded.
    cells: usize,
}

impl Grids {
    /// Index of the first encoding of a grid; `None` if the grid is unknown.
    fn start(&self, size: [usize; 2]) -> Option<usize> {
        let place = self.sizes.iter().position(|s| *s == size)?;
        Some(place * self.cells * self.cells)
    }
}

impl Detector {
    /// Initializes a model. `content` samples its weights, `code` those of the position encoding.
    ///
    /// # Errors
    ///
    /// Returns the invalid key of `encoding` and a message with the allowed values.
    pub fn new(
        sizes: &Sizes,
        encoding: &Encoding,
        content: &mut ChaCha8Rng,
        code: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, (&'static str, String)> {
        if encoding.features == Features::Embed && sizes.coordinates == Coordinates::Normalized {
            let message =
                "embedding tables need integer cell coordinates; set `coordinates: cells`"
                    .to_owned();
            return Err(("features", message));
        }
        // Twice the number of rows in training: larger images need further rows.
        let sides = [2 * sizes.cells; 2];
        let TransformerSizes { width: d, layers, .. } = sizes.transformer;
        let position = PositionEncoding::new(encoding, &sides, d, &mut Draw { rng: code, device })?;
        let draw = &mut Draw { rng: content, device };
        let style = LayerStyle::RELU;
        let stem = FeedForward::new(draw, [sizes.patch_numbers(), d, d], Activation::Relu);
        let encoder_layers = Block::stack(draw, &sizes.transformer, layers, style);
        let decoder_layers =
            DecoderBlock::stack(draw, &sizes.transformer, sizes.decoder_layers, style);
        Ok(Detector {
            stem,
            position,
            encoder_layers,
            memory_norm: draw.layer_norm(d),
            queries: draw.normal([sizes.queries, d], 1.0),
            decoder_layers,
            head: PredictionHead::new(draw, d, sizes.classes),
            target: None,
        })
    }

    /// Adds a trained target variance for the divergence of LFF Eq. 9; it starts at γ⁻².
    #[must_use]
    pub fn with_target(self, gamma: f64, device: &Device) -> Self {
        Detector { target: Some(TargetVariance::new(gamma, device)), ..self }
    }

    /// Prepares the patch positions of grids with the given rows and columns, for images padded to `cells` rows and columns of patches.
    pub fn grids(
        &self,
        sizes: &Sizes,
        grids: &[[usize; 2]],
        cells: usize,
        device: &Device,
    ) -> Grids {
        let mut coordinates = Vec::with_capacity(2 * grids.len() * cells * cells);
        let is_table = self.position.is_table();
        for grid in grids {
            for place in 0..cells * cells {
                for (axis, cell) in [place / cells, place % cells].into_iter().enumerate() {
                    coordinates.push(sizes.coordinates.of(cell, grid[axis], is_table));
                }
            }
        }
        let positions = Positions { sides: vec![2 * sizes.cells; 2], coordinates };
        let prepared = self.position.prepare(&positions, device);
        Grids { prepared, sizes: grids.to_vec(), cells }
    }

    /// The loss of a training step on images; `None` if their grids are not among `grids`.
    pub fn loss(
        &self,
        images: &[ImageInput],
        sizes: &Sizes,
        grids: &Grids,
        divergence: Option<Divergence>,
        device: &Device,
    ) -> Option<Loss> {
        let batch = Batch::new(images, sizes, grids, device)?;
        let predictions = self.forward(sizes, &batch, grids);
        let value = loss(&predictions, &batch.targets)?;
        let penalty = penalty(divergence, &self.position, self.target.as_ref());
        Some(Loss { value, penalty, operations: sizes.operations(images.len()) })
    }

    /// The predictions of every decoder layer for a batch.
    pub fn forward(&self, sizes: &Sizes, batch: &Batch, grids: &Grids) -> Vec<Predictions> {
        let [b, n, _] = batch.patches.dims();
        let d = sizes.transformer.width;
        let device = batch.patches.device();
        let codes = self.position.encode(&grids.prepared, None);
        let codes = codes.select(0, batch.places.clone()).reshape([b, n, d]);
        let mut x = self.stem.forward(batch.patches.clone(), &mut Dropout::none());
        if sizes.code_at_input {
            x = x + codes.clone();
        }
        for layer in &self.encoder_layers {
            x = layer.transform(layer.attend(x, Some(&codes), batch.bias.clone(), false).0);
        }
        let memory = self.memory_norm.forward(x);
        let memory = [memory.clone() + codes, memory];
        let q = sizes.queries;
        let queries = self.queries.val().unsqueeze::<3>().expand([b, q, d]);
        let all = constant(vec![0.0; q], [1, 1, 1, q], &device);
        let mut x = constant(vec![0.0; b * q * d], [b, q, d], &device);
        let mut predictions = Vec::new();
        for layer in &self.decoder_layers {
            let biases = [&all, &batch.bias];
            x = layer.forward(x, Some(&queries), memory.clone(), biases, false);
            predictions.push(self.head.forward(x.clone()));
        }
        predictions
    }
}
