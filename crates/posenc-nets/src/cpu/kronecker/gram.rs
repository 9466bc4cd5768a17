//! One layer on a full grid through the Gram matrices of the axes.
//!
//! With G_a = Ψ_a Ψ_aᵀ and C = Ψ₀ S Ψ₁ᵀ, the gradient of Σ (Ψ₀ᵀ W Ψ₁ − S)² is 2 (G₀ W G₁ − C): half the
//! products of a forward and backward pass. C is computed once, in double precision. A block of rows of the gradient,
//! (G₀[rows, :] W) G₁ − C[rows, :], needs no other block. The Adam step of a block therefore follows its gradient
//! while both are in cache; new weights go to a second buffer. The sum of squares is ⟨W, G₀WG₁ − 2C⟩ + ‖S‖², a
//! difference of large numbers once the fit is close.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};

use super::chain::{Chain, at_least};
use super::{RunState, Side, Worker};
use crate::cpu::kernels;
use crate::cpu::parallel::for_each;
use crate::optimizer::StepConstants;

/// Precomputed data that the steps of all runs share.
#[derive(Debug)]
pub struct Gram {
    chain: Chain,
    /// C of each run, output by output.
    products: Vec<Vec<f32>>,
    /// ‖S‖² of each run.
    squares: Vec<f64>,
}

/// One block of rows of one output of one run.
struct Item<'a> {
    theta: &'a [f32],
    product: &'a [f32],
    rows: std::ops::Range<usize>,
    next: &'a mut [f32],
    first_moment: &'a mut [f32],
    second_moment: &'a mut [f32],
    /// ⟨W, G₀WG₁ − 2C⟩ in the block.
    sum: f64,
}

impl Gram {
    /// The product with the Gram matrices of the axes; its cost decides between the Gram and the residual form.
    pub fn chain(axes: &[Mat<f32>]) -> Chain {
        let grams: Vec<Mat<f32>> = axes
            .iter()
            .map(|axis| {
                let wide = Mat::from_fn(axis.nrows(), axis.ncols(), |k, n| f64::from(axis[(k, n)]));
                let gram = &wide * wide.transpose();
                // Mirror one triangle, because a product need not be rounded symmetrically.
                Mat::from_fn(axis.nrows(), axis.nrows(), |i, j| gram[(i.max(j), i.min(j))] as f32)
            })
            .collect();
        Chain::new(&grams)
    }

    pub fn new(chain: Chain, side: &Side, outputs: usize) -> Self {
        let axes = &side.input.axes;
        let product = |targets: &Vec<f32>| {
            let of_output = |o: usize| {
                let tensor = targets.iter().skip(o).step_by(outputs).map(|&t| f64::from(t));
                project(axes, tensor.collect()).into_iter().map(|c| c as f32)
            };
            (0..outputs).flat_map(of_output).collect()
        };
        let square = |targets: &Vec<f32>| targets.iter().map(|&t| f64::from(t).powi(2)).sum();
        Gram {
            chain,
            products: side.targets.iter().map(product).collect(),
            squares: side.targets.iter().map(square).collect(),
        }
    }

    /// Trains all runs for one epoch; returns the sums of squared errors before it.
    pub fn step(
        &self,
        runs: &mut [RunState],
        workers: &mut [&mut Worker],
        constants: &StepConstants,
        scale: f32,
    ) -> Vec<f64> {
        let blocks = self.chain.row_blocks();
        let [size, _] = self.chain.slice();
        let features = self.chain.leading.rows * size;
        let mut items = Vec::new();
        for (run, product) in runs.iter_mut().zip(&self.products) {
            let outputs = run
                .theta
                .chunks_exact(features)
                .zip(product.chunks_exact(features))
                .zip(run.next.chunks_exact_mut(features))
                .zip(run.first_moment.chunks_exact_mut(features))
                .zip(run.second_moment.chunks_exact_mut(features));
            for ((((theta, product), mut next), mut m), mut v) in outputs {
                for rows in &blocks {
                    let range = rows.start * size..rows.end * size;
                    items.push(Item {
                        theta,
                        product: &product[range.clone()],
                        rows: rows.clone(),
                        next: take(&mut next, range.len()),
                        first_moment: take(&mut m, range.len()),
                        second_moment: take(&mut v, range.len()),
                        sum: 0.0,
                    });
                }
            }
        }
        for_each(workers, &mut items, |worker, item| self.item(worker, item, constants, scale));
        let per_run = items.len() / self.squares.len().max(1);
        let squares = items
            .chunks(per_run.max(1))
            .zip(&self.squares)
            .map(|(items, square)| {
                let sum: f64 = items.iter().map(|item| item.sum).sum::<f64>() + square;
                // Rounding may make the sum slightly negative. NaN stays NaN.
                if sum < 0.0 { 0.0 } else { sum }
            })
            .collect();
        for run in runs {
            std::mem::swap(&mut run.theta, &mut run.next);
        }
        squares
    }

    fn item(
        &self,
        worker: &mut Worker,
        item: &mut Item<'_>,
        constants: &StepConstants,
        scale: f32,
    ) {
        let Worker { scratch, first, .. } = worker;
        let gradient = at_least(first, item.next.len());
        self.chain.block(item.rows.clone(), item.theta, scratch, gradient);
        let start = item.rows.start * self.chain.slice()[0];
        let theta = &item.theta[start..start + item.next.len()];
        item.sum = 0.0;
        let pieces = gradient
            .chunks_mut(PIECE)
            .zip(theta.chunks(PIECE))
            .zip(item.product.chunks(PIECE))
            .zip(item.next.chunks_mut(PIECE))
            .zip(item.first_moment.chunks_mut(PIECE))
            .zip(item.second_moment.chunks_mut(PIECE));
        for (((((gradient, theta), product), next), m), v) in pieces {
            item.sum += kernels::subtract_and_inner(theta, product, gradient);
            next.copy_from_slice(theta);
            kernels::adam(constants, scale, gradient, next, m, v);
        }
    }
}

/// Numbers per piece, so that all arrays of a piece fit into the L1 cache.
const PIECE: usize = 1024;

/// Splits the first `count` numbers off `slice`.
fn take<'a>(slice: &mut &'a mut [f32], count: usize) -> &'a mut [f32] {
    let (head, tail) = std::mem::take(slice).split_at_mut(count);
    *slice = tail;
    head
}

/// Ψ₀ S Ψ₁ᵀ for a tensor S on the nodes, axis by axis.
fn project(axes: &[Mat<f32>], mut tensor: Vec<f64>) -> Vec<f64> {
    for axis in axes {
        let (k, n) = axis.shape();
        let rest = tensor.len() / n;
        let wide = Mat::from_fn(k, n, |i, j| f64::from(axis[(i, j)]));
        // Each product moves the front axis to the back, so the order is restored after all axes.
        let mut product = vec![0.0; rest * k];
        matmul(
            MatMut::from_row_major_slice_mut(&mut product, rest, k),
            Accum::Replace,
            MatRef::from_row_major_slice(&tensor, n, rest).transpose(),
            wide.transpose(),
            1.0,
            Par::Seq,
        );
        tensor = product;
    }
    tensor
}
