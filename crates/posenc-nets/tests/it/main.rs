//! Tests of engines, networks and training against reference implementations.

mod agreement;
mod common;
mod engines;
mod forms;
mod kronecker;
mod limits;
mod reference;
mod sessions;
mod shapes;
