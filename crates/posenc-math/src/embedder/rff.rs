//! Random Fourier features (`rethinking` Prop. 3, `trading` Eq. 52, as implemented in its code).
//!
//! `d/2` frequencies `b_j ~ σ N(0, 1)`, sampled in order from the generator; sines and then cosines.
//! For d → ∞ `D(Δ) = exp(-2π²σ²Δ²)` and the stable rank is `min(N, √(2π) σ)`; at finite d it is well
//! below.
//!
//! `density` replaces the normal distribution by a uniform or a Laplace distribution with standard deviation σ, or by a Cauchy
//! distribution with scale σ. Their laws are the sinc, rational quadratic and exponential kernels (Rahimi and Recht 2007).
//!
//! `torch_seed` reproduces the frequencies of a PyTorch script: `torch.randn(d/2)` on the CPU after
//! `torch.manual_seed(torch_seed)` and `torch_skip` other random numbers.

use std::f64::consts::{FRAC_1_PI, FRAC_1_SQRT_2};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Exp1, StandardNormal};

use super::{
    EmbedderError,
    fourier::{Fourier, Law},
    kind::{CodeDistance, Family, FitDefaults, FitParameter, FitUnit, Kind},
    registry::{DefaultValue, EVEN_DIMENSION, Parameter, Rule, SCALING, Values},
};
use crate::random::{gaussian_vector, uniform_vector};
use crate::theory;
use crate::torch_random::{BLOCK, TorchGenerator};

/// Seed of PyTorch's generator.
const TORCH_SEED: &str = "torch_seed";
/// Random numbers that the script samples before the frequencies.
const TORCH_SKIP: &str = "torch_skip";

pub(super) const KIND: Kind = Kind {
    name: "rff",
    label: "Random Fourier features",
    symbol: "RFF",
    source: "rethinking Prop. 3, trading Eq. 52",
    latex: r"\psi(x) = (\sin 2\pi b_j x, \cos 2\pi b_j x),\ b_j \sim \sigma\,\mathcal{N}(0, 1)",
    distance: r"\exp(-2\pi^2\sigma^2\Delta^2)",
    stable_rank: r"\min(N,\ \sqrt{2\pi}\,\sigma)",
    example: &[("sigma", DefaultValue::Number(4.0))],
    parameters: &[
        EVEN_DIMENSION,
        Parameter::required(
            "sigma",
            Rule::Positive { most: 1e9 },
            "standard deviation σ of the frequencies, in periods per unit of x",
        ),
        Parameter::optional(
            "density",
            Rule::OneOf(&["gaussian", "uniform", "laplace", "cauchy"]),
            "distribution of the frequencies: gaussian (default), uniform or laplace with standard deviation σ, or cauchy with scale σ",
        ),
        SCALING,
        Parameter::optional(
            TORCH_SEED,
            Rule::Multiple { step: 1, most: u32::MAX },
            "samples the frequencies as PyTorch does on a CPU after `torch.manual_seed`; requires a dimension of at least 32",
        ),
        Parameter::optional(
            TORCH_SKIP,
            Rule::Multiple { step: 1, most: u32::MAX },
            "number of random numbers that the script samples before the frequencies; requires `torch_seed`",
        ),
    ],
    family: Family::Fourier,
    color: Some([0.66, 0.175, 50.0]),
    method_names: &["rff", "learnable-fourier", "fourier", "random fourier"],
    is_random: true,
    is_joint: true,
    code_distance: CodeDistance::Law,
    fit: FitDefaults {
        features: 512,
        parameter: Some(FitParameter {
            name: "sigma",
            unit: FitUnit::PeriodsPerStep,
            values: [42.0 / 256.0, 42.0 / 256.0, 14.0 / 256.0, 49.0 / 256.0],
        }),
        diagonals: false,
    },
    check,
    ..Kind::built_by(|values, rng| {
        let (sigma, density) = (values.number("sigma")?, Density::of(values));
        let count = values.dimension()? / 2;
        let mut frequencies = match values.optional_number(TORCH_SEED) {
            Some(seed) => {
                let mut generator = TorchGenerator::new(seed as u32);
                generator.skip(values.optional_number(TORCH_SKIP).unwrap_or(0.0) as u64);
                generator.normals(count)
            }
            None => density.sample(rng, count),
        };
        for frequency in &mut frequencies {
            *frequency *= sigma;
        }
        let law = Law::RandomFrequencies { law: density.law(), sigma };
        let bound = Some((sigma / density.at_zero()).max(1.0));
        Ok(Box::new(Fourier { frequencies, law, bound }))
    })
};

