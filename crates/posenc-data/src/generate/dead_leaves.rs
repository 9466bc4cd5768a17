//! The dead-leaves generator: shapes of all sizes hide one another, as objects do in photographs.
//!
//! Radii have density ∝ r⁻³, which makes the picture look alike at every scale and its amplitude
//! spectrum fall like 1/f (Lee, Mumford, Huang: Occlusion models for natural images, 2001).
//! Shading, soft shadows, veins and fractal noise on the surfaces make parts smooth and parts
//! rough. Shapes are painted from the back to the front, each inside its bounding box; light is
//! summed up in a space where the stored value is the square root of the intensity.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::draw;
use super::scene::{Color, SCENES, Scene, Sky};
use super::shape::{Outline, Shape};
use super::texture::{Texture, ease};

/// Side length for which the scenes' lengths are given.
pub(super) const REFERENCE_SIDE: f32 = 512.0;
/// Cosine and sine of 2π/5 and 2π/8, for the petals of rosettes.
const FIFTH: [f32; 2] = [0.309_017, 0.951_056_5];
const EIGHTH: [f32; 2] = [0.707_106_77, 0.707_106_77];

/// Intensities of red, green and blue.
pub(super) type Light = [f32; 3];

/// The pixels of image `index` of the set named `set`: `size` rows of `size` RGB triples.
pub(super) fn rgb_bytes(seed: u64, set: &str, index: usize, size: usize) -> Vec<u8> {
    let mut rng = posenc_math::random::stream(seed, &format!("dead-leaves/{set}/{index}"));
    let scene = &SCENES[index % SCENES.len()];
    let mut painter = Painter::new(&mut rng, scene, size);
    painter.backdrop();
    painter.shapes(&mut rng);
    painter.uneven_light(&mut rng);
    painter.develop(&mut rng)
}

/// A shape to be painted.
pub(super) struct Leaf {
    pub shape: Shape,
    pub center: [f32; 2],
    /// Direction of the shape's first axis.
    pub axis: [f32; 2],
    pub light: Light,
    /// Period of the pattern in pixels, zero for none.
    pub period: f32,
    /// Where on the texture the leaf was cut out.
    pub cut: [f32; 2],
    /// Rows above this one get no shadow: shapes throw none onto the sky.
    pub shadow_from: f32,
}

struct Painter<'a> {
    scene: &'a Scene,
    size: usize,
    /// Pixels of this image for a pixel of the reference size.
    scale: f32,
    /// Where the light comes from, in image coordinates.
    sun: [f32; 2],
    /// Magnification: the nearer the camera, the larger and fewer the shapes.
    zoom: f32,
    /// Width in pixels over which an outline fades, as a lens and the pixels' area make it.
    edge: f32,
    /// How much dark and bright are driven apart, from 0 to 1.
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

    /// Fills what the shapes do not cover: a rough ground and, where there is one, a sky with
    /// clouds and hills.
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

    /// Paints all shapes, the farthest first.
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
                    // What lies deep below gets little light.
                    let depth = 0.3 + 0.7 * (1.5 * age).min(1.0);
                    light = light.map(|value| value * depth);
                    (draw::between(rng, -0.05, 1.05) * side, 0.0)
                }
                Some(sky) => {
                    // On the plain nearness grows downwards; distant shapes are small and fade into
                    // the air.
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
        let first = intensity(palette[draw::index(rng, palette.len())]);
        let second = intensity(palette[draw::index(rng, palette.len())]);
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
        let [ellipses, leaves, boxes] = self.scene.mixture;
        let pick = draw::unit(rng) * (ellipses + leaves + boxes);
        let outline = if pick < ellipses {
            Outline::Ellipse
        } else if pick < ellipses + leaves {
            Outline::Leaf
        } else {
            Outline::Box
        };
        let [slim, wide] = self.scene.slimness;
        let b = radius * draw::between(rng, slim, wide);
        let [x, y] = draw::direction(rng);
        let axis = match (self.scene.upright, outline) {
            (false, _) => [x, y],
            // Houses stand on end, rocks lie flat.
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

    /// Paints one shape and the soft shadow it throws on what lies behind it.
    fn paint(&mut self, leaf: &Leaf) {
        let shape = leaf.shape;
        let [cos, sin] = leaf.axis;
        let [center_x, center_y] = leaf.center;
        // The shadow falls away from the sun and is as soft as it is long.
        let throw = (0.16 * shape.b).min(9.0 * self.scale) + 0.5;
        let edge = self.edge;
        let reach = shape.reach() + 2.0 * throw + edge;
        let last = self.size as f32 - 1.0;
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

        for y in rows {
            let dy = y as f32 - center_y;
            let shadow = if (y as f32) < leaf.shadow_from { 0.0 } else { 0.55 };
            for x in columns.clone() {
                let dx = x as f32 - center_x;
                let (u, v) = (cos * dx + sin * dy, cos * dy - sin * dx);
                let distance = shape.signed_distance(u, v);
                // Farther from the outline than the shadow reaches.
                if distance > 2.0 * throw + edge {
                    continue;
                }
                let cover = (0.5 - distance / edge).clamp(0.0, 1.0);
                let pixel = &mut self.canvas[y * self.size + x];
                if cover < 1.0 && shadow > 0.0 {
                    let (dx, dy) = (dx - offset_x, dy - offset_y);
                    let behind = shape.signed_distance(cos * dx + sin * dy, cos * dy - sin * dx);
                    let shade = shadow * ease((0.5 - 0.5 * behind / throw).clamp(0.0, 1.0));
                    *pixel = pixel.map(|value| value * (1.0 - shade));
                }
                if cover > 0.0 {
                    let level = surface(
                        self.scene,
                        &self.texture,
                        self.sun,
                        leaf,
                        [u, v],
                        [dx, dy],
                        self.scale,
                    );
                    *pixel = mix(*pixel, leaf.light.map(|value| value * level), cover);
                }
            }
        }
    }

    /// Large soft patches of more and less light over the whole picture.
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

    /// Intensities to bytes, with the noise of a camera (about one level).
    fn develop(&self, rng: &mut ChaCha8Rng) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(3 * self.canvas.len());
        for pixel in &self.canvas {
            let word = rng.next_u32();
            for (c, value) in pixel.iter().enumerate() {
                // Ten bits for each channel, uniform on ±1.5 levels.
                let noise = ((word >> (10 * c)) & 1023) as f32 * (3.0 / 1023.0) - 1.5;
                let stored = expose(*value);
                let stored = stored + self.contrast * (ease(stored) - stored);
                bytes.push((stored * 255.0 + noise + 0.5).clamp(0.0, 255.0) as u8);
            }
        }
        bytes
    }
}

