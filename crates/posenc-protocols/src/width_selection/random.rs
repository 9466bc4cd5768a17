//! Widths of embedders at random positions.

use anyhow::{Context as _, Result};
use posenc_experiments::record::Value;
use posenc_harness::protocol::{Context, Emit, UnitResult};
use posenc_math::embedder::{EmbedderSpec, FitModel, validate};
use posenc_math::quality::psnr_of;

use super::WidthSelection;
use crate::network_nd::TestPositions;
use crate::reconstruction::auto_width::{COUNTS, Search};
use crate::reconstruction::{ITERATIONS, Rule, positions_per_axis, signal_of, split_unit};

/// Records the best width and the regrets of the rule and of `auto` for each image.
pub fn run(
    settings: &WidthSelection,
    fraction: f64,
    context: &Context<'_>,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let open = context.spec()?;
    let parameter = open.auto().context("`width-selection` needs a parameter that is `auto`")?;
    let build = |spec: &EmbedderSpec| context.embedder_of(spec);
    for (index, unit) in context.units.iter().enumerate() {
        let signal = signal_of(context, unit, Some(2 * settings.samples))?;
        let rule = Rule::Random { fraction };
        let split = split_unit(context, unit, &signal, rule, TestPositions::Rest)?;
        let search = Search {
            signal: &signal,
            train: &split.train,
            blending: Default::default(),
            counts: &COUNTS,
            build: &build,
        };
        let psnrs = |spec: &EmbedderSpec, counts: &[usize]| -> Result<Vec<f64>> {
            let errors = Search { counts, ..search }.path(spec, &split.train, &split.test)?;
            let values = (split.test.len() * signal.channels) as f64;
            Ok(errors.iter().map(|error| psnr_of(error / values)).collect())
        };
        let n = positions_per_axis(split.train.len(), signal.sides.len());
        // PSNR, octaves and iterations.
        let mut best = (f64::NEG_INFINITY, 0.0, 0);
        for octaves in settings.all_octaves() {
            let value = parameter.shifted(FitModel::ClosedForm, n, octaves);
            let spec = open.clone().number(parameter.name, value);
            // A width may be out of the embedder's range, or have no blending weights.
            let Some(found) = validate(&spec).ok().and_then(|()| psnrs(&spec, &COUNTS).ok()) else {
                continue;
            };
            for (psnr, count) in found.into_iter().zip(COUNTS) {
                if psnr > best.0 {
                    best = (psnr, octaves, count);
                }
            }
        }
        let one = |spec: &EmbedderSpec, count: usize| -> Result<f64> {
            Ok(psnrs(spec, &[count])?.first().copied().unwrap_or(f64::NAN))
        };
        let chosen = search.choose(open)?;
        let auto = one(&chosen.spec, chosen.iterations)?;
        let mut values = vec![
            Value::new("best_psnr", best.0).unit("dB"),
            Value::new("best_octaves", best.1),
            Value::new("best_iterations", best.2 as f64).unit("count"),
            Value::new("regret_auto", best.0 - auto).unit("dB"),
        ];
        if let Ok(rule) = one(&open.clone().resolved(FitModel::ClosedForm, n), ITERATIONS) {
            values.push(Value::new("test_psnr", rule).unit("dB"));
            values.push(Value::new("regret_rule", best.0 - rule).unit("dB"));
        }
        emit(index, UnitResult::from(values))?;
    }
    Ok(())
}
