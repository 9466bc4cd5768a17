//! Fractal noise: surfaces, clouds and uneven light.

use rand_chacha::ChaCha8Rng;

use super::draw;

/// Side length; a power of two, so that coordinates wrap with a mask.
const SIDE: usize = 256;

/// A noise field that repeats every 256 pixels, with mean 0 and variance 1.
pub(super) struct Texture {
    values: Vec<f32>,
}

impl Texture {
    /// Noise is added on grids of 4², 8², …, 256² points, every grid interpolated to the next;
    /// `roughness` is the factor between the amplitudes of neighboring octaves (1 gives an
    /// amplitude spectrum ∝ 1/f).
    pub(super) fn fractal(rng: &mut ChaCha8Rng, roughness: f32) -> Self {
        let mut side = 4;
        let mut amplitude = 1.0;
        let mut values: Vec<f32> =
            (0..side * side).map(|_| draw::between(rng, -1.0, 1.0)).collect();
        while side < SIDE {
            values = twice_as_fine(&values, side);
            side *= 2;
            amplitude *= roughness;
            for value in &mut values {
                *value += amplitude * draw::between(rng, -1.0, 1.0);
            }
        }
        let n = values.len() as f32;
        let mean = values.iter().sum::<f32>() / n;
        let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / n;
        let scale = 1.0 / variance.sqrt();
        for value in &mut values {
            *value = (*value - mean) * scale;
        }
        Texture { values }
    }

    /// Value of the cell that holds (x, y).
    #[inline]
    pub(super) fn nearest(&self, x: f32, y: f32) -> f32 {
        // A shift by a multiple of the side makes coordinates positive before they are cut to
        // integers.
        const SHIFT: f32 = 65_536.0;
        let (x, y) = ((x + SHIFT) as usize, (y + SHIFT) as usize);
        self.values[(y & (SIDE - 1)) * SIDE + (x & (SIDE - 1))]
    }

    /// Interpolated between the cells, for magnified use.
    pub(super) fn smooth(&self, x: f32, y: f32) -> f32 {
        const SHIFT: f32 = 4_096.0;
        let (x, y) = (x + SHIFT, y + SHIFT);
        let (column, row) = (x as usize, y as usize);
        let (s, t) = (ease(x - column as f32), ease(y - row as f32));
        let at = |row: usize, column: usize| {
            self.values[(row & (SIDE - 1)) * SIDE + (column & (SIDE - 1))]
        };
        let above = at(row, column) * (1.0 - s) + at(row, column + 1) * s;
        let below = at(row + 1, column) * (1.0 - s) + at(row + 1, column + 1) * s;
        above * (1.0 - t) + below * t
    }
}

/// The cubic step 3t² - 2t³.
pub(super) fn ease(t: f32) -> f32 {
    t * t * (3.0 - 2.0 * t)
}

/// Bilinear interpolation to twice the side, with wrap-around.
fn twice_as_fine(values: &[f32], side: usize) -> Vec<f32> {
    let mut fine = vec![0.0; 4 * side * side];
    for row in 0..side {
        for column in 0..side {
            let (below, right) = ((row + 1) % side, (column + 1) % side);
            let [p, q] = [values[row * side + column], values[row * side + right]];
            let [r, s] = [values[below * side + column], values[below * side + right]];
            let corner = 4 * row * side + 2 * column;
            fine[corner] = p;
            fine[corner + 1] = 0.5 * (p + q);
            fine[corner + 2 * side] = 0.5 * (p + r);
            fine[corner + 2 * side + 1] = 0.25 * (p + q + r + s);
        }
    }
    fine
}
