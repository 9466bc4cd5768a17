//! Measures the test PSNR of all embedders and the accuracy of its predictions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use faer::Mat;
use posenc_experiments::record::Value;
use posenc_harness::checkpoint::Saved;
use posenc_harness::protocol::{Context, Emit, Placement, Protocol, UnitResult};
use posenc_math::closed_form::{Ridge, RidgeAxis, RidgeFit};
use posenc_math::embedder::{
    self, Embedder, EmbedderSpec, line, matrix, scale_by_largest_row_norm,
};
use posenc_math::quality::psnr_of;
use posenc_math::random::stream;
use posenc_math::statistics::{nearest_mean, r_squared};
use posenc_nets::train::{Schedule, fit};
use posenc_nets::{Adam, Network, Samples, Task};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::kernel::ModelKernel;
use super::predictors::{Properties, Ranked, expected_psnr};
use super::signals::{Signal, signals};
use super::{Predictor, PsnrPrediction, Training};
use crate::network_1d::inputs::Inputs;
use crate::network_1d::{Scale, TestSamples, signals::split};

/// Relative difference up to which predictors count as equal.
const EQUAL: f64 = 0.05;
/// Test PSNRs of a pair are apart if they differ by at least this number of dB.
const APART: f64 = 3.0;
/// Maximum number of pairs that are recorded individually.
const LISTED: usize = 10;
/// Share of the errors inside an interval.
const LEVEL: f64 = 0.9;

/// One embedder: its properties, and its test PSNR on each signal.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    properties: Properties,
    psnr: Vec<f64>,
    /// Test PSNR that the formula of the predictor `interpolation` yields for the outputs of a trained model.
    of_outputs: Vec<f64>,
    /// Difference between the test PSNRs of two halves of the test positions: every second one, and the others.
    between_halves: Vec<f64>,
}

struct Study<'a> {
    context: &'a Context<'a>,
    settings: &'a PsnrPrediction,
    /// Known signals, followed by held-out signals.
    signals: Vec<Signal>,
    design: Design,
    specs: Vec<EmbedderSpec>,
}

/// Two embedders with equal predictors.
struct Pair {
    first: usize,
    second: usize,
    /// Difference of test PSNR in dB for each held-out signal.
    gaps: Vec<f64>,
}

/// Signals and embedders from which predictions are made.
struct Design {
    /// Number of known signals, which come first.
    known: usize,
    /// Family of each embedder.
    family: Vec<usize>,
    /// Number of embedders whose mean is a prediction.
    neighbors: usize,
}

impl Design {
    /// Predicts the test PSNR of all embedders on one held-out signal. `psnr` is indexed by signal and embedder.
    fn predict(
        &self,
        ranked: &Ranked,
        psnr: &[Vec<f64>],
        unseen: Unseen,
        signal: usize,
    ) -> Vec<f64> {
        let n = self.family.len();
        let known = if unseen.has_signal() { signal..signal + 1 } else { 0..self.known };
        let k = self.neighbors * known.len();
        let one = |embedder: usize| {
            let is_seen = |other: &usize| match unseen {
                Unseen::Embedder => *other != embedder,
                Unseen::Family | Unseen::Both => self.family[*other] != self.family[embedder],
                Unseen::Signal => true,
            };
            let points = known.clone().flat_map(|s| {
                (0..n).filter(is_seen).map(move |other| (ranked.of(other, s), psnr[s][other]))
            });
            nearest_mean(ranked.of(embedder, signal), points, k).unwrap_or(f64::NAN)
        };
        (0..n).map(one).collect()
    }
}

/// The part of the data that a prediction does not use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unseen {
    Embedder,
    Family,
    Signal,
    Both,
}

