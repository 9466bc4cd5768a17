//! Candidates, criteria and regrets.

use anyhow::{Context as _, Result};
use faer::Mat;
use posenc_experiments::record::Value;
use posenc_harness::protocol::{Context, Emit, Protocol, UnitResult};
use posenc_math::closed_form::{LineFit, Lines, Ridge, RidgeAxis, RidgeFit, default_rcond};
use posenc_math::embedder::{EmbedderSpec, FitModel, FitParameter, line, matrix, validate};
use posenc_math::quality::psnr_of;

use super::{WidthSelection, random, rows};
use crate::reconstruction::auto_width::{MAX_LINES, RIDGES, RULE};
use crate::reconstruction::signal_of;

/// Criteria that score each width and ridge.
const CRITERIA: [&str; 6] = ["likelihood", "gcv", "loo", "hold_out", "auto", "half_test"];

/// A row or an image, with its candidates.
struct Sample {
    unit: usize,
    /// Name of a row; `None` for an image.
    name: Option<String>,
    is_image: bool,
    /// Values at all positions, by channel.
    channels: Vec<Mat<f64>>,
    lines: Lines,
    /// Test PSNR of each candidate, and its score by each criterion. A criterion chooses the smallest score.
    candidates: Vec<(f64, [f64; CRITERIA.len()])>,
    /// Octaves from the rule of each width, and its test PSNR with the ridge of the rule.
    widths: Vec<(f64, f64)>,
    /// Test PSNR with the width and ridge of the paper.
    paper: f64,
}

impl Sample {
    /// Rows and images of all units.
    fn all(context: &Context<'_>, settings: &WidthSelection) -> Result<Vec<Sample>> {
        let side = 2 * settings.samples;
        let mut samples = Vec::new();
        for (unit, part) in context.units.iter().enumerate() {
            let signal = signal_of(context, part, Some(side))?;
            let mut add = |name: Option<String>, channels: Vec<Mat<f64>>| -> Result<()> {
                let is_image = name.is_none();
                let training = halved(&channels, is_image);
                let columns = training.iter().flat_map(|channel| {
                    let rows = channel.row_iter().filter(|_| is_image);
                    let rows = rows.map(|row| row.iter().copied().collect::<Vec<f64>>());
                    let columns = channel.col_iter().map(|c| c.iter().copied().collect());
                    columns.chain(rows).collect::<Vec<Vec<f64>>>()
                });
                let columns: Vec<Vec<f64>> = columns.collect();
                let count = columns.len().min(MAX_LINES);
                let line = |j: usize| &columns[j * columns.len() / count];
                let lines = Mat::from_fn(settings.samples, count, |i, j| line(j)[i]);
                samples.push(Sample {
                    unit,
                    name,
                    is_image,
                    channels,
                    lines: Lines::new(lines)?,
                    candidates: Vec::new(),
                    widths: Vec::new(),
                    paper: f64::NAN,
                });
                Ok(())
            };
            if settings.axes == 2 {
                let channel = |c| Mat::from_fn(side, side, |i, j| signal.at(i * side + j, c));
                add(None, (0..signal.channels).map(channel).collect())?;
                continue;
            }
            for row in rows(&signal, &part.signal, settings.rows) {
                add(Some(row.name), vec![Mat::from_fn(side, 1, |i, _| row.values[i])])?;
            }
        }
        Ok(samples)
    }

