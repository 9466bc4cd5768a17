//! Trains affine models or ReLU networks on whole images and clips with full-batch Adam.
//!
//! Signals are the images or clips of the group's `data`. Images have the axes y and x, clips t, y and x. Index i of n on an axis has
//! position i/n. With `fraction`, all methods of an experiment use the same random training positions for a signal.
//!
//! | `directions` | meaning | embedder's `dimension` |
//! |---|---|---|
//! | `axes` | each axis | per direction |
//! | `diagonals` | x, y, (x + y)/2, (x − y + 1)/2; images only | per direction |
//! | `joint` | waves along random directions, of kind `rff` | of the whole encoding |
//! | `grid` | products of the axes' features | per axis |
//!
//! Records per image or clip:
//!
//! - `test_psnr` and `train_psnr` (dB).
//! - `params`: number of parameters. `memory` (MB): four bytes per parameter.
//! - `time` (s): embedding, training and tests of one signal, on one core.
//! - `diverged_epoch` of runs that diverged. Their PSNRs are NaN.
//! - With `curve_every`, `train_curve` and `test_curve` (dB) over the epoch.
//! - With `late_epochs`, mean and standard deviation (dB) over these epochs: `late_test_psnr`, `late_test_psnr_sd`, `late_train_psnr` and
//!   `late_train_psnr_sd`.
//! - With `pictures`, the signal, its reconstruction and the error as pictures.
//!
//! The labels of random streams contain experiment, method and signal, but not the group. Groups that vary one setting of a method
//! therefore share their random numbers.
//!
//! With `encoding: complex`, a parameter that is `auto` is chosen from the training samples of each image or clip, and is recorded under its
//! name: with `fraction` as `closed-form` does with 100 iterations, and on a grid without a hidden layer by training at seven widths, of
//! which the result that is closest to cubic interpolation is chosen. Otherwise, `auto` depends only on the number of samples.

mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_math::embedder::{self, EmbedderSpec};
use posenc_nets::{OutputActivation, Products};

use crate::checks::{
    WITHOUT_SWEEP, absent, below_one, check_positions, check_rate, positive, range,
};
pub use crate::grid_network::{
    Blending, DEPTH, Directions, Encoding, JointSweep, NetworkNd, Nodes, TestPositions,
};
use crate::limits::check_curves;
use crate::network_1d::Scale;

pub const KIND: Kind = Kind {
    needs_embedder: true,
    takes_auto: true,
    without_data: WithoutData::Defined,
    signals_are_samples: true,
    ..kind!(NetworkNd, "network-nd")
};

impl Settings for NetworkNd {
    fn check(&self) -> Result<(), Fault> {
        self.side.map_or(Ok(()), |side| range("side", side, 4, 4096))?;
        check_positions(self.step, self.fraction)?;
        let even_step = self.grid_step().is_some_and(|step| step % 2 == 0);
        if self.test == TestPositions::Centers && !even_step {
            return Err(("test", "`centers` needs an even `step`".into()));
        }
        positive("value_scale", self.value_scale, 1e6)?;
        let shows = self.pictures || self.output == OutputActivation::Sigmoid;
        absent(
            &[("center", self.center && shows)],
            "not allowed with `pictures: true` or `output: sigmoid`, whose values are from 0 to 1",
        )?;
        range("depth", self.depth, 0, 16)?;
        range("width", self.width, 1, 8192)?;
        check_rate("learning_rate", self.learning_rate)?;
        below_one("weight_decay", self.weight_decay)?;
        below_one("beta2", self.beta2.unwrap_or(0.0))?;
        self.epsilon.map_or(Ok(()), |epsilon| positive("epsilon", epsilon, 0.1))?;
        range("epochs", self.epochs, 1, 100_000_000)?;
        range("mean_of_last", self.mean_of_last, 1, 100_000_000)?;
        if let Some(late_epochs) = self.late_epochs {
            range("late_epochs", late_epochs, 2, 100_000_000)?;
            if self.mean_of_last != 1 {
                let message =
                    "needs `mean_of_last: 1`, since `test_psnr` is then that of the last epoch";
                return Err(("late_epochs", message.to_owned()));
            }
        }
        range("curve_every", self.curve_every, 0, self.epochs)?;
        check_curves(self.epochs, self.curve_every, 1)?;
        if self.scale == Scale::Unit {
            let message = "`unit` is not allowed; allowed: train, batch, none".to_owned();
            return Err(("scale", message));
        }
        self.check_encoding()?;
        self.check_sweep()
    }

