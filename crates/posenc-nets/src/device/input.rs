//! Inputs of affine first layers on the device, and the first layer itself.
//!
//! If there are far fewer coordinates than points, as on a grid, the tables are multiplied and their products are
//! summed by the indices of the points. The backward pass first sums the gradients of each coordinate. Waves are
//! expanded chunk by chunk, and the features of all other inputs are uploaded.

use faer::Mat;

use super::adapter::Gpu;
use super::context::Gradient;
use super::kernels::Pointwise;
use super::program::{DeviceBuffer, Operand, Product, Recorder};
use super::simple::{Pass, chunks};
use crate::layout::Slot;
use crate::{Factored, Input, NetError};

/// Features on the device, or the tables they are made of.
#[derive(Debug)]
pub enum DeviceInput {
    /// Features point by point, one buffer per chunk.
    Dense(Vec<DeviceBuffer>),
    /// Concatenated tables, which are multiplied instead of the features; indices table by table. A trained side has
    /// one list of points per chunk.
    Factored {
        tables: DeviceBuffer,
        parts: Vec<Table>,
        indices: DeviceBuffer,
        lists: Vec<DeviceBuffer>,
    },
    /// Concatenated sines and cosines of all axes; `parts` contains the offsets of the sines and cosines of every axis.
    /// Indices are stored axis by axis.
    Waves { tables: DeviceBuffer, parts: Vec<(usize, usize)>, indices: DeviceBuffer, scale: f32 },
}

#[derive(Debug, Clone, Copy)]
pub struct Table {
    pub rows: usize,
    pub columns: usize,
    /// Offset of the table in the buffer.
    pub offset: usize,
    /// Total number of coordinates of the previous tables.
    pub first: usize,
}

/// Maximum number of tables that one kernel sums.
const TABLES: usize = 8;

impl DeviceInput {
    /// Uploads an input. Only a trained side gets lists of points.
    pub fn new(gpu: &Gpu, input: &Input, chunk: usize, is_trained: bool) -> Result<Self, NetError> {
        let flat = |indices: &[Vec<u32>]| DeviceBuffer::of(gpu, "indices", &indices.concat());
        let mut numbers: Vec<f32> = Vec::new();
        let append = |numbers: &mut Vec<f32>, matrix: &Mat<f32>| {
            let first = numbers.len();
            (0..matrix.ncols()).for_each(|j| numbers.extend(matrix.col_as_slice(j)));
            first
        };
        match input {
            Input::Factored(f) if takes_tables(f) => {
                let mut first = 0;
                let mut parts = Vec::with_capacity(f.tables.len());
                for table in &f.tables {
                    let offset = append(&mut numbers, table);
                    let (rows, columns) = table.shape();
                    parts.push(Table { rows, columns, offset, first });
                    first += columns;
                }
                let trained = chunks(input.points(), chunk).take_while(|_| is_trained);
                let list =
                    |chunk| DeviceBuffer::of(gpu, "lists of points", &lists(f, &parts, chunk));
                let lists = trained.map(list).collect::<Result<_, _>>()?;
                let tables = DeviceBuffer::of(gpu, "the tables of the features", &numbers)?;
                Ok(DeviceInput::Factored { tables, parts, indices: flat(&f.indices)?, lists })
            }
            Input::Waves(waves) => {
                let parts = waves
                    .tables
                    .iter()
                    .map(|t| (append(&mut numbers, &t.sines), append(&mut numbers, &t.cosines)))
                    .collect();
                let tables = DeviceBuffer::of(gpu, "the tables of the waves", &numbers)?;
                let indices = flat(&waves.indices)?;
                Ok(DeviceInput::Waves { tables, parts, indices, scale: waves.scale })
            }
            _ => {
                let features = input.dimension();
                let piece = |(first, n): (usize, usize)| {
                    let mut numbers = Vec::with_capacity(n * features);
                    for i in first..first + n {
                        match input {
                            Input::Dense(matrix) => numbers.extend(matrix.col_as_slice(i)),
                            _ => numbers.extend((0..features).map(|k| input.at(k, i))),
                        }
                    }
                    DeviceBuffer::of(gpu, "the features", &numbers)
                };
                chunks(input.points(), chunk).map(piece).collect::<Result<_, _>>().map(Self::Dense)
            }
        }
    }
}

/// Whether the tables are multiplied instead of the features, because they are much smaller.
pub fn takes_tables(input: &Factored) -> bool {
    let coordinates: usize = input.tables.iter().map(Mat::ncols).sum();
    let rows_fit = coordinates <= usize::from(u16::MAX);
    input.tables.len() <= TABLES && rows_fit && 4 * coordinates <= input.indices[0].len()
}

/// For every coordinate of every table, the list of a chunk's points that have it: the starts of the lists, then the
/// lists.
fn lists(input: &Factored, parts: &[Table], (first, n): (usize, usize)) -> Vec<u32> {
    let coordinates = parts.last().map_or(0, |table| table.first + table.columns);
    let mut starts = vec![0u32; coordinates + 1];
    let places = || {
        parts.iter().zip(&input.indices).flat_map(move |(table, index)| {
            let points = index[first..first + n].iter().enumerate();
            points.map(move |(point, i)| (table.first + *i as usize, point as u32))
        })
    };
    places().for_each(|(row, _)| starts[row + 1] += 1);
    (0..coordinates).for_each(|row| starts[row + 1] += starts[row]);
    let mut next = starts.clone();
    let mut all = vec![0u32; parts.len() * n];
    for (row, point) in places() {
        all[next[row] as usize] = point;
        next[row] += 1;
    }
    starts.extend(all);
    starts
}

