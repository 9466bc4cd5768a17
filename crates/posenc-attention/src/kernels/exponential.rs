//! An exponential function of operations that vectorize and round identically on every machine.

/// $e^x$ with a relative error below 2·10⁻⁷ for −87 ≤ x ≤ 88. It is 0 below this range and constant above it. NaN stays NaN.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // 1.5·2²³: adding it leaves the nearest whole number in the last bits.
    const SHIFT: f32 = 12_582_912.0;
    // ln 2 in two parts, so that k ln 2 is exact in the first.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let is_zero = x < -87.0;
    let x = if is_zero { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + SHIFT;
    let k = shifted - SHIFT;
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    // Taylor's series to r⁷ on |r| ≤ ln 2/2.
    let p = 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = p * r + 1.0;
    let p = p * r + 1.0;
    let two_to_k = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    if is_zero { 0.0 } else { p * two_to_k }
}

#[cfg(test)]
mod tests {
    use super::exp;

    #[test]
    fn exp_matches_the_standard_library() {
        let worst = (-87_000..88_000)
            .map(|i| {
                let x = i as f32 / 1000.0;
                let exact = f64::from(x).exp();
                ((f64::from(exp(x)) - exact) / exact).abs()
            })
            .fold(0.0, f64::max);
        assert!(worst < 2e-7, "{worst:e}");
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f32::NAN).is_nan());
        assert_eq!((exp(-1e9), exp(f32::NEG_INFINITY)), (0.0, 0.0));
        assert!(exp(1e9).is_finite());
    }
}
