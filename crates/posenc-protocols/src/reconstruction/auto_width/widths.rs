//! The search for the best width, first among coarse steps and then around the best of them.

use anyhow::{Result, bail};
use posenc_math::embedder::{EmbedderSpec, FitModel, FitParameter, validate};

/// Widths of an embedder relative to the rule.
pub struct Widths<'a> {
    pub open: &'a EmbedderSpec,
    pub parameter: FitParameter,
    /// The model of the rule.
    pub model: FitModel,
    /// Training positions per axis.
    pub n: f64,
}

/// The width with the smallest error.
pub struct Best<T> {
    pub spec: EmbedderSpec,
    /// log₂ of the width relative to the rule.
    pub octaves: f64,
    /// What was found with it.
    pub found: T,
}

impl Widths<'_> {
    /// Tries the widths `coarse` octaves from the rule, and then those `finer` octaves from the best one. `attempt` returns an error measure
    /// and what it found. Fails if no width can be used: it may be out of the embedder's range, or `attempt` fails.
    pub fn search<T>(
        &self,
        coarse: impl IntoIterator<Item = f64>,
        finer: f64,
        attempt: &mut dyn FnMut(&EmbedderSpec) -> Result<(f64, T)>,
    ) -> Result<Best<T>> {
        let (mut best, mut failure): (Option<(f64, Best<T>)>, _) = (None, None);
        let mut consider = |best: &mut Option<(f64, Best<T>)>, octaves: f64| {
            let value = self.parameter.shifted(self.model, self.n, octaves);
            let spec = self.open.clone().number(self.parameter.name, value);
            match validate(&spec).map_err(Into::into).and_then(|()| attempt(&spec)) {
                Ok((error, found)) => {
                    if best.as_ref().is_none_or(|(smallest, _)| error < *smallest) {
                        *best = Some((error, Best { spec, octaves, found }));
                    }
                }
                Err(error) => failure = Some(error),
            }
        };
        for octaves in coarse {
            consider(&mut best, octaves);
        }
        let center = best.as_ref().map_or(0.0, |(_, best)| best.octaves);
        consider(&mut best, center - finer);
        consider(&mut best, center + finer);
        match (best, failure) {
            (Some((_, best)), _) => Ok(best),
            (None, Some(error)) => Err(error.context("no width can be used")),
            (None, None) => bail!("no width was tried"),
        }
    }
}
