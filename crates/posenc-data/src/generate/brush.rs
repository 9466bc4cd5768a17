//! Paints the leaves of images and clips: outlines, shadows, surfaces.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::draw;
use super::scene::{Color, Scene};
use super::shape::{Outline, Shape};
use super::texture::ease;

pub(super) type Light = [f32; 3];

pub(super) struct Leaf {
    pub shape: Shape,
    pub center: [f32; 2],
    /// Direction of the shape's first axis.
    pub axis: [f32; 2],
    pub light: Light,
    /// Period of the pattern in pixels, zero for none.
    pub period: f32,
    /// Offset of the leaf in the texture.
    pub cut: [f32; 2],
    /// Rows above this one get no shadow: shapes cast none onto the sky.
    pub shadow_from: f32,
}

pub(super) struct Brush<'a, N> {
    pub scene: &'a Scene,
    /// Direction of the light, in image coordinates.
    pub sun: [f32; 2],
    /// Pixels of this image per pixel of the reference size.
    pub scale: f32,
    /// Width in pixels over which an outline fades.
    pub edge: f32,
    /// Fraction of the light that a shadow removes.
    pub shade: f32,
    /// The surface noise of a leaf at (u, v) in its own axes, relative to the brightness.
    pub noise: N,
}

impl<N: Fn(&Leaf, [f32; 2]) -> f32> Brush<'_, N> {
    /// Paints one shape, `factor` times as large as at rest, and the soft shadow that it casts on the shapes behind it.
    pub(super) fn paint(&self, leaf: &Leaf, factor: f32, size: usize, canvas: &mut [Light]) {
        let shape = leaf.shape;
        let [cos, sin] = leaf.axis;
        let [center_x, center_y] = leaf.center;
        // The shadow falls away from the sun, and its blur equals its length.
        let throw = (0.16 * shape.b).min(9.0 * self.scale) + 0.5;
        let reach = factor * shape.reach() + 2.0 * throw + self.edge;
        let last = size as f32 - 1.0;
        if center_x + reach < 0.0
            || center_x - reach > last
            || center_y + reach < 0.0
            || center_y - reach > last
        {
            return;
        }
        let columns = (center_x - reach).max(0.0) as usize..=(center_x + reach).min(last) as usize;
        let rows = (center_y - reach).max(0.0) as usize..=(center_y + reach).min(last) as usize;
        let (offset_x, offset_y) = (-throw * self.sun[0], -throw * self.sun[1]);
        // In the shape's own coordinates at rest.
        let own =
            |dx: f32, dy: f32| ((cos * dx + sin * dy) / factor, (cos * dy - sin * dx) / factor);
        for y in rows {
            let dy = y as f32 - center_y;
            let shadow = if (y as f32) < leaf.shadow_from { 0.0 } else { self.shade };
            for x in columns.clone() {
                let dx = x as f32 - center_x;
                let (u, v) = own(dx, dy);
                let distance = factor * shape.signed_distance(u, v);
                // Farther from the outline than the shadow reaches.
                if distance > 2.0 * throw + self.edge {
                    continue;
                }
                let cover = (0.5 - distance / self.edge).clamp(0.0, 1.0);
                let pixel = &mut canvas[y * size + x];
                if cover < 1.0 && shadow > 0.0 {
                    let (p, q) = own(dx - offset_x, dy - offset_y);
                    let behind = factor * shape.signed_distance(p, q);
                    let shade = shadow * ease((0.5 - 0.5 * behind / throw).clamp(0.0, 1.0));
                    *pixel = pixel.map(|value| value * (1.0 - shade));
                }
                if cover > 0.0 {
                    let level = self.surface(leaf, [u, v], [dx / factor, dy / factor]);
                    *pixel = mix(*pixel, leaf.light.map(|value| value * level), cover);
                }
            }
        }
    }

    /// Brightness of a leaf's surface at (u, v) in its own axes, (dx, dy) in the image's.
    #[inline]
    fn surface(&self, leaf: &Leaf, [u, v]: [f32; 2], [dx, dy]: [f32; 2]) -> f32 {
        let shape = leaf.shape;
        let (p, q) = (u / shape.a, v / shape.b);
        let facing = (dx * self.sun[0] + dy * self.sun[1]) / shape.a;
        let round = 1.0
            + self.scene.roundness * (0.35 - (p * p + q * q).min(1.5) + 0.8 * facing)
            + 0.12 * facing;
        let noise = 1.0 + (self.noise)(leaf, [u, v]);
        let level = round.max(0.1) * noise.max(0.2);
        if leaf.period > 0.0 { level * pattern(leaf, u, v) } else { level }
    }
}

