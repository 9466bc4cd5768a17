//! The pseudo-inverse of the embedding matrix of one axis, and its numerical rank.

use std::sync::Arc;

use super::apply::{Along, AxisMap, diagonal_of, even_odd_blocks};
use super::complete_orthogonal::{ColumnOrder, CompleteOrthogonal};
use super::{Real, check_entries, default_rcond, no_convergence};
use crate::{Error, kronecker::multiply};
use faer::linalg::solvers::ColPivQr;
use faer::{Mat, MatRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Solver of least-squares problems with a rank-deficient matrix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Solver {
    /// Minimum-norm solution from the singular values above the cutoff.
    #[default]
    TruncatedSvd,
    /// Column-pivoted QR with the rank rule of LAPACK's xGELSY, as PyTorch documents its CPU default.
    PivotedQr,
    /// As `pivoted-qr`, but without pivoting. PyTorch's CPU default did this until 2026, because it passed uninitialized memory as the
    /// list of columns to move to the front (issue 187411).
    FixedOrderQr,
    /// Ridge regression along each axis: 1/σ becomes σ/(σ² + (cutoff · σ_1)²). Ours.
    Ridge,
}

/// Cutoff of [`Solver::Ridge`] for which [`FitModel::Ridge`](crate::embedder::FitModel::Ridge) was tuned: a ridge of 10⁻⁴ σ_1².
pub const RIDGE_CUTOFF: f64 = 1e-2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reciprocals of the entries of a diagonal Ψ; they are its singular values up to sign.
    Diagonal,
    /// QR factorization with column pivoting, full rank proved.
    CertifiedQr,
    /// Singular value decomposition of the triangular factor, truncated or with a soft cutoff.
    SingularValues,
    CompleteOrthogonal,
}

/// Numerical rank and condition number of Ψ (N × K), and how they were computed.
#[derive(Clone, Debug, PartialEq)]
pub struct RankReport {
    /// Number of singular values above `rcond · σ_1`; with a QR [`Solver`], the order of the inverted triangle.
    /// [`Solver::Ridge`] also uses the smaller singular values, with less weight.
    pub rank: usize,
    /// Ratio of the largest to the smallest singular value of the part of Ψ that was inverted; 1 for a zero matrix, which has
    /// rank 0. With [`Method::CertifiedQr`] a proved upper bound, usually several times the true value; with
    /// [`Method::CompleteOrthogonal`] an estimate, usually within a factor of 10.
    pub condition: f64,
    pub method: Method,
    /// Whether Ψ decoupled into an even and an odd half.
    pub even_odd: bool,
}

/// Pseudo-inverse of an embedding matrix, computed once and shared by all images and channels.
#[derive(Clone, Debug)]
pub struct Factorization<T> {
    inverse: Arc<AxisMap<T>>,
    report: RankReport,
}

impl<T: Real> Factorization<T> {
    /// Factors Ψ (N points × K features, any shape) with the cutoff [`default_rcond`].
    pub fn new(psi: MatRef<'_, T>) -> Result<Self, Error> {
        Self::with_solver(psi, default_rcond(psi.nrows(), psi.ncols()), Solver::TruncatedSvd)
    }

    /// Factors Ψ with the given solver and cutoff `rcond` (0 ≤ rcond < 1), relative to the largest singular value. With a cutoff
    /// below [`default_rcond`], singular values at the rounding level of `T` count as nonzero.
    pub fn with_solver(psi: MatRef<'_, T>, rcond: f64, solver: Solver) -> Result<Self, Error> {
        if !(0.0..1.0).contains(&rcond) {
            return Err(Error(format!("rcond is {rcond}; it must be at least 0 and below 1")));
        }
        T::factor(psi, rcond, solver)
    }

    pub(super) fn factor(psi: MatRef<'_, T>, rcond: f64, solver: Solver) -> Result<Self, Error> {
        check_entries(|| "the embedding matrix".into(), psi)?;
        match solver {
            Solver::TruncatedSvd => Self::with_cutoff(psi, rcond, Cutoff::Hard),
            Solver::Ridge => Self::with_cutoff(psi, rcond, Cutoff::Soft),
            Solver::PivotedQr => Ok(Self::by_qr(psi, rcond, ColumnOrder::Pivoted)),
            Solver::FixedOrderQr => Ok(Self::by_qr(psi, rcond, ColumnOrder::Fixed)),
        }
    }

