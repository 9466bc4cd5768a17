//! The device engine: wgpu (Vulkan, Metal, DirectX 12) with hand-written WGSL kernels.
//!
//! A session records its dispatches once, as lists of kernels with their buffers, and replays them every
//! epoch (`program.rs`). Runs of a task share every dispatch. Matrix products are one kernel text with
//! four tile sizes (`product.rs`); everything else is pointwise or a sum (`kernels.rs`). Networks on affine
//! first layers go through chunks of points (`simple.rs`), those on Kronecker layers through tensors
//! axis by axis (`kronecker.rs`). Errors of many epochs stay on the device and are fetched together.
//!
//! Sums are cut by sizes alone and never added by atomics, so that two runs on one adapter and
//! driver give the same bits. Other adapters order and fuse operations differently: their results agree
//! with the CPU engine's to a tolerance.

mod adapter;
mod input;
mod kernels;
mod kronecker;
mod product;
mod program;
mod session;
mod simple;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use self::adapter::Gpu;
pub use self::adapter::{AdapterDescription, AdapterType, Choice, adapters};
use self::program::Kernels;
use self::session::DeviceSession;
use crate::{Engine, NetError, Session, Task};

/// Limits that an engine sets itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Bytes for the activations that are held at a time: 3-D networks go through their points in
    /// chunks that keep below it.
    pub chunk_bytes: u64,
    /// Floating point operations that are queued before errors are checked.
    pub work_at_once: f64,
}

/// Trains on an adapter.
#[derive(Debug, Clone)]
pub struct DeviceEngine {
    choice: Choice,
    options: Options,
    description: AdapterDescription,
    /// Opened again by the first task after the device was lost.
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Clone)]
struct Open {
    gpu: Arc<Gpu>,
    kernels: Arc<Kernels>,
}

impl DeviceEngine {
    /// Opens an adapter.
    ///
    /// # Errors
    ///
    /// [`NetError::Device`]: no such adapter exists, or it provides no device.
    pub fn open(choice: Choice) -> Result<Self, NetError> {
        let gpu = Gpu::open(choice.clone())?;
        let options = if gpu.description.is_software {
            // Its memory is the machine's own; a few seconds of two cores.
            Options { chunk_bytes: 256 << 20, work_at_once: 2e10 }
        } else {
            Options { chunk_bytes: 1 << 30, work_at_once: 2e12 }
        };
        let description = gpu.description.clone();
        let open = Open { gpu: Arc::new(gpu), kernels: Arc::default() };
        Ok(DeviceEngine { choice, options, description, open: Arc::new(Mutex::new(open)) })
    }

    /// The same adapter under other limits.
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// What was opened.
    pub fn description(&self) -> &AdapterDescription {
        &self.description
    }

    /// The device; opened again if it was lost.
    fn device_at_hand(&self) -> Result<Open, NetError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.gpu.is_lost() {
            *open =
                Open { gpu: Arc::new(Gpu::open(self.choice.clone())?), kernels: Arc::default() };
        }
        Ok(open.clone())
    }
}

impl Engine for DeviceEngine {
    fn device(&self) -> String {
        self.description.to_string()
    }

    fn start(&self, task: Task) -> Result<Box<dyn Session>, NetError> {
        task.check()?;
        let Open { gpu, kernels } = self.device_at_hand()?;
        let options = self.options.clone();
        let session = gpu.scoped(|| DeviceSession::new(gpu.clone(), kernels, options, task))?;
        Ok(Box::new(session))
    }
}
