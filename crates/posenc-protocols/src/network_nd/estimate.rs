//! Estimated time and memory of a unit.

use posenc_math::embedder::find;

use super::{Directions, Encoding, NetworkNd, Products};
use crate::memory::{WEIGHT, reduced};
use posenc_experiments::plan::Job;
use posenc_harness::protocol::Estimate;
use posenc_harness::shape::SignalShape;

/// Operations per second of the engine on one core while another job uses the other core.
const RATE: f64 = 95e9;

/// Seconds of Adam per parameter and step.
const ADAM: f64 = 1e-9;

/// Seconds to sample an initial weight of a hidden layer.
const SAMPLED: f64 = 4e-8;

/// Seconds per activation of a hidden layer and step.
const ACTIVATED: f64 = 4e-9;

/// Seconds per feature of a joint direction and point; each step computes them again.
const WAVE: f64 = 9e-10;

/// Seconds per blended point and step.
const BLENDED: f64 = 3e-8;

/// Estimates the time of one unit of the job.
pub fn estimate(job: &Job<'_>, shape: SignalShape, s: &NetworkNd) -> Estimate {
    let (axes, channels) = (f64::from(shape.axes), 3.0);
    let embedder = job.variant.embedder.as_ref();
    let side = s.side.map_or(shape.side, |side| side as f64);
    let share = match (s.fraction, s.grid_step()) {
        (Some(fraction), _) => fraction,
        (None, step) => (step.unwrap_or(2) as f64).powf(-axes),
    };
    let points = side.powf(axes) * share;
    let epochs = s.epochs as f64;
    let one = |index: usize| {
        // A sweep may vary the number of layers, which changes the arithmetic.
        let (s, changes) = s.at(index);
        let (depth, width) = (s.depth as f64, s.width as f64);
        let swept = changes.iter().find(|(name, _)| *name == "dimension").map(|(_, d)| *d);
        let d = swept.or_else(|| embedder?.number_of("dimension")).unwrap_or(256.0);
        if s.encoding == Encoding::Complex {
            let outputs = if s.depth == 0 { channels } else { width };
            let n = points.powf(1.0 / axes);
            // Forward and backward pass; with Gram matrices a single one.
            let on_grid = s.depth == 0 && s.fraction.is_none();
            let gram = on_grid && s.products != Some(Products::Residual);
            let passes = if gram { 1.0 } else { 2.0 };
            let weights = outputs * d.powf(axes);
            let product = 2.0 * axes * weights * if gram { d } else { n };
            // Matrices of narrow embedders are banded, which saves less time with many outputs.
            let kind = embedder.and_then(|e| find(&e.kind));
            let is_banded = kind.is_some_and(|kind| kind.nonzero.is_some());
            let banded = match (is_banded, s.depth) {
                (false, _) => 1.0,
                (true, 0) => 0.3,
                (true, _) => 0.7,
            };
            let blended = if s.fraction.is_some() { BLENDED * points } else { 0.0 };
            let operations = passes * product * banded;
            let mut others = blended + ADAM * weights;
            let mut once = 0.0;
            let mut tests = 0.0;
            if s.depth > 0 {
                others += ACTIVATED * points * width;
                once += SAMPLED * weights;
                // A test computes the outputs at all positions.
                tests += s.mean_of_last as f64 * 2.0 * axes * weights * side;
            }
            let training = Estimate::training(epochs * operations + tests, RATE);
            return training.and(epochs * others + once);
        }
        // Features that the first layer multiplies at every point; lookup tables cost little.
        let features = match s.directions {
            Directions::Joint => d,
            Directions::Grid => d.powf(axes),
            Directions::Axes | Directions::Diagonals => 8.0,
        };
        let outputs = if s.depth == 0 { channels } else { width };
        let hidden =
            if s.depth == 0 { 0.0 } else { (depth - 1.0) * width * width + width * channels };
        let forward = 2.0 * points * (features * outputs + hidden);
        let backward = 2.0 * points * (features * outputs + 2.0 * hidden);
        let tests = s.mean_of_last as f64 * (1.0 / share - 1.0).max(1.0);
        let waves = if s.directions == Directions::Joint { WAVE * points * d } else { 0.0 };
        Estimate::training(epochs * (forward + backward) + tests * forward, RATE)
            .and((epochs + tests) * waves)
    };
    (0..s.sweep.as_ref().map_or(1, |sweep| sweep.values.0.len())).map(one).sum()
}

/// Estimates the bytes of training at one value of the sweep, for an embedder of dimension `d`.
pub fn memory(shape: SignalShape, s: &NetworkNd, d: f64) -> f64 {
    let (side, axes) = reduced(shape, s.side);
    let points = side.powi(axes);
    let (depth, width) = (s.depth as f64, s.width as f64);
    let outputs = if s.depth == 0 { 3.0 } else { width };
    let hidden = if s.depth == 0 { 0.0 } else { depth * width * (width + 1.0) };
    // Activations are computed for up to 8192 points at a time.
    let activations = 8.0 * points.min(8192.0) * (outputs + depth * width);
    let images = 8.0 * 3.0 * 4.0 * points;
    if s.encoding == Encoding::Complex {
        let corners = if s.fraction.is_some() { f64::from(1 << axes) } else { 0.0 };
        // Includes the initial weights in double precision and products of the same size.
        let weights = 3.0 * WEIGHT * outputs * d.powi(axes);
        // Partial products along the axes.
        let partial = 8.0 * outputs * side.max(d).powi(axes - 1) * d.max(side);
        return weights
            + WEIGHT * hidden
            + partial
            + 12.0 * corners * points
            + activations
            + images;
    }
    let features = match s.directions {
        Directions::Grid => d.powi(axes),
        // Features of waves and axes are computed for some points at a time.
        Directions::Joint | Directions::Axes | Directions::Diagonals => 16.0,
    };
    // The engine stores the inputs in two layouts.
    let inputs = 2.0 * 4.0 * points * features;
    inputs + WEIGHT * (features.max(d) * outputs + hidden) + activations + images
}
