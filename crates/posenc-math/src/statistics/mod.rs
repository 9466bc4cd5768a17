//! Statistics over repeated trials.
//!
//! | quantity | function |
//! |---|---|
//! | mean, standard deviation with divisor n (as the papers print it) or n − 1 | [`mean`], [`population_std`], [`sample_std`] |
//! | Student's t; expansion of bootstrap intervals for few values | [`t_factor`], [`expanded_tail`] |
//! | difference of paired samples | [`paired_t_test`] |
//! | difference of independent samples | [`welch_t_test`] |
//! | power law | [`power_law_exponent`] |
//! | nearest-neighbor regression, R² | [`nearest_mean`], [`r_squared`] |
//!
//! All tests are two-sided. If a quantity does not exist (too few values, NaN or infinity among them, or no spread), the result is
//! an [`Error`] with the reason, or NaN where a function documents it. No function panics, and no `Ok` result is NaN if the squares
//! of the values are finite.

mod difference;
mod interval;
mod neighbors;
mod power_law;

pub use difference::{TTest, paired_t_test, welch_t_test};
pub use interval::{Interval, expanded_tail, t_factor};
pub use neighbors::{nearest_mean, r_squared, relative_ranks};
pub use power_law::power_law_exponent;

use crate::Error;

pub fn mean(sample: &[f64]) -> Result<f64, Error> {
    check(sample, 1)?;
    Ok(mean_of(sample))
}

/// Standard deviation with divisor n (`ddof = 0`), the "±" of the papers' tables; 0 for one value.
pub fn population_std(sample: &[f64]) -> Result<f64, Error> {
    check(sample, 1)?;
    Ok((squared_deviations(sample) / sample.len() as f64).sqrt())
}

/// Standard deviation with divisor n − 1.
pub fn sample_std(sample: &[f64]) -> Result<f64, Error> {
    check(sample, 2)?;
    Ok(variance_of(sample).sqrt())
}

/// Quantile, linear between order statistics (position `share · (n − 1)`, NumPy's default); NaN for an empty sample. `share` is
/// in [0, 1].
pub fn quantile(sample: &[f64], share: f64) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let position = share * (sorted.len().max(1) - 1) as f64;
    let at = |place: f64| sorted.get(place as usize).copied().unwrap_or(f64::NAN);
    let (below, above) = (at(position.floor()), at(position.ceil()));
    below + (above - below) * (position - position.floor())
}

/// Median; for an even number of values, the mean of the two middle ones. NaN for an empty sample.
pub fn median(sample: &[f64]) -> f64 {
    quantile(sample, 0.5)
}

fn mean_of(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

/// `Σ (x_i − mean)²`; exactly 0 for equal values, where the rounded mean may differ from them.
fn squared_deviations(sample: &[f64]) -> f64 {
    if is_constant(sample) {
        return 0.0;
    }
    let mean = mean_of(sample);
    sample.iter().map(|x| (x - mean) * (x - mean)).sum()
}

/// Variance with divisor n − 1, for samples of at least two values.
fn variance_of(sample: &[f64]) -> f64 {
    squared_deviations(sample) / (sample.len() - 1) as f64
}

fn is_constant(sample: &[f64]) -> bool {
    sample.windows(2).all(|pair| pair[0] == pair[1])
}

fn check(sample: &[f64], needed: usize) -> Result<(), Error> {
    if sample.len() < needed {
        return Err(Error(format!("{} values; at least {needed} are needed", sample.len())));
    }
    match sample.iter().position(|x| !x.is_finite()) {
        Some(index) => {
            Err(Error(format!("value {index} is {}; every value must be finite", sample[index])))
        }
        None => Ok(()),
    }
}

fn check_pairs(a: &[f64], b: &[f64], needed: usize) -> Result<(), Error> {
    if a.len() != b.len() {
        let (left, right) = (a.len(), b.len());
        return Err(Error(format!(
            "{left} values are paired with {right}; both samples must have the same length"
        )));
    }
    check(a, needed)?;
    check(b, needed)
}

fn check_level(level: f64) -> Result<(), Error> {
    if level > 0.0 && level < 1.0 {
        return Ok(());
    }
    Err(Error(format!("level {level}; the level must lie between 0 and 1")))
}

/// Error: all values (or all differences) are equal.
fn no_spread(value: f64) -> Error {
    Error(format!("all values are {value}; the test needs values that differ"))
}

/// Two-sided p-value of Student's t with `df` degrees of freedom, `I_{df/(df + t²)}(df/2, 1/2)`;
/// accurate far into the tails, 0 for an infinite t, NaN if t is NaN.
fn two_sided_p(t: f64, df: f64) -> f64 {
    let share = df / (df + t * t);
    // If squares overflow, t is NaN, and statrs would panic.
    if share.is_nan() { f64::NAN } else { statrs::function::beta::beta_reg(df / 2.0, 0.5, share) }
}

/// Ranks from 1; ties share their mean rank. `values` must be finite.
fn mid_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    for run in order.chunk_by(|&i, &j| values[i] == values[j]).scan(0, |start, run| {
        *start += run.len();
        Some((*start - run.len(), run))
    }) {
        let (start, members) = run;
        let rank = start as f64 + (members.len() + 1) as f64 / 2.0;
        members.iter().for_each(|&i| ranks[i] = rank);
    }
    ranks
}

#[cfg(test)]
mod tests;
