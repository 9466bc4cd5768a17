//! How much memory a job takes, before it is run: the largest arrays that it holds at a time, roughly.
//!
//! The queue starts no more jobs at a time than fit into the memory of the machine, so that a run is not ended by the system in
//! the middle. A test compares the estimates with the peaks that records have.

use posenc_experiments::plan::Job;
use posenc_experiments::schema::Protocol;
use posenc_experiments::schema::protocol::{
    ClosedForm, Detr, Encoding, Network1d, NetworkNd, Reformer, STEP, Sweep, WidgetCaptioning,
};

use super::SignalShape;

/// What any job may take: buffers, decoded images, values of a record.
const LEAST: f64 = (64 << 20) as f64;
/// A weight with its gradient and two moments, in single precision.
const WEIGHT: f64 = 16.0;
/// A number of a record: its metric, places and value.
const RECORDED: f64 = 200.0;

/// Bytes that `units` units of a job take at most, roughly. Units that are not computed together follow each other.
pub fn memory(job: &Job<'_>, shape: SignalShape, units: usize) -> u64 {
    let of_variant = |sweep: Option<&Sweep>, name: &str| parameter(job, sweep, name);
    let d = |sweep| of_variant(sweep, "dimension").unwrap_or(256.0);
    let most = |numbers: &[f64]| numbers.iter().copied().fold(0.0, f64::max);
    let square = |n: f64| n * n;
    let bytes = match job.protocol() {
        Protocol::Embedding(s) => RECORDED * s.positions.0.len() as f64 * d(None),
        Protocol::StableRank(s) => {
            let n = most(&s.samples.0);
            8.0 * (2.0 * n * d(s.sweep.as_ref()) + 2.0 * square(n))
        }
        Protocol::SingularValues(s) => {
            let n = s.points as f64;
            8.0 * (3.0 * n * d(None) + 2.0 * square(n))
        }
        Protocol::FeatureCurve(s) => 32.0 * square(most(&s.dimensions.0)),
        Protocol::DistanceMap(s) => RECORDED * square(s.points as f64),
        Protocol::Memorization(s) => 32.0 * (s.samples as f64).max(s.dimension as f64).powi(2),
        Protocol::ClosedForm(s) => closed_form(shape, s, d(None)),
        Protocol::Network1d(s) => network_1d(units, s, d(s.sweep.as_ref())),
        Protocol::NetworkNd(s) => {
            let values = s.sweep.as_ref().map_or(1, |sweep| sweep.values.0.len());
            let at = |index| {
                let (settings, changes) = s.at(index);
                let swept = changes.iter().find(|(name, _)| *name == "dimension");
                network_nd(shape, &settings, swept.map_or(d(None), |(_, d)| *d))
            };
            (0..values).map(at).fold(0.0, f64::max)
        }
        Protocol::Complexity(s) => super::complexity::bytes(s),
        Protocol::KroneckerRank(s) => 24.0 * square(s.points as f64 * d(None)).max(1.0),
        Protocol::Similarity(s) => 8.0 * square(s.grid as f64) * s.dimension as f64,
        Protocol::ImageModel(s) => Transformer {
            layers: s.layers,
            width: s.width,
            heads: s.heads,
            feed_forward: s.feed_forward,
            batch: s.batch,
            length: s.side * s.side,
            ..Transformer::default()
        }
        .bytes(),
        Protocol::PixelEntropies(s) => 2.0 * (s.images * s.side * s.side) as f64,
        Protocol::Detection(s) => {
            let side = s.sides.iter().chain(&s.test_sides).copied().max().unwrap_or(1);
            let model = Transformer {
                layers: s.encoder_layers + s.decoder_layers,
                width: s.width,
                heads: s.heads,
                feed_forward: s.feed_forward,
                batch: s.batch,
                length: square((side / s.patch.max(1)) as f64) as usize + s.queries,
                ..Transformer::default()
            };
            model.bytes() + 12.0 * s.held_out as f64 * square(side as f64)
        }
        Protocol::Captioning(s) => Transformer {
            layers: s.encoder_layers + s.decoder_layers,
            width: s.width,
            heads: s.heads,
            feed_forward: s.feed_forward,
            batch: s.batch,
            // Nodes of a screen and words of its captions.
            length: 17 + 20,
            ..Transformer::default()
        }
        .bytes(),
        Protocol::IconLabels(s) => Transformer {
            layers: s.layers,
            width: s.width,
            heads: s.heads,
            feed_forward: s.feed_forward,
            batch: s.batch,
            length: s.most_boxes,
            ..Transformer::default()
        }
        .bytes(),
        Protocol::ReferredBox(s) => Transformer {
            layers: s.layers,
            width: s.width,
            heads: s.heads,
            feed_forward: s.feed_forward,
            batch: s.batch,
            length: s.most_boxes + s.longest,
            ..Transformer::default()
        }
        .bytes(),
        Protocol::Translation(s) => Transformer {
            layers: 2 * s.layers,
            width: s.width,
            heads: s.heads,
            feed_forward: s.feed_forward,
            others: 3.0 * (s.words * s.width) as f64,
            batch: s.batch,
            length: s.longest,
        }
        .bytes(),
        Protocol::WidgetCaptioning(s) => widget_captioning(s, job.group.data.is_some()),
        Protocol::Detr(s) => detr(s),
        Protocol::Reformer(s) => reformer(s),
        // Arrays of a few megabytes.
        _ => 0.0,
    };
    // A number beyond the range becomes the largest; NaN, which no setting gives, becomes 0.
    (LEAST + bytes) as u64
}

