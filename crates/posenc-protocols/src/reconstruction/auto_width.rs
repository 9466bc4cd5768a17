//! `auto` with ridge regression on a grid: chooses the width and the cutoff from the training samples.

mod random;
mod trained;
mod widths;

use anyhow::Result;
use faer::Mat;
use posenc_math::closed_form::{Evidence, LineFit, Lines, RIDGE_CUTOFF, RidgeAxis, SHORTEST_LINE};
use posenc_math::embedder::{Embedder, EmbedderSpec, FitModel, line, matrix, validate};

use super::points::positions_per_axis;
use posenc_data::Signal;

pub use random::{COUNTS, RandomChoice, Search};
pub use trained::choose_by_training;

/// Widths range from this number of octaves below the rule to the same number above.
pub const OCTAVES: f64 = 2.5;
pub const PER_OCTAVE: usize = 8;
/// Candidate ridges as shares of the largest squared singular value, each 100 times the previous one.
pub const RIDGES: [f64; 4] = [1e-8, 1e-6, RIDGE_CUTOFF * RIDGE_CUTOFF, 1e-2];
/// Index of the ridge of the rule.
pub const RULE: usize = 2;
/// Maximum number of lines of each length that are used.
pub const MAX_LINES: usize = 256;

/// A chosen width and cutoff.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The embedder with the chosen width.
    pub spec: EmbedderSpec,
    /// The soft cutoff of ridge regression.
    pub cutoff: f64,
    /// log₂ of the width relative to the rule.
    pub octaves: f64,
}

/// Chooses the parameter that is `auto`, and the cutoff if it is not given, from every `step`-th position along each axis. Returns `None`
/// if no parameter is `auto`, or if a line has too few samples.
pub fn choose(
    signal: &Signal,
    step: usize,
    spec: &EmbedderSpec,
    cutoff: Option<f64>,
    build: &dyn Fn(&EmbedderSpec) -> Result<Box<dyn Embedder>>,
) -> Result<Option<Choice>> {
    let Some(parameter) = spec.auto() else { return Ok(None) };
    let counts: Vec<usize> = signal.sides.iter().map(|side| side.div_ceil(step)).collect();
    if counts.iter().any(|&n| n < SHORTEST_LINE) {
        return Ok(None);
    }
    let n = positions_per_axis(counts.iter().product(), counts.len());
    let half = match spec.dimension() {
        Some(d) => spec.clone().number("dimension", 2.0 * (d / 4.0).floor().max(1.0)),
        None => spec.clone(),
    };
    let mut sides = signal.sides.clone();
    sides.sort_unstable();
    sides.dedup();
    let all: Vec<(usize, Lines)> = sides
        .into_iter()
        .map(|side| Ok((side, Lines::new(lines(signal, step, side))?)))
        .collect::<Result<_>>()?;
    let ridges: Vec<(f64, f64)> = match cutoff {
        Some(cutoff) => vec![(cutoff * cutoff, 0.0)],
        None => (0..RIDGES.len()).map(|k| (RIDGES[k], k as f64 - RULE as f64)).collect(),
    };
    let mut best: Option<(f64, Choice)> = None;
    let mut last: Option<([EmbedderSpec; 2], Vec<Evidence>)> = None;
    let steps = (OCTAVES * PER_OCTAVE as f64) as i32;
    for k in -steps..=steps {
        let octaves = f64::from(k) / PER_OCTAVE as f64;
        let with = |spec: &EmbedderSpec, n: f64| {
            let value = parameter.shifted(FitModel::Ridge, n, octaves);
            Some(spec.clone().number(parameter.name, value)).filter(|spec| validate(spec).is_ok())
        };
        let (Some(fine), Some(coarse)) = (with(spec, n), with(&half, n / 2.0)) else { continue };
        // Several octaves may round to one number of levels.
        if last.as_ref().is_none_or(|(specs, _)| *specs != [fine.clone(), coarse.clone()]) {
            let embedders = [build(&fine)?, build(&coarse)?];
            let mut evidence = vec![Evidence::default(); ridges.len()];
            for (side, lines) in &all {
                let [axis, coarse] = axes(&embedders, *side, step)?;
                let fit = LineFit::new(lines, &axis, &coarse)?;
                for (sum, (ridge, _)) in evidence.iter_mut().zip(&ridges) {
                    sum.add(&fit.evidence(*ridge));
                }
            }
            last = Some(([fine.clone(), coarse], evidence));
        }
        let evidence = last.as_ref().map_or(&[][..], |(_, evidence)| evidence);
        for (evidence, &(ridge, factors)) in evidence.iter().zip(&ridges) {
            let score = evidence.score(octaves, factors);
            if best.as_ref().is_none_or(|(smallest, _)| score < *smallest) {
                best = Some((score, Choice { spec: fine.clone(), cutoff: ridge.sqrt(), octaves }));
            }
        }
    }
    Ok(best.map(|(_, choice)| choice))
}

