//! Weights of arrangements of samples that occur again and again, as on a grid.

use std::collections::HashMap;

use super::Samples;
use super::neighbors::Neighbor;

/// Arrangements that are kept: more than a grid has, with its borders.
const LIMIT: usize = 64;

/// Weights by the positions of the samples relative to the query. Equal arrangements have equal weights, so what is found here
/// has the bits of what would be computed.
#[derive(Default)]
pub struct Patterns {
    known: HashMap<Vec<u64>, Vec<f64>>,
    key: Vec<u64>,
}

impl Patterns {
    /// The weights of the samples `found` around `query`, computed by `compute` if the arrangement is new.
    pub fn weights<const D: usize>(
        &mut self,
        samples: &Samples<D>,
        query: &[f64; D],
        found: &[Neighbor],
        compute: impl FnOnce(&mut Vec<f64>),
        weights: &mut Vec<f64>,
    ) {
        self.key.clear();
        for neighbor in found {
            let position = &samples.positions()[neighbor.index as usize];
            self.key.extend((0..D).map(|axis| (position[axis] - query[axis]).to_bits()));
        }
        if let Some(known) = self.known.get(&self.key) {
            weights.clone_from(known);
            return;
        }
        compute(weights);
        if self.known.len() < LIMIT {
            self.known.insert(self.key.clone(), weights.clone());
        }
    }
}
