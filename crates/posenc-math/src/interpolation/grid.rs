//! Interpolation on a lattice whose every `step`-th node along each axis is known, with one matrix per axis.

use super::check_values;
use crate::Error;

/// How values between the known nodes of an axis are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridMethod {
    /// The closest node; the lower of two equally close nodes, as in SciPy.
    Nearest,
    Linear,
    /// The not-a-knot cubic spline, as in SciPy: the second and the second to last node are no knots. Three nodes yield a parabola,
    /// two a line.
    Cubic,
}

/// Values at all positions of a lattice with the given sides (C order, channels fastest) from those at multiples of `step`.
///
/// Positions beyond the last known node of an axis have its value.
///
/// # Errors
///
/// A step of 0 or larger than a side, and a number of values that does not match the known nodes.
pub fn upsample(
    known: &[f64],
    sides: &[usize],
    step: usize,
    channels: usize,
    method: GridMethod,
) -> Result<Vec<f64>, Error> {
    if let Some(&side) = sides.iter().find(|&&side| step == 0 || side < step) {
        return Err(Error(format!(
            "step must be 1 to {side} on a side of {side} positions, got {step}"
        )));
    }
    let mut shape: Vec<usize> = sides.iter().map(|side| side.div_ceil(step)).collect();
    let samples = shape.iter().product();
    check_values(known.len(), samples, channels)?;
    let mut values = known.to_vec();
    for axis in 0..sides.len() {
        let weights = axis_weights(sides[axis], step, method);
        let inner = shape[axis + 1..].iter().product::<usize>() * channels;
        let outer: usize = shape[..axis].iter().product();
        let mut next = vec![0.0; outer * sides[axis] * inner];
        for block in 0..outer {
            let from = &values[block * shape[axis] * inner..][..shape[axis] * inner];
            let to = &mut next[block * sides[axis] * inner..][..sides[axis] * inner];
            for (row, terms) in to.chunks_exact_mut(inner).zip(&weights) {
                for &(node, weight) in terms {
                    for (value, known) in row.iter_mut().zip(&from[node * inner..][..inner]) {
                        *value += weight * known;
                    }
                }
            }
        }
        shape[axis] = sides[axis];
        values = next;
    }
    Ok(values)
}

/// For every position of an axis, the nodes that it depends on and their weights.
fn axis_weights(side: usize, step: usize, method: GridMethod) -> Vec<Vec<(usize, f64)>> {
    let nodes = side.div_ceil(step);
    let spline = (method == GridMethod::Cubic && nodes > 2).then(|| second_derivatives(nodes));
    let at = |position: usize| {
        let (node, rest) = (position / step, position % step);
        if rest == 0 || node + 1 >= nodes {
            return vec![(node.min(nodes - 1), 1.0)];
        }
        let u = rest as f64 / step as f64;
        match (&spline, method) {
            (_, GridMethod::Nearest) => vec![(if u <= 0.5 { node } else { node + 1 }, 1.0)],
            (None, _) => vec![(node, 1.0 - u), (node + 1, u)],
            (Some(second), _) => {
                let (left, right) = (((1.0 - u).powi(3) - (1.0 - u)) / 6.0, (u.powi(3) - u) / 6.0);
                (0..nodes)
                    .map(|j| {
                        let line = if j == node {
                            1.0 - u
                        } else if j == node + 1 {
                            u
                        } else {
                            0.0
                        };
                        let curved = left * second[node * nodes + j]
                            + right * second[(node + 1) * nodes + j];
                        (j, line + curved)
                    })
                    // Smaller weights are rounding, since weights fall by a factor of 0.27 per node.
                    .filter(|(_, weight)| weight.abs() > 1e-18)
                    .collect()
            }
        }
    };
    (0..side).map(at).collect()
}

/// Second derivatives of a spline on nodes at 0, 1, … as a matrix on the values (n × n, by row), n at least 3.
fn second_derivatives(n: usize) -> Vec<f64> {
    let mut second = vec![0.0; n * n];
    let set = |second: &mut Vec<f64>, row: usize, of: usize, scale: f64| {
        for (offset, weight) in [(0, 1.0), (1, -2.0), (2, 1.0)] {
            second[row * n + of - 1 + offset] += scale * weight;
        }
    };
    if n == 3 {
        (0..3).for_each(|row| set(&mut second, row, 1, 1.0));
        return second;
    }
    // Not-a-knot ends: the third derivative does not jump there, so the second derivative is the second difference.
    set(&mut second, 1, 1, 1.0);
    set(&mut second, n - 2, n - 2, 1.0);
    // Inner nodes: M[i − 1] + 4 M[i] + M[i + 1] = 6 second differences, by forward elimination and back substitution.
    let mut factors = vec![0.0; n];
    for i in 2..n.saturating_sub(2) {
        set(&mut second, i, i, 6.0);
        let divisor = 4.0 - factors[i - 1];
        factors[i] = 1.0 / divisor;
        for j in 0..n {
            second[i * n + j] = (second[i * n + j] - second[(i - 1) * n + j]) / divisor;
        }
    }
    for i in (2..n.saturating_sub(2)).rev() {
        for j in 0..n {
            second[i * n + j] -= factors[i] * second[(i + 1) * n + j];
        }
    }
    for j in 0..n {
        second[j] = 2.0 * second[n + j] - second[2 * n + j];
        second[(n - 1) * n + j] = 2.0 * second[(n - 2) * n + j] - second[(n - 3) * n + j];
    }
    second
}