impl Unseen {
    const ALL: [(Unseen, &'static str); 4] = [
        (Unseen::Embedder, "embedder"),
        (Unseen::Family, "family"),
        (Unseen::Signal, "signal"),
        (Unseen::Both, "both"),
    ];

    /// Whether predictions use other embedders on the same signal.
    fn has_signal(self) -> bool {
        matches!(self, Unseen::Embedder | Unseen::Family)
    }
}

impl<'a> Study<'a> {
    fn new(context: &'a Context<'a>, settings: &'a PsnrPrediction) -> Result<Self> {
        let data = context.job.group.data.as_ref();
        let draw = |purpose: &str| Self::stream(context, purpose);
        let set = data.map(|data| data.set.as_str());
        let mut all = signals(&draw, context, set, "known", settings.samples)?;
        let known = all.len();
        let set = data.and_then(|data| data.held_out.as_deref());
        all.extend(signals(&draw, context, set, "held out", settings.samples)?);
        let families = settings.families.iter().enumerate();
        let family = families.flat_map(|(f, own)| own.embedders().map(move |_| f)).collect();
        let specs = settings.families.iter().flat_map(|f| f.embedders()).collect();
        let design = Design { known, family, neighbors: settings.neighbors };
        Ok(Study { context, settings, signals: all, design, specs })
    }

    fn held_out(&self) -> std::ops::Range<usize> {
        self.design.known..self.signals.len()
    }

    /// A random stream that all variants of the group share, since they predict the same values.
    fn stream(context: &Context<'_>, purpose: &str) -> ChaCha8Rng {
        let job = context.job;
        let label =
            format!("{}/{} seed {} {purpose}", job.experiment.id(), job.group.id, job.seed_index);
        stream(context.seed, &label)
    }

    /// Measures all embedders once per process for all variants.
    fn measure_once(&self) -> Result<Arc<Vec<Measured>>> {
        type Once = Arc<Mutex<Option<Arc<Vec<Measured>>>>>;
        static DONE: Mutex<BTreeMap<String, Once>> = Mutex::new(BTreeMap::new());
        // Predictors and neighbors change no measurement.
        let own = PsnrPrediction { predictors: Vec::new(), neighbors: 0, ..self.settings.clone() };
        let data = self.context.units.first().map(|unit| &unit.parts.data);
        let seed = Self::stream(self.context, "").get_seed();
        // A variant that runs at the same time waits for the result. An interrupted measurement stores nothing.
        let once = DONE
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(format!("{seed:?} {data:?} {own:?}"))
            .or_default()
            .clone();
        let mut once = once.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(measured) = &*once {
            return Ok(measured.clone());
        }
        Ok(once.insert(Arc::new(self.measure()?)).clone())
    }

    /// Fits all signals with all embedders. Continues after the embedders of an interrupted run.
    fn measure(&self) -> Result<Vec<Measured>> {
        let checkpoint = self.context.checkpoint;
        let mut measured: Vec<Measured> = match checkpoint.read() {
            Saved::Body(body) => serde_json::from_slice(&body).unwrap_or_default(),
            Saved::Nothing | Saved::Damaged(_) => Vec::new(),
        };
        for spec in &self.specs[measured.len().min(self.specs.len())..] {
            let embedder = embedder::build(spec, &mut Self::stream(self.context, "embedder"))?;
            measured.push(self.measure_one(&*embedder)?);
            checkpoint.reached(measured.len() as f64 / self.specs.len() as f64);
            if checkpoint.is_due() {
                // A failed write, such as on a full disk, is not an error.
                let _ = checkpoint.write(&[&serde_json::to_vec(&measured)?]);
            }
        }
        Ok(measured)
    }

