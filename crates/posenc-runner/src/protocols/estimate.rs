//! What a job takes, before it is run.

use posenc_data::{Kind, Manifest};
use posenc_experiments::plan::Job;
use posenc_experiments::schema::Protocol;
use posenc_math::embedder::{Family, find};

use super::{
    captioning, detection, detr, icon_labels, image_model, network_1d, network_nd, referred_box,
    reformer, translation, widget_captioning,
};

/// The size of a job's signals, from the manifest: a job has the name of its set only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignalShape {
    /// Number of axes: 2 for images, 3 for clips.
    pub axes: u32,
    /// Positions along an axis. A user's signals are brought to the same size.
    pub side: f64,
}

impl SignalShape {
    /// The shape of the signals of a job. Jobs without signals have the papers' images, whose rows are the lines.
    pub fn of(job: &Job<'_>, manifest: &Manifest) -> Self {
        let set = job.group.data.as_ref().and_then(|data| manifest.get(&data.set).ok());
        let (axes, side) = match set.map(|set| (set.kind, set.size)) {
            Some((Kind::Images, size)) => (2, size),
            Some((Kind::Clips { .. }, size)) => (3, size),
            None => (2, 512),
        };
        SignalShape { axes, side: f64::from(side) }
    }
}

/// What units take, roughly.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// Seconds on one core.
    pub seconds: f64,
    /// Floating-point operations of training and of what the trained model is measured on; 0 where nothing is trained.
    pub operations: f64,
}

impl Estimate {
    /// Seconds on one core that train nothing.
    pub fn of(seconds: f64) -> Self {
        Estimate { seconds, operations: 0.0 }
    }

    /// Training at so many operations per second.
    pub fn training(operations: f64, rate: f64) -> Self {
        Estimate { seconds: operations / rate, operations }
    }

    /// With so many more seconds.
    pub fn and(self, seconds: f64) -> Self {
        Estimate { seconds: self.seconds + seconds, ..self }
    }

    /// So many times.
    pub fn times(self, count: f64) -> Self {
        Estimate { seconds: count * self.seconds, operations: count * self.operations }
    }
}

impl std::iter::Sum for Estimate {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Estimate::default(), |a, b| Estimate {
            seconds: a.seconds + b.seconds,
            operations: a.operations + b.operations,
        })
    }
}

/// Rough seconds on one core for `units` units of a job.
pub fn cost(job: &Job<'_>, shape: SignalShape, units: usize) -> f64 {
    estimate(job, shape, units).seconds
}

/// What `units` units of a job take: counted operations over a rate that a present-day core reaches. Only the plan, the
/// order of jobs, the shares of a cluster and the page of costs depend on it.
pub fn estimate(job: &Job<'_>, shape: SignalShape, units: usize) -> Estimate {
    let embedder = job.variant.embedder.as_ref();
    let dimension = embedder.and_then(|e| e.number_of("dimension")).unwrap_or(1000.0);
    let each = match job.protocol() {
        Protocol::StableRank(s) => {
            let sweep = s.sweep.as_ref().map_or(1, |w| w.values.0.len()) as f64;
            let d = dimension;
            let kind = embedder.and_then(|e| find(&e.kind));
            let fourier = kind.is_some_and(|kind| kind.family == Family::Fourier);
            let per_n = |n: &f64| {
                let gram = if fourier { 0.0 } else { n * n * d / 20e9 };
                gram + n * d * 4e-9
            };
            Estimate::of(0.02 + sweep * s.samples.0.iter().map(per_n).sum::<f64>())
        }
        Protocol::Distance(s) => Estimate::of(s.displacements.0.len() as f64 * dimension * 4e-9),
        Protocol::FeatureCurve(s) => {
            let each = s.dimensions.0.iter().map(|d| d * d * 6e-10 + 0.003).sum::<f64>();
            Estimate::of(s.draws as f64 * each)
        }
        // At random positions it is found by iterations.
        Protocol::ClosedForm(s) => Estimate::of(match s.fraction {
            Some(_) => s.iterations.unwrap_or(100) as f64 * 0.04,
            None => 0.03,
        }),
        Protocol::Network1d(s) => return network_1d::estimate(job, shape, units, s),
        Protocol::NetworkNd(s) => network_nd::estimate(job, shape, s),
        Protocol::Complexity(s) => Estimate::of(s.repeats as f64 * s.sizes.0.len() as f64 * 0.005),
        Protocol::ImageModel(s) => image_model::estimate(s),
        Protocol::PixelEntropies(s) => Estimate::of(s.images as f64 * 2e-4),
        Protocol::Detection(s) => detection::estimate(s),
        Protocol::Captioning(s) => captioning::estimate(s),
        Protocol::IconLabels(s) => icon_labels::estimate(s),
        Protocol::ReferredBox(s) => referred_box::estimate(s),
        Protocol::WidgetCaptioning(s) => widget_captioning::estimate(s, job.group.data.is_some()),
        Protocol::Detr(s) => detr::estimate(s),
        Protocol::Reformer(s) => reformer::estimate(s),
        Protocol::Translation(s) => translation::estimate(s),
        Protocol::Errata(_) => Estimate::of(0.3),
        _ => Estimate::of(0.05),
    };
    each.times(units as f64)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use posenc_experiments::selector::Selectors;
    use posenc_experiments::{Catalog, Profile, plan::jobs};

    use super::*;

    /// Catches clips that are estimated as images: the estimate would be a hundred times too low.
    #[test]
    fn clips_of_the_manifest_have_three_axes() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let manifest = Manifest::read(&root.join("data/manifest.yaml")).unwrap();
        let catalog = Catalog::read(&root).unwrap();
        let jobs = jobs(catalog.experiments.iter(), &Selectors::default(), Profile::Paper);
        let of = |set: &str| {
            let is_of = |job: &&Job<'_>| job.group.data.as_ref().is_some_and(|d| d.set == set);
            SignalShape::of(jobs.iter().find(is_of).unwrap(), &manifest)
        };
        assert_eq!(of("video-clips"), SignalShape { axes: 3, side: 128.0 });
        assert_eq!(of("div2k-test"), SignalShape { axes: 2, side: 512.0 });
    }
}
