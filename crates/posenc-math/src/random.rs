//! Random streams: one ChaCha8 generator per (seed, label).
//!
//! The 32-byte key of a generator is
//! `blake3_derive_key("posenc 2026 random stream v1", seed as 8 little-endian bytes ‖ label)`. Any two
//! different pairs therefore have unrelated streams, even if the labels are similar. The words of a
//! stream never change between versions of this crate: golden tests pin them. Normal numbers come from
//! the ziggurat algorithm of `rand_distr`.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// Domain of the key derivation. A new text would change every random number of the project.
const CONTEXT: &str = "posenc 2026 random stream v1";

/// The generator of `(base_seed, label)`, at the start of its stream.
pub fn stream(base_seed: u64, label: &str) -> ChaCha8Rng {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(&base_seed.to_le_bytes());
    hasher.update(label.as_bytes());
    ChaCha8Rng::from_seed(*hasher.finalize().as_bytes())
}

/// `n` independent samples of N(0, 1).
pub fn gaussian_vector(rng: &mut ChaCha8Rng, n: usize) -> Vec<f64> {
    (0..n).map(|_| rng.sample(StandardNormal)).collect()
}

/// `n` independent samples of the uniform distribution on `[low, high)`.
///
/// Each sample is `low + (high - low)·k/2^53` with `k` the upper 53 bits of one 64-bit word.
pub fn uniform_vector(rng: &mut ChaCha8Rng, n: usize, low: f64, high: f64) -> Vec<f64> {
    const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
    (0..n).map(|_| low + (high - low) * ((rng.next_u64() >> 11) as f64 * STEP)).collect()
}

/// A uniform sample of 0, …, `n` − 1; 0 if `n` is 0.
pub fn below(rng: &mut ChaCha8Rng, n: usize) -> usize {
    ((u64::from(rng.next_u32()) * n as u64) >> 32) as usize
}

/// `count` different indices of `0..n` in increasing order, every subset equally likely.
///
/// Runs the first `count` steps of a Fisher-Yates shuffle. A `count` above `n` returns all `n` indices.
pub fn sample_without_replacement(rng: &mut ChaCha8Rng, n: usize, count: usize) -> Vec<usize> {
    let count = count.min(n);
    let mut indices: Vec<usize> = (0..n).collect();
    for i in 0..count {
        let j = rng.random_range(i..n);
        indices.swap(i, j);
    }
    indices.truncate(count);
    indices.sort_unstable();
    indices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tolerance::{Tolerance, assert_close};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn golden_words_never_change() {
        // Any change of the key derivation or of the generator would change every published number.
        let mut rng = stream(0, "");
        assert_eq!(
            [rng.next_u64(), rng.next_u64()],
            [6_701_563_735_986_944_305, 16_258_104_575_697_864_453]
        );
        let mut rng = stream(20_220_222, "rff");
        assert_eq!(
            [rng.next_u64(), rng.next_u64()],
            [3_877_602_652_742_546_555, 17_786_926_648_557_927_756]
        );
    }

    #[test]
    fn golden_normals_never_change() {
        let bits: Vec<u64> =
            gaussian_vector(&mut stream(1, "normals"), 3).into_iter().map(f64::to_bits).collect();
        assert_eq!(
            bits,
            [4_605_687_562_937_863_746, 13_828_564_198_191_235_601, 13_825_638_668_049_362_977]
        );
    }

    #[test]
    fn seed_and_label_are_both_part_of_the_key() {
        let first = |seed, label: &str| stream(seed, label).next_u64();
        assert_ne!(first(1, "a"), first(2, "a"));
        assert_ne!(first(1, "a"), first(1, "b"));
        assert_ne!(first(1, "a"), first(1, "aa"));
    }

    #[test]
    fn moments_of_the_two_distributions() {
        let n = 100_000;
        let normals = gaussian_vector(&mut stream(3, "moments"), n);
        let uniforms = uniform_vector(&mut stream(3, "moments"), n, -1.0, 3.0);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / n as f64;
        let second = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>() / n as f64;
        // Five standard errors of each estimate.
        assert_close(mean(&normals), 0.0, Tolerance::absolute(0.016));
        assert_close(second(&normals), 1.0, Tolerance::absolute(0.023));
        assert_close(mean(&uniforms), 1.0, Tolerance::absolute(0.019));
        assert!(uniforms.iter().all(|v| (-1.0..3.0).contains(v)));
    }

    #[test]
    fn subsets_cover_every_index_equally() {
        let mut rng = stream(5, "subsets");
        let mut counts = [0_u32; 10];
        for _ in 0..10_000 {
            for i in sample_without_replacement(&mut rng, 10, 3) {
                counts[i] += 1;
            }
        }
        for count in counts {
            assert_close(f64::from(count), 3000.0, Tolerance::absolute(5.0 * 46.0));
        }
    }

    proptest! {
        #[test]
        fn subsets_are_strictly_increasing_and_in_range(n in 0_usize..60, count in 0_usize..80, seed in any::<u64>()) {
            let subset = sample_without_replacement(&mut stream(seed, "p"), n, count);
            prop_assert_eq!(subset.len(), count.min(n));
            prop_assert!(subset.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(subset.iter().all(|&i| i < n));
        }
    }
}
