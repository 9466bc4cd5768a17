//! Checks of the errata in `trading.md`.

use super::numeric::*;
use super::{Error, Finding, Inputs, quantity};
use crate::closed_form::normal_equations;
use crate::kronecker::simple_features;
use faer::Mat;
use std::f64::consts::{PI, TAU};

super::checks! {
    prop1_wording rect_distance prop5_distance prop5_bound eq37_width triangle_width eq54_square feature_count
    signal_order eq42_transpose eq49_index eq15_normalization blending_spacing simple_directions appendix_c_memory appendix_c_rank
    speedup_video rank_order extra_layer
    input_width video_depth video_points closed_form_solver
}

fn prop1_wording(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("trading-prop1-wording");
    let deficient = normal_matrix(6, 3, &mut rng) * normal_matrix(3, 6, &mut rng);
    let reachable = &deficient * normal_matrix(6, 1, &mut rng);
    let arbitrary = relative_residual(&deficient, &normal_matrix(6, 1, &mut rng))?;
    let quantities = [
        quantity("rank of the $6 \\times 6$ matrix $X$")
            .refuted(6.0, rank(deficient.as_ref(), 1e-10)?)
            .tolerance(0.1),
        quantity("residual of a target in its range")
            .confirmed(relative_residual(&deficient, &reachable)?, 0.0)
            .tolerance(1e-9),
        quantity("residual of an arbitrary target").measured(arbitrary),
    ];
    Finding::new(quantities, arbitrary > 1e-2)
}

fn rect_distance(_: &Inputs<'_>) -> Result<Finding, Error> {
    let (width, delta) = (0.1, 0.05);
    let rect = |u: f64| if u.abs() < 0.5 * width { 1.0 } else { 0.0 };
    let measured = midpoint(-0.1, 0.2, 300_000, |t| rect(t) * rect(t - delta));
    Finding::of([quantity("$D$ at half a width, width 0.1")
        .decided(tri(delta), measured, width * tri(delta / width))
        .tolerance(1e-3)])
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
    let row = |(sigma, delta): (f64, f64)| {
        let inner = |t: f64| tri(2.0 * t / sigma) * tri(2.0 * (t - delta) / sigma);
        let printed = 0.25 * sigma * sigma * tri(delta / sigma).powi(2);
        let measured = simpson(-sigma, 2.0 * sigma, 3000, inner);
        quantity(format!("$D({delta})$, $\\sigma = {sigma}$"))
            .decided(printed, measured, triangle_autocorrelation(delta, sigma))
            .tolerance(1e-6)
    };
    Finding::of([(1.0, 0.0), (1.0, 0.25), (1.0, 0.5), (1.0, 0.75), (0.1, 0.0)].map(row))
}

/// Stable rank of 1000 equispaced triangles of full width `sigma` on the circle.
fn triangle_stable_rank(sigma: f64) -> Result<f64, Error> {
    let column: Vec<f64> =
        (0..1000).map(|j| tri(wrap(f64::from(j) / 1000.0) / (0.5 * sigma))).collect();
    circulant_stable_rank(&column)
}

fn prop5_bound(_: &Inputs<'_>) -> Result<Finding, Error> {
    let sigma = 0.051;
    Finding::of([quantity("stable rank, $\\sigma = 0.051$, $N = d = 1000$")
        .decided(1.0 / sigma, triangle_stable_rank(sigma)?, 4.0 / (3.0 * sigma))
        .tolerance(1e-3)])
}

fn eq37_width(_: &Inputs<'_>) -> Result<Finding, Error> {
    let sigma = 0.2;
    let integral = |scale: f64| simpson(-0.3, 0.3, 3000, |x| tri(x / scale));
    Finding::of([quantity("$s(0)$, $\\sigma = 0.2$")
        .decided(integral(sigma), integral(0.5 * sigma), 0.5 * sigma)
        .tolerance(1e-6)])
}

fn triangle_width(_: &Inputs<'_>) -> Result<Finding, Error> {
    let half = 0.05;
    let measured = triangle_stable_rank(2.0 * half)?;
    Finding::of([quantity("stable rank of Eq. 53 with $d = 0.05$")
        .decided(4.0 / (3.0 * half), measured, 2.0 / (3.0 * half))
        .tolerance(1e-3)])
}

