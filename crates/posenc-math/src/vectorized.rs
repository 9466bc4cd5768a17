//! Passes over slices with the vector instructions of the running machine.

use pulp::{Arch, Simd, WithSimd};

/// Runs `passes`, which must be `#[inline(always)]`, compiled for the running machine's vectors.
///
/// Only what is inlined into `passes` is. That is why this is not `Arch::dispatch`, which takes the
/// closure by value and so has a call between that is not inlined if the closure is long; and why
/// the passes are loops and not chains of closures.
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
