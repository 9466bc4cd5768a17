//! Running a plan: store, lock, workers, progress.

pub mod checkpoint;
pub mod collect;
pub mod control;
pub mod data;
pub mod events;
pub mod failed;
pub mod flight;
pub mod lock;
pub mod memory;
pub mod orphans;
pub mod pace;
pub mod plan;
pub mod progress;
pub mod promote;
pub mod queue;
pub mod signals;
pub mod span;
pub mod store;
pub mod work;
pub mod worker;
