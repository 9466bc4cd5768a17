use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use posenc_data::{DataDirectory, DataSource, Manifest};
use posenc_experiments::plan::jobs;
use posenc_experiments::selector::Selectors;
use posenc_experiments::yaml::Document;
use posenc_experiments::{Experiment, Profile};
use posenc_nets::CpuEngine;

use super::*;
use posenc_harness::checkpoint::Checkpoint;
use posenc_harness::control::Control;
use posenc_harness::data::DataSets;
use posenc_harness::device::{CPU, Devices};
use posenc_harness::interrupts::Interrupts;
use posenc_harness::plan::expand;

const GAUSSIAN: &str = "{ kind: gaussian, dimension: 24, sigma: 0.05 }";
const RFF: &str = "{ kind: rff, dimension: 24, sigma: 4 }";

/// The outcome of a training.
struct Trained {
    values: Vec<Value>,
    remarks: Vec<String>,
    notes: Vec<String>,
}

/// A job on noise, with a directory for its checkpoints.
struct Bench {
    experiment: Experiment,
    directory: tempfile::TempDir,
    /// Whether the time of the run is over, so that each training ends with a checkpoint after its next step.
    is_over: bool,
}

impl Bench {
    fn new(settings: &str, embedder: &str) -> Self {
        let text = format!(
            "paper: extensions\nitem: mexican-hat\nkind: extra\ntitle: T\nshows: S\ngroups:\n  - id: g\n    \
             protocol: {{ kind: network-1d, {settings} }}\n    variants: [{{ id: V, embedder: {embedder} }}]\n"
        );
        let document = Document::parse(Path::new("a.yaml"), &text).unwrap();
        let experiment = Experiment::from_document(&document, crate::KINDS).unwrap();
        Bench { experiment, directory: tempfile::tempdir().unwrap(), is_over: false }
    }