/// An intensity as it is stored, from 0 to 1; bright light is compressed rather than cut off.
pub(super) fn expose(value: f32) -> f32 {
    let exposed =
        if value > 0.7 { 0.7 + (value - 0.7) / (1.0 + 2.0 * (value - 0.7)) } else { value };
    exposed.clamp(0.0, 1.0).sqrt()
}

/// Brightness of a leaf's surface at (u, v) in its own axes, (dx, dy) in the image's.
#[inline]
fn surface(
    scene: &Scene,
    texture: &Texture,
    sun: [f32; 2],
    leaf: &Leaf,
    [u, v]: [f32; 2],
    [dx, dy]: [f32; 2],
    scale: f32,
) -> f32 {
    let shape = leaf.shape;
    let (p, q) = (u / shape.a, v / shape.b);
    let facing = (dx * sun[0] + dy * sun[1]) / shape.a;
    let round =
        1.0 + scene.roundness * (0.35 - (p * p + q * q).min(1.5) + 0.8 * facing) + 0.12 * facing;
    let noise =
        1.0 + scene.grain * texture.nearest(u / scale + leaf.cut[0], v / scale + leaf.cut[1]);
    let mut level = round.max(0.1) * noise.max(0.2);
    if leaf.period > 0.0 {
        level *= pattern(leaf, u, v);
    }
    level
}

/// The sky at (u, v) in reference pixels, at this share of the way from the top to the horizon: a
/// gradient, clouds that are stretched along the horizon, and three rows of hills, the farther the
/// paler.
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

/// Veins on leaves, bands on ellipses, windows on boxes.
pub(super) fn pattern(leaf: &Leaf, u: f32, v: f32) -> f32 {
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

/// Share of the sky's color in a shape on the plain.
fn haze(sky: &Sky, nearness: f32) -> f32 {
    // The lower the horizon, the farther one sees.
    (0.35 + 0.5 * sky.horizon) * (1.0 - nearness) * (1.0 - nearness)
}

pub(super) fn mix(from: Light, to: Light, share: f32) -> Light {
    [0, 1, 2].map(|c| from[c] + (to[c] - from[c]) * share)
}

/// The square of the stored value stands for the intensity: near enough to sRGB, and exact to
/// invert.
pub(super) fn intensity(color: Color) -> Light {
    color.map(|value| (f32::from(value) / 255.0) * (f32::from(value) / 255.0))
}
