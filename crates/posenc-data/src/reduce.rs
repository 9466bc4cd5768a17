//! Reduction by averaging over boxes, the area filter of image tools.
//!
//! Sample j of m takes the mean of the source over [j·n/m, (j+1)·n/m), where sample i of n covers
//! [i, i+1); a source sample that lies in two boxes is shared by their overlaps. Overlaps are whole
//! numbers in units of 1/m, so that for a whole factor n/m every weight is exactly equal, and the
//! mean over all samples is kept for any factor.

use std::ops::Range;

/// Values that are averaged in double precision.
pub(crate) trait Sample: Copy + Into<f64> {
    fn from_mean(mean: f64) -> Self;
}

impl Sample for f32 {
    fn from_mean(mean: f64) -> Self {
        mean as f32
    }
}

impl Sample for f64 {
    fn from_mean(mean: f64) -> Self {
        mean
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Axis {
    pub n: usize,
    pub from: Range<usize>,
    pub m: usize,
    pub keep: Range<usize>,
}

impl Axis {
    /// All `m` averages of all `n` samples.
    pub(crate) fn whole(n: usize, m: usize) -> Self {
        Axis { n, from: 0..n, m, keep: 0..m }
    }

    /// The samples in `keep`, unchanged.
    pub(crate) fn cut(n: usize, keep: Range<usize>) -> Self {
        Axis { n, from: 0..n, m: n, keep }
    }

    /// Sample j as source samples with weights: the first index and the overlaps, which add up to
    /// the divisor.
    fn overlaps(&self, j: usize) -> (usize, Vec<f64>, f64) {
        let shared = greatest_common_divisor(self.from.len(), self.m);
        let (n, m) = (self.from.len() / shared, self.m / shared);
        // In units of 1/m of a source sample the box is [j n, (j + 1) n).
        let (start, end) = (j * n, (j + 1) * n);
        let (first, last) = (start / m, end.div_ceil(m));
        let weight = |i: usize| (end.min((i + 1) * m) - start.max(i * m)) as f64;
        (self.from.start + first, (first..last).map(weight).collect(), n as f64)
    }
}

fn greatest_common_divisor(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// Averages the middle axis of an array (outer, n, inner) in C order.
pub(crate) fn along<I: Copy + Into<f64>, O: Sample>(
    values: &[I],
    axis: &Axis,
    inner: usize,
) -> Vec<O> {
    let boxes: Vec<_> = axis.keep.clone().map(|j| axis.overlaps(j)).collect();
    let block = (axis.n * inner).max(1);
    let mut means = Vec::with_capacity(values.len() / block * boxes.len() * inner);
    let mut sums = vec![0.0; inner];
    for source in values.chunks_exact(block) {
        for (first, weights, divisor) in &boxes {
            sums.fill(0.0);
            for (i, weight) in weights.iter().enumerate() {
                let start = (first + i) * inner;
                for (sum, &value) in sums.iter_mut().zip(&source[start..start + inner]) {
                    *sum += weight * value.into();
                }
            }
            means.extend(sums.iter().map(|sum| O::from_mean(sum / divisor)));
        }
    }
    means
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn boxes_are_averaged_by_their_overlaps() {
        let halves: Vec<f64> = along(&[1.0, 2.0, 5.0, 9.0], &Axis::whole(4, 2), 1);
        assert_eq!(halves, [1.5, 7.0]);
        // Along the first of two axes, and only the second box.
        let second = Axis { keep: 1..2, ..Axis::whole(4, 2) };
        let kept: Vec<f64> = along(&[1u8, 10, 2, 20, 5, 50, 9, 90], &second, 2);
        assert_eq!(kept, [7.0, 70.0]);
        // The last two of four samples.
        let last = Axis { from: 2..4, ..Axis::whole(4, 1) };
        assert_eq!(along::<f64, f64>(&[1.0, 2.0, 5.0, 9.0], &last, 1), [7.0]);
        // A sample between two boxes is shared: (a + b/2) / 1.5 and (b/2 + c) / 1.5.
        let means: Vec<f64> = along(&[3.0, 6.0, 9.0], &Axis::whole(3, 2), 1);
        assert_eq!(means, [4.0, 8.0]);
        // Nothing changes if the length stays the same.
        let values: Vec<f32> = (0..12).map(|i| (i as f32).sqrt()).collect();
        assert_eq!(along::<f32, f32>(&values, &Axis::whole(3, 3), 4), values);
    }

    proptest! {
        // Catches boxes that leave samples out or count them twice.
        #[test]
        fn the_mean_is_kept(values in prop::collection::vec(0.0..1.0f64, 1..60), m in 1usize..60) {
            let m = m.min(values.len());
            let means: Vec<f64> = along(&values, &Axis::whole(values.len(), m), 1);
            let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
            prop_assert_eq!(means.len(), m);
            prop_assert!((mean(&means) - mean(&values)).abs() < 1e-12);
        }

        // Catches boxes that average samples outside of their range: the mean of a ramp must be inside its box.
        #[test]
        fn boxes_stay_inside_their_range(n in 1usize..200, m in 1usize..200) {
            let m = m.min(n);
            let ramp: Vec<f64> = (0..n).map(|i| i as f64 + 0.5).collect();
            let means: Vec<f64> = along(&ramp, &Axis::whole(n, m), 1);
            for (j, value) in means.iter().enumerate() {
                let (low, high) = (j as f64 * n as f64 / m as f64, (j + 1) as f64 * n as f64 / m as f64);
                prop_assert!(low - 1e-9 <= *value && *value <= high + 1e-9);
            }
        }
    }
}
