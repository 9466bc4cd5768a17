//! Compares the position encoding of attention models with Algorithm 1 of `lff` in double precision.

use anyhow::{Context as _, Result, ensure};
use posenc_attention::draw::Draw;
use posenc_attention::position_encoding::{PositionEncoding as Module, Positions};
use posenc_attention::{Device, parameters};
use posenc_experiments::record::Value;
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::lff::encoding::{Encoding, Features};
use posenc_math::random::gaussian_vector;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;

use super::PositionEncoding;

/// ε of layer norms.
const EPSILON: f64 = 1e-6;

/// A module with the sizes and the device that it needs.
struct Encoder {
    module: Module,
    sides: Vec<usize>,
    device: Device,
}

impl Encoder {
    fn new(encoding: &Encoding, sides: Vec<usize>, width: usize, mut rng: ChaCha8Rng) -> Self {
        let device = posenc_attention::cpu();
        let mut draw = Draw { rng: &mut rng, device: &device };
        Encoder { module: Module::new(encoding, &sides, width, &mut draw), sides, device }
    }

    /// Encodings of positions, and the shape [rows, columns] of the tensor.
    fn encode(&self, coordinates: &[f64]) -> (Vec<f64>, [usize; 2]) {
        let positions = Positions { sides: self.sides.clone(), coordinates: coordinates.to_vec() };
        let codes = self.module.encode(&self.module.prepare(&positions, &self.device), None);
        let shape = codes.dims();
        (parameters::numbers(codes).into_iter().map(f64::from).collect(), shape)
    }

    /// Replaces all parameters after the first `frequencies` ones by samples from $N(0, 1)$.
    fn with_random_parameters(self, frequencies: usize, rng: &mut ChaCha8Rng) -> Result<Self> {
        let mut values = parameters::values(&self.module);
        let normal = gaussian_vector(rng, values.len() - frequencies);
        values.splice(frequencies.., normal.into_iter().map(|z| z as f32));
        let module = parameters::replaced(self.module, &values);
        Ok(Encoder { module: module.context("wrong number of parameters")?, ..self })
    }
}

/// Algorithm 1 after its initialization.
struct Algorithm<'a> {
    encoding: &'a Encoding,
    /// $W_r$, row by row.
    frequencies: Vec<f64>,
    /// Number of coordinates of a group, $M$.
    coordinates: usize,
    /// $|F|$.
    features: usize,
    /// Numbers of a group's encoding, $D/G$.
    outputs: usize,
    /// Parameters of the modulator, layer by layer: gain and shift of the layer norm, weights, bias.
    parameters: Vec<f64>,
}

impl<'a> Algorithm<'a> {
    /// Reads the parameters of an encoder.
    fn of(encoder: &Encoder, encoding: &'a Encoding, width: usize) -> Result<Self> {
        let (frequencies, coordinates) = encoder.module.frequencies().context("no frequencies")?;
        let values = parameters::values(&encoder.module);
        let trained = if encoding.learned { frequencies.len() } else { 0 };
        let parameters: Vec<f64> = values.iter().skip(trained).map(|&v| f64::from(v)).collect();
        let (features, outputs) = (encoding.feature_width(width), width / encoding.groups);
        let algorithm =
            Algorithm { encoding, frequencies, coordinates, features, outputs, parameters };
        ensure!(
            algorithm.modulator_size() == algorithm.parameters.len(),
            "the module has other parameters than Algorithm 1"
        );
        Ok(algorithm)
    }

    /// Number of parameters of $W_1$, $B_1$, $W_2$, $B_2$ and the layer norms of Appendix B.
    fn modulator_size(&self) -> usize {
        let dense = |inputs: usize, outputs: usize| inputs * outputs + outputs;
        let (f, outputs) = (self.features, self.outputs);
        self.encoding.modulator.as_ref().map_or(0, |layer| {
            let norms = if layer.layer_norm { 2 * (f + layer.hidden) } else { 0 };
            dense(f, layer.hidden) + dense(layer.hidden, outputs) + norms
        })
    }

    /// Line 1: $F \leftarrow |F|^{-1/2} [\cos X W_r^T; \sin X W_r^T]$ for one group.
    fn features(&self, x: &[f64]) -> Vec<f64> {
        let phases = self.phases(x);
        let cosines = phases.iter().map(|p| p.cos());
        let factor = self.scale() / (self.features as f64).sqrt();
        cosines.chain(phases.iter().map(|p| p.sin())).map(|v| v * factor).collect()
    }

