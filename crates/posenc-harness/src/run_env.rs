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
    pub store: &'static Store,
    pub data: &'static DataSets,
    pub devices: &'static Devices,
    pub seed: u64,
    /// Git commit of the run, as stored in records.
    pub commit: &'static str,
}

/// Inputs of the tables and the report of this machine.
#[derive(Clone, Copy)]
pub struct ResultInputs<'a> {
    pub repository: &'a Repository,
    pub plans: &'a Plans<'a>,
    pub store: &'a Store,
    pub devices: &'a Devices,
    pub options: &'a Reproduce,
    pub out: &'a Path,
}

/// Leaks a value, so that threads that do not stop can read it until the process ends.
pub fn keep<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}
