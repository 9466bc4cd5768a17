//! Mode products with banded embedding matrices, followed by blending at the points.

use super::{ScatteredSystem, Workspace};
use crate::closed_form::Real;
use crate::kronecker::multiply;
use faer::{Mat, MatMut, MatRef};

/// A matrix cut into blocks of rows, each without its leading and trailing negligible columns.
#[derive(Clone, Debug)]
pub(super) struct Tiled<T> {
    shape: (usize, usize),
    tiles: Vec<Tile<T>>,
}

/// Rows `first_row ..` and columns `first_column ..` of a matrix.
#[derive(Clone, Debug)]
struct Tile<T> {
    first_row: usize,
    first_column: usize,
    matrix: Mat<T>,
}

/// Rows of a tile: few, so that it is narrow, but enough for a fast product.
const TILE_ROWS: usize = 32;

/// A matrix whose tiles keep more than this share of the entries is not tiled.
const WORTHWHILE: f64 = 0.6;

impl<T: Real> Tiled<T> {
    pub(super) fn new(matrix: MatRef<'_, T>) -> Self {
        let (n, k) = matrix.shape();
        let largest = matrix.norm_max().to_f64();
        let least = T::EPSILON * T::EPSILON * largest;
        let tiles: Vec<Tile<T>> = (0..n)
            .step_by(TILE_ROWS)
            .map(|first_row| {
                let rows = matrix.subrows(first_row, TILE_ROWS.min(n - first_row));
                let counts = |j: &usize| rows.col(*j).iter().any(|v| v.to_f64().abs() > least);
                let first_column = (0..k).find(counts).unwrap_or(k);
                let end = (0..k).rfind(counts).map_or(first_column, |last| last + 1);
                let matrix = rows.subcols(first_column, end - first_column).to_owned();
                Tile { first_row, first_column, matrix }
            })
            .collect();
        let kept: usize = tiles.iter().map(|tile| tile.matrix.nrows() * tile.matrix.ncols()).sum();
        if kept as f64 <= WORTHWHILE * (n * k) as f64 {
            return Self { shape: (n, k), tiles };
        }
        let whole = Tile { first_row: 0, first_column: 0, matrix: matrix.to_owned() };
        Self { shape: (n, k), tiles: vec![whole] }
    }

    /// Rows and columns.
    pub(super) fn shape(&self) -> (usize, usize) {
        self.shape
    }

    #[cfg(test)]
    pub(super) fn n_tiles(&self) -> usize {
        self.tiles.len()
    }

    /// `out = (P X)ᵀ` for this m × n matrix P, `x` n × r and `out` r × m.
    fn apply_transposed(&self, x: MatRef<'_, T>, mut out: MatMut<'_, T>) {
        for Tile { first_row, first_column, matrix } in &self.tiles {
            let (rows, columns) = matrix.shape();
            let mut out = out.as_mut().subcols_mut(*first_row, rows);
            if columns == 0 {
                out.fill(T::zero_impl());
                continue;
            }
            let x = x.subrows(*first_column, columns);
            multiply(out, x.transpose(), matrix.transpose());
        }
    }
}

impl<T: Real, const D: usize> ScatteredSystem<'_, T, D> {
    /// Scratch memory for the largest grid between mode products.
    pub(super) fn workspace(&self) -> Workspace<T> {
        let nodes = |axes: &[Tiled<T>]| axes.iter().map(|axis| axis.shape().0).product::<usize>();
        let features =
            |axes: &[Tiled<T>]| axes.iter().map(|axis| axis.shape().1).product::<usize>();
        // The last axes are mapped first, from features to nodes or from nodes to features.
        let largest = (0..=D)
            .map(|axis| {
                let (first, last) = self.forward.split_at(axis);
                (features(first) * nodes(last)).max(nodes(first) * features(last))
            })
            .max()
            .unwrap_or(0);
        Workspace { nodes: vec![T::zero_impl(); largest], scratch: vec![T::zero_impl(); largest] }
    }

    pub(super) fn apply_into(&self, weights: &[T], out: &mut [T], workspace: &mut Workspace<T>) {
        let Workspace { nodes, scratch } = workspace;
        nodes[..weights.len()].copy_from_slice(weights);
        let n_nodes = mode_products(&self.forward, weights.len(), nodes, scratch);
        let nodes = &nodes[..n_nodes];
        if self.points.gather(nodes, out).is_err() {
            unreachable!("lengths were checked when the system was made");
        }
    }

    pub(super) fn apply_transposed_into(
        &self,
        values: &[T],
        out: &mut [T],
        workspace: &mut Workspace<T>,
    ) {
        let Workspace { nodes, scratch } = workspace;
        let n_nodes = self.forward.iter().map(|axis| axis.shape().0).product();
        if self.points.scatter(values, &mut nodes[..n_nodes]).is_err() {
            unreachable!("lengths were checked when the system was made");
        }
        let n_weights = mode_products(&self.backward, n_nodes, nodes, scratch);
        out.copy_from_slice(&nodes[..n_weights]);
    }
}

/// Replaces the first `length` values, a grid with the last axis fastest, by their mode products with
/// the matrices of all axes. Returns the new length.
///
/// Starts with the last axis, whose lines are contiguous. Each product leaves its result transposed,
/// which makes the lines of the next axis contiguous.
fn mode_products<T: Real>(
    axes: &[Tiled<T>],
    length: usize,
    values: &mut Vec<T>,
    scratch: &mut Vec<T>,
) -> usize {
    let mut length = length;
    for axis in axes.iter().rev() {
        let (m, n) = axis.shape();
        let lines = length / n;
        axis.apply_transposed(
            MatRef::from_column_major_slice(&values[..length], n, lines),
            MatMut::from_column_major_slice_mut(&mut scratch[..lines * m], lines, m),
        );
        length = lines * m;
        std::mem::swap(values, scratch);
    }
    length
}