    fn phases(&self, x: &[f64]) -> Vec<f64> {
        let rows = self.frequencies.chunks_exact(self.coordinates);
        rows.map(|w| w.iter().zip(x).map(|(w, x)| w * x).sum()).collect()
    }

    fn scale(&self) -> f64 {
        self.encoding.scale.unwrap_or(1.0)
    }

    /// Lines 2 and 3: $Y \leftarrow \max(0, F W_1 + B_1) W_2 + B_2$ for each group, concatenated.
    fn encode(&self, coordinates: &[f64]) -> Vec<f64> {
        let groups = coordinates.chunks_exact(self.coordinates);
        let encode = |x: &[f64]| {
            let features = self.features(x);
            let Some(modulator) = &self.encoding.modulator else { return features };
            let rest = &mut self.parameters.iter().copied();
            let hidden = dense(&features, modulator.hidden, modulator.layer_norm, rest);
            let hidden: Vec<f64> = hidden.into_iter().map(|v| v.max(0.0)).collect();
            dense(&hidden, self.outputs, modulator.layer_norm, rest)
        };
        groups.flat_map(encode).collect()
    }

    /// $|F|^{-1} \sum_k \cos((x - y) \cdot w_k)$ of one group.
    fn kernel(&self, x: &[f64], y: &[f64]) -> f64 {
        let delta: Vec<f64> = x.iter().zip(y).map(|(x, y)| x - y).collect();
        let sum: f64 = self.phases(&delta).iter().map(|p| p.cos()).sum();
        self.scale() * self.scale() * sum / self.features as f64
    }
}

/// A dense layer after an optional layer norm (Appendix B), with the next parameters of `rest`.
fn dense(
    x: &[f64],
    outputs: usize,
    has_norm: bool,
    rest: &mut impl Iterator<Item = f64>,
) -> Vec<f64> {
    let mut x = x.to_vec();
    if has_norm {
        let count = x.len() as f64;
        let mean = x.iter().sum::<f64>() / count;
        let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
        let root = (variance + EPSILON).sqrt();
        x.iter_mut().zip(rest.by_ref()).for_each(|(v, gain)| *v = (*v - mean) / root * gain);
        x.iter_mut().zip(rest.by_ref()).for_each(|(v, shift)| *v += shift);
    }
    let weights: Vec<f64> = rest.by_ref().take(x.len() * outputs).collect();
    let mut y: Vec<f64> = rest.take(outputs).collect();
    for (value, row) in x.iter().zip(weights.chunks_exact(outputs)) {
        y.iter_mut().zip(row).for_each(|(y, w)| *y += value * w);
    }
    y
}

/// Largest absolute difference over the largest absolute number.
fn deviation(a: &[f64], b: &[f64]) -> f64 {
    let largest = a.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest
}

/// Inner products of each row of `a` with the same row of `b`.
fn products(a: &[f64], b: &[f64], width: usize) -> Vec<f64> {
    let rows = a.chunks_exact(width).zip(b.chunks_exact(width));
    rows.map(|(a, b)| a.iter().zip(b).map(|(a, b)| a * b).sum()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean change of the inner products of pairs of positions when both move by the same vector, divided by the mean squared norm.
fn shift_change(encoder: &Encoder, [x, y, moved_x, moved_y]: [&[f64]; 4]) -> f64 {
    let encode = |x: &[f64]| encoder.encode(x);
    let (codes, [_, width]) = encode(x);
    let before = products(&codes, &encode(y).0, width);
    let after = products(&encode(moved_x).0, &encode(moved_y).0, width);
    let changes: Vec<f64> = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).collect();
    mean(&changes) / mean(&products(&codes, &codes, width))
}

impl Protocol for PositionEncoding {
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let encoding = &self.encoding;
        let sides = |side: usize| vec![side; self.coordinates];
        let encoder =
            |side| Encoder::new(encoding, sides(side), self.width, context.stream("parameters"));
        let mut rng = context.stream("positions");
        let x: Vec<f64> =
            (0..self.positions * self.coordinates).map(|_| below(&mut rng, self.side)).collect();
        let initial = encoder(self.side);
        let (codes, [rows, columns]) = initial.encode(&x);
        let mut values = vec![
            Value::new("positions", self.positions as f64).unit("count"),
            Value::new("output_rows", rows as f64).unit("count"),
            Value::new("encoding_width", self.width as f64).unit("count"),
            Value::new("output_columns", columns as f64).unit("count"),
            Value::new("params", parameters::count(&initial.module) as f64).unit("count"),
        ];
        for &side in &self.count_sides.0 {
            let params = parameters::count(&encoder(side as usize).module) as f64;
            values.push(Value::new("params_at_side", params).unit("count").at(side));
        }
        if encoding.features == Features::Fourier {
            let mut add = |metric: &str, value: f64| values.push(Value::new(metric, value));
            fourier(context, self, initial, [&x, &codes], &mut rng, &mut add)?;
        }
        emit(0, values.into())
    }
}

