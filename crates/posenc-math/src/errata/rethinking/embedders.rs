//! Distance, sampling, and the sine, square and Gaussian embedders (Sections 3 and 4).

use crate::errata::numeric::*;
use crate::errata::{Erratum, Error, Finding, Inputs, Quantity, Severity};
use faer::Mat;
use std::f64::consts::{PI, TAU};

pub(super) static ERRATA: &[Erratum] = &[
    Erratum {
        id: "rethinking-fig1-two-values",
        place: "Fig. 1, caption (T: Fig. 1)",
        severity: Severity::Ambiguous,
        printed: "\"Note that although different sampling rates are employed for (c) and (d), the same two values are \
                  repeated across the samples. Hence, sampling more than twice is redundant.\"",
        correct: "At two samples per period, the samples have the same two values. At other rates they have more, up \
                  to the number of sampling points. The conclusion holds at every rate above two samples per period, \
                  because all embeddings lie in a two-dimensional space; at exactly two, they have rank 1.",
        consequence: "The paper prints no sampling rate. The claim on redundancy is judged by the rank.",
        check: fig1_two_values,
    },
    Erratum {
        id: "rethinking-eq5-similarity",
        place: "Eq. 5 (T: Eq. 5)",
        severity: Severity::Mathematical,
        printed: "For ideal distance preservation, $\\|x_1 - x_2\\| \\propto D(x_1, x_2)$.",
        correct: "$D$ is an inner product, that is, a similarity. It should be a strictly decreasing function of \
                  $\\|x_1 - x_2\\|$.",
        consequence: "Distance preservation is judged by how $D$ decreases, never by proportionality.",
        check: eq5_similarity,
    },
    Erratum {
        id: "rethinking-eq6-step",
        place: "Eq. 6 (T: Eq. 6)",
        severity: Severity::Typographic,
        printed: "$\\int_0^C\\psi\\psi\\,dt \\approx \\sum_{d=0}^{d-1}\\psi(sd, x_1)\\psi(sd, x_2)$",
        correct: "The sum approximates the integral only after multiplication by the step $s = C/d$. The summation \
                  index also needs its own letter, since $d$ is the dimension.",
        consequence: "Inner products grow with $d$, so distances are compared after division by $D(0)$.",
        check: eq6_step,
    },
    Erratum {
        id: "rethinking-eq6-bandlimited",
        place: "Sec. 3.3, after Eq. 6 (T: also Sec. 3.3)",
        severity: Severity::Mathematical,
        printed: "\"The dot product between the sampled $\\psi(t,x_1)$ and $\\psi(t,x_2)$ should be able to approximate \
                  $D$ as\" in Eq. 6, \"which is possible if, and only if, $\\psi$ is bandlimited.\"",
        correct: "The sampled inner product approximates $D$ for every Riemann-integrable embedder. The error \
                  decreases like $1/d$ even for a rectangle, whose spectrum is unbounded. A band limit only makes a \
                  finite $d$ exact.",
        consequence: "Sampling does not exclude the square embedder. Its weakness is its low rank.",
        check: eq6_bandlimited,
    },
    Erratum {
        id: "rethinking-sine-rank",
        place: "Sec. 4 and Fig. 3 (T: Fig. 3)",
        severity: Severity::CodeDiffers,
        printed: "\"The stable rank of the sine embedder is upper-bounded at 2.\"",
        correct: "The bound is correct for $\\sin 2\\pi(t-x)$. The notebook for Figure 3 adds 0.7, which is a third \
                  dimension, and plots $(0.7^2 + \\frac12)/0.7^2 = 2.0204$.",
        consequence: "The claim is judged for the sine of the text. Figure 3 also shows the plotted one.",
        check: sine_rank,
    },
    Erratum {
        id: "rethinking-square-rank",
        place: "Sec. 4, Fig. 3, caption (T: Fig. 3)",
        severity: Severity::Mathematical,
        printed: "\"However, if the sample numbers are extremely high (not shown in the figure), their stable ranks \
                  begin to deviate.\"",
        correct: "Neither stable rank drifts with $N$. That of the $\\pm1$ wave of the definition is close to \
                  $\\pi^2/4 = 2.467$ from $N = 50$ on. That of the plotted 0/1 wave is 2, as is that of the sine.",
        consequence: "The deviation is judged up to $N = 2000$.",
        check: square_rank,
    },
    Erratum {
        id: "rethinking-square-bandlimited",
        place: "Sec. 4, Gaussian embedder (T: also Sec. 4)",
        severity: Severity::Contradicted,
        printed: "\"The Gaussian embedder is also approximately bandlimited like the square embedder.\" One \
                  paragraph earlier, \"the square wave is not bandlimited\".",
        correct: "The spectrum of the Gaussian falls off like a Gaussian. The power spectrum of the square wave \
                  falls off like $1/\\xi^2$, so the share of its power beyond a band $B$ decreases no faster than \
                  $1/B$.",
        consequence: "The experiments are not affected.",
        check: square_bandlimited,
    },
];

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
    let quantities = vec![
        Quantity::new("different values among 10 samples at $x = 0.123$, two samples per period")
            .printed(2.0)
            .measured(distinct(5)),
        Quantity::new("different values among 10 samples at $x = 0.123$, ten samples per period")
            .printed(2.0)
            .measured(distinct(1)),
        Quantity::new("rank of 50 embeddings")
            .measured(rank(embedding.as_ref(), 1e-10)? as f64)
            .corrected(2.0),
    ];
    let holds = !quantities[0].refutes_printed(0.1)
        && quantities[1].refutes_printed(0.1)
        && quantities[2].is_corrected(1e-12);
    Ok(Finding { quantities, holds })
}