fn eq54_square(_: &Inputs<'_>) -> Result<Finding, Error> {
    let (k, x, d) = (256, 0.5, 0.05);
    let largest = |feature: &dyn Fn(f64) -> f64| {
        let at = |i: &usize| feature(x - *i as f64 / k as f64);
        (0..k).max_by(|a, b| at(a).total_cmp(&at(b))).unwrap_or(0) as f64
    };
    let without_square = |u: f64| (-u / (2.0 * d * d)).exp();
    let with_square = |u: f64| gaussian(u, d);
    Finding::of([
        quantity("index of the largest feature at $x = 0.5$, $K = 256$")
            .decided(largest(&without_square), largest(&with_square), x * k as f64)
            .tolerance(1e-9),
        quantity("largest feature, $d = 0.05$")
            .decided(without_square(x - 255.0 / 256.0), with_square(0.0), 1.0)
            .tolerance(1e-9),
    ])
}

fn feature_count(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let table1 = |method, metric| inputs.value("trading", "table1", "complex-gd", method, metric);
    let k = table1("all", "dim")?;
    let top = table1("LinF", "encoder_param")?.exp2();
    // With one weight per color and pair of features, the printed size determines the number of features.
    let features = (table1("LinF", "params")? / 3.0).sqrt();
    let printed_top = 1.0 / k + (k - 1.0) / k * top;
    let quantities = [
        quantity("features per axis in Table 1").decided(2.0 * k, features, k).tolerance(1e-9),
        quantity("highest frequency of LinF in Table 1")
            .printed(printed_top)
            .corrected(top)
            .unit("cycles"),
    ];
    Finding::new(quantities, printed_top < top)
}

fn signal_order(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("trading-signal-order");
    let (n, m, k) = (7, 6, 4);
    let (psi_x, psi_y) = (normal_matrix(n, k, &mut rng), normal_matrix(m, k, &mut rng));
    // I(x_i, y_j) of a signal that the complex encoding can represent.
    let image = &psi_x * normal_matrix(k, k, &mut rng) * psi_y.transpose();
    let (main_text, appendix) = (psi_x.kron(&psi_y), psi_y.kron(&psi_x));
    let (by_x, by_y) = (vec(image.as_ref()), vec(image.transpose()));
    let mut quantities = Vec::new();
    for (name, design, printed, corrected) in
        [("Eq. 10", main_text, &by_x, &by_y), ("Eq. 40", appendix, &by_y, &by_x)]
    {
        let wrong = relative_residual(&design, printed)?;
        let right = relative_residual(&design, corrected)?;
        quantities.extend([
            quantity(format!("residual of {name}, order as printed"))
                .refuted(0.0, wrong)
                .tolerance(0.1),
            quantity(format!("residual of {name}, corrected order"))
                .confirmed(right, 0.0)
                .tolerance(1e-9),
        ]);
    }
    Finding::of(quantities)
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
    let solve = |psi_x: &Mat<f64>, psi_y: &Mat<f64>, right: &Mat<f64>| {
        let half = normal_equations(psi_x.as_ref(), right).transpose().to_owned();
        normal_equations(psi_y.as_ref(), &half).transpose().to_owned()
    };
    let (psi_x, psi_y, weights) = draw(7, 6, 4);
    let signal = &psi_x * &weights * psi_y.transpose();
    let recovered = solve(&psi_x, &psi_y, &(psi_x.transpose() * &signal * &psi_y));
    let (square_x, square_y, square_weights) = draw(5, 5, 5);
    let signal = &square_x * &square_weights * square_y.transpose();
    let printed = solve(&square_x, &square_y, &(&square_x * &signal * square_y.transpose()));
    Finding::of([
        quantity("relative error of $W$ as printed, $N = M = K = 5$")
            .refuted(0.0, relative_error(&printed, &square_weights))
            .tolerance(0.1),
        quantity("relative error of $W$ as corrected, $N = 7$, $M = 6$, $K = 4$")
            .confirmed(relative_error(&recovered, &weights), 0.0)
            .tolerance(1e-9),
    ])
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
    let (first, second) = (alpha[0] * beta[0], alpha[0] * beta[1]);
    let corrected = [first, second, alpha[1] * beta[0], alpha[1] * beta[1]];
    let printed = blend([first, second, first, first]);
    let exact = value(i as f64 + a, j as f64 + b);
    let sum = first + second + alpha[1] * beta[0] + alpha[1] * beta[1];
    Finding::of([
        quantity("value blended at $(1.3, 1.6)$")
            .decided(printed, exact, blend(corrected))
            .tolerance(1e-12),
        quantity("sum of the weights").decided(3.0 * first + second, 1.0, sum).tolerance(1e-12),
    ])
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
    let quantities = [
        quantity("sum of the weights at mid-cell, Gau 0.005 (code: 1)")
            .refuted(sum(&d), 1.0)
            .tolerance(0.01),
        quantity("sum, Gau 0.001").refuted(sum(&gaussian_kernel(0.001)), 1.0).tolerance(0.01),
        quantity("sum, RFF 30").refuted(sum(&fourier), 1.0).tolerance(0.01),
        quantity("relative error of the embedding at mid-cell, Gau 0.005")
            .printed(plain)
            .measured(normalized),
    ];
    Finding::new(quantities, plain < normalized)
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
    Finding::of([
        quantity("stretch of the coordinates, $K = 256$")
            .decided(1.0, slope, (k - 1.0) / k)
            .tolerance(1e-6),
        quantity("largest shift on the 512 grid")
            .refuted(0.0, 512.0 * largest)
            .tolerance(1.0)
            .unit("pixels"),
    ])
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
    let two = image_rank(&[|x, _| x, |_, y| y])?;
    let four = image_rank(&[|x, _| x, |_, y| y, |x, y| 0.5 * (x + y), |x, y| 0.5 * (x - y + 1.0)])?;
    Finding::of([
        quantity("rank of a linear image, two directions, $16 \\times 16$")
            .printed(2.0)
            .confirmed(two, 2.0)
            .tolerance(1e-12),
        quantity("rank of a linear image, four directions").refuted(2.0, four).tolerance(0.5),
    ])
}

