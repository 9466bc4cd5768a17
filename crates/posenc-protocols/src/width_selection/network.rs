//! Widths of embedders for networks and linear layers that are trained with Adam.

use anyhow::{Context as _, Result};
use posenc_experiments::record::Value;
use posenc_harness::protocol::{Context, Emit, UnitResult};
use posenc_math::embedder::validate;
use posenc_nets::train::{Schedule, fit};

use super::{TrainedNetwork, WidthSelection, rows};
use crate::network_nd::TestPositions;
use crate::network_nd::reconstruction::{Problem, Rule, Signal, split};
use crate::streams::method_stream;

/// Records the best width and the regret of the rule for each signal.
pub fn run(
    settings: &WidthSelection,
    network: &TrainedNetwork,
    context: &Context<'_>,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let open = context.spec()?;
    let network = &network.settings(open, settings.axes);
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
            let grid = Rule::Grid { step: 2 };
            let rng = &mut draw("positions");
            let split = split(&signal.sides, grid, TestPositions::Rest, rng)?;
            // Octaves from the rule, and test PSNR.
            let mut widths = Vec::new();
            for octaves in settings.all_octaves() {
                let n = settings.samples as f64;
                let value = parameter.shifted(network.model(), n, octaves);
                let spec = open.clone().number(parameter.name, value);
                if validate(&spec).is_ok() {
                    let problem =
                        Problem { signal, split: &split, settings: network, spec, stream: &draw };
                    widths.push((octaves, test_psnr(context, &problem)?));
                }
            }
            let best = widths.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
            let rule = widths.iter().find(|(octaves, _)| *octaves == 0.0);
            let (Some(best), Some(rule)) = (best, rule) else {
                anyhow::bail!("the rule for `{}` is out of range", parameter.name);
            };
            let mut own = vec![
                Value::new("best_psnr", best.1).unit("dB"),
                Value::new("best_octaves", best.0),
                Value::new("test_psnr", rule.1).unit("dB"),
                Value::new("regret_rule", best.1 - rule.1).unit("dB"),
            ];
            own.iter_mut().for_each(|value| value.signal.clone_from(&of_row));
            values.extend(own);
        }
        emit(index, UnitResult::from(values))?;
    }
    Ok(())
}

/// Test PSNR after training.
fn test_psnr(context: &Context<'_>, problem: &Problem<'_>) -> Result<f64> {
    let (signal, network) = (problem.signal, problem.settings);
    let prepared = problem.prepare(&format!("weights {}", signal.name))?;
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
