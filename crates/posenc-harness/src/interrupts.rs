//! Interrupts (SIGINT, SIGTERM) that ask a run to end, and SIGXFSZ, which reports that a file may not grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Ctrl-C.
pub const INTERRUPT: usize = 2;
/// What `kill` and batch systems send.
pub const TERMINATE: usize = 15;

/// Listens while units run: the first signal is for the run to see, a second one ends the process at once.
#[derive(Clone, Default)]
pub struct Interrupts {
    asked: Arc<AtomicUsize>,
    at_once: Arc<AtomicBool>,
}

impl Interrupts {
    /// Listens from now on.
    ///
    /// # Errors
    ///
    /// A system that refuses it.
    #[cfg(unix)]
    pub fn listen() -> std::io::Result<Self> {
        use signal_hook::{consts, flag};
        let signals = Interrupts::default();
        for (signal, number) in [(consts::SIGINT, INTERRUPT), (consts::SIGTERM, TERMINATE)] {
            // In this order: what the first signal sets makes the second one end the process.
            flag::register_conditional_shutdown(signal, 128 + signal, signals.at_once.clone())?;
            flag::register(signal, signals.at_once.clone())?;
            flag::register_usize(signal, signals.asked.clone(), number)?;
        }
        // A limit on the size of files would kill the process; caught, the write fails as on a full disk.
        flag::register(consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
        Ok(signals)
    }

    /// Elsewhere the system's own way stays.
    #[cfg(not(unix))]
    pub fn listen() -> std::io::Result<Self> {
        Ok(Interrupts::default())
    }

    /// The signal that has asked the run to end.
    pub fn asked(&self) -> Option<usize> {
        match self.asked.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal),
        }
    }

    /// From now on the first signal ends the process, too.
    pub fn end_at_once(&self) {
        self.at_once.store(true, Ordering::Relaxed);
    }
}

/// A signal's name.
pub fn name(signal: usize) -> &'static str {
    if signal == INTERRUPT { "SIGINT" } else { "SIGTERM" }
}
