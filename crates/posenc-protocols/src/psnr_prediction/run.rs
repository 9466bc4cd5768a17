//! Measures the test PSNR of all embedders and the accuracy of its predictions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use faer::Mat;
use posenc_experiments::record::Value;
use posenc_harness::checkpoint::Saved;
use posenc_harness::protocol::{Context, Emit, Protocol, UnitResult};
use posenc_math::closed_form::{Ridge, RidgeAxis, RidgeFit};
use posenc_math::embedder::{self, Embedder, EmbedderSpec, line, matrix};
use posenc_math::quality::psnr_of;
use posenc_math::random::stream;
use posenc_math::statistics::{nearest_mean, r_squared};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::predictors::{Properties, Ranked};
use super::signals::{Signal, signals};
use super::{Predictor, PsnrPrediction};

/// Relative difference up to which predictors count as equal.
const EQUAL: f64 = 0.05;
/// Test PSNRs of a pair are apart if they differ by at least this number of dB.
const APART: f64 = 3.0;
/// Maximum number of pairs that are recorded individually.
const LISTED: usize = 10;

/// One embedder: its properties, and its test PSNR on each signal.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    properties: Properties,
    psnr: Vec<f64>,
}

struct Study<'a> {
    context: &'a Context<'a>,
    settings: &'a PsnrPrediction,
    signals: Vec<Signal>,
    family: Vec<usize>,
    specs: Vec<EmbedderSpec>,
}

/// Two embedders with equal predictors.
struct Pair {
    first: usize,
    second: usize,
    /// Difference of test PSNR in dB for each signal.
    gaps: Vec<f64>,
}

/// Predicts the test PSNR of all embedders on one signal, each from the `neighbors` nearest embedders of the other families.
fn predict(
    ranked: &Ranked,
    family: &[usize],
    psnr: &[f64],
    signal: usize,
    neighbors: usize,
) -> Vec<f64> {
    let one = |embedder: usize| {
        let others = (0..family.len()).filter(|&other| family[other] != family[embedder]);
        let points = others.map(|other| (ranked.of(other, signal), psnr[other]));
        nearest_mean(ranked.of(embedder, signal), points, neighbors).unwrap_or(f64::NAN)
    };
    (0..family.len()).map(one).collect()
}

