//! Cells and weights of the coordinates along one axis.

use super::{VirtualGrid, Weights, blend};
use crate::Error;

/// The lower node and the two weights of each coordinate of a list.
///
/// Points of an image or a clip share the coordinates i/n along each axis, so weights are computed once
/// per coordinate and not once per point.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisBlending {
    pub(super) nodes: usize,
    pub(super) lower: Vec<u32>,
    pub(super) weights: Vec<[f64; 2]>,
}

impl AxisBlending {
    /// Computes the weights of `coordinates`, in [0, 1], on the nodes of `grid`; `distance` is D.
    pub fn new(
        grid: &VirtualGrid,
        coordinates: &[f64],
        distance: &dyn Fn(f64) -> f64,
        variant: Weights,
    ) -> Result<Self, Error> {
        let mut lower = Vec::with_capacity(coordinates.len());
        let mut weights = Vec::with_capacity(coordinates.len());
        for (index, &value) in coordinates.iter().enumerate() {
            let (cell, beta) = grid.locate(value).ok_or_else(|| {
                Error(format!("coordinate {index} is {value}; the virtual grid covers 0 to 1"))
            })?;
            lower.push(cell as u32);
            weights.push(blend(distance, grid.spacing(), beta, variant)?);
        }
        Ok(Self { nodes: grid.nodes(), lower, weights })
    }

    pub(super) fn len(&self) -> usize {
        self.lower.len()
    }
}
