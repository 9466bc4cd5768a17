//! Environment that all units of a run share.

use std::path::Path;

use crate::data::DataSets;
use crate::device::Devices;
use crate::options::Reproduce;
use crate::plan::Plans;
use crate::repository::Repository;
use crate::store::Store;

/// Inputs of units, and the store for their records.
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
    /// Git commit of the run, as stored in records.
    pub commit: &'static str,
}

/// Inputs of the tables and the report of this machine.
#[derive(Clone, Copy)]
pub struct ResultInputs<'a> {
    /// The repository.
    pub repository: &'a Repository,
    /// Plans of all items.
    pub plans: &'a Plans<'a>,
    /// Raw records.
    pub store: &'a Store,
    /// Devices of the run.
    pub devices: &'a Devices,
    /// Options of the run.
    pub options: &'a Reproduce,
    /// Output directory.
    pub out: &'a Path,
}

/// Leaks a value, so that threads that do not stop can read it until the process ends.
pub fn keep<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}