    fn check_embedder(&self, spec: &EmbedderSpec) -> Result<(), Fault> {
        self.directions.check(spec)?;
        let Some(sweep) = &self.sweep else {
            return Ok(());
        };
        for index in 0..sweep.values.0.len() {
            let changed = changed(spec, &self.at(index).1);
            embedder::validate(&changed).map_err(|error| ("sweep", error.to_string()))?;
        }
        Ok(())
    }

    fn swept(&self) -> usize {
        self.sweep.as_ref().map_or(0, |sweep| sweep.values.0.len())
    }

    fn depends_on_start(&self, x: Option<f64>) -> bool {
        let Some(sweep) = &self.sweep else { return self.depth > 0 };
        let is_here = |value: &f64| x.is_none_or(|x| (x - value).abs() <= 1e-9 * value.abs());
        let here = sweep.values.0.iter().enumerate().filter(|(_, value)| is_here(value));
        here.into_iter().any(|(index, _)| self.at(index).0.depth > 0)
    }

    fn has_model_of(&self, other: &dyn Settings) -> Option<bool> {
        let other = other.downcast_ref::<Self>()?;
        let model = |s: &Self| (s.depth, s.width, s.encoding, s.directions, s.sweep.clone());
        Some(model(self) == model(other))
    }
}

impl NetworkNd {
    fn check_encoding(&self) -> Result<(), Fault> {
        if self.encoding == Encoding::Complex {
            absent(
                &[("directions", self.directions != Directions::Axes)],
                "only allowed with `encoding: simple`; a complex one uses the axes",
            )?;
            if self.depth > 1 {
                let message =
                    format!("{} is not allowed for a complex encoding; allowed: 0, 1", self.depth);
                return Err(("depth", message));
            }
            if self.products != Some(Products::Gram) {
                return Ok(());
            }
            let excluded = [
                ("fraction", self.fraction.is_some()),
                ("depth", self.depth > 0),
                ("output", self.output != OutputActivation::Identity),
            ];
            return absent(
                &excluded,
                "not allowed with `products: gram`, which trains a linear layer on a grid; remove one of the two",
            );
        }
        let of_complex =
            [("blending", self.blending.is_some()), ("products", self.products.is_some())];
        absent(&of_complex, "only allowed with `encoding: complex`")
    }

    fn check_sweep(&self) -> Result<(), Fault> {
        let Some(sweep) = &self.sweep else {
            return Ok(());
        };
        for (name, numbers) in &sweep.also {
            let (found, expected) = (numbers.0.len(), sweep.values.0.len());
            if found != expected {
                let message =
                    format!("`{name}` has {found} values, `{}` {expected}", sweep.parameter);
                return Err(("sweep.also", message));
            }
            if *name == sweep.parameter {
                return Err(("sweep.also", format!("`{name}` is the swept parameter itself")));
            }
        }
        let depths = std::iter::once((&sweep.parameter, &sweep.values)).chain(&sweep.also);
        for (_, values) in depths.filter(|(name, _)| *name == DEPTH) {
            let most = match (self.encoding, self.products) {
                (Encoding::Complex, Some(Products::Gram)) => 0.0,
                (Encoding::Complex, _) => 1.0,
                (Encoding::Simple, _) => 16.0,
            };
            if let Some(v) = values.0.iter().find(|v| v.fract() != 0.0 || **v < 0.0 || **v > most) {
                let message = format!("{v} hidden layers; allowed: whole numbers from 0 to {most}");
                return Err(("sweep.values", message));
            }
        }
        let of_one_value = [("curve_every", self.curve_every > 0), ("pictures", self.pictures)];
        absent(&of_one_value, WITHOUT_SWEEP)
    }
}

fn changed(spec: &EmbedderSpec, changes: &[(&str, f64)]) -> EmbedderSpec {
    changes.iter().fold(spec.clone(), |spec, &(name, value)| spec.number(name, value))
}