    fn with<R>(&self, work: impl FnOnce(&Context<'_>, &Network1d) -> R) -> (R, Vec<String>) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let manifest = Manifest::read(&root.join("data/manifest.yaml")).unwrap();
        let source = DataSource::new(manifest, DataDirectory::resolve(None, &root).unwrap());
        let data = DataSets::new(source, 0);
        let all = jobs([&self.experiment].into_iter(), &Selectors::default(), Profile::Paper);
        let planned = expand(all, &data, "-", 0, CPU).unwrap().remove(0);
        let settings = planned.job.protocol().settings().downcast_ref::<Network1d>().unwrap();
        let mut checkpoint = Checkpoint::new(self.directory.path(), &planned.units);
        if self.is_over {
            let control = Control::new(Interrupts::default(), Some(Instant::now()));
            checkpoint = checkpoint.of_job(&Arc::new(control));
        }
        let notes = RefCell::new(Vec::new());
        let context = Context {
            job: &planned.job,
            units: &planned.units,
            data: &data,
            devices: &Devices::cpu(),
            seed: 0,
            checkpoint: &checkpoint,
            note: &|text| notes.borrow_mut().push(text.to_owned()),
        };
        let result = work(&context, settings);
        (result, notes.into_inner())
    }

    fn try_train(
        &self,
        lines: &[Line],
        engine: &dyn Engine,
        largest_task: usize,
    ) -> Result<Trained> {
        let (result, notes) =
            self.with(|context, settings| train(context, settings, lines, engine, largest_task));
        let (mut records, remarks) = result?;
        Ok(Trained { values: records.remove(0), remarks, notes })
    }

    fn train(&self, lines: &[Line], engine: &dyn Engine, largest_task: usize) -> Trained {
        self.try_train(lines, engine, largest_task).unwrap()
    }
}

/// Short lines with different values.
fn lines(count: usize, n: usize) -> Vec<Line> {
    let value = |k: usize, i: usize| 0.5 + 0.4 * ((k * k + 1) as f64 * i as f64 * 0.7).sin();
    (0..count)
        .map(|k| Line {
            unit: 0,
            name: format!("row {k}"),
            label: format!("noise row {k}"),
            values: (0..n).map(|i| value(k, i)).collect(),
        })
        .collect()
}

/// Trains on the given short lines instead of those of the settings, which have 512 samples.
fn trained(settings: &str, embedder: &str, lines: &[Line]) -> Trained {
    Bench::new(settings, embedder).train(lines, &CpuEngine::new(1), MAX_TASK)
}

fn text(values: &[Value]) -> String {
    serde_json::to_string_pretty(values).unwrap()
}

fn of<'a>(values: &'a [Value], metric: &'a str) -> impl Iterator<Item = &'a Value> {
    values.iter().filter(move |v| v.metric == metric)
}

const SETTINGS: &str = "lines: { rows: [0] }, learning_rate: 0.01, epochs: 6, mean_of_last: 3";

/// Catches results that depend on how runs are divided into tasks.
#[test]
fn results_do_not_depend_on_the_size_of_tasks() {
    let sweep = "repeats: 3, sweep: { parameter: sigma, values: [0.05, 0.2] }";
    for more in [sweep.to_owned(), format!("{sweep}, depth: 2, width: 8")] {
        let settings = format!("{SETTINGS}, {more}");
        let bench = Bench::new(&settings, GAUSSIAN);
        let lines = lines(3, 40);
        let whole = bench.train(&lines, &CpuEngine::new(1), MAX_TASK);
        assert_eq!(of(&whole.values, "test_psnr").count(), 18);
        let single = bench.train(&lines, &CpuEngine::new(1), 1);
        assert_eq!(text(&whole.values), text(&single.values), "{more}");
    }
}

/// Catches a reduced profile whose runs differ from those of the full profile.
#[test]
fn runs_do_not_depend_on_other_lines_and_repeats() {
    for embedder in [GAUSSIAN, RFF] {
        for more in ["", "redraw: true"] {
            let many = trained(&format!("{SETTINGS}, repeats: 3, {more}"), embedder, &lines(3, 40));
            let mut two = lines(2, 40);
            two.remove(0);
            let few = trained(&format!("{SETTINGS}, repeats: 2, {more}"), embedder, &two);
            for value in of(&few.values, "train_psnr").chain(of(&few.values, "test_psnr")) {
                assert!(
                    many.values.contains(value),
                    "{embedder} {more}: {}",
                    text(std::slice::from_ref(value))
                );
            }
        }
    }
}

/// Catches a job that is interrupted at every step and ends with other values than an uninterrupted one, or repeats steps.
#[test]
fn interruptions_at_every_step_do_not_change_results() {
    let sweep = "repeats: 2, sweep: { parameter: sigma, values: [2, 5] }";
    let curves =
        "curve_every: 2, mean_of_first: 4, layers: true, depth: 1, width: 5, reconstruction: {}";
    // Settings and the number of tasks, each with six steps.
    for (more, tasks) in [
        (sweep.to_owned(), 2),
        (format!("{sweep}, redraw: true"), 4),
        // Tasks of eight runs and of one run at each value.
        (sweep.replace("repeats: 2", "repeats: 9"), 4),
        (format!("{curves}, repeats: 2"), 2),
    ] {
        let mut bench = Bench::new(&format!("{SETTINGS}, {more}"), RFF);
        let lines = lines(1, 20);
        let expected = bench.train(&lines, &CpuEngine::new(1), 1);
        bench.is_over = true;
        let mut killed = 0;
        let resumed = loop {
            let train = || bench.train(&lines, &CpuEngine::new(1), 1);
            match catch_unwind(AssertUnwindSafe(train)) {
                Ok(trained) => break trained,
                Err(_) => killed += 1,
            }
            assert!(killed < 200, "it does not go on");
        };
        // Each attempt does one step, or records the runs of a task.
        assert_eq!(killed, 7 * tasks, "{more}");
        assert_eq!(text(&resumed.values), text(&expected.values), "{more}");
        assert!(resumed.remarks.is_empty() && resumed.notes.len() == 1, "{:?}", resumed.notes);
    }
}

/// Catches a damaged checkpoint that is used, that fails the unit, or that no remark reports.
#[test]
fn a_damaged_checkpoint_is_reported_and_training_restarts() {
    let bench = Bench::new(&format!("{SETTINGS}, repeats: 2"), GAUSSIAN);
    let lines = lines(2, 20);
    let expected = bench.train(&lines, &CpuEngine::new(1), MAX_TASK);
    // Another number of units, and an invalid state of a fit.
    for (units, fit) in [(7, &b""[..]), (1, b"no fit")] {
        bench.with(|context, _| context.checkpoint.write(&Done::nothing(units), &[fit]));
        let trained = bench.train(&lines, &CpuEngine::new(1), MAX_TASK);
        assert_eq!(text(&trained.values), text(&expected.values));
        assert_eq!(trained.remarks.len(), 1, "{:?}", trained.remarks);
        assert!(trained.remarks[0].contains("checkpoint"), "{:?}", trained.remarks);
        assert!(trained.notes.iter().any(|n| n.contains(".bin")), "{:?}", trained.notes);
    }
    bench.with(|context, _| std::fs::write(context.checkpoint.file(), "damaged").unwrap());
    let trained = bench.train(&lines, &CpuEngine::new(1), MAX_TASK);
    assert_eq!(text(&trained.values), text(&expected.values));
    assert_eq!(trained.remarks.len(), 1, "{:?}", trained.remarks);
}

/// Catches learning rates that are not base·(σ/sigma)^exponent, with and without a sweep over σ.
#[test]
fn the_learning_rate_follows_its_rule() {
    let rule = "learning_rate: { base: 0.008, sigma: 0.1, exponent: -1 }";
    let with = |rate: &str, more: &str| {
        let settings = SETTINGS.replace("learning_rate: 0.01", rate);
        let trained = trained(&format!("{settings}, {more}"), GAUSSIAN, &lines(1, 20));
        of(&trained.values, "train_psnr").map(|v| v.value).collect::<Vec<_>>()
    };
    // σ = 0.05: twice the base; σ = 0.2: half of it.
    assert_eq!(with(rule, ""), with("learning_rate: 0.016", ""));
    let sweep = "sweep: { parameter: sigma, values: [0.2, 0.05] }";
    let swept = with(rule, sweep);
    assert_eq!(swept[1], with("learning_rate: 0.016", "")[0]);
    assert_eq!(swept[0], with("learning_rate: 0.004", sweep)[0]);
    assert_ne!(swept[0], with("learning_rate: 0.016", sweep)[0]);
}

/// Catches values with another abscissa than configured.
#[test]
fn values_have_the_configured_abscissa() {
    let x = |values: &[Value], metric: &str| {
        of(values, metric).map(|v| v.x).collect::<Vec<Option<f64>>>()
    };
    let steps = "sweep: { parameter: step, values: [1, 4, 16] }";
    let lines = lines(2, 32);
    let parameter = trained(&format!("{SETTINGS}, {steps}"), GAUSSIAN, &lines).values;
    assert_eq!(x(&parameter, "stable_rank"), [Some(1.0), Some(4.0), Some(16.0)]);
    let samples =
        trained(&format!("{SETTINGS}, {steps}, abscissa: samples"), GAUSSIAN, &lines).values;
    assert_eq!(x(&samples, "stable_rank"), [Some(16.0), Some(4.0), Some(1.0)]);
    assert_eq!(x(&samples, "test_psnr")[..3], [Some(16.0), Some(16.0), Some(4.0)]);
    for metric in ["stable_rank", "params"] {
        assert!(of(&samples, metric).all(|v| v.signal.as_deref() == Some("-")));
    }
    let numbers = |metric: &str| of(&samples, metric).map(|v| v.value).collect::<Vec<_>>();
    assert_eq!(numbers("params"), [25.0, 25.0, 25.0]);
    // One training sample: the stable rank of a single row.
    assert_eq!(numbers("stable_rank")[2], 1.0);
    let none = trained(SETTINGS, GAUSSIAN, &lines).values;
    assert_eq!(x(&none, "train_psnr"), [None, None]);
}

/// Catches an embedder that runs share with `redraw`, or that is sampled again without it or along a sweep.
#[test]
fn redrawn_embedders_differ_between_runs_but_not_along_a_sweep() {
    let ranks = |more: &str| {
        let settings = format!("{SETTINGS}, repeats: 2, {more}");
        let trained = trained(&settings, RFF, &lines(2, 40));
        of(&trained.values, "stable_rank").cloned().collect::<Vec<Value>>()
    };
    assert_eq!(ranks("").len(), 1);
    let redrawn = ranks("redraw: true");
    let names: Vec<_> = redrawn.iter().map(|v| (v.signal.as_deref().unwrap(), v.seed)).collect();
    let expected = [("row 0", Some(0)), ("row 0", Some(1)), ("row 1", Some(0)), ("row 1", Some(1))];
    assert_eq!(names, expected);
    let mut values: Vec<u64> = redrawn.iter().map(|v| v.value.to_bits()).collect();
    values.sort_unstable();
    values.dedup();
    assert_eq!(values.len(), 4);
    let swept = ranks("redraw: true, sweep: { parameter: sigma, values: [9, 4] }");
    let at_four: Vec<f64> = swept.iter().filter(|v| v.x == Some(4.0)).map(|v| v.value).collect();
    assert_eq!(at_four, redrawn.iter().map(|v| v.value).collect::<Vec<_>>());
}

/// Catches curves at wrong epochs, of wrong layers, or that are not means over the repeats.
#[test]
fn curves_are_means_over_the_repeats() {
    let more = "repeats: 3, curve_every: 2, mean_of_first: 3, layers: true, depth: 2, width: 6";
    let values = trained(&format!("{SETTINGS}, {more}"), RFF, &lines(2, 20)).values;
    let averaged = averaged_curves(values.clone());
    for metric in [
        "train_curve",
        "test_curve",
        "stable_rank_input",
        "stable_rank_layer_1",
        "stable_rank_layer_2",
    ] {
        let found: Vec<&Value> = of(&averaged, metric).collect();
        assert_eq!(found.len(), 2 * 3, "{metric}");
        for curve in found {
            let repeats: Vec<f64> = of(&values, metric)
                .filter(|v| v.signal == curve.signal && v.x == curve.x)
                .map(|v| v.value)
                .collect();
            assert_eq!(repeats.len(), 3);
            assert_eq!(curve.seed, Some(0));
            assert!([Some(0.0), Some(2.0), Some(4.0)].contains(&curve.x), "{:?}", curve.x);
            let mean = repeats.iter().sum::<f64>() / 3.0;
            assert!((curve.value - mean).abs() <= 1e-12 * mean.abs(), "{metric}");
        }
    }
    assert_eq!(of(&averaged, "stable_rank_layer_3").count(), 0);
    // Epochs 0 and 2 come before 3.
    let means: Vec<&Value> = of(&averaged, "test_psnr_run_mean").collect();
    assert_eq!(means.len(), 6);
    let early_points: Vec<f64> = of(&values, "test_curve")
        .filter(|v| v.signal == means[4].signal && v.seed == means[4].seed && v.x < Some(3.0))
        .map(|v| v.value)
        .collect();
    assert_eq!(early_points.len(), 2);
    assert_eq!(means[4].value, (early_points[0] + early_points[1]) / 2.0);
    // Other values do not change.
    let rest = |values: &[Value]| of(values, "train_psnr").cloned().collect::<Vec<_>>();
    assert_eq!(rest(&values), rest(&averaged));
}

/// Catches predictions of another run or at other positions than recorded.
#[test]
fn a_reconstruction_passes_through_memorized_samples() {
    let settings = "lines: { rows: [0] }, learning_rate: 0.02, epochs: 1500, repeats: 2, scale: unit, \
                    test: all, reconstruction: { outside: 0.3 }";
    // With one feature per sample, the model can fit every training value.
    let embedder = "{ kind: gaussian, dimension: 20, sigma: 0.02 }";
    let lines = lines(2, 20);
    let values = trained(settings, embedder, &lines).values;
    for line in &lines {
        let named = |metric: &'static str| {
            of(&values, metric).filter(|v| v.signal.as_deref() == Some(&line.name))
        };
        let predictions: Vec<(f64, f64)> =
            named("prediction").map(|v| (v.x.unwrap(), v.value)).collect();
        assert_eq!(predictions.len(), 20 + 2 * 6);
        assert!((predictions[0].0 + 0.3).abs() < 1e-12 && predictions[31].0 < 1.3);
        let targets: Vec<f64> = named("target").map(|v| v.value).collect();
        assert_eq!(targets, line.values);
        for (i, target) in targets.iter().enumerate().step_by(2) {
            let (x, prediction) = predictions[6 + i];
            assert_eq!(x, i as f64 / 20.0);
            assert!((prediction - target).abs() < 1e-2, "{i}: {prediction} against {target}");
        }
    }
}

