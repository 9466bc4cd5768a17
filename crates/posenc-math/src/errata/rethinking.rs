//! Checks of the errata in `rethinking.md`.

use super::numeric::*;
use super::{Error, Finding, Inputs, quantity};
use crate::fourier::of_real;
use crate::statistics::{mean, sample_std};
use crate::theory::{gaussian_stable_rank, rff_stable_rank};
use faer::Mat;
use std::f64::consts::{LN_10, PI, SQRT_2, TAU};

super::checks! {
    prop1_rank prop2_factor min_envelope sufficient_dimension eq11_scale prop3_spectrum prop3_finite_dimension prop3_two_pi
    eq17_density eq18_sign sigma_product
    fig1_two_values eq5_similarity eq6_step eq6_bandlimited sine_rank square_rank square_bandlimited
    sigma_roles interval fig8_order fig8_layers fig11_k
    learning_rates ten_rows
}

fn prop1_rank(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("rethinking-prop1-rank");
    let n = 6;
    let target = normal_matrix(n, 1, &mut rng);
    let with_bias = |x: &Mat<f64>| {
        Mat::from_fn(n, x.ncols() + 1, |i, j| if j < x.ncols() { x[(i, j)] } else { 1.0 })
    };
    let generic = normal_matrix(n, n - 1, &mut rng);
    let holding_ones = Mat::from_fn(n, n - 1, |i, j| if j == 0 { 1.0 } else { generic[(i, j)] });
    let residual = |x: &Mat<f64>| relative_residual(&with_bias(x), &target);
    let quantities = [
        quantity("residual, $N = 6$, rank $N-1$, features of nonzero mean")
            .confirmed(residual(&generic)?, 0.0)
            .tolerance(1e-9),
        quantity("residual, $N = 6$, rank $N-1$, all-ones vector among the columns")
            .measured(residual(&holding_ones)?),
    ];
    let is_larger = quantities[1].measured > Some(1e-2);
    Finding::new(quantities, is_larger && rank(generic.as_ref(), 1e-10)? == (n - 1) as f64)
}

fn prop2_factor(_: &Inputs<'_>) -> Result<Finding, Error> {
    let sigma = 0.01;
    let inner = |delta: f64| {
        simpson(-0.15, 0.15 + delta, 2000, |t| gaussian(t, sigma) * gaussian(t - delta, sigma))
    };
    let row = |name, delta: f64| {
        let normalized = (-delta * delta / (4.0 * sigma * sigma)).exp();
        let corrected = PI.sqrt() * sigma * normalized;
        quantity(name).decided(normalized, inner(delta), corrected).tolerance(1e-9)
    };
    Finding::of([
        row("$D(0)$, $\\sigma = 0.01$", 0.0),
        row("$D(\\sigma)$, $\\sigma = 0.01$", sigma),
    ])
}

fn min_envelope(_: &Inputs<'_>) -> Result<Finding, Error> {
    let (n, d, sigma) = (28, 1000, 0.01);
    let embedding =
        Mat::from_fn(n, d, |i, j| gaussian(wrap(i as f64 / n as f64 - j as f64 / d as f64), sigma));
    let near = |j: i64| (-(j as f64 / n as f64 / (2.0 * sigma)).powi(2)).exp();
    let exact = n as f64 / (-28..=28).map(near).sum::<f64>();
    // The width whose bound is exactly 32, and 32 points on the circle.
    let corner_sigma = 1.0 / (2.0 * PI.sqrt() * 32.0);
    let kernel = |delta| (-(wrap(delta) / (2.0 * corner_sigma)).powi(2)).exp();
    let corner: f64 = (-8..=8).map(|m| (-PI * (m * m) as f64).exp()).sum();
    let bound = gaussian_stable_rank(sigma).min(n as f64);
    Finding::of([
        quantity("stable rank, $\\sigma = 0.01$, $N = 28$")
            .decided(bound, stable_rank(embedding.as_ref())?, exact)
            .tolerance(1e-3),
        quantity("stable rank over $N$ where the bound equals $N = 32$")
            .decided(1.0, kernel_stable_rank(32, kernel)? / 32.0, 1.0 / corner)
            .tolerance(1e-3),
    ])
}

