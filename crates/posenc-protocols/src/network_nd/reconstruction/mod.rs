//! Signals on grids, what of them is fitted, and how: shared by the protocols on images and clips
//! and by `posenc fit`.

pub mod auto_width;
pub mod closed;
mod complex;
mod inputs;
mod pictures;
mod points;
mod problem;
mod signal;

use posenc_math::random::stream;
use rand_chacha::ChaCha8Rng;

use posenc_harness::protocol::Context;
use posenc_harness::unit::Unit;

pub use complex::Scattered;
pub use pictures::pictures;
pub use points::{Rule, Split, mean_squared_error, positions_per_axis, split};
pub use problem::{Problem, interleaved};
pub use signal::Signal;

/// Iterations of the closed form at scattered positions where none are asked for.
pub const ITERATIONS: usize = 100;

/// The stream that a unit's random positions are drawn from, named by item and signal alone: all
/// methods of an item see the same positions.
pub fn mask(context: &Context<'_>, unit: &Unit) -> ChaCha8Rng {
    let (item, repeat) = (context.job.experiment.id(), context.job.seed_index);
    stream(context.seed, &format!("{item} mask {} seed {repeat}", unit.signal))
}
