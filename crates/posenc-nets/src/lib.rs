//! Coordinate networks and the engines that train them.
//!
//! A coordinate network is an affine map or a ReLU network on embedded positions ψ(x)
//! (`rethinking` Sec. 5, `trading` Sec. 6). Positions of several coordinates are embedded by
//! concatenation ("simple") or by the Kronecker product of the axes' features ("complex", `trading`
//! Sec. 5).
//!
//! A [`Network`] describes the shape, an [`Input`] the embedded positions of N points, and a [`Task`] one or
//! several runs that share positions. An [`Engine`] starts a [`Session`], which trains a task with full-batch
//! Adam. [`train::fit`] trains a session and measures it on a schedule. [`mod@reference`] implements the same
//! mathematics readably in double precision; tests compare the engines with it. The CPU engine is always
//! available. The device engine (`device`, behind the feature `wgpu`) trains the same tasks on a GPU.
//!
//! Engines compute in single precision and use no clocks and no files. Only [`Network::initialize`] uses random
//! numbers. On the CPU, the number of threads does not change the bits of a result.

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
pub use model::{FirstLayer, Layer, Network, OutputActivation, Parameters, Start};
pub use optimizer::Adam;
