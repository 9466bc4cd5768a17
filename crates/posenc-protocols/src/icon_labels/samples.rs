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

/// Splits `count` screens into training and held-out screens. `share` is the share of held-out screens; with at least two screens,
/// neither part is empty.
pub fn split(count: usize, share: f64, rng: &mut ChaCha8Rng) -> [Vec<usize>; 2] {
    let measured = (share * count as f64).round() as usize;
    let measured = measured.clamp(1.min(count), count.saturating_sub(1).max(1));
    let mut left: Vec<usize> = (0..count).collect();
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
            let [trained, held_out] = split(count, share, &mut stream(1, "split"));
            assert_eq!((trained.len(), held_out.len()), (count - measured, measured));
            let both: BTreeSet<usize> = trained.iter().chain(&held_out).copied().collect();
            assert_eq!(both, (0..count).collect());
        }
        let of = |seed| split(100, 0.2, &mut stream(seed, "split"));
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
