//! Boxes around things in images: how two overlap, and how good a set of detections is.

pub mod boxes;
pub mod precision;
