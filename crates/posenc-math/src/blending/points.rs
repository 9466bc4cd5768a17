//! Blending at points in one to three dimensions: as sums over corners, and as a sparse matrix.

use nalgebra_sparse::CsrMatrix;

use super::AxisBlending;
use crate::Error;
use crate::closed_form::{Real, check_length};

/// Blending weights of P points in D dimensions (1 to 3), each from the 2^D corners of its cell.
///
/// Only [`matrix`](Self::matrix) forms `B` (P × number of nodes). A point is stored as D indices into the
/// tables of its axes. A product with the matrix of nalgebra-sparse takes 2.0 (a quarter of 512² pixels)
/// to 4.0 (an eighth of 128³ voxels) times as long as [`gather`](Self::gather).
#[derive(Clone, Debug)]
pub struct Blending<T, const D: usize> {
    axes: [Axis<T>; D],
    points: Vec<[u32; D]>,
}

/// An [`AxisBlending`] in the precision of the values, with its lower nodes as offsets into the grid.
#[derive(Clone, Debug)]
struct Axis<T> {
    nodes: usize,
    stride: usize,
    offset: Vec<u32>,
    weights: Vec<[T; 2]>,
}

/// Corners of a cell in three dimensions.
const MAX_CORNERS: usize = 8;

impl<T: Real, const D: usize> Blending<T, D> {
    const N_CORNERS: usize = {
        assert!(D >= 1 && D <= 3, "blending is written for one to three axes");
        1 << D
    };

    /// Blending at `points`, each D indices into the coordinates of `axes`.
    ///
    /// Weights are rounded to `T` along each axis, and multiplied in `T`.
    ///
    /// # Errors
    ///
    /// A point with an index that is out of range; a grid with more than 2³² − 1 nodes.
    pub fn new(axes: [&AxisBlending; D], points: Vec<[u32; D]>) -> Result<Self, Error> {
        for (point, indices) in points.iter().enumerate() {
            for axis in 0..D {
                let (found, available) = (indices[axis] as usize, axes[axis].len());
                if found >= available {
                    return Err(Error(format!(
                        "point {point}: the coordinate index of axis {axis} must be below {available}, got {found}"
                    )));
                }
            }
        }
        let n_nodes = axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.nodes));
        if n_nodes.is_none_or(|n| n > u32::MAX as usize) {
            let shape: Vec<String> = axes.iter().map(|axis| axis.nodes.to_string()).collect();
            return Err(Error(format!(
                "a virtual grid must have at most {} nodes, got {}",
                u32::MAX,
                shape.join(" × ")
            )));
        }
        let axes = std::array::from_fn(|axis| {
            let stride: usize = axes[axis + 1..].iter().map(|later| later.nodes).product();
            let AxisBlending { nodes, lower, weights } = axes[axis];
            Axis {
                nodes: *nodes,
                stride,
                offset: lower.iter().map(|&node| node * stride as u32).collect(),
                weights: weights.iter().map(|pair| pair.map(T::from_f64)).collect(),
            }
        });
        Ok(Self { axes, points })
    }

    pub fn n_points(&self) -> usize {
        self.points.len()
    }

    pub fn shape(&self) -> [usize; D] {
        std::array::from_fn(|axis| self.axes[axis].nodes)
    }

    pub fn n_nodes(&self) -> usize {
        self.shape().iter().product()
    }

    /// The corners of a point in increasing order, with their weights.
    #[inline(always)]
    fn corners_of(&self, point: &[u32; D]) -> ([usize; MAX_CORNERS], [T; MAX_CORNERS]) {
        let (mut indices, mut weights) = ([0; MAX_CORNERS], [T::one_impl(); MAX_CORNERS]);
        // From the last axis, the fastest, to the first: each axis doubles the number of corners.
        let mut n = 1;
        for axis in (0..D).rev() {
            let Axis { stride, offset, weights: table, .. } = &self.axes[axis];
            let coordinate = point[axis] as usize;
            let (offset, [below, above]) = (offset[coordinate] as usize, table[coordinate]);
            for corner in 0..n {
                indices[corner + n] = indices[corner] + offset + stride;
                indices[corner] += offset;
                weights[corner + n] = above * weights[corner];
                weights[corner] = below * weights[corner];
            }
            n *= 2;
        }
        (indices, weights)
    }

    /// `out = B values`: the values at the points from those at the nodes, first axis slowest.
    ///
    /// # Errors
    ///
    /// Slices of the wrong length.
    pub fn gather(&self, values: &[T], out: &mut [T]) -> Result<(), Error> {
        self.check(values.len(), out.len())?;
        for (value, point) in out.iter_mut().zip(&self.points) {
            let (indices, weights) = self.corners_of(point);
            let mut sum = weights[0] * values[indices[0]];
            for corner in 1..Self::N_CORNERS {
                sum += weights[corner] * values[indices[corner]];
            }
            *value = sum;
        }
        Ok(())
    }

    /// `out = Bᵀ values`, the transpose of [`gather`](Self::gather): sums the contributions of the points to the nodes, in
    /// the order of the points.
    ///
    /// # Errors
    ///
    /// Slices of the wrong length.
    pub fn scatter(&self, values: &[T], out: &mut [T]) -> Result<(), Error> {
        self.check(out.len(), values.len())?;
        out.fill(T::zero_impl());
        for (value, point) in values.iter().zip(&self.points) {
            let (indices, weights) = self.corners_of(point);
            for corner in 0..Self::N_CORNERS {
                out[indices[corner]] += weights[corner] * *value;
            }
        }
        Ok(())
    }

    /// `B` itself, P × number of nodes, with the 2^D entries of every row stored, zeros included.
    pub fn matrix(&self) -> CsrMatrix<T> {
        let n_entries = self.n_points() * Self::N_CORNERS;
        let mut columns = Vec::with_capacity(n_entries);
        let mut values = Vec::with_capacity(n_entries);
        for point in &self.points {
            let (indices, weights) = self.corners_of(point);
            columns.extend_from_slice(&indices[..Self::N_CORNERS]);
            values.extend_from_slice(&weights[..Self::N_CORNERS]);
        }
        let starts = (0..=self.n_points()).map(|row| row * Self::N_CORNERS).collect();
        let matrix =
            CsrMatrix::try_from_csr_data(self.n_points(), self.n_nodes(), starts, columns, values);
        match matrix {
            Ok(matrix) => matrix,
            Err(_) => unreachable!("the corners of a cell are distinct nodes in increasing order"),
        }
    }

    fn check(&self, n_nodes: usize, n_points: usize) -> Result<(), Error> {
        check_length("values at the nodes of the virtual grid", n_nodes, self.n_nodes())?;
        check_length("values at the points", n_points, self.n_points())
    }
}
