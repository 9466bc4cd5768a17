//! Networks on simple and complex encodings of whole images and clips (`rethinking` Figs. 10 and 11,
//! `trading` Tables 1–4).
//!
//! A unit is one signal. Its random streams are named by method and signal, so its results do not depend on other signals of the job.
//! Units are trained one after the other, each with its own checkpoint, and a finished unit is on disk before the next one starts.

use anyhow::{Context as _, Result};
use posenc_experiments::record::{Picture, Value};
use posenc_math::embedder::{self, EmbedderSpec};
use posenc_nets::train::{History, Schedule, Summary};

use super::{Encoding, NetworkNd, changed};
use crate::fit_state::{Done, Resumption, divergence};
use crate::reconstruction::auto_width::{Search, choose_by_training};
use crate::reconstruction::{
    self, ITERATIONS, Problem, Rule, Split, pictures, positions_per_axis, signal_of, split_unit,
};
use crate::streams::method_stream;
use posenc_data::Signal;
use posenc_harness::checkpoint::Checkpoint;
use posenc_harness::protocol::{Context, Emit, Placement, Protocol, UnitResult};
use posenc_harness::stopwatch::Stopwatch;
use posenc_harness::unit::Unit;
use rand_chacha::ChaCha8Rng;

impl Protocol for NetworkNd {
    fn placement(&self) -> Placement {
        // Only the CPU engine implements `products`.
        match self.products {
            None => Placement::Device,
            Some(_) => Placement::Cpu,
        }
    }

    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        for index in 0..context.units.len() {
            let training = Training::new(context, self, index)?;
            let outcome = training.run().with_context(|| context.units[index].signal.clone())?;
            emit(index, outcome)?;
            training.checkpoint.remove();
        }
        Ok(())
    }
}

/// One unit.
struct Training<'a> {
    context: &'a Context<'a>,
    settings: &'a NetworkNd,
    unit: &'a Unit,
    signal: Signal,
    split: Split,
    checkpoint: Checkpoint,
}

impl<'a> Training<'a> {
    fn new(context: &'a Context<'a>, settings: &'a NetworkNd, index: usize) -> Result<Self> {
        let unit = &context.units[index];
        let mut signal = signal_of(context, unit, settings.side)?.scaled(settings.value_scale);
        let rule = Rule::new(settings.step, settings.fraction);
        let split = split_unit(context, unit, &signal, rule, settings.test)?;
        if settings.center {
            signal = signal.centered(&split.train);
        }
        let checkpoint = context.checkpoint.of_unit(context.units, index);
        Ok(Training { context, settings, unit, signal, split, checkpoint })
    }

    /// Trains at every value of the sweep.
    fn run(&self) -> Result<UnitResult> {
        let (mut remarks, mut shown) = (Vec::new(), Vec::new());
        let steps = self.settings.sweep.as_ref().map_or(1, |sweep| sweep.values.0.len());
        let describe =
            |_: &Done, _| format!("{}: resumes where it was interrupted", self.unit.signal);
        let (mut done, mut resume) = self.resumption().read([1, steps, 0], describe, &mut remarks);
        while done.values < steps {
            let swept =
                self.settings.sweep.as_ref().and_then(|s| s.at(done.values).first().copied());
            let place = || match swept {
                Some((name, value)) => format!("{name} = {value}"),
                None => "training".to_owned(),
            };
            let times = done.records[0].iter().filter(|v| v.metric == "time").map(|v| v.value);
            // Seconds that interrupted runs spent on this value.
            let spent = match &resume {
                Some(_) => (self.checkpoint.earlier() - times.sum::<f64>()).max(0.0),
                None => 0.0,
            };
            let share = |values: usize| values as f64 / steps as f64;
            self.checkpoint.within(share(done.values), share(done.values + 1));
            let trained = self.train(resume.take(), &done, &mut remarks).with_context(place)?;
            let seconds = spent + trained.seconds;
            let x = swept.map(|(_, value)| value);
            record(&trained, seconds, x, &mut done.records[0]);
            shown.extend(trained.pictures);
            done.values += 1;
        }
        let values = std::mem::take(&mut done.records[0]);
        remarks.extend(divergence(&values));
        let earlier = self.checkpoint.earlier();
        Ok(UnitResult { values, pictures: shown, remarks, earlier })
    }

