//! Indices of signals in a data set, written as `4`, `0..8` or `8..`.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// An inclusive range of signal indices, from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places(pub RangeInclusive<usize>);

const ALLOWED: &str =
    "allowed are a place from 0, such as 4, or a range, such as 0..8 (ends before 8) or 8..";

impl FromStr for Places {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse::<usize>().map_err(|_| ALLOWED),
            false => Err(ALLOWED),
        };
        let (first, last) = match text.trim().split_once("..") {
            None => (number(text.trim())?, number(text.trim())?),
            Some((first, "")) => (number(first)?, usize::MAX),
            Some((first, end)) => (number(first)?, number(end)?.checked_sub(1).ok_or(ALLOWED)?),
        };
        if first > last {
            return Err(ALLOWED.to_owned());
        }
        Ok(Places(first..=last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a range that is parsed incorrectly, and a typo that is accepted.
    #[test]
    fn places_are_read_or_refused() {
        for (text, first, last) in [("4", 4, 4), ("0..8", 0, 7), ("8..", 8, usize::MAX)] {
            assert_eq!(text.parse(), Ok(Places(first..=last)), "{text}");
        }
        let large = format!("0..{}0", usize::MAX);
        for text in ["", " ", "..", "..4", "4..4", "8..4", "-1", "1,2", "0..=3", "+1", "４", &large]
        {
            let error = text.parse::<Places>().unwrap_err();
            assert!(error.contains("0..8"), "{text}: {error}");
        }
    }
}
