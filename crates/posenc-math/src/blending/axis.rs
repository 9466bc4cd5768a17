//! Cells and weights of the coordinates along one axis.

use faer::{Mat, MatRef};

use super::{BlendingError, VirtualGrid, WeightVariant, blend};
use crate::closed_form::Real;

/// The lower node and the two weights of every coordinate of a list.
///
/// Points of an image or a clip share coordinates, i/n along each axis: weights are computed once per
/// coordinate and not once per point.
///
/// ```
/// use posenc_math::blending::{
///     AxisBlending, Blending, DistanceSource, GridConvention, VirtualGrid, WeightVariant, distance_function,
/// };
/// use posenc_math::embedder::{EmbedderSpec, build, matrix};
/// # use posenc_math::random::stream;
/// let spec = EmbedderSpec::new("gaussian").number("dimension", 64.0).number("sigma", 0.05);
/// let embedder = build(&spec, &mut stream(0, "blending")).unwrap();
/// let distance = distance_function(DistanceSource::Law, &spec, &*embedder)?;
/// let grid = VirtualGrid::new(65, GridConvention::Consistent)?;
/// // A point between two nodes gets nearly its own encoding.
/// let axis = AxisBlending::new(&grid, &[0.3], &*distance, WeightVariant::Printed)?;
/// let blended = axis.blended(matrix(&*embedder, &grid.encoded_positions()).as_ref())?;
/// let own = matrix(&*embedder, &[0.3]);
/// assert!((0..64).all(|j| (blended[(0, j)] - own[(0, j)]).abs() < 0.01));
/// // One point of a plane: four nodes with weights that multiply.
/// let point = Blending::<f64, 2>::new([&axis, &axis], vec![[0, 0]])?;
/// assert_eq!(point.corners().weights.len(), 4);
/// # Ok::<(), posenc_math::blending::BlendingError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AxisBlending {
    pub(super) nodes: usize,
    pub(super) lower: Vec<u32>,
    pub(super) weights: Vec<[f64; 2]>,
}

impl AxisBlending {
    /// Blends the `coordinates`, in [0, 1], from the nodes of `grid`; `distance` is D.
    ///
    /// # Errors
    ///
    /// [`BlendingError::Coordinate`], and those of [`blend`].
    pub fn new(
        grid: &VirtualGrid,
        coordinates: &[f64],
        distance: &dyn Fn(f64) -> f64,
        variant: WeightVariant,
    ) -> Result<Self, BlendingError> {
        let mut lower = Vec::with_capacity(coordinates.len());
        let mut weights = Vec::with_capacity(coordinates.len());
        for (index, &value) in coordinates.iter().enumerate() {
            let (cell, beta) =
                grid.locate(value).ok_or(BlendingError::Coordinate { index, value })?;
            lower.push(cell as u32);
            weights.push(blend(distance, grid.spacing(), beta, variant)?);
        }
        Ok(Self { nodes: grid.nodes(), lower, weights })
    }

    /// Number of coordinates.
    pub fn len(&self) -> usize {
        self.lower.len()
    }

    /// Whether there is no coordinate.
    pub fn is_empty(&self) -> bool {
        self.lower.is_empty()
    }

    /// Number of nodes of the grid.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// For every coordinate the index i of the node below it; its other node is i + 1.
    pub fn lower(&self) -> &[u32] {
        &self.lower
    }

    /// For every coordinate the weights of its lower and its upper node.
    pub fn weights(&self) -> &[[f64; 2]] {
        &self.weights
    }

    /// The blended encodings of all coordinates (coordinates × K) from those of the nodes `psi`
    /// (nodes × K).
    ///
    /// Blending a whole lattice of coordinates is separable,
    /// `(B0 ⊗ B1)(Ψ0 ⊗ Ψ1) = (B0 Ψ0) ⊗ (B1 Ψ1)`: these matrices predict all pixels at once, and
    /// their rows are what a scattered pixel is given.
    ///
    /// # Errors
    ///
    /// [`BlendingError::Length`] when `psi` does not have a row for every node.
    pub fn blended<T: Real>(&self, psi: MatRef<'_, T>) -> Result<Mat<T>, BlendingError> {
        if psi.nrows() != self.nodes {
            return Err(BlendingError::Length {
                what: "rows of the encoding, one for each node of the virtual grid",
                found: psi.nrows(),
                needed: self.nodes,
            });
        }
        Ok(Mat::from_fn(self.len(), psi.ncols(), |point, feature| {
            let node = self.lower[point] as usize;
            let [below, above] = self.weights[point].map(T::from_f64);
            below * psi[(node, feature)] + above * psi[(node + 1, feature)]
        }))
    }
}
