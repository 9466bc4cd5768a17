//! Embedded positions, each in the form that is cheapest to multiply.

mod kronecker;
mod waves;

use std::sync::Arc;

use faer::Mat;
use nalgebra_sparse::CsrMatrix;

pub use self::kronecker::{Kronecker, Points};
pub use self::waves::{WaveTable, Waves};
use crate::NetError;
use crate::error::same;

/// Embedded positions of N points: the d × N matrix with columns ψ(x_i).
///
/// Cloning is cheap because clones share the data.
#[derive(Debug, Clone)]
pub enum Input {
    /// The d × N matrix itself. The CPU engine detects where it vanishes and multiplies only bands.
    Dense(Arc<Mat<f32>>),
    /// Features that depend on few distinct coordinates; see [`Factored`].
    Factored(Arc<Factored>),
    /// Sines and cosines of sums over coordinates; see [`Waves`].
    Waves(Arc<Waves>),
    /// Products of features of several axes; see [`Kronecker`].
    Kronecker(Arc<Kronecker>),
}

/// Blocks of features. Each block is a table over the distinct values of a coordinate.
///
/// Point i has the features `[T₀[:, index₀[i]]; T₁[:, index₁[i]]; …]`. On a grid, T₀ and T₁ embed the
/// rows and the columns; diagonal directions are tables over the distinct sums. Then
/// W·ψ = Σ_b (W_b T_b)[:, index_b]: products with the small tables and an outer sum replace the product with
/// the wide matrix.
#[derive(Debug, Clone)]
pub struct Factored {
    /// One d_b × n_b table per block.
    pub tables: Vec<Mat<f32>>,
    /// For each block, the table column of every point.
    pub indices: Vec<Vec<u32>>,
}

impl Input {
    /// Input with columns ψ(x_i), d × N. Entries that are not finite are refused.
    pub fn dense(columns: Mat<f32>) -> Result<Self, NetError> {
        finite(&columns)?;
        Ok(Input::Dense(Arc::new(columns)))
    }

    /// Input from an N × d embedding matrix in double precision, as returned by `posenc_math::embedder::matrix`.
    pub fn from_rows(rows: &Mat<f64>) -> Result<Self, NetError> {
        Input::dense(Mat::from_fn(rows.ncols(), rows.nrows(), |j, i| rows[(i, j)] as f32))
    }

    /// Input from tables and indices; see [`Factored`].
    pub fn factored(tables: Vec<Mat<f32>>, indices: Vec<Vec<u32>>) -> Result<Self, NetError> {
        if tables.is_empty() {
            return Err(NetError::Zero("the number of tables"));
        }
        same("index lists of a factored input", indices.len(), tables.len())?;
        for (table, index) in tables.iter().zip(&indices) {
            finite(table)?;
            same("points of an index list", index.len(), indices[0].len())?;
            check_indices("index beyond its table", index, table.ncols())?;
        }
        Ok(Input::Factored(Arc::new(Factored { tables, indices })))
    }

    /// The full grid of the columns of several axes; the last axis varies fastest.
    pub fn grid(axes: Vec<Mat<f32>>) -> Result<Self, NetError> {
        let points: usize = axes.iter().map(Mat::ncols).product();
        let mut indices = Vec::with_capacity(axes.len());
        let mut stride = points;
        for axis in &axes {
            let n = axis.ncols().max(1);
            stride /= n;
            let s = stride.max(1);
            indices.push((0..points).map(|p| (p / s % n) as u32).collect());
        }
        Input::factored(axes, indices)
    }

    /// Waves in several coordinates at once; see [`Waves`]. `tables` and `indices` have one entry per axis.
    pub fn waves(
        tables: Vec<WaveTable>,
        indices: Vec<Vec<u32>>,
        scale: f32,
    ) -> Result<Self, NetError> {
        Waves::new(tables, indices, scale).map(|waves| Input::Waves(Arc::new(waves)))
    }

