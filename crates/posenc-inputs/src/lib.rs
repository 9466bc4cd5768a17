//! Every reader of a user's file behind one function from bytes.
//!
//! Fuzzing (`fuzz/`) and the tests next to this file run the same functions: what a fuzzer finds stays found. Each takes any
//! bytes and must return; it gives how many readers accepted them, so that a test can tell a seed that is read from one
//! that is refused at its first byte. What they guard is in `docs/TRUST.md`.

mod data;
mod definitions;
mod formula;
mod pages;
mod records;
mod selectors;
mod time;

pub use data::{csv_data, json_data, npz, picture, weights};
pub use definitions::yaml;
pub use formula::formula;
pub use pages::pages;
pub use records::{csv_records, json_records, report};
pub use selectors::selectors;
pub use time::{in_time, lengthened, within_time};

/// A function of bytes; how many readers accepted them.
pub type Target = fn(&[u8]) -> usize;

/// All of them by name. A target has a folder of that name in `fuzz/corpus` and a file in `fuzz/fuzz_targets`.
pub const TARGETS: &[(&str, Target)] = &[
    ("yaml", yaml),
    ("csv_records", csv_records),
    ("json_records", json_records),
    ("report", report),
    ("formula", formula),
    ("npz", npz),
    ("json_data", json_data),
    ("csv_data", csv_data),
    ("picture", picture),
    ("weights", weights),
    ("selectors", selectors),
    ("pages", pages),
];

/// The bytes as text, where they are.
fn text(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok()
}
