//! Builds DETR on a residual network, counts its parameters and trains it for some steps on photographs with boxes (`lff` Table 4).
//!
//! The normalization layers of the residual network are frozen. The photographs are flipped, resized and cropped as in DETR. Without
//! `data`, the protocol generates scenes, writes them in COCO's format and reads them back. `data.set` is a set of files of the format
//! `annotated-images`, `data.weights` one of the format `weights`: a safetensors or PyTorch file with either the residual network alone
//! (names of torchvision) or the whole model without its position encoding (names of DETR's own code). If the file is missing, the
//! initial weights are sampled.
//!
//! Records `params` (M), `trained_params` (M) and `encoding_params`: number of all parameters, of trained parameters and of parameters
//! of the position encoding.
//!
//! With `steps`, also records:
//!
//! - `training_curve`: training loss over the step.
//! - `time_of_image` (s), `operations_of_image` (GFLOP): per training image. `rate` (GFLOP/s), `peak_memory` (MB).
//! - `images`: number of training images.
//!
//! With `held_out`, also records COCO's average precision `ap`, `ap50` and `ap75` on validation images, from 0 to 1.

#[cfg(feature = "attention")]
mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use posenc_math::lff::detr::{Resizing, STRIDE, Sizes};
use posenc_math::lff::encoding::{Coordinates, Encoding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{positive, preset, range, ratio, within};
use crate::detection::check_encoding;
use crate::limits::{Transformer, transformer};

pub const KIND: Kind = Kind { takes_weights: true, ..kind!(attention: Detr, "detr") };

/// Settings of `detr`, which builds DETR on a residual network, counts its parameters and trains it for some steps.
///
/// `data.set` names annotated images, and `data.weights` trained weights that training starts from, if available. Without `data`, the
/// protocol generates scenes, writes them in COCO's format and reads them back.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Detr {
    /// Sizes of the model; the defaults are the paper's.
    #[serde(default)]
    pub model: Sizes,
    /// The position encoding.
    pub encoding: Encoding,
    /// Coordinates of a cell of the feature map.
    #[serde(default)]
    pub coordinates: Coordinates,
    /// How photographs are resized and cropped; the defaults are DETR's.
    #[serde(default)]
    pub resizing: Resizing,
    /// Number of images per training step.
    #[serde(default = "preset::<1, usize>")]
    pub batch: usize,
    /// Number of training steps; 0 only counts parameters.
    #[serde(default)]
    pub steps: usize,
    /// Number of validation images that are evaluated after the last step.
    #[serde(default)]
    pub held_out: usize,
    /// Learning rate, constant over all steps.
    #[serde(default = "ratio::<1, 10_000>")]
    pub learning_rate: f64,
    /// Learning rate of the residual network, constant over all steps.
    #[serde(default = "ratio::<1, 100_000>")]
    pub backbone_rate: f64,
    /// Weight decay of AdamW.
    #[serde(default = "ratio::<1, 10_000>")]
    pub weight_decay: f64,
    /// Gradient clipping: largest global norm.
    #[serde(default = "ratio::<10, 100>", rename(serialize = "longest_gradient"))]
    pub max_grad_norm: f64,
}

impl Settings for Detr {
    fn check(&self) -> Result<(), Fault> {
        within("model", self.model.check())?;
        within("resizing", self.resizing.check())?;
        range("batch", self.batch, 1, 4096)?;
        range("steps", self.steps, 0, 10_000_000)?;
        range("held_out", self.held_out, 0, 1_000_000)?;
        positive("learning_rate", self.learning_rate, 10.0)?;
        // The shorter side of a photograph is resized to one of these.
        let shortest = self.resizing.short_sides.iter().min().unwrap_or(&STRIDE);
        self.transformer((shortest / STRIDE).pow(2)).check()?;
        range("backbone_rate", self.backbone_rate, 0.0, 10.0)?;
        range("weight_decay", self.weight_decay, 0.0, 1.0)?;
        positive("max_grad_norm", self.max_grad_norm, 1e9)?;
        check_encoding(&self.encoding, self.coordinates, "cells", self.model.width)
    }
}

impl Detr {
    fn transformer(&self, length: usize) -> Transformer {
        let model = &self.model;
        transformer!(model, model.encoder_layers + model.decoder_layers, self.batch, length)
    }
}