    fn fit<'a>(&self, axis: &'a RidgeAxis, training: &[Mat<f64>]) -> Result<RidgeFit<'a>> {
        Ok(match self.is_image {
            true => RidgeFit::image(axis, training)?,
            false => RidgeFit::line(axis, training)?,
        })
    }

    /// Mean squared error at the positions that [`halved`] leaves out, and at half of them.
    fn errors(&self, values: &[Mat<f64>], predicted: &[Mat<f64>]) -> [f64; 2] {
        let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
        for (value, predicted) in values.iter().zip(predicted) {
            for j in 0..value.ncols() {
                for i in 0..value.nrows() {
                    if i % 2 == 1 || j % 2 == 1 {
                        let error = (value[(i, j)] - predicted[(i, j)]).powi(2);
                        for k in 0..=usize::from((i / 2 + j / 2).is_multiple_of(2)) {
                            sums[k] += error;
                            counts[k] += 1.0;
                        }
                    }
                }
            }
        }
        [sums[0] / counts[0], sums[1] / counts[1]]
    }

    /// Adds the candidates of one width, with all ridges. `coarse` is the axis of `hold_out`; `None` if its width is out of range.
    fn add_width(
        &mut self,
        octaves: f64,
        axis: &RidgeAxis,
        coarse: Option<&RidgeAxis>,
    ) -> Result<()> {
        let training = halved(&self.channels, self.is_image);
        let fit = self.fit(axis, &training)?;
        let held_out = match coarse {
            Some(coarse) => Some(self.fit(coarse, &halved(&training, self.is_image))?),
            None => None,
        };
        let n = training.first().map_or(0, Mat::nrows);
        let middle = axis.at((1..2 * n - 2).step_by(2));
        let odd = coarse.map(|coarse| coarse.at((1..n).step_by(2)));
        let on_lines = match &odd {
            Some(odd) => Some(LineFit::new(&self.lines, &middle, odd)?),
            None => None,
        };
        for (index, &share) in RIDGES.iter().enumerate() {
            let ridge = Ridge::Axes(share);
            let [error, half_test] = self.errors(&self.channels, &fit.predict(ridge));
            let psnr = psnr_of(error);
            let held_out = held_out
                .as_ref()
                .map_or(f64::INFINITY, |fit| self.errors(&training, &fit.predict(ridge))[0]);
            let auto = on_lines.as_ref().map_or(f64::INFINITY, |fit| {
                fit.evidence(share).score(octaves, index as f64 - RULE as f64)
            });
            let mut scores = [f64::INFINITY; CRITERIA.len()];
            scores[3..].copy_from_slice(&[held_out, auto, half_test]);
            self.candidates.push((psnr, scores));
            if index == RULE {
                self.widths.push((octaves, psnr));
            }
            // The theory of the other criteria assumes independent noise of the samples.
            let ridge = Ridge::Samples(share);
            let psnr = psnr_of(self.errors(&self.channels, &fit.predict(ridge))[0]);
            let found = fit.scores(ridge);
            let mut scores = [f64::INFINITY; CRITERIA.len()];
            scores[..3].copy_from_slice(&[
                found.likelihood,
                found.cross_validation,
                found.leave_one_out,
            ]);
            self.candidates.push((psnr, scores));
        }
        Ok(())
    }

    fn values(&self) -> Vec<Value> {
        let &(octaves, best) = self
            .widths
            .iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .expect("the rule is one of the widths");
        let rule =
            self.widths.iter().find(|(octaves, _)| *octaves == 0.0).map_or(f64::NAN, |w| w.1);
        let chosen = CRITERIA.iter().enumerate().map(|(k, name)| {
            type Candidate = (f64, [f64; CRITERIA.len()]);
            let smallest = |a: &&Candidate, b: &&Candidate| a.1[k].total_cmp(&b.1[k]);
            (*name, self.candidates.iter().min_by(smallest).map_or(f64::NAN, |c| c.0))
        });
        let chosen = [("rule", rule), ("paper", self.paper)].into_iter().chain(chosen);
        let mut values = vec![
            Value::new("best_psnr", best).unit("dB"),
            Value::new("best_octaves", octaves),
            Value::new("test_psnr", rule).unit("dB"),
        ];
        let regret = |(name, psnr)| Value::new(format!("regret_{name}"), best - psnr).unit("dB");
        values.extend(chosen.map(regret));
        for value in &mut values {
            value.signal.clone_from(&self.name);
        }
        values
    }
}

/// Every second position of the channels along each axis.
fn halved(channels: &[Mat<f64>], is_image: bool) -> Vec<Mat<f64>> {
    let half = |channel: &Mat<f64>| {
        let columns = if is_image { channel.ncols() / 2 } else { 1 };
        Mat::from_fn(channel.nrows() / 2, columns, |i, j| {
            channel[(2 * i, if is_image { 2 * j } else { 0 })]
        })
    };
    channels.iter().map(half).collect()
}

/// Ridge regression with the embedder at a width, for `n` training samples per axis; `None` if the width is out of range.
fn axis(
    context: &Context<'_>,
    spec: &EmbedderSpec,
    parameter: &FitParameter,
    value: f64,
    n: usize,
) -> Result<Option<RidgeAxis>> {
    let spec = spec.clone().number(parameter.name, value);
    if validate(&spec).is_err() {
        return Ok(None);
    }
    let embedder = context.embedder_of(&spec)?;
    let positions = line(2 * n);
    let training: Vec<f64> = positions.iter().step_by(2).copied().collect();
    let (training, all) = (matrix(&*embedder, &training), matrix(&*embedder, &positions));
    Ok(Some(RidgeAxis::new(training.as_ref(), all.as_ref())?))
}

impl Protocol for WidthSelection {
    /// Runs all units together, since they share the decompositions.
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        if let Some(fraction) = self.fraction {
            return random::run(self, fraction, context, emit);
        }
        let spec = context.spec()?;
        let parameter =
            spec.auto().context("`width-selection` needs a parameter that is `auto`")?;
        let n = self.samples;
        let dimension = spec.dimension().unwrap_or(0.0);
        let half = spec.clone().number("dimension", dimension / 2.0);
        let mut samples = Sample::all(context, self)?;
        for octaves in self.all_octaves() {
            let value = |n: usize| parameter.shifted(FitModel::Ridge, n as f64, octaves);
            let Some(fine) = axis(context, spec, &parameter, value(n), n)? else {
                anyhow::ensure!(
                    octaves != 0.0,
                    "{} = {} is out of range",
                    parameter.name,
                    value(n)
                );
                continue;
            };
            let coarse = axis(context, &half, &parameter, value(n / 2), n / 2)?;
            for sample in &mut samples {
                sample.add_width(octaves, &fine, coarse.as_ref())?;
            }
        }
        let width = parameter.value(FitModel::ClosedForm, n as f64);
        if let Some(axis) = axis(context, spec, &parameter, width, n)? {
            let ridge = default_rcond(n, dimension as usize).powi(2);
            for sample in &mut samples {
                let fit = sample.fit(&axis, &halved(&sample.channels, sample.is_image))?;
                let [error, _] = sample.errors(&sample.channels, &fit.predict(Ridge::Axes(ridge)));
                sample.paper = psnr_of(error);
            }
        }
        for unit in 0..context.units.len() {
            let values = samples.iter().filter(|s| s.unit == unit).flat_map(Sample::values);
            emit(unit, UnitResult::from(values.collect::<Vec<_>>()))?;
        }
        Ok(())
    }
}
