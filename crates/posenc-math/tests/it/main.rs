//! Captions and detections against published scorers; who knows the kinds of embedders.

mod captions;
mod detection;
mod interpolation;
mod kind_names;
