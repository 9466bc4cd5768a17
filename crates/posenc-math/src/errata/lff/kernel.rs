//! The Fourier features and their kernel (Section 3, Eqs. 2 to 5, Algorithm 1).

use crate::errata::numeric::*;
use crate::errata::{Erratum, Error, Finding, Inputs, Quantity, Severity};
use crate::lff::similarity::{FourierFeatures, PositionCode, SineCode, expected_kernel};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

pub(super) static ERRATA: &[Erratum] = &[
    Erratum {
        id: "lff-kernel-exponent",
        place: "Eqs. 3 and 4",
        severity: Severity::Mathematical,
        printed: "For $W_r \\sim N(0, \\gamma^{-2})$, $r_x\\cdot r_y \\approx \\exp(-\\|x-y\\|^2/\\gamma^2)$.",
        correct: "The mean of $\\cos w\\cdot\\delta$ is the characteristic function \
                  $\\exp(-\\|\\delta\\|^2/2\\gamma^2)$, so $\\gamma$ is the standard deviation of the kernel. The \
                  printed kernel requires variance $2\\gamma^{-2}$.",
        consequence: "The initialization is kept as printed, since the experiments used it. The formula is \
                      corrected.",
        check: kernel_exponent,
    },
    Erratum {
        id: "lff-kernel-half",
        place: "Eqs. 2 and 4",
        severity: Severity::Mathematical,
        printed: "With the prefactor $D^{-1/2}$ of Eq. 2, Eq. 4 implies $r_x\\cdot r_x \\approx 1$.",
        correct: "The $D$ features have only $D/2$ frequencies, so $r_x\\cdot r_x = \\frac12$ for every $x$ and \
                  every $W_r$. A kernel of 1 at zero requires the prefactor $\\sqrt{2/D}$.",
        consequence: "Heatmaps are shown relative to the center.",
        check: kernel_half,
    },
    Erratum {
        id: "lff-width-symbol",
        place: "Eq. 2 vs. Algorithm 1",
        severity: Severity::Ambiguous,
        printed: "$D$ is the number of features in Eq. 2 but the width of the encoding in Eq. 1 and Algorithm 1. \
                  Algorithm 1 denotes the number of features by $|F|$.",
        correct: "The prefactor is $|F|^{-1/2}$. With $|F| = 384$ and $D = 768$ (Section 4.1), the prefactor \
                  $D^{-1/2}$ halves the kernel once more.",
        consequence: "The reproduction uses the prefactor $|F|^{-1/2}$.",
        check: width_symbol,
    },
    Erratum {
        id: "lff-variance",
        place: "Eq. 3",
        severity: Severity::Ambiguous,
        printed: "$W_r \\sim N(0, \\gamma^{-2})$",
        correct: "By Eq. 4, the second argument is the variance. Community code reads it as the standard deviation, \
                  which makes the kernel $\\gamma^2$ wide instead of $\\gamma$.",
        consequence: "Entries are sampled with standard deviation $1/\\gamma$.",
        check: variance,
    },
    Erratum {
        id: "lff-gamma-scale",
        place: "Sec. 4, App. B: values of $\\gamma$",
        severity: Severity::Ambiguous,
        printed: "The paper uses $\\gamma = 1$ for images and $\\gamma = 100$ for screens, without the unit of the \
                  coordinates.",
        correct: "The effect of $\\gamma$ depends on this unit. With screen coordinates in $[0, 1]$, $\\gamma = 100$ \
                  makes all positions alike. With image coordinates in $[0, 1]$, $\\gamma = 1$ leaves opposite edges \
                  at 0.61 of the maximum. With pixel coordinates, $\\gamma = 1$ reaches only about two pixels. With \
                  screen coordinates in $0..99$, $\\gamma = 100$ is meaningful.",
        consequence: "The reproduction uses pixels for images and $0..99$ for screens, and states the unit with \
                      every result.",
        check: gamma_scale,
    },
    Erratum {
        id: "lff-prefactor-layer-norm",
        place: "Algorithm 1, line 1, with App. B",
        severity: Severity::Ambiguous,
        printed: "The features have a prefactor, and LayerNorm follows them if there is an MLP modulator.",
        correct: "LayerNorm cancels the prefactor except for the effect of its $\\epsilon$, which is not stated. At \
                  $|F| = 768$ the variance of the scaled features is only $6.5\\cdot10^{-4}$.",
        consequence: "The reproduction uses $\\epsilon = 10^{-6}$ and states it with the results.",
        check: prefactor_layer_norm,
    },
    Erratum {
        id: "lff-bare-norm",
        place: "Fig. 3(d), Fig. 7: variants without MLP modulator",
        severity: Severity::Ambiguous,
        printed: "Fourier features perform worse without the MLP modulator than with it.",
        correct: "Without the modulator, their feature norm is also much smaller than that of any other encoding \
                  that is added to the content embedding. The norm alone might explain the difference.",
        consequence: "An ablation multiplies the bare features by $\\sqrt{|F|}$.",
        check: bare_norm,
    },
    Erratum {
        id: "lff-shift-invariance",
        place: "Secs. 1 and 3: inner products of the encodings",
        severity: Severity::Ambiguous,
        printed: "\"The encoding function is learnable and is initialized in such a way that the inner products of \
                  our positional encodings approximate Euclidean distances.\"",
        correct: "The statement holds if \"positional encodings\" means the features $r_x$: their inner products \
                  approximate a decreasing function of the distance (Eq. 4). It does not hold for the output $PE_x$ \
                  of the modulator, whose inner products are not a function of $x-y$.",
        consequence: "Heat maps show the similarity of the features, before the modulator. The page of Algorithm 1 \
                      reports how much inner products change with the place, for the features and after the \
                      modulator.",
        check: shift_invariance,
    },
    Erratum {
        id: "lff-squared-distance",
        place: "Sec. 3, MLP layer",
        severity: Severity::Typographic,
        printed: "\"The $L_2$ distance between the two positions $\\sum_{i=1}^4 (x_i - y_i)^2$\"",
        correct: "The sum is the squared distance.",
        consequence: "None.",
        check: squared_distance,
    },
    Erratum {
        id: "lff-md-sine",
        place: "Sec. 4.1: Transformer MD-Sine",
        severity: Severity::Ambiguous,
        printed: "Transformer MD-Sine works \"by combining the constant frequencies of two positional dimensions \
                  (vertical and horizontal) before applying sinusoidal functions\".",
        correct: "If the phases $\\omega_k x$ and $\\omega_k y$ are added, the encoding depends on $x + y$ alone. \
                  The 4,096 pixels then have only 127 distinct encodings, which would explain the poor result. Pairs \
                  of frequencies, $\\omega_i x + \\omega_j y$, would not have this problem.",
        consequence: "The reproduction runs both readings.",
        check: md_sine,
    },
];

