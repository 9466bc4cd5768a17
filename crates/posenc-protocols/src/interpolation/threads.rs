//! Threads for work on many positions.

use std::sync::{Mutex, PoisonError};

use posenc_math::interpolation::Parallel;

/// A number of threads. Whoever is free takes the next piece; what a piece contains does not depend on the thread.
pub struct Threads(pub usize);

impl Parallel for Threads {
    fn for_pieces(&self, size: usize, out: &mut [f64], work: &(dyn Fn(usize, &mut [f64]) + Sync)) {
        let pieces = out.chunks_mut(size.max(1)).enumerate();
        let helpers = self.0.min(pieces.len()).saturating_sub(1);
        let queue = Mutex::new(pieces);
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let drain = || {
            while let Some((index, piece)) = next() {
                work(index, piece);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..helpers {
                scope.spawn(drain);
            }
            drain();
        });
    }
}
