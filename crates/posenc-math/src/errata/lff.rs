//! Checks of the errata in `lff.md`.

use super::numeric::*;
use super::{Error, Finding, Inputs, quantity};
use crate::lff::parameters::{
    self, DetrConvention, ParameterCount, detr_conventions, detr_with_modulator,
    hidden_width_search, reformer_base, table3,
};
use crate::lff::similarity::{FourierFeatures, PositionCode, SineCode, expected_kernel};
use crate::statistics::{mean, sample_std};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

super::checks! {
    kernel_exponent kernel_half width_symbol variance gamma_scale prefactor_layer_norm bare_norm shift_invariance squared_distance
    md_sine
    divergence_blind divergence_symmetry
    table2_average claim_groupings claim_consistent claim_learnability claim_mlp_competitive table5_order table5_hidden_width
    table5_public_code coordinate_order
    feature_width embed_1d reformer_throughput detr_steps detr_counting detr_modulator gamma_captions
}

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
    let measured = sampled(50_000, gamma, &delta, &mut rng)?;
    let wider = sampled(50_000, gamma / 2f64.sqrt(), &delta, &mut rng)?;
    Finding::of([
        quantity("kernel at $\\|\\delta\\| = \\gamma = 3$, relative to zero")
            .decided(printed, measured, 2.0 * expected_kernel(&delta, gamma))
            .tolerance(0.02),
        quantity("the same with variance $2\\gamma^{-2}$")
            .confirmed(wider, printed)
            .tolerance(0.04),
    ])
}

fn kernel_half(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let code = FourierFeatures::draw(768, 2, 1.0, &mut inputs.rng("lff-kernel-half"))?;
    let x = [17.0, 5.0];
    Finding::of([quantity("$r_x\\cdot r_x$, $|F| = 768$")
        .decided(1.0, code.similarity(&x, &x), 0.5)
        .tolerance(1e-12)])
}

fn width_symbol(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let of = |group, metric| inputs.value("lff", "fig3", group, METHOD, metric);
    let (features, width) = (of("sec4-1", "feature_width")?, of("setup", "encoding_width")?);
    let mut rng = inputs.rng("lff-width-symbol");
    let code = FourierFeatures::draw(features as usize, 2, 1.0, &mut rng)?;
    let by_features = code.similarity(&[3.0, 4.0], &[3.0, 4.0]);
    Finding::of([quantity("$r_x\\cdot r_x$ with prefactor $D^{-1/2}$ (printed) and $|F|^{-1/2}$")
        .decided(by_features * features / width, by_features, 0.5)
        .tolerance(1e-9)])
}

fn variance(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("lff-variance");
    let (gamma, delta, exact) = (10.0, [10.0, 0.0], (-0.5f64).exp());
    let deviation = sampled(20_000, gamma, &delta, &mut rng)?;
    let variance = sampled(20_000, gamma * gamma, &delta, &mut rng)?;
    Finding::of([
        quantity("kernel at $\\|\\delta\\| = \\gamma = 10$, standard deviation $1/\\gamma$")
            .confirmed(deviation, exact)
            .tolerance(0.03),
        quantity("the same, standard deviation $\\gamma^{-2}$")
            .refuted(exact, variance)
            .tolerance(0.3),
    ])
}

fn gamma_scale(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("lff-gamma-scale");
    let screen = inputs.value("lff", "table1", "setup", "Fourier-based", "gamma")?;
    let image = inputs.value("lff", "fig3", "setup", METHOD, "gamma")?;
    let mut holds = true;
    let mut quantities = Vec::new();
    for (name, gamma, span, range) in [
        ("end to end of a screen in $[0, 1]$, $\\gamma = 100$", screen, 1.0, 0.999..1.0),
        ("end to end of a screen in $0..99$, $\\gamma = 100$", screen, 99.0, 0.0..0.7),
        (
            "end to end of an image in $[0, 1]$, or neighboring pixels, $\\gamma = 1$",
            image,
            1.0,
            0.0..1.0,
        ),
        ("five pixels apart, $\\gamma = 1$", image, 5.0, 0.0..1e-4),
    ] {
        let measured = sampled(20_000, gamma, &[span], &mut rng)?;
        let exact = 2.0 * expected_kernel(&[span], gamma);
        holds &= (measured - exact).abs() < 0.03 && range.contains(&exact);
        quantities.push(quantity(name).measured(measured).corrected(exact));
    }
    Finding::new(quantities, holds)
}

