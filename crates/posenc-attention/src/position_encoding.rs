//! Position encodings as modules.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, activation};
use posenc_math::lff::encoding::{Encoding, Features, Layer};
use posenc_math::lff::similarity::{FourierFeatures, PositionCode, SineCode};
use posenc_math::lff::widget::{BINS, COORDINATES};
use posenc_math::random::gaussian_vector;
use rand_chacha::ChaCha8Rng;

use crate::draw::{Draw, constant, parameter};
use crate::layers::{Dense, Dropout, LayerNorm};
use crate::loss::integers;

/// Largest wavelength of sines over 2π (LFF Eq. 1).
const TEMPERATURE: f64 = 10_000.0;

/// Initial standard deviation of the embedding tables in the public widget captioner.
const PUBLIC_DEVIATION: f64 = 0.1;

/// Positions with one or more coordinates.
#[derive(Debug, Clone, PartialEq)]
pub struct Positions {
    /// Number of values of each coordinate, which are 0, 1, …. An embedding table has one row per value.
    pub sides: Vec<usize>,
    pub coordinates: Vec<f64>,
}

impl Positions {
    /// All cells of a grid in reading order, the last coordinate fastest.
    pub fn grid(sides: &[usize]) -> Self {
        let count: usize = sides.iter().product();
        let cell = |mut place: usize| {
            let mut cell = vec![0.0; sides.len()];
            for (axis, &side) in sides.iter().enumerate().rev() {
                cell[axis] = (place % side) as f64;
                place /= side;
            }
            cell
        };
        Positions { sides: sides.to_vec(), coordinates: (0..count).flat_map(cell).collect() }
    }

    pub fn count(&self) -> usize {
        self.coordinates.len() / self.sides.len().max(1)
    }

    /// Positions with one coordinate each: their index in reading order.
    fn flat(&self) -> Positions {
        let place = |cell: &[f64]| {
            cell.iter().zip(&self.sides).fold(0.0, |place, (c, &side)| place * side as f64 + c)
        };
        let coordinates = self.coordinates.chunks_exact(self.sides.len()).map(place).collect();
        Positions { sides: vec![self.sides.iter().product()], coordinates }
    }
}

/// Two dense layers with a ReLU between them, each after an optional layer norm.
#[derive(Module, Debug)]
struct Network {
    first_norm: Option<LayerNorm>,
    first: Dense,
    second_norm: Option<LayerNorm>,
    second: Dense,
}

impl Network {
    fn new(draw: &mut Draw<'_>, [inputs, hidden, outputs]: [usize; 3], layer_norm: bool) -> Self {
        Network {
            first_norm: layer_norm.then(|| draw.layer_norm(inputs)),
            first: draw.dense(inputs, hidden),
            second_norm: layer_norm.then(|| draw.layer_norm(hidden)),
            second: draw.dense(hidden, outputs),
        }
    }

    fn forward(&self, x: Tensor<2>, mut dropout: Dropout<'_>) -> Tensor<2> {
        let normed = |norm: &Option<LayerNorm>, x| match norm {
            Some(norm) => norm.forward(x),
            None => x,
        };
        let hidden = activation::relu(self.first.forward(normed(&self.first_norm, x)));
        self.second.forward(normed(&self.second_norm, dropout.apply(hidden)))
    }
}

/// What is on top of the features.
#[derive(Module, Debug)]
#[expect(clippy::large_enum_variant, reason = "one value per model")]
enum Top {
    Modulator(Network),
    Linear(Dense),
    LayerNorm(LayerNorm),
    Gain(Param<Tensor<1>>),
}

/// A position encoding: LFF Algorithm 1, or one of the encodings that it is compared with.
///
/// Use [`PositionEncoding::prepare`] once per set of positions and [`PositionEncoding::encode`] once per step.
#[derive(Module, Debug)]
pub struct PositionEncoding {
    /// Embedding tables, one per coordinate.
    tables: Vec<Param<Tensor<2>>>,
    /// Dense layers on the rows of each table, if the encoding has them.
    projections: Vec<Dense>,
    /// $W_r^T$ `[M, |F|/2]`, if it is trained.
    frequencies: Option<Param<Tensor<2>>>,
    network: Option<Network>,
    top: Option<Top>,
    #[module(skip)]
    description: Description,
}

/// The parts that are not trained.
#[derive(Debug, Clone)]
struct Description {
    encoding: Encoding,
    width: usize,
    /// Number of coordinates of a group.
    coordinates: usize,
    /// $W_r$ as sampled, row by row.
    drawn: Vec<f64>,
}

/// A set of positions, prepared for an encoder.
#[derive(Debug, Clone)]
pub struct Prepared {
    count: usize,
    /// Coordinates of groups `[N G, M]`, or fixed features `[N G, F]`.
    numbers: Option<Tensor<2>>,
    rows: Vec<Tensor<1, Int>>,
    device: Device,
}

