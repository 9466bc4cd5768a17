//! Kronecker features: the complex encoding of `trading`.

use std::sync::Arc;

use faer::Mat;
use nalgebra_sparse::CsrMatrix;

use super::{check_indices, finite, vanishes};
use crate::NetError;
use crate::error::same;

/// Features ψ(x) = ψ₀(x₀) ⊗ ψ₁(x₁) ⊗ … of one to three coordinates.
///
/// The d × N matrix with d = ∏ K_a rows and N = ∏ N_a columns is never formed: with the weights W as a K₀ × K₁
/// tensor, all outputs on the grid are Ψ₀ᵀ W Ψ₁, computed axis by axis.
///
/// In the numbering of features and nodes, the last axis varies fastest: feature k = k₀·K₁ + k₁, node
/// n = n₀·N₁ + n₁.
#[derive(Debug, Clone)]
pub struct Kronecker {
    /// For each axis, the K_a × N_a matrix with columns ψ_a.
    pub axes: Vec<Mat<f32>>,
    pub points: Points,
}

/// Points of a [`Kronecker`] input in terms of the nodes of its grid.
#[derive(Debug, Clone)]
pub enum Points {
    Grid,
    /// These nodes, in this order; a node may occur more than once.
    Nodes(Vec<u32>),
    /// Weighted sums of nodes' features, points × nodes: B of `trading` Sec. 5.2, whose rows contain the
    /// blending weights of a point's 2^D corners.
    Blended(Arc<CsrMatrix<f32>>),
}

impl Kronecker {
    pub const MAX_AXES: usize = 3;

    pub(super) fn new(axes: Vec<Mat<f32>>, points: Points) -> Result<Self, NetError> {
        if axes.is_empty() {
            return Err(NetError::Zero("the number of axes"));
        }
        if axes.len() > Self::MAX_AXES {
            return Err(NetError::Range {
                name: "the number of axes of a Kronecker input",
                value: axes.len() as f64,
                allowed: "1 to 3",
            });
        }
        for axis in &axes {
            if axis.nrows() == 0 {
                return Err(NetError::Zero("the embedding dimension of an axis"));
            }
            if axis.ncols() == 0 {
                return Err(NetError::Zero("the number of points of an axis"));
            }
            finite(axis)?;
        }
        let nodes = axes.iter().try_fold(1_usize, |n, axis| n.checked_mul(axis.ncols()));
        let features = axes.iter().try_fold(1_usize, |n, axis| n.checked_mul(axis.nrows()));
        let (Some(nodes), Some(_)) = (nodes.filter(|n| u32::try_from(*n).is_ok()), features) else {
            return Err(NetError::Range {
                name: "the number of nodes of a grid",
                value: axes.iter().map(|axis| axis.ncols() as f64).product(),
                allowed: "below 2^32",
            });
        };
        match &points {
            Points::Grid => {}
            Points::Nodes(list) => check_indices("node beyond the grid", list, nodes)?,
            Points::Blended(blending) => {
                same(
                    "columns of the blending matrix (nodes of the grid)",
                    blending.ncols(),
                    nodes,
                )?;
                if blending.values().iter().any(|weight| !weight.is_finite()) {
                    return Err(NetError::NotFinite("a weight of the blending matrix"));
                }
            }
        }
        Ok(Kronecker { axes, points })
    }

    /// Number d = ∏ K_a of features.
    pub fn dimension(&self) -> usize {
        self.axes.iter().map(Mat::nrows).product()
    }

    /// Number ∏ N_a of nodes of the grid.
    pub fn nodes(&self) -> usize {
        self.axes.iter().map(Mat::ncols).product()
    }

    pub fn points(&self) -> usize {
        match &self.points {
            Points::Grid => self.nodes(),
            Points::Nodes(list) => list.len(),
            Points::Blended(blending) => blending.nrows(),
        }
    }

    /// Entry `feature` of ψ at a point.
    pub(super) fn at(&self, feature: usize, point: usize) -> f32 {
        match &self.points {
            Points::Grid => self.at_node(feature, point) as f32,
            Points::Nodes(list) => self.at_node(feature, list[point] as usize) as f32,
            Points::Blended(blending) => {
                let row = blending.row(point);
                let mut sum = 0.0;
                for (&node, &weight) in row.col_indices().iter().zip(row.values()) {
                    sum += f64::from(weight) * self.at_node(feature, node);
                }
                sum as f32
            }
        }
    }

    fn at_node(&self, mut feature: usize, mut node: usize) -> f64 {
        let mut product = 1.0;
        for axis in self.axes.iter().rev() {
            let (k, n) = (feature % axis.nrows(), node % axis.ncols());
            (feature, node) = (feature / axis.nrows(), node / axis.ncols());
            product *= f64::from(axis[(k, n)]);
        }
        product
    }

    pub(super) fn is_zero(&self) -> bool {
        let zeros: Vec<Vec<bool>> = self
            .axes
            .iter()
            .map(|axis| (0..axis.ncols()).map(|n| vanishes(axis.col_as_slice(n))).collect())
            .collect();
        let is_zero = |mut node: usize| {
            zeros.iter().rev().any(|axis| {
                let n = node % axis.len();
                node /= axis.len();
                axis[n]
            })
        };
        match &self.points {
            Points::Grid => zeros.iter().any(|axis| axis.iter().all(|zero| *zero)),
            Points::Nodes(list) => list.iter().all(|&node| is_zero(node as usize)),
            Points::Blended(blending) => blending
                .col_indices()
                .iter()
                .zip(blending.values())
                .all(|(&node, &weight)| weight == 0.0 || is_zero(node)),
        }
    }
}
