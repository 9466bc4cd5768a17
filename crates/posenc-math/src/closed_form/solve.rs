//! Solving for the weights, and predicting with them, two or three axes at a time.

use super::apply::AxisMapRef;
use super::{Factorization, Real, check_entries, not_finite};
use crate::{Error, kronecker::Cube};
use faer::linalg::solvers::Solve;
use faer::{Mat, MatMut, MatRef};

/// Two maps, one per axis, with the scratch memory to apply them to any number of channels.
///
/// Each thread needs its own; it borrows the factorizations or matrices, which threads share.
/// [`solve_2d`] and [`predict_2d`] are shorter to call. [`apply_into`](Self::apply_into) reuses the
/// memory of earlier results.
#[derive(Clone, Debug)]
pub struct Separable2d<'a, T> {
    maps: [AxisMapRef<'a, T>; 2],
    role: Role,
    input: Mat<T>,
    half: Mat<T>,
}

impl<'a, T: Real> Separable2d<'a, T> {
    /// `S ↦ Ψy⁺ S (Ψx⁺)ᵀ`: from a channel (M × N; row = y, column = x) to its weights (Ky × Kx).
    ///
    /// `rows` is the factorization of Ψy (M × Ky), `columns` the one of Ψx (N × Kx); on a square grid
    /// both may be the same.
    pub fn solver(rows: &'a Factorization<T>, columns: &'a Factorization<T>) -> Self {
        Self::new([rows.inverse(), columns.inverse()], Role::Solve)
    }

    /// `W ↦ Ψy W Ψxᵀ`: from weights (Ky × Kx) to the values at the points of Ψy (M × Ky) and Ψx
    /// (N × Kx), M × N.
    pub fn predictor(psi_y: MatRef<'a, T>, psi_x: MatRef<'a, T>) -> Result<Self, Error> {
        check_embeddings(&[psi_y, psi_x])?;
        Ok(Self::new([AxisMapRef::Plain(psi_y), AxisMapRef::Plain(psi_x)], Role::Predict))
    }

    /// Applies both maps to one channel; `out` is resized if its shape differs.
    pub fn apply_into(&mut self, channel: MatRef<'_, T>, out: &mut Mat<T>) -> Result<(), Error> {
        T::apply(self, None, channel, out)
    }

    /// As [`apply_into`](Self::apply_into); errors name the channel by `index`, if given.
    pub(super) fn apply(
        &mut self,
        index: Option<usize>,
        channel: MatRef<'_, T>,
        out: &mut Mat<T>,
    ) -> Result<(), Error> {
        let role = self.role.input();
        self.check(|| index.map_or(format!("the {role}"), |i| format!("{role} {i}")), channel)?;
        let [(rows, _), (columns, _)] = self.maps.map(AxisMapRef::shape);
        if out.shape() != (rows, columns) {
            *out = Mat::zeros(rows, columns);
        }
        self.input.copy_from(channel);
        self.maps[0].apply_transposed(self.input.as_mut(), self.half.as_mut());
        self.maps[1].apply_transposed(self.half.as_mut(), out.as_mut());
        Ok(())
    }