impl<'a> Study<'a> {
    fn new(context: &'a Context<'a>, settings: &'a PsnrPrediction) -> Result<Self> {
        let data = context.job.group.data.as_ref();
        let draw = |purpose: &str| Self::stream(context, purpose);
        let set = data.and_then(|data| data.held_out.as_deref());
        let signals = signals(&draw, context, set, settings.samples)?;
        let families = settings.families.iter().enumerate();
        let family = families.flat_map(|(f, own)| own.embedders().map(move |_| f)).collect();
        let specs = settings.families.iter().flat_map(|f| f.embedders()).collect();
        Ok(Study { context, settings, signals, family, specs })
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
            Saved::State(measured, _) => measured,
            Saved::Nothing | Saved::Damaged(_) => Vec::new(),
        };
        for spec in &self.specs[measured.len().min(self.specs.len())..] {
            let embedder = embedder::build(spec, &mut Self::stream(self.context, "embedder"))?;
            measured.push(self.measure_one(&*embedder)?);
            checkpoint.reached(measured.len() as f64 / self.specs.len() as f64);
            if checkpoint.is_due() {
                // A failed write, such as on a full disk, is not an error.
                let _ = checkpoint.write(&measured, &[]);
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
        let ridge = self.settings.ridge;
        let predicted = RidgeFit::line(&axis, &training)?.predict(Ridge::Axes(ridge));
        let properties = Properties::new(embedder, &axis, &training, &predicted, ridge)?;
        let psnr =
            |(signal, predicted): (&Signal, &Mat<f64>)| test_psnr(signal, |i| predicted[(i, 0)]);
        let psnr = self.signals.iter().zip(&predicted).map(psnr).collect();
        Ok(Measured { properties, psnr })
    }

    fn values(&self, measured: &[Measured]) -> Vec<Value> {
        let PsnrPrediction { predictors, neighbors, families, .. } = self.settings;
        let properties: Vec<Properties> = measured.iter().map(|m| m.properties.clone()).collect();
        let ranked = Ranked::new(predictors, &properties, self.signals.len());
        let (mut values, mut estimates) = (Vec::new(), Vec::new());
        // Predicted and measured test PSNR by embedder, summed over signals.
        let mut sums = vec![[0.0; 2]; measured.len()];
        for (s, signal) in self.signals.iter().enumerate() {
            let psnr: Vec<f64> = measured.iter().map(|m| m.psnr[s]).collect();
            let predicted = predict(&ranked, &self.family, &psnr, s, *neighbors);
            for ((sum, psnr), predicted) in sums.iter_mut().zip(&psnr).zip(&predicted) {
                *sum = [sum[0] + predicted, sum[1] + psnr];
            }
            // R² is undefined if all embedders have equal PSNR.
            if let Ok(r2) = r_squared(&predicted, &psnr) {
                values.push(Value::new("r2_family", r2).signal(&signal.name));
            }
            let error = |metric: &str, of: &[usize], predicted: &dyn Fn(usize) -> f64| {
                let errors = of.iter().map(|&e| (predicted(e) - psnr[e]).abs());
                let median = quantile(errors.collect(), 0.5);
                Value::new(metric, median).unit("dB").signal(&signal.name)
            };
            let every: Vec<usize> = (0..psnr.len()).collect();
            values.push(error("error_family", &every, &|e| predicted[e]));
            if *predictors == [Predictor::Interpolation] {
                // A fit that counts as the mean is easy to predict.
                let constant = constant_psnr(signal);
                let (fits, rest): (Vec<usize>, Vec<usize>) =
                    every.into_iter().partition(|&e| psnr[e] > constant);
                let share = rest.len() as f64 / psnr.len() as f64;
                estimates.push(Value::new("constant_fits", share).signal(&signal.name));
                if fits.is_empty() {
                    continue;
                }
                let estimate = |e: usize| Predictor::Interpolation.values(&properties[e], s)[0];
                estimates.push(error("error_estimate", &fits, &estimate));
            }
        }
        let count = self.signals.len() as f64;
        for ([predicted, psnr], &family) in sums.into_iter().zip(&self.family) {
            let value = Value::new("measured_psnr", psnr / count).unit("dB").at(predicted / count);
            values.push(value.signal(&families[family].name));
        }
        values.extend(estimates);
        if !predictors.iter().any(|predictor| predictor.reads_samples()) {
            self.record_pairs(measured, &mut values);
        }
        values
    }

    /// Records how many pairs have equal predictors, and the pairs that are farthest apart.
    fn record_pairs(&self, measured: &[Measured], out: &mut Vec<Value>) {
        let mut pairs = self.pairs(measured);
        out.push(Value::new("pairs", pairs.len() as f64));
        for (s, signal) in self.signals.iter().enumerate() {
            let apart = pairs.iter().filter(|pair| pair.gaps[s] >= APART).count();
            out.push(Value::new("pairs_apart", apart as f64).signal(&signal.name));
        }
        let gap = |pair: &Pair| quantile(pair.gaps.clone(), 0.5);
        pairs.sort_by(|a, b| gap(b).total_cmp(&gap(a)));
        // One pair for each two families, since pairs of other dimensions and similar widths are redundant.
        let mut listed = BTreeSet::new();
        let family = |e: usize| self.family[e];
        pairs.retain(|pair| listed.insert((family(pair.first), family(pair.second))));
        for pair in pairs.iter().take(LISTED) {
            let name = format!("{} and {}", self.name(pair.first), self.name(pair.second));
            let mut add = |metric: &str, value: f64| {
                out.push(Value::new(metric, value).signal(&name));
            };
            add("pair_gap", gap(pair));
            for (place, e) in [("first", pair.first), ("second", pair.second)] {
                let one = &measured[e];
                let psnr = one.psnr.iter().sum::<f64>() / one.psnr.len() as f64;
                add(&format!("pair_psnr_{place}"), psnr);
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
        let all: Vec<Vec<f64>> = measured.iter().map(numbers).collect();
        let reads_distance = self.settings.predictors.contains(&Predictor::PreservedDistance);
        let longest = self.settings.samples as f64 / 2.0;
        let is_censored = |e: usize| reads_distance && measured[e].properties.preserved >= longest;
        let pair = |(first, second): (usize, usize)| {
            let (a, b) = (&measured[first].psnr, &measured[second].psnr);
            Pair { first, second, gaps: a.iter().zip(b).map(|(a, b)| (a - b).abs()).collect() }
        };
        equal_pairs(&all, &self.family, is_censored).into_iter().map(pair).collect()
    }

    /// Name of an embedder: family, dimension and swept parameter.
    fn name(&self, embedder: usize) -> String {
        let family = &self.settings.families[self.family[embedder]];
        let spec = &self.specs[embedder];
        let number = |name: &str| spec.number_of(name).unwrap_or(f64::NAN);
        let (d, value) = (number("dimension"), number(&family.parameter));
        format!("{} (d = {d}, {} = {value:.3})", family.name, family.parameter)
    }
}

/// Pairs of different families whose numbers are equal within [`EQUAL`]. Preserved distances end at half the line, so two censored ones,
/// which reach this end, need not be equal and make no pair.
fn equal_pairs(
    numbers: &[Vec<f64>],
    family: &[usize],
    is_censored: impl Fn(usize) -> bool,
) -> Vec<(usize, usize)> {
    let is_equal = |a: &[f64], b: &[f64]| {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() <= EQUAL * a.abs().min(b.abs()))
    };
    let all = (0..numbers.len()).flat_map(|a| (a + 1..numbers.len()).map(move |b| (a, b)));
    let pairs = all.filter(|&(a, b)| {
        let is_known = !(is_censored(a) && is_censored(b));
        family[a] != family[b] && is_known && is_equal(&numbers[a], &numbers[b])
    });
    pairs.collect()
}

/// Test PSNR, at least that of the mean of the training samples.
fn test_psnr(signal: &Signal, predicted: impl Fn(usize) -> f64) -> f64 {
    let own = psnr_between(signal, predicted);
    let constant = constant_psnr(signal);
    // NaN is replaced, too.
    if own > constant { own } else { constant }
}

/// Test PSNR of the mean of the training samples.
fn constant_psnr(signal: &Signal) -> f64 {
    let training = signal.values.iter().step_by(2);
    let mean = training.clone().sum::<f64>() / training.count() as f64;
    psnr_between(signal, |_| mean)
}

/// PSNR at the positions between the training samples.
fn psnr_between(signal: &Signal, predicted: impl Fn(usize) -> f64) -> f64 {
    let indices = (1..signal.values.len()).step_by(2);
    let squares = indices.clone().map(|i| (signal.values[i] - predicted(i)).powi(2));
    psnr_of(squares.sum::<f64>() / indices.count() as f64)
}

/// The smallest value that is at least as large as this share of all values; NaN without values.
fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (share * values.len() as f64).ceil() as usize;
    values.get(place.clamp(1, values.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
}

impl Protocol for PsnrPrediction {
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

    /// Catches a family that predicts itself. In the example, PSNR is a function of the predictor in one family, and higher by 10 dB in the
    /// other.
    #[test]
    fn a_family_is_predicted_from_the_others() {
        let ranked = Ranked::of_numbers(&[0.1, 0.5, 0.9, 0.1, 0.5, 0.9]);
        let psnr = [20.0, 25.0, 30.0, 30.0, 35.0, 40.0];
        let predicted = predict(&ranked, &[0, 0, 0, 1, 1, 1], &psnr, 0, 1);
        assert_eq!(predicted, [30.0, 35.0, 40.0, 20.0, 25.0, 30.0]);
    }

    /// Catches pairs within a family, pairs beyond the tolerance, and distances that end at the end of the line and count as equal.
    #[test]
    fn equal_pairs_have_known_numbers() {
        let numbers = [64.0, 64.0, 62.0, 50.0, 48.0, 49.0].map(|distance| vec![10.0, distance]);
        let family = [0, 1, 2, 0, 1, 1];
        let pairs = |end: f64| equal_pairs(&numbers, &family, |e| numbers[e][1] >= end);
        assert_eq!(pairs(64.0), [(0, 2), (1, 2), (3, 4), (3, 5)]);
        assert_eq!(pairs(65.0)[0], (0, 1));
    }

    /// Catches a test PSNR of the wrong samples, and one below that of a constant.
    #[test]
    fn test_psnr_is_measured_between_the_samples() {
        let signal = Signal { name: String::new(), values: vec![0.0, 0.5, 0.0, 0.5] };
        let psnr = |at: f64| test_psnr(&signal, |i| if i % 2 == 0 { 100.0 } else { at });
        assert!((psnr(0.6) - 20.0).abs() < 1e-9);
        let edge = Signal { name: String::new(), values: vec![0.0, 1.0, 0.0, 1.0] };
        assert_eq!(test_psnr(&edge, |_| -50.0), 0.0);
        assert_eq!(test_psnr(&edge, |_| f64::NAN), 0.0);
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
