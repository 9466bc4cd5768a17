//! Captions and detections against published scorers; who knows the kinds of embedders.

mod captions;
mod detection;
mod kind_names;
