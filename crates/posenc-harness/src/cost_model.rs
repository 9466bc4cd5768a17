//! How long work really takes: measured seconds per estimated second, for each kind of protocol.
//!
//! Estimates count operations and know nothing of the machine. What units took in this run and in earlier ones corrects them.

use std::collections::BTreeMap;
use std::path::Path;

use posenc_experiments::record::table::write_atomically;
use posenc_experiments::text::read_text;

/// Number of measurements per kind that count: the latest ones.
const SAMPLES: usize = 64;

/// Most bytes of the file: a hundred times what all protocols leave.
const MOST_BYTES: u64 = 1 << 22;

/// Name of the file below the output directory.
const FILE: &str = "pace.json";

/// Estimated and measured seconds of a unit, or of a job whose units are computed together.
type Sample = (f64, f64);

/// What has been measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CostModel {
    kinds: BTreeMap<String, Vec<Sample>>,
}

impl CostModel {
    /// What earlier runs left in a directory. Only estimates use this file, so a damaged one is ignored.
    pub fn read(out: &Path) -> Self {
        let text = read_text(&out.join(FILE), MOST_BYTES).unwrap_or_default();
        let kinds: BTreeMap<String, Vec<Sample>> = serde_json::from_str(&text).unwrap_or_default();
        let mut cost_model = CostModel::default();
        for (kind, samples) in kinds {
            samples
                .into_iter()
                .for_each(|(estimated, measured)| cost_model.add(&kind, estimated, measured));
        }
        cost_model
    }

    /// Keeps it for later runs. What cannot be written is not kept.
    pub fn write(&self, out: &Path) {
        if let Ok(text) = serde_json::to_string(&self.kinds) {
            let _ = write_atomically(&out.join(FILE), text.as_bytes());
        }
    }

    /// Adds a measurement, in seconds: work of a kind was estimated at `estimated` and took `measured`.
    pub fn add(&mut self, kind: &str, estimated: f64, measured: f64) {
        if !(estimated > 0.0 && estimated.is_finite() && measured >= 0.0 && measured.is_finite()) {
            return;
        }
        let samples = self.kinds.entry(kind.to_owned()).or_default();
        if samples.len() == SAMPLES {
            samples.remove(0);
        }
        samples.push((estimated, measured));
    }

    /// Scales an estimate in seconds by the kind's ratio of measured to estimated time, the median of its measurements weighted
    /// by their estimates. Without measurements of the kind, returns the estimate: other kinds may have units of milliseconds.
    pub fn seconds(&self, kind: &str, estimated: f64) -> f64 {
        let ratio = self.kinds.get(kind).and_then(|samples| weighted_median(samples));
        estimated * ratio.unwrap_or(1.0)
    }
}

fn weighted_median(samples: &[Sample]) -> Option<f64> {
    let mut ratios: Vec<Sample> =
        samples.iter().map(|(estimated, measured)| (measured / estimated, *estimated)).collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = 0.5 * ratios.iter().map(|(_, weight)| weight).sum::<f64>();
    let mut below = 0.0;
    ratios.into_iter().find_map(|(ratio, weight)| {
        below += weight;
        (below >= half).then_some(ratio)
    })
}

/// Seconds until the last of `workers` workers finishes if they take the waiting work in order. `in_flight` has the seconds left
/// of the jobs that they are running.
pub fn estimate_makespan(
    in_flight: &[f64],
    waiting: impl Iterator<Item = f64>,
    workers: usize,
) -> f64 {
    let mut ends = in_flight.to_vec();
    ends.resize(workers.max(in_flight.len()).max(1), 0.0);
    for seconds in waiting {
        // Few workers: a heap would be no faster.
        if let Some(first) = ends.iter_mut().min_by(|a, b| a.total_cmp(b)) {
            *first += seconds;
        }
    }
    ends.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a forecast that one long unit, or many short ones, throws off, and a kind whose estimate uses another although
    /// it was measured itself.
    #[test]
    fn the_median_is_weighted_by_what_was_estimated() {
        let mut cost_model = CostModel::default();
        assert_eq!(cost_model.seconds("a", 10.0), 10.0);
        cost_model.add("a", 100.0, 300.0);
        (0..50).for_each(|_| cost_model.add("a", 0.1, 5.0));
        assert_eq!(cost_model.seconds("a", 10.0), 30.0);
        assert_eq!(cost_model.seconds("b", 10.0), 10.0, "nothing of its own");
        cost_model.add("b", 1.0, 0.5);
        assert_eq!(cost_model.seconds("b", 10.0), 5.0);
        for (estimated, measured) in
            [(0.0, 1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY), (-1.0, 1.0)]
        {
            cost_model.add("c", estimated, measured);
        }
        assert!(!cost_model.kinds.contains_key("c"));
    }

    /// Catches a damaged file that ends the run, or that is read as numbers.
    #[test]
    fn what_was_measured_is_kept_and_damage_is_ignored() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(CostModel::read(directory.path()), CostModel::default());
        let mut cost_model = CostModel::default();
        (0..100).for_each(|i| cost_model.add("a", 1.0, f64::from(i)));
        cost_model.write(directory.path());
        assert_eq!(CostModel::read(directory.path()), cost_model);
        assert_eq!(cost_model.seconds("a", 1.0), 67.0, "the latest 64 count");
        std::fs::write(directory.path().join(FILE), "{\"a\":[[1").unwrap();
        assert_eq!(CostModel::read(directory.path()), CostModel::default());
    }

    /// Catches a time left that forgets that one long job ends alone.
    #[test]
    fn the_last_worker_ends_last() {
        assert_eq!(estimate_makespan(&[], [10.0, 1.0, 1.0, 1.0].into_iter(), 2), 10.0);
        assert_eq!(estimate_makespan(&[5.0], [2.0, 2.0].into_iter(), 2), 5.0);
        assert_eq!(estimate_makespan(&[], [1.0; 6].into_iter(), 2), 3.0);
        assert_eq!(estimate_makespan(&[], [].into_iter(), 0), 0.0);
    }
}
