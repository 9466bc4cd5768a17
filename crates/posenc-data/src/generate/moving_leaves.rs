//! The moving dead-leaves generator: the shapes of [`super::dead_leaves`] in motion.
//!
//! Every shape has a velocity, a slow turn and a slow pulsation; a panning camera shifts near shapes faster than far ones. Shapes keep
//! their order in depth, so that edges cover and uncover the background. The surface noise moves with its shape. A shape that leaves the
//! picture far enough reappears on the other side, so clips may have any length. Nothing depends on that length, so a shorter clip is the
//! beginning of a longer one.

use posenc_math::random::{below, stream};
use rand_chacha::ChaCha8Rng;

use super::brush::{Brush, Leaf, Light, develop, expose, intensity, mix, outline, wave};
use super::dead_leaves::REFERENCE_SIDE;
use super::draw;
use super::scene::{SCENES, Scene};
use super::shape::Shape;
use super::texture::Texture;

/// Side of the square in which shapes move around, as a multiple of the picture's.
const WORLD: f32 = 2.0;
/// Scale of shapes relative to a still image. Frames are smaller, and shapes below three pixels do not visibly move.
const ZOOM: f32 = 2.2;
/// Number of shapes relative to a still image of the same area, enough to hide nearly all of the ground.
const DENSITY: f32 = 0.1;
/// Width in pixels over which an outline fades, which keeps moving edges from flickering.
const EDGE: f32 = 1.3;

/// `frames` frames of `size` rows of `size` RGB triples: clip `index` of the set named `set`.
pub(super) fn rgb_bytes(seed: u64, set: &str, index: usize, frames: usize, size: usize) -> Vec<u8> {
    let label = format!("moving-dead-leaves/{set}/{index}");
    let mut rng = stream(seed, &label);
    let mut noise = stream(seed, &format!("{label}/noise"));
    // Scenes with a horizon are skipped: moving shapes would have to shrink towards it.
    let scenes: Vec<&Scene> = SCENES.iter().filter(|scene| scene.sky.is_none()).collect();
    let mut stage = Stage::new(&mut rng, scenes[index % scenes.len()], size);
    let mut bytes = Vec::with_capacity(3 * frames * size * size);
    for t in 0..frames {
        stage.paint(t as f32);
        // Noise of half a level.
        bytes.extend(develop(&stage.canvas, &mut noise, 0.75, expose));
        stage.advance();
    }
    bytes
}

struct Mover {
    /// The center is that of the current frame; the shape is without pulsation.
    leaf: Leaf,
    /// Pixels per frame, without the camera's motion.
    velocity: [f32; 2],
    /// Cosine and sine of the turn from frame to frame.
    turn: [f32; 2],
    /// Pulsation: maximum relative change of size, period in frames, initial phase.
    pulse: [f32; 3],
    /// From 0 (farthest) to 1 (nearest); near shapes follow more of the camera's motion.
    nearness: f32,
}

struct Stage<'a> {
    scene: &'a Scene,
    size: usize,
    scale: f32,
    sun: [f32; 2],
    /// Pixels by which the camera shifts the nearest shapes from frame to frame.
    pan: [f32; 2],
    texture: Texture,
    /// From the farthest to the nearest.
    movers: Vec<Mover>,
    canvas: Vec<Light>,
}

impl<'a> Stage<'a> {
    fn new(rng: &mut ChaCha8Rng, scene: &'a Scene, size: usize) -> Self {
        let scale = size as f32 / REFERENCE_SIDE;
        let [x, y] = draw::direction(rng);
        let texture = Texture::fractal(rng, scene.roughness);
        let speed = draw::between(rng, 0.6, 2.2) * scale;
        let pan = draw::direction(rng).map(|part| part * speed);
        let n = (scene.n_shapes as f32 * DENSITY * WORLD * WORLD) as usize;
        let movers = (0..n).map(|i| mover(rng, scene, size, i as f32 / n as f32)).collect();
        let sun = [x, -y.abs()];
        Stage { scene, size, scale, sun, pan, texture, movers, canvas: vec![[0.0; 3]; size * size] }
    }