fn sufficient_dimension(_: &Inputs<'_>) -> Result<Finding, Error> {
    let open = |d: usize| {
        let point = |i: usize, j: usize| gaussian(i as f64 / 256.0 - j as f64 / d as f64, 0.005);
        stable_rank(Mat::from_fn(256, d, point).as_ref())
    };
    let narrow: Vec<f64> = (0..1000).map(|j| gaussian(wrap(j as f64 / 1000.0), 0.0005)).collect();
    let bound = gaussian_stable_rank(0.005);
    Finding::of([
        quantity("$\\sigma = 0.005$, $d = 40$ ($d\\sigma = 0.2$)")
            .refuted(bound, open(40)?)
            .tolerance(0.1),
        quantity("$\\sigma = 0.005$, $d = 100$ ($d\\sigma = 0.5$)")
            .printed(bound)
            .confirmed(open(100)?, bound)
            .tolerance(0.01),
        quantity("$\\sigma = 0.0005$, $N = d = 1000$ ($d\\sigma = 0.5$)")
            .refuted(gaussian_stable_rank(0.0005), circulant_stable_rank(&narrow)?)
            .tolerance(0.1),
    ])
}

fn eq11_scale(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let n = 8;
    let draws = normal_matrix(n, 1, &mut inputs.rng("rethinking-eq11-scale"));
    let column: Vec<f64> = (0..n).map(|i| draws[(i, 0)]).collect();
    let spectrum = of_real(&column);
    let circulant = Mat::from_fn(n, n, |i, j| column[(n + i - j) % n]);
    // F⁻¹ diag(Fc) F written out; F has entries exp(-2πi jk/n), its inverse exp(2πi jk/n)/n.
    let product = Mat::from_fn(n, n, |i, j| {
        let lag = i as f64 - j as f64;
        let terms = (0..n).map(|k| {
            let turn = TAU * k as f64 * lag / n as f64;
            spectrum[k].re * turn.cos() - spectrum[k].im * turn.sin()
        });
        terms.sum::<f64>() / n as f64
    });
    let with_factor = Mat::from_fn(n, n, |i, j| product[(i, j)] / n as f64);
    Finding::of([
        quantity("relative error with the extra $1/n$, $n = 8$")
            .refuted(0.0, relative_error(&with_factor, &circulant))
            .tolerance(0.5),
        quantity("relative error without it")
            .confirmed(relative_error(&product, &circulant), 0.0)
            .tolerance(1e-12),
    ])
}

fn prop3_spectrum(_: &Inputs<'_>) -> Result<Finding, Error> {
    let sigma = 10.0;
    let frequencies = stratified_normal(2000, sigma);
    let measured = kernel_stable_rank(200, |delta| mean_cosine(&frequencies, delta))?;
    Finding::of([quantity("stable rank, $\\sigma = 10$, $N = 200$, $d \\to \\infty$")
        .decided(PI.sqrt() * sigma, measured, rff_stable_rank(sigma))
        .tolerance(0.01)])
}

fn prop3_finite_dimension(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("rethinking-prop3-finite-dimension");
    let sigma = 1.0 / (2.0 * SQRT_2 * PI * 0.005);
    let bound = rff_stable_rank(sigma);
    let mut quantities = Vec::new();
    let mut holds = true;
    for (d, draws) in [(256, 8), (1000, 8)] {
        let mut values = Vec::new();
        for _ in 0..draws {
            let b = normal_matrix(d / 2, 1, &mut rng);
            let frequencies: Vec<f64> = (0..d / 2).map(|j| sigma * b[(j, 0)]).collect();
            values.push(kernel_stable_rank(256, |delta| mean_cosine(&frequencies, delta))?);
        }
        let mean = mean(&values)?;
        holds &= mean + 3.0 * sample_std(&values)? / f64::from(draws).sqrt() < 0.9 * bound;
        let name = format!(
            "stable rank, $\\sigma_f = 22.51$, $N = 256$, $d = {d}$, mean of {draws} draws"
        );
        quantities.push(quantity(name).printed(bound).measured(mean));
    }
    let published = |method| {
        inputs.find(["rethinking", "fig5", "one-layer", method, "stable_rank"], Some(1000.0))
    };
    let (fourier, gaussian) = (published("RFF")?, published("Gaussian")?);
    quantities.push(
        quantity("Fig. 5 at $d = 1000$, random Fourier features (Gaussian as printed)")
            .printed(gaussian)
            .measured(fourier),
    );
    Finding::new(quantities, holds && fourier < 0.8 * gaussian)
}