    fn with_cutoff(psi: MatRef<'_, T>, rcond: f64, cutoff: Cutoff) -> Result<Self, Error> {
        if let Some(diagonal) = diagonal_of(psi) {
            return Ok(Self::of_diagonal(&diagonal, rcond, cutoff));
        }
        let blocks = match even_odd_blocks(psi) {
            Some((even, odd)) => vec![even, odd],
            None => vec![psi.to_owned()],
        };
        let even_odd = blocks.len() == 2;
        let Inverses { inverses, rank, condition, method } =
            invert(blocks, rcond, cutoff).ok_or_else(|| no_convergence(psi.shape()))?;
        let report = RankReport { rank, condition, method, even_odd };
        Ok(Self::of(assemble(inverses), report))
    }

    fn by_qr(psi: MatRef<'_, T>, rcond: f64, order: ColumnOrder) -> Self {
        let CompleteOrthogonal { inverse, rank, condition } =
            CompleteOrthogonal::new(psi, rcond, order);
        let method = Method::CompleteOrthogonal;
        let report = RankReport { rank, condition, method, even_odd: false };
        Self::of(AxisMap::Plain(inverse), report)
    }

    fn of_diagonal(diagonal: &[T], rcond: f64, kind: Cutoff) -> Self {
        let values: Vec<f64> = diagonal.iter().map(|value| value.to_f64().abs()).collect();
        let Kept { rank, cutoff, ratio } = Kept::above(rcond, &values);
        let reciprocal = |(value, size): (&T, &f64)| match kind {
            Cutoff::Soft => T::from_f64(damped(value.to_f64(), cutoff)),
            Cutoff::Hard if *size > cutoff => T::one_impl() / *value,
            Cutoff::Hard => T::zero_impl(),
        };
        let inverse = AxisMap::Diagonal(diagonal.iter().zip(&values).map(reciprocal).collect());
        let method = Method::Diagonal;
        Self::of(inverse, RankReport { rank, condition: ratio, method, even_odd: false })
    }

    fn of(inverse: AxisMap<T>, report: RankReport) -> Self {
        Self { inverse: Arc::new(inverse), report }
    }

    pub fn report(&self) -> &RankReport {
        &self.report
    }

    /// Ψ⁺ written out, K × N.
    pub fn pseudo_inverse(&self) -> Mat<T> {
        let (k, n) = self.inverse.shape();
        let mut transposed = Mat::zeros(n, k);
        self.inverse.apply_transposed(Mat::identity(n, n).as_mut(), transposed.as_mut());
        transposed.transpose().to_owned()
    }

    pub(super) fn inverse(&self) -> Arc<AxisMap<T>> {
        self.inverse.clone()
    }
}

/// Treatment of small singular values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cutoff {
    /// Singular values at or below the cutoff are dropped.
    Hard,
    /// Singular values are damped gradually around the cutoff.
    Soft,
}

/// `σ/(σ² + c²)`, and 0 for a zero matrix.
fn damped(value: f64, cutoff: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value / (value * value + cutoff * cutoff) }
}

/// Singular values of one matrix that are above a relative cutoff.
struct Kept {
    rank: usize,
    cutoff: f64,
    ratio: f64,
}

impl Kept {
    fn above(rcond: f64, values: &[f64]) -> Self {
        let largest = values.iter().copied().fold(0.0, f64::max);
        let cutoff = rcond * largest;
        let kept = values.iter().copied().filter(|&value| value > cutoff);
        let rank = kept.clone().count();
        let ratio = if rank == 0 { 1.0 } else { largest / kept.fold(f64::INFINITY, f64::min) };
        Self { rank, cutoff, ratio }
    }
}

/// Pseudo-inverses of the diagonal blocks of one matrix.
struct Inverses<T> {
    inverses: Vec<Mat<T>>,
    rank: usize,
    condition: f64,
    method: Method,
}