/// Normalized similarity at displacement `delta` for `frequencies` newly sampled frequencies with standard
/// deviation 1/`gamma`.
fn sampled(
    frequencies: usize,
    gamma: f64,
    delta: &[f64],
    rng: &mut ChaCha8Rng,
) -> Result<f64, Error> {
    let code = FourierFeatures::draw(2 * frequencies, delta.len(), gamma, rng)?;
    Ok(2.0 * code.kernel(delta))
}

fn kernel_exponent(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("lff-kernel-exponent");
    let (gamma, delta) = (3.0, [3.0, 0.0]);
    let printed = (-1f64).exp();
    let quantities = vec![
        Quantity::new("kernel at $\\|\\delta\\| = \\gamma = 3$, relative to zero")
            .printed(printed)
            .measured(sampled(50_000, gamma, &delta, &mut rng)?)
            .corrected(2.0 * expected_kernel(&delta, gamma)),
        Quantity::new("the same with variance $2\\gamma^{-2}$")
            .measured(sampled(50_000, gamma / 2f64.sqrt(), &delta, &mut rng)?)
            .corrected(printed),
    ];
    let holds = quantities[0].decides(0.02) && quantities[1].is_corrected(0.04);
    Ok(Finding { quantities, holds })
}

fn kernel_half(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("lff-kernel-half");
    let code = FourierFeatures::draw(768, 2, 1.0, &mut rng)?;
    let x = [17.0, 5.0];
    let quantity = Quantity::new("$r_x\\cdot r_x$, $|F| = 768$")
        .printed(1.0)
        .measured(code.similarity(&x, &x))
        .corrected(0.5);
    Finding::decided(vec![quantity], 1e-12)
}