impl<'a> Pass<'a> {
    /// Returns the features of a chunk and records the kernels that expand them; `None` if tables are multiplied.
    pub fn features(
        &self,
        list: &mut Recorder<'_>,
        (first, n): (usize, usize),
    ) -> Option<&'a DeviceBuffer> {
        let side = self.side;
        match &side.input {
            DeviceInput::Dense(pieces) => Some(&pieces[first / side.chunk]),
            DeviceInput::Factored { .. } => None,
            DeviceInput::Waves { tables, parts, indices, scale } => {
                let made = self.scratch.features.as_ref()?;
                let waves = self.context.network.input / 2;
                for (axis, &(sines, cosines)) in parts.iter().enumerate() {
                    let is_first = axis == 0;
                    let kernel =
                        if is_first { Pointwise::WavesFirst } else { Pointwise::WavesTurn };
                    let (index, scale) = (axis * side.points + first, scale.to_bits() as usize);
                    let parameters = [n, waves, index, sines, cosines, scale];
                    let (buffers, groups) = ([tables, indices, made], list.folded(n * waves));
                    let work = (6 * n * waves) as f64;
                    list.pointwise(kernel, &parameters, &buffers, groups, work);
                }
                Some(made)
            }
        }
    }

    /// Records the products of the tables with the weights of the first layer, once per step. Does nothing if tables are
    /// not multiplied.
    pub fn prepare(&self, list: &mut Recorder<'_>) {
        let DeviceInput::Factored { tables, parts, .. } = &self.side.input else { return };
        let Some([products, _]) = &self.scratch.tables else { return };
        let (slot, columns) = self.first_layer();
        let mut feature = 0;
        for table in parts {
            let weights = self.context.weights(slot, 0).transposed();
            let a = Operand { offset: table.offset, ..Operand::rows(tables, table.rows) };
            let b = Operand { offset: slot.weights + feature, ..weights };
            let c = Operand { offset: table.first * columns, ..Operand::rows(products, columns) };
            list.product(Product::new([a, b, c], (table.columns, columns, table.rows)));
            feature += table.rows;
        }
    }

    /// Records the first layer as sums of the products of its tables.
    pub fn sum_products(&self, list: &mut Recorder<'_>, (first, n): (usize, usize), is_last: bool) {
        let DeviceInput::Factored { parts, indices, .. } = &self.side.input else { return };
        let Some([products, _]) = &self.scratch.tables else { return };
        let (slot, columns) = self.first_layer();
        let sizes = [n, columns, parts.len(), usize::from(!is_last)];
        let places = [first, self.side.points, slot.bias, 0];
        let firsts: Vec<usize> = parts.iter().map(|table| table.first).collect();
        let parameters = [&sizes[..], &places, &firsts].concat();
        let buffers = [products, indices, &self.context.theta, &self.scratch.activations[0]];
        let work = ((parts.len() + 1) * n * columns) as f64;
        let groups = list.folded(n * columns);
        list.pointwise(Pointwise::GatherSum, &parameters, &buffers, groups, work);
    }

    /// Records the sums of a chunk's gradients of the first layer's outputs over the points of every coordinate.
    pub fn sum_gradients(&self, list: &mut Recorder<'_>, index: usize) {
        let side = self.side;
        let DeviceInput::Factored { parts, lists, .. } = &side.input else { return };
        let Some([_, sums]) = &self.scratch.tables else { return };
        let (_, columns) = self.first_layer();
        let coordinates = side.coordinates();
        let parameters = [columns, coordinates, usize::from(index > 0)];
        let groups = [columns.div_ceil(64), coordinates, 1];
        let points = side.chunk.min(side.points - index * side.chunk);
        let work = (parts.len() * points * columns) as f64;
        let buffers = [&self.scratch.activations[0], &lists[index], sums];
        list.pointwise(Pointwise::ScatterSum, &parameters, &buffers, groups, work);
    }

    /// Records the gradient of the first layer's weights from the sums of [`Self::sum_gradients`].
    pub fn multiply_gradients(&self, list: &mut Recorder<'_>, gradient: &Gradient) {
        let DeviceInput::Factored { tables, parts, .. } = &self.side.input else { return };
        let Some([_, sums]) = &self.scratch.tables else { return };
        let (slot, columns) = self.first_layer();
        let mut feature = 0;
        for table in parts {
            let sums = Operand { offset: table.first * columns, ..Operand::rows(sums, columns) };
            let b = Operand { offset: table.offset, ..Operand::rows(tables, table.rows) };
            let rows = Operand::rows(&gradient.weights, slot.fan_in);
            let c = Operand { offset: feature, ..rows };
            let sizes = (columns, table.rows, table.columns);
            list.product(Product::new([sums.transposed(), b, c], sizes));
            feature += table.rows;
        }
    }

    /// The first layer, and its number of outputs of all runs.
    fn first_layer(&self) -> (&'a Slot, usize) {
        let layout = &self.context.layout;
        (&layout.slots[0], layout.runs * layout.slots[0].fan_out)
    }
}
