//! Sizes of signals, which estimates of time and memory need.

use posenc_data::{Kind, Manifest};
use posenc_experiments::plan::Job;

/// The size of a job's signals, taken from the manifest because a job has only the name of its data set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignalShape {
    /// Number of axes: 2 for images, 3 for clips.
    pub axes: u32,
    /// Positions along an axis. A user's signals are resized to this number.
    pub side: f64,
}

impl SignalShape {
    /// The shape of a job's signals. Jobs without a data set get the size of the papers' images, whose rows serve as 1-D signals.
    pub fn of(job: &Job<'_>, manifest: &Manifest) -> Self {
        let set = job.group.data.as_ref().and_then(|data| manifest.get(&data.set).ok());
        let (axes, side) = match set.map(|set| (set.kind, set.size)) {
            Some((Kind::Images, size)) => (2, size),
            Some((Kind::Clips, size)) => (3, size),
            None => (2, 512),
        };
        SignalShape { axes, side: f64::from(side) }
    }
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
        let catalog = Catalog::read(&root, posenc_protocols::KINDS).unwrap();
        let jobs = jobs(catalog.experiments.iter(), &Selectors::default(), Profile::Paper);
        let of = |set: &str| {
            let is_of = |job: &&Job<'_>| job.group.data.as_ref().is_some_and(|d| d.set == set);
            SignalShape::of(jobs.iter().find(is_of).unwrap(), &manifest)
        };
        assert_eq!(of("video-clips"), SignalShape { axes: 3, side: 128.0 });
        assert_eq!(of("div2k-test"), SignalShape { axes: 2, side: 512.0 });
    }
}
