//! Nearest-neighbor search on a grid of cells of equal size.

use super::euclidean;

/// A sample and its squared distance from a position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbor {
    pub squared: f64,
    pub index: u32,
}

/// Samples sorted into cells.
#[derive(Clone, Debug)]
pub struct Neighbors<const D: usize> {
    low: [f64; D],
    edge: f64,
    counts: [usize; D],
    /// Cell i contains the samples `order[starts[i]..starts[i + 1]]`.
    starts: Vec<u32>,
    order: Vec<u32>,
}

/// Target number of samples per cell.
const PER_CELL: f64 = 2.0;

impl<const D: usize> Neighbors<D> {
    pub fn new(positions: &[[f64; D]]) -> Self {
        let mut low = [f64::INFINITY; D];
        let mut high = [f64::NEG_INFINITY; D];
        for position in positions {
            for axis in 0..D {
                low[axis] = low[axis].min(position[axis]);
                high[axis] = high[axis].max(position[axis]);
            }
        }
        let extent: [f64; D] = std::array::from_fn(|axis| high[axis] - low[axis]);
        let longest = extent.iter().copied().fold(0.0, f64::max);
        let n = positions.len() as f64;
        // Points on a line or plane have no volume, so extents have a lower bound relative to the longest one.
        let volume: f64 = extent.iter().map(|&e| e.max(longest / n.max(1.0))).product();
        let mut edge = (volume * PER_CELL / n.max(1.0)).powf(1.0 / D as f64);
        if edge <= 0.0 || !edge.is_finite() {
            edge = 1.0;
        }
        let cells = |edge: f64| extent.map(|e| (e / edge).floor() + 1.0);
        while cells(edge).iter().product::<f64>() > 4.0 * n + 64.0 {
            edge *= 2.0;
        }
        let counts = cells(edge).map(|c| c as usize);
        let mut neighbors = Neighbors { low, edge, counts, starts: Vec::new(), order: Vec::new() };
        let cell_of: Vec<usize> = positions.iter().map(|p| neighbors.cell_of_sample(p)).collect();
        let mut starts = vec![0u32; counts.iter().product::<usize>() + 1];
        cell_of.iter().for_each(|&cell| starts[cell + 1] += 1);
        for cell in 1..starts.len() {
            starts[cell] += starts[cell - 1];
        }
        let mut next = starts.clone();
        neighbors.order = vec![0; positions.len()];
        for (index, &cell) in cell_of.iter().enumerate() {
            neighbors.order[next[cell] as usize] = index as u32;
            next[cell] += 1;
        }
        neighbors.starts = starts;
        neighbors
    }

    fn cell_of_sample(&self, position: &[f64; D]) -> usize {
        (0..D).fold(0, |cell, axis| {
            let along = ((position[axis] - self.low[axis]) / self.edge) as usize;
            cell * self.counts[axis] + along.min(self.counts[axis] - 1)
        })
    }

    /// The `count` closest samples, by distance and then by index.
    pub fn closest(
        &self,
        positions: &[[f64; D]],
        query: &[f64; D],
        count: usize,
        found: &mut Vec<Neighbor>,
    ) {
        found.clear();
        let count = count.min(positions.len());
        if count == 0 {
            return;
        }
        // The cell of the query, or the border cell closest to it.
        let center: [usize; D] = std::array::from_fn(|axis| {
            let along = (query[axis] - self.low[axis]) / self.edge;
            (along.max(0.0) as usize).min(self.counts[axis] - 1)
        });
        let mut ring = 0;
        loop {
            let from: [usize; D] = std::array::from_fn(|axis| center[axis].saturating_sub(ring));
            let to: [usize; D] =
                std::array::from_fn(|axis| (center[axis] + ring).min(self.counts[axis] - 1));
            self.visit(&from, &to, |cell, at| {
                let distance = (0..D).map(|axis| at[axis].abs_diff(center[axis])).max();
                if distance != Some(ring) {
                    return;
                }
                let span = self.starts[cell] as usize..self.starts[cell + 1] as usize;
                for &index in &self.order[span] {
                    let squared = euclidean(&positions[index as usize], query);
                    insert(found, count, Neighbor { squared, index });
                }
            });
            let whole = (0..D).all(|axis| from[axis] == 0 && to[axis] + 1 == self.counts[axis]);
            // Samples that have not been visited are beyond a side of the visited box.
            let reach = (0..D)
                .flat_map(|axis| {
                    let below = query[axis] - (self.low[axis] + from[axis] as f64 * self.edge);
                    let above = self.low[axis] + (to[axis] + 1) as f64 * self.edge - query[axis];
                    [
                        if from[axis] == 0 { f64::INFINITY } else { below },
                        if to[axis] + 1 == self.counts[axis] { f64::INFINITY } else { above },
                    ]
                })
                .fold(f64::INFINITY, f64::min);
            let full = found.len() == count
                && found.last().is_some_and(|last| reach > 0.0 && last.squared < reach * reach);
            if whole || full {
                return;
            }
            ring += 1;
        }
    }

    /// Calls `each` with the flat index and the indices per axis of every cell of a box.
    fn visit(&self, from: &[usize; D], to: &[usize; D], mut each: impl FnMut(usize, &[usize; D])) {
        let mut at = *from;
        loop {
            let cell = (0..D).fold(0, |cell, axis| cell * self.counts[axis] + at[axis]);
            each(cell, &at);
            let mut axis = D;
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                if at[axis] < to[axis] {
                    at[axis] += 1;
                    break;
                }
                at[axis] = from[axis];
            }
        }
    }
}

/// Inserts `new` into the sorted list of the `count` closest neighbors.
fn insert(found: &mut Vec<Neighbor>, count: usize, new: Neighbor) {
    let precedes = |a: &Neighbor, b: &Neighbor| (a.squared, a.index) < (b.squared, b.index);
    if found.len() == count {
        match found.last() {
            Some(last) if precedes(&new, last) => found.pop(),
            _ => return,
        };
    }
    let place = found.partition_point(|known| precedes(known, &new));
    found.insert(place, new);
}
