//! Affine models and ReLU networks on lines of images (`rethinking` Figs. 5–9, `trading` Fig. 7).
//!
//! Lines × repeats are the *runs* of a job. At each value of the sweep, runs that share an embedding are columns of one task of the
//! engine. Runs are independent: the bits of their results do not depend on the number of runs or on how they are divided into tasks. A
//! profile with fewer lines or images therefore repeats runs of the full profile, and a record does not depend on other units of the
//! job.

use std::collections::HashMap;
use std::ops::Range;

use anyhow::{Context as _, Result};
use faer::Mat;
use posenc_experiments::plan::NO_SIGNAL;
use posenc_experiments::record::Value;
use posenc_math::embedder::{Embedder, ParameterValue};
use posenc_nets::train::{History, Schedule};
use posenc_nets::{Adam, Engine, Network, Samples, Session, Task};

use super::inputs::Inputs;
use super::signals::{Line, LineSplit, split};
use super::{Abscissa, Network1d, STEP};
use crate::fit_state::{Done, Resumption, divergence};
use crate::memory::check_memory;
use posenc_harness::protocol::{Context, Emit, Placement, Protocol, UnitResult};

/// Number of columns of affine models that the engine multiplies at a time. A task is filled up to a multiple, so that rounding
/// does not depend on the number of runs in the task.
const COLUMNS: usize = posenc_nets::cpu::GROUP;

/// Maximum bytes of the runs of one task: parameters, their moments, activations.
const MAX_TASK: usize = 256 << 20;

impl Protocol for Network1d {
    fn placement(&self) -> Placement {
        Placement::Device
    }

    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let lines = super::signals::lines(context, self)?;
        let (records, remarks) = train(context, self, &lines, context.engine(), MAX_TASK)?;
        let mut earlier = context.checkpoint.earlier();
        for (unit, values) in records.into_iter().enumerate() {
            let mut remarks = remarks.clone();
            remarks.extend(divergence(&values));
            let values = averaged_curves(values);
            emit(unit, UnitResult { values, remarks, earlier, ..UnitResult::default() })?;
            // The time of interrupted runs counts once.
            earlier = 0.0;
        }
        Ok(())
    }
}

/// One line with one set of initial weights.
struct LineRun<'a> {
    line: &'a Line,
    repeat: u64,
}

/// State that is constant during a job.
struct Training<'a> {
    context: &'a Context<'a>,
    settings: &'a Network1d,
    engine: &'a dyn Engine,
    runs: Vec<LineRun<'a>>,
    /// Number of samples of a line.
    n: usize,
    /// Maximum bytes of a task.
    largest_task: usize,
}

/// Data that the runs with one embedding share.
struct Prepared {
    embedder: Box<dyn Embedder>,
    split: LineSplit,
    inputs: Inputs,
    network: Network,
    optimizer: Adam,
    x: Option<f64>,
}

/// Trains all runs. Returns the values of each unit, and remarks.
fn train(
    context: &Context<'_>,
    settings: &Network1d,
    lines: &[Line],
    engine: &dyn Engine,
    largest_task: usize,
) -> Result<(Vec<Vec<Value>>, Vec<String>)> {
    let runs = lines
        .iter()
        .flat_map(|line| (0..settings.repeats as u64).map(move |repeat| LineRun { line, repeat }));
    let n = lines.first().map_or(0, |line| line.values.len());
    let training = Training { context, settings, engine, runs: runs.collect(), n, largest_task };
    let values = settings.swept_values();
    let mut remarks = Vec::new();
    let (mut done, mut resume) = training.saved(values.len(), &mut remarks);
    let is_trained = done.values == values.len();
    while let Some(&value) = values.get(done.values) {
        if settings.redraw {
            while let Some(run) = training.runs.get(done.runs) {
                let place =
                    || format!("{}{}, repeat {}", at(settings, value), run.line.name, run.repeat);
                let one = done.runs..done.runs + 1;
                training
                    .prepare(value, Some(run))
                    .and_then(|p| training.batch(&p, one, &mut done, &mut resume, &mut remarks))
                    .with_context(place)?;
            }
        } else {
            let place = || at(settings, value).trim_end_matches(", ").to_owned();
            let prepared = training.prepare(value, None);
            let prepared = with_place(prepared, place)?;
            let size = training.runs_per_task(&prepared);
            while done.runs < training.runs.len() {
                let end = training.runs.len().min(done.runs.saturating_add(size));
                let batch = done.runs..end;
                let outcome =
                    training.batch(&prepared, batch, &mut done, &mut resume, &mut remarks);
                with_place(outcome, place)?;
            }
        }
        done.values += 1;
        done.runs = 0;
    }
    if context.units.len() > 1 && !is_trained {
        training.resumption().keep_all(&done);
    }
    Ok((done.records, remarks))
}

