//! Sine and cosine of angles measured in turns: `sin 2πu` and `cos 2πu`.
//!
//! Fourier embedders evaluate these functions billions of times, at arguments `b·x` of many turns.
//! Turns make the range reduction exact: with `k = round(4u)` the remainder `h = 4u - k` is computed
//! without error, `|h| <= 1/2`, and
//!
//! `sin 2πu, cos 2πu = ± sin(πh/2), ± cos(πh/2)`, exchanged when `k` is odd.
//!
//! The two remaining functions on `[-π/4, π/4]` are the polynomials of fdlibm's `__kernel_sin` and
//! `__kernel_cos`. The code has no branches, no calls into the platform's library and no fused
//! multiply-adds. Loops therefore compile to the widest vector instructions of the running machine,
//! and every machine computes the same bits. The error is at most 2.5e-16; multiples of a quarter turn
//! yield exactly 0, 1 or -1.
//!
//! Arguments beyond `2^49` turns in magnitude carry no phase and yield NaN, like NaN and infinities.

use std::f64::consts::FRAC_PI_2;

use pulp::Arch;

/// Adding and subtracting `1.5 * 2^52` rounds to the nearest integer, ties to even.
const ROUND_TO_INTEGER: f64 = 6_755_399_441_055_744.0;

/// Beyond this magnitude (in turns) [`ROUND_TO_INTEGER`] no longer rounds `4u` correctly.
const LARGEST_TURNS: f64 = 562_949_953_421_312.0;

const SIGN_BIT: u32 = 63;

/// `sin z` for `|z| <= π/4`, fdlibm coefficients.
#[inline(always)]
fn sin_kernel(z: f64) -> f64 {
    let w = z * z;
    let w2 = w * w;
    let low = 8.333_333_333_322_49e-3 - w * 1.984_126_982_985_795e-4;
    let middle = 2.755_731_370_707_006_8e-6 - w * 2.505_076_025_340_686_3e-8;
    let high = w2 * 1.589_690_995_211_55e-10;
    let tail = low + w2 * (middle + high);
    z + z * w * (w * tail - 1.666_666_666_666_663_2e-1)
}

/// `cos z` for `|z| <= π/4`, fdlibm coefficients; the rounding error of `1 - z²/2` is added back.
#[inline(always)]
fn cos_kernel(z: f64) -> f64 {
    let w = z * z;
    let w2 = w * w;
    let low = 4.166_666_666_666_66e-2 - w * 1.388_888_888_887_411e-3;
    let middle = 2.480_158_728_947_673e-5 - w * 2.755_731_435_139_066_3e-7;
    let high = 2.087_572_321_298_175e-9 - w * 1.135_964_755_778_819_5e-11;
    let tail = w2 * (low + w2 * (middle + w2 * high));
    let half = 0.5 * w;
    let leading = 1.0 - half;
    leading + ((1.0 - leading) - half + tail)
}

/// `(sin 2πu, cos 2πu)`.
#[inline(always)]
pub fn sin_cos_turns(u: f64) -> (f64, f64) {
    let quarter_turns = 4.0 * if u.abs() <= LARGEST_TURNS { u } else { f64::NAN };
    let shifted = quarter_turns + ROUND_TO_INTEGER;
    let quadrant = shifted.to_bits();
    let angle = (quarter_turns - (shifted - ROUND_TO_INTEGER)) * FRAC_PI_2;
    let sine = sin_kernel(angle).to_bits();
    let cosine = cos_kernel(angle).to_bits();
    // All ones if the quadrant is odd, to exchange sine and cosine.
    let exchange = (quadrant & 1).wrapping_neg();
    let difference = (sine ^ cosine) & exchange;
    let sine_sign = (quadrant >> 1) << SIGN_BIT;
    let cosine_sign = ((quadrant + 1) >> 1) << SIGN_BIT;
    (
        f64::from_bits(sine ^ difference ^ sine_sign),
        f64::from_bits(cosine ^ difference ^ cosine_sign),
    )
}

/// `sin 2πu`.
#[inline(always)]
pub fn sin_turns(u: f64) -> f64 {
    sin_cos_turns(u).0
}

/// `cos 2πu`.
#[inline(always)]
pub fn cos_turns(u: f64) -> f64 {
    sin_cos_turns(u).1
}

/// `out_j = sin(2π f_j x)` for every frequency `f_j`; the longer slice's excess is ignored.
pub fn fill_sin_turns(frequencies: &[f64], x: f64, out: &mut [f64]) {
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (value, frequency) in out.iter_mut().zip(frequencies) {
                *value = sin_turns(frequency * x);
            }
        },
    );
}

/// `out_j = cos(2π f_j x)` for every frequency `f_j`; the longer slice's excess is ignored.
pub fn fill_cos_turns(frequencies: &[f64], x: f64, out: &mut [f64]) {
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (value, frequency) in out.iter_mut().zip(frequencies) {
                *value = cos_turns(frequency * x);
            }
        },
    );
}

/// `sines_j = sin(2π f_j x)` and `cosines_j = cos(2π f_j x)` at half the cost of two separate calls.
pub fn fill_sin_cos_turns(frequencies: &[f64], x: f64, sines: &mut [f64], cosines: &mut [f64]) {
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for ((sine, cosine), frequency) in sines.iter_mut().zip(cosines).zip(frequencies) {
                (*sine, *cosine) = sin_cos_turns(frequency * x);
            }
        },
    );
}

