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
mod parallel;
mod tiled;

pub use linear::GROUP;

use crate::{Engine, FirstLayer, NetError, Session, State, Task};

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

/// Notes the epoch of runs whose error is no longer finite.
pub(crate) fn note_divergence(diverged: &mut [Option<u64>], errors: &[f64], epoch: u64) {
    for (diverged, error) in diverged.iter_mut().zip(errors) {
        if diverged.is_none() && !error.is_finite() {
            *diverged = Some(epoch);
        }
    }
}

/// Refuses two sizes that differ.
pub(crate) fn same(what: &str, found: usize, expected: usize) -> Result<(), NetError> {
    if found == expected {
        Ok(())
    } else {
        Err(NetError::Shape { what: what.to_owned(), found, expected })
    }
}

/// Refuses a state of another task.
pub(crate) fn check_state(state: &State, runs: usize, numbers: usize) -> Result<(), NetError> {
    let (found, expected) = (state.diverged.len(), runs);
    if found != expected {
        return Err(NetError::State { why: format!("it has {found} runs, the task {expected}") });
    }
    let found = state.numbers.len();
    if found != numbers {
        return Err(NetError::State {
            why: format!("it holds {found} numbers, the task needs {numbers}"),
        });
    }
    Ok(())
}

/// A state of runs whose parameters and two moments lie in arrays of their own.
fn state_of<'a>(
    runs: impl Iterator<Item = [&'a [f32]; 3]>,
    epoch: u64,
    diverged: &[Option<u64>],
) -> State {
    let numbers = runs.flat_map(|parts| parts.concat()).collect();
    State { epoch, diverged: diverged.to_vec(), numbers }
}

/// The arrays of such runs, of `n` numbers each, from a state.
fn restore_from<'a>(
    state: &State,
    n: usize,
    runs: impl ExactSizeIterator<Item = [&'a mut [f32]; 3]>,
) -> Result<(), NetError> {
    check_state(state, runs.len(), 3 * n * runs.len())?;
    for (parts, numbers) in runs.zip(state.numbers.chunks_exact(3 * n)) {
        for (part, numbers) in parts.into_iter().zip(numbers.chunks_exact(n)) {
            part.copy_from_slice(numbers);
        }
    }
    Ok(())
}
