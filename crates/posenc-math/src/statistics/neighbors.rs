//! Nearest-neighbor regression: assumes only that points with similar predictors have similar targets.

use super::{check_pairs, is_constant, mean_of, mid_ranks, no_spread, squared_deviations};
use crate::Error;

/// Rank of each value, scaled to 0 to 1; ties share their mean rank. A single value has rank 0.5.
pub fn relative_ranks(values: &[f64]) -> Vec<f64> {
    let last = values.len().saturating_sub(1) as f64;
    let place = |rank: f64| if last == 0.0 { 0.5 } else { (rank - 1.0) / last };
    mid_ranks(values).into_iter().map(place).collect()
}

/// Mean target of the `k` points nearest to `query` (Euclidean distance). Points tied with the k-th are included, so the order of
/// points does not matter. `None` without points.
pub fn nearest_mean<'a>(
    query: &[f64],
    points: impl Iterator<Item = (&'a [f64], f64)>,
    k: usize,
) -> Option<f64> {
    let square = |point: &[f64]| query.iter().zip(point).map(|(a, b)| (a - b).powi(2)).sum();
    let all: Vec<(f64, f64)> = points.map(|(point, target)| (square(point), target)).collect();
    let mut distances: Vec<f64> = all.iter().map(|(distance, _)| *distance).collect();
    let place = k.clamp(1, distances.len().max(1)) - 1;
    if distances.is_empty() {
        return None;
    }
    let (_, &mut limit, _) = distances.select_nth_unstable_by(place, f64::total_cmp);
    let near = all.iter().filter(|(distance, _)| *distance <= limit);
    let (sum, count) = near.fold((0.0, 0.0), |(sum, count), (_, y)| (sum + y, count + 1.0));
    Some(sum / count)
}

/// R² of predictions: 1 minus their squared error divided by that of predicting the mean of `measured`. Negative if the mean is the
/// better prediction.
///
/// # Errors
///
/// Samples of different lengths or below two pairs, values that are not finite, and measured values that are all equal.
pub fn r_squared(predicted: &[f64], measured: &[f64]) -> Result<f64, Error> {
    check_pairs(predicted, measured, 2)?;
    if is_constant(measured) {
        return Err(no_spread(mean_of(measured)));
    }
    let errors: f64 = predicted.iter().zip(measured).map(|(p, m)| (p - m).powi(2)).sum();
    Ok(1.0 - errors / squared_deviations(measured))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tolerance::{Tolerance, assert_close};

    /// Catches a wrong number of neighbors: on a line of points, the mean of the 2m + 1 nearest is the value in their middle.
    #[test]
    fn the_nearest_points_of_a_line_lie_around_the_query() {
        let points: Vec<([f64; 1], f64)> =
            (0..50).map(|i| ([f64::from(i)], f64::from(3 * i))).collect();
        for m in 0..5 {
            let iter = points.iter().map(|(x, y)| (&x[..], *y));
            assert_eq!(nearest_mean(&[20.0], iter, 2 * m + 1), Some(60.0), "{m}");
        }
        let all = points.iter().map(|(x, y)| (&x[..], *y));
        assert_eq!(nearest_mean(&[20.0], all, 1000), Some(3.0 * 24.5));
        assert_eq!(nearest_mean(&[20.0], std::iter::empty(), 3), None);
        // A point at the same distance counts, too.
        let twice = [([0.5], 2.0), ([0.5], 4.0), ([9.0], 100.0)];
        let twice = twice.iter().map(|(x, y)| (&x[..], *y));
        assert_eq!(nearest_mean(&[0.5], twice, 1), Some(3.0));
    }

    /// Catches an R² that is a squared correlation, which a shifted or reversed prediction would not lower.
    #[test]
    fn r_squared_compares_with_the_mean() {
        let measured = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(r_squared(&measured, &measured), Ok(1.0));
        assert_eq!(r_squared(&[2.5; 4], &measured), Ok(0.0));
        let reversed = r_squared(&[4.0, 3.0, 2.0, 1.0], &measured).unwrap();
        assert_close(reversed, -3.0, Tolerance::absolute(1e-15));
        assert_eq!(r_squared(&[1.0, 2.0], &[3.0, 3.0]), Err(no_spread(3.0)));
    }

    /// Catches ranks that depend on the order of equal values.
    #[test]
    fn equal_values_share_their_mean_rank() {
        assert_eq!(relative_ranks(&[7.0]), [0.5]);
        assert_eq!(relative_ranks(&[1e-9, 5.0, 2.0, 5.0, -3.0]), [0.25, 0.875, 0.5, 0.875, 0.0]);
    }
}
