//! Cells and weights of the coordinates along one axis.

use super::{VirtualGrid, Weights, blend};
use crate::Error;

/// The lower node and the two weights of each coordinate of a list.
///
/// Points of an image or a clip share the coordinates i/n along each axis, so weights are computed once
/// per coordinate and not once per point.
///
/// ```
/// use posenc_math::blending::{
///     AxisBlending, Blending, InnerProducts, GridConvention, VirtualGrid, Weights, distance_function,
/// };
/// use posenc_math::embedder::{EmbedderSpec, build, matrix};
/// # use posenc_math::random::stream;
/// let spec = EmbedderSpec::new("gaussian").number("dimension", 64.0).number("sigma", 0.05);
/// let embedder = build(&spec, &mut stream(0, "blending")).unwrap();
/// let distance = distance_function(InnerProducts::Law, &spec, &*embedder)?;
/// let grid = VirtualGrid::new(65, GridConvention::Consistent)?;
/// // A point between two nodes gets nearly its own encoding.
/// let axis = AxisBlending::new(&grid, &[0.3], &*distance, Weights::Printed)?;
/// let nodes = matrix(&*embedder, &grid.encoded_positions());
/// let own = matrix(&*embedder, &[0.3]);
/// let point = Blending::<f64, 1>::new([&axis], vec![[0]])?;
/// for j in 0..64 {
///     let mut blended = [0.0];
///     point.gather(nodes.col_as_slice(j), &mut blended)?;
///     assert!((blended[0] - own[(0, j)]).abs() < 0.01);
/// }
/// // One point of a plane: four nodes with weights that multiply.
/// assert_eq!(Blending::<f64, 2>::new([&axis, &axis], vec![[0, 0]])?.matrix().nnz(), 4);
/// # Ok::<(), posenc_math::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AxisBlending {
    pub(super) nodes: usize,
    pub(super) lower: Vec<u32>,
    pub(super) weights: Vec<[f64; 2]>,
}

impl AxisBlending {
    /// Computes the weights of `coordinates`, in [0, 1], on the nodes of `grid`; `distance` is D.
    ///
    /// # Errors
    ///
    /// A coordinate outside of [0, 1], and those of [`blend`].
    pub fn new(
        grid: &VirtualGrid,
        coordinates: &[f64],
        distance: &dyn Fn(f64) -> f64,
        variant: Weights,
    ) -> Result<Self, Error> {
        let mut lower = Vec::with_capacity(coordinates.len());
        let mut weights = Vec::with_capacity(coordinates.len());
        for (index, &value) in coordinates.iter().enumerate() {
            let (cell, beta) = grid.locate(value).ok_or_else(|| {
                Error(format!("coordinate {index} is {value}; the virtual grid covers 0 to 1"))
            })?;
            lower.push(cell as u32);
            weights.push(blend(distance, grid.spacing(), beta, variant)?);
        }
        Ok(Self { nodes: grid.nodes(), lower, weights })
    }

    /// Number of coordinates.
    pub(super) fn len(&self) -> usize {
        self.lower.len()
    }
}
