//! Estimated time of a job.

use posenc_math::embedder::find;

use super::run::COLUMNS;
use super::{Network1d, STEP};
use posenc_harness::protocol::{Estimate, Workload};

/// Operations per second of the engine on one core, for networks and for affine models, which have few columns.
const RATE: f64 = 90e9;
const NARROW_RATE: f64 = 45e9;

/// Bytes per second of an embedding that does not stay in the caches.
const BANDWIDTH: f64 = 10e9;

/// Seconds of Adam per parameter and step, if the parameters fit into the caches and if they do not.
const ADAM: f64 = 1e-9;
const WIDE_ADAM: f64 = 2e-9;

/// Estimates the time of a job; a unit is one image.
pub fn estimate(workload: &Workload<'_>, s: &Network1d) -> Estimate {
    let Workload { job, shape, units: images } = *workload;
    let runs = (images * s.lines.count() * s.repeats) as f64;
    let parameter = |name: &str, value: Option<f64>| match (&s.sweep, value) {
        (Some(sweep), Some(value)) if sweep.parameter == name => Some(value),
        _ => job.variant.embedder.as_ref()?.number_of(name),
    };
    let kind = job.variant.embedder.as_ref().and_then(|e| find(&e.kind));
    let one = |value: Option<f64>| {
        let d = parameter("dimension", value).unwrap_or(2.0);
        // Share of the features that are not zero at a position.
        let nonzero = kind.and_then(|kind| kind.nonzero);
        let share = nonzero.map_or(1.0, |share| share(&|name| parameter(name, value)));
        let features = (d * share.min(1.0)).max(1.0);
        let step = match (&s.sweep, value) {
            (Some(sweep), Some(value)) if sweep.parameter == STEP => value,
            _ => s.step as f64,
        };
        let points = (shape.side / (2.0 * step)).ceil();
        let (depth, width) = (s.depth as f64, if s.depth == 0 { 1.0 } else { s.width as f64 });
        let hidden = if s.depth == 0 { 0.0 } else { (depth - 1.0) * width * width + width };
        // Forward: two operations for each weight and point. Backward: two for the gradient of each weight and, except
        // in the first layer, two for that of the activations.
        let forward = 2.0 * points * (features * width + hidden);
        let backward = 2.0 * points * (features * width + 2.0 * hidden);
        let epochs = s.epochs as f64;
        let points_of_curves = if s.curve_every > 0 { epochs / s.curve_every as f64 } else { 0.0 };
        let tests = (s.mean_of_last as f64).min(epochs) + points_of_curves;
        let columns = if s.depth == 0 && !s.redraw {
            (runs / COLUMNS as f64).ceil() * COLUMNS as f64
        } else {
            runs
        };
        let operations = columns * (epochs * (forward + backward) + tests * forward);
        let (rate, adam) = if s.depth == 0 { (NARROW_RATE, WIDE_ADAM) } else { (RATE, ADAM) };
        // With few columns, memory bandwidth limits the products: each pass reads the embedding.
        let reading =
            epochs * 2.0 * 4.0 * points * features / BANDWIDTH * if s.redraw { runs } else { 1.0 };
        let parameters = (d + 1.0) * width + hidden + depth * width;
        let layers =
            if s.layers { runs * depth * points_of_curves * 0.3e-3 * width / 256.0 } else { 0.0 };
        let embeddings = if s.redraw { runs } else { 1.0 };
        let seconds = (operations / rate).max(reading)
            + columns * epochs * parameters * adam
            + layers
            + embeddings * 2.0 * points * d * (8e-9 + points / 40e9);
        Estimate { seconds, operations }
    };
    s.swept_values().into_iter().map(one).sum()
}
