//! Object detection: overlap of boxes, and average precision of a set of detections.

pub mod boxes;
pub mod precision;
