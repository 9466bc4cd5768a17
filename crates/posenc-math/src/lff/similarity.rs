//! Similarity of positions under sinusoidal and random Fourier encodings (LFF, Figure 2).
//!
//! An encoding maps a position $x \in \mathbb R^M$ to a vector $c(x)$; the similarity of two positions
//! is $c(x)\cdot c(y)$. This module has two encodings:
//!
//! - Sine-2D (LFF Eq. 1 per axis, concatenated): for width $D$ per axis,
//!   $PE(p, 2k) = \sin(p\,\tau^{-2k/D})$, $PE(p, 2k+1) = \cos(p\,\tau^{-2k/D})$, $\tau = 10000$.
//!   Its similarity is $\sum_{a}\sum_k \cos(\omega_k \delta_a)$, a sum over the axes $a$.
//! - Fourier features (LFF Eq. 2, Algorithm 1 step 1):
//!   $r_x = |F|^{-1/2}\,[\cos xW_r^T \,\|\, \sin xW_r^T]$ with $W_r \in \mathbb R^{|F|/2\times M}$,
//!   entries $N(0, \gamma^{-2})$. Its similarity is $|F|^{-1}\sum_k \cos(w_k\cdot\delta)$, with
//!   mean $\tfrac12\exp(-\|\delta\|^2/2\gamma^2)$.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};

use crate::Error;

