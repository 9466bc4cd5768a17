//! Samples at some nodes of a lattice: the known pixels of an image or voxels of a clip.

use super::{Interpolant, Parallel, Samples, predict};
use crate::Error;

/// Samples at nodes of a lattice, whose positions are the indices of the nodes.
#[derive(Clone, Debug)]
pub struct LatticeSamples<const D: usize> {
    sides: [usize; D],
    /// Indices of the known nodes, the last axis fastest.
    nodes: Vec<u32>,
    samples: Samples<D>,
}

impl<const D: usize> LatticeSamples<D> {
    /// Samples at `nodes`, indices with the last axis fastest. `values` has `channels` numbers per node, channels fastest.
    pub fn new(
        sides: [usize; D],
        nodes: Vec<u32>,
        values: Vec<f64>,
        channels: usize,
    ) -> Result<Self, Error> {
        let positions = nodes.iter().map(|&node| position(&sides, node)).collect();
        Ok(LatticeSamples { samples: Samples::new(positions, values, channels)?, sides, nodes })
    }

    pub fn sides(&self) -> [usize; D] {
        self.sides
    }

    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    pub fn samples(&self) -> &Samples<D> {
        &self.samples
    }

    /// Number of nodes, known or not.
    fn count(&self) -> usize {
        self.sides.iter().product()
    }

    /// Average spacing of the samples: the edge of a square (or cube) with the average area (or volume) per sample.
    pub fn spacing(&self) -> f64 {
        (self.count() as f64 / self.nodes.len() as f64).powf(1.0 / D as f64)
    }

    /// Values at all nodes: those of the samples at known nodes, those of the interpolant elsewhere.
    pub fn fill(&self, interpolant: &dyn Interpolant<D>, parallel: &dyn Parallel) -> Vec<f64> {
        let mut known = vec![false; self.count()];
        self.nodes.iter().for_each(|&node| known[node as usize] = true);
        let unknown: Vec<u32> = (0..self.count() as u32).filter(|&n| !known[n as usize]).collect();
        let queries: Vec<[f64; D]> = unknown.iter().map(|&n| position(&self.sides, n)).collect();
        let found = predict(interpolant, &queries, parallel);
        let channels = self.samples.channels();
        let mut values = vec![0.0; self.count() * channels];
        for (nodes, from) in [(&self.nodes, self.samples.values()), (&unknown, &found)] {
            for (&node, from) in nodes.iter().zip(from.chunks_exact(channels)) {
                values[node as usize * channels..][..channels].copy_from_slice(from);
            }
        }
        values
    }

    /// Selects the values at the known nodes from `values` at all nodes.
    pub fn at_nodes(&self, values: &[f64]) -> Vec<f64> {
        let channels = self.samples.channels();
        self.nodes
            .iter()
            .flat_map(|&n| &values[n as usize * channels..][..channels])
            .copied()
            .collect()
    }

    /// Splits the samples in two: those whose index in the list satisfies `held_out`, and the others.
    ///
    /// # Errors
    ///
    /// One of the two has no samples.
    pub fn split(&self, held_out: impl Fn(usize) -> bool) -> Result<[Self; 2], Error> {
        let part = |wanted: bool| {
            let chosen: Vec<usize> =
                (0..self.nodes.len()).filter(|&i| held_out(i) == wanted).collect();
            let nodes = chosen.iter().map(|&i| self.nodes[i]).collect();
            let values = chosen.iter().flat_map(|&i| self.samples.value(i)).copied().collect();
            Self::new(self.sides, nodes, values, self.samples.channels())
        };
        Ok([part(true)?, part(false)?])
    }
}

pub fn position<const D: usize>(sides: &[usize; D], node: u32) -> [f64; D] {
    let mut rest = node as usize;
    let mut position = [0.0; D];
    for axis in (0..D).rev() {
        position[axis] = (rest % sides[axis]) as f64;
        rest /= sides[axis];
    }
    position
}
