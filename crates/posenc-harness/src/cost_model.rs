//! Cost model: the ratio of measured to estimated seconds for each kind of protocol.
//!
//! Estimates count operations and ignore the machine. Times that were measured in this and earlier runs correct them.

use std::collections::BTreeMap;
use std::path::Path;

use posenc_experiments::record::table::write_atomically;
use posenc_experiments::text::read_text;

/// Number of measurements that are kept per kind; older ones are dropped.
const SAMPLES: usize = 64;

/// Maximum file size in bytes, a hundred times the size for all protocols.
const MOST_BYTES: u64 = 1 << 22;

/// Name of the file in the output directory.
const FILE: &str = "pace.json";

/// Estimated and measured seconds of a unit, or of a job whose units are computed together.
type Sample = (f64, f64);

/// Estimated and measured times by kind of protocol.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CostModel {
    kinds: BTreeMap<String, Vec<Sample>>,
}

impl CostModel {
    /// Reads the measurements of earlier runs from a directory. Only estimates use this file, so a damaged file is ignored.
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

    /// Writes the measurements for later runs. Errors are ignored.
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

    /// Scales an estimate in seconds by the kind's ratio of measured to estimated time, the median of its measurements weighted by their
    /// estimates. Without measurements of the kind, returns the estimate: units of other kinds may take milliseconds, so their ratios do
    /// not apply.
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

    /// Catches a ratio that one long unit or many short ones distort, and a kind that uses the ratio of another.
    #[test]
    fn the_median_is_weighted_by_the_estimates() {
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

    /// Catches measurements that are lost between runs, and a damaged file that causes an error or yields measurements.
    #[test]
    fn measurements_are_kept_and_damage_is_ignored() {
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

    /// Catches an estimate that divides the work evenly although one long job finishes last.
    #[test]
    fn the_makespan_ends_with_the_last_worker() {
        assert_eq!(estimate_makespan(&[], [10.0, 1.0, 1.0, 1.0].into_iter(), 2), 10.0);
        assert_eq!(estimate_makespan(&[5.0], [2.0, 2.0].into_iter(), 2), 5.0);
        assert_eq!(estimate_makespan(&[], [1.0; 6].into_iter(), 2), 3.0);
        assert_eq!(estimate_makespan(&[], [].into_iter(), 0), 0.0);
    }
}
