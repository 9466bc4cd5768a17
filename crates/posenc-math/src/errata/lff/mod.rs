//! Errata of "Learnable Fourier Features for Multi-Dimensional Spatial Positional Encoding".

mod captioning;
mod divergence;
mod kernel;
mod settings;

use super::Erratum;

pub(super) fn errata() -> impl Iterator<Item = &'static Erratum> {
    let parts = [kernel::ERRATA, divergence::ERRATA, captioning::ERRATA, settings::ERRATA];
    parts.into_iter().flatten()
}
