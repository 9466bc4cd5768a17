//! The CPU engine: single precision, matrix products by faer, vectorized passes in between.
//!
//! There are three kinds of session. Networks on Kronecker features multiply axis by axis (`kronecker/`). A single
//! affine layer on a dense embedding is one product with all runs as columns, computed block by block of features
//! (`linear.rs`). All other networks process tiles of points forward and backward through all layers, with the
//! activations in cache (`tiled/`).

mod bands;
mod kernels;
mod kronecker;
mod linear;
pub mod parallel;
mod tiled;

#[cfg(feature = "wgpu")]
pub(crate) use self::{
    kernels::{interleave, sigmoid},
    kronecker::Sparse,
};
pub use linear::GROUP;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Engine, FirstLayer, NetError, Progress, Session, State, Task};

#[derive(Debug, Clone, Copy)]
pub struct CpuEngine {
    threads: usize,
    products: Option<Products>,
}

/// How a complex encoding on a grid is multiplied.
// Both agree up to rounding. The Gram form, Ψ₀Ψ₀ᵀ W Ψ₁Ψ₁ᵀ − Ψ₀ S Ψ₁ᵀ, requires a full grid, no hidden layers and no
// output activation.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Products {
    /// Gradients through the Gram matrices of the axes.
    Gram,
    /// Gradients through the residuals and the embedding matrices, as in the authors' code.
    Residual,
}

impl CpuEngine {
    /// An engine with `threads` threads per task (at least one). Their number does not change the bits of a result.
    pub fn new(threads: usize) -> Self {
        CpuEngine { threads: threads.max(1), products: None }
    }

    /// Sets how Kronecker layers are multiplied; `None` chooses by the number of multiplications.
    pub fn with_products(mut self, products: Option<Products>) -> Self {
        self.products = products;
        self
    }
}

impl Engine for CpuEngine {
    fn device(&self) -> String {
        match self.threads {
            1 => "cpu, 1 thread".to_owned(),
            n => format!("cpu, {n} threads"),
        }
    }

    fn start(&self, task: Task) -> Result<Box<dyn Session>, NetError> {
        task.check()?;
        if task.network.first == FirstLayer::Kronecker {
            let session = kronecker::KroneckerSession::new(task, self.threads, self.products)?;
            return Ok(Box::new(session));
        }
        Ok(if linear::LinearSession::takes(&task) {
            Box::new(linear::LinearSession::new(task, self.threads))
        } else {
            Box::new(tiled::TiledSession::new(task, self.threads))
        })
    }
}

/// Concatenates the parameters and both moments of every run into a state.
fn state_of<'a>(runs: impl Iterator<Item = [&'a [f32]; 3]>, progress: &Progress) -> State {
    progress.state(runs.flat_map(|parts| parts.concat()).collect())
}

/// Inverse of [`state_of`] for arrays of `n` numbers each.
fn restore_from<'a>(
    state: &State,
    n: usize,
    runs: impl ExactSizeIterator<Item = [&'a mut [f32]; 3]>,
    progress: &mut Progress,
) -> Result<(), NetError> {
    progress.check(state, 3 * n * runs.len())?;
    for (parts, numbers) in runs.zip(state.numbers.chunks_exact(3 * n)) {
        for (part, numbers) in parts.into_iter().zip(numbers.chunks_exact(n)) {
            part.copy_from_slice(numbers);
        }
    }
    progress.clone_from(&state.progress);
    Ok(())
}
