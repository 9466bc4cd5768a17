//! Small gray images of overlapping ellipses and boxes in a few gray levels, on which a pixel model trains in minutes.
//!
//! A pixel depends on its left and its upper neighbor, and the upper one is a whole row away in reading order.

use rand_chacha::ChaCha8Rng;

use super::draw;

#[derive(Debug, Clone, PartialEq)]
pub struct GrayLeaves {
    pub side: usize,
    pub levels: usize,
    /// Number of shapes, which are painted from back to front.
    pub leaves: usize,
    /// Smallest and largest radius in pixels; in between the density is ∝ r⁻³.
    pub radii: [f32; 2],
    /// Standard deviation of the logarithm of a shape's aspect: it is stretched by that factor along one
    /// axis and shrunk by it along the other.
    pub aspect: f32,
    /// Standard deviation of the noise, in gray levels.
    pub noise: f32,
}

impl GrayLeaves {
    /// 60 shapes of radius 1.5 to 12 pixels, aspect 0.3, noise 0.3.
    pub fn new(side: usize, levels: usize) -> Self {
        GrayLeaves { side, levels, leaves: 60, radii: [1.5, 12.0], aspect: 0.3, noise: 0.3 }
    }

    /// The levels of one image, row by row.
    pub fn image(&self, rng: &mut ChaCha8Rng) -> Vec<u8> {
        let side = self.side as f32;
        let mut gray = vec![0.5 * (self.levels as f32 - 1.0); self.side * self.side];
        for _ in 0..self.leaves {
            let radius = draw::radius(rng, self.radii[0], self.radii[1]);
            let center = [0, 1].map(|_| draw::between(rng, -radius, side + radius));
            let stretch = draw::exponential(self.aspect * draw::normal(rng));
            let axes = [radius * stretch, radius / stretch];
            let is_box = draw::chance(rng, 0.5);
            let level = draw::between(rng, -0.5, self.levels as f32 - 0.5);
            let range = |axis: usize| {
                let low = (center[axis] - axes[axis] - 0.5).ceil().max(0.0);
                let high = (center[axis] + axes[axis] - 0.5).floor().min(side - 1.0);
                // Empty if the shape is outside.
                (low as usize)..((high + 1.0).max(low) as usize)
            };
            for row in range(1) {
                let v = (row as f32 + 0.5 - center[1]) / axes[1];
                for column in range(0) {
                    let u = (column as f32 + 0.5 - center[0]) / axes[0];
                    if is_box || u * u + v * v <= 1.0 {
                        gray[row * self.side + column] = level;
                    }
                }
            }
        }
        let top = (self.levels - 1) as f32;
        gray.iter()
            .map(|value| {
                (value + self.noise * draw::normal(rng) + 0.5).floor().clamp(0.0, top) as u8
            })
            .collect()
    }
}
