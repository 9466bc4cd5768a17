//! Embedders, stable rank, distance, Kronecker algebra and statistics.
//!
//! Everything here is a pure function of its arguments: no files, no clocks, no threads, and no
//! random number that does not come from a ChaCha8 generator the caller passes in. Coordinates `x`
//! lie in `[0, 1)`; the `n` sample points of a line are `x_i = i/n` and the centers of an embedder
//! of dimension `d` are `t_j = j/d`.

pub mod blending;
pub mod captions;
pub mod classification;
pub mod closed_form;
pub mod complexity;
pub mod detection;
pub mod distance;
pub mod embedder;
pub mod errata;
pub mod kronecker;
pub mod lff;
pub mod quality;
pub mod random;
pub mod spectrum;
pub mod statistics;
pub mod theory;
pub mod tolerance;
pub mod trigonometry;
pub mod vectorized;