/// The largest value of a parameter of the variant's embedder along a sweep.
fn parameter(job: &Job<'_>, sweep: Option<&Sweep>, name: &str) -> Option<f64> {
    let swept = sweep.filter(|sweep| sweep.parameter == name);
    let swept = swept.map(|sweep| sweep.values.0.iter().copied().fold(0.0, f64::max));
    swept.or_else(|| job.variant.embedder.as_ref()?.number_of(name))
}

/// Side and axes of the signals, reduced to `side` if there is one.
fn reduced(shape: SignalShape, side: Option<usize>) -> (f64, i32) {
    (side.map_or(shape.side, |side| side as f64), shape.axes as i32)
}

fn closed_form(shape: SignalShape, s: &ClosedForm, d: f64) -> f64 {
    let (side, axes) = reduced(shape, s.side);
    let (points, weights) = (side.powi(axes), d.powi(axes));
    let corners = f64::from(1 << axes);
    let solver = match s.fraction {
        // Vectors of the iteration, and the blending of all points.
        Some(_) => 8.0 * 3.0 * 6.0 * weights + 12.0 * corners * points,
        None => 8.0 * 3.0 * 4.0 * side.max(d).powi(axes),
    };
    solver + 8.0 * 3.0 * 3.0 * points + 8.0 * 4.0 * side * d
}

fn network_1d(images: usize, s: &Network1d, d: f64) -> f64 {
    // Shorter steps give more points.
    let step = match &s.sweep {
        Some(sweep) if sweep.parameter == STEP => {
            sweep.values.0.iter().copied().fold(f64::INFINITY, f64::min)
        }
        _ => s.step as f64,
    };
    let points = 512.0 * (0.5 / step.max(1.0) + 1.0);
    let (depth, width) = (s.depth as f64, if s.depth == 0 { 1.0 } else { s.width as f64 });
    let weights = (d + 1.0) * width + (depth - 1.0).max(0.0) * width * (width + 1.0) + width;
    let run = WEIGHT * weights + 12.0 * points * (depth * width + 1.0);
    let runs = (images * s.lines.count() * s.repeats) as f64;
    // A task takes as many runs as fit into its limit, one at least.
    let task = run.max((runs * run).min(super::network_1d::LARGEST_TASK as f64));
    let values = s.sweep.as_ref().map_or(1, |sweep| sweep.values.0.len()) as f64;
    let curves = s.epochs.checked_div(s.curve_every).unwrap_or(0) as f64;
    let recorded = runs * (2.0 * curves + if s.reconstruction.is_some() { 2048.0 } else { 4.0 });
    2.0 * task + 20.0 * points * d + RECORDED * recorded * values
}

