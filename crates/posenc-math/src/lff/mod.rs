//! Learnable Fourier features (Li et al., NeurIPS 2021): similarity of positions, parameter counts.
//!
//! [`similarity`] evaluates the two codes of Figure 2 on a grid; [`parameters`] rebuilds the
//! models of Tables 3 to 5 module by module and compares the sums with the printed sizes.

pub mod detr;
pub mod divergence;
pub mod encoding;
pub mod information;
pub mod learned;
pub mod parameters;
pub mod reformer;
pub mod schedule;
pub mod similarity;
pub mod table;
pub mod widget;
