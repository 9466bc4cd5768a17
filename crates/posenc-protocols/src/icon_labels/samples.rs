//! Units of coordinates, splits and batches of real screens.

use posenc_attention::boxes::Bounds;
use posenc_data::interfaces::{BORDER, Corners};
use posenc_math::random::below;
use rand_chacha::ChaCha8Rng;

use crate::boxes::BoxScale;

/// Converts a box to the scale of the encoding.
pub fn bounds(corners: Corners, scale: BoxScale) -> Bounds {
    match scale {
        BoxScale::Hundredths => corners,
        BoxScale::Shares => corners.map(|v| v / BORDER),
    }
}

/// The position of a box in whole hundredths, the resolution of embedding tables.
pub fn cell(bounds: Bounds, scale: BoxScale) -> [u8; 4] {
    let factor = match scale {
        BoxScale::Hundredths => 1.0,
        BoxScale::Shares => BORDER,
    };
    bounds.map(|v| (v * factor) as u8)
}

/// Splits screens into a rest and a part with a share of them. With a share above 0 and at least two screens, neither is empty.
pub fn split(screens: &[usize], share: f64, rng: &mut ChaCha8Rng) -> [Vec<usize>; 2] {
    let count = screens.len();
    if share == 0.0 {
        return [screens.to_vec(), Vec::new()];
    }
    let measured = (share * count as f64).round() as usize;
    let measured = measured.clamp(1.min(count), count.saturating_sub(1).max(1));
    let mut left = screens.to_vec();
    let mut order: Vec<usize> =
        (0..count).map(|_| left.swap_remove(below(rng, left.len()))).collect();
    let mut trained = order.split_off(measured.min(count));
    order.sort_unstable();
    trained.sort_unstable();
    [trained, order]
}

#[cfg(test)]
mod tests {
    use super::*;
    use posenc_math::random::stream;
    use std::collections::BTreeSet;

    /// Catches a screen in both parts or in neither, a wrong size of the held-out part, and a split that does not depend on the seed.
    #[test]
    fn a_split_is_a_partition_that_depends_on_the_seed() {
        for (count, share, measured) in
            [(100, 0.2, 20), (2, 0.2, 1), (2, 0.9, 1), (7, 0.5, 4), (3, 0.99, 2)]
        {
            let screens: Vec<usize> = (0..count).collect();
            let [trained, held_out] = split(&screens, share, &mut stream(1, "split"));
            assert_eq!((trained.len(), held_out.len()), (count - measured, measured));
            let both: BTreeSet<usize> = trained.iter().chain(&held_out).copied().collect();
            assert_eq!(both, (0..count).collect());
        }
        let all: Vec<usize> = (0..100).collect();
        let of = |share, seed| split(&all, share, &mut stream(seed, "split"));
        assert_eq!(of(0.2, 1), of(0.2, 1));
        assert_ne!(of(0.2, 1), of(0.2, 2));
        assert_eq!(of(0.0, 1), [all.clone(), vec![]]);
    }

    /// Catches cells of another width, and a scale that moves a box to another cell.
    #[test]
    fn cells_are_whole_hundredths_at_both_scales() {
        let corners = [0.0, 12.9, 50.0, 99.0];
        for scale in [BoxScale::Hundredths, BoxScale::Shares] {
            assert_eq!(cell(bounds(corners, scale), scale), [0, 12, 50, 99]);
        }
    }
}
