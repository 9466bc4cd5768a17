//! Maps values to places on an axis, and computes ticks.

use crate::numbers::{significant, superscript};

/// Values beyond this are treated as infinite, so that differences do not overflow.
const FARTHEST: f64 = 1e290;
/// Values closer to zero than this have no place on a logarithmic axis.
const NEAREST: f64 = 1e-290;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct AxisSpec {
    pub label: String,
    pub log: bool,
    /// Smallest value shown; computed from the values if `None`.
    pub from: Option<f64>,
    /// Largest value shown; computed from the values if `None`.
    pub to: Option<f64>,
    /// Whether the largest value comes first.
    pub reversed: bool,
}

impl AxisSpec {
    /// Whether a value has a place on the axis.
    pub fn shows(&self, value: f64) -> bool {
        value.abs() < FARTHEST && (!self.log || value > NEAREST)
    }
}

/// An axis with its limits. It maps values to shares of its length.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    log: bool,
    low: f64,
    high: f64,
    reversed: bool,
}

/// A tick: its place as a share of the axis, and its label.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// 0 at the lower end, 1 at the upper.
    pub at: f64,
    /// The number; empty for a minor tick.
    pub label: String,
    /// Whether its label is kept in preference to those of minor ticks if there is no room for all.
    pub major: bool,
}

impl Scale {
    /// Limits around `values` with a margin, or without one if `tight`.
    pub fn new(spec: &AxisSpec, values: impl Iterator<Item = f64>, tight: bool) -> Scale {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for v in values.filter(|v| spec.shows(*v)) {
            let v = if spec.log { v.log10() } else { v };
            low = low.min(v);
            high = high.max(v);
        }
        if low > high {
            (low, high) = if spec.log { (-1.0, 1.0) } else { (0.0, 1.0) };
        }
        let middle = 0.5 * low + 0.5 * high;
        // Rounding noise is not a range: a constant stays a flat line.
        if high - low <= 1e-9 * middle.abs().max(if spec.log { 1.0 } else { 0.0 }) || high == low {
            let reach = match (spec.log, middle == 0.0) {
                (true, _) => 0.5,
                (false, true) => 1.0,
                (false, false) => 0.2 * middle.abs(),
            };
            (low, high) = (middle - reach, middle + reach);
        } else if !tight {
            let air = 0.05 * (high - low);
            // An axis of nonnegative values starts at zero or above.
            let floor = if !spec.log && low >= 0.0 { 0.0 } else { f64::NEG_INFINITY };
            (low, high) = ((low - air).max(floor), high + air);
        }
        let limit = |v: Option<f64>| {
            v.filter(|v| spec.shows(*v)).map(|v| if spec.log { v.log10() } else { v })
        };
        if let Some(from) = limit(spec.from) {
            low = from;
        }
        if let Some(to) = limit(spec.to) {
            high = to;
        }
        if low >= high {
            // Only one limit is specified, and all values lie beyond it.
            let reach = if spec.log { 1.0 } else { low.abs().max(1.0) };
            (low, high) = match spec.to {
                Some(_) => (high - reach, high),
                None => (low, low + reach),
            };
        }
        Scale { log: spec.log, low, high, reversed: spec.reversed }
    }

    /// Limits given in the axis' own measure (logarithms on a logarithmic axis).
    pub fn between(log: bool, low: f64, high: f64, reversed: bool) -> Scale {
        Scale { log, low, high, reversed }
    }

    /// A value's place as a share of the axis; `None` if it has no place.
    pub fn place(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || (self.log && value <= 0.0) {
            return None;
        }
        Some(self.share(if self.log { value.log10() } else { value }))
    }

    /// Like [`Scale::place`] for a value in the axis' own measure.
    pub fn share(&self, measure: f64) -> f64 {
        let share = (measure - self.low) / (self.high - self.low);
        if self.reversed { 1.0 - share } else { share }
    }

