//! Units: one variant × signal × seed each.

pub use posenc_experiments::record::ALL_SIGNALS;
use posenc_experiments::record::KeyParts;

/// One variant × signal × seed.
#[derive(Debug, Clone)]
pub struct Unit {
    /// Name of the signal; `-` without data.
    pub signal: String,
    /// Place of the signal in its data set.
    pub signal_index: usize,
    pub parts: KeyParts,
    /// Label of the data; `-` without data.
    pub data: String,
}

/// Label and checksum if there is no data.
pub const NO_DATA: &str = "-";
