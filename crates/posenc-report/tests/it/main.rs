//! Pages and plots from records.

mod classes;
mod common;
mod comparisons;
mod errata;
mod gallery;
mod hostile;
mod links;
mod panels;
mod pictures;
mod report;
mod tables;