    /// About `wanted` ticks with labels, and minor ones between decades, all within the axis.
    pub fn ticks(&self, wanted: usize) -> Vec<Tick> {
        let mut ticks = self.around(wanted.clamp(2, 12));
        ticks.retain(|tick| (-1e-6..=1.0 + 1e-6).contains(&tick.at));
        ticks
    }

    /// Ticks, some of which may be beyond the ends of the axis.
    fn around(&self, wanted: usize) -> Vec<Tick> {
        if !self.log {
            return self.linear(wanted);
        }
        if self.high - self.low < 0.7 {
            // Within a decade, linear ticks are easier to read.
            let (low, high) = (10f64.powf(self.low), 10f64.powf(self.high));
            let ticks = Scale::between(false, low, high, false).linear(wanted);
            let moved = |t: Tick| {
                let at = self.place(low + t.at * (high - low))?;
                Some(Tick { at, ..t })
            };
            return ticks.into_iter().filter_map(moved).collect();
        }
        self.decades(wanted)
    }

    fn linear(&self, wanted: usize) -> Vec<Tick> {
        let span = self.high - self.low;
        let step = nice_step(span / wanted as f64);
        if !step.is_normal() || !span.is_normal() {
            return Vec::new();
        }
        let first = (self.low / step - 1e-9).ceil();
        let values: Vec<f64> = (0..=2 * wanted + 2)
            .map(|i| (first + i as f64) * step)
            .filter(|v| *v <= self.high + 1e-9 * span)
            .map(|v| if v.abs() < 1e-9 * span { 0.0 } else { v })
            .collect();
        let labels = linear_labels(&values, step);
        values
            .iter()
            .zip(labels)
            .map(|(v, label)| Tick { at: self.share(*v), label, major: true })
            .collect()
    }

    fn decades(&self, wanted: usize) -> Vec<Tick> {
        let (first, last) = ((self.low - 1e-9).ceil() as i32, (self.high + 1e-9).floor() as i32);
        let count = (last - first + 1).max(0) as usize;
        let every = count.div_ceil(wanted.max(1)).max(1) as i32;
        let mut ticks = Vec::new();
        for exponent in first - 1..=last {
            let labelled = exponent >= first && exponent.rem_euclid(every) == 0;
            // Skip ticks without labels if there are many decades.
            if exponent >= first && (labelled || count <= 24) {
                ticks.push(Tick {
                    at: self.share(f64::from(exponent)),
                    label: if labelled { power(exponent) } else { String::new() },
                    major: true,
                });
            }
            if every > 1 {
                continue;
            }
            for digit in 2..=9 {
                let at = self.share(f64::from(exponent) + f64::from(digit).log10());
                // With few decades, labels at 2 and 5 help to read off values.
                let named = count <= 2 && (digit == 2 || digit == 5);
                let value = f64::from(digit) * 10f64.powi(exponent);
                let label = if named { significant(value, 3) } else { String::new() };
                ticks.push(Tick { at, label, major: false });
            }
        }
        ticks
    }
}

/// 1, 2, 2.5 or 5 times a power of ten, at least `raw`.
fn nice_step(raw: f64) -> f64 {
    let power = 10f64.powf(raw.log10().floor());
    let share = raw / power;
    let factor = match share {
        s if s <= 1.0 + 1e-9 => 1.0,
        s if s <= 2.0 + 1e-9 => 2.0,
        s if s <= 2.5 + 1e-9 => 2.5,
        s if s <= 5.0 + 1e-9 => 5.0,
        _ => 10.0,
    };
    factor * power
}

fn linear_labels(values: &[f64], step: f64) -> Vec<String> {
    let largest = values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    if largest >= 1e5 || (largest < 1e-3 && largest > 0.0) {
        // One power of ten for all labels, so that they differ only where the numbers do.
        let exponent = largest.log10().floor() as i32;
        let unit = 10f64.powi(exponent);
        if unit.is_normal() {
            let decimals = decimals(step / unit);
            return values
                .iter()
                .map(|v| match *v {
                    0.0 => "0".into(),
                    v => format!("{:.decimals$}×10{}", v / unit, superscript(exponent))
                        .replace('-', "−"),
                })
                .collect();
        }
    }
    let decimals = decimals(step);
    values.iter().map(|v| format!("{v:.decimals$}").replace('-', "−")).collect()
}

