//! Cache of the weights of sample arrangements that repeat, as on a grid.

use std::collections::HashMap;

use super::Samples;
use super::neighbors::Neighbor;

/// Maximum number of cached arrangements; a grid has fewer, including its borders.
const LIMIT: usize = 64;

/// Weights by the positions of the samples relative to the query. Equal arrangements have equal weights, so cached weights are
/// identical to computed ones.
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
