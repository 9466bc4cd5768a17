//! Bands: the regions in which an embedding does not vanish.

use std::ops::Range;

use faer::Mat;

/// Entries below this fraction of the largest entry count as zero: ε² of single precision, 2⁻⁴⁶.
///
/// In a sum of products, such an entry is far below the rounding error of the largest one. A weight that is only
/// multiplied by such entries has a gradient far below Adam's ε of 1e-8, so its steps are about 1e-6 of the
/// learning rate. A Gaussian falls below the cutoff beyond 8σ.
pub const CUTOFF: f32 = 1.421_085_5e-14;

/// The smallest magnitude that counts as nonzero.
pub fn threshold(matrix: &Mat<f32>) -> f32 {
    let largest = (0..matrix.ncols())
        .flat_map(|j| matrix.col_as_slice(j))
        .fold(0.0_f32, |largest, v| largest.max(v.abs()));
    // Never below the smallest normal number: subnormal numbers are slow and have few significant digits.
    (largest * CUTOFF).max(f32::MIN_POSITIVE)
}

/// A block of features and the points on which it does not vanish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Band {
    pub features: Range<usize>,
    /// From the first to the last point at which any of the features is nonzero.
    pub points: Range<usize>,
}

/// Bands of all blocks of `block` features of a d × N matrix, without blocks that vanish.
pub fn bands(matrix: &Mat<f32>, threshold: f32, block: usize) -> Vec<Band> {
    let d = matrix.nrows();
    let mut bands: Vec<Band> = (0..d)
        .step_by(block)
        .map(|first| Band { features: first..(first + block).min(d), points: 0..0 })
        .collect();
    for point in 0..matrix.ncols() {
        for (column, band) in matrix.col_as_slice(point).chunks(block).zip(&mut bands) {
            if column.iter().any(|v| v.abs() >= threshold) {
                if band.points.is_empty() {
                    band.points.start = point;
                }
                band.points.end = point + 1;
            }
        }
    }
    bands.retain(|band| !band.points.is_empty());
    bands
}

/// The features that are nonzero at any of the points, as ranges. Gaps of fewer than `gap` features are closed.
pub fn feature_ranges(
    matrix: &Mat<f32>,
    threshold: f32,
    points: impl Iterator<Item = usize>,
    gap: usize,
) -> Vec<Range<usize>> {
    let mut counts = vec![false; matrix.nrows()];
    for point in points {
        for (count, v) in counts.iter_mut().zip(matrix.col_as_slice(point)) {
            *count |= v.abs() >= threshold;
        }
    }
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for j in (0..counts.len()).filter(|&j| counts[j]) {
        match ranges.last_mut() {
            Some(last) if j < last.end + gap => last.end = j + 1,
            _ => ranges.push(j..j + 1),
        }
    }
    ranges
}

/// An order of the points in which tiles of `tile` consecutive points need few features.
///
/// A point is described by the starts of its feature ranges (one range per axis of a concatenated embedding). As
/// in a k-d tree, the points are recursively split at the median of the start with the largest spread.
pub fn compact_order(matrix: &Mat<f32>, threshold: f32, tile: usize) -> Vec<u32> {
    const MAX: usize = 3;
    let starts: Vec<[u32; MAX]> = (0..matrix.ncols())
        .map(|point| {
            let ranges = feature_ranges(matrix, threshold, std::iter::once(point), 2);
            let start = |k: usize| ranges.get(k).map_or(0, |r| r.start as u32);
            let last = ranges.len().saturating_sub(1);
            [start(0), start(last / 2), start(last)]
        })
        .collect();
    let mut order: Vec<u32> = (0..starts.len() as u32).collect();
    let mut pieces: Vec<Range<usize>> = std::iter::once(0..order.len()).collect();
    while let Some(piece) = pieces.pop() {
        if piece.len() <= tile {
            continue;
        }
        let spread = |axis: usize| {
            let values = order[piece.clone()].iter().map(|&p| starts[p as usize][axis]);
            let (low, high) = values.fold((u32::MAX, 0), |(l, h), v| (l.min(v), h.max(v)));
            high - low
        };
        let axis = (0..MAX).max_by_key(|&axis| spread(axis)).unwrap_or(0);
        // The point's number breaks ties, so that the order is the same on every machine.
        order[piece.clone()].sort_unstable_by_key(|&p| (starts[p as usize][axis], p));
        let half = piece.len().div_ceil(tile) / 2 * tile;
        pieces.push(piece.start..piece.start + half);
        pieces.push(piece.start + half..piece.end);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hat(d: usize, n: usize, width: f32) -> Mat<f32> {
        Mat::from_fn(d, n, |j, i| {
            let distance = (j as f32 / d as f32 - i as f32 / n as f32).abs();
            (1.0 - distance / width).max(0.0)
        })
    }

    #[test]
    fn a_band_covers_every_entry_that_counts() {
        // Catches ranges that are one entry too short, and blocks dropped by mistake.
        let matrix = hat(100, 37, 0.06);
        let cut = threshold(&matrix);
        let bands = bands(&matrix, cut, 16);
        let area: usize = bands.iter().map(|b| b.features.len() * b.points.len()).sum();
        assert!(area < 100 * 37 / 2, "{area}");
        for j in 0..100 {
            for i in 0..37 {
                let covered =
                    bands.iter().any(|b| b.features.contains(&j) && b.points.contains(&i));
                assert!(covered || matrix[(j, i)].abs() < cut, "({j}, {i})");
            }
        }
    }

    #[test]
    fn ranges_close_small_gaps_only() {
        let matrix = Mat::from_fn(12, 1, |j, _| if [1, 2, 4, 9].contains(&j) { 1.0 } else { 0.0 });
        let ranges = |gap| feature_ranges(&matrix, 0.5, std::iter::once(0), gap);
        assert_eq!(ranges(1), [1..3, 4..5, 9..10]);
        assert_eq!(ranges(3), [1..5, 9..10]);
        assert_eq!(ranges(20), std::slice::from_ref(&(1..10)));
    }

    #[test]
    fn the_compact_order_is_a_permutation_that_narrows_tiles() {
        // The points are in a scattered order: without sorting, a tile needs up to 24 features.
        let scattered = |i: usize| (i * 29) % 64;
        let matrix =
            Mat::from_fn(64, 64, |j, i| if j.abs_diff(scattered(i)) <= 1 { 1.0 } else { 0.0 });
        let order = compact_order(&matrix, 0.5, 8);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..64).collect::<Vec<u32>>());
        for tile in order.chunks(8) {
            let points = tile.iter().map(|&p| p as usize);
            let needed: usize =
                feature_ranges(&matrix, 0.5, points, 1).iter().map(ExactSizeIterator::len).sum();
            assert!(needed <= 10, "{needed}");
        }
    }
}
