//! Attention models for *Learnable Fourier Features* (Li et al., NeurIPS 2021): position encodings as modules, and the
//! models that the paper tries them in.
//!
//! Automatic differentiation, modules and devices are burn's; the operations in which the time goes are
//! [`kernels`] of ours. Every random number comes from ChaCha8 streams that the caller hands over, and none from
//! burn. A run is one thread: the same seed gives the same bits.
//!
//! - [`encoder`]: a position encoding ([`posenc_math::lff::encoding::Encoding`]) as a module.
//! - [`image_model`]: an autoregressive transformer over the pixels of an image.
//! - [`divergence`]: the penalty on learned frequencies (LFF Eq. 9, 10).
//! - [`reformer`]: the paper's own image model, with hashed attention and reversible layers.
//! - [`detector`]: a set of boxes from an image, in the manner of DETR; [`detr`]: the paper's own, on a residual network.
//! - [`boxes`]: what boxes of a screen are, and which of them an expression refers to.
//! - [`captioner`]: what a widget of a screen does, from the boxes of all; [`widget_captioner`]: the public one, with pixels and
//!   words; [`caption`]: what both say.
//! - [`translator`]: an encoder–decoder transformer with learned tables of positions.
//! - [`optimizer`] is Adam; [`progress`] what trainings share; [`reached`] what one can go on from.

pub mod boxes;
pub mod caption;
pub mod captioner;
pub mod detector;
pub mod detr;
pub mod divergence;
pub mod draw;
pub mod encoder;
pub mod image_model;
pub mod kernels;
pub mod layers;
pub mod optimizer;
pub mod parameters;
pub mod progress;
pub mod reached;
pub mod reformer;
pub mod taps;
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
