//! Passes over slices with the vector instructions of the running machine.

use pulp::{Arch, Simd, WithSimd};

/// Runs `passes`, which must be `#[inline(always)]`, compiled for the vector instructions of the running machine.
///
/// Only code that is inlined into `passes` uses these instructions, so passes should be loops, not chains of closures.
/// `Arch::dispatch` alone is not enough: it takes the closure by value, and a long closure is then not inlined.
#[inline(always)]
pub fn vectorized<R>(passes: impl FnMut() -> R) -> R {
    struct Passes<F>(F);
    impl<R, F: FnMut() -> R> WithSimd for Passes<F> {
        type Output = R;
        #[inline(always)]
        fn with_simd<S: Simd>(mut self, _: S) -> R {
            (self.0)()
        }
    }
    Arch::new().dispatch(Passes(passes))
}
