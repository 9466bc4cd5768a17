//! Random Fourier features (`rethinking` Prop. 3, `trading` Eq. 52 as its code has it).
//!
//! `d/2` frequencies `b_j ~ σ N(0, 1)`, drawn in order from the generator; sines and then cosines.
//! For d → ∞ `D(Δ) = exp(-2π²σ²Δ²)` and the stable rank is `min(N, √(2π) σ)`; at finite d it is well
//! below.
//!
//! With `torch_seed`, the frequencies are those of a PyTorch script: `torch.randn(d/2)` on the CPU after
//! `torch.manual_seed(torch_seed)` and `torch_skip` other random numbers.

use super::{
    EmbedderError,
    fourier::{Fourier, Law},
    kind::{CodeDistance, Family, FitDefaults, FitParameter, FitUnit, Kind},
    registry::{DefaultValue, EVEN_DIMENSION, Parameter, Rule, SCALING, Values},
};
use crate::torch_random::{BLOCK, TorchGenerator};
use crate::{random::gaussian_vector, theory};

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
        SCALING,
        Parameter::optional(
            TORCH_SEED,
            Rule::Multiple { step: 1, most: u32::MAX },
            "samples the frequencies as PyTorch does on a CPU after `torch.manual_seed`; needs a dimension of at least 32",
        ),
        Parameter::optional(
            TORCH_SKIP,
            Rule::Multiple { step: 1, most: u32::MAX },
            "with `torch_seed`: count of random numbers that the script samples before",
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
        let sigma = values.number("sigma")?;
        let count = values.dimension()? / 2;
        let mut frequencies = match values.optional_number(TORCH_SEED) {
            Some(seed) => {
                let mut generator = TorchGenerator::new(seed as u32);
                generator.skip(values.optional_number(TORCH_SKIP).unwrap_or(0.0) as u64);
                generator.normals(count)
            }
            None => gaussian_vector(rng, count),
        };
        for frequency in &mut frequencies {
            *frequency *= sigma;
        }
        let bound = theory::rff_stable_rank(sigma).max(1.0);
        Ok(Box::new(Fourier::new(frequencies, Law::GaussianFrequencies { sigma }, Some(bound))))
    })
};

/// Refuses a count without a seed, and fewer numbers than PyTorch samples in blocks.
fn check(values: &Values<'_>) -> Result<(), EmbedderError> {
    let conflict = |parameter: &str, reason: String| {
        Err(EmbedderError::Conflict { kind: KIND.name, parameter: parameter.to_owned(), reason })
    };
    let has = |name| values.optional_number(name).is_some();
    if has(TORCH_SKIP) && !has(TORCH_SEED) {
        return conflict(
            TORCH_SKIP,
            format!("`{TORCH_SKIP}` needs `{TORCH_SEED}`; set it or leave out both"),
        );
    }
    if has(TORCH_SEED) && values.dimension()? < 2 * BLOCK {
        let least = 2 * BLOCK;
        return conflict(
            "dimension",
            format!("`{TORCH_SEED}` needs a dimension of at least {least}; raise it"),
        );
    }
    Ok(())
}
