//! The dead-leaves generator: shapes of all sizes hide one another, as objects do in photographs.
//!
//! Radii have density ∝ r⁻³, which makes the picture look alike at every scale and its amplitude
//! spectrum fall like 1/f (Lee, Mumford, Huang: Occlusion models for natural images, 2001).
//! Shading, soft shadows, veins and fractal noise on the surfaces make parts smooth and parts
//! rough. Shapes are painted from the back to the front, each inside its bounding box; light is
//! summed up in a space where the stored value is the square root of the intensity.

use posenc_math::random::{below, stream};
use rand_chacha::ChaCha8Rng;

use super::brush::{Brush, Leaf, Light, develop, expose, intensity, mix, outline};
use super::draw;
use super::scene::{SCENES, Scene, Sky};
use super::shape::{Outline, Shape};
use super::texture::{Texture, ease};

/// Side length for which the scenes' lengths are given.
pub(super) const REFERENCE_SIDE: f32 = 512.0;
/// Cosine and sine of 2π/5 and 2π/8, for the petals of rosettes.
const FIFTH: [f32; 2] = [0.309_017, 0.951_056_5];
const EIGHTH: [f32; 2] = [0.707_106_77, 0.707_106_77];

/// The pixels of image `index` of the set named `set`: `size` rows of `size` RGB triples.
pub(super) fn rgb_bytes(seed: u64, set: &str, index: usize, size: usize) -> Vec<u8> {
    let mut rng = stream(seed, &format!("dead-leaves/{set}/{index}"));
    let scene = &SCENES[index % SCENES.len()];
    let mut painter = Painter::new(&mut rng, scene, size);
    painter.backdrop();
    painter.shapes(&mut rng);
    painter.uneven_light(&mut rng);
    painter.develop(&mut rng)
}

struct Painter<'a> {
    scene: &'a Scene,
    size: usize,
    scale: f32,
    sun: [f32; 2],
    /// Magnification: the nearer the camera, the larger and fewer the shapes.
    zoom: f32,
    /// Width in pixels over which an outline fades, due to the lens and the area of a pixel.
    edge: f32,
    /// Strength of the contrast enhancement, from 0 to 1.
    contrast: f32,
    texture: Texture,
    canvas: Vec<Light>,
}

impl<'a> Painter<'a> {
    fn new(rng: &mut ChaCha8Rng, scene: &'a Scene, size: usize) -> Self {
        let [x, y] = draw::direction(rng);
        Painter {
            scene,
            size,
            scale: size as f32 / REFERENCE_SIDE,
            // From above rather than from below.
            sun: [x, -y.abs()],
            zoom: draw::between(rng, 0.7, 1.7),
            edge: draw::between(rng, 0.9, 2.2),
            contrast: draw::unit(rng),
            texture: Texture::fractal(rng, scene.roughness),
            canvas: vec![intensity(scene.ground); size * size],
        }
    }

    /// Fills the area that no shape covers: a rough ground and, if the scene has one, a sky with clouds and hills.
    fn backdrop(&mut self) {
        let side = self.size as f32;
        let horizon = self.scene.sky.as_ref().map_or(0.0, |sky| sky.horizon * side);
        for y in 0..self.size {
            for x in 0..self.size {
                let (u, v) = (x as f32 / self.scale, y as f32 / self.scale);
                let pixel = &mut self.canvas[y * self.size + x];
                match &self.scene.sky {
                    Some(sky) if (y as f32) < horizon => {
                        *pixel = sky_light(sky, &self.texture, [u, v], y as f32 / horizon);
                    }
                    _ => {
                        let noise = 1.0 + 1.5 * self.scene.grain * self.texture.nearest(u, 2.0 * v);
                        *pixel = pixel.map(|value| value * noise.max(0.2));
                    }
                }
            }
        }
    }

    fn shapes(&mut self, rng: &mut ChaCha8Rng) {
        let n_shapes = (self.scene.n_shapes as f32 / (self.zoom * self.zoom)) as usize;
        for i in 0..n_shapes {
            let age = i as f32 / n_shapes as f32;
            let [low, high] = self.scene.radii;
            let mut radius = draw::radius(rng, low, high) * self.scale * self.zoom;
            let side = self.size as f32;
            let x = draw::between(rng, -0.05, 1.05) * side;
            let mut light = self.color(rng);
            let (y, shadow_from) = match &self.scene.sky {
                None => {
                    // Deep shapes get little light.
                    let depth = 0.3 + 0.7 * (1.5 * age).min(1.0);
                    light = light.map(|value| value * depth);
                    (draw::between(rng, -0.05, 1.05) * side, 0.0)
                }
                Some(sky) => {
                    // On the plain, nearness grows downwards. Distant shapes are small and fade into haze.
                    let nearness = age * age;
                    radius *= 0.2 + 0.8 * nearness;
                    let horizon = sky.horizon * side;
                    light = mix(light, intensity(sky.bottom), haze(sky, nearness));
                    let spread = draw::between(rng, -0.02, 0.02);
                    (horizon + (nearness + spread).max(0.0) * (1.05 * side - horizon), horizon)
                }
            };
            let leaf = self.leaf(rng, radius, [x, y], light, shadow_from);
            if radius > 9.0 * self.scale && draw::chance(rng, self.scene.rosettes) {
                self.rosette(rng, &leaf);
            } else {
                self.paint(&leaf);
            }
        }
    }

    /// A color between two of the palette, lighter or darker.
    fn color(&self, rng: &mut ChaCha8Rng) -> Light {
        let palette = &self.scene.palette;
        let first = intensity(palette[below(rng, palette.len())]);
        let second = intensity(palette[below(rng, palette.len())]);
        let brightness = draw::between(rng, 0.5, 1.45);
        let mixed = mix(first, second, draw::between(rng, 0.0, 0.35));
        mixed.map(|value| value * brightness * draw::between(rng, 0.92, 1.08))
    }

