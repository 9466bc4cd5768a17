//! Shared code of the protocols that train attention models.

pub mod record;
pub mod train_state;

/// Implements [`Protocol`](posenc_harness::protocol::Protocol) for settings whose only unit `run` computes, with the formats that it reads,
/// if need be only with an optional setting.
macro_rules! trains {
    ($settings:ident $(, reads $format:ident $(with $needs:ident)?)? $(, weights $weights:ident)?) => {
        impl posenc_harness::protocol::Protocol for $settings {
            $(fn reads(&self) -> Option<posenc_data::Format> {
                Some(posenc_data::Format::$format)$(.filter(|_| self.$needs.is_some()))?
            })?

            $(fn weights(&self) -> posenc_data::Format {
                posenc_data::Format::$weights
            })?

            fn placement(&self) -> posenc_harness::protocol::Placement {
                crate::attention::PLACEMENT
            }

            fn run(&self, context: &Context<'_>, emit: &mut posenc_harness::protocol::Emit<'_>) -> Result<()> {
                emit(0, run(context, self)?)
            }
        }
    };
}
pub(crate) use trains;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use posenc_attention::Device;
use posenc_data::FileIdentity;
use posenc_harness::protocol::{Context, Placement};
use posenc_math::random::below;
use rand_chacha::ChaCha8Rng;

/// Adam's ε, as in the library that the paper used.
pub const EPSILON: f64 = 1e-9;

pub const PLACEMENT: Placement =
    if cfg!(feature = "attention-wgpu") { Placement::Device } else { Placement::CpuInThisBuild };

/// The device on which the attention models of a job train.
pub fn device(context: &Context<'_>) -> Result<Device> {
    adapter(context).map(|own| own.unwrap_or_else(posenc_attention::cpu))
}

/// Samples the next of `count` items of a training set, at least one, without replacement. `left` contains the items that are left in the
/// current epoch; a new epoch begins when it is empty.
pub fn next(left: &mut Vec<usize>, count: usize, rng: &mut ChaCha8Rng) -> usize {
    if left.is_empty() {
        left.extend(0..count);
    }
    left.swap_remove(below(rng, left.len()))
}

/// The folder of `data.set`. Without `data`, `generate` writes files into a temporary folder, which is deleted when the second value is
/// dropped.
pub fn files(
    context: &Context<'_>,
    what: &str,
    generate: impl FnOnce(&Path) -> Result<()>,
) -> Result<(PathBuf, Option<tempfile::TempDir>)> {
    if let Some(data) = &context.job.group.data {
        return Ok((context.data.folder(&data.set)?, None));
    }
    let folder = tempfile::tempdir().with_context(|| format!("a folder for generated {what}"))?;
    generate(folder.path())?;
    Ok((folder.path().to_owned(), Some(folder)))
}

/// The files of `data.weights`, if available.
pub fn weights(context: &Context<'_>) -> Result<Option<FileIdentity>> {
    let set = context.job.group.data.as_ref().and_then(|data| data.weights.as_ref());
    let files = set.map(|set| context.data.files(set)).transpose()?.flatten();
    Ok(files.and_then(|files| files.found.clone().ok()))
}

#[cfg(not(feature = "attention-wgpu"))]
fn adapter(_: &Context<'_>) -> Result<Option<Device>> {
    Ok(None)
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use posenc_math::random::stream;

    /// Catches an item that occurs twice in an epoch, or not at all, and epochs in the same order.
    #[test]
    fn an_epoch_has_every_item_once() {
        let (mut left, mut rng) = (Vec::new(), stream(1, "batches"));
        let drawn: Vec<usize> = (0..15).map(|_| next(&mut left, 5, &mut rng)).collect();
        for epoch in drawn.chunks(5) {
            let mut epoch = epoch.to_vec();
            epoch.sort_unstable();
            assert_eq!(epoch, [0, 1, 2, 3, 4]);
        }
        assert_ne!(drawn[..5], drawn[5..10]);
    }
}
