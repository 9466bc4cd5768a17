//! Random sampling without transcendental functions.

use posenc_math::random::below;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// Uniform on [0, 1) with 24 bits.
pub(super) fn unit(rng: &mut ChaCha8Rng) -> f32 {
    (rng.next_u32() >> 8) as f32 * (1.0 / 16_777_216.0)
}

pub(super) fn between(rng: &mut ChaCha8Rng, low: f32, high: f32) -> f32 {
    low + (high - low) * unit(rng)
}

/// Approximately standard normal: the sum of twelve uniform numbers minus six.
pub(super) fn normal(rng: &mut ChaCha8Rng) -> f32 {
    (0..12).map(|_| unit(rng)).sum::<f32>() - 6.0
}

/// Pixel noise with mean 0 and standard deviation 1: the sum of the four bytes of one random word.
pub(super) fn noise(rng: &mut ChaCha8Rng) -> f32 {
    let sum: u32 = rng.next_u32().to_le_bytes().into_iter().map(u32::from).sum();
    // A byte has mean 255/2 and variance (256² − 1)/12.
    (sum as f32 - 510.0) * (1.0 / 147.8)
}

/// e^x with a relative error below 4 · 10⁻³ for |x| ≤ 2, computed with operations that every machine rounds identically.
pub(super) fn exponential(x: f32) -> f32 {
    // The square of the Padé quotient of half the argument.
    let h = 0.5 * x;
    let even = 1.0 + h * h / 12.0;
    let quotient = (even + 0.5 * h) / (even - 0.5 * h);
    quotient * quotient
}

pub(crate) fn chance(rng: &mut ChaCha8Rng, probability: f32) -> bool {
    unit(rng) < probability
}

/// Puts items in random order.
pub(super) fn shuffle<T>(items: &mut [T], rng: &mut ChaCha8Rng) {
    for i in 0..items.len() {
        items.swap(i, i + below(rng, items.len() - i));
    }
}

/// A radius r in [low, high) with density ∝ r⁻³, the only power for which the occluding shapes look
/// alike at every scale (Lee, Mumford, Huang 2001). The distribution function inverts to r =
/// 1/√(low⁻² - u (low⁻² - high⁻²)).
pub(super) fn radius(rng: &mut ChaCha8Rng, low: f32, high: f32) -> f32 {
    let (far, near) = (1.0 / (low * low), 1.0 / (high * high));
    1.0 / (far - unit(rng) * (far - near)).sqrt()
}

/// A direction, uniform on the unit circle, by rejection from the square around it.
pub(super) fn direction(rng: &mut ChaCha8Rng) -> [f32; 2] {
    loop {
        let (x, y) = (between(rng, -1.0, 1.0), between(rng, -1.0, 1.0));
        let square = x * x + y * y;
        if (0.01..=1.0).contains(&square) {
            let length = square.sqrt();
            return [x / length, y / length];
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn radii_follow_the_power_law() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let radii: Vec<f32> = (0..40_000).map(|_| radius(&mut rng, 2.0, 200.0)).collect();
        assert!(radii.iter().all(|r| (2.0..200.0).contains(r)));
        // P(r > 2·2) = (1/4 - 10⁻⁴) / (1 - 10⁻⁴) = 0.24992; ±5 standard errors.
        let share = radii.iter().filter(|&&r| r > 4.0).count() as f64 / radii.len() as f64;
        assert!((share - 0.24992).abs() < 5.0 * (0.25f64 * 0.75 / 40_000.0).sqrt(), "{share}");
    }

    #[test]
    fn noise_has_mean_zero_and_deviation_one() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let draws: Vec<f64> = (0..40_000).map(|_| f64::from(noise(&mut rng))).collect();
        let mean = draws.iter().sum::<f64>() / 40_000.0;
        let square = draws.iter().map(|v| v * v).sum::<f64>() / 40_000.0;
        // Five standard errors.
        assert!(mean.abs() < 0.025 && (square - 1.0).abs() < 0.03, "{mean} {square}");
    }

    #[test]
    fn directions_have_unit_length_and_no_preference() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut sum = [0.0; 2];
        for _ in 0..10_000 {
            let [x, y] = direction(&mut rng);
            assert!((x * x + y * y - 1.0).abs() < 1e-5);
            sum = [sum[0] + f64::from(x), sum[1] + f64::from(y)];
        }
        // Five standard errors of a mean with variance 1/2.
        assert!(
            sum.iter().all(|s| s.abs() / 10_000.0 < 5.0 * (0.5f64 / 10_000.0).sqrt()),
            "{sum:?}"
        );
    }

    #[test]
    fn the_exponential_is_accurate() {
        for i in -20..=20 {
            let x = i as f32 / 10.0;
            assert!((exponential(x) / x.exp() - 1.0).abs() < 4e-3, "{x}");
        }
    }
}
