//! Mode products with banded embedding matrices, followed by blending at the points.

use super::{ScatteredSystem, Workspace};
use crate::closed_form::Real;
use crate::closed_form::apply::{Along, mode_products};
use crate::kronecker::multiply;
use faer::reborrow::Reborrow;
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

    #[cfg(test)]
    pub(super) fn n_tiles(&self) -> usize {
        self.tiles.len()
    }
}

impl<T: Real> Along<T> for Tiled<T> {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn apply_transposed(&self, x: MatMut<'_, T>, mut out: MatMut<'_, T>) {
        for Tile { first_row, first_column, matrix } in &self.tiles {
            let (rows, columns) = matrix.shape();
            let mut out = out.as_mut().subcols_mut(*first_row, rows);
            if columns == 0 {
                out.fill(T::zero_impl());
                continue;
            }
            let x = x.rb().subrows(*first_column, columns);
            multiply(out, x.transpose(), matrix.transpose());
        }
    }
}

impl<T: Real, const D: usize> ScatteredSystem<'_, T, D> {
    pub(super) fn apply_into(&self, weights: &[T], out: &mut [T], workspace: &mut Workspace<T>) {
        let [nodes, scratch] = workspace;
        nodes.clear();
        nodes.extend_from_slice(weights);
        mode_products(self.forward.iter(), nodes, scratch);
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
        let [nodes, scratch] = workspace;
        nodes.resize(self.points.n_nodes(), T::zero_impl());
        if self.points.scatter(values, nodes).is_err() {
            unreachable!("lengths were checked when the system was made");
        }
        mode_products(self.backward.iter(), nodes, scratch);
        out.copy_from_slice(nodes);
    }
}