    fn new(maps: [AxisMapRef<'a, T>; 2], role: Role) -> Self {
        let [(out_rows, in_rows), (_, in_columns)] = maps.map(AxisMapRef::shape);
        Self {
            maps,
            role,
            input: Mat::zeros(in_rows, in_columns),
            half: Mat::zeros(in_columns, out_rows),
        }
    }

    fn apply_all(mut self, channels: &[MatRef<'_, T>]) -> Result<Vec<Mat<T>>, Error> {
        channels
            .iter()
            .enumerate()
            .map(|(index, channel)| {
                let mut out = Mat::new();
                T::apply(&mut self, Some(index), *channel, &mut out)?;
                Ok(out)
            })
            .collect()
    }

    fn check(&self, name: impl Fn() -> String, channel: MatRef<'_, T>) -> Result<(), Error> {
        let needed = self.maps.map(|map| map.shape().1);
        let found = [channel.nrows(), channel.ncols()];
        if found != needed {
            return Err(shape_error(name(), &found, &self.maps, &needed, self.role));
        }
        check_entries(name, channel)
    }
}

/// Weights `W_c = Ψy⁺ S_c (Ψx⁺)ᵀ` (Ky × Kx) of every channel `S_c` (M × N; row = y, column = x).
///
/// The weights of a channel do not depend on the other channels, so channels of any number of images
/// may be passed in one call or in several. See [`Separable2d::solver`].
pub fn solve_2d<T: Real>(
    rows: &Factorization<T>,
    columns: &Factorization<T>,
    channels: &[MatRef<'_, T>],
) -> Result<Vec<Mat<T>>, Error> {
    Separable2d::solver(rows, columns).apply_all(channels)
}

/// Values `Ψy W_c Ψxᵀ` (M × N) of every channel at the points of Ψy (M × Ky) and Ψx (N × Kx), from its
/// weights `W_c` (Ky × Kx) (trading, Eq. 10).
pub fn predict_2d<T: Real>(
    psi_y: MatRef<'_, T>,
    psi_x: MatRef<'_, T>,
    weights: &[MatRef<'_, T>],
) -> Result<Vec<Mat<T>>, Error> {
    Separable2d::predictor(psi_y, psi_x)?.apply_all(weights)
}

/// Weights `W_c = S_c ×₀ Ψ0⁺ ×₁ Ψ1⁺ ×₂ Ψ2⁺` of every channel; factorizations in the order of the axes
/// of the cubes.
pub fn solve_3d<T: Real>(
    axes: [&Factorization<T>; 3],
    channels: &[Cube<T>],
) -> Result<Vec<Cube<T>>, Error> {
    T::solve_3d(axes, channels)
}

pub(super) fn solve_axes<T: Real>(
    axes: [&Factorization<T>; 3],
    channels: &[Cube<T>],
) -> Result<Vec<Cube<T>>, Error> {
    apply_3d(axes.map(Factorization::inverse), channels, Role::Solve)
}

/// Values `W_c ×₀ Ψ0 ×₁ Ψ1 ×₂ Ψ2` of every channel (trading, Eq. 17).
pub fn predict_3d<T: Real>(
    psi: [MatRef<'_, T>; 3],
    weights: &[Cube<T>],
) -> Result<Vec<Cube<T>>, Error> {
    T::predict_3d(psi, weights)
}

pub(super) fn predict_axes<T: Real>(
    psi: [MatRef<'_, T>; 3],
    weights: &[Cube<T>],
) -> Result<Vec<Cube<T>>, Error> {
    check_embeddings(&psi)?;
    apply_3d(psi.map(AxisMapRef::Plain), weights, Role::Predict)
}

/// Whether the maps are pseudo-inverses or embedding matrices, for error messages.
#[derive(Clone, Copy, Debug)]
enum Role {
    Solve,
    Predict,
}

impl Role {
    fn input(self) -> &'static str {
        match self {
            Self::Solve => "channel",
            Self::Predict => "weights",
        }
    }
}

fn apply_3d<T: Real>(
    maps: [AxisMapRef<'_, T>; 3],
    channels: &[Cube<T>],
    role: Role,
) -> Result<Vec<Cube<T>>, Error> {
    let needed = maps.map(|map| map.shape().1);
    for (index, channel) in channels.iter().enumerate() {
        let name = || format!("{} {index}", role.input());
        if channel.shape() != needed {
            return Err(shape_error(name(), &channel.shape(), &maps, &needed, role));
        }
        if let Some(at) = channel.values().iter().position(|value| !value.to_f64().is_finite()) {
            let place = format!("{:?}", index_of(at, needed));
            return Err(not_finite(&name(), channel.values()[at], &place));
        }
    }
    Ok(channels.iter().map(|channel| apply_cube(maps, channel)).collect())
}

/// Applies the maps from the last axis to the first. The lines of the last axis are contiguous, and each
/// application makes those of the next axis contiguous.
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

fn check_embeddings<T: Real>(matrices: &[MatRef<'_, T>]) -> Result<(), Error> {
    matrices
        .iter()
        .enumerate()
        .try_for_each(|(axis, psi)| check_entries(|| format!("embedding matrix {axis}"), *psi))
}

fn shape_error<T: Real>(
    what: String,
    found: &[usize],
    maps: &[AxisMapRef<'_, T>],
    needed: &[usize],
    role: Role,
) -> Error {
    let factors: Vec<String> = maps
        .iter()
        .map(|map| match (role, map.shape()) {
            (Role::Solve, (features, points)) => format!("{points}×{features}"),
            (Role::Predict, (points, features)) => format!("{points}×{features}"),
        })
        .collect();
    Error(format!(
        "{what} is {} but the embedding matrices {} need {}",
        times(found),
        factors.join(", "),
        times(needed)
    ))
}

fn times(shape: &[usize]) -> String {
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join("×")
}

fn index_of(flat: usize, shape: [usize; 3]) -> [usize; 3] {
    [flat / (shape[1] * shape[2]), flat / shape[2] % shape[1], flat % shape[2]]
}

/// (ΨᵀΨ)⁻¹ B for Ψ (N × K) and B (K rows): the inverse as printed in trading, Eqs. 12 and 42.
///
/// It squares the condition number and is not finite if the Gram matrix is singular. Use
/// [`Factorization`] to solve for weights.
pub fn normal_equations(psi: MatRef<'_, f64>, right: &Mat<f64>) -> Mat<f64> {
    (psi.transpose() * psi).partial_piv_lu().solve(right)
}
