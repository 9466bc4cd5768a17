//! Checkpoints of attention models: the step, the state of the protocol, and lists of numbers as bytes.

use anyhow::Result;
use posenc_attention::Module;
use posenc_attention::trainer::{TrainState, Trainer};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Context;
use crate::fit_state::Resumption;
use posenc_harness::checkpoint::Saved;
use posenc_harness::protocol::UnitResult;

/// Positions of random streams.
fn places(streams: &[ChaCha8Rng]) -> Vec<u64> {
    // No run samples 2⁶⁴ numbers.
    streams.iter().map(|stream| stream.get_word_pos() as u64).collect()
}

/// Moves streams to saved positions. Returns `false` if the number of positions is not that of the streams.
fn move_to(streams: &mut [ChaCha8Rng], places: &[u64]) -> bool {
    let fits = places.len() == streams.len();
    for (stream, place) in streams.iter_mut().zip(places).filter(|_| fits) {
        stream.set_word_pos(u128::from(*place));
    }
    fits
}

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
    outcome.remarks.extend(trainer.diverged().map(|diverged| diverged.to_string()));
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
    let each = trainer.planned_steps();
    let steps = trainings * each;
    let remarks = &mut outcome.remarks;
    let mut done = resume(context, steps, remarks, |reached, (found, places): (T, Vec<u64>)| {
        let ended = ended(&found, reached.steps)?;
        let fits = places.len() == N && trainer.restore(reached);
        if fits {
            *own = found;
        }
        // After the last step of all, the last training has ended, too.
        (fits && move_to(streams, &places)).then_some((ended * each + reached.steps).min(steps))
    });
    while trainer.is_running() {
        step(trainer, streams, own)?;
        if trainer.diverged().is_some() {
            break;
        }
        done += 1;
        context.checkpoint.count_step();
        context.checkpoint.reached(done as f64 / steps as f64);
        if context.checkpoint.is_due() {
            let TrainState { steps, numbers } = trainer.state();
            let bytes = numbers.each_ref().map(|list| bytes(list));
            let state = (steps, numbers.each_ref().map(Vec::len), (&*own, places(streams)));
            resumption(context).write(&state, &bytes.each_ref().map(|own| &own[..]));
        }
    }
    outcome.earlier = context.checkpoint.earlier();
    Ok(())
}

fn bytes(list: &[f32]) -> Vec<u8> {
    list.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Lists of these lengths; `None` if the bytes are not those of such lists.
fn numbers(lengths: [usize; 3], bytes: &[u8]) -> Option<[Vec<f32>; 3]> {
    let (all, rest) = bytes.as_chunks();
    let sum = lengths.iter().try_fold(0, |sum: usize, length| sum.checked_add(*length));
    let mut all = all.iter().map(|own| f32::from_le_bytes(*own));
    (rest.is_empty() && sum == Some(all.len()))
        .then(|| lengths.map(|n| all.by_ref().take(n).collect()))
}

fn resumption<'a>(context: &Context<'a>) -> Resumption<'a> {
    Resumption { checkpoint: context.checkpoint, note: context.note }
}

/// Resumes from the checkpoint of an interrupted run, if there is one, and returns the number of all steps before. `take` restores the state
/// and returns this number, or nothing if it does not fit the model.
fn resume<T: DeserializeOwned>(
    context: &Context<'_>,
    steps: usize,
    remarks: &mut Vec<String>,
    take: impl FnOnce(&TrainState, T) -> Option<usize>,
) -> usize {
    let why = match context.checkpoint.read() {
        Saved::Nothing => return 0,
        Saved::Damaged(why) => why,
        Saved::State((reached, lengths, own), bytes) => {
            let numbers = numbers(lengths, &bytes);
            let state = numbers.map(|numbers| TrainState { steps: reached, numbers });
            if let Some(step) = state.and_then(|state| take(&state, own)) {
                (context.note)(&format!("resumes after step {step} of {steps}"));
                return step;
            }
            "does not fit the model".to_owned()
        }
    };
    resumption(context).distrust(&why, remarks);
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a round trip that changes numbers, and bytes of other lists that are accepted or cause a panic.
    #[test]
    fn numbers_round_trip_or_are_refused() {
        let lists = [vec![0.1, -2.5e-20], vec![f32::MAX, 0.0], vec![1.0 / 3.0, -0.0, 1e-40]];
        let lengths = lists.each_ref().map(Vec::len);
        let bytes = lists.each_ref().map(|list| bytes(list)).concat();
        assert_eq!(numbers(lengths, &bytes), Some(lists));
        for end in 0..bytes.len() {
            assert_eq!(numbers(lengths, &bytes[..end]), None, "{end} bytes");
        }
        assert_eq!(numbers([usize::MAX, 1, 7], &bytes), None);
    }

    /// Catches a saved position that is not that of the next number.
    #[test]
    fn restored_streams_continue_with_the_next_number() {
        use posenc_math::random::{stream, uniform_vector};
        let mut one = stream(1, "one");
        uniform_vector(&mut one, 5, 0.0, 1.0);
        let place = places(std::slice::from_ref(&one));
        let mut others = [stream(1, "one")];
        assert!(!move_to(&mut others, &[]) && move_to(&mut others, &place));
        let next = |rng: &mut ChaCha8Rng| uniform_vector(rng, 9, 0.0, 1.0);
        assert_eq!(next(&mut one), next(&mut others[0]));
    }
}
