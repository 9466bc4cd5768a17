//! Computes the stable rank of an embedding matrix over the number of samples, or over a parameter of the embedder.
//!
//! Records `stable_rank`, `stable_rank_bound` = min(N, bound), `stable_rank_law` = N·D(0)/Σ D(j/N) and `stable_rank_limit` (d → ∞,
//! Fourier kinds). The abscissa is N, or the value of the sweep.

#[cfg(feature = "run")]
mod run;

use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::whole;
use crate::sweep::Sweep;

/// The kind `stable-rank`.
pub const KIND: Kind = Kind {
    needs_embedder: true,
    example: include_str!("example.yaml"),
    runner: runner!(StableRank),
    without_data: WithoutData::Theory,
    ..Kind::of::<StableRank>("stable-rank")
};

/// Settings of `stable-rank`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StableRank {
    /// Numbers of equispaced samples N. With `sweep`, each N is a signal of its own.
    pub samples: NumberList,
    /// An embedder parameter that varies instead of N.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
}

impl Settings for StableRank {
    fn check(&self) -> Result<(), Fault> {
        whole("samples", &self.samples, 1.0, 8192.0)
    }

    fn swept(&self) -> usize {
        Sweep::count(self.sweep.as_ref())
    }
}
