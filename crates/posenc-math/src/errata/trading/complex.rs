//! Kronecker products, closed form, blending and computational complexity (Sec. 5, Apps. B and C).

use crate::closed_form::normal_equations;
use crate::errata::numeric::*;
use crate::errata::{Erratum, Error, Finding, Inputs, Quantity, Severity};
use crate::kronecker::simple_features;
use faer::Mat;
use std::f64::consts::PI;

pub(super) static ERRATA: &[Erratum] = &[
    Erratum {
        id: "trading-signal-order",
        place: "Eq. 10 and App. B.1",
        severity: Severity::Mathematical,
        printed: "Eq. 10 uses $S_{ij} = I(x_i, y_j)$. Appendix B.1 uses $S \\in \\mathbb R^{M\\times N}$, where $x$ \
                  has $N$ points and $y$ has $M$.",
        correct: "Eq. 10 requires $S_{ij} = I(x_j, y_i)$ ($M \\times N$). Eq. 40 requires $S_{ij} = I(x_i, y_j)$ ($N \
                  \\times M$). Each is printed with the shape that the other requires.",
        consequence: "On square grids the error is only a transpose of $W$. Tests use $N \\ne M$.",
        check: signal_order,
    },
    Erratum {
        id: "trading-eq42-transpose",
        place: "Eqs. 41–42",
        severity: Severity::Mathematical,
        printed: "$W^* = (\\Psi_x^T\\Psi_x)^{-1}\\Psi_x S\\Psi_y^T(\\Psi_y^T\\Psi_y)^{-1}$ with \
                  $\\Psi_x \\in \\mathbb R^{N\\times K}$",
        correct: "$W^* = (\\Psi_x^T\\Psi_x)^{-1}\\Psi_x^T S\\Psi_y(\\Psi_y^T\\Psi_y)^{-1}$. As printed, the shapes \
                  match only for $N = M = K$, and then the result is wrong. Eq. 12 of the main text is correct.",
        consequence: "The closed form is implemented as corrected. It recovers known weights up to rounding.",
        check: eq42_transpose,
    },
    Erratum {
        id: "trading-eq49-index",
        place: "Eq. 49 and the index list after it",
        severity: Severity::Mathematical,
        printed: "The last corner is $\\Psi(x_{i+1}, y_{i+1})$. The row of $B$ has $\\alpha_0\\beta_0$ at $jN+i$, \
                  $\\alpha_0\\beta_1$ at $(j+1)N+i$, and $\\alpha_0\\beta_0$ at both $jN+i+1$ and $(j+1)N+i+1$.",
        correct: "The corner is $(x_{i+1}, y_{j+1})$. The weights are $\\alpha_0\\beta_0$, $\\alpha_0\\beta_1$, \
                  $\\alpha_1\\beta_0$ and $\\alpha_1\\beta_1$, in this order. The printed indices count from zero, \
                  but the points are numbered from one.",
        consequence: "The blending matrix is built from the corrected list and tested on a bilinear function.",
        check: eq49_index,
    },
    Erratum {
        id: "trading-eq15-normalization",
        place: "Eqs. 15 and 46 vs. the code",
        severity: Severity::CodeDiffers,
        printed: "The weights of Eq. 15 solve the least-squares problem of Eq. 14.",
        correct: "The code divides the weights by their sum. Eq. 15 is the least-squares solution, and its weights \
                  do not sum to one. Normalization increases the error of the embedding.",
        consequence: "The reproduction implements both versions. The default is the version of the code.",
        check: eq15_normalization,
    },
    Erratum {
        id: "trading-blending-spacing",
        place: "Sec. 5.2 and App. B.2 vs. the code",
        severity: Severity::CodeDiffers,
        printed: "The virtual points are sampled on a regular grid.",
        correct: "The code mixes two grids. It encodes the nodes at $i/K$ but blends them as if they were at \
                  $i/(K-1)$, which stretches the coordinates by $(K-1)/K$. Train and test points are stretched \
                  equally.",
        consequence: "The stretch is harmless for PSNR. An option reproduces the code exactly.",
        check: blending_spacing,
    },
    Erratum {
        id: "trading-simple-directions",
        place: "Sec. 5.1, Eqs. 7–8, vs. the code of Tables 1 and 2",
        severity: Severity::CodeDiffers,
        printed: "A simple encoding concatenates the encodings of the axes. Therefore \"a linear network can only \
                  reconstruct a 2D image signal with at most rank 2\".",
        correct: "For Gau and Tri the code encodes four directions: $x$, $y$, $(x+y)/2$ and $(x-y+1)/2$. For RFF it \
                  uses joint frequencies. In both cases the rank is not bounded by 2.",
        consequence: "The rank argument is tested with two directions. The tables are reproduced with four.",
        check: simple_directions,
    },
    Erratum {
        id: "trading-appendix-c-memory",
        place: "App. C, special case $N = K$",
        severity: Severity::Typographic,
        printed: "\"Memory complexity is $O(DN^{D+1})$ for simple encoding while it is $O(N^D + 2N)$ for separable \
                  encoding.\"",
        correct: "The second term is $N^2$: the weights have $K^D$ entries, and one shared encoding matrix has $NK$, \
                  as in the general formula above. With one matrix per axis it is $D N^2$, in agreement with the \
                  $2NK + K^2$ of Section 5.2. The order of growth is $N^D$ with either term.",
        consequence: "Appendix C is tabulated with $K^D + NK$.",
        check: appendix_c_memory,
    },
    Erratum {
        id: "trading-appendix-c-rank",
        place: "App. C, last sentence",
        severity: Severity::Ambiguous,
        printed: "Special case $N = K$: \"However, the rank of the latter one is power of D to the first one\", that is, \
                  of the complex encoding to the simple one.",
        correct: "The sentence does not say which rank of the simple encoding it means. It holds for the rank along one \
                  axis: the complex encoding has rank $K^D$ (Eq. 9). It does not hold for the feature matrix of the \
                  simple encoding, whose rank is about $DK$.",
        consequence: "Both readings are tested with Eq. 9.",
        check: appendix_c_rank,
    },
];

