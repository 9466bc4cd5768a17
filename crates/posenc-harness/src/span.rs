//! Time spans, written as `2h`, `1h30m`, `90m` or `45s`.

use std::str::FromStr;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

const ALLOWED: &str = "allowed are hours, minutes and seconds as whole numbers, such as 2h, 1h30m, 90m, 45s; more than 0, at most 10000h";

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut rest = text.trim();
        let mut seconds = 0u64;
        let mut units: &[(char, u64)] = &[('h', 3600), ('m', 60), ('s', 1)];
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or(ALLOWED)?;
            let number: u64 = rest[..digits].parse().map_err(|_| ALLOWED)?;
            let unit = rest[digits..].chars().next().ok_or(ALLOWED)?;
            // Each unit may appear once, larger units first.
            let place = units.iter().position(|(name, _)| *name == unit).ok_or(ALLOWED)?;
            seconds = number
                .checked_mul(units[place].1)
                .and_then(|more| seconds.checked_add(more))
                .ok_or(ALLOWED)?;
            units = &units[place + 1..];
            rest = rest[digits + unit.len_utf8()..].trim_start();
        }
        if seconds == 0 || seconds > 10_000 * 3600 {
            return Err(ALLOWED.to_owned());
        }
        Ok(Span(Duration::from_secs(seconds)))
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
        let malformed = [
            "", " ", "2", "h", "2 hours", "2d", "-1h", "1.5h", "30m1h", "1h1h", "1h30", "2ħ", "１h",
        ];
        let too_small = ["0s", "0h0m"];
        let too_large = ["10001h", "9999999999999999999h", "99999999999999999999h"];
        for text in malformed.into_iter().chain(too_small).chain(too_large) {
            let error = text.parse::<Span>().unwrap_err();
            assert!(error.contains("1h30m"), "{text}: {error}");
        }
    }
}
