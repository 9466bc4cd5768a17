//! Binary format of an interrupted fit.
//!
//! Little-endian: the version, the schedule, the number of runs, the session's state and the measurements. A list is stored as its
//! length and its items. Each length is compared with the number of remaining bytes before memory is allocated. The bytes have no
//! checksum, since the file that contains them has one.

use super::{CurvePoint, Measured, Schedule, Window};
use crate::{NetError, Progress, State};

// Version 4 has neither magic bytes nor a checksum.
const VERSION: u32 = 4;

/// Encodes the state and the measurements for [`decode`].
pub(super) fn encode(schedule: &Schedule, state: &State, measured: &Measured) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256 + 4 * state.numbers.len());
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    put(&mut bytes, schedule.epochs);
    put(&mut bytes, schedule.curve_every);
    bytes.push(u8::from(schedule.layers));
    put(&mut bytes, schedule.mean_of_last);

    put(&mut bytes, state.progress.diverged.len() as u64);
    put(&mut bytes, state.progress.epoch);
    for diverged in &state.progress.diverged {
        bytes.push(u8::from(diverged.is_some()));
        put(&mut bytes, diverged.unwrap_or(0));
    }
    put(&mut bytes, state.numbers.len() as u64);
    state.numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));

    put_window(&mut bytes, &measured.train);
    bytes.push(u8::from(measured.test.is_some()));
    if let Some(test) = &measured.test {
        put_window(&mut bytes, test);
    }
    put(&mut bytes, measured.curve.len() as u64);
    for point in &measured.curve {
        put(&mut bytes, point.epoch);
        put_floats(&mut bytes, &point.train_psnr);
        put_floats(&mut bytes, &point.test_psnr);
        put(&mut bytes, point.layers.len() as u64);
        point.layers.iter().for_each(|ranks| put_floats(&mut bytes, ranks));
    }
    bytes
}

/// Decodes the state and the measurements of a fit with this schedule and `runs` runs.
pub(super) fn decode(
    bytes: &[u8],
    schedule: &Schedule,
    runs: usize,
) -> Result<(State, Measured), NetError> {
    let mut reader = Reader { rest: bytes };
    let version = u32::from_le_bytes(reader.array()?);
    if version != VERSION {
        return Err(refused(format!(
            "it has format version {version}, but this program reads version {VERSION}; start over"
        )));
    }
    let saved = Schedule {
        epochs: reader.number()?,
        curve_every: reader.number()?,
        layers: reader.flag()?,
        mean_of_last: reader.number()?,
    };
    if saved != *schedule {
        return Err(refused(format!(
            "it was saved with another schedule ({saved:?}, now {schedule:?}); \
             restore the schedule or start over"
        )));
    }
    let saved_runs = reader.count(9)?;
    if saved_runs != runs {
        return Err(refused(format!(
            "it contains {saved_runs} runs, but the session has {runs}; restore the task or start over"
        )));
    }
    let state = reader.state(runs)?;
    if state.progress.epoch > schedule.epochs {
        return Err(refused(format!(
            "it has {} completed epochs, but the schedule has {}; start over",
            state.progress.epoch, schedule.epochs
        )));
    }
    let measured = reader.measured(runs)?;
    if !reader.rest.is_empty() {
        return Err(refused(format!(
            "{} unexpected bytes at the end; start over",
            reader.rest.len()
        )));
    }
    Ok((state, measured))
}

fn refused(why: impl Into<String>) -> NetError {
    NetError::State(why.into())
}

fn truncated() -> NetError {
    refused("it is truncated; start over")
}

fn put(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn put_floats(bytes: &mut Vec<u8>, numbers: &[f64]) {
    put(bytes, numbers.len() as u64);
    numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
}

fn put_window(bytes: &mut Vec<u8>, window: &Window) {
    for numbers in [&window.sum, &window.last, &window.first, &window.squares] {
        put_floats(bytes, numbers);
    }
}

/// The bytes that have not been read yet.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], NetError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn number(&mut self) -> Result<u64, NetError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn flag(&mut self) -> Result<bool, NetError> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(refused(format!("invalid flag {other} (must be 0 or 1); start over"))),
        }
    }

    /// Reads the length of a list whose items take at least `item_bytes` each.
    fn count(&mut self, item_bytes: usize) -> Result<usize, NetError> {
        let count = self.number()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.rest.len() / item_bytes => Ok(count),
            _ => Err(truncated()),
        }
    }

    fn floats(&mut self) -> Result<Vec<f64>, NetError> {
        let count = self.count(8)?;
        (0..count).map(|_| Ok(f64::from_le_bytes(self.array()?))).collect()
    }

    fn state(&mut self, runs: usize) -> Result<State, NetError> {
        let epoch = self.number()?;
        let mut diverged = Vec::with_capacity(runs);
        for _ in 0..runs {
            let has = self.flag()?;
            let at = self.number()?;
            diverged.push(has.then_some(at));
        }
        let count = self.count(4)?;
        let numbers = (0..count)
            .map(|_| Ok(f32::from_le_bytes(self.array()?)))
            .collect::<Result<_, NetError>>()?;
        Ok(State { progress: Progress { epoch, diverged }, numbers })
    }

    /// Reads a list with one number per run.
    fn per_run(&mut self, runs: usize) -> Result<Vec<f64>, NetError> {
        let numbers = self.floats()?;
        let count = numbers.len();
        if count != runs {
            return Err(refused(format!(
                "expected {runs} measurements (one per run), got {count}; start over"
            )));
        }
        Ok(numbers)
    }

    fn window(&mut self, runs: usize) -> Result<Window, NetError> {
        Ok(Window {
            sum: self.per_run(runs)?,
            last: self.per_run(runs)?,
            first: self.per_run(runs)?,
            squares: self.per_run(runs)?,
        })
    }

    fn measured(&mut self, runs: usize) -> Result<Measured, NetError> {
        let train = self.window(runs)?;
        let test = if self.flag()? { Some(self.window(runs)?) } else { None };
        let points = self.count(32)?;
        let mut curve = Vec::with_capacity(points);
        for _ in 0..points {
            let epoch = self.number()?;
            let train_psnr = self.per_run(runs)?;
            let test_psnr = self.floats()?;
            let rows = self.count(8)?;
            let layers = (0..rows).map(|_| self.floats()).collect::<Result<_, NetError>>()?;
            curve.push(CurvePoint { epoch, train_psnr, test_psnr, layers });
        }
        Ok(Measured { train, test, curve })
    }
}
