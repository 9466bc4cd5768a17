//! Neural tangent kernel of ReLU networks of infinite width (Jacot et al. 2018; in the form of Bietti and Mairal 2019, Sec. 2).

use std::f64::consts::PI;

use faer::{Mat, MatRef};

/// The kernel between N inputs after `depth` hidden layers, from their Gram matrix (N × N). Weights are trained in all layers and have
/// the variance 2 / fan-in; there are no biases. Without hidden layers, it is the Gram matrix.
pub fn tangent_kernel(gram: MatRef<'_, f64>, depth: usize) -> Mat<f64> {
    let n = gram.nrows();
    // Each layer preserves the norms of its inputs.
    let norms: Vec<f64> = (0..n).map(|i| gram[(i, i)].max(0.0).sqrt()).collect();
    Mat::from_fn(n, n, |i, j| {
        let scale = norms[i] * norms[j];
        let (mut covariance, mut kernel) = (gram[(i, j)], gram[(i, j)]);
        for _ in 0..depth {
            let cosine = if scale > 0.0 { (covariance / scale).clamp(-1.0, 1.0) } else { 0.0 };
            let angle = if i == j { 0.0 } else { cosine.acos() };
            let active = (PI - angle) / PI;
            covariance = scale * (angle.sin() / PI + cosine * active);
            kernel = kernel * active + covariance;
        }
        kernel
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{gaussian_vector, stream};

    /// Catches a wrong arc-cosine kernel or layer: gradients of a wide random network with one hidden layer yield the same kernel.
    #[test]
    fn a_wide_network_has_this_kernel() {
        const WIDTH: usize = 400_000;
        let inputs = [[1.0, 0.5], [-0.3, 2.0], [-1.0, 0.1]];
        let dot = |a: [f64; 2], b: [f64; 2]| a[0] * b[0] + a[1] * b[1];
        let gram = Mat::from_fn(3, 3, |i, j| dot(inputs[i], inputs[j]));
        let kernel = tangent_kernel(gram.as_ref(), 1);
        let mut rng = stream(0, "wide network");
        let (weights, out) =
            (gaussian_vector(&mut rng, 2 * WIDTH), gaussian_vector(&mut rng, WIDTH));
        for i in 0..3 {
            for j in 0..3 {
                let units = weights.chunks_exact(2).zip(&out).map(|(w, a)| {
                    let [x, y] = [inputs[i], inputs[j]].map(|input| dot([w[0], w[1]], input));
                    let both = f64::from(u8::from(x > 0.0 && y > 0.0));
                    x.max(0.0) * y.max(0.0) + a * a * both * gram[(i, j)]
                });
                let measured = 2.0 / WIDTH as f64 * units.sum::<f64>();
                let scale = (kernel[(i, i)] * kernel[(j, j)]).sqrt();
                assert!((measured - kernel[(i, j)]).abs() < 0.01 * scale, "{i} {j}: {measured}");
            }
        }
        assert_eq!(tangent_kernel(gram.as_ref(), 0), gram);
    }
}
