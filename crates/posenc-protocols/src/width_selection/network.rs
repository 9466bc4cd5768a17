//! Widths of embedders for networks and linear layers that are trained with Adam.

use anyhow::{Context as _, Result};
use posenc_experiments::record::Value;
use posenc_harness::protocol::{Context, Emit, UnitResult};
use posenc_math::embedder::{EmbedderSpec, validate};
use posenc_nets::train::{Schedule, fit};

use super::{TrainedNetwork, WidthSelection, rows};
use crate::network_nd::TestPositions;
use crate::reconstruction::auto_width::choose_by_training;
use crate::reconstruction::{Problem, Rule, Signal, split};
use crate::streams::method_stream;

/// Distance between training positions along each axis.
const STEP: usize = 2;

/// Records the best width and the regrets of the rule and of `auto` for each signal.
pub fn run(
    settings: &WidthSelection,
    trained: &TrainedNetwork,
    context: &Context<'_>,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let open = context.spec()?;
    let network = &trained.settings(open, settings.axes);
    let parameter = open.auto().context("`width-selection` needs a parameter that is `auto`")?;
    for (index, unit) in context.units.iter().enumerate() {
        let image = Signal::of_unit(context, unit, Some(2 * settings.samples))?;
        let signals = match settings.axes {
            2 => vec![image],
            _ => rows(&image, &unit.signal, settings.rows),
        };
        let mut values = Vec::new();
        for signal in &signals {
            let of_row = (settings.axes == 1).then(|| signal.name.clone());
            // All widths share initial weights and, up to their scale, random frequencies.
            let draw = |purpose: &str| method_stream(context, purpose);
            let grid = Rule::Grid { step: STEP };
            let rng = &mut draw("positions");
            let split = split(&signal.sides, grid, TestPositions::Rest, rng)?;
            let problem =
                |spec| Problem { signal, split: &split, settings: network, spec, stream: &draw };
            // Test PSNR of each training with an embedder.
            let psnrs = |spec: &EmbedderSpec| -> Result<Vec<f64>> {
                let problem = problem(spec.clone());
                let one = |training| test_psnr(context, &problem, &weights(signal, training));
                (0..trained.trainings).map(one).collect()
            };
            // Octaves from the rule, and test PSNRs.
            let mut widths = Vec::new();
            for octaves in settings.all_octaves() {
                let n = settings.samples as f64;
                let value = parameter.shifted(network.model(settings.axes), n, octaves);
                let spec = open.clone().number(parameter.name, value);
                if validate(&spec).is_ok() {
                    widths.push((octaves, psnrs(&spec)?));
                }
            }
            let Some(rule) = widths.iter().find(|(octaves, _)| *octaves == 0.0) else {
                anyhow::bail!("the rule for `{}` is out of range", parameter.name);
            };
            let all = 0..trained.trainings;
            let best = best(&widths, all.clone());
            let [best_psnr, rule_psnr] = [&best.1, &rule.1].map(|psnrs| mean(psnrs, all.clone()));
            let mut own = vec![
                Value::new("best_psnr", best_psnr).unit("dB"),
                Value::new("best_octaves", best.0),
                Value::new("test_psnr", rule_psnr).unit("dB"),
                Value::new("regret_rule", best_psnr - rule_psnr).unit("dB"),
            ];
            if trained.trainings > 1 {
                own.push(Value::new("gain_of_best", gain(&widths, &rule.1)).unit("dB"));
            }
            if network.chooses_by_training(settings.axes) {
                let problem = problem(open.clone());
                let (weights, engine) = (weights(signal, 0), problem.engine(1));
                let count = &mut || context.checkpoint.count_step();
                let chosen = choose_by_training(&problem, STEP, &weights, &engine, count)?;
                let regret = best_psnr - mean(&psnrs(&chosen)?, all);
                own.push(Value::new("regret_auto", regret).unit("dB"));
            }
            own.iter_mut().for_each(|value| value.signal.clone_from(&of_row));
            values.extend(own);
        }
        emit(index, UnitResult::from(values))?;
    }
    Ok(())
}

/// Octaves from the rule, and the test PSNR of each training.
type Width = (f64, Vec<f64>);

/// Mean test PSNR of some trainings.
fn mean(psnrs: &[f64], trainings: impl Iterator<Item = usize> + Clone) -> f64 {
    trainings.clone().map(|k| psnrs[k]).sum::<f64>() / trainings.count() as f64
}

/// The width with the highest mean of some trainings.
fn best(widths: &[Width], trainings: impl Iterator<Item = usize> + Clone) -> &Width {
    let of = |width: &Width| mean(&width.1, trainings.clone());
    widths.iter().max_by(|a, b| of(a).total_cmp(&of(b))).expect("the rule is one of the widths")
}

/// By how many dB a training with the width that is best in the other trainings is better than with the rule, mean over trainings.
fn gain(widths: &[Width], rule: &[f64]) -> f64 {
    let count = rule.len();
    let one = |k: usize| best(widths, (0..count).filter(move |&other| other != k)).1[k] - rule[k];
    (0..count).map(one).sum::<f64>() / count as f64
}

/// Name of the random stream of the initial weights.
fn weights(signal: &Signal, training: usize) -> String {
    match training {
        0 => format!("weights {}", signal.name),
        _ => format!("weights {} training {training}", signal.name),
    }
}

fn test_psnr(context: &Context<'_>, problem: &Problem<'_>, weights: &str) -> Result<f64> {
    let prepared = problem.prepare(weights)?;
    let network = problem.settings;
    let mut session = context.engine().start(prepared.task)?;
    let schedule = Schedule {
        epochs: network.epochs,
        curve_every: 0,
        layers: false,
        mean_of_last: network.mean_of_last.min(network.epochs),
    };
    let history = fit(&mut *session, &schedule, None, &mut |_, _| context.checkpoint.count_step())?;
    // A training that diverged counts as 0 dB.
    Ok(history.summaries[0].test_psnr.filter(|psnr| psnr.is_finite()).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a gain that is measured on the trainings that determined the best width, which exceeds 0 for widths that are equal except
    /// for chance.
    #[test]
    fn a_lucky_training_is_no_gain() {
        let widths = [(-1.0, vec![21.0, 19.0]), (0.0, vec![20.0, 20.0]), (1.0, vec![18.5, 21.0])];
        assert_eq!(gain(&widths, &widths[1].1), ((18.5 - 20.0) + (19.0 - 20.0)) / 2.0);
        assert_eq!(best(&widths, 0..2).0, 0.0);
        let better = [(0.0, vec![20.0, 20.5]), (1.0, vec![22.0, 22.0])];
        assert_eq!(gain(&better, &better[0].1), 1.75);
    }
}
