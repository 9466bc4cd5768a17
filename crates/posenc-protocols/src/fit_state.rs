//! Checkpoints of coordinate networks: the finished runs, and the bytes of the running fit.

use posenc_experiments::record::Value;
use posenc_nets::train::{History, Schedule, fit};
use posenc_nets::{NetError, Session};
use serde::{Deserialize, Serialize};

use posenc_harness::checkpoint::{Checkpoint, Saved};

/// Reads and writes the checkpoint of a training.
pub struct Resumption<'a> {
    pub checkpoint: &'a Checkpoint,
    pub note: &'a dyn Fn(&str),
}

impl Resumption<'_> {
    /// Returns the finished runs of an interrupted job and the state of its running fit, or the initial state. `units`, `values` and `runs`
    /// are the numbers of the job. `describe` formats the note that the job resumes; its second argument is whether a fit was running.
    pub fn read(
        &self,
        [units, values, runs]: [usize; 3],
        describe: impl Fn(&Done, bool) -> String,
        remarks: &mut Vec<String>,
    ) -> (Done, Option<Vec<u8>>) {
        let why = match self.checkpoint.read() {
            Saved::Nothing => return (Done::nothing(units), None),
            Saved::Damaged(why) => why,
            Saved::State(done, bytes) if Done::fits(&done, units, values, runs) => {
                let fit = (!bytes.is_empty()).then_some(bytes);
                (self.note)(&describe(&done, fit.is_some()));
                return (done, fit);
            }
            Saved::State(..) => "does not fit the job's units and runs".to_owned(),
        };
        self.distrust(&why, remarks);
        (Done::nothing(units), None)
    }

    /// Trains from the saved state `resume` of this fit, or from the start, and writes checkpoints. `start` creates a new session; the
    /// trained session is returned.
    pub fn fit(
        &self,
        start: impl Fn() -> Result<Box<dyn Session>, NetError>,
        schedule: &Schedule,
        resume: Option<Vec<u8>>,
        done: &Done,
        remarks: &mut Vec<String>,
    ) -> Result<(Box<dyn Session>, History), NetError> {
        let mut after_epoch = |epoch: u64, save: &dyn Fn() -> Result<Vec<u8>, NetError>| {
            self.checkpoint.count_step();
            self.checkpoint.reached(epoch as f64 / schedule.epochs.max(1) as f64);
            // A session that cannot be saved reports the reason at its next epoch.
            if self.checkpoint.is_due()
                && let Ok(bytes) = save()
            {
                self.write(done, &[&bytes]);
            }
        };
        if let Some(bytes) = resume {
            let mut session = start()?;
            match fit(&mut *session, schedule, Some(&bytes), &mut after_epoch) {
                Err(NetError::State(why)) => self.distrust(&why, remarks),
                result => return Ok((session, result?)),
            }
        }
        let mut session = start()?;
        let history = fit(&mut *session, schedule, None, &mut after_epoch)?;
        Ok((session, history))
    }

    /// Writes the finished runs if a checkpoint is due.
    pub fn keep(&self, done: &Done) {
        if self.checkpoint.is_due() {
            self.write(done, &[]);
        }
    }

    /// Writes the finished runs before the first of several records is written, so that a job that is interrupted between records does
    /// not train again.
    pub fn keep_all(&self, done: &Done) {
        if !self.checkpoint.has_failed() {
            self.write(done, &[]);
        }
    }

    /// Reports that a checkpoint was not used, and the reason.
    pub fn distrust(&self, why: &str, remarks: &mut Vec<String>) {
        let remark = format!("ignored a checkpoint and restarted training: {why}");
        (self.note)(&format!("{remark} ({})", self.checkpoint.file().display()));
        remarks.push(remark);
    }

    /// Writes a checkpoint, or a note if writing fails.
    pub fn write(&self, state: &impl Serialize, bytes: &[&[u8]]) {
        if let Some(error) = self.checkpoint.write(state, bytes) {
            (self.note)(&format!(
                "cannot write a checkpoint; an interruption would lose the progress of the unit ({}: {error})",
                self.checkpoint.file().display()
            ));
        }
    }
}

/// A remark on the number of runs that diverged, if any.
pub fn divergence(values: &[Value]) -> Option<String> {
    let count = |metric: &str| values.iter().filter(|v| v.metric == metric).count();
    let (diverged, runs) = (count("diverged_epoch"), count("train_psnr"));
    (diverged > 0).then(|| {
        format!("{diverged} of {runs} runs diverged; their values are NaN; a lower learning rate may help")
    })
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// Number of values of the sweep with all runs finished.
    pub values: usize,
    /// Number of finished runs at the next value.
    pub runs: usize,
    /// The values of each unit so far; curves have the repeat as seed.
    pub records: Vec<Vec<Value>>,
}

impl Done {
    /// The initial state of `units` units, without finished runs.
    pub fn nothing(units: usize) -> Self {
        Done { values: 0, runs: 0, records: vec![Vec::new(); units] }
    }

    /// Whether a job with these numbers of units, values and runs can have this state.
    fn fits(&self, units: usize, values: usize, runs: usize) -> bool {
        self.records.len() == units
            && (self.values < values && self.runs <= runs
                || self.values == values && self.runs == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a round trip that changes numbers, including NaN and infinity, and a state of another job that is accepted.
    #[test]
    fn states_round_trip_or_are_refused() {
        let number = |v: f64| Value::new("test_psnr", v).at(0.1 + 0.2).signal("row 1").seed(3);
        let records = vec![vec![number(1.0 / 3.0), number(f64::INFINITY)], vec![number(f64::NAN)]];
        let done = Done { values: 1, runs: 2, records };
        let text = serde_json::to_string(&done).unwrap();
        let read: Done = serde_json::from_str(&text).unwrap();
        // NaN is not equal to itself, but its encoding is.
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert_eq!(read.records[0], done.records[0]);
        assert!(read.fits(2, 4, 5));
        for (units, values, runs) in [(1, 4, 5), (2, 1, 5), (2, 4, 1), (2, 0, 5)] {
            assert!(!read.fits(units, values, runs), "{units} {values} {runs}");
        }
    }
}
