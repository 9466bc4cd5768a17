//! Interpolation of images and clips.

use anyhow::{Context as _, Result};
use posenc_experiments::record::Value;
use posenc_harness::device::CPU;
use posenc_harness::protocol::{Context, Emit, Protocol, UnitResult};
use posenc_harness::stopwatch::Stopwatch;
use posenc_harness::unit::Unit;
use posenc_math::quality::psnr_of;

use super::methods::interpolate;
use super::{Interpolation, Threads};
use crate::network_nd::TestPositions;
use crate::reconstruction::{Rule, signal_of, split_unit};

fn run_unit(context: &Context<'_>, settings: &Interpolation, unit: &Unit) -> Result<UnitResult> {
    let signal = signal_of(context, unit, settings.side)?;
    let rule = Rule::new(settings.step, settings.fraction);
    let split = split_unit(context, unit, &signal, rule, TestPositions::Rest)?;
    let stopwatch = Stopwatch::start(CPU);
    let interpolated = interpolate(settings.method, &signal, &split, rule, &Threads(1))?;
    let seconds = stopwatch.seconds();
    let test_psnr = split.psnr(&signal, &interpolated.values);
    let mut values =
        vec![Value::new("test_psnr", test_psnr).unit("dB"), Value::new("time", seconds).unit("s")];
    if let Some(selection) = &interpolated.selection {
        let predicted = &selection.predicted;
        values.extend([
            Value::new("predicted_psnr", psnr_of(predicted.mean)).unit("dB"),
            Value::new("predicted_low", psnr_of(predicted.high)).unit("dB"),
            Value::new("predicted_high", psnr_of(predicted.low)).unit("dB"),
        ]);
    }
    Ok(UnitResult::from(values))
}

impl Protocol for Interpolation {
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        for (index, unit) in context.units.iter().enumerate() {
            emit(index, run_unit(context, self, unit).with_context(|| unit.signal.clone())?)?;
        }
        Ok(())
    }
}