    fn measure_one(&self, embedder: &dyn Embedder) -> Result<Measured> {
        let n = self.settings.samples;
        let positions = line(2 * n);
        let every_second: Vec<f64> = positions.iter().step_by(2).copied().collect();
        let (features, all) = (matrix(embedder, &every_second), matrix(embedder, &positions));
        let axis = RidgeAxis::new(features.as_ref(), all.as_ref())?;
        let samples = |signal: &Signal| Mat::from_fn(n, 1, |i, _| signal.values[2 * i]);
        let training: Vec<Mat<f64>> = self.signals.iter().map(samples).collect();
        let trained = match self.settings.training {
            None => None,
            // The features of trained models are scaled to a largest row norm of 1.
            Some(Training { depth, .. }) => {
                let mut features = features;
                let norm = scale_by_largest_row_norm(&mut features);
                let scaled = Mat::from_fn(2 * n, all.ncols(), |i, j| all[(i, j)] / norm);
                Some(ModelKernel::new(&scaled, depth)?)
            }
        };
        let ridge = self.settings.ridge;
        let properties = Properties::new(embedder, &axis, trained.as_ref(), &training, ridge)?;
        let predicted = match &self.settings.training {
            Some(training) => self.trained(embedder, training)?,
            None => RidgeFit::line(&axis, &training)?.predict(Ridge::Axes(ridge)),
        };
        let psnrs = |first: usize, step: usize| -> Vec<f64> {
            let of = |(signal, predicted): (&Signal, &Mat<f64>)| {
                test_psnr(signal, (first..2 * n).step_by(step), |i| predicted[(i, 0)])
            };
            self.signals.iter().zip(&predicted).map(of).collect()
        };
        let psnr = psnrs(1, 2);
        let between_halves = psnrs(1, 4).iter().zip(psnrs(3, 4)).map(|(a, b)| a - b).collect();
        let of_outputs = match trained {
            Some(_) => predicted.iter().zip(&training).map(|(p, t)| expected_psnr(p, t)).collect(),
            None => Vec::new(),
        };
        Ok(Measured { properties, psnr, of_outputs, between_halves })
    }

    /// Outputs of the trained model for each signal, 2N × 1.
    fn trained(&self, embedder: &dyn Embedder, training: &Training) -> Result<Vec<Mat<f64>>> {
        let n = 2 * self.settings.samples;
        let split = split(n, 1, TestSamples::Midpoints);
        let inputs = Inputs::new(embedder, n, &split, Scale::Train)?;
        let network = Network::new(embedder.dimension(), training.depth, training.width, 1)?;
        let targets = |places: &[usize]| {
            Mat::from_fn(places.len(), self.signals.len(), |i, s| {
                self.signals[s].values[places[i]] as f32
            })
        };
        let initial =
            |s: usize| network.initialize(&mut Self::stream(self.context, &format!("weights {s}")));
        let task = Task {
            optimizer: Adam::new(training.learning_rate),
            train: Samples { input: inputs.train.clone(), targets: targets(&split.train) },
            test: None,
            initial: (0..self.signals.len()).map(initial).collect(),
            network,
        };
        let mut session = self.context.engine().start(task)?;
        let schedule =
            Schedule { epochs: training.epochs, curve_every: 0, layers: false, mean_of_last: 1 };
        fit(&mut *session, &schedule, None, &mut |_, _| self.context.checkpoint.count_step())?;
        let predicted = session.predict(&inputs.at(embedder, &line(n))?)?;
        let column = |s: usize| Mat::from_fn(n, 1, |i, _| f64::from(predicted[(i, s)]));
        Ok((0..self.signals.len()).map(column).collect())
    }

    /// Test PSNR by signal and embedder. It is relative to the mean of the signal if the signal is unseen.
    fn targets(measured: &[Measured], signals: usize, unseen: Unseen) -> Vec<Vec<f64>> {
        let one = |s: usize| {
            let mut psnr: Vec<f64> = measured.iter().map(|m| m.psnr[s]).collect();
            if !unseen.has_signal() {
                let mean = psnr.iter().sum::<f64>() / psnr.len() as f64;
                psnr.iter_mut().for_each(|value| *value -= mean);
            }
            psnr
        };
        (0..signals).map(one).collect()
    }

