//! Signals: rows of photographs, and synthetic signals.

use std::f64::consts::{PI, TAU};

use anyhow::{Context as _, Result};
use posenc_harness::protocol::Context;
use posenc_math::random::{below, gaussian_vector, uniform_vector};
use rand_chacha::ChaCha8Rng;

/// A signal of 2N values in [0, 1]; those with even indices train.
pub struct Signal {
    pub name: String,
    pub values: Vec<f64>,
}

/// Rows of a data set and synthetic signals.
pub fn signals(
    draw: &dyn Fn(&str) -> ChaCha8Rng,
    context: &Context<'_>,
    set: Option<&str>,
    samples: usize,
) -> Result<Vec<Signal>> {
    let n = 2 * samples;
    let mut signals = Vec::new();
    if let Some(set) = set {
        for image in context.data.load_images(set)?.iter() {
            let reduced = image.resized(n).with_context(|| format!("data set `{set}`"))?;
            let values = reduced.rows(&[samples])?.remove(0);
            signals.push(Signal { name: image.name.clone(), values });
        }
    }
    let mut add = |name: &str, make: &dyn Fn(&mut ChaCha8Rng) -> Vec<f64>| {
        let mut random = draw(&format!("held out {name}"));
        signals.push(Signal { name: name.to_owned(), values: normalized(make(&mut random)) });
    };
    for exponent in [0.5, 1.0, 1.5, 2.0] {
        // The amplitude is the square root of the power.
        let amplitude = |k: usize| (k as f64).powf(-0.5 * exponent);
        add(&format!("1/f^{exponent} noise"), &|random| waves(random, n, n / 2, amplitude));
    }
    for share in [8, 4, 2] {
        add(&format!("noise up to N/{share}"), &|random| {
            waves(random, n, samples / share, |_| 1.0)
        });
    }
    for jumps in [2, 5, 12] {
        add(&format!("{jumps} edges"), &|random| edges(random, n, jumps));
    }
    for share in [4, 2] {
        add(&format!("chirp up to N/{share}"), &|random| {
            chirp(random, n, (samples / share) as f64)
        });
    }
    add("bumps", &|random| bumps(random, n));
    Ok(signals)
}

/// Scales values to [0, 1]. A constant becomes 0 (no generator yields one).
fn normalized(mut values: Vec<f64>) -> Vec<f64> {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let range = (most - least).max(f64::MIN_POSITIVE);
    values.iter_mut().for_each(|value| *value = (*value - least) / range);
    values
}

/// A sum of cosines with 1 to `most` periods and random amplitudes and phases.
fn waves(
    random: &mut ChaCha8Rng,
    n: usize,
    most: usize,
    amplitude: impl Fn(usize) -> f64,
) -> Vec<f64> {
    let factors = gaussian_vector(random, most);
    let phases = uniform_vector(random, most, 0.0, TAU);
    let wave = |x: f64, k: usize| {
        amplitude(k) * factors[k - 1] * (TAU * k as f64 * x + phases[k - 1]).cos()
    };
    (0..n).map(|i| (1..=most).map(|k| wave(i as f64 / n as f64, k)).sum()).collect()
}

/// A piecewise constant signal with jumps at random positions.
fn edges(random: &mut ChaCha8Rng, n: usize, jumps: usize) -> Vec<f64> {
    let mut places: Vec<usize> = (0..jumps).map(|_| 1 + below(random, n - 1)).collect();
    places.sort_unstable();
    let levels = uniform_vector(random, jumps + 1, 0.0, 1.0);
    (0..n).map(|i| levels[places.iter().filter(|&&place| place <= i).count()]).collect()
}

/// A sine whose frequency rises from 1 to `most` periods per unit length.
fn chirp(random: &mut ChaCha8Rng, n: usize, most: f64) -> Vec<f64> {
    let phase = uniform_vector(random, 1, 0.0, TAU)[0];
    let value = |x: f64| (TAU * (x + 0.5 * (most - 1.0) * x * x) + phase).sin();
    (0..n).map(|i| value(i as f64 / n as f64)).collect()
}

/// Five smooth bumps with random positions, widths and heights.
fn bumps(random: &mut ChaCha8Rng, n: usize) -> Vec<f64> {
    let (centers, heights) =
        (uniform_vector(random, 5, 0.0, 1.0), uniform_vector(random, 5, 0.3, 1.0));
    let widths = uniform_vector(random, 5, 0.02, 0.1);
    let bump = |x: f64, k: usize| {
        let t = (x - centers[k]) / widths[k];
        if t.abs() < 1.0 { 0.5 * heights[k] * (1.0 + (PI * t).cos()) } else { 0.0 }
    };
    (0..n).map(|i| (0..5).map(|k| bump(i as f64 / n as f64, k)).sum()).collect()
}

#[cfg(test)]
mod tests {
    use posenc_math::random::stream;

    use super::*;

    /// Catches a generator without variation, with a wrong number of values, or with frequencies above its limit.
    #[test]
    fn generators_respect_their_limits() {
        let n = 128;
        let mut random = stream(0, "signals");
        let jumps = edges(&mut random, n, 5);
        let changes = jumps.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((1..=5).contains(&changes), "{changes}");
        // A signal with up to 8 periods crosses its mean at most 16 times.
        let wave = waves(&mut random, n, 8, |_| 1.0);
        let crossings = wave.windows(2).filter(|pair| (pair[0] < 0.0) != (pair[1] < 0.0)).count();
        assert!((2..=16).contains(&crossings), "{crossings}");
        for signal in [jumps, wave, chirp(&mut random, n, 16.0), bumps(&mut random, n)] {
            let signal = normalized(signal);
            assert_eq!(signal.len(), n);
            assert_eq!(signal.iter().copied().fold(f64::INFINITY, f64::min), 0.0);
            assert_eq!(signal.iter().copied().fold(0.0, f64::max), 1.0);
        }
        assert_eq!(normalized(vec![3.0; 4]), [0.0; 4]);
    }
}
