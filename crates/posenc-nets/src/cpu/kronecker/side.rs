//! Points and targets in the form that the products need.

use std::sync::Arc;

use faer::Mat;

use super::chain::Chain;
use super::sparse::Sparse;
use crate::cpu::kernels::interleave;
use crate::{Kronecker, Samples};

#[derive(Debug)]
pub struct Side {
    pub input: Arc<Kronecker>,
    /// Ψ_aᵀ of all axes: from features to nodes.
    pub forward: Chain,
    /// From nodes to points; `None` if the points are the nodes.
    pub points: Option<Sparse>,
    /// Targets of each run, point by point with adjacent outputs.
    pub targets: Vec<Vec<f32>>,
}

/// Transposed products, which only training needs.
#[derive(Debug)]
pub struct Backward {
    /// Ψ_a of all axes: from nodes to features.
    pub chain: Chain,
    /// From points to nodes; `None` if the points are the nodes.
    pub points: Option<Sparse>,
}

impl Side {
    pub fn new(input: &Arc<Kronecker>) -> Self {
        let transposed: Vec<Mat<f32>> =
            input.axes.iter().map(|axis| axis.transpose().to_owned()).collect();
        Side {
            input: input.clone(),
            forward: Chain::new(&transposed),
            points: Sparse::of(&input.points),
            targets: Vec::new(),
        }
    }

    /// Includes the targets of all runs, with `outputs` outputs each.
    pub fn with_targets(samples: &Samples, outputs: usize) -> Self {
        let columns = &samples.targets;
        let of_run = |run: usize| {
            let mut targets = vec![0.0; columns.nrows() * outputs];
            for o in 0..outputs {
                let column = columns.col_as_slice(run * outputs + o);
                interleave(column, o, outputs, &mut targets);
            }
            targets
        };
        let targets = (0..columns.ncols() / outputs).map(of_run).collect();
        Side { targets, ..Side::new(samples.input.axes()) }
    }

    pub fn backward(&self) -> Backward {
        Backward {
            chain: Chain::new(&self.input.axes),
            points: self.points.as_ref().map(|points| points.transpose(self.input.nodes())),
        }
    }

    pub fn count(&self) -> usize {
        self.input.points()
    }
}