fn prop3_two_pi(_: &Inputs<'_>) -> Result<Finding, Error> {
    let sigma = 50.0;
    let turns: Vec<f64> = stratified_normal(2000, sigma).iter().map(|b| b / TAU).collect();
    let measured = kernel_stable_rank(200, |delta| mean_cosine(&turns, delta))?;
    Finding::of([quantity(
        "stable rank of $[\\cos bx, \\sin bx]$, $\\sigma = 50$, $d \\to \\infty$",
    )
    .decided(rff_stable_rank(sigma), measured, sigma / TAU.sqrt())
    .tolerance(0.02)])
}

fn eq17_density(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let (sigma, delta, count) = (10.0, 0.01, 100_000);
    let b = normal_matrix(count, 1, &mut inputs.rng("rethinking-eq17-density"));
    let frequencies: Vec<f64> = (0..count).map(|j| sigma * b[(j, 0)]).collect();
    let mean = mean_cosine(&frequencies, delta);
    let kernel = (-2.0 * (PI * sigma * delta).powi(2)).exp();
    let (printed, count) = (TAU.sqrt() * sigma * kernel, count as f64);
    Finding::of([
        quantity("mean of the cosines, $\\sigma = 10$, $\\Delta = 0.01$")
            .decided(printed, mean, kernel)
            .tolerance(0.01),
        quantity("sum of the cosines, $d = 200{,}000$")
            .decided(printed, mean * count, kernel * count)
            .tolerance(0.01),
    ])
}

fn eq18_sign(_: &Inputs<'_>) -> Result<Finding, Error> {
    let half = 0.5;
    let erf = 2.0 / PI.sqrt() * simpson(0.0, half, 200, |t| (-t * t).exp());
    let erfi = 2.0 / PI.sqrt() * simpson(0.0, half, 200, |t| (t * t).exp());
    let scale = 0.5 * PI.sqrt();
    let integral = |f: fn(f64) -> f64| simpson(0.0, 12.0, 4000, f);
    let printed = scale * (-0.25f64).exp() * (1.0 + erfi);
    let corrected = scale * 0.25f64.exp() * (1.0 + erf);
    let real = integral(|x| (-x * x).exp() * x.cos());
    let imaginary = integral(|x| (-x * x).exp() * x.sin());
    Finding::of([
        quantity("$\\int_0^\\infty e^{-x^2+x}dx$")
            .decided(printed, integral(|x| (x - x * x).exp()), corrected)
            .tolerance(1e-9),
        quantity("real part of $\\int_0^\\infty e^{-x^2+ix}dx$")
            .confirmed(real, scale * (-0.25f64).exp())
            .tolerance(1e-9),
        quantity("imaginary part")
            .confirmed(imaginary, scale * (-0.25f64).exp() * erfi)
            .tolerance(1e-9),
    ])
}

fn sigma_product(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let sigma_g: f64 = 0.01;
    // Stable rank of 100 equispaced points on the circle, from the row sum of each kernel.
    let of_kernel = |kernel: &dyn Fn(f64) -> f64| {
        100.0 / (0..100).map(|j| kernel(wrap(f64::from(j) / 100.0))).sum::<f64>()
    };
    let of_gaussian = of_kernel(&|delta| {
        let at = |shift| {
            simpson(-0.2, 0.2, 200, |t| gaussian(t - shift, sigma_g) * gaussian(t, sigma_g))
        };
        at(delta) / at(0.0)
    });
    let of_fourier = |sigma: f64| of_kernel(&|delta| (-2.0 * (PI * sigma * delta).powi(2)).exp());
    let (mut low, mut high) = (1.0, 100.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if of_fourier(middle) < of_gaussian { low = middle } else { high = middle }
    }
    let constant = |section: &str, method: &str, metric: &str| {
        inputs.value("rethinking", section, "constant", method, metric)
    };
    let printed = constant("sec4-1", "Gaussian and RFF", "sigma_product_printed")?;
    let used = constant("sec5-1", "RFF", "sigma")? * constant("sec5-1", "Gaussian", "sigma")?;
    let corrected = 1.0 / (2.0 * SQRT_2 * PI);
    Finding::of([
        quantity("$\\sigma_g\\sigma_f$ at equal stable rank")
            .decided(printed, sigma_g * low, corrected)
            .tolerance(1e-3),
        quantity("$\\sigma_g\\sigma_f$ of the example")
            .refuted(0.01 * 0.1, sigma_g * low)
            .tolerance(1e-3),
        quantity("$\\sigma_g\\sigma_f$ in Sec. 5.1").confirmed(used, corrected).tolerance(1e-9),
    ])
}