    fn advance(&mut self) {
        let side = self.size as f32;
        let around = |at: f32| (at + 0.5 * side).rem_euclid(WORLD * side) - 0.5 * side;
        for mover in &mut self.movers {
            let [x, y] = mover.leaf.center;
            let share = 0.25 + 0.75 * mover.nearness;
            mover.leaf.center = [
                around(x + mover.velocity[0] + share * self.pan[0]),
                around(y + mover.velocity[1] + share * self.pan[1]),
            ];
            let ([cos, sin], [p, q]) = (mover.leaf.axis, mover.turn);
            mover.leaf.axis = [cos * p - sin * q, cos * q + sin * p];
        }
    }

    fn paint(&mut self, t: f32) {
        let ground = intensity(self.scene.ground);
        let shift = self.pan.map(|part| 0.25 * part * t);
        for y in 0..self.size {
            for x in 0..self.size {
                let (u, v) = (x as f32 - shift[0], y as f32 - shift[1]);
                let noise = 1.0 + 1.5 * self.scene.grain * self.texture.smooth(0.7 * u, 0.7 * v);
                self.canvas[y * self.size + x] = ground.map(|value| value * noise.max(0.2));
            }
        }
        // The noise is interpolated: cells that jumped from pixel to pixel would flicker.
        let (scene, texture) = (self.scene, &self.texture);
        let noise = |leaf: &Leaf, [u, v]: [f32; 2]| {
            1.3 * scene.grain * texture.smooth(0.8 * u + leaf.cut[0], 0.8 * v + leaf.cut[1])
        };
        let (sun, scale) = (self.sun, self.scale);
        let brush = Brush { scene, sun, scale, edge: EDGE, shade: 0.5, noise };
        for mover in &self.movers {
            let [share, period, start] = mover.pulse;
            let factor = 1.0 + share * (2.0 * wave(t / period + start) - 1.0);
            brush.paint(&mover.leaf, factor, self.size, &mut self.canvas);
        }
    }
}

/// A random shape; `nearness` is 0 for the farthest and 1 for the nearest.
fn mover(rng: &mut ChaCha8Rng, scene: &Scene, size: usize, nearness: f32) -> Mover {
    let (side, scale) = (size as f32, size as f32 / REFERENCE_SIDE);
    let [low, high] = scene.radii;
    let radius = draw::radius(rng, ZOOM * low, ZOOM * high) * scale;
    let outline = outline(rng, scene);
    let [slim, wide] = scene.slimness;
    let shape = Shape { outline, a: radius, b: radius * draw::between(rng, slim, wide) };
    let patterned = draw::chance(rng, scene.patterned) && radius > 8.0;
    let period = if patterned { draw::between(rng, 0.2, 0.4) * radius } else { 0.0 };

    let first = intensity(scene.palette[below(rng, scene.palette.len())]);
    let second = intensity(scene.palette[below(rng, scene.palette.len())]);
    // Deep shapes get little light.
    let depth = 0.3 + 0.7 * (1.5 * nearness).min(1.0);
    let brightness = depth * draw::between(rng, 0.5, 1.45);
    let light = mix(first, second, draw::between(rng, 0.0, 0.35)).map(|value| value * brightness);

    // (1 - k², 2k) / (1 + k²) lies on the unit circle, so it is a cosine and a sine without calling either.
    let k = draw::between(rng, -0.006, 0.006);
    let turn = [(1.0 - k * k) / (1.0 + k * k), 2.0 * k / (1.0 + k * k)];
    let speed = draw::between(rng, 0.0, 0.9) * scale;
    let center = [0, 1].map(|_| draw::between(rng, -0.5, WORLD - 0.5) * side);
    Mover {
        leaf: Leaf {
            shape,
            center,
            axis: draw::direction(rng),
            light,
            period,
            cut: [draw::unit(rng) * 256.0, draw::unit(rng) * 256.0],
            shadow_from: 0.0,
        },
        velocity: draw::direction(rng).map(|part| part * speed),
        turn,
        pulse: [draw::between(rng, 0.0, 0.15), draw::between(rng, 80.0, 240.0), draw::unit(rng)],
        nearness,
    }
}
