//! The signal of a unit.

use anyhow::{Context as _, Result};
use posenc_data::Signal;
use posenc_harness::protocol::Context;
use posenc_harness::unit::Unit;

/// The signal of a unit, reduced to `side` if given.
pub fn signal_of(context: &Context<'_>, unit: &Unit, side: Option<usize>) -> Result<Signal> {
    let data = context.job.group.data.as_ref().context("this protocol needs `data`")?;
    let set = context.data.load(&data.set)?;
    let missing = || format!("data set `{}` has no signal {}", data.set, unit.signal);
    let signal = set.get(unit.signal_index).with_context(missing)?.clone();
    Ok(match side {
        Some(side) => signal.reduced(side)?,
        None => signal,
    })
}

/// The signal whose i-th number is `value(i)`.
#[cfg(test)]
pub fn filled(sides: &[usize], channels: usize, value: impl Fn(usize) -> f64) -> Signal {
    let count = sides.iter().product::<usize>() * channels;
    let values = (0..count).map(value).collect();
    Signal { name: "test".into(), sides: sides.to_vec(), channels, values }
}

/// Waves with a period of `periods`⁻¹ sides along the sum of the axes.
#[cfg(test)]
pub fn waves(sides: &[usize], channels: usize, periods: f64) -> Signal {
    filled(sides, channels, |i| {
        let mut rest = i / channels;
        let sum: f64 = sides.iter().rev().fold(0.0, |sum, &n| {
            let place = rest % n;
            rest /= n;
            sum + place as f64 / n as f64
        });
        let phase = std::f64::consts::TAU * periods * sum + (i % channels) as f64;
        0.5 + 0.4 * phase.sin()
    })
}
