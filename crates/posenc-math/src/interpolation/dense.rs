//! Small dense linear systems; matrices are stored by row.

/// Replaces a symmetric positive definite matrix (n × n, only the lower half is read) by its Cholesky factor. Returns `false` if it
/// is not positive definite.
pub fn cholesky(matrix: &mut [f64], n: usize, column: &mut Vec<f64>) -> bool {
    for j in 0..n {
        let pivot = matrix[j * n + j];
        if pivot.is_nan() || pivot <= 0.0 {
            return false;
        }
        let root = pivot.sqrt();
        column.clear();
        for i in j..n {
            let value = if i == j { root } else { matrix[i * n + j] / root };
            matrix[i * n + j] = value;
            column.push(value);
        }
        // The copy makes the column contiguous, as the rows of the remaining matrix are.
        for i in j + 1..n {
            let factor = column[i - j];
            let row = &mut matrix[i * n + j + 1..=i * n + i];
            for (entry, other) in row.iter_mut().zip(&column[1..]) {
                *entry -= factor * other;
            }
        }
    }
    true
}

/// Solves `L Lᵀ x = b` in place.
pub fn cholesky_solve(factor: &[f64], n: usize, b: &mut [f64]) {
    for i in 0..n {
        let row = &factor[i * n..i * n + i];
        let known: f64 = row.iter().zip(&b[..i]).map(|(l, x)| l * x).sum();
        b[i] = (b[i] - known) / factor[i * n + i];
    }
    for i in (0..n).rev() {
        let (before, rest) = b.split_at_mut(i);
        rest[0] /= factor[i * n + i];
        for (x, l) in before.iter_mut().zip(&factor[i * n..i * n + i]) {
            *x -= l * rest[0];
        }
    }
}

/// Solves `A x = b` in place by Gaussian elimination with partial pivoting. Returns `false` if `A` is singular up to rounding.
pub fn solve(matrix: &mut [f64], n: usize, b: &mut [f64]) -> bool {
    let least = 1e-13 * matrix.iter().fold(0.0f64, |most, v| most.max(v.abs()));
    for j in 0..n {
        let mut pivot = j;
        for i in j + 1..n {
            if matrix[i * n + j].abs() > matrix[pivot * n + j].abs() {
                pivot = i;
            }
        }
        let size = matrix[pivot * n + j].abs();
        if size.is_nan() || size <= least {
            return false;
        }
        if pivot != j {
            for k in 0..n {
                matrix.swap(j * n + k, pivot * n + k);
            }
            b.swap(j, pivot);
        }
        let (above, below) = matrix.split_at_mut((j + 1) * n);
        let row = &above[j * n..];
        for i in j + 1..n {
            let other = &mut below[(i - j - 1) * n..][..n];
            let factor = other[j] / row[j];
            if factor != 0.0 {
                for (entry, known) in other[j + 1..].iter_mut().zip(&row[j + 1..]) {
                    *entry -= factor * known;
                }
                b[i] -= factor * b[j];
            }
        }
    }
    for i in (0..n).rev() {
        let row = &matrix[i * n..][..n];
        let known: f64 = row[i + 1..].iter().zip(&b[i + 1..]).map(|(a, x)| a * x).sum();
        b[i] = (b[i] - known) / row[i];
    }
    true
}