fn prefactor_layer_norm(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("lff-prefactor-layer-norm");
    let code = FourierFeatures::draw(768, 2, 1.0, &mut rng)?;
    let mut features = vec![0.0; 768];
    code.encode(&[17.0, 5.0], &mut features);
    let unscaled: Vec<f64> = features.iter().map(|v| v * 768f64.sqrt()).collect();
    let moments = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / 768.0;
        (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 768.0)
    };
    let layer_norm = |values: &[f64]| -> Vec<f64> {
        let (mean, variance) = moments(values);
        values.iter().map(|v| (v - mean) / (variance + 1e-6).sqrt()).collect()
    };
    let largest =
        |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let before = largest(&features, &unscaled);
    let after = largest(&layer_norm(&features), &layer_norm(&unscaled));
    let quantities = [
        quantity("largest effect of the prefactor before the norm").measured(before),
        quantity("after the norm, $\\epsilon = 10^{-6}$").measured(after),
        quantity("variance of the scaled features").measured(moments(&features).1),
    ];
    Finding::new(quantities, before > 0.5 && after < 2e-3 && after > 1e-5)
}

fn bare_norm(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("lff-bare-norm");
    let x = [17.0, 5.0];
    let bare = FourierFeatures::draw(768, 2, 1.0, &mut rng)?.similarity(&x, &x).sqrt();
    let square = |_| {
        let weight: f64 = StandardNormal.sample(&mut rng);
        weight * weight
    };
    let learned = (0..768).map(square).sum::<f64>().sqrt();
    let sine = SineCode::new(384, 2, 1e4)?.similarity(&x, &x).sqrt();
    let quantities = [
        quantity("norm of the bare features").confirmed(bare, 0.5f64.sqrt()).tolerance(0.1),
        quantity("norm of Sine-2D, width 768").confirmed(sine, 384f64.sqrt()).tolerance(0.1),
        quantity("norm of a learned table at its start, width 768")
            .confirmed(learned, 768f64.sqrt())
            .tolerance(0.1),
    ];
    Finding::new(quantities, sine.min(learned) > 20.0 * bare)
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
        let unit = |h| {
            let sum: f64 = (0..768).map(|k| r[k] * weights[(k, h)]).sum();
            (sum / 768f64.sqrt()).max(0.0)
        };
        (0..32).map(unit).collect()
    };
    let variation = |map: &dyn Fn([f64; 2]) -> Vec<f64>| {
        let similarity = |column: f64| -> f64 {
            let (a, b) = (map([column, 3.0]), map([column + 1.0, 3.0]));
            a.iter().zip(&b).map(|(a, b)| a * b).sum()
        };
        let values: Vec<f64> = (0..5).map(|k| similarity(12.0 * f64::from(k))).collect();
        Ok::<_, Error>(sample_std(&values)? / mean(&values)?)
    };
    Finding::of([
        quantity("relative variation of the similarity of neighbors, features $r_x$")
            .confirmed(variation(&features)?, 0.0)
            .tolerance(1e-9),
        quantity("the same after a random layer of 32 ReLU units")
            .refuted(0.0, variation(&hidden)?)
            .tolerance(0.05),
    ])
}

fn squared_distance(_: &Inputs<'_>) -> Result<Finding, Error> {
    let difference = [3.0f64, 4.0, 0.0, 0.0];
    let printed: f64 = difference.iter().map(|d| d * d).sum();
    let measured = difference.iter().fold(0.0f64, |norm, d| norm.hypot(*d));
    Finding::of([quantity("distance of $(3, 4, 0, 0)$ to the origin")
        .decided(printed, measured, 5.0)
        .tolerance(1e-12)])
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
    Finding::of([quantity("different codes of the 4,096 pixels")
        .decided(4096.0, codes.len() as f64, 127.0)
        .tolerance(1e-12)])
}

/// Mean and covariance of the rows of a weight matrix with two columns.
struct Moments {
    mean: [f64; 2],
    covariance: [[f64; 2]; 2],
}

impl Moments {
    fn of(rows: &[[f64; 2]]) -> Self {
        let count = rows.len() as f64;
        let mean = [0, 1].map(|c| rows.iter().map(|r| r[c]).sum::<f64>() / count);
        let entry = |a: usize, b: usize| {
            rows.iter().map(|r| (r[a] - mean[a]) * (r[b] - mean[b])).sum::<f64>() / count
        };
        Self { mean, covariance: [[entry(0, 0), entry(0, 1)], [entry(1, 0), entry(1, 1)]] }
    }

