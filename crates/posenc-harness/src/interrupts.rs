//! Interrupts (SIGINT, SIGTERM) that ask a run to end, and SIGXFSZ, which reports that a file exceeds the size limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Number of SIGINT, which Ctrl-C sends.
pub const INTERRUPT: usize = 2;
/// Number of SIGTERM, which `kill` and batch systems send.
pub const TERMINATE: usize = 15;

/// Listens for interrupts while units run. The first one is reported to the run; a second one ends the process at once.
#[derive(Clone, Default)]
pub struct Interrupts {
    asked: Arc<AtomicUsize>,
    at_once: Arc<AtomicBool>,
}

impl Interrupts {
    #[cfg(unix)]
    pub fn listen() -> std::io::Result<Self> {
        use signal_hook::{consts, flag};
        let signals = Interrupts::default();
        for (signal, number) in [(consts::SIGINT, INTERRUPT), (consts::SIGTERM, TERMINATE)] {
            // The order matters: the flag that the first interrupt sets makes the second one end the process.
            flag::register_conditional_shutdown(signal, 128 + signal, signals.at_once.clone())?;
            flag::register(signal, signals.at_once.clone())?;
            flag::register_usize(signal, signals.asked.clone(), number)?;
        }
        // Without a handler, exceeding the file size limit kills the process. With one, the write fails as on a full disk.
        flag::register(consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
        Ok(signals)
    }

    /// Installs nothing: other systems keep their default behavior.
    #[cfg(not(unix))]
    pub fn listen() -> std::io::Result<Self> {
        Ok(Interrupts::default())
    }

    /// Number of the interrupt that asked the run to end, if any.
    pub fn asked(&self) -> Option<usize> {
        match self.asked.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal),
        }
    }

    /// Makes the next interrupt end the process, even if it is the first.
    pub fn end_at_once(&self) {
        self.at_once.store(true, Ordering::Relaxed);
    }
}

pub fn name(signal: usize) -> &'static str {
    if signal == INTERRUPT { "SIGINT" } else { "SIGTERM" }
}
