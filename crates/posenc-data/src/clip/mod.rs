//! Clips of films, read from videos, folders of frames and arrays.

pub mod footage;
pub mod frame;
mod natural;
pub mod video;
