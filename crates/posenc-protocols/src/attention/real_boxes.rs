//! Shared code for training on boxes of real screens: units of coordinates, splits, batches.

use std::collections::BTreeMap;

use posenc_attention::boxes::Bounds;
use posenc_attention::optimizer::Adam;
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

/// A new AdamW optimizer.
pub fn adam(beta2: f64, weight_decay: f64) -> Adam {
    let mut adam = Adam::new(0.9, beta2, 1e-8);
    adam.weight_decay = weight_decay;
    adam
}

/// The numbers 0 to `count` − 1 in random order.
fn shuffled(count: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut left: Vec<usize> = (0..count).collect();
    (0..count).map(|_| left.swap_remove(below(rng, left.len()))).collect()
}

/// Splits `count` screens into training and held-out screens. `share` is the share of held-out screens; with at least two screens,
/// neither part is empty.
pub fn split(count: usize, share: f64, rng: &mut ChaCha8Rng) -> [Vec<usize>; 2] {
    let measured = (share * count as f64).round() as usize;
    let measured = measured.clamp(1.min(count), count.saturating_sub(1).max(1));
    let mut order = shuffled(count, rng);
    let mut trained = order.split_off(measured.min(count));
    order.sort_unstable();
    trained.sort_unstable();
    [trained, order]
}

/// The fold of each screen, from 0. Numbers of distinct names differ by at most one between folds. Screens with equal names share a fold.
pub fn folds(names: &[&str], count: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        let next = places.len();
        places.entry(name).or_insert(next);
    }
    let mut fold_of = vec![0; places.len()];
    for (i, place) in shuffled(places.len(), rng).into_iter().enumerate() {
        fold_of[place] = i % count;
    }
    names.iter().map(|name| places.get(name).map_or(0, |&place| fold_of[place])).collect()
}

/// Samples the next `size` elements of `all` without replacement. `left` contains the elements that are left in the current epoch; a new
/// epoch begins when it is empty.
pub fn batch(
    all: &[usize],
    left: &mut Vec<usize>,
    size: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<usize> {
    let one = |_| {
        if left.is_empty() {
            left.extend_from_slice(all);
        }
        left.swap_remove(below(rng, left.len()))
    };
    (0..size).map(one).collect()
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

    /// Catches a screen without a fold, two expressions of one screen in different folds, and folds of unequal sizes.
    #[test]
    fn every_screen_has_one_fold() {
        let names: Vec<String> = (0..23).map(|i| format!("screen {i}")).collect();
        let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
        let once = folds(&all, 5, &mut stream(1, "folds"));
        let mut sizes = [0; 5];
        once.iter().for_each(|&fold| sizes[fold] += 1);
        sizes.sort_unstable();
        assert_eq!(sizes, [4, 4, 5, 5, 5]);
        all.extend(names.iter().map(String::as_str));
        let twice = folds(&all, 5, &mut stream(1, "folds"));
        assert_eq!((&twice[..23], &twice[23..]), (&once[..], &once[..]));
        assert_ne!(once, folds(&all[..23], 5, &mut stream(2, "folds")));
    }

    /// Catches a screen that occurs twice in an epoch, or not at all.
    #[test]
    fn an_epoch_has_every_screen_once() {
        let (all, mut left, mut rng) = (vec![3, 5, 8, 9, 11], Vec::new(), stream(1, "batches"));
        let drawn: Vec<usize> = (0..5).flat_map(|_| batch(&all, &mut left, 3, &mut rng)).collect();
        for round in drawn.chunks(5) {
            let mut round = round.to_vec();
            round.sort_unstable();
            assert_eq!(round, all);
        }
        assert_ne!(drawn[..5], drawn[5..10]);
    }
}
