//! `auto` for gradient descent on a complex encoding of a grid: trains at several widths and chooses the one that agrees best with cubic
//! interpolation of the training samples.

use anyhow::{Context as _, Result};
use posenc_math::embedder::{EmbedderSpec, FitModel};
use posenc_math::interpolation::grid::{GridMethod, upsample};
use posenc_nets::Engine;
use posenc_nets::train::{Schedule, fit};

use super::widths::Widths;
use crate::reconstruction::points::{Split, mean_squared_error, positions_per_axis};
use crate::reconstruction::problem::{Problem, interleaved};
use posenc_data::Signal;

/// Candidate widths in octaves from the rule. Then the widths [`FINER`] octaves from the best one are tried.
const OCTAVES: [f64; 5] = [-1.0, -0.5, 0.0, 0.5, 1.0];
/// Octaves between the best width and its refinements.
const FINER: f64 = 0.25;

/// Chooses the parameter of `problem.spec` that is `auto`, using the mean of the channels. Values at other than the training positions
/// are not used. `after_epoch` is called after each epoch.
/// Fails if training positions are not a grid with the distance `step`, or the embedder cannot be built at any width.
pub fn choose_by_training(
    problem: &Problem<'_>,
    step: usize,
    weights: &str,
    engine: &dyn Engine,
    after_epoch: &mut dyn FnMut(),
) -> Result<EmbedderSpec> {
    let Problem { signal, split, settings, spec: open, stream } = problem;
    let parameter = open.auto().context("no parameter is `auto`")?;
    let n = positions_per_axis(split.train.len(), signal.sides.len());
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let known = split.train.iter().map(|&point| {
        let first = point as usize * signal.channels;
        mean(&signal.values[first..first + signal.channels])
    });
    let known: Vec<f64> = known.collect();
    let values = upsample(&known, &signal.sides, step, 1, GridMethod::Cubic)?;
    let interpolated =
        Signal { name: signal.name.clone(), sides: signal.sides.clone(), channels: 1, values };
    let training = Split { train: split.train.clone(), test: Vec::new(), batches: Vec::new() };
    let schedule =
        Schedule { epochs: settings.epochs, curve_every: 0, layers: false, mean_of_last: 1 };
    // Squared distance to the interpolation at all positions, since all trained layers are close to it at the training positions.
    let mut distance = |spec: &EmbedderSpec| -> Result<f64> {
        let problem = Problem {
            signal: &interpolated,
            split: &training,
            settings,
            spec: spec.clone(),
            stream,
        };
        let prepared = problem.prepare(weights)?;
        let mut session = engine.start(prepared.task.clone())?;
        fit(&mut *session, &schedule, None, &mut |_, _| after_epoch())?;
        let outputs = interleaved(&session.predict(&prepared.everywhere()?)?);
        let error = mean_squared_error(&interpolated, &outputs, 0..interpolated.points());
        // A training that diverged is the worst one.
        Ok(error.filter(|error| error.is_finite()).unwrap_or(f64::INFINITY))
    };
    let widths = Widths { open, parameter, model: FitModel::Complex, n };
    let found = widths.search(OCTAVES, FINER, &mut |spec| Ok((distance(spec)?, ())))?;
    Ok(found.spec)
}

#[cfg(test)]
mod tests {
    use posenc_math::random::stream;
    use posenc_nets::CpuEngine;

    use super::*;
    use crate::grid_network::{Encoding, NetworkNd, TestPositions};
    use crate::reconstruction::signal::waves;
    use crate::reconstruction::{Rule, split};

    fn error(problem: &Problem<'_>, spec: &EmbedderSpec) -> f64 {
        let problem = Problem { spec: spec.clone(), ..*problem };
        let prepared = problem.prepare("weights").unwrap();
        let mut session = CpuEngine::new(1).start(prepared.task.clone()).unwrap();
        let schedule = Schedule {
            epochs: problem.settings.epochs,
            curve_every: 0,
            layers: false,
            mean_of_last: 1,
        };
        fit(&mut *session, &schedule, None, &mut |_, _| ()).unwrap();
        let outputs = interleaved(&session.predict(&prepared.everywhere().unwrap()).unwrap());
        let test = problem.split.test.iter().map(|&point| point as usize);
        mean_squared_error(problem.signal, &outputs, test).unwrap()
    }

    /// Catches a choice that reads test positions, that keeps a bad rule, or that needs a certain number of axes or channels.
    #[test]
    fn a_choice_is_better_than_the_rule_and_ignores_test_positions() {
        for (sides, channels, is_better) in [(&[32, 32][..], 3, true), (&[8, 10, 12], 1, false)] {
            let signal = waves(sides, channels, 1.5);
            let rng = &mut stream(0, "split");
            let grid = Rule::Grid { step: 2 };
            let split = split(sides, grid, TestPositions::Rest, rng).unwrap();
            let spec = EmbedderSpec::new("linf").number("dimension", 16.0).with("sigma", "auto");
            let settings = NetworkNd::of(&spec, sides.len(), Encoding::Complex, 0.1, 300);
            let draw = |purpose: &str| stream(0, purpose);
            let mut epochs = 0;
            let problem = |signal| Problem {
                signal,
                split: &split,
                settings: &settings,
                spec: spec.clone(),
                stream: &draw,
            };
            let engine = CpuEngine::new(1);
            let mut choose = |signal| {
                let step = &mut || epochs += 1;
                choose_by_training(&problem(signal), 2, "weights", &engine, step).unwrap()
            };
            let choice = choose(&signal);
            if is_better {
                let rule = spec.clone().resolved(FitModel::Complex, 16.0);
                assert!(error(&problem(&signal), &choice) < error(&problem(&signal), &rule));
            }
            let mut hidden = signal.clone();
            for &point in &split.test {
                let first = point as usize * channels;
                hidden.values[first..first + channels].fill(f64::NAN);
            }
            assert_eq!(choice, choose(&hidden), "{sides:?}");
            assert!(epochs > 0 && choice.auto().is_none());
        }
    }
}