fn appendix_c_memory(_: &Inputs<'_>) -> Result<Finding, Error> {
    let (n, dimensions) = (64usize, 3u32);
    let weights = n.pow(dimensions);
    let encoding = Mat::<f64>::zeros(n, n);
    let stored = (weights + encoding.nrows() * encoding.ncols()) as f64;
    Finding::of([quantity("numbers beside the weights, $N = K = 64$, $D = 3$")
        .decided(2.0 * n as f64, stored - weights as f64, (n * n) as f64)
        .tolerance(1e-12)])
}

fn appendix_c_rank(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut rng = inputs.rng("trading-appendix-c-rank");
    let (n, k) = (16, 8);
    let (psi_x, psi_y) = (normal_matrix(n, k, &mut rng), normal_matrix(n, k, &mut rng));
    let simple = rank(simple_features(psi_y.as_ref(), psi_x.as_ref()).as_ref(), 1e-10)?;
    let complex = rank(psi_x.kron(&psi_y).as_ref(), 1e-10)?;
    let axis = rank(psi_x.as_ref(), 1e-10)?;
    Finding::of([
        quantity("rank of the simple encoding, $K = 8$, $D = 2$")
            .confirmed(simple, 2.0 * k as f64)
            .tolerance(1e-12),
        quantity("rank of the complex encoding")
            .decided(simple.powi(2), complex, axis.powi(2))
            .tolerance(1e-12),
    ])
}

fn speedup_video(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let claim = inputs.value("trading", "table4", "claim", "complex vs simple", "speedup")?;
    // Smallest and largest ratio of simple to complex times.
    let (mut low, mut high) = (f64::INFINITY, 0.0f64);
    for method in ["LinF", "LogF", "RFF", "Tri", "Gau"] {
        let time = |group| inputs.value("trading", "table4", group, method, "time");
        let ratio = time("simple")? / time("complex-gd")?;
        (low, high) = (low.min(ratio), high.max(ratio));
    }
    let quantities = [
        quantity("smallest ratio of times in Table 4").printed(claim).corrected(low).unit("×"),
        quantity("largest ratio").printed(claim).corrected(high).unit("×"),
    ];
    Finding::new(quantities, low > 5.0 * claim)
}