fn signal_order(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("trading-signal-order");
    let (n, m, k) = (7, 6, 4);
    let (psi_x, psi_y) = (normal_matrix(n, k, &mut rng), normal_matrix(m, k, &mut rng));
    // I(x_i, y_j) of a signal that the complex encoding can represent.
    let image = &psi_x * normal_matrix(k, k, &mut rng) * psi_y.transpose();
    let appendix = psi_y.kron(&psi_x);
    let main_text = psi_x.kron(&psi_y);
    let (by_x, by_y) = (vec(image.as_ref()), vec(image.transpose()));
    let row = |name: &str, design: &Mat<f64>, printed: &Mat<f64>, corrected: &Mat<f64>| {
        let wrong = relative_residual(design, printed)?;
        let right = relative_residual(design, corrected)?;
        Ok::<_, Error>([
            Quantity::new(format!("residual of {name}, order as printed"))
                .printed(0.0)
                .measured(wrong),
            Quantity::new(format!("residual of {name}, corrected order"))
                .measured(right)
                .corrected(0.0),
        ])
    };
    let mut quantities = Vec::new();
    quantities.extend(row("Eq. 10", &main_text, &by_x, &by_y)?);
    quantities.extend(row("Eq. 40", &appendix, &by_y, &by_x)?);
    let holds = quantities.chunks(2).all(|q| q[0].refutes_printed(0.1) && q[1].is_corrected(1e-9));
    Ok(Finding { quantities, holds })
}

fn eq42_transpose(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("trading-eq42-transpose");
    let mut draw = |n: usize, m: usize, k: usize| {
        (
            normal_matrix(n, k, &mut rng),
            normal_matrix(m, k, &mut rng),
            normal_matrix(k, k, &mut rng),
        )
    };
    let (psi_x, psi_y, weights) = draw(7, 6, 4);
    let signal = &psi_x * &weights * psi_y.transpose();
    let half = normal_equations(psi_x.as_ref(), &(psi_x.transpose() * &signal * &psi_y));
    let recovered =
        normal_equations(psi_y.as_ref(), &half.transpose().to_owned()).transpose().to_owned();
    let (square_x, square_y, square_weights) = draw(5, 5, 5);
    let square_signal = &square_x * &square_weights * square_y.transpose();
    let half =
        normal_equations(square_x.as_ref(), &(&square_x * &square_signal * square_y.transpose()));
    let printed =
        normal_equations(square_y.as_ref(), &half.transpose().to_owned()).transpose().to_owned();
    let quantities = vec![
        Quantity::new("relative error of $W$ as printed, $N = M = K = 5$")
            .printed(0.0)
            .measured(relative_error(&printed, &square_weights)),
        Quantity::new("relative error of $W$ as corrected, $N = 7$, $M = 6$, $K = 4$")
            .measured(relative_error(&recovered, &weights))
            .corrected(0.0),
    ];
    let holds = quantities[0].refutes_printed(0.1) && quantities[1].is_corrected(1e-9);
    Ok(Finding { quantities, holds })
}

