//! Checkpoints of attention models: the step, the state of the protocol, and lists of numbers as bytes.

use anyhow::Result;
use posenc_attention::Module;
use posenc_attention::trainer::Trainer;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Context;
use crate::fit_state::Resumption;
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
    type Head<T> = (usize, [usize; 3], (T, Vec<u64>));
    let reached = match context.checkpoint.read::<Head<T>>() {
        Saved::Nothing => Ok(0),
        Saved::Damaged(why) => Err(why),
        Saved::State((reached, lengths, (found, places)), bytes) => {
            let ended = numbers(lengths, &bytes).and_then(|numbers| {
                let ended = ended(&found, reached).filter(|_| places.len() == N)?;
                trainer.restore(reached, &numbers).then_some(ended)
            });
            ended.ok_or("does not fit the model".to_owned()).map(|ended| {
                *own = found;
                for (stream, place) in streams.iter_mut().zip(places) {
                    stream.set_word_pos(u128::from(place));
                }
                // After the last step of all, the last training has ended, too.
                (ended * each + reached).min(steps)
            })
        }
    };
    let mut done = reached.unwrap_or_else(|why| {
        resumption.distrust(&why, &mut outcome.remarks);
        0
    });
    if done > 0 {
        (context.note)(&format!("resumes after step {done} of {steps}"));
    }
    while trainer.is_running() {
        step(trainer, streams, own)?;
        if trainer.diverged().is_some() {
            break;
        }
        done += 1;
        context.checkpoint.count_step();
        context.checkpoint.reached(done as f64 / steps as f64);
        if context.checkpoint.is_due() {
            let (steps, numbers) = (trainer.steps(), trainer.state());
            let bytes = numbers.each_ref().map(|list| bytes(list));
            // No run samples 2⁶⁴ numbers.
            let places = streams.each_ref().map(|stream| stream.get_word_pos() as u64);
            let state = (steps, numbers.each_ref().map(Vec::len), (&*own, places.to_vec()));
            resumption.write(&state, &bytes.each_ref().map(|own| &own[..]));
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
}
