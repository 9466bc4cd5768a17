//! Tests of engines, networks and training against reference implementations.

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