fn eq49_index(_: &Inputs<'_>) -> Result<Finding, Error> {
    // Bilinear blending reproduces a bilinear function exactly; x varies fastest, N = 4 points in x.
    let (n, m) = (4, 3);
    let value = |x: f64, y: f64| 1.0 + 2.0 * x + 3.0 * y + x * y;
    let grid: Vec<f64> = (0..n * m).map(|p| value((p % n) as f64, (p / n) as f64)).collect();
    let (i, j, a, b) = (1, 1, 0.3, 0.6);
    let (alpha, beta) = ([1.0 - a, a], [1.0 - b, b]);
    let corners = [j * n + i, (j + 1) * n + i, j * n + i + 1, (j + 1) * n + i + 1];
    let blend = |weights: [f64; 4]| {
        weights.iter().zip(corners).map(|(weight, corner)| weight * grid[corner]).sum::<f64>()
    };
    let first = alpha[0] * beta[0];
    let second = alpha[0] * beta[1];
    let quantities = vec![
        Quantity::new("value blended at $(1.3, 1.6)$")
            .printed(blend([first, second, first, first]))
            .measured(value(i as f64 + a, j as f64 + b))
            .corrected(blend([first, second, alpha[1] * beta[0], alpha[1] * beta[1]])),
        Quantity::new("sum of the weights")
            .printed(3.0 * first + second)
            .measured(1.0)
            .corrected(first + second + alpha[1] * beta[0] + alpha[1] * beta[1]),
    ];
    Finding::decided(quantities, 1e-12)
}

/// The weights of Eq. 15 at fraction `beta` of a cell of width `step`, for the kernel `d`.
fn blending_weights(d: impl Fn(f64) -> f64, step: f64, beta: f64) -> [f64; 2] {
    let (at_zero, at_step) = (d(0.0), d(step));
    let determinant = at_zero * at_zero - at_step * at_step;
    let (left, right) = (d(beta * step), d((1.0 - beta) * step));
    [
        (at_zero * left - at_step * right) / determinant,
        (at_zero * right - at_step * left) / determinant,
    ]
}

fn eq15_normalization(_: &Inputs<'_>) -> Result<Finding, Error> {
    let step = 1.0 / 256.0;
    let sum = |kernel: &dyn Fn(f64) -> f64| blending_weights(kernel, step, 0.5).iter().sum::<f64>();
    let gaussian_kernel = |sigma: f64| move |u: f64| (-(u / (2.0 * sigma)).powi(2)).exp();
    let fourier = |u: f64| (-2.0 * (PI * 30.0 * u).powi(2)).exp();
    // ‖ψ(x) - α₀ψ(x₀) - α₁ψ(x₁)‖/‖ψ(x)‖ from inner products alone.
    let d = gaussian_kernel(0.005);
    let error = |[p, q]: [f64; 2]| {
        let cross = 2.0 * p * q * d(step) - 2.0 * (p + q) * d(0.5 * step);
        (1.0 + p * p + q * q + cross).max(0.0).sqrt()
    };
    let weights = blending_weights(d, step, 0.5);
    let total = weights[0] + weights[1];
    let (plain, normalized) = (error(weights), error(weights.map(|w| w / total)));
    let row = |name: &str, value: f64| Quantity::new(name).printed(value).measured(1.0);
    let quantities = vec![
        row("sum of the weights at mid-cell, Gau 0.005 (code: 1)", sum(&d)),
        row("sum, Gau 0.001", sum(&gaussian_kernel(0.001))),
        row("sum, RFF 30", sum(&fourier)),
        Quantity::new("relative error of the embedding at mid-cell, Gau 0.005")
            .printed(plain)
            .measured(normalized),
    ];
    let holds = quantities[..3].iter().all(|q| q.refutes_printed(0.01)) && plain < normalized;
    Ok(Finding { quantities, holds })
}