    fn pooled_mean(&self) -> f64 {
        0.5 * (self.mean[0] + self.mean[1])
    }

    fn pooled_variance(&self) -> f64 {
        let square = self.covariance[0][0]
            + self.covariance[1][1]
            + self.mean[0] * self.mean[0]
            + self.mean[1] * self.mean[1];
        0.5 * square - self.pooled_mean().powi(2)
    }

    /// Eq. 9 at the target variance that minimizes it.
    fn equation_9_at_its_minimum(&self) -> f64 {
        let (mean, variance) = (self.pooled_mean(), self.pooled_variance());
        let target = variance + mean * mean;
        // At an exact minimum the value can be a negative zero; adding zero makes it positive.
        equation_9(mean, variance, target) + 0.0
    }

    /// KL divergence from a normal distribution with the moments of the rows to $N(0, \bar\sigma^2 I)$,
    /// at the target variance that minimizes it.
    fn full_covariance(&self) -> f64 {
        let [[a, b], [c, d]] = self.covariance;
        let square = self.mean[0] * self.mean[0] + self.mean[1] * self.mean[1];
        let target = 0.5 * (a + d + square);
        0.5 * ((a + d + square) / target - 2.0 + 2.0 * target.ln() - (a * d - b * c).ln())
    }
}

/// $-\frac12(1 - \ln\bar\sigma^2 + \ln\sigma^2 - (\sigma^2+\mu^2)/\bar\sigma^2)$.
fn equation_9(mean: f64, variance: f64, target: f64) -> f64 {
    -0.5 * (1.0 - target.ln() + variance.ln() - (variance + mean * mean) / target)
}

/// Samples 1024 rows and whitens them: the mean is exactly zero and the covariance the identity.
fn white_rows(inputs: &Inputs<'_>, id: &str) -> Vec<[f64; 2]> {
    let draws = normal_matrix(1024, 2, &mut inputs.rng(id));
    let rows: Vec<[f64; 2]> = (0..1024).map(|i| [draws[(i, 0)], draws[(i, 1)]]).collect();
    let Moments { mean, covariance: [[a, _], [b, c]] } = Moments::of(&rows);
    // Inverse of the Cholesky factor [[p, 0], [q, s]] of the covariance.
    let p = a.sqrt();
    let q = b / p;
    let s = (c - q * q).sqrt();
    let whiten = |row: &[f64; 2]| {
        let first = (row[0] - mean[0]) / p;
        [first, (row[1] - mean[1] - q * first) / s]
    };
    rows.iter().map(whiten).collect()
}

fn divergence_blind(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let white = white_rows(inputs, "lff-divergence-blind");
    let map =
        |f: &dyn Fn(&[f64; 2]) -> [f64; 2]| Moments::of(&white.iter().map(f).collect::<Vec<_>>());
    let correlated = map(&|w| [w[0], -0.9 * w[0] + 0.19f64.sqrt() * w[1]]);
    let stretched = map(&|w| [1.8f64.sqrt() * w[0], 0.2f64.sqrt() * w[1]]);
    let shifted = map(&|w| [w[0] + 0.5, w[1] + 0.5]);
    let ratio = shifted.pooled_mean().powi(2) / shifted.pooled_variance();
    let both = |name: &str, moments: &Moments| {
        let (pooled, full) = (moments.equation_9_at_its_minimum(), moments.full_covariance());
        (quantity(name).printed(pooled).corrected(full), pooled < 1e-9 && full > 0.4)
    };
    let (first, is_blind) =
        both("Eq. 9 and full covariance, columns correlated by $-0.9$", &correlated);
    let (second, is_blind_too) =
        both("Eq. 9 and full covariance, axis variances 9 : 1", &stretched);
    let third = quantity("Eq. 9, mean shifted by 0.5")
        .confirmed(shifted.equation_9_at_its_minimum(), 0.5 * ratio.ln_1p())
        .tolerance(1e-9);
    Finding::new([first, second, third], is_blind && is_blind_too)
}

