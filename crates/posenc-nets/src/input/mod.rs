//! Embedded positions, in the form that is cheapest to multiply with.

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
/// Cloning is cheap; the numbers are shared.
#[derive(Debug, Clone)]
pub enum Input {
    /// The matrix itself, d × N. The engine finds out where it vanishes and multiplies only bands.
    Dense(Arc<Mat<f32>>),
    /// Features that depend on few distinct coordinates: see [`Factored`].
    Factored(Arc<Factored>),
    /// Sines and cosines of sums over coordinates: see [`Waves`].
    Waves(Arc<Waves>),
    /// Products of features of several axes: see [`Kronecker`].
    Kronecker(Arc<Kronecker>),
}

/// Blocks of features, each a table over a coordinate's distinct values.
///
/// Point i has the features `[T₀[:, index₀[i]]; T₁[:, index₁[i]]; …]`. On a grid, T₀ and T₁ embed the
/// rows and the columns; diagonal directions are tables over the distinct sums. Then
/// W·ψ = Σ_b (W_b T_b)[:, index_b]: products with the small tables and an outer sum instead of one with
/// the wide matrix.
#[derive(Debug, Clone)]
pub struct Factored {
    /// d_b × n_b.
    pub tables: Vec<Mat<f32>>,
    /// Per block the column of the table that each point takes.
    pub indices: Vec<Vec<u32>>,
}

impl Input {
    /// Columns ψ(x_i), d × N. Entries that single precision cannot hold are refused.
    pub fn dense(columns: Mat<f32>) -> Result<Self, NetError> {
        finite(&columns)?;
        Ok(Input::Dense(Arc::new(columns)))
    }

    /// From an N × d embedding matrix in double precision, as `posenc_math::embedder::matrix` gives it.
    pub fn from_rows(rows: &Mat<f64>) -> Result<Self, NetError> {
        Input::dense(Mat::from_fn(rows.ncols(), rows.nrows(), |j, i| rows[(i, j)] as f32))
    }

    /// Tables and indices; see [`Factored`].
    pub fn factored(tables: Vec<Mat<f32>>, indices: Vec<Vec<u32>>) -> Result<Self, NetError> {
        if tables.is_empty() {
            return Err(NetError::Zero("the number of tables"));
        }
        same("index lists of a factored input", indices.len(), tables.len())?;
        for (table, index) in tables.iter().zip(&indices) {
            finite(table)?;
            same("points of an index list", index.len(), indices[0].len())?;
            check_indices("an index beyond its table", index, table.ncols())?;
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
    ///
    /// # Errors
    ///
    /// No table or no frequency, tables of different frequencies, lists of different lengths, an index
    /// beyond its table, numbers that are not finite.
    pub fn waves(
        tables: Vec<WaveTable>,
        indices: Vec<Vec<u32>>,
        scale: f32,
    ) -> Result<Self, NetError> {
        Waves::new(tables, indices, scale).map(|waves| Input::Waves(Arc::new(waves)))
    }

    /// Kronecker features ψ₀ ⊗ ψ₁ ⊗ … on the full grid of the columns of one to three axes; the last
    /// axis varies fastest, of features and of points.
    ///
    /// # Errors
    ///
    /// No axis or more than three, an empty one, entries that are not finite.
    pub fn kronecker(axes: Vec<Mat<f32>>) -> Result<Self, NetError> {
        Kronecker::new(axes, Points::Grid).map(|k| Input::Kronecker(Arc::new(k)))
    }

    /// The same on some nodes of the grid only; a node's number is that of [`Input::kronecker`]'s
    /// point.
    ///
    /// # Errors
    ///
    /// Those of [`Input::kronecker`], and a node beyond the grid.
    pub fn kronecker_at(axes: Vec<Mat<f32>>, nodes: Vec<u32>) -> Result<Self, NetError> {
        Kronecker::new(axes, Points::Nodes(nodes)).map(|k| Input::Kronecker(Arc::new(k)))
    }

    /// Points between the nodes of the grid: the features of a point are the sum of its nodes'
    /// features, weighted by its row of `blending`, points × nodes (`trading` Sec. 5.2).
    ///
    /// # Errors
    ///
    /// Those of [`Input::kronecker`], a matrix whose columns are not the grid's nodes, weights that
    /// are not finite.
    pub fn kronecker_blended(
        axes: Vec<Mat<f32>>,
        blending: CsrMatrix<f32>,
    ) -> Result<Self, NetError> {
        let points = Points::Blended(Arc::new(blending));
        Kronecker::new(axes, points).map(|k| Input::Kronecker(Arc::new(k)))
    }

    /// Number d of features.
    pub fn dimension(&self) -> usize {
        match self {
            Input::Dense(matrix) => matrix.nrows(),
            Input::Factored(f) => f.tables.iter().map(Mat::nrows).sum(),
            Input::Waves(waves) => 2 * waves.waves(),
            Input::Kronecker(k) => k.dimension(),
        }
    }

    /// Number N of points.
    pub fn points(&self) -> usize {
        match self {
            Input::Dense(matrix) => matrix.ncols(),
            Input::Factored(f) => f.indices[0].len(),
            Input::Waves(waves) => waves.indices[0].len(),
            Input::Kronecker(k) => k.points(),
        }
    }

    /// ψ(x_i), entry `feature`.
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

    /// The whole d × N matrix.
    pub fn to_dense(&self) -> Mat<f32> {
        Mat::from_fn(self.dimension(), self.points(), |j, i| self.at(j, i))
    }

    /// Whether every feature of every point is zero.
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

/// Refuses an index of a column beyond the last.
fn check_indices(what: &str, indices: &[u32], columns: usize) -> Result<(), NetError> {
    match indices.iter().find(|&&i| i as usize >= columns) {
        Some(&found) => {
            let (found, expected) = (found as usize, columns.saturating_sub(1));
            Err(NetError::Shape { what: what.to_owned(), found, expected })
        }
        None => Ok(()),
    }
}

fn vanishes(column: &[f32]) -> bool {
    column.iter().all(|v| *v == 0.0)
}

fn finite(matrix: &Mat<f32>) -> Result<(), NetError> {
    for j in 0..matrix.ncols() {
        if matrix.col_as_slice(j).iter().any(|v| !v.is_finite()) {
            return Err(NetError::NotFinite("the embedding"));
        }
    }
    Ok(())
}
