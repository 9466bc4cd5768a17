//! Comparisons with published implementations, and a check that only the registry names kinds of embedders.

mod captions;
mod detection;
mod interpolation;
mod kind_names;
