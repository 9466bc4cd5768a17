//! DETR (Carion et al. 2020), as LFF trains it (Section 4.2, Appendix C), at any size.
//!
//! The tokens of an image are the projected cells of the last feature map of a residual network, or, in small models, its patches. Position
//! encodings are added to the queries and keys of encoder self-attention and to the keys of decoder cross-attention; optionally also to the
//! tokens. Each decoder query predicts one object with its box, or no object. A minimum-cost matching assigns objects to queries.
//!
//! With a residual network, layers are post-norm, as in DETR, and weights can be loaded from a file: those of the network alone, with
//! torchvision's names, or those of the whole model, with the names of DETR's own code. Models of patches are pre-norm, with a layer norm
//! after the encoder. Layer norms have an ε of 10⁻⁶ instead of 10⁻⁵.

mod backbone;
mod batch;
mod detections;
mod loss;
mod weights;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, activation};
use posenc_math::lff::detr::{COLORS, Sizes};
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::encoding::{Coordinates, Encoding};
use rand_chacha::ChaCha8Rng;

use crate::divergence::TargetVariance;
use crate::draw::{Draw, constant};
use crate::layers::{
    Activation, Dense, Dropout, FeedForward, Layer, LayerDropout, LayerNorm, LayerStyle,
    TransformerSizes,
};
use crate::optimizer::Adam;
use crate::position_encoding::PositionEncoding;
use crate::trainer::Loss;
use backbone::Backbone;

pub use batch::{Batch, Grids, GroundTruth, ImageInput};
pub use loss::loss;
pub use weights::{Holds, Read};

#[derive(Debug, Clone, PartialEq)]
pub struct Architecture {
    /// Without a residual network, `cells` is the largest number of rows, and of columns, of patches in training.
    pub sizes: Sizes,
    /// Side of a patch in pixels; `None` for a residual network.
    pub patch: Option<usize>,
    pub coordinates: Coordinates,
    /// Whether position encodings are also added to the tokens.
    pub code_at_input: bool,
    /// The term that Eq. 10 adds to the loss.
    pub divergence: Option<Divergence>,
}

impl Architecture {
    /// Rows of each embedding table. Images that are larger than those of training need further rows.
    fn table_rows(&self) -> usize {
        if self.patch.is_some() { 2 * self.sizes.cells } else { self.sizes.cells }
    }
}

#[derive(Module, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a model has one, and `Module` has no form for a box"
)]
enum Stem {
    Patches(FeedForward),
    Network(Network),
}

/// A residual network and the projection of its last feature map.
#[derive(Module, Debug)]
struct Network {
    backbone: Backbone,
    projection: Dense,
}

#[derive(Module, Debug)]
pub struct Detr {
    stem: Stem,
    position: PositionEncoding,
    encoder_layers: Vec<Layer>,
    memory_norm: Option<LayerNorm>,
    queries: Param<Tensor<2>>,
    decoder_layers: Vec<Layer>,
    head: Head,
    /// Target variance of the divergence of LFF Eq. 9.
    target: Option<TargetVariance>,
    #[module(skip)]
    architecture: Architecture,
}

#[derive(Debug, Clone)]
pub struct Predictions {
    /// Logits of the classes and, last, of “no object”, `[B, Q, C + 1]`.
    pub classes: Tensor<3>,
    /// Centers, widths and heights as fractions of the image, `[B, Q, 4]`.
    pub boxes: Tensor<3>,
}

/// Maps decoder tokens to predictions: a layer norm, then class logits and a box network.
#[derive(Module, Debug)]
struct Head {
    norm: LayerNorm,
    classes: Dense,
    boxes: [Dense; 3],
}

impl Head {
    fn forward(&self, x: Tensor<3>) -> Predictions {
        let y = self.norm.forward(x);
        let [first, second, last] = &self.boxes;
        let inner = activation::relu(first.forward(y.clone()));
        let inner = activation::relu(second.forward(inner));
        let boxes = activation::sigmoid(last.forward(inner));
        Predictions { classes: self.classes.forward(y), boxes }
    }
}

