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