/// Inverts all blocks with one cutoff, since their singular values together are those of the matrix.
/// Returns `None` if a singular value decomposition does not converge.
fn invert<T: Real>(blocks: Vec<Mat<T>>, rcond: f64, kind: Cutoff) -> Option<Inverses<T>> {
    let tall: Vec<Tall<T>> = blocks.into_iter().map(Tall::new).collect();
    let certified = (kind == Cutoff::Hard).then(|| certified_inverses(&tall, rcond)).flatten();
    if let Some((inverses, bound)) = certified {
        return Some(Inverses {
            inverses,
            rank: tall.iter().map(|block| block.matrix.ncols()).sum(),
            condition: bound,
            method: Method::CertifiedQr,
        });
    }
    let spectra = tall.iter().map(Spectrum::new).collect::<Option<Vec<_>>>()?;
    let values: Vec<f64> = spectra.iter().flat_map(|spectrum| spectrum.values.clone()).collect();
    let Kept { rank, cutoff, ratio } = Kept::above(rcond, &values);
    Some(Inverses {
        inverses: tall
            .iter()
            .zip(&spectra)
            .map(|(block, spectrum)| spectrum.pseudo_inverse(block, cutoff, kind))
            .collect(),
        rank,
        condition: ratio,
        method: Method::SingularValues,
    })
}

fn assemble<T: Real>(mut inverses: Vec<Mat<T>>) -> AxisMap<T> {
    let half = |matrix: Mat<T>| {
        Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| matrix[(i, j)] * T::from_f64(0.5))
    };
    match (inverses.pop(), inverses.pop()) {
        (Some(odd), Some(even)) => AxisMap::EvenOdd { half_even: half(even), half_odd: half(odd) },
        (Some(whole), None) => AxisMap::Plain(whole),
        (None, _) => unreachable!("there is one block at least"),
    }
}

/// A block with at least as many rows as columns (wide ones are transposed), and its factorization
/// `matrix · P⁻¹ = Q R`.
struct Tall<T> {
    transposed: bool,
    matrix: Mat<T>,
    qr: ColPivQr<T>,
}

impl<T: Real> Tall<T> {
    fn new(block: Mat<T>) -> Self {
        let transposed = block.nrows() < block.ncols();
        let matrix = if transposed { block.transpose().to_owned() } else { block };
        let qr = matrix.col_piv_qr();
        Self { transposed, matrix, qr }
    }

    /// Leading rows of R above the level of rounding, `ε √K/8 · |R_00|`.
    ///
    /// With column pivoting no later column is longer than the next diagonal entry, so the dropped
    /// rows together move a singular value by less than `ε K/8 · σ_1`, an eighth of the default cutoff
    /// in f32 and much less in f64.
    fn significant_rows(&self) -> usize {
        let r = self.qr.R();
        let level = T::EPSILON * (r.ncols() as f64).sqrt() / 8.0 * r[(0, 0)].to_f64().abs();
        (0..r.ncols()).take_while(|&j| r[(j, j)].to_f64().abs() > level).count()
    }

    /// Maps the pseudo-inverse of `matrix · P⁻¹` (columns × rows) to that of the block.
    fn restore(&self, inverse: Mat<T>) -> Mat<T> {
        let inverse = self.qr.P().inverse() * inverse;
        if self.transposed { inverse.transpose().to_owned() } else { inverse }
    }
}