    fn resumption(&self) -> Resumption<'_> {
        Resumption { checkpoint: &self.checkpoint, note: self.context.note }
    }

    /// Trains at the next value of the sweep.
    fn train(
        &self,
        resume: Option<Vec<u8>>,
        done: &Done,
        remarks: &mut Vec<String>,
    ) -> Result<Trained> {
        let (settings, changes) = self.settings.at(done.values);
        let draw = |purpose: &str| method_stream(self.context, purpose);
        let open = changed(self.context.spec()?, &changes);
        let spec = self.resolved(&settings, &open, &draw)?;
        let chosen = match (Self::chooses(&settings), open.auto()) {
            (true, Some(parameter)) => spec.number_of(parameter.name).map(|v| (parameter.name, v)),
            _ => None,
        };
        let stopwatch = Stopwatch::start(self.context.device_class());
        let problem = Problem {
            signal: &self.signal,
            split: &self.split,
            settings: &settings,
            spec,
            stream: &draw,
        };
        let prepared = problem.prepare(&self.weights())?;
        let own = problem.engine(1);
        let engine = if settings.products.is_some() { &own } else { self.context.engine() };
        let schedule = Schedule {
            epochs: settings.epochs,
            curve_every: settings.curve_every,
            layers: false,
            mean_of_last: settings
                .late_epochs
                .unwrap_or(settings.mean_of_last)
                .min(settings.epochs),
        };
        let start = || engine.start(prepared.task.clone());
        let (mut session, history) =
            self.resumption().fit(start, &schedule, resume, done, remarks)?;
        let seconds = stopwatch.seconds();
        let parameters = prepared.task.network.parameter_count();
        let late = settings.late_epochs.is_some();
        let test_psnr = psnrs(&history.summaries[0], late)[0];
        let pictures = if settings.pictures {
            let outputs = session.predict(&prepared.everywhere()?)?;
            pictures(&self.signal, &reconstruction::interleaved(&outputs), test_psnr)
        } else {
            Vec::new()
        };
        Ok(Trained { history, parameters, seconds, pictures, late, chosen })
    }

    /// Whether an `auto` parameter depends on the samples, not only on their number.
    fn chooses(settings: &NetworkNd) -> bool {
        let is_random = settings.encoding == Encoding::Complex && settings.fraction.is_some();
        is_random || settings.chooses_by_training()
    }

    fn resolved(
        &self,
        settings: &NetworkNd,
        open: &EmbedderSpec,
        draw: &dyn Fn(&str) -> ChaCha8Rng,
    ) -> Result<EmbedderSpec> {
        let (signal, split) = (&self.signal, &self.split);
        if !Self::chooses(settings) || open.auto().is_none() {
            let axes = signal.sides.len();
            let n = positions_per_axis(split.train.len(), axes);
            return Ok(open.clone().resolved(settings.model(), n));
        }
        if let Some(step) = settings.grid_step() {
            let problem = Problem { signal, split, settings, spec: open.clone(), stream: draw };
            let engine = problem.engine(1);
            let count = &mut || self.checkpoint.count_step();
            return choose_by_training(&problem, step, &self.weights(), &engine, count);
        }
        let search = Search {
            signal,
            train: &split.train,
            blending: settings.blending.unwrap_or_default(),
            counts: &[ITERATIONS],
            build: &|spec: &EmbedderSpec| Ok(embedder::build(spec, &mut draw("embedder"))?),
        };
        Ok(search.choose(open)?.spec)
    }

    /// Name of the random stream of the initial weights.
    fn weights(&self) -> String {
        format!("weights {}", self.unit.signal)
    }
}

/// Test and train PSNR. If means are over `late_epochs`, the PSNRs are those of the last epoch.
fn psnrs(summary: &Summary, late: bool) -> [f64; 2] {
    let (test, train) = match late {
        true => (summary.final_test_psnr, summary.final_train_psnr),
        false => (summary.test_psnr, summary.train_psnr),
    };
    [test.unwrap_or(f64::NAN), train]
}

/// Result of training at one value of the sweep.
struct Trained {
    history: History,
    parameters: usize,
    /// Seconds from before the embedding to after the last measurement.
    seconds: f64,
    pictures: Vec<Picture>,
    /// Whether means and deviations over `late_epochs` are recorded.
    late: bool,
    /// The parameter that was chosen from the samples.
    chosen: Option<(&'static str, f64)>,
}

/// Records the values of one run.
fn record(trained: &Trained, seconds: f64, x: Option<f64>, values: &mut Vec<Value>) {
    let summary = &trained.history.summaries[0];
    values.extend(trained.chosen.map(|(name, value)| Value { x, ..Value::new(name, value) }));
    let mut add = |metric: &str, number: f64, unit: &str| {
        values.push(Value { x, ..Value::new(metric, number).unit(unit) });
    };
    let [test_psnr, train_psnr] = psnrs(summary, trained.late);
    add("test_psnr", test_psnr, "dB");
    add("train_psnr", train_psnr, "dB");
    if trained.late {
        add("late_test_psnr", summary.test_psnr.unwrap_or(f64::NAN), "dB");
        add("late_test_psnr_sd", summary.test_deviation.unwrap_or(f64::NAN), "dB");
        add("late_train_psnr", summary.train_psnr, "dB");
        add("late_train_psnr_sd", summary.train_deviation, "dB");
    }
    let parameters = trained.parameters as f64;
    add("params", parameters, "count");
    // Four bytes per parameter, as in the papers.
    add("memory", 4.0 * parameters / 1e6, "MB");
    // From before the embedding to after the last epoch, as in the papers, but including the final test.
    add("time", seconds, "s");
    if let Some(epoch) = summary.diverged {
        add("diverged_epoch", epoch as f64, "");
    }
    for point in &trained.history.curve {
        let psnrs = [("train_curve", &point.train_psnr), ("test_curve", &point.test_psnr)];
        for (metric, psnrs) in psnrs {
            if let Some(&psnr) = psnrs.first() {
                values.push(Value::new(metric, psnr).unit("dB").at(point.epoch as f64));
            }
        }
    }
}
