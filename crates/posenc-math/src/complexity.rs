//! Counted operations and memory of a linear layer on `N^D` points (trading, Appendix C).
//!
//! With N points and K features per axis, D axes and one output channel:
//!
//! | scheme | stored values | multiply-adds |
//! |---|---|---|
//! | simple (concatenation) | `DK·N^D` | `DK·N^D` |
//! | complex, Kronecker product written out | `K^D·N^D` | `K^D·N^D` |
//! | complex, separable points | `K^D + NK` | `Σ_{i=1..D} N^i K^{D+1−i}` |
//! | complex, free points (blending) | separable points `+ 2^D·N^D` | separable points `+ 2^D·N^D` |
//!
//! The sum equals `NK (N^D − K^D)/(N − K)` for N ≠ K and `D·N^{D+1}` for N = K. For two axes, it is the main text's `NK(N + K)`.
//! As in the paper, stored values are the encoding, the weights if they outnumber the encoding, and the blending weights. All axes
//! share one encoding; with one encoding per axis, it would be stored D times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a linear layer on an encoding is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// A linear layer on the concatenated encodings of the axes.
    Simple,
    /// A linear layer on the explicit Kronecker product.
    Naive,
    /// Mode products, one axis after another.
    Separable,
    /// Mode products on a grid, then blending of its nodes to N^D arbitrary points.
    NonSeparable,
}

/// Sizes of the problem, all at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sizes {
    /// Points per axis, N.
    pub n_points: u64,
    /// Features per axis, K.
    pub n_features: u64,
    /// Axes, D.
    pub n_axes: u32,
}

/// Cost of a forward pass with one output channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cost {
    pub multiply_adds: u128,
    /// Numbers in memory.
    pub stored_values: u128,
}

impl Cost {
    /// Memory in bytes when each number takes `bytes_per_value` (4 for f32).
    pub fn bytes(&self, bytes_per_value: u32) -> u128 {
        self.stored_values.saturating_mul(u128::from(bytes_per_value))
    }
}

/// Counts of the table above; those above 2^128 are the largest number.
pub fn cost(scheme: Scheme, sizes: Sizes) -> Cost {
    let Sizes { n_axes: d, .. } = sizes;
    let (n, k) = (u128::from(sizes.n_points), u128::from(sizes.n_features));
    let (points, features) = (n.saturating_pow(d), k.saturating_pow(d));
    let entries = match scheme {
        Scheme::Simple => k.saturating_mul(u128::from(d)).saturating_mul(points),
        Scheme::Naive => features.saturating_mul(points),
        Scheme::Separable => {
            // After i mode products i axes have length N, the others still K.
            let product = |i: u32| n.saturating_pow(i).saturating_mul(k.saturating_pow(d + 1 - i));
            return Cost {
                multiply_adds: (1..=d).map(product).fold(0, u128::saturating_add),
                stored_values: features.saturating_add(n.saturating_mul(k)),
            };
        }
        Scheme::NonSeparable => {
            let grid = cost(Scheme::Separable, sizes);
            let blending = 2u128.saturating_pow(d).saturating_mul(points);
            return Cost {
                multiply_adds: grid.multiply_adds.saturating_add(blending),
                stored_values: grid.stored_values.saturating_add(blending),
            };
        }
    };
    Cost { multiply_adds: entries, stored_values: entries }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes(n_points: u64, n_features: u64, n_axes: u32) -> Sizes {
        Sizes { n_points, n_features, n_axes }
    }

    const SEPARABLE: Scheme = Scheme::Separable;

    proptest! {
        // The closed form of the geometric sum, as printed in Appendix C; catches a shifted exponent.
        #[test]
        fn separable_sum_equals_the_printed_quotient(n in 1..60u64, k in 1..60u64, d in 1..5u32) {
            let count = cost(SEPARABLE, sizes(n, k, d)).multiply_adds as i128;
            let (n, k) = (i128::from(n), i128::from(k));
            let expected = if n == k { i128::from(d) * n.pow(d + 1) } else { n * k * (n.pow(d) - k.pow(d)) / (n - k) };
            prop_assert_eq!(count, expected);
        }

        // Sec. 5.2, two axes: NK(N + K) operations and 2NK + K² values, here with one encoding instead of two.
        #[test]
        fn two_axes_as_in_the_main_text(n in 1..300u64, k in 1..300u64) {
            let count = cost(SEPARABLE, sizes(n, k, 2));
            prop_assert_eq!(count.multiply_adds, u128::from(n * k * (n + k)));
            prop_assert_eq!(count.stored_values, u128::from(n * k + k * k));
        }
    }

    #[test]
    fn three_axes_computed_manually() {
        // N = 2, K = 3, D = 3: 2·27 + 4·9 + 8·3 = 114; 27 + 6 = 33 values; blending adds 8·8.
        assert_eq!(cost(SEPARABLE, sizes(2, 3, 3)), Cost { multiply_adds: 114, stored_values: 33 });
        let free = cost(Scheme::NonSeparable, sizes(2, 3, 3));
        assert_eq!(free, Cost { multiply_adds: 178, stored_values: 97 });
        assert_eq!(cost(Scheme::Simple, sizes(2, 3, 3)).multiply_adds, 72);
        assert_eq!(cost(Scheme::Naive, sizes(2, 3, 3)).stored_values, 216);
    }
}
