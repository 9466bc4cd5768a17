//! Circulant matrices: their singular values are the magnitudes of one Fourier transform.
//!
//! For `C_{ij} = c_{(i-j) mod n}`, `C = F⁻¹ diag(Fc) F` (without the further 1/n of `rethinking`
//! Eq. 11), which is normal: the singular values are |Fc|.

use super::{check_values, stable_rank_of};
use crate::Error;
use crate::fourier::of_real;

/// The singular values of the circulant matrix with this first column, in decreasing order.
pub(super) fn circulant_singular_values(first_column: &[f64]) -> Result<Vec<f64>, Error> {
    let mut values = fourier_magnitudes(first_column)?;
    values.sort_by(|a, b| b.total_cmp(a));
    Ok(values)
}

/// The stable rank of `n` rows of length `d = m n`, each the row before it shifted cyclically by m.
///
/// The Gram matrix is circulant; its eigenvalues are the power spectrum of the row folded to n
/// frequencies, `λ_q = Σ_r |F_{q + r n}|²/m`.
pub(super) fn shifted_rows_stable_rank(row: &[f64], n: usize) -> Result<f64, Error> {
    let mut singular_values = vec![0.0; n];
    for (k, magnitude) in fourier_magnitudes(row)?.into_iter().enumerate() {
        let value: &mut f64 = &mut singular_values[k % n];
        *value = value.hypot(magnitude);
    }
    stable_rank_of(&singular_values)
}

/// |Fc| in the order of frequencies.
fn fourier_magnitudes(c: &[f64]) -> Result<Vec<f64>, Error> {
    check_values(c)?;
    Ok(of_real(c).iter().map(|value| value.norm()).collect())
}

/// The stable rank of the circulant matrix with this first column: N = d samples of a periodic
/// shift-invariant embedder.
pub fn circulant_stable_rank(first_column: &[f64]) -> Result<f64, Error> {
    stable_rank_of(&circulant_singular_values(first_column)?)
}
