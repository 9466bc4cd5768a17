//! Captions and detections against published scorers.

mod captions;
mod detection;
