//! Errata of "Rethinking positional encoding".
//!
//! Most statements of the theory return in the second paper; its equation numbers stand in
//! brackets with the letter T.

mod claims;
mod embedders;
mod propositions;
mod protocol;

use super::Erratum;

pub(super) fn errata() -> impl Iterator<Item = &'static Erratum> {
    let parts = [propositions::ERRATA, embedders::ERRATA, claims::ERRATA, protocol::ERRATA];
    parts.into_iter().flatten()
}
