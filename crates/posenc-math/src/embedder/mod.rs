//! Embedders: maps ψ from a coordinate `x` in `[0, 1)` to `d` features.
//!
//! There are two families. Shift-invariant embedders sample one profile `ψ(u)` at the distances
//! `u = t_j - x` to the centers `t_j = j/d`; Fourier embedders are `d/2` sines and then `d/2` cosines
//! of frequencies in turns per unit length, `sin 2πbx`. The stacked rows of `N` coordinates are the
//! `N × d` matrix whose stable rank bounds what a linear layer can memorize and whose inner products
//! `D(x - x')` determine how it interpolates (`rethinking` Sec. 3, `trading` Sec. 4).
//!
//! Each kind has its own file and a line in the list of kinds below. The [`Kind`] in its file describes it for
//! the whole workspace. [`validate`] checks a specification, and [`build`] makes it into an [`Embedder`].

mod error;
mod fourier;
mod kind;
mod registry;
mod shifted;
mod spec;
mod unit_row;

/// Declares the file of each kind and lists their entries.
///
/// `cargo fmt` does not find modules that a macro declares, so `cargo xtask check` passes their files to it.
macro_rules! kinds {
    ($($kind:ident)*) => {
        $(mod $kind;)*

        const KINDS: &[Kind] = &[$($kind::KIND),*];
    };
}

// In the order in which reports list them.
kinds! {
    impulse
    rectangle
    triangle
    sine
    square
    gaussian
    random
    linf
    logf
    rff
    basic
    identity
    siren
    multilevel
    // new kinds: above this line
    formula
}

/// Names of the kinds that commands, protocols and benchmarks use directly.
pub mod names {
    /// The default kind of `fit`.
    pub const GAUSSIAN: &str = super::gaussian::KIND.name;
    pub const FORMULA: &str = super::formula::KIND.name;
    pub const LINF: &str = super::linf::KIND.name;
    pub const RFF: &str = super::rff::KIND.name;
    pub const TRIANGLE: &str = super::triangle::KIND.name;
}

#[cfg(test)]
mod tests;

use faer::Mat;

pub use error::EmbedderError;
pub use kind::{
    CodeDistance, Family, FitDefaults, FitModel, FitParameter, FitUnit, Kind, Law, Numbers,
};
pub use registry::{DefaultValue, Parameter, Presence, Rule, build, find, registry, validate};
pub(crate) use shifted::wrap;
pub use spec::{EmbedderSpec, ParameterValue};

/// A map ψ: [0, 1) → ℝ^d. Pure: equal arguments give equal bits, on any thread.
pub trait Embedder: Send + Sync {
    /// The number d of features.
    fn dimension(&self) -> usize;

    /// Writes columns `first .. first + out.len()` of the row ψ(x).
    ///
    /// The values do not depend on how a row is split into such pieces. A coordinate that is not
    /// finite yields features that are not finite. May panic if columns are beyond `d`.
    fn embed_columns(&self, x: f64, first: usize, out: &mut [f64]);

    /// Writes the row ψ(x) into the `d` entries of `out`.
    fn embed(&self, x: f64, out: &mut [f64]) {
        self.embed_columns(x, 0, out);
    }

    /// The law D(Δ) = ψ(x)·ψ(x + Δ) / ‖ψ(x)‖² in the limit d → ∞, away from open ends; `None` if
    /// no law is known.
    fn distance_law(&self, _delta: f64) -> Option<f64> {
        None
    }

    /// The constant in the bound `min(N, constant)` of the stable rank for d → ∞; `None` if no
    /// bound below N is known.
    fn stable_rank_bound(&self) -> Option<f64> {
        None
    }

    /// ψ(x)·ψ(x + Δ) at finite d, if it does not depend on x (Fourier kinds). The Gram matrix of equally
    /// spaced samples is then Toeplitz.
    fn gram_kernel(&self, _delta: f64) -> Option<f64> {
        None
    }

    /// Whether ψ(x + 1/d) is ψ(x) shifted cyclically by one column: the matrix of `N = d` samples is
    /// then circulant.
    fn is_circulant(&self) -> bool {
        false
    }

    /// The Euclidean norm ‖ψ(x)‖.
    fn row_norm(&self, x: f64) -> f64 {
        const COLUMNS: usize = 1024;
        let d = self.dimension();
        let mut block = [0.0; COLUMNS];
        let mut sum = 0.0;
        for first in (0..d).step_by(COLUMNS) {
            let block = &mut block[..COLUMNS.min(d - first)];
            self.embed_columns(x, first, block);
            sum += block.iter().map(|value| value * value).sum::<f64>();
        }
        sum.sqrt()
    }
}

/// The `N × d` matrix with rows ψ(x_i).
pub fn matrix(embedder: &dyn Embedder, xs: &[f64]) -> Mat<f64> {
    /// Values per transposed block of rows.
    const BUDGET: usize = 1 << 18;
    let d = embedder.dimension();
    let n_rows = (BUDGET / d).clamp(8, 64);
    let mut matrix = Mat::zeros(xs.len(), d);
    let mut rows = vec![0.0; n_rows * d];
    for (block, xs) in xs.chunks(n_rows).enumerate() {
        for (row, &x) in rows.chunks_exact_mut(d).zip(xs) {
            embedder.embed(x, row);
        }
        for j in 0..d {
            let column = &mut matrix.col_as_slice_mut(j)[block * n_rows..][..xs.len()];
            for (i, value) in column.iter_mut().enumerate() {
                *value = rows[i * d + j];
            }
        }
    }
    matrix
}

/// Divides a matrix by its largest row norm and returns that norm.
///
/// The papers' training code scales batches this way. An empty or zero matrix stays unchanged, and the result is 0.
pub fn scale_by_largest_row_norm(matrix: &mut Mat<f64>) -> f64 {
    let mut squares = vec![0.0; matrix.nrows()];
    for j in 0..matrix.ncols() {
        for (sum, value) in squares.iter_mut().zip(matrix.col_as_slice(j)) {
            *sum += value * value;
        }
    }
    let largest = squares.into_iter().fold(0.0, f64::max).sqrt();
    if largest > 0.0 {
        for j in 0..matrix.ncols() {
            for value in matrix.col_as_slice_mut(j) {
                *value /= largest;
            }
        }
    }
    largest
}

/// The `n` sample points `i/n` of a line, excluding the end 1.
pub fn line(n: usize) -> Vec<f64> {
    (0..n).map(|i| i as f64 / n as f64).collect()
}
