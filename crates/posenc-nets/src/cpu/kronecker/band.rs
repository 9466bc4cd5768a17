//! Products with matrices that vanish outside a band.

use pulp::{Arch, Simd, WithSimd};

/// Rows that are multiplied together; they share the loads of the other factor.
pub const ROWS: usize = 4;

/// A banded matrix A in groups of [`ROWS`] rows, for products A X.
#[derive(Debug)]
pub struct RowBand {
    groups: Vec<Group>,
    /// For each group and each column of its band, the entries of its [`ROWS`] rows.
    entries: Vec<f32>,
}

/// Columns `first .. first + count` of one group.
#[derive(Debug, Clone, Copy)]
struct Group {
    first: usize,
    count: usize,
    /// Start of the group in `entries`.
    at: usize,
}

impl RowBand {
    /// The bands of the nonzero entries of a `rows` × `columns` matrix.
    pub fn new(rows: usize, columns: usize, at: impl Fn(usize, usize) -> f32) -> Self {
        let mut band = RowBand { groups: Vec::new(), entries: Vec::new() };
        for top in (0..rows).step_by(ROWS) {
            let height = ROWS.min(rows - top);
            let counts = |k: &usize| (0..height).any(|r| at(top + r, *k) != 0.0);
            let first = (0..columns).find(counts).unwrap_or(0);
            let count = (0..columns).rfind(counts).map_or(0, |last| last + 1 - first);
            band.groups.push(Group { first, count, at: band.entries.len() });
            for k in first..first + count {
                let entry = |r| if r < height { at(top + r, k) } else { 0.0 };
                band.entries.extend((0..ROWS).map(entry));
            }
        }
        band
    }

    /// Number of entries that are multiplied, including zeros within groups.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// out ← A[top .. top + rows, :] X, where X is columns × width and `top` is a multiple of [`ROWS`]. Writes the first
    /// `width` of the `stride` numbers in each row of `out`. `packed` is scratch.
    pub fn multiply(
        &self,
        top: usize,
        rows: usize,
        x: &[f32],
        width: usize,
        out: &mut [f32],
        stride: usize,
        packed: &mut Vec<f32>,
    ) {
        let groups = &self.groups[top / ROWS..(top + rows).div_ceil(ROWS)];
        if width <= WIDE {
            let by_rows = ByRows { band: self, groups, rows, x, first: 0, width, out, stride };
            return Arch::new().dispatch(by_rows);
        }
        // Rows with such a large stride map to few cache sets, so panels are packed contiguously.
        let used = groups.iter().filter(|group| group.count > 0);
        let first = used.clone().map(|group| group.first).min().unwrap_or(0);
        let end = used.map(|group| group.first + group.count).max().unwrap_or(0);
        for column in (0..width).step_by(PANEL) {
            let panel = PANEL.min(width - column);
            packed.clear();
            for k in first..end {
                packed.extend_from_slice(&x[k * width + column..][..panel]);
            }
            let (x, out) = (packed.as_slice(), &mut out[column..]);
            let by_rows = ByRows { band: self, groups, rows, x, first, width: panel, out, stride };
            Arch::new().dispatch(by_rows);
        }
    }
}

/// Rows longer than this are multiplied in panels of [`PANEL`] columns.
const WIDE: usize = 1024;
const PANEL: usize = 64;

struct ByRows<'a> {
    band: &'a RowBand,
    groups: &'a [Group],
    rows: usize,
    /// Rows of the other factor from `first` on.
    x: &'a [f32],
    first: usize,
    width: usize,
    out: &'a mut [f32],
    stride: usize,
}

impl WithSimd for ByRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let ByRows { band, groups, rows, x, first, width, out, stride } = self;
        let lanes = S::F32_LANES;
        for (g, group) in groups.iter().enumerate() {
            let height = ROWS.min(rows - g * ROWS);
            let end = ((g * ROWS + height - 1) * stride + width).min(out.len());
            let out = &mut out[g * ROWS * stride..end];
            let entries = &band.entries[group.at..group.at + group.count * ROWS];
            let start = group.first.saturating_sub(first) * width;
            let x = &x[start..start + group.count * width];
            let mut column = 0;
            while column + 2 * lanes <= width {
                panel::<S, 2>(simd, entries, x, width, column, out, stride, height);
                column += 2 * lanes;
            }
            while column + lanes <= width {
                panel::<S, 1>(simd, entries, x, width, column, out, stride, height);
                column += lanes;
            }
            if column < width && width >= lanes {
                // A last vector that ends with the row; the overlap is recomputed with the same result.
                panel::<S, 1>(simd, entries, x, width, width - lanes, out, stride, height);
            } else {
                for column in column..width {
                    for r in 0..height {
                        let mut sum = 0.0;
                        for k in 0..group.count {
                            sum += entries[k * ROWS + r] * x[k * width + column];
                        }
                        out[r * stride + column] = sum;
                    }
                }
            }
        }
    }
}