    fn values(&self, measured: &[Measured]) -> Vec<Value> {
        let properties: Vec<Properties> = measured.iter().map(|m| m.properties.clone()).collect();
        let ranked = Ranked::new(&self.settings.predictors, &properties, self.signals.len());
        let mut values = Vec::new();
        for (unseen, suffix) in Unseen::ALL {
            let targets = Self::targets(measured, self.signals.len(), unseen);
            let predicted: Vec<Vec<f64>> = self
                .held_out()
                .map(|signal| self.design.predict(&ranked, &targets, unseen, signal))
                .collect();
            let measured = &targets[self.design.known..];
            self.quality(&predicted, measured, (unseen, suffix), &mut values);
            if unseen == Unseen::Family {
                self.means(&predicted, measured, &mut values);
            }
        }
        self.overview(measured, &mut values);
        values
    }

    /// Records R², errors and intervals of each held-out signal.
    fn quality(
        &self,
        predicted: &[Vec<f64>],
        measured: &[Vec<f64>],
        (unseen, suffix): (Unseen, &str),
        out: &mut Vec<Value>,
    ) {
        let errors: Vec<Vec<f64>> = predicted
            .iter()
            .zip(measured)
            .map(|(p, m)| p.iter().zip(m).map(|(p, m)| (p - m).abs()).collect())
            .collect();
        for (s, signal) in self.signals[self.design.known..].iter().enumerate() {
            // The interval is estimated from the errors on the other signals.
            let others = errors.iter().enumerate().filter(|(other, _)| *other != s);
            let interval = quantile(others.flat_map(|(_, e)| e.iter().copied()).collect(), LEVEL);
            let inside = errors[s].iter().filter(|&&error| error <= interval).count();
            let mut add = |metric: &str, value: f64, unit: &str| {
                let metric = format!("{metric}_{suffix}");
                out.push(Value::new(metric, value).unit(unit).signal(&signal.name));
            };
            // R² is undefined if all embedders have equal PSNR.
            if unseen.has_signal()
                && let Ok(r2) = r_squared(&predicted[s], &measured[s])
            {
                add("r2", r2, "");
            }
            add("error", quantile(errors[s].clone(), 0.5), "dB");
            add("coverage", inside as f64 / errors[s].len() as f64, "");
            add("interval", interval, "dB");
        }
    }

    /// Records the mean of each embedder over the held-out signals, with its family as signal.
    fn means(&self, predicted: &[Vec<f64>], measured: &[Vec<f64>], out: &mut Vec<Value>) {
        let mean = |all: &[Vec<f64>], e: usize| {
            all.iter().map(|signal| signal[e]).sum::<f64>() / all.len() as f64
        };
        for (e, &family) in self.design.family.iter().enumerate() {
            let value = Value::new("measured_psnr", mean(measured, e)).unit("dB");
            out.push(value.at(mean(predicted, e)).signal(&self.settings.families[family].name));
        }
    }

