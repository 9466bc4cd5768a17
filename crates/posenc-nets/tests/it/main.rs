//! Engines, networks and training against their readable references.

mod agreement;
mod automatic_differentiation;
mod common;
mod engines;
mod finite_differences;
mod forms;
mod kronecker;
mod limits;
mod sessions;
mod shapes;
