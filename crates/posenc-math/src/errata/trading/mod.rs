//! Errata of "Trading Positional Complexity vs Deepness in Coordinate Networks".
//!
//! Errors repeated from the first paper are listed there, with both equation numbers.

mod complex;
mod embedders;
mod protocol;
mod results;

use super::Erratum;

pub(super) fn errata() -> impl Iterator<Item = &'static Erratum> {
    let parts = [embedders::ERRATA, complex::ERRATA, results::ERRATA, protocol::ERRATA];
    parts.into_iter().flatten()
}
