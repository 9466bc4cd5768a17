//! DETR (Carion et al. 2020) on a residual network, as LFF trains it (Section 4.2, Appendix C).
//!
//! The transformer reads the projected last feature map of the network. Position encodings are added to the queries and keys of encoder
//! self-attention and to the keys of decoder cross-attention. Layers are post-norm. Weights can be loaded from a file: those of the
//! network alone, with torchvision's names, or those of the whole model, with the names of DETR's own code. Layer norms have an ε of 10⁻⁶
//! instead of 10⁻⁵.

mod backbone;
mod batch;
mod transformer;
mod weights;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use posenc_math::lff::detr::Sizes;
use posenc_math::lff::encoding::Encoding;
use rand_chacha::ChaCha8Rng;

use crate::detector::{Coordinates, PredictionHead, Predictions, loss};
use crate::draw::{Draw, constant};
use crate::layers::{Dense, Dropout};
use crate::optimizer::Adam;
use crate::parameters::number;
use crate::position_encoding::PositionEncoding;
use backbone::Backbone;
use transformer::{DecoderLayer, EncoderLayer};

pub use batch::Batch;
pub use weights::Read;

/// The model with its position encoding.
#[derive(Module, Debug)]
pub struct Detr {
    backbone: Backbone,
    head: Head,
}

/// Everything after the convolutional network.
#[derive(Module, Debug)]
struct Head {
    projection: Dense,
    position: PositionEncoding,
    encoder_layers: Vec<EncoderLayer>,
    /// Learned query embeddings `[Q, D]`.
    queries: Param<Tensor<2>>,
    decoder_layers: Vec<DecoderLayer>,
    output: PredictionHead,
}

/// Contents of a weights file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// The convolutional network, with torchvision's names.
    Backbone,
    /// The whole model without its position encoding, with the names of DETR's code.
    Model,
}