fn divergence_symmetry(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let white = white_rows(inputs, "lff-divergence-symmetry");
    let skewed: Vec<f64> =
        white.iter().flat_map(|w| [w[0] + 0.7, -0.9 * w[0] + 0.19f64.sqrt() * w[1]]).collect();
    let code = FourierFeatures::from_weights(skewed, 2)?;
    let asymmetry = (code.kernel(&[0.6, -0.2]) - code.kernel(&[-0.6, 0.2])).abs();
    let (diagonal, anti) = (code.kernel(&[0.5, 0.5]), code.kernel(&[0.5, -0.5]));
    let quantities = [
        quantity("$|h(\\delta) - h(-\\delta)|$ of a skewed $W_r$")
            .confirmed(asymmetry, 0.0)
            .tolerance(1e-12),
        quantity("similarity along the diagonal").measured(diagonal),
        quantity("similarity along the anti-diagonal, same distance").measured(anti),
    ];
    Finding::new(quantities, (diagonal - anti).abs() > 0.1)
}

/// Metric keys and the names printed in the paper.
const METRICS: [(&str, &str); 6] = [
    ("bleu_1", "BLEU-1"),
    ("bleu_2", "BLEU-2"),
    ("rouge", "ROUGE"),
    ("cider", "CIDEr"),
    ("meteor", "METEOR"),
    ("spice", "SPICE"),
];

const GROUPINGS: [&str; 3] = ["1/4", "2/2", "4/1"];

/// A value of Table 1 of a method with learned frequencies.
fn learned(inputs: &Inputs<'_>, grouping: &str, metric: &str) -> Result<f64, Error> {
    let method = format!("Learnable-Fourier+MLP-{grouping}");
    inputs.value("lff", "table1", "learned", &method, metric)
}

/// A value of Table 1 of a method with fixed frequencies.
fn fixed(inputs: &Inputs<'_>, grouping: &str, metric: &str) -> Result<f64, Error> {
    inputs.value("lff", "table1", "fixed", &format!("Fixed-Fourier+MLP-{grouping}"), metric)
}

fn table2_average(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let count = |metric: &str| inputs.value("lff", "table2", "counts", "all", metric);
    let (seen, unseen) = (count("seen_widgets")?, count("unseen_widgets")?);
    let mut quantities = Vec::new();
    let mut holds = true;
    // Rounding accounts for 0.05 in each table.
    for (group, method, gap) in [
        ("baseline", "Embed-4D", 0.0..0.15),
        ("baseline", "Sine-4D", 0.0..0.15),
        ("learned", "Learnable-Fourier+MLP-4/1", 1.0..f64::INFINITY),
    ] {
        let part = |metric: &str| inputs.value("lff", "table2", "widgets", method, metric);
        let mean = (seen * part("cider_seen")? + unseen * part("cider_unseen")?) / (seen + unseen);
        let printed = inputs.value("lff", "table1", group, method, "cider")?;
        holds &= gap.contains(&(mean - printed).abs());
        let name = format!("CIDEr (× 100) of {method}: Table 1, and from Table 2");
        quantities.push(quantity(name).printed(printed).corrected(mean));
    }
    Finding::new(quantities, holds)
}

fn claim_groupings(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut quantities = Vec::new();
    let mut lost = false;
    for (metric, name) in METRICS {
        let gain = learned(inputs, "2/2", metric)? - learned(inputs, "1/4", metric)?;
        lost |= gain < 0.0;
        quantities.push(quantity(format!("{name} (× 100), 2/2 minus 1/4")).printed(gain));
    }
    Finding::new(quantities, lost)
}

fn claim_consistent(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let (mut won, mut tied, mut lost) = (0.0, 0.0, 0.0);
    let mut best = [f64::MIN; 2];
    for grouping in GROUPINGS {
        for (metric, _) in METRICS {
            let [ours, theirs] =
                [learned(inputs, grouping, metric)?, fixed(inputs, grouping, metric)?];
            match ours.total_cmp(&theirs) {
                std::cmp::Ordering::Greater => won += 1.0,
                std::cmp::Ordering::Equal => tied += 1.0,
                std::cmp::Ordering::Less => lost += 1.0,
            }
            if metric == "spice" {
                best = [best[0].max(ours), best[1].max(theirs)];
            }
        }
    }
    let baseline = |method| inputs.value("lff", "table1", "baseline", method, "spice");
    let joint = learned(inputs, "1/4", "spice")?;
    let (embedded, quoted) = (baseline("Embed-4D")?, baseline("SOTA")?);
    let quantities = [
        ("SPICE (× 100) of Learnable-Fourier+MLP-1/4", joint),
        ("SPICE (× 100) of Embed-4D", embedded),
        ("SPICE (× 100) of the quoted original", quoted),
        ("comparisons of learned with fixed, won", won),
        ("tied", tied),
        ("lost", lost),
        ("best SPICE (× 100), learned", best[0]),
        ("best SPICE (× 100), fixed", best[1]),
    ]
    .map(|(name, value)| quantity(name).printed(value));
    Finding::new(quantities, joint < embedded.min(quoted) && lost > 0.0 && best[1] > best[0])
}