fn rank_order(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    // The values of the closed form and of gradient descent.
    let get = |method: &str, metric: &str| -> Result<[f64; 2], Error> {
        let of = |group| inputs.value("trading", "table1", group, method, metric);
        Ok([of("closed-form")?, of("complex-gd")?])
    };
    let gain = |method: &str| get(method, "test_psnr").map(|[closed, trained]| closed - trained);
    let (rff, lin) = (gain("RFF")?, gain("LinF")?);
    let [closed, trained] = get("RFF", "encoder_param")?;
    let quantities = [
        ("closed form minus gradient descent, RFF, same $\\sigma$", rff),
        ("closed form minus gradient descent, LinF", lin),
    ]
    .map(|(name, value)| quantity(name).printed(value).unit("dB"));
    Finding::new(quantities, closed == trained && rff < -1.0 && lin > 1.0)
}

fn extra_layer(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let mut quantities = Vec::new();
    let mut gains = Vec::new();
    for figure in ["fig10", "fig11", "fig12"] {
        for method in ["LinF", "LogF", "RFF"] {
            let at = |group, depth| {
                inputs.find(["trading", figure, group, method, "test_psnr"], Some(depth))
            };
            let gain = at("complex-gd-deep", 1.0)? - at("complex-gd", 0.0)?;
            let name = format!("gain by one hidden layer, {method}, Fig. {}", &figure[3..]);
            quantities.push(quantity(name).printed(gain).unit("dB"));
            gains.push(gain);
        }
    }
    let (separable, scattered) = gains.split_at(3);
    let holds = separable.iter().all(|g| *g > 1.0)
        && scattered.iter().all(|g| *g < 0.2)
        && scattered.iter().any(|g| *g < -1.0);
    Finding::new(quantities, holds)
}

/// Weights and biases of a network `input → width (× hidden) → 3`.
fn network_size(input: f64, width: f64, hidden: i32) -> f64 {
    (input + 1.0) * width + f64::from(hidden - 1) * (width + 1.0) * width + (width + 1.0) * 3.0
}

fn input_width(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let simple = |method, metric| inputs.value("trading", "table3", "simple", method, metric);
    let (printed, width) = (simple("Gau", "params")?, simple("all", "width")?);
    let script = network_size(simple("all", "dim")?, width, 5);
    Finding::of([
        quantity("parameters with the script's input of 192")
            .refuted(printed, script)
            .tolerance(0.01),
        quantity("parameters with an input of 768")
            .confirmed(network_size(768.0, width, 5), printed),
    ])
}

fn video_depth(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let printed = inputs.value("trading", "table4", "simple", "Gau", "params")?;
    let features = (printed - network_size(0.0, 512.0, 4)) / 512.0;
    let quantities = [
        quantity("parameters with 4 hidden layers of 512 and 768 features")
            .refuted(printed, network_size(768.0, 512.0, 4))
            .tolerance(0.01),
        quantity("parameters with 5 hidden layers of 512 and 768 features")
            .confirmed(network_size(768.0, 512.0, 5), printed),
        quantity("features with which 4 hidden layers have the printed number").measured(features),
    ];
    Finding::new(quantities, features % 2.0 == 1.0)
}

fn video_points(_: &Inputs<'_>) -> Result<Finding, Error> {
    let grid = 64f64.powi(3);
    let points = 0.125 * 128f64.powi(3);
    Finding::of([quantity("training points").decided(grid / 8.0, points, grid)])
}

fn closed_form_solver(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    const SIZE: usize = 256;
    let mut quantities = Vec::new();
    for (method, is_linear) in [("LinF", true), ("LogF", false)] {
        let octaves = inputs.value("trading", "table1", "closed-form", method, "encoder_param")?;
        let frequency = |i: usize| {
            let share = i as f64 / (SIZE / 2 - 1) as f64;
            if is_linear { 1.0 + share * (octaves.exp2() - 1.0) } else { (share * octaves).exp2() }
        };
        let matrix = Mat::from_fn(SIZE, SIZE, |row, column| {
            let angle = TAU * frequency(column / 2) * row as f64 / SIZE as f64;
            if column % 2 == 0 { angle.sin() } else { angle.cos() }
        });
        for (name, cutoff) in
            [("1e-2", 1e-2), ("3e-5, of the authors' library", 256.0 * f64::from(f32::EPSILON))]
        {
            let name = format!("rank of {method} at a cut-off of {name}");
            let rank = rank(matrix.as_ref(), cutoff)?;
            quantities.push(quantity(name).refuted(SIZE as f64, rank).tolerance(0.25));
        }
    }
    Finding::of(quantities)
}
