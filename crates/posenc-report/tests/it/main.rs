//! Pages and plots from records.

mod classes;
mod common;
mod comparisons;
mod embedders;
mod errata;
mod hostile;
mod links;
mod panels;
mod pictures;
mod report;
mod tables;
