//! Operation count of a training step.

use faer::Mat;
use posenc_nets::{Input, Kronecker, Task};

/// Multiplications and additions in the matrix products of one step of all runs.
///
/// Counts two operations per weight and point for each of output, weight gradient and input gradient. The first layer has no input
/// gradient, and only nonzero entries of the embedding count. A factored input multiplies its tables instead of the N points. Bias,
/// ReLU, sums over a grid's points and Adam are not counted. For features that are products over axes see
/// [`through_gram_matrices`].
pub fn operations(task: &Task) -> f64 {
    if let Input::Kronecker(kronecker) = &task.train.input {
        return through_gram_matrices(kronecker, task);
    }
    let nonzero = |m: &Mat<f32>| -> usize {
        (0..m.ncols()).map(|j| m.col_as_slice(j).iter().filter(|v| **v != 0.0).count()).sum()
    };
    let entries: usize = match &task.train.input {
        Input::Dense(matrix) => nonzero(matrix),
        Input::Factored(factored) => factored.tables.iter().map(nonzero).sum(),
        // Waves are expanded; products over axes were counted above.
        Input::Waves(_) | Input::Kronecker(_) => {
            task.train.input.dimension() * task.train.input.points()
        }
    };
    let mut per_run = 0;
    for (layer, (fan_in, fan_out)) in task.network.layers().into_iter().enumerate() {
        per_run += match layer {
            0 => 4 * entries * fan_out,
            _ => 6 * task.train.input.points() * fan_in * fan_out,
        };
    }
    (per_run * task.runs()) as f64
}

/// Operations of one layer on products of features on a whole grid: two per weight and nonzero entry in a row of each axis's Gram
/// matrix. Entries up to ε² of the largest count as zero.
fn through_gram_matrices(kronecker: &Kronecker, task: &Task) -> f64 {
    let weights = (kronecker.dimension() * task.network.output * task.runs()) as f64;
    let per_weight = |axis: &Mat<f32>| {
        let gram = axis * axis.transpose();
        let entries = || (0..gram.ncols()).flat_map(|j| gram.col_as_slice(j)).map(|v| v.abs());
        let least = entries().fold(0.0, f32::max) * f32::EPSILON * f32::EPSILON;
        entries().filter(|v| *v > least).count() as f64 / gram.nrows() as f64
    };
    2.0 * weights * kronecker.axes.iter().map(per_weight).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::super::Workload;
    use super::super::embedding::{Axis, Embedding};
    use super::super::workload::{COMPLEX_2D, LINEAR_1D, SIMPLE_2D};
    use super::*;

    /// Catches operations that are counted twice or not needed, by comparison with a manual count: 4 features, 2 hidden layers of
    /// 3, 2 outputs, 9 points.
    #[test]
    fn operations_match_a_manual_count() {
        let small =
            Workload { points: 9, dimension: 4, depth: 2, width: 3, outputs: 2, ..SIMPLE_2D };
        let later = (6 * 9 * 3 * (3 + 2)) as f64;
        let dense = small.task(Embedding::RffSquare { sigma: 1.0 }).unwrap();
        assert_eq!(operations(&dense), (4 * 9 * 4 * 3) as f64 + later);
        // Tables of 2 × 3 for each axis; the sines at coordinate 0 vanish.
        let grid = small.task(Embedding::RffGrid { sigma: 1.0 }).unwrap();
        assert_eq!(operations(&grid), (4 * 2 * (6 - 1) * 3) as f64 + later);
        let linear = Workload { points: 8, dimension: 6, columns: 5, ..LINEAR_1D };
        let linear = linear.task(linear.embedding).unwrap();
        assert_eq!(operations(&linear), (4 * (8 * 6 - 3) * 5) as f64);
        // Two axes of 4 features. Triangles overlap their neighbors, so a Gram matrix has 4 + 6 + 4 nonzero entries (the diagonal
        // and two off-diagonals on each side). Each of the 16 weights meets 3.5 entries per axis.
        let axis = Axis::Triangle { half_width: 0.3 };
        let complex = Workload { points: 16, dimension: 16, ..COMPLEX_2D };
        let complex = complex.task(Embedding::Kronecker { axes: 2, axis }).unwrap();
        assert_eq!(operations(&complex), 2.0 * (16 * 3) as f64 * (3.5 + 3.5));
    }
}
