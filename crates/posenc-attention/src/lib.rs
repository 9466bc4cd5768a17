//! Attention models for *Learnable Fourier Features* (Li et al., NeurIPS 2021): position encodings as modules, and the models in which
//! the paper evaluates them.
//!
//! Burn provides automatic differentiation, modules and devices; [`kernels`] has custom kernels for the most expensive operations. All
//! random numbers come from ChaCha8 streams that the caller passes, none from burn. Weights and position encoding are sampled from two
//! streams, so models that differ only in their encoding share all other weights. A run uses one thread: the same seed gives the same
//! bits.

pub mod boxes;
pub mod caption;
pub mod captioner;
pub mod conv;
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
pub mod trainer;
pub mod translator;

pub use burn::module::Module;
pub use burn::tensor::Device;

/// An adapter: its type, and its index among the adapters of that type, in wgpu's order.
#[cfg(feature = "wgpu")]
pub use burn::tensor::DeviceKind;

/// Opens a wgpu adapter for models, with automatic differentiation. Later errors of the device panic.
#[cfg(feature = "wgpu")]
pub fn wgpu(adapter: DeviceKind) -> Result<Device, String> {
    let opened = Device::wgpu_options().device_kind(adapter).init();
    opened.map(Device::autodiff).map_err(|error| error.to_string())
}

/// The CPU as a device, with automatic differentiation.
pub fn cpu() -> Device {
    Device::flex().autodiff()
}
