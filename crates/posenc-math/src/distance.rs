//! Distance preservation: how the inner product of two embedded points falls with their distance.
//!
//! `D(Δ) = ψ(x0)·ψ(x0 + Δ) / ‖ψ(x0)‖²` is measured from the middle x0 = 1/2 of the line
//! (`rethinking` Eq. 5, Fig. 3b). D is a similarity: 1 at Δ = 0 and smaller elsewhere.

use crate::fourier::{Complex, inverse, of_real};
use crate::{
    Error,
    embedder::Embedder,
    spectrum::{all_zero, check_values, dot, not_finite},
};

/// The point from which displacements are measured.
pub const ANCHOR: f64 = 0.5;

/// D at every displacement, measured on the embedder itself.
///
/// For Fourier embedders, this evaluates the exact Gram kernel, one cosine per frequency. Rows of other embedders are computed in
/// blocks of columns, so no whole row is in memory.
pub fn measured_distance(
    embedder: &dyn Embedder,
    displacements: &[f64],
) -> Result<Vec<f64>, Error> {
    const COLUMNS: usize = 4096;
    let d = embedder.dimension();
    let (products, square) = if let Some(square) = embedder.gram_kernel(0.0) {
        let kernel = |&delta: &f64| embedder.gram_kernel(delta).unwrap_or(f64::NAN);
        (displacements.iter().map(kernel).collect(), square)
    } else {
        let mut products = vec![0.0; displacements.len()];
        let mut square = 0.0;
        let mut anchor = vec![0.0; COLUMNS.min(d)];
        let mut other = vec![0.0; COLUMNS.min(d)];
        for first in (0..d).step_by(COLUMNS) {
            let n_columns = COLUMNS.min(d - first);
            let (anchor, other) = (&mut anchor[..n_columns], &mut other[..n_columns]);
            embedder.embed_columns(ANCHOR, first, anchor);
            square += dot(anchor, anchor);
            for (product, delta) in products.iter_mut().zip(displacements) {
                embedder.embed_columns(ANCHOR + delta, first, other);
                *product += dot(anchor, other);
            }
        }
        (products, square)
    };
    if square == 0.0 {
        return Err(all_zero());
    }
    let normalized: Vec<f64> = products.into_iter().map(|product| product / square).collect();
    match normalized.iter().position(|value| !value.is_finite()) {
        Some(sample) => Err(not_finite(sample)),
        None => Ok(normalized),
    }
}

/// D at the displacements k/d, k = 0 .. d−1, for an embedder whose rows at the points j/d are cyclic shifts of `row`: the cyclic
/// autocorrelation `Σ_j c_j c_{j+k} / Σ_j c_j²`.
///
/// By the Wiener–Khinchin theorem it is the inverse Fourier transform of the power spectrum: O(d log d)
/// instead of the O(d²) of [`measured_distance`], equal to it up to rounding.
pub fn cyclic_distance(row: &[f64]) -> Result<Vec<f64>, Error> {
    check_values(row)?;
    let mut spectrum = of_real(row);
    for value in &mut spectrum {
        *value = Complex::new(value.norm_sqr(), 0.0);
    }
    inverse(row.len()).process(&mut spectrum);
    let square = spectrum[0].re;
    if square == 0.0 {
        return Err(all_zero());
    }
    Ok(spectrum.into_iter().map(|value| value.re / square).collect())
}

/// The `n` displacements `i/n - 1/2` for `i = 0 .. n-1`: the abscissae of `rethinking` Fig. 3b.
pub fn centered_displacements(n: usize) -> Vec<f64> {
    (0..n).map(|i| i as f64 / n as f64 - ANCHOR).collect()
}

/// The largest `l <= limit` such that `D(Δ) >= 10^-k` for all |Δ| <= l, for a law D with D(Δ) = D(-Δ).
///
/// Searches for the first crossing on 4096 equal steps and bisects it, so a law that rises again later has no effect. Returns 0 if
/// the law is below the threshold at Δ = 0; NaN counts as below.
pub fn preserved_length(law: impl Fn(f64) -> f64, k: f64, limit: f64) -> f64 {
    const STEPS: i32 = 4096;
    let threshold = 10f64.powf(-k);
    let is_preserved = |delta: f64| law(delta) >= threshold;
    let step = |i: i32| limit * (f64::from(i) / f64::from(STEPS));
    let Some(first) = (0..=STEPS).find(|&i| !is_preserved(step(i))) else {
        return limit;
    };
    if first == 0 {
        return 0.0;
    }
    let (mut inside, mut outside) = (step(first - 1), step(first));
    loop {
        let middle = 0.5 * (inside + outside);
        if middle <= inside || middle >= outside {
            return inside;
        }
        if is_preserved(middle) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
}

/// Half the fraction of the sampled displacements with `D > 10^-k`.
///
/// This is how the `rethinking` notebooks compute the length, with displacements that cover [-1/2, 1/2) evenly. NaN without
/// samples.
pub fn sampled_preserved_length(values: &[f64], k: f64) -> f64 {
    let threshold = 10f64.powf(-k);
    let preserved = values.iter().filter(|&&value| value > threshold).count();
    0.5 * preserved as f64 / values.len() as f64
}

#[cfg(test)]
mod tests;
