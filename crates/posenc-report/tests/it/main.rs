//! Pages and plots from records.

mod common;
mod errata;
mod gallery;
mod hostile;
mod panels;
mod pictures;
mod report;
mod screens;
