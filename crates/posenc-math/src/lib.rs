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
//!
//! # First example
//!
//! The built-in Gaussian embedder and the same embedder written as a formula reconstruct a step equally well:
//!
//! ```
//! use posenc_math::closed_form::Factorization;
//! use posenc_math::embedder::{EmbedderSpec, build, line, matrix};
//! use posenc_math::faer::Mat;
//! use posenc_math::quality::psnr_of;
//! use posenc_math::random::stream;
//! use posenc_math::spectrum::line_stable_rank;
//!
//! let gaussian = EmbedderSpec::new("gaussian").number("dimension", 64.0).number("sigma", 0.02);
//! let formula = EmbedderSpec::new("formula")
//!     .number("dimension", 64.0)
//!     .text("psi", "exp(-u^2 / (2*s^2))")
//!     .number("s", 0.02);
//! let mut scores = Vec::new();
//! for spec in [gaussian, formula] {
//!     let embedder = build(&spec, &mut stream(0, "first example")).expect("a valid specification");
//!     let rank = line_stable_rank(&*embedder, 64).expect("finite features");
//!     assert!((12.0..16.0).contains(&rank));
//!
//!     // Every second sample trains; the others are predicted.
//!     let x = line(64);
//!     let (train, test): (Vec<f64>, Vec<f64>) =
//!         (x.iter().step_by(2).copied().collect(), x.iter().skip(1).step_by(2).copied().collect());
//!     let signal = |x: f64| if x < 0.5 { 0.25 } else { 0.75 };
//!     let targets = Mat::from_fn(train.len(), 1, |i, _| signal(train[i]));
//!     let psi = matrix(&*embedder, &train);
//!     let weights = Factorization::new(psi.as_ref()).unwrap().pseudo_inverse() * targets;
//!     let predicted = matrix(&*embedder, &test) * weights;
//!     let squares = test.iter().enumerate().map(|(i, &x)| (predicted[(i, 0)] - signal(x)).powi(2));
//!     scores.push(psnr_of(squares.sum::<f64>() / test.len() as f64));
//! }
//! assert!((scores[0] - scores[1]).abs() < 1e-6 && scores[0] > 15.0);
//! ```

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
#[cfg(test)]
mod testing;
pub mod theory;
pub mod tolerance;
mod torch_random;
pub mod trigonometry;
pub mod vectorized;
