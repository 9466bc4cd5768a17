//! Attention models for *Learnable Fourier Features* (Li et al., NeurIPS 2021): position encodings as modules, and the
//! models that the paper tries them in.
//!
//! Automatic differentiation, modules and devices are burn's; the operations in which the time goes are
//! [`kernels`] of ours. Every random number comes from ChaCha8 streams that the caller hands over, and none from
//! burn. Models draw their content and their encoding from two streams, so that those which differ in their encoding share
//! everything else. A run is one thread: the same seed gives the same bits.
//!
//! - [`position_encoding`]: a position encoding ([`posenc_math::lff::encoding::Encoding`]) as a module.
//! - [`image_model`]: an autoregressive transformer over the pixels of an image.
//! - [`divergence`]: the penalty on learned frequencies (LFF Eq. 9, 10).
//! - [`reformer`]: the paper's own image model, with hashed attention and reversible layers.
//! - [`detector`]: boxes from an image, in the manner of DETR; [`detr`]: the paper's own model, on a residual network.
//! - [`boxes`]: labels of the boxes of a screen, and which box an expression refers to.
//! - [`captioner`]: captions of widgets from the boxes of a screen; [`widget_captioner`]: the public model, with pixels and
//!   words; [`caption`]: captions as tensors and the search for the likeliest.
//! - [`translator`]: an encoder–decoder transformer with learned tables of positions.
//! - [`layers`]: transformer layers; [`trainer`]: the training loop and its checkpoints; [`optimizer`]: Adam; [`loss`]: cross-entropies.

pub mod boxes;
pub mod caption;
pub mod captioner;
pub mod conv;
pub mod detector;
pub mod detr;
pub mod divergence;
pub mod draw;
pub mod image_model;
pub mod kernels;
pub mod layers;
pub mod loss;
pub mod optimizer;
pub mod parameters;
pub mod position_encoding;
pub mod reformer;
pub mod trainer;
pub mod translator;
pub mod widget_captioner;

pub use burn::tensor::Device;

/// An adapter by its type and its place among those of its type, as wgpu lists them.
#[cfg(feature = "wgpu")]
pub use burn::tensor::DeviceKind;

/// Opens a wgpu adapter for models, with automatic differentiation. What goes wrong on it later panics.
///
/// # Errors
///
/// What the adapter says that does not open.
#[cfg(feature = "wgpu")]
pub fn wgpu(adapter: DeviceKind) -> Result<Device, String> {
    let opened = Device::wgpu_options().device_kind(adapter).init();
    opened.map(Device::autodiff).map_err(|error| error.to_string())
}

/// Where models run: the CPU, with automatic differentiation.
pub fn cpu() -> Device {
    Device::flex().autodiff()
}