/// `sigma = 0.01, `; empty without a sweep.
fn at(settings: &Network1d, value: Option<f64>) -> String {
    match (&settings.sweep, value) {
        (Some(sweep), Some(value)) => format!("{} = {value}, ", sweep.parameter),
        _ => String::new(),
    }
}

/// Adds the value of the sweep, if any, to an error.
fn with_place<T>(result: Result<T>, place: impl Fn() -> String) -> Result<T> {
    match place() {
        place if place.is_empty() => result,
        place => result.context(place),
    }
}

impl Training<'_> {
    fn resumption(&self) -> Resumption<'_> {
        Resumption { checkpoint: self.context.checkpoint, note: self.context.note }
    }

    /// The saved state of an interrupted run, or the initial state.
    fn saved(&self, values: usize, remarks: &mut Vec<String>) -> (Done, Option<Vec<u8>>) {
        let runs = self.runs.len();
        let describe = |done: &Done, in_training: bool| {
            format!(
                "resumes where it was interrupted: {} of {values} values, {} of {runs} runs of the next{}",
                done.values,
                done.runs,
                if in_training { ", others in training" } else { "" }
            )
        };
        self.resumption().read([self.context.units.len(), values, runs], describe, remarks)
    }

    /// Prepares the embedder, inputs, network and optimizer at one value of the sweep. With `run`, the embedder is sampled for this run
    /// only.
    fn prepare(&self, value: Option<f64>, run: Option<&LineRun<'_>>) -> Result<Prepared> {
        let (settings, context) = (self.settings, self.context);
        let sweep = settings.sweep.as_ref().zip(value);
        let changed = sweep
            .filter(|(sweep, _)| sweep.parameter != STEP)
            .map(|(sweep, value)| (sweep.parameter.as_str(), value));
        let step = match sweep {
            Some((sweep, value)) if sweep.parameter == STEP => value as usize,
            _ => settings.step,
        };
        let purpose = match run {
            Some(run) => format!("embedder {} repeat {}", run.line.label, run.repeat),
            None => "embedder".to_owned(),
        };
        let embedder = context.embedder_from(&purpose, changed)?;
        let split = split(self.n, step, settings.test);
        let d = embedder.dimension();
        // In memory at the same time: one matrix in double precision, all in single precision, and those of the engine.
        let points = split.train.len() + split.test.len();
        check_memory(&format!("a {points} × {d} embedding matrix"), 1.5 * (points * d) as f64)?;
        let inputs = Inputs::new(&*embedder, self.n, &split, settings.scale)?;
        let network = Network::new(d, settings.depth, settings.width, 1)?;
        let sigma = match changed {
            Some(("sigma", value)) => Some(value),
            _ => match context.spec()?.parameters.get("sigma") {
                Some(ParameterValue::Number(sigma)) => Some(*sigma),
                _ => None,
            },
        };
        let rate = settings
            .learning_rate
            .at(sigma)
            .context("`learning_rate` depends on `sigma`, which the embedder does not have")?;
        let optimizer = Adam { weight_decay: settings.weight_decay, ..Adam::new(rate) };
        let x = match settings.abscissa {
            Abscissa::Parameter => value,
            Abscissa::Samples => Some(split.train.len() as f64),
        };
        let prepared = Prepared { embedder, split, inputs, network, optimizer, x };
        check_memory("one run", self.bytes_per_run(&prepared) as f64 / 8.0)?;
        Ok(prepared)
    }

    /// Parameters, gradient, two moments, and activations with their gradients, in single precision.
    fn bytes_per_run(&self, prepared: &Prepared) -> usize {
        let points = prepared.split.train.len().max(prepared.split.test.len());
        let activations = points * (prepared.network.hidden.iter().sum::<usize>() + 1);
        16 * prepared.network.parameter_count() + 12 * activations
    }

    fn runs_per_task(&self, prepared: &Prepared) -> usize {
        let most = (self.largest_task / self.bytes_per_run(prepared).max(1)).max(1);
        most.next_multiple_of(self.columns())
    }

    /// The number of columns of a task is a multiple of this.
    fn columns(&self) -> usize {
        // Tasks of runs with their own embedder have one run, and networks are trained one by one.
        if self.settings.depth == 0 && !self.settings.redraw { COLUMNS } else { 1 }
    }

    /// Trains some runs as one task and records their values.
    fn batch(
        &self,
        prepared: &Prepared,
        range: Range<usize>,
        done: &mut Done,
        resume: &mut Option<Vec<u8>>,
        remarks: &mut Vec<String>,
    ) -> Result<()> {
        let runs = &self.runs[range.clone()];
        let schedule = Schedule {
            epochs: self.settings.epochs,
            curve_every: self.settings.curve_every,
            layers: self.settings.layers,
            mean_of_last: self.settings.mean_of_last.min(self.settings.epochs),
        };
        let start = || self.engine.start(self.task(prepared, runs));
        let values = self.settings.swept_values().len();
        let share = |runs: usize| {
            (done.values as f64 + runs as f64 / self.runs.len() as f64) / values as f64
        };
        self.context.checkpoint.within(share(range.start), share(range.end));
        let (mut session, history) =
            self.resumption().fit(start, &schedule, resume.take(), done, remarks)?;
        let predictions = self.predictions(prepared, runs, &mut *session)?;

        if range.start == 0 && !self.settings.redraw {
            // Only the first image of the set records these, so that no other unit repeats them.
            let first = self.context.units.iter().position(|unit| unit.signal_index == 0);
            if let Some(records) = first.and_then(|unit| done.records.get_mut(unit)) {
                self.shared(prepared, records, |value| value.signal(NO_SIGNAL).seed(0));
            }
        }
        for (place, run) in runs.iter().enumerate() {
            let Some(records) = done.records.get_mut(run.line.unit) else {
                continue;
            };
            let named = |value: Value| value.signal(&run.line.name).seed(run.repeat);
            if self.settings.redraw {
                self.shared(prepared, records, named);
            }
            self.record(prepared, &history, place, records, named);
            if let Some(predictions) = predictions.as_ref().filter(|_| run.repeat == 0) {
                let diverged = history.summaries[place].diverged.is_some();
                self.function(run, predictions, place, diverged, records);
            }
        }
        done.runs = range.end;
        self.resumption().keep(done);
        Ok(())
    }

    /// The runs as columns of a task; copies of the last run fill it up to a multiple of [`COLUMNS`].
    fn task(&self, prepared: &Prepared, runs: &[LineRun<'_>]) -> Task {
        let last = runs.len() - 1;
        let columns = runs.len().next_multiple_of(self.columns());
        let runs: Vec<&LineRun<'_>> = (0..columns).map(|column| &runs[column.min(last)]).collect();
        let targets = |indices: &[usize]| {
            Mat::from_fn(indices.len(), columns, |i, r| runs[r].line.values[indices[i]] as f32)
        };
        let initial = |run: &&LineRun<'_>| {
            let purpose = format!("weights {} repeat {}", run.line.label, run.repeat);
            prepared.network.initialize(&mut self.context.stream(&purpose))
        };
        let Prepared { split, inputs, .. } = prepared;
        Task {
            network: prepared.network.clone(),
            optimizer: prepared.optimizer,
            train: Samples { input: inputs.train.clone(), targets: targets(&split.train) },
            test: inputs
                .test
                .as_ref()
                .map(|input| Samples { input: input.clone(), targets: targets(&split.test) }),
            initial: runs.iter().map(initial).collect(),
        }
    }

    /// Records values of an embedding, which its runs share.
    fn shared(&self, p: &Prepared, records: &mut Vec<Value>, named: impl Fn(Value) -> Value) {
        let mut add = |metric: &str, number: f64, unit: &str| {
            records.push(named(Value { x: p.x, ..Value::new(metric, number).unit(unit) }));
        };
        add("stable_rank", p.inputs.stable_rank, "");
        add("params", p.network.parameter_count() as f64, "count");
    }

    /// Records PSNRs and curves of one run.
    fn record(
        &self,
        p: &Prepared,
        history: &History,
        place: usize,
        records: &mut Vec<Value>,
        named: impl Fn(Value) -> Value,
    ) {
        let summary = &history.summaries[place];
        let db = |metric: &str, psnr: f64| named(Value::new(metric, psnr).unit("dB"));
        let placed = |value: Value| Value { x: p.x, ..value };
        records.push(placed(db("train_psnr", summary.train_psnr)));
        if let Some(test) = summary.test_psnr {
            records.push(placed(db("test_psnr", test)));
        }
        if let Some(epoch) = summary.diverged {
            records.push(placed(named(Value::new("diverged_epoch", epoch as f64))));
        }
        let mut first = [(0.0, 0usize); 2];
        for point in &history.curve {
            let epoch = point.epoch as f64;
            let psnrs = [("train_curve", &point.train_psnr), ("test_curve", &point.test_psnr)];
            for ((metric, psnrs), (sum, count)) in psnrs.into_iter().zip(&mut first) {
                let Some(&psnr) = psnrs.get(place) else {
                    continue;
                };
                records.push(db(metric, psnr).at(epoch));
                if point.epoch < self.settings.mean_of_first {
                    *sum += psnr;
                    *count += 1;
                }
            }
            if self.settings.layers {
                let input = Value::new("stable_rank_input", p.inputs.stable_rank);
                records.push(named(input).at(epoch));
                let layers = point.layers.get(place).into_iter().flatten();
                for (layer, &rank) in layers.enumerate() {
                    let metric = format!("stable_rank_layer_{}", layer + 1);
                    records.push(named(Value::new(metric, rank)).at(epoch));
                }
            }
        }
        for (metric, (sum, count)) in
            ["train_psnr_run_mean", "test_psnr_run_mean"].into_iter().zip(first)
        {
            if count > 0 {
                // A run that diverged has no mean, even if it diverged after these epochs.
                let mean = if summary.diverged.is_some() { f64::NAN } else { sum / count as f64 };
                records.push(placed(db(metric, mean)));
            }
        }
    }

    /// Positions i/n of a reconstruction, on the line and beyond its ends.
    fn positions(&self) -> Vec<f64> {
        let outside = self.settings.reconstruction.map_or(0.0, |r| r.outside);
        let beyond = (outside * self.n as f64).floor() as i64;
        (-beyond..self.n as i64 + beyond).map(|i| i as f64 / self.n as f64).collect()
    }

    /// Outputs of the trained models, if `reconstruction` is set and the runs include a first repeat.
    fn predictions(
        &self,
        prepared: &Prepared,
        runs: &[LineRun<'_>],
        session: &mut dyn Session,
    ) -> Result<Option<Mat<f32>>> {
        if self.settings.reconstruction.is_none() || runs.iter().all(|run| run.repeat != 0) {
            return Ok(None);
        }
        let input = prepared.inputs.at(&*prepared.embedder, &self.positions())?;
        Ok(Some(session.predict(&input)?))
    }

    /// Records a trained model as a function of the position, and its target.
    fn function(
        &self,
        run: &LineRun<'_>,
        predictions: &Mat<f32>,
        place: usize,
        diverged: bool,
        records: &mut Vec<Value>,
    ) {
        let named = |value: Value| value.signal(&run.line.name).seed(0);
        for (i, x) in self.positions().into_iter().enumerate() {
            let output = if diverged { f64::NAN } else { f64::from(predictions[(i, place)]) };
            records.push(named(Value::new("prediction", output).at(x)));
        }
        for (i, &target) in run.line.values.iter().enumerate() {
            records.push(named(Value::new("target", target).at(i as f64 / self.n as f64)));
        }
    }
}

/// Replaces the curves of the repeats of a line by their mean, at the place and with the seed of the first repeat.
fn averaged_curves(values: Vec<Value>) -> Vec<Value> {
    let is_curve = |metric: &str| {
        matches!(metric, "train_curve" | "test_curve" | "stable_rank_input")
            || metric.starts_with("stable_rank_layer_")
    };
    /// Signal, metric, and bits of the abscissa.
    type Point = (Option<String>, String, Option<u64>);
    let mut averaged: Vec<Value> = Vec::with_capacity(values.len());
    // Index of a point in the result, and the number of repeats in its sum.
    let mut places: HashMap<Point, (usize, usize)> = HashMap::new();
    for value in values {
        if !is_curve(&value.metric) {
            averaged.push(value);
            continue;
        }
        let key = (value.signal.clone(), value.metric.clone(), value.x.map(f64::to_bits));
        match places.get_mut(&key) {
            Some((place, count)) => {
                averaged[*place].value += value.value;
                *count += 1;
            }
            None => {
                places.insert(key, (averaged.len(), 1));
                averaged.push(value.seed(0));
            }
        }
    }
    for (place, count) in places.into_values() {
        averaged[place].value /= count as f64;
    }
    averaged
}

#[cfg(test)]
mod tests;