/// `R⁻¹ Qᵀ` of every block with a bound on the condition number of the whole, or `None` if that bound
/// does not prove that all singular values are above the cutoff.
fn certified_inverses<T: Real>(blocks: &[Tall<T>], rcond: f64) -> Option<(Vec<Mat<T>>, f64)> {
    let mut inverses = Vec::with_capacity(blocks.len());
    let (mut largest, mut inverse_of_smallest) = (0.0_f64, 0.0_f64);
    for block in blocks {
        let k = block.matrix.ncols();
        if block.significant_rows() < k {
            return None;
        }
        let mut x = block.qr.compute_thin_Q().transpose().to_owned();
        block.qr.thin_R().solve_upper_triangular_in_place(x.as_mut());
        let x = block.qr.P().inverse() * x;
        let (norm, inverse_norm) = (norm_bound(block.matrix.as_ref()), norm_bound(x.as_ref()));
        let mut residual = Mat::zeros(k, k);
        multiply(residual.as_mut(), x.as_ref(), block.matrix.as_ref());
        for j in 0..k {
            residual[(j, j)] -= T::one_impl();
        }
        let rounding = T::EPSILON * block.matrix.nrows() as f64 * norm * inverse_norm;
        let deviation = residual.norm_l2().to_f64() + rounding;
        // NaN comes from overflow in R⁻¹.
        if deviation.is_nan() || deviation >= 1.0 {
            return None;
        }
        largest = largest.max(norm);
        inverse_of_smallest = inverse_of_smallest.max(inverse_norm / (1.0 - deviation));
        inverses.push(if block.transposed { x.transpose().to_owned() } else { x });
    }
    let bound = largest * inverse_of_smallest;
    (bound * rcond < 1.0).then_some((inverses, bound))
}

/// `√(‖A‖_1 ‖A‖_∞)`, never below the largest singular value; rounding of the sums included.
fn norm_bound<T: Real>(a: MatRef<'_, T>) -> f64 {
    let mut row_sums = vec![0.0; a.nrows()];
    let mut largest_column = 0.0_f64;
    for column in a.col_iter() {
        for (row_sum, value) in row_sums.iter_mut().zip(column.iter()) {
            *row_sum += value.to_f64().abs();
        }
        largest_column = largest_column.max(column.norm_l1().to_f64());
    }
    let rounding = 1.0 + T::EPSILON * a.nrows() as f64;
    (largest_column * rounding * row_sums.into_iter().fold(0.0, f64::max)).sqrt()
}

/// Singular value decomposition of the significant rows of R: `R_s = V_r diag(values) U_rᵀ`.
struct Spectrum<T> {
    values: Vec<f64>,
    left: Mat<T>,
    right: Mat<T>,
}

impl<T: Real> Spectrum<T> {
    fn new(block: &Tall<T>) -> Option<Self> {
        let rows = block.significant_rows();
        let k = block.matrix.ncols();
        if rows == 0 {
            return Some(Self { values: vec![], left: Mat::zeros(0, 0), right: Mat::zeros(k, 0) });
        }
        // The transpose is tall and therefore faster to decompose.
        let r = block.qr.thin_R().subrows(0, rows);
        let svd = Mat::from_fn(k, rows, |i, j| if i < j { T::zero_impl() } else { r[(j, i)] })
            .thin_svd()
            .ok()?;
        let values = svd.S().column_vector().iter().map(|value| value.to_f64()).collect();
        Some(Self { values, left: svd.V().to_owned(), right: svd.U().to_owned() })
    }

    /// Pseudo-inverse of the block from the singular values above a hard `cutoff`, or from all with a soft one.
    fn pseudo_inverse(&self, block: &Tall<T>, cutoff: f64, kind: Cutoff) -> Mat<T> {
        let rank = match kind {
            Cutoff::Hard => self.values.iter().take_while(|&&value| value > cutoff).count(),
            Cutoff::Soft => self.values.len(),
        };
        let rows = self.left.nrows();
        let scaled = Mat::from_fn(self.right.nrows(), rank, |i, l| match kind {
            Cutoff::Hard => self.right[(i, l)] / T::from_f64(self.values[l]),
            Cutoff::Soft => self.right[(i, l)] * T::from_f64(damped(self.values[l], cutoff)),
        });
        let mut small = Mat::zeros(self.right.nrows(), rows);
        multiply(small.as_mut(), scaled.as_ref(), self.left.subcols(0, rank).transpose());
        let q = block.qr.compute_thin_Q();
        let mut inverse = Mat::zeros(self.right.nrows(), block.matrix.nrows());
        multiply(inverse.as_mut(), small.as_ref(), q.subcols(0, rows).transpose());
        block.restore(inverse)
    }
}
