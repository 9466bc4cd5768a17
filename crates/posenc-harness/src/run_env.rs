//! What units of a run share.

use crate::data::DataSets;
use crate::device::Devices;
use crate::store::Store;

/// What units read, and where records go.
#[derive(Clone, Copy)]
pub struct RunEnv {
    /// Records.
    pub store: &'static Store,
    /// Data sets.
    pub data: &'static DataSets,
    /// Where training runs.
    pub devices: &'static Devices,
    /// Seed of the run.
    pub seed: u64,
    /// Git commit of the run, as records keep it.
    pub commit: &'static str,
}

/// What lives as long as the process, so that threads which cannot be ended may still read it.
pub fn keep<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}
