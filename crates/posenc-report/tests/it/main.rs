//! Pages and plots from records.

mod classes;
mod common;
mod comparisons;
mod embedders;
mod errata;
mod hostile;
mod pictures;
mod report;
mod sizes;
