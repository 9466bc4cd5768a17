//! Random streams of an item and of a method.

use posenc_harness::protocol::Context;
use posenc_math::random::stream;
use rand_chacha::ChaCha8Rng;

/// The random stream of a purpose, named by item and seed. The name does not contain group and method, so that they are compared on the
/// same random numbers: initial weights, batches, held-out data and, if they use them, frequencies and dropout masks.
pub fn shared_stream(context: &Context<'_>, purpose: &str) -> ChaCha8Rng {
    let job = context.job;
    stream(context.seed, &format!("{} seed {} {purpose}", job.experiment.id(), job.seed_index))
}

/// The random stream of a purpose, named by item, method and seed. The name does not contain the group, so that groups that vary one
/// setting of a method share random numbers.
pub fn method_stream(context: &Context<'_>, purpose: &str) -> ChaCha8Rng {
    let job = context.job;
    let (item, method, seed) = (job.experiment.id(), &job.variant.id, job.seed_index);
    stream(context.seed, &format!("{item} {method} seed {seed} {purpose}"))
}