/// Distribution of the frequencies for σ = 1.
#[derive(Clone, Copy, PartialEq)]
enum Density {
    Gaussian,
    Uniform,
    Laplace,
    Cauchy,
}

impl Density {
    fn of(values: &Values<'_>) -> Self {
        match values.text("density").as_deref() {
            Ok("uniform") => Density::Uniform,
            Ok("laplace") => Density::Laplace,
            Ok("cauchy") => Density::Cauchy,
            _ => Density::Gaussian,
        }
    }

    fn sample(self, rng: &mut ChaCha8Rng, count: usize) -> Vec<f64> {
        match self {
            Density::Gaussian => gaussian_vector(rng, count),
            Density::Uniform => uniform_vector(rng, count, -(3f64.sqrt()), 3f64.sqrt()),
            Density::Laplace => {
                let mut exponential = || -> f64 { rng.sample(Exp1) };
                (0..count).map(|_| (exponential() - exponential()) * FRAC_1_SQRT_2).collect()
            }
            Density::Cauchy => {
                let mut normal = || -> f64 { rng.sample(StandardNormal) };
                // Keeps σ times a sample below 2⁴⁹ turns, beyond which sines are NaN.
                (0..count).map(|_| (normal() / normal()).clamp(-1e5, 1e5)).collect()
            }
        }
    }

    fn law(self) -> fn(f64, f64) -> f64 {
        match self {
            Density::Gaussian => theory::rff_law,
            Density::Uniform => theory::uniform_frequencies_law,
            Density::Laplace => theory::laplace_frequencies_law,
            Density::Cauchy => theory::cauchy_frequencies_law,
        }
    }

    /// The density at 0, which is its maximum. For d → ∞, its reciprocal bounds the stable rank.
    fn at_zero(self) -> f64 {
        match self {
            Density::Gaussian => 1.0 / theory::rff_stable_rank(1.0),
            Density::Uniform => 0.5 / 3f64.sqrt(),
            Density::Laplace => FRAC_1_SQRT_2,
            Density::Cauchy => FRAC_1_PI,
        }
    }
}

/// Rejects `torch_skip` without `torch_seed`, `torch_seed` with a density other than gaussian, and fewer frequencies than PyTorch
/// samples in a block.
fn check(values: &Values<'_>) -> Result<(), EmbedderError> {
    let conflict =
        |parameter, reason: String| Err(EmbedderError::conflict(KIND.name, parameter, &reason));
    let has = |name| values.optional_number(name).is_some();
    if has(TORCH_SKIP) && !has(TORCH_SEED) {
        return conflict(
            TORCH_SKIP,
            format!(
                "`{TORCH_SKIP}` requires `{TORCH_SEED}`; set `{TORCH_SEED}` or remove `{TORCH_SKIP}`"
            ),
        );
    }
    if has(TORCH_SEED) && Density::of(values) != Density::Gaussian {
        let reason = format!(
            "`{TORCH_SEED}` requires `density: gaussian`; remove `{TORCH_SEED}` or `density`"
        );
        return conflict("density", reason);
    }
    if has(TORCH_SEED) && values.dimension()? < 2 * BLOCK {
        let least = 2 * BLOCK;
        return conflict(
            "dimension",
            format!(
                "`{TORCH_SEED}` requires a dimension of at least {least}; increase `dimension`"
            ),
        );
    }
    Ok(())
}
