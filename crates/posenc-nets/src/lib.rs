//! Coordinate networks: what they are, and engines that train them.
//!
//! A coordinate network is an affine map or a ReLU network on embedded positions ψ(x)
//! (`rethinking` Sec. 5, `trading` Sec. 6). Positions of several coordinates are embedded by
//! concatenation ("simple") or by the Kronecker product of the axes' features ("complex", `trading`
//! Sec. 5). A [`Network`] is its shape, an [`Input`] the embedded
//! positions of N points, a [`Task`] one or several runs that share positions, and an [`Engine`]
//! starts a [`Session`] that trains them by full-batch Adam. [`train::fit`] drives a session along
//! a schedule of measurements. [`mod@reference`] is the same mathematics written to be read, in double
//! precision; tests hold the engines against it. The CPU engine is always there; the device engine
//! (`device`, behind the feature `wgpu`) trains the same tasks on a GPU.
//!
//! Single precision, no randomness but in [`Network::initialize`], no clocks, no files. On the CPU
//! the bits of a result do not depend on the number of threads.

pub mod cpu;
#[cfg(feature = "wgpu")]
pub mod device;
mod engine;
mod error;
mod input;
mod layout;
mod model;
mod optimizer;
pub mod reference;
pub mod spectral;
pub mod train;

pub use cpu::{CpuEngine, Products};
pub use engine::{Engine, EpochErrors, Progress, SampleSet, Samples, Session, State, Task};
pub use error::NetError;
pub use input::{Factored, Input, Kronecker, Points, WaveTable, Waves};
pub use model::{FirstLayer, Layer, Network, OutputActivation, Parameters};
pub use optimizer::Adam;