    /// Kronecker features ψ₀ ⊗ ψ₁ ⊗ … on the full grid of the columns of one to three axes; the last
    /// axis varies fastest, for features and for points.
    pub fn kronecker(axes: Vec<Mat<f32>>) -> Result<Self, NetError> {
        Kronecker::new(axes, Points::Grid).map(|k| Input::Kronecker(Arc::new(k)))
    }

    /// Kronecker features on some nodes of the grid only. Nodes have the numbers of the points of
    /// [`Input::kronecker`].
    pub fn kronecker_at(axes: Vec<Mat<f32>>, nodes: Vec<u32>) -> Result<Self, NetError> {
        Kronecker::new(axes, Points::Nodes(nodes)).map(|k| Input::Kronecker(Arc::new(k)))
    }

    /// Kronecker features of points between the nodes of the grid. The features of a point are the sum of the
    /// nodes' features, weighted by its row of `blending`, points × nodes (`trading` Sec. 5.2).
    pub fn kronecker_blended(
        axes: Vec<Mat<f32>>,
        blending: CsrMatrix<f32>,
    ) -> Result<Self, NetError> {
        let points = Points::Blended(Arc::new(blending));
        Kronecker::new(axes, points).map(|k| Input::Kronecker(Arc::new(k)))
    }

    pub fn dimension(&self) -> usize {
        match self {
            Input::Dense(matrix) => matrix.nrows(),
            Input::Factored(f) => f.tables.iter().map(Mat::nrows).sum(),
            Input::Waves(waves) => 2 * waves.waves(),
            Input::Kronecker(k) => k.dimension(),
        }
    }

    pub fn points(&self) -> usize {
        match self {
            Input::Dense(matrix) => matrix.ncols(),
            Input::Factored(f) => f.indices[0].len(),
            Input::Waves(waves) => waves.indices[0].len(),
            Input::Kronecker(k) => k.points(),
        }
    }

    /// Entry `feature` of ψ(x_i), where i is `point`.
    pub fn at(&self, feature: usize, point: usize) -> f32 {
        match self {
            Input::Dense(matrix) => matrix[(feature, point)],
            Input::Factored(f) => {
                let mut first = 0;
                for (table, index) in f.tables.iter().zip(&f.indices) {
                    if feature < first + table.nrows() {
                        return table[(feature - first, index[point] as usize)];
                    }
                    first += table.nrows();
                }
                0.0
            }
            Input::Waves(waves) => waves.at(feature, point),
            Input::Kronecker(k) => k.at(feature, point),
        }
    }

    /// The axes of an input that a Kronecker layer has accepted.
    pub(crate) fn axes(&self) -> &Arc<Kronecker> {
        match self {
            Input::Kronecker(kronecker) => kronecker,
            _ => unreachable!("the task was checked"),
        }
    }

    pub fn to_dense(&self) -> Mat<f32> {
        Mat::from_fn(self.dimension(), self.points(), |j, i| self.at(j, i))
    }

    pub fn is_zero(&self) -> bool {
        let zero = |m: &Mat<f32>| (0..m.ncols()).all(|j| vanishes(m.col_as_slice(j)));
        match self {
            Input::Dense(matrix) => zero(matrix),
            Input::Factored(f) => f.tables.iter().all(zero),
            Input::Waves(waves) => {
                let is_zero = |t: &WaveTable| zero(&t.sines) && zero(&t.cosines);
                waves.scale == 0.0 || waves.tables.iter().any(is_zero)
            }
            Input::Kronecker(k) => k.is_zero(),
        }
    }
}

fn check_indices(what: &'static str, indices: &[u32], count: usize) -> Result<(), NetError> {
    match indices.iter().find(|&&index| index as usize >= count) {
        Some(&index) => Err(NetError::Index { what, index, count }),
        None => Ok(()),
    }
}

fn vanishes(column: &[f32]) -> bool {
    column.iter().all(|v| *v == 0.0)
}

fn finite(matrix: &Mat<f32>) -> Result<(), NetError> {
    for j in 0..matrix.ncols() {
        if matrix.col_as_slice(j).iter().any(|v| !v.is_finite()) {
            return Err(NetError::NotFinite("a value of the embedding"));
        }
    }
    Ok(())
}
