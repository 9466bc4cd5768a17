//! Rectangle and triangle embedders (Sec. 4, Props. 4 and 5) and the encoders of App. D.1.

use crate::errata::numeric::*;
use crate::errata::{Erratum, Error, Finding, Inputs, Quantity, Severity};

pub(super) static ERRATA: &[Erratum] = &[
    Erratum {
        id: "trading-prop1-wording",
        place: "Prop. 1, main text vs. App. A",
        severity: Severity::Ambiguous,
        printed: "Under perfect convergence, full rank of $X$ is \"the sufficient condition\" for memorizing the mapping \
                  from $x$ to $y$ (main text). The appendix calls it \"the necessary and sufficient condition\".",
        correct: "Full rank is sufficient but not necessary. With the bias, every $y$ is memorized if and only if $[X, 1]$ \
                  has rank $N$, which almost every $X$ of rank $N - 1$ meets. A given $y$ only requires $y \\in \
                  \\operatorname{range}[X, 1]$.",
        consequence: "Redundant signals can be fitted at ranks far below $N$, as in Figure 7.",
        check: prop1_wording,
    },
    Erratum {
        id: "trading-rect-distance",
        place: "Sec. 4, rectangle embedder, vs. Prop. 4",
        severity: Severity::Mathematical,
        printed: "A rectangle of width $d$ has $D(x_1, x_2) = \\operatorname{tri}(x_1 - x_2)$.",
        correct: "$D = d\\,\\operatorname{tri}((x_1-x_2)/d)$, as in Proposition 4, which calls the width $\\sigma$.",
        consequence: "The letter $d$ is a width here and the embedding dimension elsewhere. The reproduction uses \
                      Proposition 4.",
        check: rect_distance,
    },
    Erratum {
        id: "trading-prop5-distance",
        place: "Prop. 5, Eq. 39, and Sec. 4, triangle embedder",
        severity: Severity::Mathematical,
        printed: "With a sufficient embedding dimension, $D = \\frac14\\sigma^2\\max(1-|\\Delta|/\\sigma, 0)^2$.",
        correct: "The autocorrelation of a triangle is a cubic B-spline. With $h = \\sigma/2$ and $u = |\\Delta|/h$, \
                  it is $h(\\frac23 - u^2 + \\frac12u^3)$ for $u \\le 1$, $\\frac h6(2-u)^3$ for $1 < u < 2$, and 0 \
                  otherwise. In particular, $D(0) = \\sigma/3$. A $D(0)$ that grows like $\\sigma^2$ has the wrong \
                  dimension.",
        consequence: "The authors' code derives the blending weights of the triangle from the wrong $D$. The \
                      reproduction implements both versions.",
        check: prop5_distance,
    },
    Erratum {
        id: "trading-prop5-bound",
        place: "Prop. 5, last line of the stable-rank proof",
        severity: Severity::Typographic,
        printed: "The stable rank is $\\min(N, 1/\\sigma)$.",
        correct: "The stable rank is $\\min(N, 4/(3\\sigma))$, as in the proposition and in Eq. 38. The value \
                  $1/\\sigma$ belongs to Proposition 4.",
        consequence: "None.",
        check: prop5_bound,
    },
    Erratum {
        id: "trading-eq37-width",
        place: "Eq. 37 and the line above it",
        severity: Severity::Typographic,
        printed: "$\\psi(x; t=0) = \\operatorname{tri}(x/\\sigma)$ with transform \
                  $\\frac\\sigma2\\operatorname{sinc}^2(\\frac\\sigma2\\xi)$",
        correct: "$\\psi = \\operatorname{tri}(x/(0.5\\sigma))$, whose integral is $\\sigma/2$. The definition of \
                  the sinc in Eqs. 32 and 37 has $\\xi$ on the left-hand side but $x$ on the right-hand side.",
        consequence: "None.",
        check: eq37_width,
    },
    Erratum {
        id: "trading-triangle-width",
        place: "Prop. 5 vs. Eq. 53",
        severity: Severity::Ambiguous,
        printed: "The width of the triangle is $\\sigma$ in Proposition 5 and $d$ in Eq. 53.",
        correct: "$\\sigma$ is the full width and $d$ the half-width: $\\sigma = 2d$. The stable rank of Eq. 53 is \
                  $2/(3d)$, not $4/(3d)$.",
        consequence: "Experiments specify half-widths; the theory uses full widths.",
        check: triangle_width,
    },
    Erratum {
        id: "trading-eq54-square",
        place: "Eq. 54",
        severity: Severity::Mathematical,
        printed: "$\\exp(-\\frac{x-i/K}{2d^2})$",
        correct: "$\\exp(-\\frac{(x-i/K)^2}{2d^2})$. Without the square the features grow without bound with $i$, \
                  and none is centered at $i/K$.",
        consequence: "The authors' code has the square.",
        check: eq54_square,
    },
    Erratum {
        id: "trading-feature-count",
        place: "Eqs. 50–52",
        severity: Severity::CodeDiffers,
        printed: "An encoder maps to $K$ numbers, and $i = 0, \\dots, K-1$ runs over frequencies with one sine and \
                  one cosine each. The highest frequency is below $2^\\sigma$.",
        correct: "The printed formula has $2K$ features. The code has $K/2$ frequencies and thus $K$ features, and \
                  it includes the upper end $2^\\sigma$.",
        consequence: "The reproduction follows the code, which the parameter counts confirm.",
        check: feature_count,
    },
];

