//! Checks and defaults of settings that several protocols share.

use posenc_experiments::schema::protocol::Fault;
use posenc_experiments::schema::{Data, NumberList};
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::encoding::Encoding;

/// Message for a key that is not allowed with a sweep.
pub const WITHOUT_SWEEP: &str = "is recorded without a sweep only; make a variant for each value";

/// The smallest learning rate; below it, training has no effect.
pub const MIN_RATE: f64 = 1e-30;
/// The largest learning rate; above it, training diverges.
pub const MAX_RATE: f64 = 1e3;

pub fn check_sizes(width: usize, heads: usize, feed_forward: usize) -> Result<(), Fault> {
    range("width", width, 1, 4096)?;
    range("heads", heads, 1, 64)?;
    if !width.is_multiple_of(heads) {
        return Err(("heads", format!("{heads} heads do not divide a width of {width}")));
    }
    range("feed_forward", feed_forward, 1, 65_536)
}

/// Checks a number from 0 to below 1, such as a dropout or Adam's β₂.
pub fn below_one(key: &'static str, value: f64) -> Result<(), Fault> {
    if (0.0..1.0).contains(&value) {
        return Ok(());
    }
    Err((key, format!("{value} is not allowed; allowed: 0 up to below 1")))
}

/// Moves a fault of a nested mapping to its `key`; the message begins with the inner key.
pub fn within(key: &'static str, checked: Result<(), Fault>) -> Result<(), Fault> {
    checked.map_err(|(inner, message)| (key, format!("{inner}: {message}")))
}

/// Refuses keys that are given although other settings exclude them.
pub fn absent(keys: &[(&'static str, bool)], message: &str) -> Result<(), Fault> {
    match keys.iter().find(|(_, is_given)| *is_given) {
        Some((key, _)) => Err((key, message.to_owned())),
        None => Ok(()),
    }
}

/// Refuses a group without data, for protocols without synthetic data.
pub fn check_has_data(protocol: &str, data: Option<&Data>) -> Result<(), Fault> {
    if data.is_some() {
        return Ok(());
    }
    Err(("protocol", format!("`{protocol}` needs `data: {{set: …}}`; see data/manifest.yaml")))
}

/// Checks the known positions: a grid, or a random share of all positions.
pub fn check_positions(step: Option<usize>, fraction: Option<f64>) -> Result<(), Fault> {
    absent(
        &[("fraction", step.is_some() && fraction.is_some())],
        "excludes `step`; give one of the two",
    )?;
    step.map_or(Ok(()), |step| range("step", step, 2, 64))?;
    fraction.map_or(Ok(()), check_fraction)
}

/// Checks the regularizer of `lff` Eq. 10, which needs learned frequencies.
pub fn check_divergence(divergence: Option<&Divergence>, encoding: &Encoding) -> Result<(), Fault> {
    let Some(divergence) = divergence else {
        return Ok(());
    };
    if !encoding.learned {
        return Err(("divergence", "only allowed with `encoding.learned: true`".into()));
    }
    positive("divergence.weight", divergence.weight, 1e6)
}

/// Checks batch size, steps and learning rate schedule.
pub fn check_training(
    batch: usize,
    steps: usize,
    learning_rate: f64,
    warm_up: usize,
) -> Result<(), Fault> {
    range("batch", batch, 1, 4096)?;
    range("steps", steps, 1, 10_000_000)?;
    positive("learning_rate", learning_rate, 10.0)?;
    range("warm_up", warm_up, 0, 10_000_000)
}

/// Checks that a value is from `least` to `most`.
pub fn range<T: PartialOrd + std::fmt::Display>(
    key: &'static str,
    value: T,
    least: T,
    most: T,
) -> Result<(), Fault> {
    if value >= least && value <= most {
        Ok(())
    } else {
        Err((key, format!("{value} is not allowed; allowed: {least} to {most}")))
    }
}

/// Checks that a value is above 0 and at most `most`.
pub fn positive(key: &'static str, value: f64, most: f64) -> Result<(), Fault> {
    if value > 0.0 && value <= most {
        Ok(())
    } else {
        Err((key, format!("{value} is not allowed; allowed: above 0, at most {most}")))
    }
}

pub fn check_rate(key: &'static str, rate: f64) -> Result<(), Fault> {
    if (MIN_RATE..=MAX_RATE).contains(&rate) {
        Ok(())
    } else {
        Err((key, format!("{rate} is not allowed; allowed: {MIN_RATE:e} to {MAX_RATE:e}")))
    }
}

/// Checks that all numbers are whole and from `least` to `most`.
pub fn whole(key: &'static str, numbers: &NumberList, least: f64, most: f64) -> Result<(), Fault> {
    match numbers.0.iter().find(|v| v.fract() != 0.0 || **v < least || **v > most) {
        Some(v) => {
            Err((key, format!("{v} is not allowed; allowed: whole numbers from {least} to {most}")))
        }
        None => Ok(()),
    }
}

/// A default for serde: a whole number.
pub fn preset<const N: u16, T: From<u16>>() -> T {
    T::from(N)
}

/// A default for serde: a ratio of whole numbers.
pub fn ratio<const N: u32, const D: u32>() -> f64 {
    f64::from(N) / f64::from(D)
}

/// For keys that are left out of canonical settings if they have their default.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Checks a share of training positions, above 0 and below 1.
pub fn check_fraction(fraction: f64) -> Result<(), Fault> {
    if fraction > 0.0 && fraction < 1.0 {
        Ok(())
    } else {
        let message = format!("{fraction} is not allowed; allowed: above 0 and below 1");
        Err(("fraction", message))
    }
}

/// For keys that are left out of canonical settings if they are 1.
pub fn is_one(value: &usize) -> bool {
    *value == 1
}

/// Checks the data of pixel models, which read two whole sets of photographs or none.
pub fn check_photographs(data: Option<&Data>, reduce: usize) -> Result<(), Fault> {
    let (key, message) = match data {
        Some(Data { held_out: Some(_), pick: Some(_), .. }) => {
            ("data.pick", "this protocol reads whole sets; remove it")
        }
        Some(Data { held_out: None, .. }) => (
            "data",
            "`held_out` is missing: pixel models are evaluated on photographs of another set",
        ),
        None if reduce > 1 => {
            ("protocol", "`reduce` is only allowed with photographs; name their sets under `data`")
        }
        _ => return Ok(()),
    };
    Err((key, message.to_owned()))
}