fn claim_learnability(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let fixed = fixed(inputs, "2/2", "cider")?;
    let name = "CIDEr (× 100) of Fixed-Fourier+MLP-2/2";
    let mut quantities = vec![quantity(name).printed(fixed)];
    let mut holds = true;
    for grouping in GROUPINGS {
        let value = learned(inputs, grouping, "cider")?;
        holds &= grouping == "4/1" || fixed > value;
        let name = format!("CIDEr (× 100) of Learnable-Fourier+MLP-{grouping}");
        quantities.push(quantity(name).printed(value));
    }
    Finding::new(quantities, holds)
}

fn claim_mlp_competitive(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    // The encodings of the detector that Section 4.2 names.
    let named = [METHOD, "Normalized Sine-2D", "Unnormalized Sine-2D", "Embed-2D"];
    let size = |method: &str| inputs.value("lff", "table4", "detr", method, "params");
    let listed = named.iter().filter(|method| size(method).is_ok()).count();
    let quantities = [
        quantity("size of the detector with an MLP (Table 4)").printed(size("MLP")?).unit("M"),
        quantity("encodings of Table 4 that Section 4.2 names").printed(listed as f64),
    ];
    Finding::new(quantities, listed == named.len())
}

fn table5_order(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let size = |method: &str| inputs.value("lff", "table5", "widget-captioning", method, "params");
    let fixed = size("Fixed-Fourier+MLP-2/2")?;
    let learned = size("Learnable-Fourier+MLP-2/2")?;
    let features = inputs.value("lff", "table1", "setup", "Fourier-based-2/2", "feature_width")?;
    let extra = features / 2.0 * 2.0;
    let quantities = [quantity("parameters of learned minus fixed, 2/2")
        .printed((1e6 * (learned - fixed)).round())
        .corrected(extra)];
    Finding::new(quantities, learned < fixed && extra > 0.0)
}

fn table5_hidden_width(_: &Inputs<'_>) -> Result<Finding, Error> {
    let search = hidden_width_search();
    let quantities = [
        ("assignments of $|H|$ tried, with and without norms", search.tried),
        ("of them, fitting all rows", search.fit_all),
        ("fitting all rows but Learnable-Fourier+MLP-2/2", search.fit_without_learned),
        ("fitting all rows but Fixed-Fourier+MLP-2/2", search.fit_without_fixed),
        ("of the last two, with one common $|H|$", search.common_width),
    ]
    .map(|(name, value)| quantity(name).measured(value as f64));
    let holds = search.fit_all == 0 && search.fit_without_learned > 0 && search.common_width == 0;
    Finding::new(quantities, holds)
}

fn table5_public_code(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let printed = inputs.value("lff", "table5", "widget-captioning", "Embed-4D", "params")?;
    let count = parameters::table5_public_code().total as f64 / 1e6;
    Finding::of([quantity("trainable parameters")
        .refuted(printed, count)
        .tolerance(0.01)
        .unit("M")])
}

fn coordinate_order(_: &Inputs<'_>) -> Result<Finding, Error> {
    // Two boxes with the same top-left corner and different bottom-right corners. With a grouping by
    // corners, both have the same first group.
    let first_group = |tensor: [f64; 4]| [tensor[0], tensor[1]];
    let public = |[left, top, right, bottom]: [f64; 4]| [left, right, top, bottom];
    let reordered = |[left, top, right, bottom]: [f64; 4]| [top, left, bottom, right];
    let (a, b) = ([10.0, 20.0, 30.0, 40.0], [10.0, 20.0, 70.0, 90.0]);
    let change = |order: &dyn Fn([f64; 4]) -> [f64; 4]| {
        let (p, q) = (first_group(order(a)), first_group(order(b)));
        (p[0] - q[0]).hypot(p[1] - q[1])
    };
    let name = "change of the first group when only the right bottom corner moves, public order";
    Finding::of([
        quantity(name).refuted(0.0, change(&public)).tolerance(1.0),
        quantity("the same, reordered to [top, left, bottom, right]")
            .confirmed(change(&reordered), 0.0),
    ])
}