/// A map from positions to vectors whose inner product is a similarity.
pub trait PositionCode {
    fn width(&self) -> usize;
    /// Writes the encoding of `position` ($M$ numbers) to `out` (`width()` numbers).
    fn encode(&self, position: &[f64], out: &mut [f64]);
    /// $c(x) \cdot c(y)$.
    fn similarity(&self, x: &[f64], y: &[f64]) -> f64 {
        let mut codes = vec![0.0; 2 * self.width()];
        let (a, b) = codes.split_at_mut(self.width());
        self.encode(x, a);
        self.encode(y, b);
        dot(a, b)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Sine-2D: the sinusoids of LFF Eq. 1 on each axis, concatenated; sine and cosine interleaved.
#[derive(Debug, Clone)]
pub struct SineCode {
    frequencies: Vec<f64>,
    axes: usize,
}

impl SineCode {
    /// An encoding with `width_per_axis` ($D$) numbers for each of `axes` coordinates, at the frequencies $\tau^{-2k/D}$ for
    /// $k < D/2$ with the temperature $\tau$.
    ///
    /// # Errors
    /// The width must be even and positive, the temperature positive.
    pub fn new(width_per_axis: usize, axes: usize, temperature: f64) -> Result<Self, Error> {
        check_width(width_per_axis)?;
        check_scale("temperature", temperature)?;
        let frequencies = (0..width_per_axis / 2)
            .map(|k| temperature.powf(-(2.0 * k as f64) / width_per_axis as f64))
            .collect();
        Ok(Self { frequencies, axes })
    }
}

impl PositionCode for SineCode {
    fn width(&self) -> usize {
        2 * self.frequencies.len() * self.axes
    }

    fn encode(&self, position: &[f64], out: &mut [f64]) {
        let mut pairs = out.chunks_exact_mut(2);
        for coordinate in position {
            for (frequency, pair) in self.frequencies.iter().zip(&mut pairs) {
                (pair[0], pair[1]) = (coordinate * frequency).sin_cos();
            }
        }
    }
}

/// Random Fourier features $r_x$ of LFF Eq. 2; cosines first, then sines.
#[derive(Debug, Clone)]
pub struct FourierFeatures {
    /// $W_r$, one row of `coordinates` weights per frequency.
    weights: Vec<f64>,
    coordinates: usize,
}

impl FourierFeatures {
    /// Samples $W_r$ row by row, entries $N(0, \gamma^{-2})$: standard deviation $1/\gamma$.
    pub fn draw(
        feature_width: usize,
        coordinates: usize,
        gamma: f64,
        rng: &mut ChaCha8Rng,
    ) -> Result<Self, Error> {
        check_width(feature_width)?;
        check_scale("gamma", gamma)?;
        let law = Normal::new(0.0, gamma.recip()).map_err(|error| Error(error.to_string()))?;
        let weights = (0..feature_width / 2 * coordinates).map(|_| law.sample(rng)).collect();
        Self::from_weights(weights, coordinates)
    }

    /// Features with given weights, such as the learned weights of a model.
    pub fn from_weights(weights: Vec<f64>, coordinates: usize) -> Result<Self, Error> {
        if coordinates == 0 || weights.is_empty() || !weights.len().is_multiple_of(coordinates) {
            return Err(Error(format!(
                "{} weights do not fill rows of {coordinates} coordinates; give a positive multiple of {coordinates}",
                weights.len()
            )));
        }
        Ok(Self { weights, coordinates })
    }

    /// $W_r$, row by row.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// $h_{W_r}(\delta) = |F|^{-1}\sum_k \cos(w_k\cdot\delta)$, the similarity of two positions that
    /// are `delta` apart.
    pub fn kernel(&self, delta: &[f64]) -> f64 {
        let rows = self.weights.chunks_exact(self.coordinates);
        let width = self.width() as f64;
        rows.map(|row| dot(row, delta).cos()).sum::<f64>() / width
    }
}

impl PositionCode for FourierFeatures {
    fn width(&self) -> usize {
        2 * (self.weights.len() / self.coordinates)
    }

    fn encode(&self, position: &[f64], out: &mut [f64]) {
        let scale = (self.width() as f64).sqrt().recip();
        let (cosines, sines) = out.split_at_mut(self.width() / 2);
        let rows = self.weights.chunks_exact(self.coordinates);
        for ((row, cosine), sine) in rows.zip(cosines).zip(sines) {
            let (s, c) = dot(row, position).sin_cos();
            *cosine = scale * c;
            *sine = scale * s;
        }
    }
}

fn check_width(width: usize) -> Result<(), Error> {
    if width > 0 && width.is_multiple_of(2) {
        return Ok(());
    }
    Err(Error(format!(
        "the encoding width is {width}; it must be even and positive (half sines, half cosines)"
    )))
}

fn check_scale(name: &str, value: f64) -> Result<(), Error> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(Error(format!("{name} is {value}; it must be a positive finite number")))
}

/// The mean of [`FourierFeatures::kernel`] over $W_r$: $\tfrac12\exp(-\|\delta\|^2/2\gamma^2)$.
///
/// The paper's Eq. 4 prints $\exp(-\|\delta\|^2/\gamma^2)$; see the errata `lff-kernel-exponent`
/// and `lff-kernel-half`.
pub fn expected_kernel(delta: &[f64], gamma: f64) -> f64 {
    0.5 * (-dot(delta, delta) / (2.0 * gamma * gamma)).exp()
}

/// Similarities of `center` to every cell of a `rows` × `columns` grid, row by row.
///
/// A position is (row, column), in cells; `code` must take two coordinates.
pub fn similarity_map(
    code: &dyn PositionCode,
    rows: usize,
    columns: usize,
    center: [f64; 2],
) -> Vec<f64> {
    let mut of_center = vec![0.0; code.width()];
    let mut of_cell = vec![0.0; code.width()];
    code.encode(&center, &mut of_center);
    let mut map = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            code.encode(&[row as f64, column as f64], &mut of_cell);
            map.push(dot(&of_center, &of_cell));
        }
    }
    map
}

