//! What a verdict needs of statistics: a mean with its interval and test.

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
