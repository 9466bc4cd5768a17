//! Errata of "Rethinking positional encoding".
//!
//! The second paper repeats most of the theory; its equation numbers are in parentheses after the
//! letter T.

mod claims;
mod embedders;
mod propositions;
mod protocol;

use super::Erratum;

pub(super) fn errata() -> impl Iterator<Item = &'static Erratum> {
    let parts = [propositions::ERRATA, embedders::ERRATA, claims::ERRATA, protocol::ERRATA];
    parts.into_iter().flatten()
}
