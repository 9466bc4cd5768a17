//! Functions of bytes that run every reader of user files.
//!
//! The fuzz targets call them, and so does `crates/posenc/tests/it/inputs.rs`, so every input that a fuzzer found remains tested. Each
//! function accepts any bytes and must return. The result is the number of readers that accepted the bytes, so that a test can
//! distinguish a seed that is read from one that is rejected at its first byte. `docs/TRUST.md` describes what the readers protect.

mod data;
mod definitions;
mod records;

pub use data::{csv_data, json_data, npz, picture, weights};
pub use definitions::{formula, selectors, yaml};
pub use records::{csv_records, json_records, pages, report};

/// A function of bytes that returns the number of readers that accepted them.
pub type Target = fn(&[u8]) -> usize;

/// All targets by name. A target has a folder of that name in `fuzz/corpus` and a binary in `fuzz/Cargo.toml`.
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

/// The bytes as text, if they are valid UTF-8.
fn text(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok()
}