impl Detr {
    /// Initializes a model. `content` samples its weights, `code` those of the position encoding, so models that differ only in their
    /// encoding share all other weights.
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
        let sides = [sizes.cells; 2];
        let draw = &mut Draw { rng: code, device };
        let position = PositionEncoding::new(encoding, &sides, sizes.width, draw)?;
        let mut draw = Draw { rng: content, device };
        let backbone = Backbone::new(&mut draw, sizes);
        let (d, f, h) = (sizes.width, sizes.feed_forward, sizes.heads);
        let projection = draw.dense(sizes.outputs(), d);
        let encoder_layers =
            (0..sizes.encoder_layers).map(|_| EncoderLayer::new(&mut draw, d, f, h)).collect();
        let decoder_layers =
            (0..sizes.decoder_layers).map(|_| DecoderLayer::new(&mut draw, d, f, h)).collect();
        let head = Head {
            projection,
            position,
            encoder_layers,
            queries: draw.normal([sizes.queries, d], 1.0),
            decoder_layers,
            output: PredictionHead::new(&mut draw, d, sizes.classes),
        };
        Ok(Detr { backbone, head })
    }

    /// Replaces the weights by those of a file.
    ///
    /// # Errors
    ///
    /// Returns the errors of `read`, which receives the name and shape of each array.
    pub fn with_weights<E>(self, holds: Holds, read: &mut Read<'_, E>) -> Result<Self, E> {
        let Detr { backbone, head } = self;
        if holds == Holds::Backbone {
            return Ok(Detr { backbone: backbone.read("", read)?, head });
        }
        let backbone = backbone.read("backbone.0.body.", read)?;
        Ok(Detr { backbone, head: head.read(read)? })
    }

    /// The same model without gradient tracking.
    #[must_use]
    pub fn without_gradients(&self) -> Self {
        self.clone().no_grad()
    }

    /// The predictions of every decoder layer for a batch; with `dropout`, dropout is applied as in training.
    pub fn forward(
        &self,
        sizes: &Sizes,
        batch: &Batch,
        coordinates: Coordinates,
        dropout: Option<&mut ChaCha8Rng>,
    ) -> Vec<Predictions> {
        let map = self.backbone.forward(batch.images.clone());
        let [height, width] = map.size;
        let (b, n, d) = (map.images, height * width, sizes.width);
        let head = &self.head;
        let device = map.rows.device();
        let (positions, bias) =
            batch.places(map.size, coordinates, head.position.is_table(), sizes);
        let codes = head.position.encode(&head.position.prepare(&positions, &device), None);
        let codes = codes.reshape([b, n, d]);
        let bias = constant(bias, [b, 1, 1, n], &device);
        let mut dropout = Dropout::new(sizes.dropout, dropout);
        let mut x = head.projection.forward(map.rows).reshape([b, n, d]);
        for layer in &head.encoder_layers {
            x = layer.forward(x, &codes, &bias, &mut dropout);
        }
        let memory = [x.clone() + codes, x];
        let q = sizes.queries;
        let queries = head.queries.val().unsqueeze::<3>().expand([b, q, d]);
        let all = constant(vec![0.0; q], [1, 1, 1, q], &device);
        let mut x = constant(vec![0.0; b * q * d], [b, q, d], &device);
        let mut predictions = Vec::new();
        for layer in &head.decoder_layers {
            x = layer.forward(x, &queries, &memory, [&all, &bias], &mut dropout);
            predictions.push(head.output.forward(x.clone()));
        }
        predictions
    }

    /// One training step: returns the model after it and the loss before it. Gradients are clipped by their global norm; the
    /// convolutional network has a learning rate of its own. If the loss is not finite, the model is unchanged.
    pub fn step(
        self,
        sizes: &Sizes,
        batch: &Batch,
        coordinates: Coordinates,
        adam: &mut Adam,
        rates: Rates,
        dropout: &mut ChaCha8Rng,
    ) -> (Self, f64) {
        let predictions = self.forward(sizes, batch, coordinates, Some(dropout));
        let Some(loss) = loss(&predictions, &batch.targets) else {
            return (self, f64::NAN);
        };
        let value = number(loss.clone());
        if !value.is_finite() {
            return (self, value);
        }
        drop(predictions);
        let gradients = loss.backward();
        let factor = adam.begin_with(&self, &gradients);
        let backbone = adam.update(self.backbone, &gradients, rates.backbone, factor);
        let head = adam.update(self.head, &gradients, rates.head, factor);
        (Detr { backbone, head }, value)
    }
}

/// Learning rates of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Learning rate of the convolutional network.
    pub backbone: f64,
    /// Learning rate of everything else.
    pub head: f64,
}

impl Head {
    fn read<E>(self, read: &mut Read<'_, E>) -> Result<Self, E> {
        let projection = weights::dense(&self.projection, "input_proj", &[1, 1], read)?;
        let mut encoder_layers = Vec::with_capacity(self.encoder_layers.len());
        for (i, layer) in self.encoder_layers.iter().enumerate() {
            encoder_layers.push(layer.read(&format!("transformer.encoder.layers.{i}"), read)?);
        }
        let mut decoder_layers = Vec::with_capacity(self.decoder_layers.len());
        for (i, layer) in self.decoder_layers.iter().enumerate() {
            decoder_layers.push(layer.read(&format!("transformer.decoder.layers.{i}"), read)?);
        }
        let norm = weights::norm(&self.output.norm, "transformer.decoder.norm", read)?;
        let queries = weights::table(&self.queries, "query_embed.weight", read)?;
        let classes = weights::dense(&self.output.classes, "class_embed", &[], read)?;
        let mut own = |i: usize| {
            let name = format!("bbox_embed.layers.{i}");
            weights::dense(&self.output.boxes[i], &name, &[], read)
        };
        let boxes = [own(0)?, own(1)?, own(2)?];
        Ok(Head {
            projection,
            position: self.position,
            encoder_layers,
            queries,
            decoder_layers,
            output: PredictionHead { norm, classes, boxes },
        })
    }
}
