//! Time spans, written as `2h`, `1h30m`, `90m` or `45s`.

use std::str::FromStr;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

const MAX_SECONDS: u64 = 10_000 * 3600;

impl FromStr for Span {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let span = humantime::parse_duration(text.trim()).ok();
        let range = Duration::from_secs(1)..=Duration::from_secs(MAX_SECONDS);
        span.filter(|span| range.contains(span)).map(Span).ok_or(
            "allowed are hours, minutes and seconds as whole numbers, such as 2h, 1h30m, 90m, 45s; at least 1s, at most 10000h",
        )
    }
}

/// A duration for people: `0.8 s`, `12 s`, `3 min 05 s`, `2 h 10 min`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..10 => format!("{seconds:.1} s"),
        10..120 => format!("{whole} s"),
        120..7200 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// A number of units for people: `1 unit`, `7 units`.
pub fn counted(units: usize) -> String {
    format!("{units} unit{}", if units == 1 { "" } else { "s" })
}

/// Number of failed units as a suffix, such as `, 2 failed`; empty for none.
pub fn and_failed(units: usize) -> String {
    if units == 0 { String::new() } else { format!(", {units} failed") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a span that is parsed incorrectly, and a typo that is accepted.
    #[test]
    fn spans_are_read_or_refused() {
        for (text, seconds) in
            [("2h", 7200), ("45s", 45), (" 1h 30m 5s ", 5405), ("10000h", 36_000_000)]
        {
            assert_eq!(text.parse(), Ok(Span(Duration::from_secs(seconds))), "{text}");
        }
        for text in ["", "2", "h", "-1h", "1h30", "１h", "0s", "10001h", "99999999999999999999h"] {
            let error = text.parse::<Span>().unwrap_err();
            assert!(error.contains("1h30m"), "{text}: {error}");
        }
    }
}
