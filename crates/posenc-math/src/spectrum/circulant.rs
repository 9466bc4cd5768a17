//! Circulant matrices: their singular values are the magnitudes of one Fourier transform.
//!
//! For `C_{ij} = c_{(i-j) mod n}`, `C = F⁻¹ diag(Fc) F` (without the further 1/n of `rethinking`
//! Eq. 11), which is normal: the singular values are |Fc|.

use crate::fourier::{Complex, forward};

use super::{check_values, stable_rank_of};
use crate::Error;

/// The singular values of the circulant matrix with this first column, in decreasing order.
///
/// # Errors
///
/// An empty column or entries that are not finite.
pub fn circulant_singular_values(first_column: &[f64]) -> Result<Vec<f64>, Error> {
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
    let mut spectrum: Vec<Complex<f64>> = c.iter().map(|&value| Complex::new(value, 0.0)).collect();
    forward(spectrum.len()).process(&mut spectrum);
    Ok(spectrum.iter().map(|value| value.norm()).collect())
}

/// The stable rank of the circulant matrix with this first column: N = d samples of a periodic
/// shift-invariant embedder.
///
/// ```
/// use posenc_math::spectrum::circulant_stable_rank;
/// // The identity has as many equal singular values as rows.
/// assert!((circulant_stable_rank(&[1.0, 0.0, 0.0, 0.0])? - 4.0).abs() < 1e-12);
/// # Ok::<(), posenc_math::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`circulant_singular_values`], or a zero column.
pub fn circulant_stable_rank(first_column: &[f64]) -> Result<f64, Error> {
    stable_rank_of(&circulant_singular_values(first_column)?)
}