/// `Σ_j cos(2π f_j x)`, summed in an order that depends on the number of frequencies alone.
///
/// The Gram kernel of a Fourier embedder: `ψ(y)·ψ(y + x)`.
pub fn sum_cos_turns(frequencies: &[f64], x: f64) -> f64 {
    const LANES: usize = 8;
    let mut cosines = [0.0; 32 * LANES];
    let mut partial = [0.0; LANES];
    for block in frequencies.chunks(cosines.len()) {
        cosines[block.len()..].fill(0.0);
        fill_cos_turns(block, x, &mut cosines);
        for chunk in cosines.chunks_exact(LANES) {
            for lane in 0..LANES {
                partial[lane] += chunk[lane];
            }
        }
    }
    partial.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tolerance::{Tolerance, assert_all_close, assert_close};
    use proptest::prelude::*;
    use std::f64::consts::TAU;

    /// Reference on one turn, where multiplying by 2π loses nothing that matters.
    fn reference(u: f64) -> (f64, f64) {
        let angle = TAU * (u - u.round());
        (angle.sin(), angle.cos())
    }

    #[test]
    fn quarter_turns_are_exact() {
        // A range reduction by a rounded π would leave 1e-16 at the zeros.
        for k in -40_i32..=40 {
            let (sine, cosine) = sin_cos_turns(f64::from(k) / 4.0);
            let expected_sine = [0.0, 1.0, 0.0, -1.0][k.rem_euclid(4) as usize];
            let expected_cosine = [1.0, 0.0, -1.0, 0.0][k.rem_euclid(4) as usize];
            assert_close(sine, expected_sine, Tolerance::EXACT);
            assert_close(cosine, expected_cosine, Tolerance::EXACT);
        }
    }

    #[test]
    fn a_fine_grid_agrees_with_the_standard_library() {
        let grid: Vec<f64> = (-50_000..=50_000).map(|i| f64::from(i) / 40_000.0).collect();
        let (actual, expected): (Vec<f64>, Vec<f64>) = grid
            .iter()
            .flat_map(|&u| {
                let (sine, cosine) = sin_cos_turns(u);
                let (reference_sine, reference_cosine) = reference(u);
                [(sine, reference_sine), (cosine, reference_cosine)]
            })
            .unzip();
        // 4.5e-16 = own error 2.5e-16 and the rounding of the reference's angle.
        assert_all_close(&actual, &expected, Tolerance::absolute(4.5e-16));
    }

    #[test]
    fn small_arguments_keep_their_relative_accuracy() {
        for u in [1e-300, 1e-20, 3.7e-9, -2.5e-4] {
            assert_close(sin_turns(u), (TAU * u).sin(), Tolerance::relative(4e-16));
        }
    }

    #[test]
    fn arguments_without_a_phase_give_nan() {
        for u in [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e300, 5.7e14] {
            assert!(sin_turns(u).is_nan() && cos_turns(u).is_nan(), "{u:?}");
        }
        assert!(sin_turns(5.6e14).is_finite());
    }

    #[test]
    fn golden_bits_are_the_same_on_every_machine() {
        let bits = [0.1, -3.3, 1234.567].map(|u| {
            let (sine, cosine) = sin_cos_turns(u);
            (sine.to_bits(), cosine.to_bits())
        });
        assert_eq!(bits, GOLDEN);
    }

    const GOLDEN: [(u64, u64); 3] = [
        (0x3fe2_cf23_0475_5a5e, 0x3fe9_e377_9b97_f4a8),
        (0xbfee_6f0e_1344_5502, 0xbfd3_c6ef_372f_e93c),
        (0xbfda_274e_72e2_242d, 0xbfed_34c4_fce7_6eeb),
    ];

    proptest! {
        #[test]
        fn whole_turns_change_nothing(k in -1_000_000_i32..1_000_000, i in 0_u32..4096) {
            // i/4096 + k is exact, so the values must be the same bits.
            let u = f64::from(i) / 4096.0;
            prop_assert_eq!(sin_cos_turns(u + f64::from(k)), sin_cos_turns(u));
        }

        #[test]
        fn symmetries_and_the_unit_circle(u in -1e6_f64..1e6) {
            let (sine, cosine) = sin_cos_turns(u);
            prop_assert_eq!(sin_cos_turns(-u), (-sine, cosine));
            prop_assert!(Tolerance::absolute(5e-16).accepts(sine * sine + cosine * cosine, 1.0));
        }

        #[test]
        fn slices_agree_with_single_values(
            frequencies in prop::collection::vec(-1e4_f64..1e4, 0..600),
            x in 0.0_f64..1.0,
        ) {
            let n = frequencies.len();
            let (mut sines, mut cosines) = (vec![0.0; n], vec![0.0; n]);
            let (mut both_sines, mut both_cosines) = (vec![0.0; n], vec![0.0; n]);
            fill_sin_turns(&frequencies, x, &mut sines);
            fill_cos_turns(&frequencies, x, &mut cosines);
            fill_sin_cos_turns(&frequencies, x, &mut both_sines, &mut both_cosines);
            for (j, frequency) in frequencies.iter().enumerate() {
                // Vector and scalar code must give the same bits.
                let (sine, cosine) = sin_cos_turns(frequency * x);
                prop_assert_eq!((sines[j], both_sines[j]), (sine, sine));
                prop_assert_eq!((cosines[j], both_cosines[j]), (cosine, cosine));
            }
            let sum: f64 = cosines.iter().sum();
            prop_assert!(Tolerance::absolute(1e-12).accepts(sum_cos_turns(&frequencies, x), sum));
        }
    }
}