    /// Records numbers of embedders and signals, the best PSNR, and pairs with equal predictors.
    fn overview(&self, measured: &[Measured], out: &mut Vec<Value>) {
        out.push(Value::new("embedders", measured.len() as f64));
        out.push(Value::new("signals", self.held_out().len() as f64));
        for (s, signal) in self.held_out().zip(&self.signals[self.design.known..]) {
            let best = measured.iter().map(|m| m.psnr[s]).fold(f64::NEG_INFINITY, f64::max);
            out.push(Value::new("best_psnr", best).unit("dB").signal(&signal.name));
        }
        if self.settings.predictors == [Predictor::Interpolation] {
            for (s, signal) in self.held_out().zip(&self.signals[self.design.known..]) {
                let mut add = |metric: &str, predicted: &dyn Fn(&Measured) -> f64| {
                    let error = |m: &Measured| (predicted(m) - m.psnr[s]).abs();
                    let error = quantile(measured.iter().map(error).collect(), 0.5);
                    out.push(Value::new(metric, error).unit("dB").signal(&signal.name));
                };
                add("error_estimate", &|m| Predictor::Interpolation.values(&m.properties, s)[0]);
                if self.settings.training.is_some() {
                    add("error_output", &|m| m.of_outputs[s]);
                    // As an error of the PSNR at one half of the test positions that is predicted from that at the other half.
                    add("error_half", &|m| m.psnr[s] + m.between_halves[s]);
                }
            }
        }
        if self.settings.predictors.iter().any(|predictor| predictor.reads_samples()) {
            return;
        }
        let mut pairs = self.pairs(measured);
        out.push(Value::new("pairs", pairs.len() as f64));
        for (s, signal) in self.signals[self.design.known..].iter().enumerate() {
            let apart = pairs.iter().filter(|pair| pair.gaps[s] >= APART).count();
            out.push(Value::new("pairs_apart", apart as f64).signal(&signal.name));
        }
        let gap = |pair: &Pair| quantile(pair.gaps.clone(), 0.5);
        pairs.sort_by(|a, b| gap(b).total_cmp(&gap(a)));
        // One pair for each two families, since pairs of other dimensions and similar widths are redundant.
        let mut listed = BTreeSet::new();
        let family = |e: usize| self.design.family[e];
        pairs.retain(|pair| listed.insert((family(pair.first), family(pair.second))));
        for pair in pairs.iter().take(LISTED) {
            let name = format!("{} and {}", self.name(pair.first), self.name(pair.second));
            let mut add = |metric: &str, value: f64| {
                out.push(Value::new(metric, value).signal(&name));
            };
            add("pair_gap", gap(pair));
            for (place, e) in [("first", pair.first), ("second", pair.second)] {
                let one = &measured[e];
                let psnr = self.held_out().map(|s| one.psnr[s]).sum::<f64>();
                add(&format!("pair_psnr_{place}"), psnr / self.held_out().len() as f64);
                add(&format!("pair_rank_{place}"), one.properties.stable_rank);
                add(&format!("pair_distance_{place}"), one.properties.preserved);
            }
        }
    }

    /// Pairs of embedders of different families with equal predictors.
    fn pairs(&self, measured: &[Measured]) -> Vec<Pair> {
        let numbers = |m: &Measured| -> Vec<f64> {
            self.settings.predictors.iter().flat_map(|p| p.values(&m.properties, 0)).collect()
        };
        let is_equal = |a: &[f64], b: &[f64]| {
            a.iter().zip(b).all(|(a, b)| (a - b).abs() <= EQUAL * a.abs().min(b.abs()))
        };
        let all: Vec<Vec<f64>> = measured.iter().map(numbers).collect();
        let family = &self.design.family;
        let mut pairs = Vec::new();
        for first in 0..all.len() {
            for second in first + 1..all.len() {
                if family[first] != family[second] && is_equal(&all[first], &all[second]) {
                    let (a, b) = (&measured[first].psnr, &measured[second].psnr);
                    let gaps = self.held_out().map(|s| (a[s] - b[s]).abs()).collect();
                    pairs.push(Pair { first, second, gaps });
                }
            }
        }
        pairs
    }

