//! Time limits for inputs: a constant plus a time per byte, so that a reader whose time grows faster than its input fails.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::Target;

/// Constant part of the time limit; readers whose limits do not depend on the file length stay below it.
const START: Duration = Duration::from_secs(10);
/// Time for each million bytes.
const PER_MEGABYTE: Duration = Duration::from_secs(2);
/// Length of a lengthened input: a reader that takes a nanosecond for each pair of bytes takes a minute.
const LENGTHENED: usize = 1 << 18;
/// Maximum length of the repeated part.
const LONGEST_PART: usize = 256;

/// Factor of the time limits: `POSENC_TIME_FACTOR`, which `fuzz/run` sets for builds with a sanitizer.
fn factor() -> f64 {
    static FACTOR: OnceLock<f64> = OnceLock::new();
    let read = || std::env::var("POSENC_TIME_FACTOR").ok()?.parse::<f64>().ok();
    *FACTOR.get_or_init(|| read().unwrap_or(1.0).clamp(1.0, 100.0))
}

fn allowed(bytes: usize) -> Duration {
    (START + PER_MEGABYTE.mul_f64(bytes as f64 / 1e6)).mul_f64(factor())
}

/// CPU time of this thread, if the system reports it.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

/// Runs a target within the time limit of its input.
///
/// # Panics
///
/// If the target exceeds the limit. A slow input runs a second time, measured in CPU time, so that other work on the machine does not
/// count.
pub fn in_time(target: Target, bytes: &[u8]) -> usize {
    within(allowed(bytes.len()), target, bytes)
}

fn within(allowed: Duration, target: Target, bytes: &[u8]) -> usize {
    let started = Instant::now();
    let accepted = target(bytes);
    if started.elapsed() <= allowed {
        return accepted;
    }
    let (before, started) = (processor_time(), Instant::now());
    target(bytes);
    let spent = processor_time().zip(before).map(|(after, before)| after.saturating_sub(before));
    let spent = spent.unwrap_or_else(|| started.elapsed());
    assert!(spent <= allowed, "{} bytes took {spent:?}; allowed: {allowed:?}", bytes.len());
    accepted
}

/// Like [`in_time`], but also runs one input in 64 [`lengthened`], since fuzzer inputs are short.
pub fn within_time(target: Target, bytes: &[u8]) -> usize {
    if let [0..4, ..] = blake3::hash(bytes).as_bytes() {
        in_time(target, &lengthened(bytes));
    }
    in_time(target, bytes)
}

/// The input with one part repeated, to about 256 KiB; a hash of the bytes selects the part.
#[must_use]
pub fn lengthened(bytes: &[u8]) -> Vec<u8> {
    let hash = blake3::hash(bytes);
    let number =
        |at: usize| hash.as_bytes()[at..].iter().take(4).fold(0, |n, b| n << 8 | usize::from(*b));
    let from = number(4) % bytes.len().max(1);
    let length = 1 + number(8) % LONGEST_PART;
    let (before, rest) = bytes.split_at(from);
    let (part, after) = rest.split_at(length.min(rest.len()));
    let times = LENGTHENED.saturating_sub(bytes.len()) / part.len().max(1);
    [before, &part.repeat(times + 1), after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a slow reader that passes, and a fast one that does not.
    #[test]
    fn a_reader_that_takes_too_long_is_a_failure() {
        fn fast(bytes: &[u8]) -> usize {
            bytes.iter().filter(|byte| **byte == 0).count()
        }
        fn slow(_: &[u8]) -> usize {
            let started = processor_time().unwrap_or_default();
            while processor_time().is_some_and(|now| now - started < Duration::from_millis(200)) {}
            0
        }
        assert_eq!(in_time(fast, &[0; 1 << 20]), 1 << 20);
        assert!(allowed(2_000_000) >= START + Duration::from_secs(4));
        if processor_time().is_some() {
            let limit = Duration::from_millis(100);
            assert!(std::panic::catch_unwind(|| within(limit, slow, b"x")).is_err());
        }
    }

    /// Catches an input that is not lengthened, or that loses the bytes around the repeated part.
    #[test]
    fn inputs_are_lengthened_by_repeating_a_part() {
        for bytes in [&b""[..], b"a", b"item: { a: 1 }\n", &[7; 100_000]] {
            let long = lengthened(bytes);
            assert!(bytes.is_empty() || long.len() > LENGTHENED / 2, "{}", long.len());
            assert!(long.len() <= LENGTHENED.max(bytes.len()) + 2 * LONGEST_PART);
            assert_eq!(long.first(), bytes.first());
            assert_eq!(long.last(), bytes.last());
        }
    }
}