fn width_symbol(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let features =
        inputs.value("lff", "fig3", "sec4-1", "Learnable-Fourier + MLP", "feature_width")?;
    let width =
        inputs.value("lff", "fig3", "setup", "Learnable-Fourier + MLP", "encoding_width")?;
    let mut rng = inputs.rng("lff-width-symbol");
    let code = FourierFeatures::draw(features as usize, 2, 1.0, &mut rng)?;
    let by_features = code.similarity(&[3.0, 4.0], &[3.0, 4.0]);
    let quantity =
        Quantity::new("$r_x\\cdot r_x$ with prefactor $D^{-1/2}$ (printed) and $|F|^{-1/2}$")
            .printed(by_features * features / width)
            .measured(by_features)
            .corrected(0.5);
    Finding::decided(vec![quantity], 1e-9)
}

fn variance(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("lff-variance");
    let (gamma, delta) = (10.0, [10.0, 0.0]);
    let quantities = vec![
        Quantity::new("kernel at $\\|\\delta\\| = \\gamma = 10$, standard deviation $1/\\gamma$")
            .measured(sampled(20_000, gamma, &delta, &mut rng)?)
            .corrected((-0.5f64).exp()),
        Quantity::new("the same, standard deviation $\\gamma^{-2}$")
            .printed((-0.5f64).exp())
            .measured(sampled(20_000, gamma * gamma, &delta, &mut rng)?),
    ];
    let holds = quantities[0].is_corrected(0.03) && quantities[1].refutes_printed(0.3);
    Ok(Finding { quantities, holds })
}

fn gamma_scale(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("lff-gamma-scale");
    let gamma = inputs.value("lff", "table1", "setup", "Fourier-based", "gamma")?;
    let image = inputs.value("lff", "fig3", "setup", "Learnable-Fourier + MLP", "gamma")?;
    let mut row = |name: &str, gamma: f64, span: f64| {
        Ok::<_, Error>(
            Quantity::new(name)
                .measured(sampled(20_000, gamma, &[span], &mut rng)?)
                .corrected(2.0 * expected_kernel(&[span], gamma)),
        )
    };
    let quantities = vec![
        row("end to end of a screen in $[0, 1]$, $\\gamma = 100$", gamma, 1.0)?,
        row("end to end of a screen in $0..99$, $\\gamma = 100$", gamma, 99.0)?,
        row(
            "end to end of an image in $[0, 1]$, or neighboring pixels, $\\gamma = 1$",
            image,
            1.0,
        )?,
        row("five pixels apart, $\\gamma = 1$", image, 5.0)?,
    ];
    let sampled_right = quantities
        .iter()
        .all(|q| matches!((q.measured, q.corrected), (Some(m), Some(c)) if (m - c).abs() < 0.03));
    let values: Vec<f64> = quantities.iter().filter_map(|q| q.corrected).collect();
    let holds = sampled_right && values[0] > 0.999 && values[1] < 0.7 && values[3] < 1e-4;
    Ok(Finding { quantities, holds })
}

fn layer_norm(values: &[f64]) -> Vec<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
    values.iter().map(|v| (v - mean) / (variance + 1e-6).sqrt()).collect()
}

fn prefactor_layer_norm(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("lff-prefactor-layer-norm");
    let code = FourierFeatures::draw(768, 2, 1.0, &mut rng)?;
    let mut features = vec![0.0; 768];
    code.encode(&[17.0, 5.0], &mut features);
    let unscaled: Vec<f64> = features.iter().map(|v| v * 768f64.sqrt()).collect();
    let (a, b) = (layer_norm(&features), layer_norm(&unscaled));
    let largest = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let before = features.iter().zip(&unscaled).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let mean = features.iter().sum::<f64>() / 768.0;
    let power = features.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 768.0;
    let quantities = vec![
        Quantity::new("largest effect of the prefactor before the norm").measured(before),
        Quantity::new("after the norm, $\\epsilon = 10^{-6}$").measured(largest),
        Quantity::new("variance of the scaled features").measured(power),
    ];
    let holds = before > 0.5 && largest < 2e-3 && largest > 1e-5;
    Ok(Finding { quantities, holds })
}

