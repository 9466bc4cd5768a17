//! Solving for the weights, and predicting with them, two or three axes at a time.

use super::apply::AxisMapRef;
use super::{ClosedFormError, Factorization, Real, check_entries};
use crate::kronecker::Cube;
use faer::{Mat, MatMut, MatRef};

/// Weights `W_c = Ψy⁺ S_c (Ψx⁺)ᵀ` (Ky × Kx) of every channel `S_c` (M × N; row = y, column = x).
///
/// `rows` is the factorization of Ψy (M × Ky), `columns` the one of Ψx (N × Kx); on a square grid both
/// may be the same. Channels of any number of images may be passed together or in parts: a channel's
/// weights do not depend on the others.
///
/// # Errors
///
/// [`ClosedFormError::Shape`] or [`ClosedFormError::NotFinite`] naming the channel.
pub fn solve_2d<T: Real>(
    rows: &Factorization<T>,
    columns: &Factorization<T>,
    channels: &[MatRef<'_, T>],
) -> Result<Vec<Mat<T>>, ClosedFormError> {
    check_matrices("channel", channels, [rows.inverse(), columns.inverse()], Role::Solve)?;
    Ok(apply_2d(rows.inverse(), columns.inverse(), channels))
}

/// Values `Ψy W_c Ψxᵀ` (M × N) that weights `W_c` (Ky × Kx) give at the points of Ψy (M × Ky) and Ψx
/// (N × Kx), for every channel (trading, Eq. 10).
///
/// # Errors
///
/// [`ClosedFormError::Shape`], [`ClosedFormError::Empty`] or [`ClosedFormError::NotFinite`] naming the
/// matrix.
pub fn predict_2d<T: Real>(
    psi_y: MatRef<'_, T>,
    psi_x: MatRef<'_, T>,
    weights: &[MatRef<'_, T>],
) -> Result<Vec<Mat<T>>, ClosedFormError> {
    check_embeddings(&[psi_y, psi_x])?;
    let maps = [AxisMapRef::Plain(psi_y), AxisMapRef::Plain(psi_x)];
    check_matrices("weight matrix", weights, maps, Role::Predict)?;
    Ok(apply_2d(maps[0], maps[1], weights))
}

/// Weights `W_c = S_c ×₀ Ψ0⁺ ×₁ Ψ1⁺ ×₂ Ψ2⁺` of every channel; factorizations in the order of the axes
/// of the cubes.
///
/// # Errors
///
/// [`ClosedFormError::Shape`] or [`ClosedFormError::NotFinite`] naming the channel.
pub fn solve_3d<T: Real>(
    axes: [&Factorization<T>; 3],
    channels: &[Cube<T>],
) -> Result<Vec<Cube<T>>, ClosedFormError> {
    apply_3d("channel", axes.map(Factorization::inverse), channels, Role::Solve)
}

/// Values `W_c ×₀ Ψ0 ×₁ Ψ1 ×₂ Ψ2` of every channel (trading, Eq. 17).
///
/// # Errors
///
/// [`ClosedFormError::Shape`], [`ClosedFormError::Empty`] or [`ClosedFormError::NotFinite`] naming the
/// matrix.
pub fn predict_3d<T: Real>(
    psi: [MatRef<'_, T>; 3],
    weights: &[Cube<T>],
) -> Result<Vec<Cube<T>>, ClosedFormError> {
    check_embeddings(&psi)?;
    apply_3d("weight cube", psi.map(AxisMapRef::Plain), weights, Role::Predict)
}

/// What the maps are to the caller, for messages: pseudo-inverses or embedding matrices.
#[derive(Clone, Copy)]
enum Role {
    Solve,
    Predict,
}

fn apply_2d<T: Real>(
    rows: AxisMapRef<'_, T>,
    columns: AxisMapRef<'_, T>,
    channels: &[MatRef<'_, T>],
) -> Vec<Mat<T>> {
    let ((out_rows, in_rows), (out_columns, in_columns)) = (rows.shape(), columns.shape());
    let mut input = Mat::zeros(in_rows, in_columns);
    let mut half = Mat::zeros(in_columns, out_rows);
    let solve = |channel: &MatRef<'_, T>| {
        input.copy_from(channel);
        let mut out = Mat::zeros(out_rows, out_columns);
        rows.apply_transposed(input.as_mut(), half.as_mut());
        columns.apply_transposed(half.as_mut(), out.as_mut());
        out
    };
    channels.iter().map(solve).collect()
}

fn apply_3d<T: Real>(
    what: &str,
    maps: [AxisMapRef<'_, T>; 3],
    channels: &[Cube<T>],
    role: Role,
) -> Result<Vec<Cube<T>>, ClosedFormError> {
    let needed = maps.map(|map| map.shape().1);
    for (index, channel) in channels.iter().enumerate() {
        let name = || format!("{what} {index}");
        if channel.shape() != needed {
            return Err(shape_error(name(), &channel.shape(), &maps, &needed, role));
        }
        if let Some(at) = channel.values().iter().position(|value| !value.to_f64().is_finite()) {
            return Err(ClosedFormError::NotFinite {
                what: name(),
                at: format!("{:?}", index_of(at, needed)),
                value: channel.values()[at].to_f64(),
            });
        }
    }
    Ok(channels.iter().map(|channel| apply_cube(maps, channel)).collect())
}

/// Last axis first: the entries of its lines lie next to each other, and each application moves the
/// next axis there.
fn apply_cube<T: Real>(maps: [AxisMapRef<'_, T>; 3], cube: &Cube<T>) -> Cube<T> {
    let mut values = cube.values().to_vec();
    let mut shape = cube.shape();
    for axis in (0..3).rev() {
        let (length, n) = maps[axis].shape();
        let lines = values.len() / n;
        let mut out = vec![T::zero_impl(); lines * length];
        maps[axis].apply_transposed(
            MatMut::from_column_major_slice_mut(&mut values, n, lines),
            MatMut::from_column_major_slice_mut(&mut out, lines, length),
        );
        shape[axis] = length;
        values = out;
    }
    Cube::from_values(shape, values)
}

fn check_embeddings<T: Real>(matrices: &[MatRef<'_, T>]) -> Result<(), ClosedFormError> {
    matrices
        .iter()
        .enumerate()
        .try_for_each(|(axis, psi)| check_entries(|| format!("embedding matrix {axis}"), *psi))
}

fn check_matrices<T: Real>(
    what: &str,
    matrices: &[MatRef<'_, T>],
    maps: [AxisMapRef<'_, T>; 2],
    role: Role,
) -> Result<(), ClosedFormError> {
    let needed = maps.map(|map| map.shape().1);
    for (index, matrix) in matrices.iter().enumerate() {
        let name = || format!("{what} {index}");
        let found = [matrix.nrows(), matrix.ncols()];
        if found != needed {
            return Err(shape_error(name(), &found, &maps, &needed, role));
        }
        check_entries(name, *matrix)?;
    }
    Ok(())
}

fn shape_error<T: Real>(
    what: String,
    found: &[usize],
    maps: &[AxisMapRef<'_, T>],
    needed: &[usize],
    role: Role,
) -> ClosedFormError {
    let factors: Vec<String> = maps
        .iter()
        .map(|map| match (role, map.shape()) {
            (Role::Solve, (features, points)) => format!("{points}×{features}"),
            (Role::Predict, (points, features)) => format!("{points}×{features}"),
        })
        .collect();
    ClosedFormError::Shape {
        what,
        found: times(found),
        factors: factors.join(", "),
        needed: times(needed),
    }
}

fn times(shape: &[usize]) -> String {
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join("×")
}

fn index_of(flat: usize, shape: [usize; 3]) -> [usize; 3] {
    [flat / (shape[1] * shape[2]), flat / shape[2] % shape[1], flat % shape[2]]
}