fn prop1_wording(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("trading-prop1-wording");
    let deficient = normal_matrix(6, 3, &mut rng) * normal_matrix(3, 6, &mut rng);
    let reachable = &deficient * normal_matrix(6, 1, &mut rng);
    let arbitrary = normal_matrix(6, 1, &mut rng);
    let quantities = vec![
        Quantity::new("rank of the $6 \\times 6$ matrix $X$").printed(6.0).measured(rank(
            deficient.as_ref(),
            1e-10,
        )?
            as f64),
        Quantity::new("residual of a target in its range")
            .measured(relative_residual(&deficient, &reachable)?)
            .corrected(0.0),
        Quantity::new("residual of an arbitrary target")
            .printed(0.0)
            .measured(relative_residual(&deficient, &arbitrary)?),
    ];
    let holds = quantities[0].refutes_printed(0.1)
        && quantities[1].is_corrected(1e-9)
        && quantities[2].refutes_printed(1e-2);
    Ok(Finding { quantities, holds })
}

fn rect_distance(_: &Inputs<'_>) -> Result<Finding, Error> {
    let (width, delta) = (0.1, 0.05);
    let rect = |u: f64| if u.abs() < 0.5 * width { 1.0 } else { 0.0 };
    let measured = midpoint(-0.1, 0.2, 300_000, |t| rect(t) * rect(t - delta));
    let quantity = Quantity::new("$D$ at half a width, width 0.1")
        .printed(tri(delta))
        .measured(measured)
        .corrected(width * tri(delta / width));
    Finding::decided(vec![quantity], 1e-3)
}

/// Autocorrelation of a triangle of full width `sigma`: the cubic B-spline with knot distance `sigma/2`.
fn triangle_autocorrelation(delta: f64, sigma: f64) -> f64 {
    let half = 0.5 * sigma;
    let u = delta.abs() / half;
    match u {
        u if u <= 1.0 => half * (2.0 / 3.0 - u * u + 0.5 * u * u * u),
        u if u < 2.0 => half * (2.0 - u).powi(3) / 6.0,
        _ => 0.0,
    }
}

fn prop5_distance(_: &Inputs<'_>) -> Result<Finding, Error> {
    let row = |sigma: f64, delta: f64| {
        let inner = |t: f64| tri(2.0 * t / sigma) * tri(2.0 * (t - delta) / sigma);
        Quantity::new(format!("$D({delta})$, $\\sigma = {sigma}$"))
            .printed(0.25 * sigma * sigma * tri(delta / sigma).powi(2))
            .measured(simpson(-sigma, 2.0 * sigma, 3000, inner))
            .corrected(triangle_autocorrelation(delta, sigma))
    };
    let quantities =
        vec![row(1.0, 0.0), row(1.0, 0.25), row(1.0, 0.5), row(1.0, 0.75), row(0.1, 0.0)];
    Finding::decided(quantities, 1e-6)
}