    fn leaf(
        &self,
        rng: &mut ChaCha8Rng,
        radius: f32,
        center: [f32; 2],
        light: Light,
        shadow_from: f32,
    ) -> Leaf {
        let outline = outline(rng, self.scene);
        let [slim, wide] = self.scene.slimness;
        let b = radius * draw::between(rng, slim, wide);
        let [x, y] = draw::direction(rng);
        let axis = match (self.scene.upright, outline) {
            (false, _) => [x, y],
            // Houses are upright, rocks lie flat.
            (true, Outline::Box) => [0.02 * x, if y < 0.0 { -1.0 } else { 1.0 }],
            (true, _) => [1.0, 0.1 * y],
        };
        let patterned = radius > 5.0 * self.scale && draw::chance(rng, self.scene.patterned);
        let period = if patterned { draw::between(rng, 0.12, 0.3) * radius } else { 0.0 };
        let cut = [draw::unit(rng) * 256.0, draw::unit(rng) * 256.0];
        let shape = Shape { outline, a: radius, b };
        Leaf { shape, center, axis, light, period, cut, shadow_from }
    }

    /// Five or eight petals around the leaf's center, and a disc on top.
    fn rosette(&mut self, rng: &mut ChaCha8Rng, leaf: &Leaf) {
        let radius = leaf.shape.a;
        let (n_petals, turn) = if draw::chance(rng, 0.5) { (5, FIFTH) } else { (8, EIGHTH) };
        let width = if n_petals == 5 { 0.3 } else { 0.2 };
        let shape = Shape { outline: Outline::Ellipse, a: 0.46 * radius, b: width * radius };
        let mut axis = leaf.axis;
        for _ in 0..n_petals {
            let center =
                [leaf.center[0] + 0.5 * radius * axis[0], leaf.center[1] + 0.5 * radius * axis[1]];
            self.paint(&Leaf { shape, center, axis, ..*leaf });
            axis = [axis[0] * turn[0] - axis[1] * turn[1], axis[0] * turn[1] + axis[1] * turn[0]];
        }
        let light = self.color(rng);
        let shape = Shape { outline: Outline::Ellipse, a: 0.24 * radius, b: 0.22 * radius };
        self.paint(&Leaf { shape, light, period: 0.0, ..*leaf });
    }

    fn paint(&mut self, leaf: &Leaf) {
        let (scene, texture, scale) = (self.scene, &self.texture, self.scale);
        let noise = |leaf: &Leaf, [u, v]: [f32; 2]| {
            scene.grain * texture.nearest(u / scale + leaf.cut[0], v / scale + leaf.cut[1])
        };
        let brush = Brush { scene, sun: self.sun, scale, edge: self.edge, shade: 0.55, noise };
        brush.paint(leaf, 1.0, self.size, &mut self.canvas);
    }

    /// Adds large soft patches of more and less light to the whole picture.
    fn uneven_light(&mut self, rng: &mut ChaCha8Rng) {
        if self.scene.sky.is_some() {
            return;
        }
        let slope = draw::direction(rng);
        for y in 0..self.size {
            for x in 0..self.size {
                let (u, v) = (x as f32 / self.size as f32, y as f32 / self.size as f32);
                let ramp = 0.3 * (slope[0] * (u - 0.5) + slope[1] * (v - 0.5));
                let patch = 0.14 * self.texture.smooth(3.0 * u, 3.0 * v);
                let level = (1.0 + ramp + patch).max(0.2);
                let pixel = &mut self.canvas[y * self.size + x];
                *pixel = pixel.map(|value| value * level);
            }
        }
    }

    /// Converts intensities to bytes, with noise of about one level.
    fn develop(&self, rng: &mut ChaCha8Rng) -> Vec<u8> {
        develop(&self.canvas, rng, 1.5, |value| {
            let stored = expose(value);
            stored + self.contrast * (ease(stored) - stored)
        })
    }
}

/// The sky at (u, v) in reference pixels; `height` is 0 at the top and 1 at the horizon. It has a gradient, clouds stretched along the
/// horizon, and three rows of hills, paler with distance.
fn sky_light(sky: &Sky, texture: &Texture, [u, v]: [f32; 2], height: f32) -> Light {
    let (top, bottom, cloud) = (intensity(sky.top), intensity(sky.bottom), intensity(sky.cloud));
    let noise = texture.smooth(0.05 * u, (0.06 + 0.12 * height) * v)
        + 0.2 * texture.smooth(0.3 * u, 0.7 * v);
    let cover = ease((0.45 * noise + 0.1).clamp(0.0, 1.0));
    let mut light = mix(mix(top, bottom, height), cloud, cover);
    for (row, share) in [(0u8, 0.3), (1, 0.5), (2, 0.7)] {
        let along = u / (90.0 - 20.0 * f32::from(row)) + 40.0 * f32::from(row);
        let ridge = texture.smooth(along, 17.0) + 0.3 * texture.smooth(5.0 * along, 91.0);
        if 1.0 - height < 0.16 - 0.05 * f32::from(row) + 0.05 * ridge {
            let rough = 1.0 + 0.05 * texture.nearest(u, v);
            light = mix(bottom, intensity(sky.hill), share).map(|value| value * rough);
        }
    }
    light
}

fn haze(sky: &Sky, nearness: f32) -> f32 {
    // The lower the horizon, the farther one sees.
    (0.35 + 0.5 * sky.horizon) * (1.0 - nearness) * (1.0 - nearness)
}
