//! The CPU engine: single precision, matrix products by faer, vectorized passes in between.
//!
//! Three kinds of session. Networks on Kronecker features multiply axis by axis (`kronecker/`). One
//! affine layer on a dense embedding is a product with all runs as
//! columns, walked feature block by feature block (`linear.rs`). Everything else walks tiles of
//! points through the whole network and back, with the activations in cache (`tiled/`).

mod bands;
mod kernels;
mod kronecker;
mod linear;
pub mod parallel;
mod tiled;

#[cfg(feature = "wgpu")]
pub(crate) use self::{kernels::sigmoid, kronecker::Sparse};
pub use linear::GROUP;

use crate::{Engine, FirstLayer, NetError, Progress, Session, State, Task};

/// Trains on the CPU.
#[derive(Debug, Clone, Copy)]
pub struct CpuEngine {
    threads: usize,
    products: Products,
}

/// How the gradient of a Kronecker layer is found. All give the same up to rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Products {
    /// Whichever takes fewer products.
    #[default]
    Automatic,
    /// Through the Gram matrices of the axes, Ψ₀Ψ₀ᵀ W Ψ₁Ψ₁ᵀ − Ψ₀ S Ψ₁ᵀ: only on a full grid, without
    /// hidden layers and without output activation.
    Gram,
    /// Forward to the outputs, and back from the residuals.
    Residual,
}

impl CpuEngine {
    /// An engine that spreads one task over `threads` threads (at least one). The number changes no
    /// bit of any result.
    pub fn new(threads: usize) -> Self {
        CpuEngine { threads: threads.max(1), products: Products::Automatic }
    }

    /// The same with another way to the gradient of Kronecker layers.
    pub fn with_products(mut self, products: Products) -> Self {
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

/// A state of runs whose parameters and two moments are arrays of their own.
fn state_of<'a>(runs: impl Iterator<Item = [&'a [f32]; 3]>, progress: &Progress) -> State {
    progress.state(runs.flat_map(|parts| parts.concat()).collect())
}

/// The arrays of such runs, of `n` numbers each, from a state.
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
