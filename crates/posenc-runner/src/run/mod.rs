//! Running a plan: store, lock, workers, progress.

pub mod checkpoint;
pub mod collect;
pub mod data;
pub mod lock;
pub mod plan;
pub mod progress;
pub mod promote;
pub mod store;
pub mod work;
