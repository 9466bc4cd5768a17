//! A detector in the manner of DETR (Carion et al. 2020; LFF Section 4.2) at a reduced scale: patches instead of a
//! convolutional network, norms before attention.
//!
//! Patches of an image are tokens; attention in the encoder and of queries on them sees position codes on queries
//! and keys, and, if so set, on the tokens themselves. Each of some queries says one thing and where it is, or
//! nothing. Which query is to say which thing is settled by the cheapest assignment.

mod batch;
mod loss;
mod train;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, activation};
use posenc_math::lff::encoding::{Encoding, Features};
use rand_chacha::ChaCha8Rng;

use crate::draw::{Draw, constant};
use crate::encoder::{Encoder, Positions, Prepared};
use crate::layers::{Attention, Dense, LayerNorm};

pub use batch::{Batch, ImageInput, Target};
pub use loss::{Weights, loss};
pub use train::{Trainer, Training, detections, of_said};

/// Numbers of a pixel.
const COLORS: usize = 3;

/// How a patch's place is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coordinates {
    /// Row and column, from 1 (tables: from 0).
    Cells,
    /// The same over the number of rows and columns of the image without filling, times 2π.
    Normalized,
}

/// Sizes of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// Rows, and columns, of pixels of a patch.
    pub patch: usize,
    /// Most rows, and columns, of patches that are trained on.
    pub cells: usize,
    /// Numbers per token.
    pub width: usize,
    /// Heads of attention, which share the width.
    pub heads: usize,
    /// Numbers between the two dense layers of a block.
    pub feed_forward: usize,
    /// Layers of the encoder.
    pub encoder_layers: usize,
    /// Layers of the decoder.
    pub decoder_layers: usize,
    /// Things that can be said of an image.
    pub queries: usize,
    /// Classes of things.
    pub classes: usize,
    /// How a patch's place is told.
    pub coordinates: Coordinates,
    /// Whether the code is added to the tokens as well.
    pub code_at_input: bool,
}

impl Sizes {
    /// Numbers of a patch.
    pub(crate) fn patch_numbers(&self) -> usize {
        COLORS * self.patch * self.patch
    }

    /// Multiplications and additions of a step of training on `images` images of full size, three times those of a
    /// pass forward.
    pub fn operations(&self, images: usize) -> f64 {
        let [d, f, q] = [self.width, self.feed_forward, self.queries].map(|n| n as f64);
        let n = (self.cells * self.cells) as f64;
        let stem = n * (self.patch_numbers() as f64 * d + d * d);
        let encoder = n * (4.0 * d * d + 2.0 * d * f + 2.0 * n * d);
        let own = q * (4.0 * d * d + 2.0 * q * d);
        let cross = 2.0 * q * d * d + 2.0 * n * d * d + 2.0 * q * n * d;
        let heads = q * (d * (self.classes + 1) as f64 + 2.0 * d * d + 4.0 * d);
        let decoder = own + cross + q * 2.0 * d * f + heads;
        let (encoders, decoders) = (self.encoder_layers as f64, self.decoder_layers as f64);
        6.0 * images as f64 * (stem + encoders * encoder + decoders * decoder)
    }
}

/// Two dense layers with a ReLU between them.
#[derive(Module, Debug)]
struct Rectified {
    up: Dense,
    down: Dense,
}

impl Rectified {
    fn new(draw: &mut Draw<'_>, [inputs, hidden, outputs]: [usize; 3]) -> Self {
        Rectified { up: draw.dense(inputs, hidden), down: draw.dense(hidden, outputs) }
    }

    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        self.down.forward(activation::relu(self.up.forward(x)))
    }
}

#[derive(Module, Debug)]
struct EncoderLayer {
    attention_norm: LayerNorm,
    attention: Attention,
    dense_norm: LayerNorm,
    dense: Rectified,
}

#[derive(Module, Debug)]
struct DecoderLayer {
    own_norm: LayerNorm,
    own: Attention,
    image_norm: LayerNorm,
    image: Attention,
    dense_norm: LayerNorm,
    dense: Rectified,
}

/// The model with its position code.
#[derive(Module, Debug)]
pub struct Detector {
    stem: Rectified,
    encoder: Encoder,
    encoder_layers: Vec<EncoderLayer>,
    memory_norm: LayerNorm,
    /// Codes of the queries `[Q, D]`.
    queries: Param<Tensor<2>>,
    decoder_layers: Vec<DecoderLayer>,
    output_norm: LayerNorm,
    classes: Dense,
    boxes: Rectified,
    box_output: Dense,
}

/// What a layer of the decoder says.
#[derive(Debug, Clone)]
pub struct Said {
    /// Scores of the classes and, last, of nothing, `[B, Q, C + 1]`.
    pub classes: Tensor<3>,
    /// Centers, widths and heights as shares of the image, `[B, Q, 4]`.
    pub boxes: Tensor<3>,
}

/// Codes of the patches of images of every size, which are computed once per step.
#[derive(Debug, Clone)]
pub struct Grids {
    prepared: Prepared,
    /// Rows and columns of each grid.
    sizes: Vec<[usize; 2]>,
    /// Rows, and columns, of patches to which images are filled up.
    cells: usize,
}

impl Grids {
    /// Where the codes of a grid begin.
    fn start(&self, size: [usize; 2]) -> Option<usize> {
        let place = self.sizes.iter().position(|s| *s == size)?;
        Some(place * self.cells * self.cells)
    }
}

