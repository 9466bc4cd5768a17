//! Sparse matrices that express points as weighted sums of grid nodes, and their transposes.

use std::ops::Range;

use nalgebra_sparse::CsrMatrix;

use crate::Points;
use posenc_math::vectorized::vectorized;

/// A sparse matrix in CSR format. Its products are limited by reading indices, so these have 32 bits.
///
/// The products of nalgebra-sparse yield the same bits but take 2.5 to 4.8 times as long. This was measured with three
/// channels on a quarter of 512² pixels and an eighth of 128³ voxels, forward and transposed.
#[derive(Debug)]
pub struct Sparse {
    pub offsets: Vec<usize>,
    pub indices: Vec<u32>,
    pub values: Vec<f32>,
}

impl Sparse {
    /// The points × nodes matrix; `None` for the whole grid.
    pub fn of(points: &Points) -> Option<Self> {
        match points {
            Points::Grid => None,
            Points::Nodes(nodes) => Some(Sparse {
                offsets: (0..=nodes.len()).collect(),
                indices: nodes.clone(),
                values: vec![1.0; nodes.len()],
            }),
            Points::Blended(blending) => Some(Sparse::of_matrix(blending)),
        }
    }

    /// Column indices fit into 32 bits, because an input has fewer than 2³² nodes.
    fn of_matrix(matrix: &CsrMatrix<f32>) -> Self {
        Sparse {
            offsets: matrix.row_offsets().to_vec(),
            indices: matrix.col_indices().iter().map(|&node| node as u32).collect(),
            values: matrix.values().to_vec(),
        }
    }

    /// The transpose, with one row per node; the entries of a row are in the order of the points.
    pub fn transpose(&self, nodes: usize) -> Self {
        let mut offsets = vec![0; nodes + 1];
        for &node in &self.indices {
            offsets[node as usize + 1] += 1;
        }
        for node in 0..nodes {
            offsets[node + 1] += offsets[node];
        }
        let mut next = offsets.clone();
        let mut indices = vec![0; self.indices.len()];
        let mut values = vec![0.0; self.values.len()];
        for point in 0..self.rows() {
            for e in self.offsets[point]..self.offsets[point + 1] {
                let at = &mut next[self.indices[e] as usize];
                (indices[*at], values[*at]) = (point as u32, self.values[e]);
                *at += 1;
            }
        }
        Sparse { offsets, indices, values }
    }

    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// out ← (A X)[rows, :], where X and `out` have `channels` columns.
    pub fn multiply(&self, rows: Range<usize>, channels: usize, x: &[f32], out: &mut [f32]) {
        match channels {
            1 => self.multiply_channels::<1>(rows, x, out),
            3 => self.multiply_channels::<3>(rows, x, out),
            _ => self.multiply_any(rows, channels, x, out),
        }
    }

    fn multiply_channels<const C: usize>(&self, rows: Range<usize>, x: &[f32], out: &mut [f32]) {
        let (x, _) = x.as_chunks::<C>();
        let (out, _) = out.as_chunks_mut::<C>();
        vectorized(
            #[inline(always)]
            || {
                for (row, out) in rows.clone().zip(out.iter_mut()) {
                    let range = self.offsets[row]..self.offsets[row + 1];
                    let mut sums = [0.0; C];
                    for (&index, &value) in
                        self.indices[range.clone()].iter().zip(&self.values[range])
                    {
                        let x = &x[index as usize];
                        for c in 0..C {
                            sums[c] += value * x[c];
                        }
                    }
                    *out = sums;
                }
            },
        );
    }

    fn multiply_any(&self, rows: Range<usize>, channels: usize, x: &[f32], out: &mut [f32]) {
        for (row, out) in rows.zip(out.chunks_exact_mut(channels)) {
            out.fill(0.0);
            for e in self.offsets[row]..self.offsets[row + 1] {
                let x = &x[self.indices[e] as usize * channels..][..channels];
                for (sum, x) in out.iter_mut().zip(x) {
                    *sum += self.values[e] * x;
                }
            }
        }
    }
}
