//! Readable reference implementation of training in double precision.
//!
//! It implements everything that a [`Session`](crate::Session) does with dense matrices, one run after the other,
//! and loops as in the formulas. It is slow on purpose. Tests compare the engines with it, and compare it with
//! finite differences.
//!
//! # One run
//!
//! N points with the features Ψ = [ψ(x₁) … ψ(x_N)] (d × N) and the targets T (N × O). With A₀ = Ψ and
//! l = 1 … L counting affine layers,
//!
//! ```text
//! Z_l = W_l A_{l-1} + b_l 1ᵀ       A_l = max(Z_l, 0) for l < L       Y = σ(Z_L)       (O × N)
//! E   = Σ (Y − Tᵀ)² / (N·O)
//! ```
//!
//! where σ is the identity or 1/(1 + e^-z). The backward pass, with ∘ the elementwise product, is
//!
//! ```text
//! D_L     = 2 (Y − Tᵀ) / (N·O) ∘ σ'(Z_L)        σ' = 1   or   Y ∘ (1 − Y)
//! ∂E/∂W_l = D_l A_{l-1}ᵀ        ∂E/∂b_l = D_l 1
//! D_{l-1} = W_lᵀ D_l ∘ [Z_{l-1} > 0]
//! ```
//!
//! The derivative of the ReLU at 0 is 0, as in PyTorch. The optimizer step is [`Adam`](crate::Adam), also computed
//! in double precision.

mod adam;
mod gradient;
mod parameters;
mod session;

pub use adam::AdamState;
pub use gradient::{loss, loss_and_gradient, outputs};
pub use parameters::{Layer, Parameters};
pub use session::ReferenceEngine;