/// Computes `P` vectors of columns for one group of rows.
#[inline(always)]
fn panel<S: Simd, const P: usize>(
    simd: S,
    entries: &[f32],
    x: &[f32],
    width: usize,
    column: usize,
    out: &mut [f32],
    stride: usize,
    height: usize,
) {
    let lanes = S::F32_LANES;
    let mut sums = [[simd.splat_f32s(0.0); P]; ROWS];
    let (entries, _) = entries.as_chunks::<ROWS>();
    for (k, entries) in entries.iter().enumerate() {
        let start = k * width + column;
        let (x, _) = S::as_simd_f32s(&x[start..start + P * lanes]);
        for r in 0..ROWS {
            let entry = simd.splat_f32s(entries[r]);
            for p in 0..P {
                sums[r][p] = simd.mul_add_e_f32s(entry, x[p], sums[r][p]);
            }
        }
    }
    for r in 0..height {
        let start = r * stride + column;
        let (out, _) = S::as_mut_simd_f32s(&mut out[start..start + P * lanes]);
        out.copy_from_slice(&sums[r]);
    }
}

/// A banded matrix A as its diagonals A[j, j + d] for d from `first` on, for products X Aᵀ.
#[derive(Debug)]
pub struct Diagonals {
    rows: usize,
    columns: usize,
    first: isize,
    count: usize,
    /// For each diagonal, one entry per row; 0 where the diagonal is outside the matrix.
    entries: Vec<f32>,
}

impl Diagonals {
    /// The diagonals of a `rows` × `columns` matrix, from the first to the last nonzero one.
    pub fn new(rows: usize, columns: usize, at: impl Fn(usize, usize) -> f32) -> Self {
        let (mut low, mut high) = (isize::MAX, isize::MIN);
        for j in 0..rows {
            for k in (0..columns).filter(|&k| at(j, k) != 0.0) {
                let d = k as isize - j as isize;
                (low, high) = (low.min(d), high.max(d));
            }
        }
        let (first, count) = if low > high { (0, 1) } else { (low, (high - low + 1) as usize) };
        let mut entries = Vec::with_capacity(count * rows);
        for d in 0..count as isize {
            entries.extend((0..rows).map(|j| match usize::try_from(j as isize + first + d) {
                Ok(k) if k < columns => at(j, k),
                _ => 0.0,
            }));
        }
        Diagonals { rows, columns, first, count, entries }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of padding entries before a row; they must be finite.
    pub fn before(&self) -> usize {
        self.first.min(0).unsigned_abs()
    }

    /// Distance between the starts of consecutive padded rows.
    pub fn stride(&self) -> usize {
        let last = self.rows as isize + self.first + self.count as isize - 1;
        self.before() + self.columns.max(last.max(0) as usize)
    }

    /// out ← X Aᵀ for `n` rows of X, each with `columns` numbers and zero padding around them.
    pub fn multiply(&self, n: usize, x: &[f32], out: &mut [f32]) {
        Arch::new().dispatch(Along { band: self, n, x, out });
    }
}

struct Along<'a> {
    band: &'a Diagonals,
    n: usize,
    x: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for Along<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Along { band, n, x, out } = self;
        let (stride, rows) = (band.stride(), band.rows);
        // Position of the factor of row 0 on the first diagonal.
        let start = (band.before() as isize + band.first) as usize;
        let mut i = 0;
        while i + ROWS <= n {
            let x = &x[i * stride + start..];
            along::<S, ROWS>(simd, band, x, stride, &mut out[i * rows..(i + ROWS) * rows]);
            i += ROWS;
        }
        while i < n {
            let x = &x[i * stride + start..];
            along::<S, 1>(simd, band, x, stride, &mut out[i * rows..(i + 1) * rows]);
            i += 1;
        }
    }
}

/// Multiplies `K` rows together, so that they share the loads of a diagonal.
#[inline(always)]
fn along<S: Simd, const K: usize>(
    simd: S,
    band: &Diagonals,
    x: &[f32],
    stride: usize,
    out: &mut [f32],
) {
    let (lanes, rows) = (S::F32_LANES, band.rows);
    let mut j = 0;
    while j + 2 * lanes <= rows {
        span::<S, K, 2>(simd, band, x, stride, j, out);
        j += 2 * lanes;
    }
    while j + lanes <= rows {
        span::<S, K, 1>(simd, band, x, stride, j, out);
        j += lanes;
    }
    if j < rows && rows >= lanes {
        span::<S, K, 1>(simd, band, x, stride, rows - lanes, out);
    } else {
        for j in j..rows {
            for r in 0..K {
                let mut sum = 0.0;
                for d in 0..band.count {
                    sum += band.entries[d * rows + j] * x[r * stride + j + d];
                }
                out[r * rows + j] = sum;
            }
        }
    }
}

#[inline(always)]
fn span<S: Simd, const K: usize, const P: usize>(
    simd: S,
    band: &Diagonals,
    x: &[f32],
    stride: usize,
    j: usize,
    out: &mut [f32],
) {
    let (lanes, rows) = (S::F32_LANES, band.rows);
    let mut sums = [[simd.splat_f32s(0.0); P]; K];
    for d in 0..band.count {
        let start = d * rows + j;
        let (entries, _) = S::as_simd_f32s(&band.entries[start..start + P * lanes]);
        for r in 0..K {
            let start = r * stride + j + d;
            let (x, _) = S::as_simd_f32s(&x[start..start + P * lanes]);
            for p in 0..P {
                sums[r][p] = simd.mul_add_e_f32s(entries[p], x[p], sums[r][p]);
            }
        }
    }
    for r in 0..K {
        let start = r * rows + j;
        let (out, _) = S::as_mut_simd_f32s(&mut out[start..start + P * lanes]);
        out.copy_from_slice(&sums[r]);
    }
}
