//! Normal numbers of PyTorch's CPU generator, to replay frequencies that a published script sampled.
//!
//! `torch.manual_seed(seed)` starts MT19937 (Matsumoto and Nishimura 1998). `torch.randn(n)` in single precision takes one
//! 32-bit word per number for n ≥ 16: each block of 16 uniform numbers `u = (word mod 2²⁴)/2²⁴` becomes
//!
//! ```text
//! z_j = √(−2 ln(1 − u_j)) cos 2πu_{j+8},   z_{j+8} = √(−2 ln(1 − u_j)) sin 2πu_{j+8},   j = 0, …, 7.
//! ```
//!
//! If n is not a multiple of 16, the last 16 numbers are sampled again. Uniform tensors, such as initial weights, also take one
//! word per number, so the number of words to skip is the number of values that the script sampled before. Only embedders with a
//! `torch_seed` use this generator.

use crate::trigonometry::sin_cos_turns;

const WORDS: usize = 624;
const SHIFT: usize = 397;
/// Numbers per block. PyTorch works in blocks for at least this many numbers.
pub(crate) const BLOCK: usize = 16;

/// MT19937, PyTorch's CPU generator.
pub(crate) struct TorchGenerator {
    state: [u32; WORDS],
    next: usize,
}

impl TorchGenerator {
    /// The state after `torch.manual_seed(seed)`; PyTorch uses the lower 32 bits of a seed.
    pub(crate) fn new(seed: u32) -> Self {
        let mut state = [0; WORDS];
        state[0] = seed;
        for i in 1..WORDS {
            let previous = state[i - 1] ^ (state[i - 1] >> 30);
            state[i] = previous.wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Self { state, next: WORDS }
    }

    /// Skips words; takes about a second per 10⁹ words.
    pub(crate) fn skip(&mut self, mut words: u64) {
        while words > 0 {
            if self.next == WORDS {
                self.twist();
            }
            let step = words.min((WORDS - self.next) as u64);
            self.next += step as usize;
            words -= step;
        }
    }

    fn word(&mut self) -> u32 {
        if self.next == WORDS {
            self.twist();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn twist(&mut self) {
        for i in 0..WORDS {
            let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % WORDS] & 0x7fff_ffff);
            let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + SHIFT) % WORDS] ^ (y >> 1) ^ odd;
        }
        self.next = 0;
    }

    /// `torch.randn(n)` for n ≥ 16, rounded to single precision; the last digit may differ from PyTorch's.
    pub(crate) fn normals(&mut self, n: usize) -> Vec<f64> {
        let mut uniform = |_: usize| f64::from(self.word() & 0x00ff_ffff) / f64::from(1 << 24);
        let mut values: Vec<f64> = (0..n).map(&mut uniform).collect();
        for block in values.chunks_exact_mut(BLOCK) {
            box_muller(block);
        }
        if !n.is_multiple_of(BLOCK)
            && let Some(start) = n.checked_sub(BLOCK)
        {
            let mut last: Vec<f64> = (0..BLOCK).map(uniform).collect();
            box_muller(&mut last);
            values[start..].copy_from_slice(&last);
        }
        values
    }
}

/// Transforms a block of uniform numbers into normal ones.
fn box_muller(block: &mut [f64]) {
    let (first, second) = block.split_at_mut(BLOCK / 2);
    for (a, b) in first.iter_mut().zip(second) {
        let radius = (-2.0 * (1.0 - *a).ln()).sqrt();
        let (sine, cosine) = sin_cos_turns(*b);
        *a = f64::from((radius * cosine) as f32);
        *b = f64::from((radius * sine) as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tolerance::{Tolerance, assert_all_close, assert_close};

    /// Catches any error in seeding, twist or tempering: the C++ standard specifies the 10,000th word of `mt19937`.
    #[test]
    fn the_ten_thousandth_word_agrees_with_the_cpp_standard() {
        let mut generator = TorchGenerator::new(5489);
        assert_eq!(generator.word(), 3_499_211_612);
        generator.skip(9998);
        assert_eq!(generator.word(), 4_123_659_995);
    }

    /// Catches a wrong order within a block. The expected values are from an independent implementation on NumPy's MT19937,
    /// after `torch.manual_seed(20220222)`.
    #[test]
    fn normal_numbers_agree_with_an_independent_implementation() {
        let first = TorchGenerator::new(20_220_222).normals(16);
        let expected = [
            -0.579_729_1,
            0.430_818_9,
            -1.804_155_3,
            -1.502_872,
            0.517_135_74,
            -0.751_298_84,
            -1.817_781_9,
            1.020_913_7,
            -0.120_153_815,
            2.584_251_9,
            -0.128_446_36,
            0.811_353_4,
            -0.844_461_44,
            -1.486_929_8,
            -1.640_243,
            -1.009_387_5,
        ];
        assert_all_close(&first, &expected, Tolerance::absolute(2e-6));
        let mut generator = TorchGenerator::new(20_220_222);
        generator.skip(37_050_576);
        assert_close(generator.normals(128)[0], -1.090_491_4, Tolerance::absolute(2e-6));
    }

    /// Catches a tail of numbers that stay uniform.
    #[test]
    fn the_last_sixteen_of_an_odd_length_are_sampled_again() {
        let whole = TorchGenerator::new(1).normals(32);
        let odd = TorchGenerator::new(1).normals(20);
        assert_eq!(odd[..4], whole[..4]);
        let mut generator = TorchGenerator::new(1);
        generator.skip(20);
        assert_eq!(odd[4..], generator.normals(16));
    }
}
