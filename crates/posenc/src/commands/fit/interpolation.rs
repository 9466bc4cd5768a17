//! `fit` by interpolation: kriging with settings from cross-validation, or a method by name.

use std::time::Instant;

use anyhow::Result;
use posenc_data::Signal;
use posenc_harness::machine;
use posenc_math::interpolation::selection::Prediction;
use posenc_math::quality::psnr_of;
use posenc_protocols::interpolation::methods::{Interpolated, interpolate as by_method};
use posenc_protocols::interpolation::{Method, Threads};
use posenc_protocols::reconstruction::{Rule, Split};

fn threads() -> Threads {
    Threads(machine::cores())
}

/// Returns the method's name and the values at all positions. Prints the chosen settings and the reason for the choice.
pub fn interpolate(
    method: Method,
    signal: &Signal,
    split: &Split,
    rule: Rule,
) -> Result<(&'static str, Vec<f64>)> {
    let started = Instant::now();
    let Interpolated { values, selection } = by_method(method, signal, split, rule, &threads())?;
    let seconds = started.elapsed().as_secs_f64();
    match selection {
        None => println!("{}, {seconds:.2} s", method.name()),
        Some(selection) => {
            println!("{}, {seconds:.2} s", selection.settings);
            if let Some(reason) = selection.reason() {
                println!("{reason}");
            }
            let predicted = &selection.predicted;
            if !split.test.is_empty() && predicted.mean.is_finite() {
                println!("expected PSNR at the other positions: {}", expectation(predicted));
            }
        }
    }
    Ok((method.name(), values))
}

/// A predicted PSNR with its interval, as text.
fn expectation(predicted: &Prediction) -> String {
    if predicted.mean == 0.0 {
        // For example a black image.
        return "infinite (no error in cross-validation)".to_owned();
    }
    let [mean, low, high] = [predicted.mean, predicted.high, predicted.low].map(psnr_of);
    format!("{mean:.1} dB (95 % interval {low:.1} to {high:.1})")
}

/// Prints PSNR and time of all methods, including the method `name`, which already ran.
pub fn compare(
    name: &str,
    values: &[f64],
    seconds: f64,
    signal: &Signal,
    split: &Split,
    rule: Rule,
) -> Result<()> {
    println!("{:<20} {:>10} {:>8}", "method", "PSNR (dB)", "s");
    let row = |name: &str, values: &[f64], seconds: f64| {
        println!("{name:<20} {:>10.2} {seconds:>8.2}", split.psnr(signal, values));
    };
    for method in Method::ALL.into_iter().filter(|method| method.name() != name) {
        let started = Instant::now();
        match by_method(method, signal, split, rule, &threads()) {
            Ok(found) => row(method.name(), &found.values, started.elapsed().as_secs_f64()),
            Err(_) => println!("{:<20} {:>10} {:>8}", method.name(), "–", "–"),
        }
    }
    row(name, values, seconds);
    Ok(())
}
