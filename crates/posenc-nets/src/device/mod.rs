//! The device engine: wgpu (Vulkan, Metal, DirectX 12) with hand-written WGSL kernels.
//!
//! A session records its dispatches once, as lists of kernels with their buffers, and replays them every
//! epoch (`program.rs`). All runs of a task share the dispatches. One kernel generator with four tile sizes covers all
//! matrix products (`product.rs`); the other kernels are pointwise or sums (`kernels.rs`). Networks with an affine first
//! layer process chunks of points (`simple.rs`), networks with a Kronecker layer multiply tensors axis by axis
//! (`kronecker.rs`). The errors of many epochs stay on the device and are read together.
//!
//! The partition of sums depends only on sizes, and no sum uses atomics. Repeating a task on one adapter and driver
//! therefore gives the same bits. Other adapters order and fuse operations differently; their results agree with the
//! CPU engine within a tolerance.

mod adapter;
mod context;
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

#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Memory for activations, in bytes. Networks that need more process their points or runs in chunks.
    pub chunk_bytes: u64,
    /// Number of floating-point operations to queue before errors are checked.
    pub work_at_once: f64,
}

#[derive(Debug, Clone)]
pub struct DeviceEngine {
    choice: Choice,
    options: Options,
    description: AdapterDescription,
    /// The open device; the first task after a device loss reopens it.
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Clone)]
struct Open {
    gpu: Arc<Gpu>,
    kernels: Arc<Kernels>,
}

impl DeviceEngine {
    pub fn open(choice: Choice) -> Result<Self, NetError> {
        let gpu = Gpu::open(choice.clone())?;
        let options = if gpu.description.is_software {
            // Software adapters share the memory of the machine. The work takes a few seconds on two cores.
            Options { chunk_bytes: 256 << 20, work_at_once: 2e10 }
        } else {
            Options { chunk_bytes: 1 << 30, work_at_once: 2e12 }
        };
        let description = gpu.description.clone();
        let open = Open { gpu: Arc::new(gpu), kernels: Arc::default() };
        Ok(DeviceEngine { choice, options, description, open: Arc::new(Mutex::new(open)) })
    }

    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    pub fn description(&self) -> &AdapterDescription {
        &self.description
    }

    /// Returns the open device; reopens it if it was lost.
    fn open_device(&self) -> Result<Open, NetError> {
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
        let Open { gpu, kernels } = self.open_device()?;
        let options = self.options.clone();
        let session = gpu.scoped(|| DeviceSession::new(gpu.clone(), kernels, options, task))?;
        Ok(Box::new(session))
    }
}