impl PositionEncoding {
    /// Samples an encoder for positions of the given sides in a model of width `width`, for which [`Encoding::check`] finds no fault. $W_r$
    /// is sampled first, so encodings that differ only in the layers after it share it.
    pub fn new(encoding: &Encoding, sides: &[usize], width: usize, draw: &mut Draw<'_>) -> Self {
        let axes = if encoding.flat { 1 } else { sides.len() };
        let coordinates = axes / encoding.groups;
        let f = encoding.feature_width(width);
        let mut drawn = Vec::new();
        if encoding.features == Features::Fourier {
            let scale = 1.0 / encoding.gamma.unwrap_or(1.0);
            let normal = gaussian_vector(draw.rng, f / 2 * coordinates);
            drawn = normal.into_iter().map(|z| scale * z).collect();
        }
        let tables = match encoding.features {
            Features::Embed => {
                let rows =
                    if encoding.flat { vec![sides.iter().product()] } else { sides.to_vec() };
                let width = if encoding.summed { f } else { f / axes };
                let deviation = if encoding.projected { PUBLIC_DEVIATION } else { 1.0 };
                let table = |rows| match encoding.uniform {
                    true => draw.uniform([rows, width], 0.0, 1.0),
                    false => draw.normal([rows, width], deviation),
                };
                rows.into_iter().map(table).collect()
            }
            _ => Vec::new(),
        };
        let projections = match encoding.projected {
            true => (0..axes).map(|_| draw.dense(f, f)).collect(),
            false => Vec::new(),
        };
        let frequencies = encoding.learned.then(|| {
            let half = f / 2;
            let transposed = (0..coordinates).flat_map(|c| (0..half).map(move |k| (c, k)));
            let numbers = transposed.map(|(c, k)| drawn[k * coordinates + c] as f32).collect();
            parameter(numbers, [coordinates, half], draw.device)
        });
        let network =
            encoding.hidden.map(|hidden| Network::new(draw, [coordinates, hidden, f], false));
        let outputs = width / encoding.groups;
        let top = match (&encoding.modulator, encoding.layer) {
            (Some(modulator), _) => {
                let sizes = [f, modulator.hidden, outputs];
                Some(Top::Modulator(Network::new(draw, sizes, modulator.layer_norm)))
            }
            (None, Some(Layer::Linear)) => Some(Top::Linear(draw.dense(f, outputs))),
            (None, Some(Layer::LayerNorm)) => Some(Top::LayerNorm(draw.layer_norm(f))),
            (None, Some(Layer::Gain)) => Some(Top::Gain(parameter(vec![1.0], [1], draw.device))),
            (None, None) => None,
        };
        let encoding = encoding.clone();
        let description = Description { encoding, width, coordinates, drawn };
        PositionEncoding { tables, projections, frequencies, network, top, description }
    }

    /// Moves positions to a device. Everything that does not depend on trained parameters is computed here, in double precision.
    pub fn prepare(&self, positions: &Positions, device: &Device) -> Prepared {
        let Description { encoding, width, coordinates: m, drawn } = &self.description;
        let flat = encoding.flat.then(|| positions.flat());
        let positions = flat.as_ref().unwrap_or(positions);
        let count = positions.count();
        let (numbers, per_group) = match encoding.features {
            Features::None | Features::Embed => (None, 0),
            Features::Network => (Some(positions.coordinates.clone()), *m),
            Features::Fourier if encoding.learned => (Some(positions.coordinates.clone()), *m),
            _ => {
                let f = encoding.feature_width(*width);
                let scale = encoding.scale.unwrap_or(1.0);
                let mut features = vec![0.0; count * encoding.groups * f];
                let groups = positions.coordinates.chunks_exact(*m);
                for (x, out) in groups.zip(features.chunks_exact_mut(f)) {
                    fixed_features(encoding, drawn, x, out);
                    out.iter_mut().for_each(|v| *v *= scale);
                }
                (Some(features), f)
            }
        };
        let numbers = numbers.map(|numbers| {
            let numbers: Vec<f32> = numbers.into_iter().map(|v| v as f32).collect();
            let rows = numbers.len() / per_group.max(1);
            constant(numbers, [rows, per_group], device)
        });
        let rows = (0..self.tables.len())
            .map(|axis| {
                let cells = positions.coordinates.chunks_exact(positions.sides.len());
                integers(cells.map(|cell| cell[axis] as i64).collect(), device)
            })
            .collect();
        Prepared { count, numbers, rows, device: device.clone() }
    }

    /// Whether the encoding uses embedding tables, which require integer coordinates from 0.
    pub fn is_table(&self) -> bool {
        self.description.encoding.features == Features::Embed
    }