fn fig1_two_values(_: &Inputs<'_>) -> Result<Finding, Error> {
    let d = 10;
    let sample =
        |periods: usize, x: f64, j: usize| (TAU * periods as f64 * (j as f64 / d as f64 - x)).sin();
    let distinct = |periods: usize| {
        let mut values: Vec<f64> = (0..d).map(|j| sample(periods, 0.123, j)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup_by(|a, b| (*a - *b).abs() < 1e-9);
        values.len() as f64
    };
    let embedding = Mat::from_fn(50, d, |i, j| sample(1, i as f64 / 50.0, j));
    let quantities = [
        quantity("different values among 10 samples at $x = 0.123$, two samples per period")
            .printed(2.0)
            .measured(distinct(5)),
        quantity("different values among 10 samples at $x = 0.123$, ten samples per period")
            .refuted(2.0, distinct(1))
            .tolerance(0.1),
        quantity("rank of 50 embeddings")
            .confirmed(rank(embedding.as_ref(), 1e-10)?, 2.0)
            .tolerance(1e-12),
    ];
    Finding::new(quantities, distinct(5) == 2.0)
}

fn eq5_similarity(_: &Inputs<'_>) -> Result<Finding, Error> {
    let similarity =
        |delta: f64| midpoint(-1.0, 1.5, 5000, |t| gaussian(t, 0.1) * gaussian(t - delta, 0.1));
    let values: Vec<f64> = (0..20).map(|k| similarity(f64::from(k) * 0.02)).collect();
    let pairs = (values.len() - 1) as f64;
    let rising = values.windows(2).map(|w| (w[1] - w[0]).signum()).sum::<f64>() / pairs;
    let name = "sign of $D$'s change with distance (mean over 19 steps, Gaussian, $\\sigma = 0.1$)";
    Finding::of([quantity(name).decided(1.0, rising, -1.0).tolerance(1e-12)])
}

fn eq6_step(_: &Inputs<'_>) -> Result<Finding, Error> {
    let (d, sigma) = (1000, 0.02);
    let product = |t: f64| gaussian(t - 0.5, sigma) * gaussian(t - 0.51, sigma);
    let sum: f64 = (0..d).map(|j| product(j as f64 / d as f64)).sum();
    let ratio = sum / simpson(0.0, 1.0, 2000, product);
    Finding::of([quantity("sum over integral, $d = 1000$")
        .decided(1.0, ratio, d as f64)
        .tolerance(1e-9)])
}

fn eq6_bandlimited(_: &Inputs<'_>) -> Result<Finding, Error> {
    // Rectangles of width 0.2 with no edge on a sampling point.
    let edges = (0.313_370_1, 0.277_231_7);
    let inside = |t: f64, left: f64| f64::from(u8::from(t >= left && t < left + 0.2));
    let exact = 0.2 - (edges.0 - edges.1);
    let row = |d: usize| {
        let at = |j: usize| j as f64 / d as f64;
        let sum: f64 = (0..d).map(|j| inside(at(j), edges.0) * inside(at(j), edges.1)).sum();
        let error = (sum / d as f64 - exact).abs() / exact;
        // The error is at most two cells of the sum.
        quantity(format!("relative error of the sampled inner product, rectangle, $d = {d}$"))
            .confirmed(error, 0.0)
            .tolerance(2.0 / (d as f64 * exact))
    };
    Finding::of([100, 10_000, 1_000_000].map(row))
}

fn sine_rank(_: &Inputs<'_>) -> Result<Finding, Error> {
    let of = |offset: f64| {
        let sine = |j: i32| (TAU * f64::from(j) / 50.0).sin() + offset;
        circulant_stable_rank(&(0..50).map(sine).collect::<Vec<f64>>())
    };
    Finding::of([
        quantity("stable rank with the offset 0.7, $N = 50$")
            .decided(2.0, of(0.7)?, (0.49 + 0.5) / 0.49)
            .tolerance(1e-9),
        quantity("stable rank without offset").confirmed(of(0.0)?, 2.0).tolerance(1e-9),
    ])
}

fn square_rank(_: &Inputs<'_>) -> Result<Finding, Error> {
    let of = |n: usize, low: f64| {
        let wave = |j: usize| if 2 * j < n { 1.0 } else { low };
        circulant_stable_rank(&(0..n).map(wave).collect::<Vec<f64>>())
    };
    let limit = PI * PI / 4.0;
    Finding::of([
        quantity("stable rank of the $\\pm1$ wave, $N = 50$")
            .confirmed(of(50, -1.0)?, limit)
            .tolerance(2e-3),
        quantity("stable rank of the $\\pm1$ wave, $N = 50{,}000$")
            .confirmed(of(50_000, -1.0)?, limit)
            .tolerance(1e-6),
        quantity("stable rank of the 0/1 wave, $N = 50{,}000$")
            .confirmed(of(50_000, 0.0)?, 2.0)
            .tolerance(1e-6),
    ])
}

fn square_bandlimited(_: &Inputs<'_>) -> Result<Finding, Error> {
    let n = 4096;
    let beyond = |signal: &[f64], band: usize| {
        let power: Vec<f64> = of_real(signal).iter().map(|z| z.norm_sqr()).collect();
        let outside: f64 = power[band + 1..n - band].iter().sum();
        outside / power.iter().sum::<f64>()
    };
    let square: Vec<f64> = (0..n).map(|j| if 2 * j < n { 1.0 } else { -1.0 }).collect();
    let bump: Vec<f64> = (0..n).map(|j| gaussian(wrap(j as f64 / n as f64), 0.02)).collect();
    let (near, narrow, far) = (beyond(&square, 30), beyond(&bump, 30), beyond(&square, 300));
    let quantities = [
        quantity("share of the square's power beyond 30 cycles").measured(near),
        quantity("share of the Gaussian's power beyond 30 cycles, $\\sigma = 0.02$")
            .measured(narrow),
        quantity("share of the square's power beyond 300 cycles").measured(far),
    ];
    Finding::new(quantities, near > 1e-2 && narrow < 1e-4 && far > 0.05 * near)
}

fn sigma_roles(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let psnr = |metric: &str, sigma: f64| {
        inputs.find(["rethinking", "fig7", "n=256", "Gaussian", metric], Some(sigma))
    };
    let (train_small, test_small) = (psnr("train_psnr", 1e-4)?, psnr("test_psnr", 1e-4)?);
    let (train_large, test_large) = (psnr("train_psnr", 0.1)?, psnr("test_psnr", 0.1)?);
    let quantities = [
        ("train PSNR, $\\sigma = 10^{-4}$, $N = 256$", train_small),
        ("test PSNR, $\\sigma = 10^{-4}$", test_small),
        ("train PSNR, $\\sigma = 0.1$", train_large),
        ("test PSNR, $\\sigma = 0.1$", test_large),
    ]
    .map(|(name, value)| quantity(name).printed(value).unit("dB"));
    // Smoothing would increase the training error together with the test error.
    let holds = train_small - test_small > 50.0
        && (train_large - test_large).abs() < 1.0
        && test_small < test_large;
    Finding::new(quantities, holds)
}

/// $D(\Delta)/D(0)$ of the Gaussian embedder, by quadrature.
fn normalized_distance(sigma: f64, delta: f64) -> f64 {
    let inner = |shift: f64| {
        simpson(-12.0 * sigma, 12.0 * sigma + shift, 400, |t| {
            gaussian(t, sigma) * gaussian(t - shift, sigma)
        })
    };
    inner(delta) / inner(0.0)
}

fn interval(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let k = inputs.value("rethinking", "sec5-2", "constant", "Gaussian", "k")?;
    let marker = inputs.value("rethinking", "fig7", "n=256", "Gaussian", "small_marker_sigma")?;
    let spacing = 1.0 / 256.0;
    let threshold = 10f64.powf(-k);
    let at_spacing = normalized_distance(marker, spacing);
    Finding::of([
        quantity("$D(1/2N)/D(0)$ at the marker, $N = 256$")
            .confirmed(normalized_distance(marker, spacing / 2.0), threshold)
            .tolerance(1e-6),
        quantity("$D(1/N)/D(0)$ at the marker")
            .decided(threshold, at_spacing, 10f64.powf(-4.0 * k))
            .tolerance(1e-6),
        quantity("$D(1/N)/D(0)$ at twice the marker")
            .confirmed(normalized_distance(2.0 * marker, spacing), threshold)
            .tolerance(1e-6),
    ])
}

fn fig8_order(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let get =
        |method: &str, metric: &str| inputs.value("rethinking", "fig8", "real", method, metric);
    let rank = (get("RFF", "stable_rank_input")?, get("Gaussian", "stable_rank_input")?);
    let psnr = (get("RFF", "final_train_psnr")?, get("Gaussian", "final_train_psnr")?);
    let quantities = [
        quantity("stable rank of the input, RFF").printed(rank.0),
        quantity("stable rank of the input, Gaussian").printed(rank.1),
        quantity("final train PSNR, RFF").printed(psnr.0).unit("dB"),
        quantity("final train PSNR, Gaussian").printed(psnr.1).unit("dB"),
    ];
    Finding::new(quantities, rank.0 < rank.1 && psnr.0 > psnr.1)
}

fn fig8_layers(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut quantities = Vec::new();
    let mut holds = true;
    for layer in 1..=4 {
        let mut of = |method: &str| -> Result<f64, Error> {
            let metric = format!("stable_rank_layer{layer}_final");
            let value = inputs.value("rethinking", "fig8", "real", method, &metric)?;
            let name = format!("stable rank of layer {layer} after training, {method}");
            quantities.push(quantity(name).printed(value));
            Ok(value)
        };
        let (none, rff, gaussian) = (of("none")?, of("RFF")?, of("Gaussian")?);
        holds &= (rff > none) == (layer <= 2) && (gaussian > none) == (layer == 1);
    }
    Finding::new(quantities, holds)
}

fn fig11_k(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let k = inputs.value("rethinking", "sec5-5", "constant", "Gaussian", "k")?;
    let inside = 1.0 / (4.0 * (k * LN_10).sqrt());
    let outside = k / (4.0 * LN_10.sqrt());
    let similarity = normalized_distance(outside / 100.0, 1.0 / 200.0);
    let quantities = [
        quantity("$d\\sigma$ with $k = 3.5$, rule of Sec. 5.2").measured(inside),
        quantity("$d\\sigma$ with $k = 3.5$, rule of Sec. 5.5").measured(outside),
        quantity("$D(1/2d)/D(0)$ under the rule of Sec. 5.5")
            .decided(10f64.powf(-k), similarity, 10f64.powf(-1.0 / (k * k)))
            .tolerance(1e-6),
    ];
    Finding::new(quantities, outside > 2.0 * inside)
}

fn learning_rates(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let rate =
        |item: &str, method: &str| inputs.value("rethinking", item, "constant", method, "lr");
    let (all, impulse) = (rate("sec5-2", "all")?, rate("sec5-2", "Impulse")?);
    let (waves, own) = (rate("sec5-2", "Square/Sine")?, rate("sec5-3", "Gaussian")?);
    let basic = rate("sec5-3", "basic")?;
    let quantities = [
        ("all encodings, Sec. 5.2", all),
        ("impulse, Sec. 5.2", impulse),
        ("square and sine, Sec. 5.2", waves),
        ("Gaussian, Sec. 5.3", own),
        ("basic encoding, Sec. 5.3", basic),
    ]
    .map(|(name, value)| quantity(name).printed(value));
    Finding::new(quantities, all != impulse && all != waves && own != basic)
}

fn ten_rows(_: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rows = vec![158, 329, 47, 344, 257, 410, 426, 199, 426, 295];
    let listed = rows.len() as f64;
    rows.sort_unstable();
    rows.dedup();
    let different = rows.len() as f64;
    Finding::of([quantity("different rows in the list")
        .decided(listed, different, 9.0)
        .tolerance(1e-12)])
}
