//! What an experiment file may ask for: beyond these limits a typo, or a file from elsewhere, would fill the memory or the week
//! before anything runs. What a unit takes while it runs is checked again by what runs it.

/// Longest list of numbers: a range with a typo in its step must not fill the memory. The papers' longest has 201.
pub const LONGEST_LIST: usize = 10_000;

/// Most variants of a file: twenty times the largest of the papers' experiments. Each is resolved for four profiles.
pub const MOST_VARIANTS: usize = 1000;

/// Most jobs (variants × seeds) of a file at a profile; each has a key of a kilobyte.
pub const MOST_JOBS: usize = 100_000;

/// Most bytes of all resolved settings of a file, as text: settings of a group are repeated for each variant and profile.
pub const MOST_SETTINGS: usize = 1 << 24;

/// Most values of all sweeps of a file, over variants and profiles: each is an embedder that is checked, and a formula among
/// them takes up to a millisecond.
pub const MOST_SWEPT: usize = 20_000;

/// Most points of the curves of a unit, over its runs: each is a row of the record.
pub const MOST_CURVE_POINTS: f64 = 1e6;

/// Most weights of an attention model, fifty times the largest of the papers: with gradients and Adam's moments 32 GB.
const MOST_WEIGHTS: f64 = 2e9;

/// Most bytes of what a step, or the held-out data, must keep at once.
const MOST_STEP_BYTES: f64 = 64e9;

type Fault = (&'static str, String);

/// A transformer, roughly: what it has at least.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transformer {
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub feed_forward: usize,
    /// Numbers of all other weights, such as tables of words.
    pub others: f64,
    /// Items of a batch.
    pub batch: usize,
    /// Length of an item.
    pub length: usize,
}

impl Transformer {
    /// Refuses a model that has more weights, or a step that keeps more, than any machine it is meant for.
    pub(super) fn check(self) -> Result<(), Fault> {
        let [layers, width, heads, feed_forward, batch, length] =
            [self.layers, self.width, self.heads, self.feed_forward, self.batch, self.length]
                .map(|n| n as f64);
        let weights = layers * (4.0 * width * width + 2.0 * width * feed_forward) + self.others;
        if weights > MOST_WEIGHTS {
            let message = format!(
                "the model would have {weights:.1e} weights; allowed: {MOST_WEIGHTS:e}. Lower `width`, `feed_forward` or the \
                 number of layers"
            );
            return Err(("width", message));
        }
        // Input and output of attention and of the layer that follows, and the weights of attention.
        let kept = 4.0 * layers * batch * length * (heads * length + 4.0 * width + feed_forward);
        check_bytes(
            "batch",
            "a step would keep",
            kept,
            "`batch`, the length of items or the number of layers",
        )
    }
}

/// Refuses what would take more than any machine it is meant for.
pub(super) fn check_bytes(
    key: &'static str,
    what: &str,
    bytes: f64,
    lower: &str,
) -> Result<(), Fault> {
    if bytes <= MOST_STEP_BYTES {
        return Ok(());
    }
    let message = format!(
        "{what} {:.0} GB; allowed: {:.0} GB. Lower {lower}",
        bytes / 1e9,
        MOST_STEP_BYTES / 1e9
    );
    Err((key, message))
}

/// Refuses curves with more points than a record can hold.
pub(super) fn check_curves(epochs: u64, every: u64, runs: usize) -> Result<(), Fault> {
    let points = epochs.checked_div(every).unwrap_or(0) as f64 * runs as f64;
    if points <= MOST_CURVE_POINTS {
        return Ok(());
    }
    let message = format!(
        "every {every} of {epochs} epochs gives {points:.1e} points over {runs} runs; allowed: {MOST_CURVE_POINTS:e}"
    );
    Err(("curve_every", message))
}