    /// Name of an embedder: family, dimension and swept parameter.
    fn name(&self, embedder: usize) -> String {
        let family = &self.settings.families[self.design.family[embedder]];
        let spec = &self.specs[embedder];
        let number = |name: &str| spec.number_of(name).unwrap_or(f64::NAN);
        let (d, value) = (number("dimension"), number(&family.parameter));
        format!("{} (d = {d}, {} = {value:.3})", family.name, family.parameter)
    }
}

/// Test PSNR at some indices, at least that of the mean of the training samples.
fn test_psnr(
    signal: &Signal,
    indices: impl Iterator<Item = usize> + Clone,
    predicted: impl Fn(usize) -> f64,
) -> f64 {
    let training = signal.values.iter().step_by(2);
    let mean = training.clone().sum::<f64>() / training.count() as f64;
    let error = |at: &dyn Fn(usize) -> f64| {
        let squares = indices.clone().map(|i| (signal.values[i] - at(i)).powi(2));
        squares.sum::<f64>() / indices.clone().count() as f64
    };
    let own = psnr_of(error(&predicted));
    let constant = psnr_of(error(&|_| mean));
    // NaN, from a training that diverged, is replaced, too.
    if own > constant { own } else { constant }
}

/// The smallest value that is at least as large as this share of all values; NaN without values.
fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (share * values.len() as f64).ceil() as usize;
    values.get(place.clamp(1, values.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
}

impl Protocol for PsnrPrediction {
    fn placement(&self) -> Placement {
        if self.training.is_some() { Placement::Device } else { Placement::Cpu }
    }

    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let study = Study::new(context, self)?;
        let measured = study.measure_once()?;
        let values = study.values(&measured);
        emit(0, UnitResult { earlier: context.checkpoint.earlier(), ..UnitResult::from(values) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a family that predicts itself, and a known signal that is not used. In the example, PSNR is a function of the predictor in
    /// one family, and higher by 10 dB in the other.
    #[test]
    fn a_family_is_predicted_from_the_others() {
        let design = Design { known: 1, family: vec![0, 0, 0, 1, 1, 1], neighbors: 1 };
        let ranked = Ranked::of_numbers(&[0.1, 0.5, 0.9, 0.1, 0.5, 0.9]);
        let psnr =
            vec![vec![20.0, 25.0, 30.0, 30.0, 35.0, 40.0], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]];
        let predict = |unseen| design.predict(&ranked, &psnr, unseen, 1);
        assert_eq!(predict(Unseen::Embedder), [3.0, 4.0, 5.0, 0.0, 1.0, 2.0]);
        assert_eq!(predict(Unseen::Family), [3.0, 4.0, 5.0, 0.0, 1.0, 2.0]);
        assert_eq!(predict(Unseen::Both), [30.0, 35.0, 40.0, 20.0, 25.0, 30.0]);
        // Both families are equally near.
        assert_eq!(predict(Unseen::Signal), [25.0, 30.0, 35.0, 25.0, 30.0, 35.0]);
    }

    /// Catches a test PSNR of the wrong samples, and one below that of a constant.
    #[test]
    fn test_psnr_is_measured_between_the_samples() {
        let signal = Signal { name: String::new(), values: vec![0.0, 0.5, 0.0, 0.5] };
        let at_odd = |end: usize| (1..end).step_by(2);
        let psnr = |at: f64| test_psnr(&signal, at_odd(4), |i| if i % 2 == 0 { 100.0 } else { at });
        assert!((psnr(0.6) - 20.0).abs() < 1e-9);
        let edge = Signal { name: String::new(), values: vec![0.0, 1.0, 0.0, 1.0] };
        assert_eq!(test_psnr(&edge, at_odd(4), |_| -50.0), 0.0);
        assert_eq!(test_psnr(&edge, at_odd(4), |_| f64::NAN), 0.0);
        // One half is fitted exactly except for 0.1, the other not at all.
        let half = |first: usize| {
            let fitted = |i: usize| if i == 1 { 0.6 } else { 0.2 };
            test_psnr(&signal, (first..4).step_by(4), fitted)
        };
        assert!(half(1) > 19.0 && half(3) < 11.0);
    }

    /// Catches a rank that is off by one.
    #[test]
    fn a_quantile_covers_its_share() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(
            [0.0, 0.5, 0.9, 1.0].map(|q| quantile(values.clone(), q)),
            [1.0, 5.0, 9.0, 10.0]
        );
        assert!(quantile(Vec::new(), 0.5).is_nan());
    }
}