/// Similarity of `center` to the point at Euclidean `distance` in direction `angle` (radians from
/// the column axis), divided by the similarity of the center to itself.
pub fn decay(code: &dyn PositionCode, center: [f64; 2], angle: f64, distance: f64) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    let there = [center[0] + distance * sine, center[1] + distance * cosine];
    code.similarity(&center, &there) / code.similarity(&center, &center)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{mean, population_std};
    use crate::tolerance::{Tolerance, assert_close};
    use rand_chacha::rand_core::SeedableRng;
    use std::f64::consts::{FRAC_PI_4, PI};

    const CENTER: [f64; 2] = [32.0, 32.0];

    #[track_caller]
    fn close(actual: f64, expected: f64, bound: f64) {
        assert_close(actual, expected, Tolerance::absolute(bound));
    }

    fn draw(width: usize, gamma: f64, seed: u64) -> FourierFeatures {
        FourierFeatures::draw(width, 2, gamma, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap()
    }

    /// Would catch a wrong exponent of Eq. 1, a wrong temperature or a wrong concatenation.
    #[test]
    fn sine_decays_faster_off_the_axes() {
        let code = SineCode::new(384, 2, 1e4).unwrap();
        let table = [
            (2.0, 0.9521, 0.9478, 1.09),
            (4.0, 0.8836, 0.8386, 1.39),
            (8.0, 0.8609, 0.7357, 1.90),
            (16.0, 0.8149, 0.6631, 1.82),
            (24.0, 0.7935, 0.6209, 1.84),
            (31.0, 0.7815, 0.5975, 1.84),
        ];
        for (distance, axis, diagonal, ratio) in table {
            let on_axis = decay(&code, CENTER, 0.0, distance);
            let off_axis = decay(&code, CENTER, FRAC_PI_4, distance);
            close(on_axis, axis, 6e-5);
            close(off_axis, diagonal, 6e-5);
            close((1.0 - off_axis) / (1.0 - on_axis), ratio, 6e-3);
        }
    }

    /// Would catch a variance mistaken for a standard deviation, or a missing factor of the kernel.
    #[test]
    fn fourier_features_decay_alike_in_every_direction() {
        // Half a turn is enough: both similarities are even in the displacement.
        let spread = |code: &dyn PositionCode, distance: f64| {
            let angles = (0..180).map(|k| PI * f64::from(k) / 180.0);
            let values: Vec<f64> = angles.map(|a| decay(code, CENTER, a, distance)).collect();
            (mean(&values).unwrap(), population_std(&values).unwrap())
        };
        for (distance, exact, largest) in
            [(0.5, 0.8825, 0.015), (1.0, 0.6065, 0.03), (2.0, 0.1353, 0.05)]
        {
            let (mean, deviation) = spread(&draw(768, 1.0, 3), distance);
            close(2.0 * expected_kernel(&[distance, 0.0], 1.0), exact, 5e-5);
            close(mean, exact, 4.0 / 768f64.sqrt());
            assert!(deviation < largest, "at {distance} the spread is {deviation}");
        }
        // The sine encoding exceeds the same bound, so the test can fail.
        let (_, deviation) = spread(&SineCode::new(384, 2, 1e4).unwrap(), 8.0);
        assert!(deviation > 0.04);
    }

    /// Would catch a map that is transposed, shifted, or not centered.
    #[test]
    fn map_agrees_with_the_kernel() {
        let code = draw(64, 4.0, 1);
        let map = similarity_map(&code, 5, 7, [2.0, 3.0]);
        assert_eq!(map.len(), 35);
        for row in 0..5 {
            for column in 0..7 {
                let delta = [row as f64 - 2.0, column as f64 - 3.0];
                close(map[row * 7 + column], code.kernel(&delta), 1e-12);
            }
        }
        close(map[2 * 7 + 3], 0.5, 1e-14);
    }

    #[test]
    fn invalid_arguments_are_refused() {
        let odd = SineCode::new(7, 2, 1e4).unwrap_err().to_string();
        assert!(odd.contains("width is 7"), "{odd}");
        let rng = &mut ChaCha8Rng::seed_from_u64(0);
        assert!(FourierFeatures::draw(8, 2, 0.0, rng).is_err());
        assert!(FourierFeatures::draw(8, 0, 1.0, rng).is_err());
        assert!(FourierFeatures::from_weights(vec![0.0; 5], 2).is_err());
    }
}