fn network_nd(shape: SignalShape, s: &NetworkNd, d: f64) -> f64 {
    let (side, axes) = reduced(shape, s.side);
    let points = side.powi(axes);
    let (depth, width) = (s.depth as f64, s.width as f64);
    let outputs = if s.depth == 0 { 3.0 } else { width };
    let hidden = if s.depth == 0 { 0.0 } else { depth * width * (width + 1.0) };
    // Activations are computed for some points at a time.
    let activations = 8.0 * points.min(8192.0) * (outputs + depth * width);
    let images = 8.0 * 3.0 * 4.0 * points;
    if s.encoding == Encoding::Complex {
        let corners = if s.fraction.is_some() { f64::from(1 << axes) } else { 0.0 };
        // With what is sampled in double precision, and products of the same size.
        let weights = 3.0 * WEIGHT * outputs * d.powi(axes);
        // Products along one axis after another.
        let partial = 8.0 * outputs * side.max(d).powi(axes - 1) * d.max(side);
        return weights
            + WEIGHT * hidden
            + partial
            + 12.0 * corners * points
            + activations
            + images;
    }
    use posenc_experiments::schema::protocol::Directions;
    let features = match s.directions {
        Directions::Grid => d.powi(axes),
        // Waves and codes of axes are computed for some points at a time.
        Directions::Joint | Directions::Axes | Directions::Diagonals => 16.0,
    };
    // The engine keeps them in two layouts.
    let inputs = 2.0 * 4.0 * points * features;
    inputs + WEIGHT * (features.max(d) * outputs + hidden) + activations + images
}

/// A transformer, roughly.
#[derive(Default)]
struct Transformer {
    layers: usize,
    width: usize,
    heads: usize,
    feed_forward: usize,
    /// Weights beside those of the layers.
    others: f64,
    batch: usize,
    /// Tokens of an item.
    length: usize,
}

impl Transformer {
    fn bytes(&self) -> f64 {
        let [layers, width, heads, feed_forward, batch, length] =
            [self.layers, self.width, self.heads, self.feed_forward, self.batch, self.length]
                .map(|n| n as f64);
        let weights = layers * (8.0 * width * width + 2.0 * width * feed_forward) + self.others;
        // Kept from the pass forward to the pass back: weights of attention, inputs and outputs of all parts.
        let token = 2.0 * heads * length + 12.0 * width + 3.0 * feed_forward;
        1.5 * WEIGHT * weights + 4.0 * layers * batch * length * token
    }
}

/// Bytes per pixel that the first 64 channels of a ResNet-50 and all that follows keep in training.
const RESNET_PIXEL: f64 = 2300.0;
/// Weights of a ResNet-50.
const RESNET_WEIGHTS: f64 = 24e6;

fn detr(s: &Detr) -> f64 {
    let widths = s.model.channels as f64 / 64.0;
    let short = s.resizing.short_sides.iter().copied().max().unwrap_or(0).max(s.resizing.measured);
    let short = short.min(s.resizing.longest) as f64;
    // A photograph is about a third longer than it is wide.
    let pixels = short * (short * 4.0 / 3.0).min(s.resizing.longest as f64);
    let tokens = pixels / 1024.0;
    let model = Transformer {
        layers: s.model.encoder_layers + s.model.decoder_layers,
        width: s.model.width,
        heads: s.model.heads,
        feed_forward: s.model.feed_forward,
        batch: s.batch,
        length: tokens as usize,
        ..Transformer::default()
    };
    let trained = if s.steps > 0 { s.batch as f64 } else { 0.5 };
    let backbone = widths * RESNET_PIXEL * pixels * trained;
    WEIGHT * widths * widths * RESNET_WEIGHTS + backbone + model.bytes()
}