/// Catches a unit that fails because its runs diverge; divergence is a result.
#[test]
fn divergence_is_recorded_and_not_an_error() {
    let settings = "lines: { rows: [0] }, learning_rate: 1000, epochs: 60, repeats: 2, depth: 8, \
                    width: 16, curve_every: 20, layers: true, mean_of_first: 60, reconstruction: {}";
    let trained = trained(settings, RFF, &lines(2, 20));
    let values = averaged_curves(trained.values);
    let diverged: Vec<f64> = of(&values, "diverged_epoch").map(|v| v.value).collect();
    assert_eq!(diverged.len(), 4, "{}", text(&values));
    assert!(diverged.iter().all(|e| (1.0..=60.0).contains(e)), "{diverged:?}");
    for metric in ["train_psnr", "test_psnr", "train_psnr_run_mean"] {
        assert_eq!(of(&values, metric).count(), 4);
        assert!(of(&values, metric).all(|v| v.value.is_nan()), "{metric}");
    }
    assert!(of(&values, "prediction").all(|v| v.value.is_nan()));
    assert!(divergence(&values).unwrap().contains("4 of 4 runs diverged"));
    assert_eq!(divergence(&[]), None);
}

/// Catches panics and NaN without an error at extreme sizes.
#[test]
fn extreme_sizes_train_or_return_an_error() {
    let count = |settings: &str, embedder: &str, lines: &[Line], metric: &str| {
        let trained = trained(settings, embedder, lines);
        let all_finite = of(&trained.values, metric).all(|v| !v.value.is_nan());
        assert!(all_finite, "{settings}: {}", text(&trained.values));
        of(&trained.values, metric).count()
    };
    // One training sample, without and with a test sample.
    let step = format!("{SETTINGS}, step: 50");
    assert_eq!(count(&step, GAUSSIAN, &lines(2, 40), "train_psnr"), 2);
    assert_eq!(count(&step, GAUSSIAN, &lines(2, 40), "test_psnr"), 0);
    let step = format!("{SETTINGS}, step: 20");
    assert_eq!(count(&step, GAUSSIAN, &lines(2, 40), "test_psnr"), 2);
    // One feature, one neuron.
    let narrow = format!("{SETTINGS}, depth: 3, width: 1");
    assert_eq!(count(&narrow, "{ kind: identity }", &lines(1, 4), "train_psnr"), 1);
    let mut constant = lines(2, 20);
    constant[0].values.fill(0.0);
    constant[1].values.fill(1.0);
    assert_eq!(count(SETTINGS, GAUSSIAN, &constant, "train_psnr"), 2);

    let fails = |settings: &str, embedder: &str, lines: &[Line], needle: &str| {
        let bench = Bench::new(settings, embedder);
        let error = bench.try_train(lines, &CpuEngine::new(1), MAX_TASK).err().unwrap();
        assert!(format!("{error:#}").contains(needle), "{error:#}");
    };
    // The only training position is 0, whose coordinate is zero.
    fails(SETTINGS, "{ kind: identity }", &lines(1, 2), "all features are zero");
    // The features underflow in single precision, but not in double precision.
    let narrow = "{ kind: formula, dimension: 4, psi: \"1e-60*(1+u)\" }";
    fails(&format!("{SETTINGS}, scale: none"), narrow, &lines(1, 20), "underflows");
    let sweep = "sweep: { parameter: c, values: [1, 1e-60] }, scale: none";
    let swept = "{ kind: formula, dimension: 4, psi: \"c*(2+u)\", c: 1 }";
    fails(&format!("{SETTINGS}, {sweep}"), swept, &lines(1, 20), "c = 0.0000");
}

/// Catches sizes for which an allocation would fail.
#[test]
fn sizes_beyond_memory_are_refused() {
    let wide = Bench::new(SETTINGS, "{ kind: gaussian, dimension: 10000000, sigma: 0.05 }");
    let error = wide.try_train(&lines(1, 512), &CpuEngine::new(1), MAX_TASK).err().unwrap();
    assert!(format!("{error:#}").contains("GiB"), "{error:#}");
    let deep = format!("{SETTINGS}, depth: 16, width: 8192");
    let deep = Bench::new(&deep, GAUSSIAN);
    let error = deep.try_train(&lines(1, 512), &CpuEngine::new(1), MAX_TASK).err().unwrap();
    assert!(format!("{error:#}").contains("one run needs"), "{error:#}");
}
