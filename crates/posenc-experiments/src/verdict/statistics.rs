//! What a verdict and a comparison need of statistics: a mean, or a difference of means, with its interval and test.

/// A mean and how well it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Number of values.
    pub n: usize,
    /// Mean.
    pub mean: f64,
    /// Half width of the 95 % t interval; `None` for one value or none that vary.
    pub half_width: Option<f64>,
    /// Two-sided p of "the mean is zero".
    pub p: Option<f64>,
}

/// Mean, 95 % t interval and t-test of the mean against zero.
pub fn mean_interval(values: &[f64]) -> Interval {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n.max(1) as f64;
    let zeros = vec![0.0; n];
    let test = posenc_math::statistics::paired_t_test(values, &zeros, 0.95).ok();
    let scale = values.iter().fold(0.0f64, |most, v| most.max(v.abs()));
    // A spread at the level of rounding is none, and beyond the largest number there is none.
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

/// Mean of `b` minus mean of `a` for independent samples, with its 95 % t interval and test (Welch).
///
/// One value against several is held against the interval in which one more of these would lie,
/// mean ± t s √(1 + 1/n). Of one value each nothing is known but the difference.
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
        // A spread at the level of rounding is none.
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
