//! Limits of what settings may ask for: beyond these a typo, or a file from elsewhere, would fill the memory before anything
//! runs. What a unit takes while it runs is checked again when it runs.

use posenc_experiments::schema::protocol::Fault;

/// Most points of the curves of a unit, over its runs: each is a row of the record.
pub const MOST_CURVE_POINTS: f64 = 1e6;

/// Maximum number of weights of an attention model, fifty times the papers' largest: 32 GB with gradients and Adam's moments.
const MOST_WEIGHTS: f64 = 2e9;

/// Maximum bytes that a step, or the held-out data, keeps at once.
const MOST_STEP_BYTES: f64 = 64e9;

/// A transformer, roughly.
#[derive(Debug, Clone, Copy, Default)]
pub struct Transformer {
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub feed_forward: usize,
    /// Numbers of all other weights, such as tables of words.
    pub others: f64,
    /// Items of a batch.
    pub batch: usize,
    /// Tokens of an item.
    pub length: usize,
}

impl Transformer {
    fn numbers(self) -> [f64; 6] {
        [self.layers, self.width, self.heads, self.feed_forward, self.batch, self.length]
            .map(|n| n as f64)
    }

    /// Refuses a model that has more weights, or a step that keeps more, than any machine it is meant for. Both are lower bounds.
    pub fn check(self) -> Result<(), Fault> {
        let [layers, width, heads, feed_forward, batch, length] = self.numbers();
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

    /// Bytes that training takes.
    #[cfg(feature = "attention")]
    pub fn bytes(self) -> f64 {
        let [layers, width, heads, feed_forward, batch, length] = self.numbers();
        let weights = layers * (8.0 * width * width + 2.0 * width * feed_forward) + self.others;
        // Kept from the pass forward to the pass back: weights of attention, inputs and outputs of all parts.
        let token = 2.0 * heads * length + 12.0 * width + 3.0 * feed_forward;
        1.5 * crate::memory::WEIGHT * weights + 4.0 * layers * batch * length * token
    }

    /// The sizes of the model.
    #[cfg(feature = "attention")]
    pub fn sizes(self) -> posenc_attention::layers::TransformerSizes {
        let Transformer { width, heads, feed_forward, layers, .. } = self;
        posenc_attention::layers::TransformerSizes { width, heads, feed_forward, layers }
    }
}

/// Refuses what would take more than any machine it is meant for.
pub fn check_bytes(key: &'static str, what: &str, bytes: f64, lower: &str) -> Result<(), Fault> {
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
pub fn check_curves(epochs: u64, every: u64, runs: usize) -> Result<(), Fault> {
    let points = epochs.checked_div(every).unwrap_or(0) as f64 * runs as f64;
    if points <= MOST_CURVE_POINTS {
        return Ok(());
    }
    let message = format!(
        "every {every} of {epochs} epochs yields {points:.1e} points over {runs} runs; allowed: {MOST_CURVE_POINTS:e}"
    );
    Err(("curve_every", message))
}