fn bare_norm(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("lff-bare-norm");
    let x = [17.0, 5.0];
    let fourier = FourierFeatures::draw(768, 2, 1.0, &mut rng)?;
    let learned: f64 = (0..768)
        .map(|_| {
            let weight: f64 = StandardNormal.sample(&mut rng);
            weight * weight
        })
        .sum();
    let sine = SineCode::figure2();
    let row =
        |name: &str, value: f64, exact: f64| Quantity::new(name).measured(value).corrected(exact);
    let quantities = vec![
        row("norm of the bare features", fourier.similarity(&x, &x).sqrt(), 0.5f64.sqrt()),
        row("norm of Sine-2D, width 768", sine.similarity(&x, &x).sqrt(), 384f64.sqrt()),
        row("norm of a learned table at its start, width 768", learned.sqrt(), 768f64.sqrt()),
    ];
    let norms: Vec<f64> = quantities.iter().filter_map(|q| q.measured).collect();
    let holds =
        quantities.iter().all(|q| q.is_corrected(0.1)) && norms[1].min(norms[2]) > 20.0 * norms[0];
    Ok(Finding { quantities, holds })
}

fn shift_invariance(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("lff-shift-invariance");
    let code = FourierFeatures::draw(768, 2, 1.0, &mut rng)?;
    // The modulator's first layer at initialization: 32 units, weights N(0, 1/|F|).
    let weights = normal_matrix(768, 32, &mut rng);
    let features = |x: [f64; 2]| {
        let mut r = vec![0.0; 768];
        code.encode(&x, &mut r);
        r
    };
    let hidden = |x: [f64; 2]| -> Vec<f64> {
        let r = features(x);
        (0..32)
            .map(|h| {
                let sum: f64 = (0..768).map(|k| r[k] * weights[(k, h)]).sum();
                (sum / 768f64.sqrt()).max(0.0)
            })
            .collect()
    };
    let variation = |map: &dyn Fn([f64; 2]) -> Vec<f64>| {
        let similarity = |column: f64| -> f64 {
            let (a, b) = (map([column, 3.0]), map([column + 1.0, 3.0]));
            a.iter().zip(&b).map(|(a, b)| a * b).sum()
        };
        let values: Vec<f64> = (0..5).map(|k| similarity(12.0 * f64::from(k))).collect();
        let (mean, deviation) = mean_and_deviation(&values);
        deviation / mean
    };
    let quantities = vec![
        Quantity::new("relative variation of the similarity of neighbors, features $r_x$")
            .measured(variation(&features))
            .corrected(0.0),
        Quantity::new("the same after a random layer of 32 ReLU units")
            .printed(0.0)
            .measured(variation(&hidden)),
    ];
    let holds = quantities[0].is_corrected(1e-9) && quantities[1].refutes_printed(0.05);
    Ok(Finding { quantities, holds })
}

fn squared_distance(_: &Inputs<'_>) -> Result<Finding, Error> {
    let difference = [3.0f64, 4.0, 0.0, 0.0];
    let printed: f64 = difference.iter().map(|d| d * d).sum();
    let measured = difference.iter().fold(0.0f64, |norm, d| norm.hypot(*d));
    let quantity = Quantity::new("distance of $(3, 4, 0, 0)$ to the origin")
        .printed(printed)
        .measured(measured)
        .corrected(5.0);
    Finding::decided(vec![quantity], 1e-12)
}

fn md_sine(_: &Inputs<'_>) -> Result<Finding, Error> {
    let code = SineCode::new(768, 1, 1e4)?;
    let mut out = vec![0.0; 768];
    let mut codes: Vec<Vec<u64>> = Vec::new();
    for row in 0..64 {
        for column in 0..64 {
            // Adding the phases of both axes yields the encoding of one coordinate, row + column.
            code.encode(&[f64::from(row) + f64::from(column)], &mut out);
            codes.push(out[..8].iter().map(|v| v.to_bits()).collect());
        }
    }
    codes.sort();
    codes.dedup();
    let quantity = Quantity::new("different codes of the 4,096 pixels")
        .printed(4096.0)
        .measured(codes.len() as f64)
        .corrected(127.0);
    Finding::decided(vec![quantity], 1e-12)
}
