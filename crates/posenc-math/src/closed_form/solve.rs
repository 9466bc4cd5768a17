//! Solving for the weights, and predicting with them, along any number of axes.

use std::sync::Arc;

use super::apply::{Along, AxisMap, mode_products};
use super::{Factorization, Real, check_entries, check_finite};
use crate::Error;
use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef};

/// One map per axis, with the scratch memory to apply them to any number of channels. Channels have the last axis fastest.
///
/// Each thread needs its own, since it owns the scratch memory.
#[derive(Clone, Debug)]
pub struct Separable<T> {
    maps: Vec<Arc<AxisMap<T>>>,
    role: Role,
    values: Vec<T>,
    scratch: Vec<T>,
}

/// Whether the maps are pseudo-inverses or embedding matrices, for error messages.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Solve,
    Predict,
}

impl<T: Real> Separable<T> {
    /// `S ↦ S ×₀ Ψ0⁺ ×₁ Ψ1⁺ …`: from a channel to its weights.
    pub fn solver(axes: &[&Factorization<T>]) -> Self {
        Self::new(axes.iter().map(|axis| axis.inverse()).collect(), Role::Solve)
    }

    /// `W ↦ W ×₀ Ψ0 ×₁ Ψ1 …`: from weights to the values at the points of all matrices.
    pub fn predictor(psi: &[MatRef<'_, T>]) -> Result<Self, Error> {
        for (axis, psi) in psi.iter().enumerate() {
            check_entries(|| format!("embedding matrix {axis}"), *psi)?;
        }
        let maps = psi.iter().map(|psi| Arc::new(AxisMap::Plain(psi.to_owned())));
        Ok(Self::new(maps.collect(), Role::Predict))
    }

    fn new(maps: Vec<Arc<AxisMap<T>>>, role: Role) -> Self {
        Self { maps, role, values: Vec::new(), scratch: Vec::new() }
    }

    /// Applies the maps to one channel. The memory of an earlier result in `out` is used again.
    pub fn apply_into(&mut self, channel: &[T], out: &mut Vec<T>) -> Result<(), Error> {
        T::apply(self, 0, channel, out)
    }

    /// As [`apply_into`](Self::apply_into); errors name the channel by `index`.
    pub(super) fn apply(
        &mut self,
        index: usize,
        channel: &[T],
        out: &mut Vec<T>,
    ) -> Result<(), Error> {
        self.check(index, channel)?;
        let Self { maps, values, scratch, .. } = self;
        values.clear();
        values.extend_from_slice(channel);
        mode_products(maps.iter().map(|map| &**map), values, scratch);
        std::mem::swap(values, out);
        Ok(())
    }

    fn apply_all(mut self, channels: &[Vec<T>]) -> Result<Vec<Vec<T>>, Error> {
        let apply = |(index, channel): (usize, &Vec<T>)| {
            let mut out = Vec::new();
            T::apply(&mut self, index, channel, &mut out)?;
            Ok(out)
        };
        channels.iter().enumerate().map(apply).collect()
    }

    fn check(&self, index: usize, channel: &[T]) -> Result<(), Error> {
        let is_solved = self.role == Role::Solve;
        let what = format!("{} {index}", if is_solved { "channel" } else { "weights" });
        let needed: Vec<usize> = self.maps.iter().map(|map| map.shape().1).collect();
        if channel.len() != needed.iter().product::<usize>() {
            let shapes = self.maps.iter().map(|map| {
                let (rows, columns) = map.shape();
                let (points, features) = if is_solved { (columns, rows) } else { (rows, columns) };
                format!("{points}×{features}")
            });
            let shapes: Vec<String> = shapes.collect();
            let sides: Vec<String> = needed.iter().map(usize::to_string).collect();
            return Err(Error(format!(
                "{what} has {} values but the embedding matrices {} need {}",
                channel.len(),
                shapes.join(", "),
                sides.join("×")
            )));
        }
        check_finite(channel, &what, |at| {
            let strides =
                (0..needed.len()).map(|axis| needed[axis + 1..].iter().product::<usize>());
            let place: Vec<usize> = strides.zip(&needed).map(|(s, side)| at / s % side).collect();
            format!("{place:?}")
        })
    }
}

/// Weights `W_c = S_c ×₀ Ψ0⁺ ×₁ Ψ1⁺ …` of every channel `S_c`.
///
/// The weights of a channel do not depend on the other channels, so channels of any number of images may be passed in one call or in
/// several.
pub fn solve<T: Real>(
    axes: &[&Factorization<T>],
    channels: &[Vec<T>],
) -> Result<Vec<Vec<T>>, Error> {
    Separable::solver(axes).apply_all(channels)
}

/// Values `W_c ×₀ Ψ0 ×₁ Ψ1 …` of every channel at the points of all matrices, from its weights `W_c` (trading, Eqs. 10 and 17).
pub fn predict<T: Real>(psi: &[MatRef<'_, T>], weights: &[Vec<T>]) -> Result<Vec<Vec<T>>, Error> {
    Separable::predictor(psi)?.apply_all(weights)
}

/// (ΨᵀΨ)⁻¹ B for Ψ (N × K) and B (K rows): the inverse as printed in trading, Eqs. 12 and 42.
///
/// It squares the condition number and is not finite if the Gram matrix is singular. Use
/// [`Factorization`] to solve for weights.
pub fn normal_equations(psi: MatRef<'_, f64>, right: &Mat<f64>) -> Mat<f64> {
    (psi.transpose() * psi).partial_piv_lu().solve(right)
}