/// Digits after the point that a multiple of `step` needs.
fn decimals(step: f64) -> usize {
    let whole = |d: &usize| {
        let scaled = step * 10f64.powi(*d as i32);
        scaled >= 1.0 - 1e-9 && (scaled - scaled.round()).abs() < 1e-6 * scaled
    };
    (0..12).find(whole).unwrap_or(12)
}

/// A power of ten, written out from 0.001 to 1000.
fn power(exponent: i32) -> String {
    match (-3..=3).contains(&exponent) {
        true => significant(10f64.powi(exponent), 1),
        false => format!("10{}", superscript(exponent)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(log: bool, values: &[f64]) -> Vec<String> {
        let spec = AxisSpec { log, ..AxisSpec::default() };
        let ticks = Scale::new(&spec, values.iter().copied(), true).ticks(5);
        ticks.into_iter().map(|t| t.label).filter(|l| !l.is_empty()).collect()
    }

    #[test]
    fn linear_ticks_are_round_numbers() {
        assert_eq!(labels(false, &[0.0, 50.0]), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(labels(false, &[-0.5, 0.5]), ["−0.4", "−0.2", "0.0", "0.2", "0.4"]);
        assert_eq!(labels(false, &[0.0, 3e6]), ["0", "1×10⁶", "2×10⁶", "3×10⁶"]);
    }

    #[test]
    fn logarithmic_ticks_are_decades() {
        assert_eq!(labels(true, &[1e-4, 0.1]), ["10⁻⁴", "0.001", "0.01", "0.1"]);
        assert_eq!(labels(true, &[1.0, 20.0]), ["1", "2", "5", "10", "20"]);
        assert_eq!(labels(true, &[2.0, 4.0]), ["2.0", "2.5", "3.0", "3.5", "4.0"]);
    }

    #[test]
    fn a_reversed_axis_begins_with_its_largest_value() {
        let spec = AxisSpec { log: true, reversed: true, ..AxisSpec::default() };
        let scale = Scale::new(&spec, [1e-4, 0.1].into_iter(), true);
        assert_eq!((scale.place(0.1), scale.place(1e-4)), (Some(0.0), Some(1.0)));
        let first = scale.ticks(5).into_iter().find(|t| t.label == "0.1");
        assert!(first.is_some_and(|t| t.at.abs() < 1e-9));
    }

    /// Catches axes with too many ticks or fewer than two labels.
    #[test]
    fn ticks_are_few() {
        for log in [false, true] {
            for values in [[1e-200, 1e200], [1.0, 1.0 + 1e-8], [1e12, 1e12 + 1e4], [0.1, 3e5]] {
                let spec = AxisSpec { log, ..AxisSpec::default() };
                let ticks = Scale::new(&spec, values.into_iter(), false).ticks(7);
                assert!(ticks.len() <= 70, "{} ticks", ticks.len());
                assert!(ticks.iter().filter(|t| !t.label.is_empty()).count() >= 2, "{ticks:?}");
            }
        }
    }

    /// Catches limits that coincide, which would divide by zero later.
    #[test]
    fn limits_are_always_apart() {
        let spec = |log, from, to| AxisSpec { log, from, to, ..AxisSpec::default() };
        for log in [false, true] {
            for values in [&[][..], &[0.0], &[3.0, 3.0], &[-1.0], &[f64::NAN], &[1e300, -1e300]] {
                for (from, to) in
                    [(None, None), (Some(5.0), None), (None, Some(0.5)), (Some(0.1), Some(0.2))]
                {
                    let s = Scale::new(&spec(log, from, to), values.iter().copied(), false);
                    assert!(s.high > s.low && (s.high - s.low).is_finite(), "{s:?}");
                }
            }
        }
    }
}
