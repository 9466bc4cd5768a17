//! Maximum numbers of bytes of files, by kind. A longer file is refused before it is read.

/// The manifest of data sets.
pub const MAX_MANIFEST_BYTES: u64 = 1 << 17;
/// Experiments and papers: forty times the largest.
pub const MAX_YAML_BYTES: u64 = 1 << 20;
/// Screens of RICO, their semantics, and captions of widgets: several times the published ones.
pub const MAX_SCREEN_BYTES: u64 = 1 << 26;
/// Records and pages: twenty times the largest record.
pub const MAX_RECORD_BYTES: u64 = 1 << 27;
/// Pictures, and what they decode to: 179 million pixels in color.
pub const MAX_IMAGE_BYTES: u64 = 1 << 29;
/// Annotations and arrays: twice the largest of COCO; forty clips of the papers.
pub const MAX_ARRAY_BYTES: u64 = 1 << 30;
pub const MAX_WEIGHT_BYTES: u64 = 1 << 31;
/// Arrays of downsampled ImageNet, whose archives have 1.6 · 10⁹ bytes.
pub const MAX_ARCHIVE_BYTES: u64 = 1 << 32;
/// Checkpoints and vectors of words. Only the vectors of a vocabulary are kept.
pub const MAX_VECTOR_BYTES: u64 = 1 << 33;
/// A line of text that is read line by line.
pub const MAX_LINE_BYTES: usize = 1 << 16;