/// Records the values of Fourier features.
fn fourier(
    context: &Context<'_>,
    s: &PositionEncoding,
    initial: Encoder,
    [x, codes]: [&[f64]; 2],
    rng: &mut ChaCha8Rng,
    add: &mut dyn FnMut(&str, f64),
) -> Result<()> {
    let encoding = &s.encoding;
    let (frequencies, m) = initial.module.frequencies().context("no frequencies")?;
    let f = encoding.feature_width(s.width);
    let learned = if encoding.learned { f / 2 * m } else { 0 };
    let modulator = Algorithm::of(&initial, encoding, s.width)?.modulator_size();
    add("params_of_algorithm", (learned + modulator) as f64);
    let gamma = encoding.gamma.unwrap_or(1.0);
    let squares: Vec<f64> = frequencies.iter().map(|w| (gamma * w).powi(2)).collect();
    add("frequency_variance", mean(&squares));

    // The same frequencies without a modulator: one row of features per position and group.
    let bare = Encoding { modulator: None, width: Some(f), ..encoding.clone() };
    let sides = vec![s.side; s.coordinates];
    let features = Encoder::new(&bare, sides, f * encoding.groups, context.stream("parameters"));
    let algorithm = Algorithm::of(&features, &bare, f * encoding.groups)?;
    let y: Vec<f64> =
        x.iter().enumerate().map(|(i, v)| if i % m == 0 { v + 1.0 } else { *v }).collect();
    let (of_x, of_y) = (features.encode(x).0, features.encode(&y).0);
    add("self_similarity", mean(&products(&of_x, &of_x, f)));
    let pairs = x.chunks_exact(m).zip(y.chunks_exact(m));
    let errors = pairs.zip(products(&of_x, &of_y, f));
    let errors = errors.map(|((x, y), product)| (product - algorithm.kernel(x, y)).abs());
    add("inner_product_error", errors.fold(0.0, f64::max));

    let shift: Vec<f64> = (0..x.len()).map(|_| 1.0 + below(rng, s.side)).collect();
    let moved = |x: &[f64]| x.iter().zip(&shift).map(|(x, t)| x + t).collect::<Vec<f64>>();
    let places = [x, &y, &moved(x), &moved(&y)];
    add("feature_shift_change", shift_change(&features, places));
    add("encoding_shift_change", shift_change(&initial, places));
    if encoding.groups > 1 {
        let swapped = |all: &[f64], row: usize| -> Vec<f64> {
            let block = row / encoding.groups;
            let rows = all.chunks_exact(row);
            rows.flat_map(|own| own.chunks_exact(block).rev().flatten()).copied().collect()
        };
        let (codes, x) = (swapped(codes, s.width), swapped(x, s.coordinates));
        add("group_swap_error", deviation(&codes, &initial.encode(&x).0));
    }

    let trained = if encoding.learned { frequencies.len() } else { 0 };
    let random = initial.with_random_parameters(trained, rng)?;
    let algorithm = Algorithm::of(&random, encoding, s.width)?;
    let exact: Vec<f64> = x.chunks_exact(s.coordinates).flat_map(|x| algorithm.encode(x)).collect();
    add("algorithm_error", deviation(&exact, &random.encode(x).0));
    Ok(())
}

/// A random integer from 0 to `side` − 1.
fn below(rng: &mut ChaCha8Rng, side: usize) -> f64 {
    (rng.next_u64() % side.max(1) as u64) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches transposed weights, a missing bias, and a norm that is applied after the layer.
    #[test]
    fn a_layer_is_norm_then_product_then_bias() {
        let numbers = [2.0, 1.0, 0.5, 0.0, 1.0, 2.0, 3.0, 4.0, 10.0, 20.0, 7.0];
        let rest = &mut numbers.into_iter();
        // The norm of (1, 3) is (−1, 1); gain and shift make it (−1.5, 1).
        let y = dense(&[1.0, 3.0], 2, true, rest);
        assert!((y[0] - (-1.5 + 3.0 + 10.0)).abs() < 1e-5, "{y:?}");
        assert!((y[1] - (-3.0 + 4.0 + 20.0)).abs() < 1e-5, "{y:?}");
        assert_eq!(rest.next(), Some(7.0));
    }
}
