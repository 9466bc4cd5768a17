//! Parallel interpolation of many positions.

use posenc_math::interpolation::Parallel;
use posenc_nets::cpu::parallel;

/// Runs work on a number of threads.
pub struct Threads(pub usize);

impl Parallel for Threads {
    fn for_pieces(&self, size: usize, out: &mut [f64], work: &(dyn Fn(usize, &mut [f64]) + Sync)) {
        let mut pieces: Vec<_> = out.chunks_mut(size.max(1)).enumerate().collect();
        let mut scratch = vec![(); self.0.max(1)];
        parallel::for_each(&mut scratch, &mut pieces, |(), (index, piece)| work(*index, piece));
    }
}