fn eq5_similarity(_: &Inputs<'_>) -> Result<Finding, Error> {
    let similarity =
        |delta: f64| midpoint(-1.0, 1.5, 5000, |t| gaussian(t, 0.1) * gaussian(t - delta, 0.1));
    let values: Vec<f64> = (0..20).map(|k| similarity(f64::from(k) * 0.02)).collect();
    let pairs = (values.len() - 1) as f64;
    let rising = values.windows(2).map(|w| (w[1] - w[0]).signum()).sum::<f64>() / pairs;
    let quantity = Quantity::new(
        "sign of $D$'s change with distance (mean over 19 steps, Gaussian, $\\sigma = 0.1$)",
    )
    .printed(1.0)
    .measured(rising)
    .corrected(-1.0);
    Finding::decided(vec![quantity], 1e-12)
}

fn eq6_step(_: &Inputs<'_>) -> Result<Finding, Error> {
    let (d, sigma) = (1000, 0.02);
    let product = |t: f64| gaussian(t - 0.5, sigma) * gaussian(t - 0.51, sigma);
    let sum: f64 = (0..d).map(|j| product(j as f64 / d as f64)).sum();
    let integral = simpson(0.0, 1.0, 2000, product);
    let quantity = Quantity::new("sum over integral, $d = 1000$")
        .printed(1.0)
        .measured(sum / integral)
        .corrected(d as f64);
    Finding::decided(vec![quantity], 1e-9)
}

fn eq6_bandlimited(_: &Inputs<'_>) -> Result<Finding, Error> {
    // Rectangles of width 0.2 with no edge on a sampling point.
    let edges = (0.313_370_1, 0.277_231_7);
    let inside = |t: f64, left: f64| f64::from(u8::from(t >= left && t < left + 0.2));
    let exact = 0.2 - (edges.0 - edges.1);
    let error = |d: usize| {
        let at = |j: usize| j as f64 / d as f64;
        let sum: f64 = (0..d).map(|j| inside(at(j), edges.0) * inside(at(j), edges.1)).sum();
        (sum / d as f64 - exact).abs() / exact
    };
    let row = |d: usize| {
        Quantity::new(format!("relative error of the sampled inner product, rectangle, $d = {d}$"))
            .measured(error(d))
            .corrected(0.0)
    };
    let quantities = vec![row(100), row(10_000), row(1_000_000)];
    // Each error is at most two cells of the sum.
    let holds =
        [100usize, 10_000, 1_000_000].into_iter().all(|d| error(d) <= 2.0 / (d as f64 * exact));
    Ok(Finding { quantities, holds })
}

fn sine_rank(_: &Inputs<'_>) -> Result<Finding, Error> {
    let wave = |offset: f64| -> Vec<f64> {
        (0..50).map(|j| (TAU * f64::from(j) / 50.0).sin() + offset).collect()
    };
    let quantities = vec![
        Quantity::new("stable rank with the offset 0.7, $N = 50$")
            .printed(2.0)
            .measured(circulant_stable_rank(&wave(0.7))?)
            .corrected((0.49 + 0.5) / 0.49),
        Quantity::new("stable rank without offset")
            .measured(circulant_stable_rank(&wave(0.0))?)
            .corrected(2.0),
    ];
    let holds = quantities[0].decides(1e-9) && quantities[1].is_corrected(1e-9);
    Ok(Finding { quantities, holds })
}

fn square_rank(_: &Inputs<'_>) -> Result<Finding, Error> {
    let wave = |n: usize, low: f64| -> Vec<f64> {
        (0..n).map(|j| if 2 * j < n { 1.0 } else { low }).collect()
    };
    let limit = PI * PI / 4.0;
    let of = |n: usize, low: f64| circulant_stable_rank(&wave(n, low));
    let quantities = vec![
        Quantity::new("stable rank of the $\\pm1$ wave, $N = 50$")
            .measured(of(50, -1.0)?)
            .corrected(limit),
        Quantity::new("stable rank of the $\\pm1$ wave, $N = 50{,}000$")
            .measured(of(50_000, -1.0)?)
            .corrected(limit),
        Quantity::new("stable rank of the 0/1 wave, $N = 50{,}000$")
            .measured(of(50_000, 0.0)?)
            .corrected(2.0),
    ];
    let holds = quantities[0].is_corrected(2e-3)
        && quantities[1..].iter().all(|quantity| quantity.is_corrected(1e-6));
    Ok(Finding { quantities, holds })
}

fn square_bandlimited(_: &Inputs<'_>) -> Result<Finding, Error> {
    let n = 4096;
    let beyond = |signal: &[f64], band: usize| {
        let power: Vec<f64> = dft(signal).iter().map(|z| z.norm_sqr()).collect();
        let outside: f64 = power[band + 1..n - band].iter().sum();
        outside / power.iter().sum::<f64>()
    };
    let square: Vec<f64> = (0..n).map(|j| if 2 * j < n { 1.0 } else { -1.0 }).collect();
    let bump: Vec<f64> = (0..n).map(|j| gaussian(wrap(j as f64 / n as f64), 0.02)).collect();
    let quantities = vec![
        Quantity::new("share of the square's power beyond 30 cycles").measured(beyond(&square, 30)),
        Quantity::new("share of the Gaussian's power beyond 30 cycles, $\\sigma = 0.02$")
            .measured(beyond(&bump, 30)),
        Quantity::new("share of the square's power beyond 300 cycles")
            .measured(beyond(&square, 300)),
    ];
    let shares: Vec<f64> = quantities.iter().filter_map(|q| q.measured).collect();
    let holds = shares[0] > 1e-2 && shares[1] < 1e-4 && shares[2] > 0.05 * shares[0];
    Ok(Finding { quantities, holds })
}
