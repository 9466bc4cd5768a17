//! Virtual grids: the coordinates at which nodes are encoded, and the two nodes around a coordinate.

use crate::Error;

/// How coordinates map to the nodes of a virtual grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GridConvention {
    /// As in the authors' scripts. Coordinates are clamped to [0, 0.999] and blended as if node i were at
    /// i/(N−1), while it is encoded at i/N. This stretches the blended function: a point x gets the
    /// encoding of x·(N−1)/N. Training and test points are stretched equally, so fits hardly differ.
    #[default]
    Released,
    /// Node i is at i/(N−1) and is encoded there; the grid covers [0, 1] including both ends.
    Consistent,
}

/// N equally spaced nodes along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualGrid {
    nodes: usize,
    convention: GridConvention,
}

/// Largest coordinate in the authors' scripts.
const MAX_RELEASED: f64 = 0.999;

/// Coordinates closer than this to a node, in units in the last place of N−1, are at the node, since
/// (N−1)·(i/(N−1)) is not always i.
const ULPS: f64 = 4.0;

impl VirtualGrid {
    /// A grid of `nodes` nodes, 2 to 1,000,000.
    pub fn new(nodes: usize, convention: GridConvention) -> Result<Self, Error> {
        if !(2..=1_000_000).contains(&nodes) {
            return Err(Error(format!(
                "a virtual grid must have 2 to 1000000 nodes along each axis, got {nodes}"
            )));
        }
        Ok(Self { nodes, convention })
    }

    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The distance 1/(N−1) between nodes for which weights are computed.
    pub fn spacing(&self) -> f64 {
        1.0 / (self.nodes - 1) as f64
    }

    /// The coordinates at which the nodes are encoded, in increasing order.
    pub fn encoded_positions(&self) -> Vec<f64> {
        let denominator = match self.convention {
            GridConvention::Released => self.nodes,
            GridConvention::Consistent => self.nodes - 1,
        };
        (0..self.nodes).map(|i| i as f64 / denominator as f64).collect()
    }

    /// The node i below `x` and β, so that x lies at `(i + β)/(N−1)`; 0 ≤ i ≤ N−2 and 0 ≤ β ≤ 1.
    ///
    /// `None` outside [0, 1] and for NaN.
    pub fn locate(&self, x: f64) -> Option<(usize, f64)> {
        if !(0.0..=1.0).contains(&x) {
            return None;
        }
        let x = match self.convention {
            GridConvention::Released => x.min(MAX_RELEASED),
            GridConvention::Consistent => x,
        };
        let intervals = (self.nodes - 1) as f64;
        let mut position = intervals * x;
        let nearest = position.round();
        if (position - nearest).abs() <= ULPS * f64::EPSILON * intervals {
            position = nearest;
        }
        let cell = (position as usize).min(self.nodes - 2);
        Some((cell, position - cell as f64))
    }
}