impl Detector {
    /// Draws a model: its content from one stream, its encoding from another, so that models which differ in
    /// their encoding share everything else.
    ///
    /// # Errors
    ///
    /// The key of the encoding that is wrong, and what is allowed.
    pub fn new(
        sizes: &Sizes,
        encoding: &Encoding,
        content: &mut ChaCha8Rng,
        code: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, (&'static str, String)> {
        if encoding.features == Features::Embed && sizes.coordinates == Coordinates::Normalized {
            let message = "tables have a row per cell; set `coordinates: cells`".to_owned();
            return Err(("features", message));
        }
        // Twice the rows that are trained: images of an unseen size need some.
        let sides = [2 * sizes.cells; 2];
        let encoder = Encoder::new(encoding, &sides, sizes.width, &mut Draw { rng: code, device })?;
        let mut draw = Draw { rng: content, device };
        let (d, f, h) = (sizes.width, sizes.feed_forward, sizes.heads);
        let stem = Rectified::new(&mut draw, [sizes.patch_numbers(), d, d]);
        let encoder_layers = (0..sizes.encoder_layers).map(|_| EncoderLayer {
            attention_norm: draw.layer_norm(d),
            attention: Attention::new(&mut draw, d, h),
            dense_norm: draw.layer_norm(d),
            dense: Rectified::new(&mut draw, [d, f, d]),
        });
        let encoder_layers = encoder_layers.collect();
        let decoder_layers = (0..sizes.decoder_layers).map(|_| DecoderLayer {
            own_norm: draw.layer_norm(d),
            own: Attention::new(&mut draw, d, h),
            image_norm: draw.layer_norm(d),
            image: Attention::new(&mut draw, d, h),
            dense_norm: draw.layer_norm(d),
            dense: Rectified::new(&mut draw, [d, f, d]),
        });
        let decoder_layers = decoder_layers.collect();
        Ok(Detector {
            stem,
            encoder,
            encoder_layers,
            memory_norm: draw.layer_norm(d),
            queries: draw.normal([sizes.queries, d], 1.0),
            decoder_layers,
            output_norm: draw.layer_norm(d),
            classes: draw.dense(d, sizes.classes + 1),
            boxes: Rectified::new(&mut draw, [d, d, d]),
            box_output: draw.dense(d, 4),
        })
    }

    /// The position code.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Places of the patches of grids of the given rows and columns, in images that are filled up to `cells`.
    pub fn grids(
        &self,
        sizes: &Sizes,
        grids: &[[usize; 2]],
        cells: usize,
        device: &Device,
    ) -> Grids {
        let mut coordinates = Vec::with_capacity(2 * grids.len() * cells * cells);
        let is_table = self.encoder.is_table();
        for grid in grids {
            for place in 0..cells * cells {
                for (axis, cell) in [place / cells, place % cells].into_iter().enumerate() {
                    coordinates.push(match sizes.coordinates {
                        Coordinates::Cells if is_table => cell as f64,
                        Coordinates::Cells => (cell + 1) as f64,
                        Coordinates::Normalized => {
                            std::f64::consts::TAU * (cell + 1) as f64 / grid[axis] as f64
                        }
                    });
                }
            }
        }
        let positions = Positions { sides: vec![2 * sizes.cells; 2], coordinates };
        let prepared = self.encoder.prepare(&positions, device);
        Grids { prepared, sizes: grids.to_vec(), cells }
    }

    /// What every layer of the decoder says of a batch.
    pub fn forward(&self, sizes: &Sizes, batch: &Batch, grids: &Grids) -> Vec<Said> {
        let [b, n, _] = batch.patches.dims();
        let d = sizes.width;
        let device = batch.patches.device();
        let codes = self.encoder.encode(&grids.prepared, None);
        let codes = codes.select(0, batch.places.clone()).reshape([b, n, d]);
        let mut x = self.stem.forward(batch.patches.clone());
        if sizes.code_at_input {
            x = x + codes.clone();
        }
        for layer in &self.encoder_layers {
            let y = layer.attention_norm.forward(x.clone());
            let at = y.clone() + codes.clone();
            let bias = batch.bias.clone();
            x = x + layer.attention.with_codes(at.clone(), at, y, bias, false).0;
            x = x.clone() + layer.dense.forward(layer.dense_norm.forward(x));
        }
        let memory = self.memory_norm.forward(x);
        let keys = memory.clone() + codes;
        let q = sizes.queries;
        let queries = self.queries.val().unsqueeze::<3>().expand([b, q, d]);
        let all = constant(vec![0.0; q], [1, 1, 1, q], &device);
        let mut x = constant(vec![0.0; b * q * d], [b, q, d], &device);
        let mut said = Vec::new();
        for layer in &self.decoder_layers {
            let y = layer.own_norm.forward(x.clone());
            let at = y.clone() + queries.clone();
            x = x + layer.own.with_codes(at.clone(), at, y, all.clone(), false).0;
            let y = layer.image_norm.forward(x.clone());
            let at = y + queries.clone();
            let bias = batch.bias.clone();
            x = x + layer.image.with_codes(at, keys.clone(), memory.clone(), bias, false).0;
            x = x.clone() + layer.dense.forward(layer.dense_norm.forward(x));
            let y = self.output_norm.forward(x.clone());
            let inner = activation::relu(self.boxes.forward(y.clone()));
            let boxes = activation::sigmoid(self.box_output.forward(inner));
            said.push(Said { classes: self.classes.forward(y), boxes });
        }
        said
    }
}
