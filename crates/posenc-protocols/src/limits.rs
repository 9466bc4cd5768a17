//! Limits of settings, so that a typo or an untrusted file cannot exhaust memory before a unit runs. Units check their memory again when
//! they run.

use posenc_experiments::schema::protocol::Fault;

/// Maximum number of curve points of a unit over all its runs; each is a row of the record.
pub const MAX_CURVE_POINTS: f64 = 1e6;

/// Maximum number of weights of an attention model, fifty times the largest of the papers: 32 GB with gradients and Adam's moments.
const MAX_WEIGHTS: f64 = 2e9;

/// Maximum bytes of a training step, or of the held-out data.
const MAX_STEP_BYTES: f64 = 64e9;

#[derive(Debug, Clone, Copy)]
pub struct Transformer {
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub feed_forward: usize,
    /// Number of all other weights, such as embedding tables.
    pub others: f64,
    pub batch: usize,
    /// Number of tokens of an item.
    pub length: usize,
}

/// The transformer of settings that have its width, heads and feed-forward width.
macro_rules! transformer {
    ($sizes:expr, $layers:expr, $batch:expr, $length:expr) => {
        crate::limits::Transformer {
            layers: $layers,
            width: $sizes.width,
            heads: $sizes.heads,
            feed_forward: $sizes.feed_forward,
            others: 0.0,
            batch: $batch,
            length: $length,
        }
    };
}
pub(crate) use transformer;

impl Transformer {
    fn numbers(self) -> [f64; 6] {
        [self.layers, self.width, self.heads, self.feed_forward, self.batch, self.length]
            .map(|n| n as f64)
    }

    /// Refuses a model whose weights or activations would not fit on any supported machine. Both numbers are lower bounds.
    pub fn check(self) -> Result<(), Fault> {
        let [layers, width, heads, feed_forward, batch, length] = self.numbers();
        let weights = layers * (4.0 * width * width + 2.0 * width * feed_forward) + self.others;
        if weights > MAX_WEIGHTS {
            let message = format!(
                "the model would have {weights:.1e} weights; allowed: {MAX_WEIGHTS:e}. Lower `width`, `feed_forward` or the \
                 number of layers"
            );
            return Err(("width", message));
        }
        // Inputs and outputs of attention and of feed-forward layers, and attention weights.
        let kept = 4.0 * layers * batch * length * (heads * length + 4.0 * width + feed_forward);
        check_bytes(
            "batch",
            "a step would keep",
            kept,
            "`batch`, the length of items or the number of layers",
        )
    }

    /// The sizes as a type of the models.
    #[cfg(feature = "attention")]
    pub fn sizes(self) -> posenc_attention::layers::TransformerSizes {
        let Transformer { width, heads, feed_forward, layers, .. } = self;
        posenc_attention::layers::TransformerSizes { width, heads, feed_forward, layers }
    }
}

/// Refuses a step or data that would not fit on any supported machine.
pub fn check_bytes(key: &'static str, what: &str, bytes: f64, lower: &str) -> Result<(), Fault> {
    if bytes <= MAX_STEP_BYTES {
        return Ok(());
    }
    let message = format!(
        "{what} {:.0} GB; allowed: {:.0} GB. Lower {lower}",
        bytes / 1e9,
        MAX_STEP_BYTES / 1e9
    );
    Err((key, message))
}

/// Refuses curves with more points than a record can hold.
pub fn check_curves(epochs: u64, every: u64, runs: usize) -> Result<(), Fault> {
    let points = epochs.checked_div(every).unwrap_or(0) as f64 * runs as f64;
    if points <= MAX_CURVE_POINTS {
        return Ok(());
    }
    let message = format!(
        "every {every} of {epochs} epochs yields {points:.1e} points over {runs} runs; allowed: {MAX_CURVE_POINTS:e}"
    );
    Err(("curve_every", message))
}
