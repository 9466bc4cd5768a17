//! Statistics of verdicts and comparisons: a mean, or a difference of means, with its interval and test.

use super::Verdict;

/// Level of the interval that a value, an agreement or an equality must have within its tolerance: two one-sided tests at 5 %.
pub(super) const EQUIVALENCE: f64 = 0.90;
/// Level of all other intervals.
pub const LEVEL: f64 = 0.95;

#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    pub n: usize,
    pub mean: f64,
    /// Half width of the t interval, at 95 % unless stated otherwise; `None` for fewer than two values, or values that do not vary.
    pub half_width: Option<f64>,
    /// Two-sided p-value of the hypothesis that the mean is zero.
    pub p: Option<f64>,
}

/// Mean, 95 % t interval and t-test of the mean against zero.
pub fn mean_interval(values: &[f64]) -> Interval {
    interval_at(values, LEVEL)
}

/// Like [`mean_interval`], with the interval at `level`, which is between 0 and 1.
pub(super) fn interval_at(values: &[f64], level: f64) -> Interval {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n.max(1) as f64;
    let zeros = vec![0.0; n];
    let test = posenc_math::statistics::paired_t_test(values, &zeros, level).ok();
    let scale = values.iter().fold(0.0f64, |most, v| most.max(v.abs()));
    // Ignore a spread at the level of rounding errors, and one that is not finite.
    let test = test.filter(|t| {
        let half_width = 0.5 * (t.interval.upper - t.interval.lower);
        half_width.is_finite() && t.p.is_finite() && half_width > 1e-12 * scale
    });
    Interval {
        n,
        mean,
        half_width: test.map(|t| 0.5 * (t.interval.upper - t.interval.lower)),
        p: test.map(|t| t.p),
    }
}

/// Whether the mean of a quantity is inside the range that it should be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Inside,
    /// The interval contains an end of the range.
    Unclear,
    /// A random quantity has only one repetition, so there is no interval, or there is no value.
    Undecided,
    Outside,
}

impl Fit {
    /// The verdict on a quantity that should be inside.
    pub(super) fn verdict(self) -> Verdict {
        match self {
            Fit::Inside => Verdict::Reproduced,
            Fit::Unclear => Verdict::WithinNoise,
            Fit::Undecided => Verdict::NotDecided,
            Fit::Outside => Verdict::NotReproduced,
        }
    }

    /// The verdict on a claim about several places.
    pub(super) fn joined(fits: &[Fit]) -> Verdict {
        Verdict::worst(fits.iter().map(|fit| fit.verdict()))
    }
}

/// Compares the mean of independent `values` with the range from `range.0` to `range.1`.
///
/// For [`Fit::Inside`], the interval at `level` must be inside. For [`Fit::Outside`], an interval with Bonferroni correction for
/// `places` must be outside, so that a claim about many places is not refuted by the number of its places alone. `is_exact` values
/// have no uncertainty: each of them must be inside.
pub(super) fn fit(
    values: &[f64],
    range: (f64, f64),
    level: f64,
    places: usize,
    is_exact: bool,
) -> Fit {
    let is_inside = |v: f64| range.0 <= v && v <= range.1;
    if values.is_empty() || (!is_exact && values.len() == 1) {
        return Fit::Undecided;
    }
    let inside = values.iter().filter(|v| is_inside(**v)).count();
    if is_exact {
        return if inside == values.len() { Fit::Inside } else { Fit::Outside };
    }
    let interval = interval_at(values, level);
    let Some(half_width) = interval.half_width else {
        // Without an interval, the result is clear only if all values are on the same side.
        return match inside {
            n if n == values.len() => Fit::Inside,
            0 => Fit::Outside,
            _ => Fit::Unclear,
        };
    };
    if is_inside(interval.mean - half_width) && is_inside(interval.mean + half_width) {
        return Fit::Inside;
    }
    let joint = interval_at(values, 1.0 - (1.0 - level) / places.max(1) as f64);
    let half_width = joint.half_width.unwrap_or(f64::INFINITY);
    match joint.mean - half_width > range.1 || joint.mean + half_width < range.0 {
        true => Fit::Outside,
        false => Fit::Unclear,
    }
}

/// Compares a mean with an expected number and a margin. A single repetition is judged by its value alone, since the expected number
/// comes from the same signals.
pub(super) fn near(
    values: &[f64],
    expected: f64,
    margin: f64,
    places: usize,
    is_exact: bool,
) -> Fit {
    // The last digits of a decimal tolerance are not exact in binary.
    let margin = margin * (1.0 + 1e-9);
    let differences: Vec<f64> = values.iter().map(|v| v - expected).collect();
    let is_exact = is_exact || differences.len() == 1;
    let values = match is_exact {
        // Compares the mean over the parts of an exact number, not each part.
        true => vec![mean_interval(&differences).mean],
        false => differences,
    };
    fit(&values, (-margin, margin), EQUIVALENCE, places, is_exact)
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0usize), |(sum, count), v| (sum + v, count + 1));
    sum / count.max(1) as f64
}

/// Values whose mean is the statistic `all` and whose standard error is that of the jackknife. With θ the statistic of all clusters
/// and θ₋ᵢ the one without cluster i, value i is θ + (n − 1)(mean of θ₋ − θ₋ᵢ).
pub(super) fn jackknife(all: f64, without: &[f64]) -> Vec<f64> {
    let n = without.len();
    let mean = without.iter().sum::<f64>() / n.max(1) as f64;
    if n < 2 {
        return vec![all];
    }
    without.iter().map(|one| all + (n - 1) as f64 * (mean - one)).collect()
}

/// Mean of `b` minus mean of `a` for independent samples, with its 95 % t interval and test (Welch).
///
/// A single value is compared with the prediction interval of the other sample, mean ± t s √(1 + 1/n). With one value on each side,
/// only the difference is known.
pub fn difference_interval(a: &[f64], b: &[f64]) -> Interval {
    let (own, other) = (mean_interval(a), mean_interval(b));
    let mean = other.mean - own.mean;
    let n = a.len() + b.len();
    let exact = Interval { n, mean, half_width: None, p: None };
    let one_more =
        |of: &Interval| of.half_width.map(|half_width| half_width * (of.n as f64 + 1.0).sqrt());
    match (a.len(), b.len()) {
        (1, _) => Interval { half_width: one_more(&other), ..exact },
        (_, 1) => Interval { half_width: one_more(&own), ..exact },
        // Neither sample varies beyond rounding errors.
        _ if own.half_width.is_none() && other.half_width.is_none() => exact,
        _ => match posenc_math::statistics::welch_t_test(b, a, 0.95) {
            Ok(test) => {
                let half_width = 0.5 * (test.interval.upper - test.interval.lower);
                let is_known = half_width.is_finite() && test.p.is_finite();
                Interval {
                    half_width: is_known.then_some(half_width),
                    p: is_known.then_some(test.p),
                    ..exact
                }
            }
            Err(_) => exact,
        },
    }
}
