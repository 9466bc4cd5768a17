//! Scaled embeddings of the positions of a split, in the precision of the engine.

use anyhow::Result;
use faer::Mat;
use posenc_math::embedder::{Embedder, scale_by_largest_row_norm};
use posenc_math::spectrum::stable_rank;
use posenc_nets::Input;

use super::Scale;
use super::signals::LineSplit;
use crate::memory::{divide, embedding_matrix};

/// Inputs that all runs at one value of the sweep share.
pub struct Inputs {
    pub train: Input,
    /// Test positions, if there are any.
    pub test: Option<Input>,
    /// Stable rank of the scaled training embedding, in double precision.
    pub stable_rank: f64,
    /// Divisor of the training rows under `batch` and `train`; 1 otherwise.
    divisor: f64,
    scale: Scale,
}

impl Inputs {
    /// Embeds and scales the positions i/n of a split.
    pub fn new(embedder: &dyn Embedder, n: usize, split: &LineSplit, scale: Scale) -> Result<Self> {
        let embed = |indices: &[usize]| {
            let positions: Vec<f64> = indices.iter().map(|&i| i as f64 / n as f64).collect();
            embedding_matrix(embedder, &positions)
        };
        let mut train = embed(&split.train)?;
        let divisor = match scale {
            Scale::Batch | Scale::Train => scale_by_largest_row_norm(&mut train),
            Scale::Unit => {
                scale_to_unit_rows(&mut train);
                1.0
            }
            Scale::None => 1.0,
        };
        let mut inputs = Inputs {
            stable_rank: stable_rank(train.as_ref())?,
            train: Input::from_rows(&train)?,
            test: None,
            divisor,
            scale,
        };
        drop(train);
        if !split.test.is_empty() {
            let mut test = embed(&split.test)?;
            if scale == Scale::Batch {
                scale_by_largest_row_norm(&mut test);
            } else {
                inputs.scale_as_training(&mut test);
            }
            inputs.test = Some(Input::from_rows(&test)?);
        }
        Ok(inputs)
    }

    /// Embeds other positions, scaled as in training.
    pub fn at(&self, embedder: &dyn Embedder, positions: &[f64]) -> Result<Input> {
        let mut matrix = embedding_matrix(embedder, positions)?;
        self.scale_as_training(&mut matrix);
        Ok(Input::from_rows(&matrix)?)
    }

    fn scale_as_training(&self, matrix: &mut Mat<f64>) {
        match self.scale {
            Scale::Unit => scale_to_unit_rows(matrix),
            _ => divide(matrix, self.divisor),
        }
    }
}

/// Divides each row by its norm; rows of zeros do not change.
fn scale_to_unit_rows(matrix: &mut Mat<f64>) {
    let mut squares = vec![0.0; matrix.nrows()];
    for j in 0..matrix.ncols() {
        for (sum, value) in squares.iter_mut().zip(matrix.col_as_slice(j)) {
            *sum += value * value;
        }
    }
    let norms: Vec<f64> =
        squares.into_iter().map(|s: f64| if s > 0.0 { s.sqrt() } else { 1.0 }).collect();
    for j in 0..matrix.ncols() {
        for (value, norm) in matrix.col_as_slice_mut(j).iter_mut().zip(&norms) {
            *value /= norm;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::network_1d::TestSamples;
    use posenc_math::embedder::{EmbedderSpec, build};
    use posenc_math::random::stream;

    use super::super::signals::split;
    use super::*;

    /// An embedder with an open boundary, whose rows near the ends have smaller norms.
    fn embedder() -> Box<dyn Embedder> {
        let spec = EmbedderSpec::new("gaussian").number("dimension", 40.0).number("sigma", 0.1);
        build(&spec, &mut stream(0, "")).unwrap()
    }

    fn norms(input: &Input) -> Vec<f64> {
        let norm = |i| {
            (0..input.dimension()).map(|j| f64::from(input.at(j, i)).powi(2)).sum::<f64>().sqrt()
        };
        (0..input.points()).map(norm).collect()
    }

    fn largest(input: &Input) -> f64 {
        norms(input).into_iter().fold(0.0, f64::max)
    }

    /// Catches rows that are not scaled as configured.
    #[test]
    fn rows_are_scaled_as_configured() {
        // Only the end position trains, so that the midpoint has a larger norm.
        let (embedder, n) = (embedder(), 8);
        let split = LineSplit { train: vec![0], test: vec![4, 1] };
        let of = |scale| Inputs::new(&*embedder, n, &split, scale).unwrap();
        let row = |i: usize| embedder.row_norm(i as f64 / n as f64);
        let end = row(0);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} against {b}");

        let batch = of(Scale::Batch);
        close(largest(&batch.train), 1.0);
        close(largest(batch.test.as_ref().unwrap()), 1.0);
        let train = of(Scale::Train);
        close(largest(&train.train), 1.0);
        close(largest(train.test.as_ref().unwrap()), row(4) / end);
        assert!(row(4) / end > 1.1);
        let unit = of(Scale::Unit);
        norms(&unit.train).into_iter().for_each(|norm| close(norm, 1.0));
        norms(unit.test.as_ref().unwrap()).into_iter().for_each(|norm| close(norm, 1.0));
        let none = of(Scale::None);
        close(norms(&none.train)[0], row(0));
        close(norms(none.test.as_ref().unwrap())[1], row(1));

        // Other positions are scaled as in training.
        for inputs in [&batch, &train] {
            close(largest(&inputs.at(&*embedder, &[0.5]).unwrap()), row(4) / end);
        }
        close(largest(&unit.at(&*embedder, &[0.5]).unwrap()), 1.0);
        close(largest(&none.at(&*embedder, &[0.5]).unwrap()), row(4));
        // Far outside an open boundary, rows are zero and must not be divided by their norm 0.
        close(largest(&unit.at(&*embedder, &[40.0]).unwrap()), 0.0);
    }

    /// Catches a stable rank of other rows, or a slow computation: the largest size of the papers must take far less than a second.
    #[test]
    fn the_stable_rank_is_that_of_the_training_rows() {
        let spec =
            EmbedderSpec::new("gaussian").number("dimension", 10_000.0).number("sigma", 0.02);
        let embedder = build(&spec, &mut stream(0, "")).unwrap();
        let split = split(512, 1, TestSamples::Midpoints);
        let batch = Inputs::new(&*embedder, 512, &split, Scale::Batch).unwrap();
        let expected = posenc_math::spectrum::line_stable_rank(&*embedder, 256).unwrap();
        assert!((batch.stable_rank / expected - 1.0).abs() < 1e-9, "{}", batch.stable_rank);
    }

    /// Catches a panic if a width underflows; the message must name the remedy.
    #[test]
    fn an_embedding_of_zeros_is_refused() {
        let spec = EmbedderSpec::new("gaussian").number("dimension", 7.0).number("sigma", 1e-9);
        let embedder = build(&spec, &mut stream(0, "")).unwrap();
        let split = LineSplit { train: vec![1, 3], test: vec![2] };
        for scale in [Scale::Batch, Scale::Train, Scale::Unit, Scale::None] {
            let error = Inputs::new(&*embedder, 512, &split, scale).err().unwrap();
            assert!(error.to_string().contains("all features are zero"), "{error}");
        }
    }
}
