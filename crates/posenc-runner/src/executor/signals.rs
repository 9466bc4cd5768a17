//! Ctrl-C and the request to end, seen instead of obeyed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Whether somebody asked this process to end.
pub struct Asked(Arc<AtomicBool>);

impl Asked {
    /// From now on the two signals are noted and do nothing else.
    pub fn listen() -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, asked.clone()).context("signals cannot be seen")?;
        }
        Ok(Asked(asked))
    }

    /// Whether one has come.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
