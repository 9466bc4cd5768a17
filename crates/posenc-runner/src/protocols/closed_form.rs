//! Closed-form least squares on the separable grid of an image (`trading` Eq. 12, Table 1).

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use faer::{Mat, MatRef};
use posenc_data::Image;
use posenc_experiments::record::Value;
use posenc_experiments::schema::protocol::{self, Precision};
use posenc_math::closed_form::{Factorization, Real, default_rcond, predict_2d, solve_2d};
use posenc_math::embedder::Embedder;
use posenc_math::quality::psnr_of;

use super::{Context, Emit, Outcome, check_memory, embedding_matrix};

/// `closed-form`: one factorization of Ψ serves all images and channels of the job.
pub fn run(
    context: &Context<'_>,
    settings: &protocol::ClosedForm,
    emit: &mut Emit<'_>,
) -> Result<()> {
    match settings.precision {
        Precision::Single => typed::<f32>(context, settings, emit),
        Precision::Double => typed::<f64>(context, settings, emit),
    }
}

/// Embedding matrices of one side length.
struct Axis<T> {
    /// All positions.
    full: Mat<T>,
    /// Pseudo-inverse of the training positions.
    factorization: Factorization<T>,
    /// Time of encoding the training positions and factoring, in seconds.
    seconds: f64,
}

fn axis<T: Real>(
    embedder: &dyn Embedder,
    side: usize,
    settings: &protocol::ClosedForm,
) -> Result<Axis<T>> {
    let positions: Vec<f64> = (0..side).map(|i| i as f64 / side as f64).collect();
    let training: Vec<f64> = positions.iter().step_by(settings.step).copied().collect();
    // Embeddings are computed in double precision and then handed over.
    let convert = |m: Mat<f64>| Mat::from_fn(m.nrows(), m.ncols(), |i, j| T::from_f64(m[(i, j)]));
    // Pseudo-inverse, weights and products of three channels are the largest things to come.
    let d = embedder.dimension() as f64;
    check_memory("the weights of one image", 4.0 * d * d.max(side as f64))?;
    let started = Instant::now();
    let psi = convert(embedding_matrix(embedder, &training)?);
    let cutoff =
        settings.cutoff.unwrap_or_else(|| default_rcond(training.len(), embedder.dimension()));
    let factorization = Factorization::with_rcond(psi.as_ref(), cutoff)?;
    let seconds = started.elapsed().as_secs_f64();
    Ok(Axis { full: convert(embedding_matrix(embedder, &positions)?), factorization, seconds })
}

fn typed<T: Real>(
    context: &Context<'_>,
    settings: &protocol::ClosedForm,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let set = context.job.group.data.as_ref().context("a closed form needs `data`")?;
    let images = context.data.load(&set.set)?;
    let embedder = context.embedder()?;
    let mut axes: Vec<(usize, Axis<T>)> = Vec::new();
    for (index, unit) in context.units.iter().enumerate() {
        let image = images
            .signals
            .get(unit.signal_index)
            .with_context(|| format!("data set `{}` has no signal {}", set.set, unit.signal))?;
        for side in [image.height, image.width] {
            ensure!(side >= settings.step, "image {} is smaller than the step", image.name);
            if !axes.iter().any(|(s, _)| *s == side) {
                axes.push((side, axis(&*embedder, side, settings)?));
            }
        }
        let find = |side: usize| axes.iter().find(|(s, _)| *s == side).map(|(_, a)| a);
        let (Some(rows), Some(columns)) = (find(image.height), find(image.width)) else {
            continue;
        };
        let outcome = one_image(image, rows, columns, settings, context.units.len())?;
        emit(index, outcome)?;
    }
    Ok(())
}

fn one_image<T: Real>(
    image: &Image,
    rows: &Axis<T>,
    columns: &Axis<T>,
    settings: &protocol::ClosedForm,
    n_images: usize,
) -> Result<Outcome> {
    let step = settings.step;
    let (height, width) = (image.height, image.width);
    let channels: Vec<Vec<f64>> = (0..image.channels).filter_map(|c| image.channel(c)).collect();
    let training: Vec<Mat<T>> = channels
        .iter()
        .map(|c| {
            Mat::from_fn(height.div_ceil(step), width.div_ceil(step), |i, j| {
                T::from_f64(c[i * step * width + j * step])
            })
        })
        .collect();
    let started = Instant::now();
    let views: Vec<MatRef<'_, T>> = training.iter().map(Mat::as_ref).collect();
    let weights = solve_2d(&rows.factorization, &columns.factorization, &views)?;
    let seconds = started.elapsed().as_secs_f64();
    let views: Vec<MatRef<'_, T>> = weights.iter().map(Mat::as_ref).collect();
    let predictions = predict_2d(rows.full.as_ref(), columns.full.as_ref(), &views)?;

    let mut error = [0.0; 2]; // training, test
    let mut count = [0usize; 2];
    for (prediction, channel) in predictions.iter().zip(&channels) {
        for i in 0..height {
            for j in 0..width {
                let is_test = i % step != 0 || j % step != 0;
                let difference = prediction[(i, j)].to_f64() - channel[i * width + j];
                error[usize::from(is_test)] += difference * difference;
                count[usize::from(is_test)] += 1;
            }
        }
    }
    let psnr = |k: usize| psnr_of(error[k] / count[k] as f64);
    let report = rows.factorization.report();
    let parameters = weights.iter().map(|w| w.nrows() * w.ncols()).sum::<usize>() as f64;
    let values = vec![
        Value::new("test_psnr", psnr(1)).unit("dB"),
        Value::new("train_psnr", psnr(0)).unit("dB"),
        Value::new("params", parameters).unit("count"),
        // Four bytes a parameter, as the papers count.
        Value::new("memory", 4.0 * parameters / 1e6).unit("MB"),
        Value::new("rank", report.rank as f64),
        Value::new("condition_number", report.condition.value()),
        // As the papers count: encoding, factorization and products for one image.
        Value::new("time", rows.seconds + seconds).unit("s"),
        // With the factorization shared by all images.
        Value::new("time_shared", rows.seconds / n_images as f64 + seconds).unit("s"),
    ];
    Ok(values.into())
}
