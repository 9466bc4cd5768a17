//! What a job takes, before it is run.

use posenc_experiments::plan::Job;
use posenc_experiments::schema::Protocol;
use posenc_math::embedder::ParameterValue;

use super::{
    captioning, detection, detr, icon_labels, image_model, network_1d, network_nd, referred_box,
    reformer, translation, widget_captioning,
};

/// Sets of the manifest that hold clips. A job does not know its data, and clips have an axis more.
const CLIPS: [&str; 2] = ["video-clips", "embedded-clips"];

/// Whether a job's signals are clips.
pub(super) fn is_of_clips(job: &Job<'_>) -> bool {
    job.group.data.as_ref().is_some_and(|data| CLIPS.contains(&data.set.as_str()))
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
pub fn cost(job: &Job<'_>, units: usize) -> f64 {
    estimate(job, units).seconds
}

/// What `units` units of a job take: counted operations over a rate that a present-day core reaches. Only the plan, the
/// order of jobs, the shares of a cluster and the page of costs depend on it.
pub fn estimate(job: &Job<'_>, units: usize) -> Estimate {
    let dimension = |fallback: f64| {
        job.variant
            .embedder
            .as_ref()
            .and_then(|e| match e.parameters.get("dimension") {
                Some(ParameterValue::Number(d)) => Some(*d),
                _ => None,
            })
            .unwrap_or(fallback)
    };
    let each = match job.protocol() {
        Protocol::StableRank(s) => {
            let sweep = s.sweep.as_ref().map_or(1, |w| w.values.0.len()) as f64;
            let d = dimension(1000.0);
            let fourier = matches!(
                job.variant.embedder.as_ref().map(|e| e.kind.as_str()),
                Some("rff" | "linf" | "logf")
            );
            let per_n = |n: &f64| {
                let gram = if fourier { 0.0 } else { n * n * d / 20e9 };
                gram + n * d * 4e-9
            };
            Estimate::of(0.02 + sweep * s.samples.0.iter().map(per_n).sum::<f64>())
        }
        Protocol::Distance(s) => {
            Estimate::of(s.displacements.0.len() as f64 * dimension(1000.0) * 4e-9)
        }
        Protocol::FeatureCurve(s) => {
            let each = s.dimensions.0.iter().map(|d| d * d * 6e-10 + 0.003).sum::<f64>();
            Estimate::of(s.draws as f64 * each)
        }
        // At random positions it is found by iterations.
        Protocol::ClosedForm(s) => Estimate::of(match s.fraction {
            Some(_) => s.iterations.unwrap_or(100) as f64 * 0.04,
            None => 0.03,
        }),
        Protocol::Network1d(s) => return network_1d::estimate(job, units, s),
        Protocol::NetworkNd(s) => network_nd::estimate(job, s),
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

    use posenc_data::{Kind, Manifest};

    /// Catches a set of clips that is taken for images: its estimates would be a hundred times too low.
    #[test]
    fn sets_of_clips_are_known() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/manifest.yaml");
        let manifest = Manifest::read(&file).unwrap();
        let is_clips = |set: &&posenc_data::DataSet| matches!(set.kind, Kind::Clips { .. });
        let mut sets: Vec<&str> =
            manifest.sets().iter().filter(is_clips).map(|set| set.id.as_str()).collect();
        sets.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(sets, super::CLIPS);
    }
}