const METHOD: &str = "Learnable-Fourier + MLP";

fn find<'a>(rows: &'a [ParameterCount], method: &str) -> Result<&'a ParameterCount, Error> {
    rows.iter()
        .find(|row| row.method == method)
        .ok_or_else(|| Error(format!("no row for method '{method}'")))
}

fn feature_width(_: &Inputs<'_>) -> Result<Finding, Error> {
    let rows = table3();
    let (wide, narrow) = (find(&rows, METHOD)?, &parameters::narrow_features());
    // Parameters of the encoding alone: the modulator with its layer norms, and the frequencies, without the color embedding.
    let parameters = |row: &ParameterCount, names: &[&str]| {
        let own = row.modules.iter().filter(|module| names.contains(&module.name));
        own.map(|module| module.count()).sum::<u64>() as f64
    };
    let encoder = ["modulator", "norms of the modulator", "frequencies"];
    let reference = parameters(find(&rows, "Embed-2D")?, &["row and column tables"]);
    let excess = |row: &ParameterCount| 100.0 * (parameters(row, &encoder) / reference - 1.0);
    let size = |name: &str, row: &ParameterCount| {
        quantity(name).printed(wide.printed).measured(row.total as f64 / 1e6).unit("M")
    };
    let quantities = [
        size("size with $|F| = 768$", wide),
        size("size with $|F| = 384$", narrow),
        quantity("encoder relative to Embed-2D, $|F| = 768$").measured(excess(wide)).unit("%"),
        quantity("encoder relative to Embed-2D, $|F| = 384$").measured(excess(narrow)).unit("%"),
    ];
    let holds =
        wide.matches && narrow.matches && excess(wide).abs() < 10.0 && excess(narrow) < -20.0;
    Finding::new(quantities, holds)
}

fn embed_1d(_: &Inputs<'_>) -> Result<Finding, Error> {
    let rows = table3();
    let (sub_pixels, pixels) = (find(&rows, "Embed-1D")?, parameters::table_per_pixel());
    let quantities = [
        quantity("size with one vector per pixel")
            .printed(pixels.printed)
            .measured(pixels.rounded)
            .unit("M"),
        quantity("size with one vector per sub-pixel")
            .measured(sub_pixels.rounded)
            .corrected(sub_pixels.printed)
            .unit("M"),
    ];
    Finding::new(quantities, sub_pixels.matches && !pixels.matches)
}

fn reformer_throughput(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let setup = |metric: &str| inputs.value("lff", "fig3", "setup", "all", metric);
    let cores = setup("cores")?;
    let images = setup("images_per_core")? * cores;
    let weights: u64 = reformer_base()
        .iter()
        .filter(|m| !m.name.contains("table") && !m.name.contains("output norm"))
        .map(|m| m.count())
        .sum();
    // Six floating-point operations per weight and token: two forward, four backward.
    let tokens = setup("sequence_length")?;
    let work = |images: f64| 6.0 * weights as f64 * images * tokens;
    let seconds = 3600.0 * setup("training_time")? / setup("training_steps")?;
    let peak = 22.5e12 * cores;
    let utilization = |images: f64| work(images) / (seconds * peak);
    let quantities = [
        quantity("time of a step").measured(seconds).unit("s"),
        quantity("work of a step, dense layers only, 8 images per core")
            .measured(work(images) / 1e15)
            .unit("PFLOP"),
        quantity("share of the peak, 8 images per core").measured(utilization(images)),
        quantity("share of the peak, 1 image per core").measured(utilization(cores)),
    ];
    Finding::new(quantities, utilization(images) > 1.5 && utilization(cores) < 0.5)
}

fn detr_steps(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let steps = |group: &str| inputs.value("lff", "fig4", group, "DETR", "training_steps");
    let (caption, appendix) = (steps("caption")?, steps("appendix-b")?);
    let images = 118_287.0;
    let per_epoch = images / inputs.value("lff", "fig4", "setup", "DETR", "batch")?;
    Finding::of([
        quantity("steps: caption, and Appendix B").refuted(caption, appendix).tolerance(0.05),
        quantity("epochs: caption, and Appendix B")
            .refuted(caption / per_epoch, appendix / per_epoch)
            .tolerance(0.05),
    ])
}

