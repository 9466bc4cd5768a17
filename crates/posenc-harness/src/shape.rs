//! Sizes of signals, which estimates of time and memory need.

use posenc_data::{Kind, Manifest};
use posenc_experiments::plan::Job;

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
