//! What protocols with attention models share.

pub mod real_boxes;
pub mod train_state;

use anyhow::Result;
use posenc_attention::Device;
use posenc_harness::protocol::{Context, Placement};

/// Where attention models train.
pub const PLACEMENT: Placement =
    if cfg!(feature = "attention-wgpu") { Placement::Device } else { Placement::CpuInThisBuild };

/// The device on which the attention models of a job train.
///
/// # Errors
///
/// An adapter that does not open for them.
pub fn device(context: &Context<'_>) -> Result<Device> {
    adapter(context).map(|own| own.unwrap_or_else(posenc_attention::cpu))
}

#[cfg(not(feature = "attention-wgpu"))]
fn adapter(_: &Context<'_>) -> Result<Option<Device>> {
    Ok(None)
}

/// The adapter of the run.
#[cfg(feature = "attention-wgpu")]
fn adapter(context: &Context<'_>) -> Result<Option<Device>> {
    use posenc_attention::DeviceKind;
    use posenc_nets::device::AdapterType;

    let Some(adapter) = context.devices.adapter(context.device_class()) else { return Ok(None) };
    let (own_type, index) = adapter.place;
    let kind = match own_type {
        AdapterType::DiscreteGpu => DeviceKind::DiscreteGpu(index),
        AdapterType::IntegratedGpu => DeviceKind::IntegratedGpu(index),
        AdapterType::VirtualGpu => DeviceKind::VirtualGpu(index),
        AdapterType::Cpu => DeviceKind::Cpu,
        AdapterType::Other => DeviceKind::DefaultDevice,
    };
    let device = posenc_attention::wgpu(kind).map_err(|why| {
        anyhow::anyhow!("{adapter} does not open for attention models: {why}; use --device cpu")
    })?;
    Ok(Some(device))
}
