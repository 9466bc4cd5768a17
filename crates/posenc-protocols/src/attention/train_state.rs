//! Checkpoints of attention models.
//!
//! The body of a checkpoint contains the step and the state of the protocol as JSON after its length, and then each list of numbers as
//! bytes after its length.

use anyhow::Result;
use posenc_attention::Module;
use posenc_attention::trainer::{TrainState, Trainer};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Context;
use crate::fit_state::{self, Resumption, split};
use posenc_harness::checkpoint::Saved;
use posenc_harness::protocol::UnitResult;

/// Trains to the last step, from the checkpoint of an interrupted run if there is one. `own` is the state besides the model and the random
/// streams; `fits` checks one that was read against its number of steps.
pub fn train<M: Module, T: Serialize + DeserializeOwned, const N: usize>(
    context: &Context<'_>,
    trainer: &mut Trainer<M>,
    streams: &mut [ChaCha8Rng; N],
    own: &mut T,
    outcome: &mut UnitResult,
    fits: impl FnOnce(&T, usize) -> bool,
    step: impl FnMut(&mut Trainer<M>, &mut [ChaCha8Rng; N], &mut T) -> Result<()>,
) -> Result<()> {
    let ended = |own: &T, steps| fits(own, steps).then_some(0);
    train_repeatedly(context, trainer, streams, own, outcome, 1, ended, step)?;
    outcome.remarks.extend(trainer.diverged());
    Ok(())
}

/// Like [`train`], for several trainings of equal length one after another: at the end of each but the last, `step` replaces the trainer.
/// `ended` checks a state that was read, and returns the number of trainings that ended before it. `step` reports divergence.
pub fn train_repeatedly<M: Module, T: Serialize + DeserializeOwned, const N: usize>(
    context: &Context<'_>,
    trainer: &mut Trainer<M>,
    streams: &mut [ChaCha8Rng; N],
    own: &mut T,
    outcome: &mut UnitResult,
    trainings: usize,
    ended: impl FnOnce(&T, usize) -> Option<usize>,
    mut step: impl FnMut(&mut Trainer<M>, &mut [ChaCha8Rng; N], &mut T) -> Result<()>,
) -> Result<()> {
    let each = trainer.learning_rate.steps;
    let steps = trainings * each;
    let resumption = Resumption { checkpoint: context.checkpoint, note: context.note };
    context.checkpoint.begin(steps, 0);
    let found = match context.checkpoint.read() {
        Saved::Nothing => None,
        Saved::Damaged(why) => Some(Err(why)),
        Saved::Body(body) => Some(decode::<(T, Vec<u64>)>(&body)),
    };
    let reached = found.map(|found| -> Result<usize, String> {
        let (reached, (found, places)) = found?;
        let ended = ended(&found, reached.steps).filter(|_| places.len() == N);
        let ended = ended.filter(|_| trainer.restore(&reached)).ok_or("does not fit the model")?;
        *own = found;
        for (stream, place) in streams.iter_mut().zip(places) {
            stream.set_word_pos(u128::from(place));
        }
        // After the last step of all, the last training has ended, too.
        Ok((ended * each + reached.steps).min(steps))
    });
    match reached {
        None => {}
        Some(Ok(step)) => {
            context.checkpoint.begin(steps, step);
            (context.note)(&format!("resumes after step {step} of {steps}"));
        }
        Some(Err(why)) => resumption.distrust(&why, &mut outcome.remarks),
    }
    while trainer.is_running() {
        step(trainer, streams, own)?;
        if trainer.diverged().is_some() {
            break;
        }
        context.checkpoint.step();
        if context.checkpoint.is_due() {
            // No run samples 2⁶⁴ numbers.
            let places = streams.each_ref().map(|stream| stream.get_word_pos() as u64);
            resumption.write(&[&encode(&trainer.state(), &(&*own, places.to_vec()))]);
        }
    }
    outcome.earlier = context.checkpoint.earlier();
    Ok(())
}

fn encode<T: Serialize>(reached: &TrainState, own: &T) -> Vec<u8> {
    let mut bytes = fit_state::encode(&(reached.steps, own));
    bytes.reserve(64 + 4 * reached.numbers.iter().map(Vec::len).sum::<usize>());
    for list in &reached.numbers {
        bytes.extend((list.len() as u64).to_le_bytes());
        bytes.extend(list.iter().flat_map(|number| number.to_le_bytes()));
    }
    bytes
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<(TrainState, T), String> {
    let (json, mut rest) = split(body, 1)?;
    let (steps, own) = serde_json::from_slice(json).map_err(|e| e.to_string())?;
    let mut numbers: [Vec<f32>; 3] = Default::default();
    for list in &mut numbers {
        let bytes;
        (bytes, rest) = split(rest, 4)?;
        *list = bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    }
    if !rest.is_empty() {
        return Err("has bytes left over".to_owned());
    }
    Ok((TrainState { steps, numbers }, own))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a round trip that changes numbers, and a truncated body that is accepted or panics.
    #[test]
    fn bodies_round_trip_or_are_refused() {
        let numbers = [vec![0.1, -2.5e-20], vec![f32::MAX, 0.0], vec![1.0 / 3.0, -0.0]];
        let reached = TrainState { steps: 7, numbers };
        let own = (vec![0.1 + 0.2, 1.0 / 3.0], "text".to_owned());
        let body = encode(&reached, &own);
        assert_eq!(decode(&body).unwrap(), (reached, own));
        type Own = (Vec<f64>, String);
        for end in 0..body.len() {
            assert!(decode::<Own>(&body[..end]).is_err(), "{end} bytes");
        }
        let longer = [&body[..], &[0]].concat();
        assert!(decode::<Own>(&longer).is_err());
        assert!(decode::<Own>(&[255; 64]).is_err());
        assert!(decode::<Vec<u8>>(&body).is_err());
    }
}
