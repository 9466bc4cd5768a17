//! One comparator for tests and validation: `|actual - expected| <= absolute + relative * |expected|`.

/// The accepted difference between a number and the expected one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    absolute: f64,
    relative: f64,
}

impl Tolerance {
    /// The two numbers must be equal; infinities equal themselves, NaN equals nothing.
    pub const EXACT: Self = Self::new(0.0, 0.0);

    /// Accepts a difference of `absolute + relative * |expected|`.
    pub const fn new(absolute: f64, relative: f64) -> Self {
        Self { absolute, relative }
    }

    /// Accepts a difference of `bound`, in the unit of the compared numbers.
    pub const fn absolute(bound: f64) -> Self {
        Self::new(bound, 0.0)
    }

    /// Accepts a difference of `bound * |expected|`.
    pub const fn relative(bound: f64) -> Self {
        Self::new(0.0, bound)
    }

    /// Accepts values that round to the printed number: a difference of half a unit of its last decimal.
    ///
    /// `decimals = 2` accepts 28.2051 for a printed 28.21. A share of 1e-9 is added because the printed decimal itself is
    /// rounded in binary.
    pub fn decimals(decimals: i32) -> Self {
        Self::absolute(0.5 * 10f64.powi(-decimals) * (1.0 + 1e-9))
    }

    /// Largest accepted difference from `expected`.
    pub fn bound(self, expected: f64) -> f64 {
        self.absolute + self.relative * expected.abs()
    }

    /// Whether `actual` lies within the tolerance of `expected`; false when either is NaN.
    pub fn accepts(self, actual: f64, expected: f64) -> bool {
        actual == expected || (actual - expected).abs() <= self.bound(expected)
    }
}

/// Panics unless `actual` lies within `tolerance` of `expected`.
///
/// # Panics
///
/// With both numbers, their difference and the accepted difference.
#[track_caller]
pub fn assert_close(actual: f64, expected: f64, tolerance: Tolerance) {
    assert!(
        tolerance.accepts(actual, expected),
        "actual {actual:?}, expected {expected:?}: difference {:.3e}, accepted {:.3e}",
        (actual - expected).abs(),
        tolerance.bound(expected),
    );
}

/// Panics unless the slices have the same length and agree entry by entry.
///
/// # Panics
///
/// With the first entry out of tolerance.
#[track_caller]
pub fn assert_all_close(actual: &[f64], expected: &[f64], tolerance: Tolerance) {
    assert_eq!(actual.len(), expected.len(), "lengths differ");
    let outside = (0..actual.len()).find(|&i| !tolerance.accepts(actual[i], expected[i]));
    if let Some(i) = outside {
        panic!(
            "entry {i}: actual {:?}, expected {:?}, accepted difference {:.3e}",
            actual[i],
            expected[i],
            tolerance.bound(expected[i])
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_add_up_and_nan_is_never_close() {
        let tolerance = Tolerance::new(0.5, 0.25);
        assert!(tolerance.accepts(5.5, 4.0));
        assert!(!tolerance.accepts(5.75, 4.0));
        assert!(!tolerance.accepts(f64::NAN, f64::NAN));
        assert!(Tolerance::EXACT.accepts(f64::INFINITY, f64::INFINITY));
        assert!(!Tolerance::relative(1.0).accepts(f64::NAN, 1.0));
    }

    #[test]
    fn decimals_accept_values_that_round_to_the_printed_number() {
        assert!(Tolerance::decimals(2).accepts(28.2149, 28.21));
        assert!(!Tolerance::decimals(2).accepts(28.2151, 28.21));
    }
}