    /// Encodings `[N, D]` of prepared positions. With `dropout`, the dropout of the modulator is active, as in training, and samples its
    /// mask from that stream.
    pub fn encode(&self, positions: &Prepared, dropout: Option<&mut ChaCha8Rng>) -> Tensor<2> {
        let Description { encoding, width, .. } = &self.description;
        let Some(features) = self.features(positions) else {
            return Tensor::zeros([positions.count, *width], &positions.device);
        };
        let encoded = match &self.top {
            None => features,
            Some(Top::Linear(dense)) => dense.forward(features),
            Some(Top::LayerNorm(norm)) => norm.forward(features),
            Some(Top::Gain(gain)) => features.mul(gain.val().unsqueeze()),
            Some(Top::Modulator(network)) => {
                let rate = encoding.modulator.as_ref().map_or(0.0, |m| m.dropout);
                network.forward(features, Dropout::new(rate, dropout))
            }
        };
        encoded.reshape([positions.count, *width])
    }

    /// Encodings `[N, D]` of boxes on a screen, given their coordinates, box by box.
    pub fn encode_boxes(
        &self,
        coordinates: Vec<f64>,
        dropout: Option<&mut ChaCha8Rng>,
        device: &Device,
    ) -> Tensor<2> {
        let positions = Positions { sides: vec![BINS; COORDINATES], coordinates };
        self.encode(&self.prepare(&positions, device), dropout)
    }

    /// Features `[N G, F]`; `None` if the encoding has no features.
    fn features(&self, positions: &Prepared) -> Option<Tensor<2>> {
        let encoding = &self.description.encoding;
        let scale = encoding.scale.unwrap_or(1.0);
        if !self.tables.is_empty() {
            let rows = self.tables.iter().zip(&positions.rows);
            let parts = rows.enumerate().map(|(axis, (table, rows))| {
                // Project the table, not the selected rows: a table has fewer rows than there are positions.
                let table = match self.projections.get(axis) {
                    Some(projection) => projection.forward(table.val()),
                    None => table.val(),
                };
                table.select(0, rows.clone())
            });
            let codes = match encoding.summed {
                true => parts.reduce(|sum, part| sum + part)?,
                false => Tensor::cat(parts.collect(), 1),
            };
            return Some(codes.mul_scalar(scale));
        }
        let numbers = positions.numbers.clone()?;
        if let Some(network) = &self.network {
            return Some(network.forward(numbers, Dropout::new(0.0, None)).mul_scalar(scale));
        }
        let Some(frequencies) = &self.frequencies else {
            return Some(numbers);
        };
        let phases = numbers.matmul(frequencies.val());
        let size = 2 * phases.dims()[1];
        let parts = vec![phases.clone().cos(), phases.sin()];
        Some(Tensor::cat(parts, 1).mul_scalar(scale / (size as f64).sqrt()))
    }

    /// $W_r$, row by row, and the number of coordinates of a row; `None` for other features.
    pub fn frequencies(&self) -> Option<(Vec<f64>, usize)> {
        let Description { encoding, coordinates, drawn, .. } = &self.description;
        if encoding.features != Features::Fourier {
            return None;
        }
        let rows = match &self.frequencies {
            None => drawn.clone(),
            Some(frequencies) => {
                let rows = crate::parameters::numbers(frequencies.val().transpose());
                rows.into_iter().map(f64::from).collect()
            }
        };
        Some((rows, *coordinates))
    }

    /// $W_r^T$ `[M, |F|/2]` for the penalty; `None` unless it is trained.
    pub fn trained_frequencies(&self) -> Option<Tensor<2>> {
        self.frequencies.as_ref().map(Param::val)
    }
}

fn fixed_features(encoding: &Encoding, drawn: &[f64], x: &[f64], out: &mut [f64]) {
    let temperature = encoding.temperature.unwrap_or(TEMPERATURE);
    let sines = |x: &[f64], out: &mut [f64]| {
        if let Ok(code) = SineCode::new(out.len() / x.len(), x.len(), temperature) {
            code.encode(x, out);
        }
    };
    match encoding.features {
        Features::Sine => sines(x, out),
        Features::SummedSine => sines(&[x.iter().sum()], out),
        Features::PairedSine => {
            let side = ((out.len() / 4) as f64).sqrt().round() as usize;
            let frequency = |i: usize| temperature.powf(-(i as f64) / side as f64);
            for (pair, out) in out.chunks_exact_mut(4).enumerate() {
                let (a, b) = (frequency(pair / side) * x[0], frequency(pair % side) * x[1]);
                (out[0], out[1]) = (a + b).sin_cos();
                (out[2], out[3]) = (a - b).sin_cos();
            }
        }
        Features::Fourier => {
            if let Ok(code) = FourierFeatures::from_weights(drawn.to_vec(), x.len()) {
                code.encode(x, out);
            }
        }
        Features::None | Features::Embed | Features::Network => {}
    }
}
