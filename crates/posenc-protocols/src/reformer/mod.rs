//! Builds the image model of `lff` with hashed attention and reversible layers, counts its parameters and trains it for some steps.
//!
//! Without `data`, the protocol generates images, writes them as an archive of downsampled ImageNet and reads them back. `data.set` is a
//! set of files of the format `downsampled-images`. The default schedule is that of the paper's library,
//! 0.03125·min(1, s/8000)/√max(s, 8000) at step s.
//!
//! Records `params` (M) and `encoding_params`: number of parameters of the model and of the position encoding.
//!
//! With `steps`, also records:
//!
//! - `training_curve` (bits/dim): training loss over the step.
//! - `time_of_step` (s): median time of a step. `rate` (GFLOP/s), `peak_memory` (MB).
//! - `archives`: 1 if the images are npz archives, 0 if they are PNG files. Results on the two variants are not comparable.
//!
//! With `held_out`, also records `bits` (bits/dim) on validation images.

#[cfg(feature = "attention")]
mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use posenc_math::lff::encoding::Encoding;
use posenc_math::lff::reformer::{COLORS, Sizes};
use posenc_math::lff::schedule::Decay;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{positive, preset, range, within};
use crate::limits::{Transformer, check_bytes};

pub const KIND: Kind = kind!(attention: Reformer, "reformer");

/// Settings of `reformer`, which builds a Reformer over the color channels of each pixel, counts its parameters and trains it for some
/// steps.
///
/// `data.set` names downsampled ImageNet. Without `data`, the protocol generates images, writes them as an archive of the same format and
/// reads them back.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reformer {
    /// Sizes of the model; the defaults are the paper's.
    #[serde(default)]
    pub model: Sizes,
    /// The position encoding.
    pub encoding: Encoding,
    /// Number of images per training step.
    #[serde(default = "preset::<1, usize>")]
    pub batch: usize,
    /// Number of training steps; 0 only counts parameters.
    #[serde(default)]
    pub steps: usize,
    /// Number of validation images that are evaluated after the last step.
    #[serde(default)]
    pub held_out: usize,
    /// Peak learning rate.
    #[serde(default = "rate")]
    pub learning_rate: f64,
    /// Number of steps of the linear warm-up to the peak learning rate.
    #[serde(default = "preset::<8000, usize>")]
    pub warm_up: usize,
    /// Learning rate schedule after the warm-up.
    #[serde(default)]
    pub decay: Decay,
}

/// 0.03125/√8000.
fn rate() -> f64 {
    3.493_856e-4
}

impl Settings for Reformer {
    fn check(&self) -> Result<(), Fault> {
        within("model", self.model.check())?;
        if self.steps > 0 && self.model.levels != 256 {
            let message = format!("levels: {} is not allowed; images have 256", self.model.levels);
            return Err(("model", message));
        }
        range("batch", self.batch, 1, 4096)?;
        let (model, hashing) = (&self.model, &self.model.hashing);
        let attended = (hashing.heads * hashing.head_width) as f64;
        Transformer {
            // Reversible layers keep the activations of one layer at a time.
            layers: 1,
            width: model.width,
            heads: 1,
            feed_forward: model.feed_forward,
            others: model.layers as f64
                * (4.0 * attended + 2.0 * model.feed_forward as f64)
                * model.width as f64,
            batch: self.batch,
            length: 0,
        }
        .check()?;
        let streams = 16.0 * (self.batch * model.length()) as f64 * model.width as f64;
        check_bytes("batch", "a step would keep", streams, "`batch`, `side` or `width`")?;
        let pixels = 3.0 * self.held_out as f64 * (model.side * model.side) as f64;
        check_bytes("held_out", "the images need", pixels, "`held_out` or `side`")?;
        range("steps", self.steps, 0, 10_000_000)?;
        range("held_out", self.held_out, 0, 100_000)?;
        positive("learning_rate", self.learning_rate, 10.0)?;
        range("warm_up", self.warm_up, 0, 10_000_000)?;
        let (axes, width) = if self.encoding.flat {
            (COLORS, self.model.width)
        } else {
            (2, self.model.pixel_width)
        };
        within("encoding", self.encoding.check(axes, width))
    }
}
