//! Format of an interrupted fit: the version, and then the schedule, the session's state and the measurements as MessagePack.
//!
//! The bytes have no checksum, since the file that contains them has one.

use super::{Measured, Schedule};
use crate::{NetError, State};

// Versions up to 4 were not MessagePack.
const VERSION: u32 = 5;

/// Encodes the state and the measurements for [`decode`].
pub(super) fn encode(
    schedule: &Schedule,
    state: &State,
    measured: &Measured,
) -> Result<Vec<u8>, NetError> {
    // A number takes five bytes.
    let mut bytes = Vec::with_capacity(256 + 5 * state.numbers.len());
    bytes.extend(VERSION.to_le_bytes());
    rmp_serde::encode::write(&mut bytes, &(schedule, state, measured))
        .map_err(|error| refused(error.to_string()))?;
    Ok(bytes)
}

/// Decodes the state and the measurements of a fit with this schedule and `runs` runs.
pub(super) fn decode(
    bytes: &[u8],
    schedule: &Schedule,
    runs: usize,
) -> Result<(State, Measured), NetError> {
    let Some((version, body)) = bytes.split_first_chunk() else {
        return Err(refused("it is truncated; start over"));
    };
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(refused(format!(
            "it has format version {version}, but this program reads version {VERSION}; start over"
        )));
    }
    let mut rest = body;
    let (saved, state, measured): (Schedule, State, Measured) = rmp_serde::from_read(&mut rest)
        .map_err(|error| refused(format!("it is damaged ({error}); start over")))?;
    if !rest.is_empty() {
        return Err(refused("it is damaged (bytes after its end); start over"));
    }
    if saved != *schedule {
        return Err(refused(format!(
            "it was saved with another schedule ({saved:?}, now {schedule:?}); \
             restore the schedule or start over"
        )));
    }
    let saved_runs = state.progress.diverged.len();
    if saved_runs != runs {
        return Err(refused(format!(
            "it contains {saved_runs} runs, but the session has {runs}; restore the task or start over"
        )));
    }
    if state.progress.epoch > schedule.epochs {
        return Err(refused(format!(
            "it has {} completed epochs, but the schedule has {}; start over",
            state.progress.epoch, schedule.epochs
        )));
    }
    if !measured.is_of(runs) {
        return Err(refused(format!(
            "it does not have {runs} measurements, one per run; start over"
        )));
    }
    Ok((state, measured))
}

fn refused(why: impl Into<String>) -> NetError {
    NetError::State(why.into())
}
