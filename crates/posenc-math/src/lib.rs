//! Embedders, stable rank, distance, Kronecker algebra and statistics.
//!
//! The mathematics of three papers on positional encoding: *Rethinking positional encoding* (2021, here `rethinking`), *Trading
//! Positional Complexity vs Deepness in Coordinate Networks* (2022, `trading`), *Learnable Fourier Features* (2021, `lff`).
//!
//! | to | see |
//! |---|---|
//! | name, check and build an embedder ψ: [0, 1) → ℝ^d | [`embedder`] |
//! | measure the stable rank of embedded points, and their singular values | [`spectrum`] |
//! | measure how similarity falls with distance | [`distance`] |
//! | compare both with the papers' propositions | [`theory`] |
//! | transform equispaced values | [`fourier`] |
//! | embed grids as Kronecker products, without writing them out | [`kronecker`] |
//! | fit images and clips in closed form, on grids and at scattered points | [`closed_form`] |
//! | embed points between the nodes of a grid | [`blending`] |
//! | interpolate without an encoding, as SciPy does, and by kriging | [`interpolation`] |
//! | count operations, bytes and parameters | [`complexity`], [`lff`] |
//! | describe position encodings of attention models | [`lff::encoding`] |
//! | score reconstructions, boxes, captions | [`quality`], [`detection`], [`captions`], [`classification`] |
//! | compare samples of scores | [`statistics`] |
//! | sample random numbers that are the same on every machine | [`random`] |
//! | list and check the errata of the papers | [`errata`] |
//!
//! # Conventions
//!
//! Every function is a pure function of its arguments: no files, no clocks, no threads. Random numbers come only from ChaCha8
//! generators that the caller passes in. Coordinates `x` lie in `[0, 1)`; the `n` sample points of a line are `x_i = i/n` and the
//! centers of an embedder of dimension `d` are `t_j = j/d`.
//! A matrix of embedded points has a row per point and a column per feature (N × d). Matrices are those of [`faer`], generators
//! those of [`rand_chacha`]; both crates are re-exported. Images are indexed by row (y) and column (x) and flattened row by row.
//! Functions that can fail return an [`Error`] that names the argument.

pub use error::Error;
pub use {faer, rand_chacha};

pub mod blending;
pub mod captions;
pub mod classification;
pub mod closed_form;
pub mod complexity;
pub mod detection;
pub mod distance;
pub mod embedder;
pub mod errata;
mod error;
pub mod fourier;
pub mod interpolation;
pub mod kronecker;
pub mod lff;
pub mod quality;
pub mod random;
pub mod spectrum;
pub mod statistics;
pub mod tangent_kernel;
#[cfg(test)]
mod testing;
pub mod theory;
pub mod tolerance;
mod torch_random;
pub mod trigonometry;
pub mod vectorized;
