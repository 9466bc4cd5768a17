//! Formulas of embedders.

use posenc_math::embedder::{self, EmbedderSpec, names};
use posenc_math::random::stream;

use super::text;

/// Builds an embedder with the text as its profile formula, and computes rows of its matrix.
pub fn formula(bytes: &[u8]) -> usize {
    let Some(text) = text(bytes) else { return 0 };
    let spec = EmbedderSpec::new(names::FORMULA).text("psi", text).number("dimension", 5.0);
    let mut accepted = 0;
    for spec in [spec.clone().number("s", 0.1).text("boundary", "periodic"), spec] {
        if let Ok(embedder) = embedder::build(&spec, &mut stream(0, "inputs")) {
            embedder::matrix(&*embedder, &[0.0, 0.3, 1.0]);
            accepted += 1;
        }
    }
    accepted
}
