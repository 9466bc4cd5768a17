//! Signals on grids, their training positions, and models that fit them. The protocols on images and clips and `posenc fit` use this
//! module.

pub mod auto_width;
pub mod closed;
mod complex;
mod inputs;
mod pictures;
mod points;
mod problem;
mod signal;

use anyhow::Result;
use posenc_data::Signal;
use posenc_harness::protocol::Context;
use posenc_harness::unit::Unit;
use posenc_math::random::stream;

use crate::grid_network::TestPositions;

pub use crate::memory::check_memory;
pub use complex::Scattered;
pub use inputs::Features;
pub use pictures::pictures;
pub use points::{Rule, Split, mean_squared_error, positions_per_axis, split};
pub use problem::{Problem, interleaved};
#[cfg(test)]
pub use signal::filled;
pub use signal::signal_of;

/// Default number of iterations of the closed form at scattered positions.
pub const ITERATIONS: usize = 100;

/// Splits the signal of a unit. The name of the random stream contains item, signal and seed only, so all methods of an item use the same
/// random positions.
pub fn split_unit(
    context: &Context<'_>,
    unit: &Unit,
    signal: &Signal,
    rule: Rule,
    tests: TestPositions,
) -> Result<Split> {
    let (item, repeat) = (context.job.experiment.id(), context.job.seed_index);
    let label = format!("{item} mask {} seed {repeat}", unit.signal);
    split(&signal.sides, rule, tests, &mut stream(context.seed, &label))
}