pub(super) fn outline(rng: &mut ChaCha8Rng, scene: &Scene) -> Outline {
    let [ellipses, leaves, boxes] = scene.mixture;
    let pick = draw::unit(rng) * (ellipses + leaves + boxes);
    if pick < ellipses {
        Outline::Ellipse
    } else if pick < ellipses + leaves {
        Outline::Leaf
    } else {
        Outline::Box
    }
}

/// Converts intensities to bytes, with camera noise that is uniform on ±`levels`. `stored` maps an intensity to a stored value from 0 to 1.
pub(super) fn develop(
    canvas: &[Light],
    rng: &mut ChaCha8Rng,
    levels: f32,
    stored: impl Fn(f32) -> f32,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(3 * canvas.len());
    for pixel in canvas {
        let word = rng.next_u32();
        for (c, &value) in pixel.iter().enumerate() {
            // Ten bits for each channel.
            let noise = ((word >> (10 * c)) & 1023) as f32 * (2.0 * levels / 1023.0) - levels;
            bytes.push((stored(value) * 255.0 + noise + 0.5).clamp(0.0, 255.0) as u8);
        }
    }
    bytes
}

/// An intensity after tone mapping, from 0 to 1; bright light is compressed, not clipped.
pub(super) fn expose(value: f32) -> f32 {
    let exposed =
        if value > 0.7 { 0.7 + (value - 0.7) / (1.0 + 2.0 * (value - 0.7)) } else { value };
    exposed.clamp(0.0, 1.0).sqrt()
}

/// Veins on leaves, bands on ellipses, windows on boxes.
fn pattern(leaf: &Leaf, u: f32, v: f32) -> f32 {
    let (a, b, period) = (leaf.shape.a, leaf.shape.b, leaf.period);
    match leaf.shape.outline {
        Outline::Leaf => {
            let main = if v.abs() < 0.045 * b + 0.4 { 1.3 } else { 1.0 };
            main * (0.86 + 0.26 * wave((u - 0.8 * v.abs()) / period))
        }
        Outline::Ellipse => 0.85 + 0.3 * wave((v + 0.15 * u * u / a) / period),
        Outline::Box => {
            let in_frame = u.abs() < a - 0.4 * period && v.abs() < b - 0.4 * period;
            let window = wave(u / period) > 0.55 && wave(1.2 * v / period) > 0.45;
            if in_frame && window { 0.42 } else { 1.0 }
        }
    }
}

/// A smooth wave of period 1 between 0 (at whole numbers) and 1.
pub(super) fn wave(t: f32) -> f32 {
    let fraction = t - t.floor();
    ease(1.0 - (2.0 * fraction - 1.0).abs())
}

pub(super) fn mix(from: Light, to: Light, share: f32) -> Light {
    [0, 1, 2].map(|c| from[c] + (to[c] - from[c]) * share)
}

/// The intensity is the square of the stored value, which approximates sRGB and inverts exactly.
pub(super) fn intensity(color: Color) -> Light {
    let [_, red, green, blue] = color.to_be_bytes();
    [red, green, blue].map(|value| (f32::from(value) / 255.0) * (f32::from(value) / 255.0))
}