fn detr_counting(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let printed = inputs.value("lff", "table4", "detr", "Normalized Sine-2D", "params")?;
    let plain_network = 2.0 * 256.0 + 256.0 + 256.0 * 256.0 + 256.0;
    let mut fitting = Vec::new();
    let mut quantities = Vec::new();
    for (convention, size) in detr_conventions() {
        // Sine-2D adds no parameters; the plain MLP on coordinates adds the most.
        let rounds = |count: f64| (count / 1e5).round() / 10.0 == printed;
        if rounds(size as f64) && rounds(size as f64 + plain_network) {
            fitting.push(convention);
        }
        let name = match convention {
            DetrConvention::Trained => "trained weights",
            DetrConvention::Weights => "all weights",
            DetrConvention::WithScaleAndBias => "weights, scale and bias of batch norm",
            DetrConvention::WithStatistics => "with the running statistics",
        };
        for (row, extra) in [("Sine-2D", 0.0), ("MLP", plain_network)] {
            let own = quantity(format!("{name}, {row}")).printed(printed);
            quantities.push(own.measured((size as f64 + extra) / 1e6).unit("M"));
        }
    }
    Finding::new(quantities, fitting == [DetrConvention::WithScaleAndBias])
}

fn detr_modulator(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let printed = inputs.value("lff", "table4", "detr", METHOD, "params")?;
    let rows = [256, 128, 32].map(|hidden| (hidden, detr_with_modulator(256, hidden)));
    let holds = rows.each_ref().map(|(_, row)| row.matches) == [false, true, true];
    let quantities = rows.map(|(hidden, row)| {
        let own = quantity(format!("size with the modulator 256 → {hidden} → 256"));
        own.printed(printed).measured(row.total as f64 / 1e6).unit("M")
    });
    Finding::new(quantities, holds)
}

fn gamma_captions(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let gamma = |item, method| inputs.value("lff", item, "setup", method, "gamma");
    let text = gamma("table1", "Fourier-based")?;
    let fig8 = gamma("fig8", "Learnable-Fourier+MLP-2/2")?;
    let fig9 = gamma("fig9", "Learnable-Fourier+MLP-2/2 + KL")?;
    let quantities = [
        quantity("$\\gamma$ under Figure 8, and in Appendix B").refuted(fig8, text).tolerance(0.1),
        quantity("$\\gamma$ under Figure 9, and in Appendix B").refuted(fig9, text).tolerance(0.1),
    ];
    Finding::new(quantities, fig8 != fig9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tolerance::{Tolerance, assert_close};

    /// Catches a sign or normalization error in Eq. 9 or in the full-covariance version.
    #[test]
    fn divergences_of_normal_laws() {
        let density = |x: f64, mean: f64, variance: f64| {
            (-(x - mean).powi(2) / (2.0 * variance)).exp()
                / (std::f64::consts::TAU * variance).sqrt()
        };
        let integral = simpson(-8.0, 8.0, 2000, |x| {
            let p = density(x, 0.3, 0.5);
            p * (p / density(x, 0.0, 2.0)).ln()
        });
        assert_close(equation_9(0.3, 0.5, 2.0), integral, Tolerance::relative(1e-9));
        // Independent columns with one target variance: the divergence is the sum of two scalar terms.
        let moments = Moments { mean: [0.0, 0.0], covariance: [[2.0, 0.0], [0.0, 0.5]] };
        let sum = equation_9(0.0, 2.0, 1.25) + equation_9(0.0, 0.5, 1.25);
        assert_close(moments.full_covariance(), sum, Tolerance::relative(1e-12));
    }

    /// Catches an encoder that is counted without its layer norms: Algorithm 1 with norms has 52,320 and 38,880 parameters.
    #[test]
    fn the_encoder_includes_its_layer_norms() {
        let none = |_: &str, _: &str, _: &str, _: &str, _: &str, _: Option<f64>| None;
        let finding = feature_width(&Inputs { published: &none, seed: 0 }).unwrap();
        for (quantity, parameters) in finding.quantities[2..].iter().zip([52_320.0, 38_880.0]) {
            let excess = 100.0 * (parameters / 49_152.0 - 1.0);
            assert_close(quantity.measured.unwrap(), excess, Tolerance::relative(1e-12));
        }
    }
}