/// Stable rank of 1000 equispaced triangles of full width `sigma` on the circle.
fn triangle_stable_rank(sigma: f64) -> Result<f64, Error> {
    let column: Vec<f64> =
        (0..1000).map(|j| tri(wrap(f64::from(j) / 1000.0) / (0.5 * sigma))).collect();
    circulant_stable_rank(&column)
}

fn prop5_bound(_: &Inputs<'_>) -> Result<Finding, Error> {
    let sigma = 0.051;
    let quantity = Quantity::new("stable rank, $\\sigma = 0.051$, $N = d = 1000$")
        .printed(1.0 / sigma)
        .measured(triangle_stable_rank(sigma)?)
        .corrected(4.0 / (3.0 * sigma));
    Finding::decided(vec![quantity], 1e-3)
}

fn eq37_width(_: &Inputs<'_>) -> Result<Finding, Error> {
    let sigma = 0.2;
    let integral = |scale: f64| simpson(-0.3, 0.3, 3000, |x| tri(x / scale));
    let quantity = Quantity::new("$s(0)$, $\\sigma = 0.2$")
        .printed(integral(sigma))
        .measured(integral(0.5 * sigma))
        .corrected(0.5 * sigma);
    Finding::decided(vec![quantity], 1e-6)
}

fn triangle_width(_: &Inputs<'_>) -> Result<Finding, Error> {
    let half = 0.05;
    let quantity = Quantity::new("stable rank of Eq. 53 with $d = 0.05$")
        .printed(4.0 / (3.0 * half))
        .measured(triangle_stable_rank(2.0 * half)?)
        .corrected(2.0 / (3.0 * half));
    Finding::decided(vec![quantity], 1e-3)
}

fn eq54_square(_: &Inputs<'_>) -> Result<Finding, Error> {
    let (k, x, d) = (256, 0.5, 0.05);
    let largest = |feature: &dyn Fn(f64) -> f64| {
        let at = |i: &usize| feature(x - *i as f64 / k as f64);
        (0..k).max_by(|a, b| at(a).total_cmp(&at(b))).unwrap_or(0) as f64
    };
    let without_square = |u: f64| (-u / (2.0 * d * d)).exp();
    let quantities = vec![
        Quantity::new("index of the largest feature at $x = 0.5$, $K = 256$")
            .printed(largest(&without_square))
            .measured(largest(&|u| gaussian(u, d)))
            .corrected(x * k as f64),
        Quantity::new("largest feature, $d = 0.05$")
            .printed(without_square(x - 255.0 / 256.0))
            .measured(gaussian(0.0, d))
            .corrected(1.0),
    ];
    Finding::decided(quantities, 1e-9)
}

fn feature_count(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let k = inputs.value("trading", "table1", "complex-gd", "all", "dim")?;
    let exponent = inputs.value("trading", "table1", "complex-gd", "LinF", "encoder_param")?;
    let params = inputs.value("trading", "table1", "complex-gd", "LinF", "params")?;
    // With one weight per color and pair of features, the printed size determines the number of features.
    let features = (params / 3.0).sqrt();
    let top = exponent.exp2();
    let quantities = vec![
        Quantity::new("features per axis in Table 1")
            .printed(2.0 * k)
            .measured(features)
            .corrected(k),
        Quantity::new("highest frequency of LinF in Table 1")
            .printed(1.0 / k + (k - 1.0) / k * top)
            .corrected(top)
            .unit("cycles"),
    ];
    let holds = quantities[0].decides(1e-9) && quantities[1].printed < quantities[1].corrected;
    Ok(Finding { quantities, holds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tolerance::{Tolerance, assert_close};

    /// Catches a wrong branch of the spline (expected values from exact integration).
    #[test]
    fn spline_values() {
        for (delta, expected) in [
            (0.0, 1.0 / 3.0),
            (0.1, 0.3153),
            (0.25, 0.2396),
            (0.5, 1.0 / 12.0),
            (0.75, 0.0104),
            (1.0, 0.0),
        ] {
            let value = triangle_autocorrelation(delta, 1.0);
            assert_close(value, expected, Tolerance::absolute(5e-5));
            assert_close(triangle_autocorrelation(-delta, 1.0), value, Tolerance::EXACT);
        }
    }
}
