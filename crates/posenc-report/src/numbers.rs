//! Formats numbers as text, and computes means for tables and plots.

use std::collections::BTreeSet;

/// Every item once, in the order of first appearance.
pub fn distinct<T: Ord + Copy>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut known = BTreeSet::new();
    items.into_iter().filter(|item| known.insert(*item)).collect()
}

/// Shown in place of a missing number.
pub const MISSING: &str = "–";

/// Formats a number with `digits` decimals, and with thousands separators from 10,000 on. Nonzero numbers that would
/// round to zero, and numbers from 10¹⁵ on, get significant digits instead.
pub fn fixed(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    if value != 0.0 && (value.abs() >= 1e15 || value.abs() < 0.5 * 0.1f64.powi(digits as i32)) {
        return significant(value, digits.max(2));
    }
    let text = format!("{value:.digits$}");
    let text = if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        text.trim_start_matches('-').to_owned()
    } else {
        text
    };
    if value.abs() >= 1e4 { grouped(&text) } else { text }
}

/// Like [`fixed`], but with a sign for positive numbers, too. Numbers that round to zero are shown as zero.
pub fn signed(value: f64, digits: usize) -> String {
    let zero = value.is_finite() && value.abs() < 0.5 * 0.1f64.powi(digits as i32);
    match fixed(if zero { 0.0 } else { value }, digits) {
        text if text.starts_with(['-', '−']) => text,
        text => format!("+{text}"),
    }
}

/// Number of decimals in the shortest form of a number, as it was written down.
pub fn written_digits(value: f64) -> usize {
    let text = format!("{value}");
    text.split_once('.').map_or(0, |(_, digits)| digits.len())
}

pub fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits.saturating_sub(1)).parse().unwrap_or(value)
}

/// At most `digits` significant digits, without trailing zeros; with a power of ten below 10⁻⁴ and from 10¹⁵ on.
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    if value == 0.0 {
        return "0".into();
    }
    let digits = digits.clamp(1, 15);
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..15).contains(&exponent) {
        return format!("{} × 10{}", trimmed(mantissa), superscript(exponent));
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    let text = trimmed(&format!("{value:.decimals$}"));
    if value.abs() >= 1e4 { grouped(&text) } else { text }
}

fn not_finite(value: f64) -> String {
    match value {
        v if v.is_nan() => "NaN".into(),
        v if v > 0.0 => "∞".into(),
        _ => "−∞".into(),
    }
}

fn trimmed(text: &str) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text.to_owned()
    }
}

/// Puts commas between groups of three digits before the point.
fn grouped(text: &str) -> String {
    let (sign, number) = text.strip_prefix('-').map_or(("", text), |d| ("-", d));
    let whole = number.find('.').unwrap_or(number.len());
    let mut out = sign.to_owned();
    for (i, c) in number[..whole].chars().enumerate() {
        if i > 0 && (whole - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out + &number[whole..]
}

pub fn superscript(value: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = |c: char| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
    value.to_string().chars().map(raised).collect()
}

/// `1 value`, `2 values`.
pub fn counted(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

/// Formats seconds in ms, s, min or h.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() || s < 0.0 => MISSING.into(),
        s if s < 0.0005 => "< 1 ms".into(),
        s if s < 0.0995 => format!("{:.0} ms", 1e3 * s),
        s if s < 99.95 => format!("{s:.1} s"),
        s if s < 5970.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Mean and population standard deviation.
pub fn mean_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches small numbers that are printed as zero, differences without their sign, and rounding noise with a negative sign.
    #[test]
    fn numbers_are_printed() {
        for (found, expected) in [
            (fixed(-14_353.14, 1), "-14,353.1"),
            (fixed(f64::NAN, 2), "NaN"),
            (fixed(f64::NEG_INFINITY, 2), "−∞"),
            (fixed(1.234e-7, 2), "1.2 × 10⁻⁷"),
            (fixed(-0.001, 2), "-0.001"),
            (signed(0.071, 2), "+0.07"),
            (signed(-0.0004, 2), "+0.00"),
            (significant(9.999_999_9, 4), "10"),
            (significant(1e-16, 3), "1 × 10⁻¹⁶"),
            (duration(59.96), "60.0 s"),
            (duration(f64::NAN), "–"),
        ] {
            assert_eq!(found, expected);
        }
        assert_eq!([24.7, 3.66, 0.0, 1e-7, 1e22].map(written_digits), [1, 2, 0, 7, 0]);
    }
}
