//! What can be wrong with a network, an input or a task.

/// Refuses two sizes that differ.
pub(crate) fn same(what: &str, found: usize, expected: usize) -> Result<(), NetError> {
    if found == expected {
        Ok(())
    } else {
        Err(NetError::Shape { what: what.to_owned(), found, expected })
    }
}

/// A task that cannot be trained; the message says what to change.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NetError {
    /// A size of zero.
    #[error("{0} is 0; at least 1 is needed")]
    Zero(&'static str),
    /// Two sizes that must agree.
    #[error("{what}: {found} found, {expected} expected")]
    Shape {
        /// Which sizes.
        what: String,
        /// What was given.
        found: usize,
        /// What is needed.
        expected: usize,
    },
    /// A setting outside its range.
    #[error("{name} is {value}; allowed: {allowed}")]
    Range {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A number that is not finite, or too large for single precision.
    #[error("{0} holds a number that single precision cannot hold (NaN, infinite or too large)")]
    NotFinite(&'static str),
    /// Parts that each are sound and do not go together, and what does.
    #[error("{0}")]
    Combination(String),
    /// Every feature of every point is zero: nothing can be learned from such an embedding.
    #[error(
        "every feature of every training point underflows to zero in single precision; \
         widen the embedder (a larger sigma or half width) or raise its dimension"
    )]
    Vanishes,
    /// More memory than a unit may have.
    #[error(
        "{what} would take {needed:.1} GiB; allowed are {allowed:.1} GiB: lower the dimension, the width or the number of points"
    )]
    Memory {
        /// What asks for it.
        what: &'static str,
        /// GiB asked for.
        needed: f64,
        /// GiB allowed.
        allowed: f64,
    },
    /// A device that cannot do it: lost, out of memory, a limit exceeded.
    #[error("{device}: {why}")]
    Device {
        /// Which device.
        device: String,
        /// What happened, and what helps.
        why: String,
    },
    /// A saved state that does not belong to the task, or is damaged.
    #[error("the saved training state cannot be used: {0}")]
    State(String),
}
