//! Checks of settings that several protocols share, and their defaults.

use posenc_experiments::schema::protocol::Fault;
use posenc_experiments::schema::{Data, NumberList};
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::encoding::Encoding;

/// Learning rates beyond these train nothing, or nothing that stays finite.
pub const MIN_RATE: f64 = 1e-30;
/// The largest learning rate.
pub const MAX_RATE: f64 = 1e3;

/// Heads of attention that can share a width.
pub fn check_heads(heads: usize, width: usize) -> Result<(), Fault> {
    range("heads", heads, 1, 64)?;
    if width.is_multiple_of(heads) {
        return Ok(());
    }
    Err(("heads", format!("{heads} heads do not divide a width of {width}")))
}

/// The decay of Adam's mean of squares.
pub fn check_beta2(beta2: f64) -> Result<(), Fault> {
    if (0.0..1.0).contains(&beta2) {
        return Ok(());
    }
    Err(("beta2", format!("{beta2} is not allowed; allowed: 0 up to below 1")))
}

/// The term of `lff` Eq. 10 on an encoding.
pub fn check_divergence(divergence: Option<&Divergence>, encoding: &Encoding) -> Result<(), Fault> {
    let Some(divergence) = divergence else {
        return Ok(());
    };
    if !encoding.learned {
        return Err(("divergence", "belongs to an encoding with `learned: true`".into()));
    }
    positive("divergence.weight", divergence.weight, 1e6)
}

/// How long and at what rate a model is trained.
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

pub fn positive(key: &'static str, value: f64, most: f64) -> Result<(), Fault> {
    if value > 0.0 && value <= most {
        Ok(())
    } else {
        Err((key, format!("{value} is not allowed; allowed: above 0, at most {most}")))
    }
}

/// A constant learning rate.
pub fn check_rate(key: &'static str, rate: f64) -> Result<(), Fault> {
    if (MIN_RATE..=MAX_RATE).contains(&rate) {
        Ok(())
    } else {
        Err((key, format!("{rate} is not allowed; allowed: {MIN_RATE:e} to {MAX_RATE:e}")))
    }
}

/// Whole numbers within limits.
pub fn whole(key: &'static str, numbers: &NumberList, least: f64, most: f64) -> Result<(), Fault> {
    match numbers.0.iter().find(|v| v.fract() != 0.0 || **v < least || **v > most) {
        Some(v) => {
            Err((key, format!("{v} is not allowed; allowed: whole numbers from {least} to {most}")))
        }
        None => Ok(()),
    }
}

/// The default 1.
pub fn one<T: From<u8>>() -> T {
    T::from(1)
}

/// The default of a key: a whole number.
pub fn preset<const N: u16, T: From<u16>>() -> T {
    T::from(N)
}

/// For keys that are left out of canonical settings where they are `false`.
pub fn is_false(value: &bool) -> bool {
    !value
}

/// A share of positions that leaves some to train and some to test.
pub fn check_fraction(fraction: f64) -> Result<(), Fault> {
    if fraction > 0.0 && fraction < 1.0 {
        Ok(())
    } else {
        let message = format!("{fraction} is not allowed; allowed: above 0 and below 1");
        Err(("fraction", message))
    }
}

/// For keys that are left out of canonical settings where they are 1.
pub fn is_one(value: &usize) -> bool {
    *value == 1
}

/// Models of pixels read two whole sets of photographs, or none.
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
            ("protocol", "`reduce` belongs to photographs; name their sets under `data`")
        }
        _ => return Ok(()),
    };
    Err((key, message.to_owned()))
}