impl Detr {
    /// Initializes a model. `content` samples its weights, `code` those of the position encoding, so models that differ only in their
    /// encoding share all other weights. Embedding tables need [`Coordinates::Cells`].
    pub fn new(
        architecture: &Architecture,
        encoding: &Encoding,
        [mut content, mut code]: [ChaCha8Rng; 2],
        device: &Device,
    ) -> Self {
        let Architecture { sizes, patch, divergence, .. } = architecture;
        let sides = [architecture.table_rows(); 2];
        let (d, layers) = (sizes.width, sizes.encoder_layers);
        let position =
            PositionEncoding::new(encoding, &sides, d, &mut Draw { rng: &mut code, device });
        let (heads, feed_forward) = (sizes.heads, sizes.feed_forward);
        let transformer = TransformerSizes { width: d, heads, feed_forward, layers };
        let style = LayerStyle { is_pre_norm: patch.is_some(), ..LayerStyle::RELU };
        let draw = &mut Draw { rng: &mut content, device };
        let stem = match patch {
            Some(side) => {
                let widths = [COLORS * side * side, d, d];
                Stem::Patches(FeedForward::new(draw, widths, Activation::Relu))
            }
            None => Stem::Network(Network {
                backbone: Backbone::new(draw, sizes),
                projection: draw.dense(sizes.outputs(), d),
            }),
        };
        let encoder_layers = Layer::stack(draw, &transformer, layers, style);
        let style = LayerStyle { has_memory: true, ..style };
        let decoder_layers = Layer::stack(draw, &transformer, sizes.decoder_layers, style);
        Detr {
            stem,
            position,
            encoder_layers,
            memory_norm: patch.is_some().then(|| draw.layer_norm(d)),
            queries: draw.normal([sizes.queries, d], 1.0),
            decoder_layers,
            head: Head {
                norm: draw.layer_norm(d),
                classes: draw.dense(d, sizes.classes + 1),
                boxes: [draw.dense(d, d), draw.dense(d, d), draw.dense(d, 4)],
            },
            target: TargetVariance::of(*divergence, encoding, device),
            architecture: architecture.clone(),
        }
    }

    /// Gives the residual network a learning rate of its own.
    pub fn slow_down(&self, adam: &mut Adam, rate: f64) {
        if let Stem::Network(Network { backbone, .. }) = &self.stem {
            adam.set_rate(backbone, rate);
        }
    }

    /// The loss of a training step, with `dropout` as in [`Detr::forward`].
    pub fn loss(&self, batch: &Batch, dropout: Option<&mut ChaCha8Rng>) -> Loss {
        Loss {
            value: loss(&self.forward(batch, dropout), &batch.targets),
            penalty: self.target.as_ref().and_then(|target| target.penalty(&self.position)),
            operations: self.operations(batch),
        }
    }

    /// Floating-point operations of a training step.
    pub fn operations(&self, batch: &Batch) -> f64 {
        let (Architecture { sizes, patch, .. }, images) = (&self.architecture, batch.targets.len());
        let Some(patch) = patch else {
            return sizes.operations(&vec![batch.pixels.size; images]);
        };
        let d = sizes.width as f64;
        // Images are padded to the largest size.
        let n = (sizes.cells * sizes.cells) as f64;
        let stem = n * ((COLORS * patch * patch) as f64 * d + d * d);
        6.0 * images as f64 * (stem + sizes.of_transformer(n))
    }

    /// The predictions of every decoder layer for a batch; with `dropout`, dropout is applied as in training.
    pub fn forward(&self, batch: &Batch, dropout: Option<&mut ChaCha8Rng>) -> Vec<Predictions> {
        let sizes = &self.architecture.sizes;
        let device = batch.bias.device();
        let x = match &self.stem {
            Stem::Patches(stem) => {
                stem.forward(batch.pixels.rows.clone(), &mut Dropout::new(0.0, None))
            }
            Stem::Network(Network { backbone, projection }) => {
                projection.forward(backbone.forward(batch.pixels.clone()).rows)
            }
        };
        let ([b, _, _, n], d, q) = (batch.bias.dims(), sizes.width, sizes.queries);
        let mut x = x.reshape([b, n, d]);
        let mut codes = self.position.encode(&batch.positions, None);
        if let Some(places) = &batch.places {
            codes = codes.select(0, places.clone());
        }
        let codes = codes.reshape([b, n, d]);
        if self.architecture.code_at_input {
            x = x + codes.clone();
        }
        let dropout = &mut LayerDropout::uniform(sizes.dropout, dropout);
        for layer in &self.encoder_layers {
            x = layer.encode(x, Some(&codes), &batch.bias, dropout);
        }
        if let Some(norm) = &self.memory_norm {
            x = norm.forward(x);
        }
        let memory = [x.clone() + codes, x];
        let queries = self.queries.val().unsqueeze::<3>().expand([b, q, d]);
        let all = constant(vec![0.0; q], [1, 1, 1, q], &device);
        let mut x = constant(vec![0.0; b * q * d], [b, q, d], &device);
        let mut predictions = Vec::new();
        for layer in &self.decoder_layers {
            let biases = [&all, &batch.bias];
            x = layer.decode(x, Some(&queries), &memory, biases, false, dropout);
            predictions.push(self.head.forward(x.clone()));
        }
        predictions
    }
}