fn reformer(s: &Reformer) -> f64 {
    let (model, hashing) = (&s.model, &s.model.hashing);
    let [width, feed_forward, layers] =
        [model.width, model.feed_forward, model.layers].map(|n| n as f64);
    let inner = (hashing.heads * hashing.head_width) as f64;
    let weights = layers * width * (3.0 * inner + 2.0 * feed_forward);
    let seen = (hashing.heads * hashing.rounds * 2 * hashing.chunk) as f64;
    // Of one layer at a time, since layers are reversible.
    let slot = 8.0 * width + 5.0 * feed_forward + 3.0 * seen;
    let images = 3.0 * s.held_out as f64 * (model.side * model.side) as f64;
    WEIGHT * weights + 4.0 * (s.batch * model.length()) as f64 * slot + images
}

fn widget_captioning(s: &WidgetCaptioning, has_data: bool) -> f64 {
    let model = &s.model;
    // As in the estimate of its seconds; generated screens are smaller.
    let nodes = if has_data { 90 } else { 24 };
    let rows = model.vocabulary as f64 * (model.word_width + model.width) as f64;
    let text = Transformer {
        layers: model.encoder_layers + model.decoder_layers,
        width: model.width,
        heads: model.heads,
        feed_forward: model.feed_forward,
        others: rows,
        batch: s.batch,
        length: nodes,
    };
    // Convolutions of the picture of each node.
    let pixels = 48.0 * (model.side() * model.side()) as f64 * (s.batch * nodes) as f64;
    // A screen of RICO takes about 25 kB.
    text.bytes() + pixels + if has_data { 18_000.0 * 25e3 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use posenc_experiments::plan::jobs;
    use posenc_experiments::record::{Provenance, Table};
    use posenc_experiments::selector::Selectors;
    use posenc_experiments::{Catalog, Profile};

    use super::*;

    /// What a process has held before it runs anything: code, definitions, data sets that stay in memory.
    const PROCESS: f64 = (256 << 20) as f64;

    /// Items with small units whose process had run larger ones before: memory that it has freed stays with it.
    const AFTER_LARGER: [&str; 2] = ["trading/eq12", "trading/prop1"];

    /// Catches estimates of less than half of what the records of the papers' experiments took. A record has the peak of its
    /// process, which ran two units at a time.
    #[test]
    fn estimates_are_at_least_half_of_recorded_peaks() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let catalog = Catalog::read(&root).unwrap();
        let manifest = posenc_data::Manifest::read(&root.join("data/manifest.yaml")).unwrap();
        let (mut compared, mut wrong) = (0, Vec::new());
        for experiment in &catalog.experiments {
            let folder = root.join("report/record").join(&experiment.paper);
            let provenance = folder.join(format!("{}.provenance.json", experiment.item));
            let Ok(provenance) = Provenance::read(&provenance) else { continue };
            let table = folder.join(format!("{}.csv", experiment.item));
            let table = Table::read(&table, &experiment.paper, &experiment.item).unwrap();
            let Some(peak) = provenance.peak_memory else { continue };
            let mut estimates = Vec::new();
            for profile in Profile::ALL {
                let all = jobs(std::iter::once(experiment), &Selectors::default(), profile);
                for job in all.iter().filter(|job| job.recorded_profile == profile) {
                    let is_its = |row: &&posenc_experiments::record::Row| {
                        row.group == job.group.id && row.profile == profile
                    };
                    if table.rows.iter().find(is_its).is_some() {
                        let shape = SignalShape::of(job, &manifest);
                        let units = job.resolved.signals.unwrap_or(1);
                        estimates.push(memory(job, shape, units) as f64);
                    }
                }
            }
            estimates.sort_by(|a, b| b.total_cmp(a));
            let estimated = PROCESS + estimates.iter().take(provenance.cores.max(1)).sum::<f64>();
            let line = format!(
                "{}: {:.0} MiB estimated, {} MiB recorded",
                experiment.id(),
                estimated / f64::from(1 << 20),
                peak >> 20
            );
            eprintln!("{line}");
            compared += 1;
            let is_after_larger = AFTER_LARGER.contains(&experiment.id().as_str());
            if estimated < 0.5 * peak as f64 && !is_after_larger {
                wrong.push(line);
            }
        }
        assert!(compared >= 20, "{compared} records with a peak");
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