fn blending_spacing(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let k = inputs.value("trading", "table2", "complex-gd", "all", "dim")?;
    // The image of a point of [0, 1) that is blended between the nodes i/(K-1), which are encoded at i/K.
    let place = |x: f64| {
        let position = (k - 1.0) * x;
        let cell = position.floor();
        let (left, right) = (cell / k, (cell + 1.0) / k);
        left + (position - cell) * (right - left)
    };
    let slope = (place(0.75) - place(0.25)) / 0.5;
    let largest =
        (0..512).map(|i| f64::from(i) / 512.0).map(|x| (x - place(x)).abs()).fold(0.0, f64::max);
    let quantities = vec![
        Quantity::new("stretch of the coordinates, $K = 256$")
            .printed(1.0)
            .measured(slope)
            .corrected((k - 1.0) / k),
        Quantity::new("largest shift on the 512 grid")
            .printed(0.0)
            .measured(512.0 * largest)
            .unit("pixels"),
    ];
    let holds = quantities[0].decides(1e-6) && quantities[1].refutes_printed(1.0);
    Ok(Finding { quantities, holds })
}

fn simple_directions(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("trading-simple-directions");
    let (points, k) = (16, 8);
    let mut image_rank = |directions: &[fn(f64, f64) -> f64]| {
        let weights = normal_matrix(directions.len(), k, &mut rng);
        let image = Mat::from_fn(points, points, |i, j| {
            let (x, y) = (i as f64 / points as f64, j as f64 / points as f64);
            let terms = directions.iter().enumerate().map(|(a, direction)| {
                let u = direction(x, y);
                (0..k)
                    .map(|c| weights[(a, c)] * gaussian(u - c as f64 / k as f64, 0.1))
                    .sum::<f64>()
            });
            terms.sum()
        });
        rank(image.as_ref(), 1e-9)
    };
    let two = image_rank(&[|x, _| x, |_, y| y])? as f64;
    let four =
        image_rank(&[|x, _| x, |_, y| y, |x, y| 0.5 * (x + y), |x, y| 0.5 * (x - y + 1.0)])? as f64;
    let quantities = vec![
        Quantity::new("rank of a linear image, two directions, $16 \\times 16$")
            .printed(2.0)
            .measured(two)
            .corrected(2.0),
        Quantity::new("rank of a linear image, four directions").printed(2.0).measured(four),
    ];
    let holds = quantities[0].is_corrected(1e-12) && quantities[1].refutes_printed(0.5);
    Ok(Finding { quantities, holds })
}

fn appendix_c_memory(_: &Inputs<'_>) -> Result<Finding, Error> {
    let (n, dimensions) = (64usize, 3u32);
    let weights = n.pow(dimensions);
    let encoding = Mat::<f64>::zeros(n, n);
    let stored = weights + encoding.nrows() * encoding.ncols();
    let power = weights as f64;
    let quantity = Quantity::new("numbers beside the weights, $N = K = 64$, $D = 3$")
        .printed(2.0 * n as f64)
        .measured(stored as f64 - power)
        .corrected((n * n) as f64);
    Finding::decided(vec![quantity], 1e-12)
}

fn appendix_c_rank(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("trading-appendix-c-rank");
    let (n, k) = (16, 8);
    let (psi_x, psi_y) = (normal_matrix(n, k, &mut rng), normal_matrix(n, k, &mut rng));
    let simple = simple_features(psi_y.as_ref(), psi_x.as_ref());
    let simple_rank = rank(simple.as_ref(), 1e-10)? as f64;
    let complex_rank = rank(psi_x.kron(&psi_y).as_ref(), 1e-10)? as f64;
    let axis_rank = rank(psi_x.as_ref(), 1e-10)? as f64;
    let quantities = vec![
        Quantity::new("rank of the simple encoding, $K = 8$, $D = 2$")
            .measured(simple_rank)
            .corrected(2.0 * k as f64),
        Quantity::new("rank of the complex encoding")
            .printed(simple_rank.powi(2))
            .measured(complex_rank)
            .corrected(axis_rank.powi(2)),
    ];
    let holds = quantities[0].is_corrected(1e-12) && quantities[1].decides(1e-12);
    Ok(Finding { quantities, holds })
}
