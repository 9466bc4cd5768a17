//! Computes the stable rank of an embedding matrix over the number of samples, or over a parameter of the embedder.
//!
//! The rows of the matrix Ψ are ψ(j/N) for j = 0 … N − 1. With `directions`, they are the N² rows of the encoding of the plane at
//! (i/N, j/N), of which only `stable_rank` is recorded. The abscissa of all metrics is N, or the value of the sweep.
//!
//! Records:
//!
//! - `stable_rank`: ‖Ψ‖²_F/σ_1².
//! - `stable_rank_bound`: min(N, b), if the embedder has an upper bound b for d → ∞.
//! - `stable_rank_law`: N·D(0)/max_k Σ_j D(j/N) cos(2πjk/N), if the embedder has a law D(Δ) and D, continued periodically, is positive
//!   semidefinite. Without negative D, the maximum is the sum at k = 0.
//! - `stable_rank_limit`: the stable rank for d → ∞ without periodic continuation; Fourier kinds only.

mod run;

use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_math::embedder::EmbedderSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::whole;
use crate::grid_network::Directions;
use crate::sweep::Sweep;

pub const KIND: Kind = Kind {
    // 2: the law is the maximum over k, not the sum at k = 0.
    revision: 2,
    needs_embedder: true,
    without_data: WithoutData::Theory,
    ..kind!(StableRank, "stable-rank")
};

/// Settings of `stable-rank`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StableRank {
    /// Numbers N of equally spaced samples. With `sweep`, each N is a signal.
    pub samples: NumberList,
    /// An embedder parameter that varies instead of N.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// Directions along which the plane is embedded, as for `network-nd`; the line if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directions: Option<Directions>,
}

impl Settings for StableRank {
    fn check(&self) -> Result<(), Fault> {
        let most = self.directions.map_or(8192.0, |_| 90.0);
        whole("samples", &self.samples, 1.0, most)
    }

    fn check_embedder(&self, spec: &EmbedderSpec) -> Result<(), Fault> {
        self.directions.map_or(Ok(()), |directions| directions.check(spec))?;
        self.sweep.as_ref().map_or(Ok(()), |sweep| sweep.check(spec))
    }

    fn swept(&self) -> usize {
        Sweep::count(self.sweep.as_ref())
    }
}
