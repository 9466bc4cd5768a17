//! What a training in flight has reached, as the body of a checkpoint: the length of the finished
//! part, the finished part as JSON, and the bytes of the fit in flight.

use posenc_experiments::record::Value;
use posenc_nets::train::{History, Schedule, fit};
use posenc_nets::{NetError, Session};
use serde::{Deserialize, Serialize};

use posenc_harness::checkpoint::{Checkpoint, Saved};

/// The checkpoint of a training, and whom to tell about it.
pub struct Resumption<'a> {
    /// Where the training is kept.
    pub checkpoint: &'a Checkpoint,
    /// Tells the person who waits.
    pub note: &'a dyn Fn(&str),
}

impl Resumption<'_> {
    /// What a killed run left, or the beginning. `units`, `values` and `runs` are what the job has;
    /// `goes_on` says of what is left, and whether a fit was in flight, that it is taken up.
    pub fn read(
        &self,
        [units, values, runs]: [usize; 3],
        goes_on: impl Fn(&Done, bool) -> String,
        remarks: &mut Vec<String>,
    ) -> (Done, Option<Vec<u8>>) {
        let why = match self.checkpoint.read() {
            Saved::Nothing => return (Done::nothing(units), None),
            Saved::Damaged(why) => why,
            Saved::Body(body) => match Done::decode(&body, units, values, runs) {
                Ok((done, fit)) => {
                    (self.note)(&goes_on(&done, fit.is_some()));
                    return (done, fit);
                }
                Err(why) => why,
            },
        };
        self.distrust(&why, remarks);
        (Done::nothing(units), None)
    }

    /// Trains from what a killed run left of this fit, or from the beginning, and keeps what is
    /// reached. `start` gives a session at its beginning; the one that was trained comes back.
    ///
    /// # Errors
    ///
    /// Those of the engine.
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
            // A session that cannot be saved says why at its next epoch.
            if self.checkpoint.is_due()
                && let Ok(bytes) = save()
            {
                self.write(&[&encode(done), &bytes]);
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

    /// Keeps what is finished, if it is time to.
    pub fn keep(&self, done: &Done) {
        if self.checkpoint.is_due() {
            self.write(&[&encode(done)]);
        }
    }

    /// Keeps what is finished before the first of several records is written: a run that is killed between them does not
    /// train again.
    pub fn keep_all(&self, done: &Done) {
        if !self.checkpoint.has_failed() {
            self.write(&[&encode(done)]);
        }
    }

    /// Says that a checkpoint was not used, and why.
    pub fn distrust(&self, why: &str, remarks: &mut Vec<String>) {
        let remark = format!("a checkpoint was not used, training began anew: {why}");
        (self.note)(&format!("{remark} ({})", self.checkpoint.file().display()));
        remarks.push(remark);
    }

    /// Writes a checkpoint; a note says where it cannot.
    pub fn write(&self, body: &[&[u8]]) {
        if let Some(error) = self.checkpoint.write(body) {
            (self.note)(&format!(
                "no checkpoint can be written, an interruption will lose the unit ({}: {error})",
                self.checkpoint.file().display()
            ));
        }
    }
}

/// Says how many runs diverged.
pub fn divergence(values: &[Value]) -> Option<String> {
    let count = |metric: &str| values.iter().filter(|v| v.metric == metric).count();
    let (diverged, runs) = (count("diverged_epoch"), count("train_psnr"));
    (diverged > 0).then(|| {
        format!("{diverged} of {runs} runs diverged; their values are NaN, a lower learning rate may help")
    })
}

/// Splits off a list of elements of `size` bytes each, which follows its length. Returns the list and the rest.
pub fn split(bytes: &[u8], size: usize) -> Result<(&[u8], &[u8]), String> {
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or("ends too early")?;
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let length = length.checked_mul(size).ok_or("ends too early")?;
    Ok(rest.split_at_checked(length).ok_or("ends too early")?)
}

/// JSON after its length.
pub fn encode(own: &impl Serialize) -> Vec<u8> {
    // Numbers and texts only: there is nothing that JSON could refuse.
    let json = serde_json::to_vec(own).unwrap_or_default();
    [&(json.len() as u64).to_le_bytes()[..], &json].concat()
}

/// What is finished.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// Values of the sweep with all runs finished.
    pub values: usize,
    /// Runs that are finished of the next value.
    pub runs: usize,
    /// Per unit the numbers so far; curves with the repeat as seed.
    pub records: Vec<Vec<Value>>,
}

impl Done {
    /// No run of `units` units is finished.
    pub fn nothing(units: usize) -> Self {
        Done { values: 0, runs: 0, records: vec![Vec::new(); units] }
    }

    /// The finished part and, if one was in flight, the bytes of the fit. `units`, `values` and
    /// `runs` are what the job has.
    pub fn decode(
        body: &[u8],
        units: usize,
        values: usize,
        runs: usize,
    ) -> Result<(Self, Option<Vec<u8>>), String> {
        let (json, fit) = split(body, 1)?;
        let done: Done = serde_json::from_slice(json).map_err(|e| e.to_string())?;
        let fits = done.records.len() == units
            && (done.values < values && done.runs <= runs
                || done.values == values && done.runs == 0);
        if !fits {
            return Err("does not fit the job's units and runs".to_owned());
        }
        Ok((done, (!fit.is_empty()).then(|| fit.to_vec())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches numbers that a checkpoint changes, NaN and infinity among them, and a body of
    /// another job or cut off that is taken or panics.
    #[test]
    fn bodies_read_back_the_same_or_are_refused() {
        let number = |v: f64| Value::new("test_psnr", v).at(0.1 + 0.2).signal("row 1").seed(3);
        let done = Done {
            values: 1,
            runs: 2,
            records: vec![vec![number(1.0 / 3.0), number(f64::INFINITY)], vec![number(f64::NAN)]],
        };
        let mut body = encode(&done);
        let whole = body.len();
        body.extend(b"fit");
        let (read, fit) = Done::decode(&body, 2, 4, 5).unwrap();
        // NaN differs from itself; its text does not.
        assert_eq!(encode(&read), encode(&done));
        assert_eq!(fit.as_deref(), Some(&b"fit"[..]));
        assert_eq!(Done::decode(&body[..whole], 2, 4, 5).unwrap().1, None);
        for (units, values, runs) in [(1, 4, 5), (2, 1, 5), (2, 4, 1), (2, 0, 5)] {
            assert!(Done::decode(&body, units, values, runs).is_err(), "{units} {values} {runs}");
        }
        for end in 0..whole {
            assert!(Done::decode(&body[..end], 2, 4, 5).is_err(), "{end} bytes");
        }
        assert!(Done::decode(&[255; 16], 2, 4, 5).is_err());
    }
}
