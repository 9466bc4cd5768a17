//! The CPU engine.
use crate::{Engine, NetError, Session, Task};

/// Trains on the CPU.
#[derive(Debug, Clone, Copy)]
pub struct CpuEngine {
    threads: usize,
}

impl CpuEngine {
    /// An engine that spreads one task over `threads` threads.
    pub fn new(threads: usize) -> Self {
        CpuEngine { threads: threads.max(1) }
    }
}

impl Engine for CpuEngine {
    fn device(&self) -> String {
        format!("cpu, {} threads", self.threads)
    }

    fn start(&self, task: Task) -> Result<Box<dyn Session>, NetError> {
        task.check()?;
        Err(NetError::Zero { what: "the engine" })
    }
}
