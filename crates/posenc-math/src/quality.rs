//! Measures of reconstruction quality.
//!
//! For predictions `p` and targets `t` of the same n values,
//!
//! ```text
//! MSE = (1/n) Σ (p_i − t_i)²,          PSNR = −10 log10(MSE) dB  (peak value 1)
//! ```
//!
//! A zero error has PSNR +∞. NaN stays NaN, so that a run that diverged is visible. Sums are taken in
//! f64 in index order, whatever the precision of the values.

use crate::Error;

/// Squared error summed over any number of pieces, for instance the channels of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SquaredError {
    sum: f64,
    count: usize,
}

impl SquaredError {
    /// Adds the squared differences of two equally long slices.
    pub fn add<T: Copy + Into<f64>>(
        &mut self,
        predictions: &[T],
        targets: &[T],
    ) -> Result<(), Error> {
        if predictions.len() != targets.len() {
            return Err(Error(format!(
                "{} predictions but {} targets; their numbers must be equal",
                predictions.len(),
                targets.len()
            )));
        }
        for (&prediction, &target) in predictions.iter().zip(targets) {
            let difference = prediction.into() - target.into();
            self.sum += difference * difference;
        }
        self.count += predictions.len();
        Ok(())
    }

    /// Number of values compared so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Mean squared error over everything added.
    pub fn mean(&self) -> Result<f64, Error> {
        if self.count == 0 {
            let reason = "no values to compare; the mean squared error needs at least one";
            return Err(Error(reason.to_owned()));
        }
        Ok(self.sum / self.count as f64)
    }

    /// Peak signal-to-noise ratio over everything added, in dB, for a peak value of 1.
    pub fn psnr(&self) -> Result<f64, Error> {
        self.mean().map(psnr_of)
    }
}

/// Mean squared error of two equally long slices.
pub fn mean_squared_error<T: Copy + Into<f64>>(
    predictions: &[T],
    targets: &[T],
) -> Result<f64, Error> {
    let mut error = SquaredError::default();
    error.add(predictions, targets)?;
    error.mean()
}

/// Peak signal-to-noise ratio of two equally long slices, in dB, for a peak value of 1.
pub fn psnr<T: Copy + Into<f64>>(predictions: &[T], targets: &[T]) -> Result<f64, Error> {
    mean_squared_error(predictions, targets).map(psnr_of)
}

/// `−10 log10(mean_squared_error)`: +∞ for 0, NaN for NaN and for negative numbers.
pub fn psnr_of(mean_squared_error: f64) -> f64 {
    -10.0 * mean_squared_error.log10()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tolerance::{Tolerance, assert_close};

    #[test]
    fn values_computed_manually() {
        // Differences 0.1 and 0.3: mean square 0.05, 13.0103 dB.
        let (p, t) = ([0.6, 0.2], [0.5, 0.5]);
        assert_close(mean_squared_error(&p, &t).unwrap(), 0.05, Tolerance::absolute(1e-15));
        assert_close(psnr(&p, &t).unwrap(), 13.010_299_956_639_813, Tolerance::relative(1e-13));
        // 10 log10(7.29e-5) = 10 (log10 7.29 − 5) = 10 (0.8627 − 5).
        assert_close(psnr_of(7.29e-5), 41.37, Tolerance::decimals(2));
    }

    #[test]
    fn zero_error_has_infinite_psnr_and_nan_propagates() {
        assert_eq!(psnr(&[0.25f32, 1.0], &[0.25, 1.0]), Ok(f64::INFINITY));
        assert!(psnr(&[f32::NAN, 1.0], &[0.25, 1.0]).unwrap().is_nan());
        assert!(psnr_of(-1.0).is_nan());
    }

    #[test]
    fn pieces_are_weighted_by_their_number_of_values() {
        // Catches a mean of means.
        let mut error = SquaredError::default();
        error.add(&[1.0], &[0.0]).unwrap();
        error.add(&[0.0, 0.0, 0.0], &[0.0, 0.0, 0.0]).unwrap();
        assert_eq!((error.count(), error.mean()), (4, Ok(0.25)));
    }

    #[test]
    fn single_precision_is_summed_in_double() {
        // In f32 the sum of 3e7 ones would stop at 2^24.
        let (p, t) = (vec![1.0f32; 30_000], vec![0.0f32; 30_000]);
        let mut error = SquaredError::default();
        (0..1_000).for_each(|_| error.add(&p, &t).unwrap());
        assert_eq!(error.mean(), Ok(1.0));
    }

    #[test]
    fn errors_name_lengths_and_empty_input() {
        assert_eq!(
            psnr(&[0.0], &[0.0, 1.0]).unwrap_err().to_string(),
            "1 predictions but 2 targets; their numbers must be equal"
        );
        let empty = mean_squared_error::<f64>(&[], &[]).unwrap_err().to_string();
        assert!(empty.contains("at least one"), "{empty}");
    }
}