/// An axis that predicts the midpoints between samples, and a coarse axis that predicts every second sample from the others.
fn axes(
    [fine, coarse]: &[Box<dyn Embedder>; 2],
    side: usize,
    step: usize,
) -> Result<[RidgeAxis; 2]> {
    let xs: Vec<f64> = line(side).into_iter().step_by(step).collect();
    let middle: Vec<f64> = xs.windows(2).map(|x| 0.5 * (x[0] + x[1])).collect();
    let even: Vec<f64> = xs.iter().copied().step_by(2).collect();
    let odd: Vec<f64> = xs.iter().copied().skip(1).step_by(2).collect();
    let axis = |embedder: &dyn Embedder, training: &[f64], positions: &[f64]| {
        RidgeAxis::new(matrix(embedder, training).as_ref(), matrix(embedder, positions).as_ref())
    };
    Ok([axis(&**fine, &xs, &middle)?, axis(&**coarse, &even, &odd)?])
}

/// Training samples on lines along the axes of length `side`, evenly spaced over axes, lines and channels.
fn lines(signal: &Signal, step: usize, side: usize) -> Mat<f64> {
    // Axis, first position and channel of each line.
    let mut starts = Vec::new();
    let mut strides = vec![1; signal.sides.len()];
    for axis in (1..signal.sides.len()).rev() {
        strides[axis - 1] = strides[axis] * signal.sides[axis];
    }
    let is_training = |point: usize, axis: usize| {
        (point / strides[axis] % signal.sides[axis]).is_multiple_of(step)
    };
    for axis in (0..signal.sides.len()).filter(|&axis| signal.sides[axis] == side) {
        for point in 0..signal.points() {
            let is_first = (point / strides[axis]).is_multiple_of(side);
            if is_first && (0..signal.sides.len()).all(|axis| is_training(point, axis)) {
                starts.extend((0..signal.channels).map(|channel| (axis, point, channel)));
            }
        }
    }
    let count = starts.len().min(MAX_LINES);
    Mat::from_fn(side.div_ceil(step), count, |i, j| {
        let (axis, point, channel) = starts[j * starts.len() / count];
        signal.at(point + i * step * strides[axis], channel)
    })
}

#[cfg(test)]
mod tests {
    use posenc_math::embedder::build;
    use posenc_math::random::stream;

    use super::*;
    use crate::reconstruction::signal::waves;

    fn chosen(signal: &Signal, spec: &EmbedderSpec) -> Option<Choice> {
        let build = |spec: &EmbedderSpec| Ok(build(spec, &mut stream(0, "auto"))?);
        choose(signal, 2, spec, None, &build).unwrap()
    }

    /// Catches a choice that does not depend on the samples, lines that leave the signal, and shapes of signals that are refused.
    #[test]
    fn smooth_samples_get_wider_embedders() {
        let spec =
            |n: f64| EmbedderSpec::new("gaussian").number("dimension", n).with("sigma", "auto");
        let octaves = |sides: &[usize], periods: f64| {
            let choice = chosen(&waves(sides, 1, periods), &spec(32.0)).unwrap();
            assert!(choice.spec.auto().is_none());
            choice.octaves
        };
        assert!(octaves(&[64, 64], 1.0) > octaves(&[64, 64], 9.0));
        for sides in [&[64][..], &[40, 65], &[17, 20, 33]] {
            assert!(octaves(sides, 2.0).abs() <= OCTAVES, "{sides:?}");
        }
        assert_eq!(chosen(&waves(&[8, 64], 1, 1.0), &spec(32.0)), None);
        let fixed = EmbedderSpec::new("gaussian").number("dimension", 32.0).number("sigma", 0.1);
        assert_eq!(chosen(&waves(&[64, 64], 1, 1.0), &fixed), None);
    }

    /// Catches a choice that keeps the width of the rule although the random frequencies at that width lack low ones.
    #[test]
    fn a_choice_is_better_than_a_bad_sample_of_frequencies() {
        let spec = EmbedderSpec::new("rff").number("dimension", 32.0).with("sigma", "auto");
        let signal = waves(&[64, 64], 1, 1.5);
        let choice = chosen(&signal, &spec).unwrap();
        let error = |spec: &EmbedderSpec, cutoff: f64| {
            let embedder = build(spec, &mut stream(0, "auto")).unwrap();
            let (mut known, solver) = (Vec::new(), posenc_math::closed_form::Solver::Ridge);
            let axes = super::super::closed::axes::<f64>(
                &mut known,
                &*embedder,
                &signal,
                2,
                (Some(cutoff), solver),
            );
            let solved = super::super::closed::separable(&signal, &axes.unwrap(), 2).unwrap();
            let values = solved.interleaved();
            values.iter().zip(&signal.values).map(|(a, b)| (a - b).powi(2)).sum::<f64>()
        };
        let rule = spec.clone().resolved(FitModel::Ridge, 32.0);
        assert!(error(&choice.spec, choice.cutoff) <= error(&rule, RIDGE_CUTOFF));
    }
}
