//! Errors of networks, inputs and tasks.

pub(crate) fn same(what: &str, found: usize, expected: usize) -> Result<(), NetError> {
    if found == expected {
        Ok(())
    } else {
        Err(NetError::Shape { what: what.to_owned(), found, expected })
    }
}

/// Reason why a task cannot be trained; the message shows how to fix it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NetError {
    #[error("{0} is 0; at least 1 is needed")]
    Zero(&'static str),
    #[error("{what}: expected {expected}, got {found}")]
    Shape { what: String, found: usize, expected: usize },
    #[error("{name} is {value}; allowed: {allowed}")]
    Range { name: &'static str, value: f64, allowed: &'static str },
    /// An index beyond the end of a table or a grid.
    #[error("{what}: got {index}, must be below {count}")]
    Index { what: &'static str, index: u32, count: usize },
    /// A number that is not finite, or too large for single precision.
    #[error("{0} is NaN, infinite or too large for single precision")]
    NotFinite(&'static str),
    /// Parts that are valid alone but cannot be combined; the message names a valid combination.
    #[error("{0}")]
    Combination(String),
    /// Every feature of every training point is zero, so nothing can be learned.
    #[error(
        "every feature of every training point underflows to zero in single precision; \
         widen the embedder (a larger sigma or half width) or raise its dimension"
    )]
    Vanishes,
    /// More memory than a unit may use.
    #[error(
        "{what} needs {needed:.1} GiB, more than the limit of {allowed:.1} GiB: \
         lower the dimension, the width or the number of points"
    )]
    Memory { what: &'static str, needed: f64, allowed: f64 },
    /// A device failure: the device was lost, is out of memory, or a limit was exceeded.
    #[error("{device}: {why}")]
    Device {
        device: String,
        /// What happened, and how to fix it.
        why: String,
    },
    /// A saved state that does not belong to the task, or is damaged.
    #[error("the saved training state cannot be used: {0}")]
    State(String),
}
