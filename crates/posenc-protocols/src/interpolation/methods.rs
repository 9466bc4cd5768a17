//! Interpolation of signals, for the protocol and for `fit`.

use anyhow::{Result, bail};
use posenc_math::interpolation::grid::{GridMethod, upsample};
use posenc_math::interpolation::lattice::LatticeSamples;
use posenc_math::interpolation::selection::{self, Pattern, Selection};
use posenc_math::interpolation::{
    CloughTocher, Interpolant, Linear, Parallel, Samples, ThinPlate, adaptive,
};

use super::Method;
use crate::reconstruction::{Rule, Split};
use posenc_data::Signal;

/// Number of nearest samples that a thin-plate spline at a position uses.
pub const THIN_PLATE_NEIGHBORS: usize = 50;

pub struct Interpolated {
    /// In the layout of [`Signal::values`].
    pub values: Vec<f64>,
    pub selection: Option<Selection>,
}

/// Predicts the values of a signal at all positions from the known positions, whose values do not change.
/// Fails if the method is not defined for the signal and the pattern; the message names those that are.
pub fn interpolate(
    method: Method,
    signal: &Signal,
    split: &Split,
    rule: Rule,
    parallel: &dyn Parallel,
) -> Result<Interpolated> {
    if method == Method::Mean {
        let positions = signal.values.len() / signal.channels;
        let values = signal.means(&split.train).repeat(positions);
        return Ok(Interpolated { values, selection: None });
    }
    let known: Vec<f64> = split
        .train
        .iter()
        .flat_map(|&point| &signal.values[point as usize * signal.channels..][..signal.channels])
        .copied()
        .collect();
    let on_grid = match (rule, method) {
        (Rule::Grid { step }, Method::Nearest) => Some((step, GridMethod::Nearest)),
        (Rule::Grid { step }, Method::Linear) => Some((step, GridMethod::Linear)),
        (Rule::Grid { step }, Method::Cubic) => Some((step, GridMethod::Cubic)),
        _ => None,
    };
    if let Some((step, method)) = on_grid {
        let values = upsample(&known, &signal.sides, step, signal.channels, method)?;
        return Ok(Interpolated { values, selection: None });
    }
    let pattern = match rule {
        Rule::Grid { step } => Pattern::Grid { step },
        Rule::Random { .. } => Pattern::Random,
    };
    let train = || split.train.clone();
    let (values, selection) = match signal.sides[..] {
        [rows, columns] => {
            let known = LatticeSamples::new([rows, columns], train(), known, signal.channels)?;
            let samples = known.samples();
            let fill = |interpolant: &dyn Interpolant<2>| known.fill(interpolant, parallel);
            match method {
                Method::Linear => (fill(&Linear::new(samples)), None),
                Method::Cubic => (fill(&CloughTocher::new(samples)), None),
                Method::Auto => {
                    let selection = selection::choose_for_image(&known, pattern, parallel);
                    let values = adaptive::reconstruct(&known, &selection.settings, parallel);
                    (values, Some(selection))
                }
                _ => (in_any_dimension(method, &known, parallel)?, None),
            }
        }
        [frames, rows, columns] => {
            let known =
                LatticeSamples::new([frames, rows, columns], train(), known, signal.channels)?;
            if method == Method::Auto {
                let selection = selection::choose(&known, pattern, parallel);
                let values = adaptive::isotropic(&known, &selection.settings, parallel);
                (values, Some(selection))
            } else {
                (in_any_dimension(method, &known, parallel)?, None)
            }
        }
        _ => bail!("interpolation needs images or clips"),
    };
    Ok(Interpolated { values, selection })
}

/// Interpolates by a method that needs neither a grid nor triangles.
fn in_any_dimension<const D: usize>(
    method: Method,
    known: &LatticeSamples<D>,
    parallel: &dyn Parallel,
) -> Result<Vec<f64>> {
    let samples: &Samples<D> = known.samples();
    Ok(match method {
        Method::Nearest => known.fill(&samples.nearest(), parallel),
        Method::ThinPlate => known.fill(&ThinPlate::new(samples, THIN_PLATE_NEIGHBORS), parallel),
        Method::Kriging => adaptive::isotropic(known, &adaptive::PLAIN, parallel),
        _ => bail!(
            "method {} is not defined for random positions of a clip, which would need tetrahedra; allowed: {}, {}, {}, {}, {}",
            method.name(),
            Method::Mean.name(),
            Method::Nearest.name(),
            Method::ThinPlate.name(),
            Method::Kriging.name(),
            Method::Auto.name()
        ),
    })
}

#[cfg(test)]
mod tests {
    use posenc_math::random::{stream, uniform_vector};

    use super::*;
    use crate::interpolation::Threads;
    use crate::network_nd::TestPositions;
    use crate::reconstruction::{filled, split};

    fn signal(sides: &[usize], channels: usize) -> Signal {
        let count = sides.iter().product::<usize>() * channels;
        let noise = uniform_vector(&mut stream(1, "noise"), count, 0.0, 0.3);
        let value = |i: usize| 0.4 + 0.3 * (i as f64 / 400.0).sin() + noise[i];
        filled(sides, channels, value)
    }

    /// Catches samples that change, results that depend on the number of threads, and undefined methods that run.
    #[test]
    fn all_methods_keep_samples_and_their_bits() {
        for (sides, channels) in [(&[33, 40][..], 3), (&[12, 14, 12], 1)] {
            let signal = signal(sides, channels);
            for rule in [Rule::Grid { step: 2 }, Rule::Random { fraction: 0.4 }] {
                let mut rng = stream(2, "mask");
                let split = split(sides, rule, TestPositions::Rest, &mut rng).unwrap();
                for method in Method::ALL {
                    let run =
                        |threads| interpolate(method, &signal, &split, rule, &Threads(threads));
                    let one = match run(1) {
                        Ok(one) => one,
                        Err(error) => {
                            assert!(error.to_string().contains("tetrahedra"), "{error}");
                            assert!(sides.len() == 3 && matches!(rule, Rule::Random { .. }));
                            assert!(matches!(method, Method::Linear | Method::Cubic));
                            continue;
                        }
                    };
                    assert_eq!(one.values, run(3).unwrap().values, "{method:?}");
                    assert_eq!(one.selection.is_some(), method == Method::Auto);
                    if method == Method::Mean {
                        let constant = &one.values[..channels];
                        assert!(one.values.chunks(channels).all(|values| values == constant));
                        for (channel, mean) in constant.iter().enumerate() {
                            let error = |&point: &u32| signal.at(point as usize, channel) - mean;
                            assert!(split.train.iter().map(error).sum::<f64>().abs() < 1e-9);
                        }
                        continue;
                    }
                    for &point in &split.train {
                        let at = point as usize * channels;
                        let own = &one.values[at..at + channels];
                        for (own, truth) in own.iter().zip(&signal.values[at..]) {
                            assert!((own - truth).abs() < 1e-9, "{method:?}");
                        }
                    }
                    assert!(split.psnr(&signal, &one.values) > 10.0, "{method:?}");
                }
            }
        }
    }
}
