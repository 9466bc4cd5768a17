//! Converts a signal, its split and an encoding to a task of the engine.

use anyhow::Result;
use faer::Mat;
use posenc_math::embedder::{self, Embedder, EmbedderSpec};
use posenc_nets::{Adam, CpuEngine, Input, Network, Samples, Task};
use rand_chacha::ChaCha8Rng;

use super::complex::Complex;
use super::inputs::{Batch, Features};
use super::points::Split;
use crate::grid_network::{Directions, Encoding, NetworkNd};
use crate::memory::check_memory;
use crate::network_1d::Scale;
use posenc_data::Signal;

/// A signal to fit, and the settings of the fit.
pub struct Problem<'a> {
    pub signal: &'a Signal,
    /// Its training and test positions.
    pub split: &'a Split,
    /// Settings of encoding, network and optimizer.
    pub settings: &'a NetworkNd,
    pub spec: EmbedderSpec,
    /// Random streams by purpose.
    pub stream: &'a dyn Fn(&str) -> ChaCha8Rng,
}

/// A problem in the form that the engine needs.
pub struct Prepared {
    pub task: Task,
    encoder: Encoder,
    sides: Vec<usize>,
}

enum Encoder {
    Simple { features: Features, divisor: f64 },
    Complex(Complex),
}

impl Prepared {
    /// Encodings of all positions of the signal, scaled as in training.
    pub fn everywhere(&self) -> Result<Input> {
        match &self.encoder {
            Encoder::Complex(complex) => complex.everywhere(),
            Encoder::Simple { features, divisor } => {
                let points: usize = self.sides.iter().product();
                let all: Vec<u32> = (0..points as u32).collect();
                features.simple(&all, &[(points, *divisor)])
            }
        }
    }
}

impl Problem<'_> {
    /// A CPU engine with the products of the settings.
    pub fn engine(&self, threads: usize) -> CpuEngine {
        CpuEngine::new(threads).with_products(self.settings.products)
    }

    /// The embedders: one, or with joint directions one for each axis.
    fn embedders(&self) -> Result<Vec<Box<dyn Embedder>>> {
        let build = |purpose: &str| -> Result<Box<dyn Embedder>> {
            Ok(embedder::build(&self.spec, &mut (self.stream)(purpose))?)
        };
        match self.settings.directions {
            Directions::Joint => (0..self.signal.sides.len())
                .map(|axis| build(&format!("embedder axis {axis}")))
                .collect(),
            _ => Ok(vec![build("embedder")?]),
        }
    }

    /// Embeds the positions and samples the initial weights from the stream `weights`.
    pub fn prepare(&self, weights: &str) -> Result<Prepared> {
        let Problem { settings, signal, split, .. } = self;
        let embedders = self.embedders()?;
        let (encoder, train, test, network) = match settings.encoding {
            Encoding::Simple => {
                let features = Features::new(&signal.sides, settings.directions, embedders)?;
                let divisor = match settings.scale {
                    Scale::None => 1.0,
                    _ => features.largest_norm(&split.train)?,
                };
                let whole = |points: &[u32]| -> Vec<Batch> { vec![(points.len(), divisor)] };
                let batches = match settings.scale {
                    Scale::Batch => test_batches(split, &features)?,
                    _ => whole(&split.test),
                };
                let network = Network::new(
                    features.dimension(),
                    settings.depth,
                    settings.width,
                    signal.channels,
                )?;
                let train = features.simple(&split.train, &whole(&split.train))?;
                let test = match split.test.len() {
                    0 => None,
                    _ => Some(features.simple(&split.test, &batches)?),
                };
                (Encoder::Simple { features, divisor }, train, test, network)
            }
            Encoding::Complex => {
                let complex = Complex::new(&*embedders[0], &self.spec, &signal.sides, settings)?;
                let (train, test) = complex.inputs(split)?;
                let hidden = (settings.depth > 0).then_some(settings.width);
                let network = Network::kronecker(train.dimension(), hidden, signal.channels)?;
                (Encoder::Complex(complex), train, test, network)
            }
        };
        let network = network.with_output_activation(settings.output);
        // Weights, two moments and a gradient in single precision. The check precedes the sampling of weights, the first large
        // allocation.
        let weight_count = |(i, o): (usize, usize)| (i as f64 + 1.0) * o as f64;
        let count: f64 = network.layers().into_iter().map(weight_count).sum();
        check_memory(&format!("a network of {count:.0} parameters"), 2.0 * count)?;
        let standard = Adam::new(settings.learning_rate);
        let task = Task {
            optimizer: Adam {
                weight_decay: settings.weight_decay,
                beta2: settings.beta2.unwrap_or(standard.beta2),
                epsilon: settings.epsilon.unwrap_or(standard.epsilon),
                ..standard
            },
            initial: vec![network.initialize_from(settings.start, &mut (self.stream)(weights))],
            network,
            train: self.samples(train, &split.train),
            test: test.map(|test| self.samples(test, &split.test)),
        };
        Ok(Prepared { task, encoder, sides: signal.sides.clone() })
    }

    fn samples(&self, input: Input, points: &[u32]) -> Samples {
        let targets = Mat::from_fn(points.len(), self.signal.channels, |i, channel| {
            self.signal.at(points[i] as usize, channel) as f32
        });
        Samples { input, targets }
    }
}

/// The batches of the test positions, each divided by its own largest norm.
fn test_batches(split: &Split, features: &Features) -> Result<Vec<Batch>> {
    let mut rest = &split.test[..];
    let mut batches = Vec::with_capacity(split.batches.len());
    for &count in &split.batches {
        let (batch, others) = rest.split_at(count);
        batches.push((count, features.largest_norm(batch)?));
        rest = others;
    }
    Ok(batches)
}

/// Outputs of an engine, points × channels, with the channels fastest.
pub fn interleaved(outputs: &Mat<f32>) -> Vec<f64> {
    let (points, channels) = outputs.shape();
    (0..points * channels).map(|i| f64::from(outputs[(i / channels, i % channels)])).collect()
}
