//! LSMR for one right-hand side.
//!
//! Golub–Kahan bidiagonalization of A and s, two rotations per step, and three-term updates of the
//! weights. Vectors are in the precision of the system, scalars in double precision. Names follow the
//! paper (Fong and Saunders 2011, Secs. 2 to 5), bars and hats written out.

use super::{LeastSquares, LeastSquaresOptions, ScatteredSystem, Stop, Workspace};
use crate::{Error, closed_form::Real};

/// Solves for one channel. After every iteration, `observe` gets the weights and the norms of residual and gradient from the
/// recurrences. It returns whether to continue.
pub(super) fn solve<T: Real, const D: usize>(
    system: &ScatteredSystem<'_, T, D>,
    target: &[T],
    options: &LeastSquaresOptions,
    observe: &mut dyn FnMut(&[T], f64, f64) -> bool,
) -> Result<LeastSquares<T>, Error> {
    let mut workspace = Workspace::<T>::default();
    let zero = T::zero_impl();
    let mut weights = vec![zero; system.n_weights()];
    let (mut u, mut image) = (target.to_vec(), vec![zero; system.n_points()]);
    let target_norm = norm(&u);
    let trivial = |weights, stop| {
        let (residual_norm, gradient_norm) = (target_norm, 0.0);
        Ok(LeastSquares { weights, iterations: 0, residual_norm, gradient_norm, stop })
    };
    check_finite(target_norm, 0)?;
    if target_norm == 0.0 {
        return trivial(weights, Stop::SmallResidual);
    }
    scale(&mut u, 1.0 / target_norm);
    let mut v = vec![zero; system.n_weights()];
    system.apply_transposed_into(&u, &mut v, &mut workspace);
    let alpha = norm(&v);
    if alpha == 0.0 {
        // The targets are orthogonal to the range of A.
        return trivial(weights, Stop::SmallGradient);
    }
    check_finite(alpha * target_norm, 0)?;
    let mut recurrence = Recurrence::new(alpha, target_norm);
    scale(&mut v, 1.0 / alpha);
    let mut transposed_image = vec![zero; system.n_weights()];
    let (mut h, mut h_bar) = (v.clone(), vec![zero; system.n_weights()]);
    let mut alpha = alpha;
    let mut iterations = 0;
    let stop = loop {
        iterations += 1;
        system.apply_into(&v, &mut image, &mut workspace);
        let beta = advance(&mut u, &image, alpha);
        if beta > 0.0 {
            system.apply_transposed_into(&u, &mut transposed_image, &mut workspace);
            alpha = advance(&mut v, &transposed_image, beta);
        }
        check_finite(alpha * beta, iterations)?;
        let steps = recurrence.advance(alpha, beta);
        let weights_norm = update(&mut weights, &mut h_bar, &mut h, &v, &steps);
        let (residual_norm, gradient_norm) = (recurrence.residual_norm, recurrence.gradient_norm);
        check_finite(weights_norm + residual_norm + gradient_norm, iterations)?;
        let go_on = observe(&weights, residual_norm, gradient_norm);
        let accepted = accepted(
            options.tolerance,
            Norms {
                operator: recurrence.squared_norm.sqrt(),
                target: target_norm,
                weights: weights_norm,
                residual: residual_norm,
                gradient: gradient_norm,
            },
        );
        if let Some(stop) = accepted {
            break stop;
        }
        if iterations == options.max_iterations || !go_on {
            break Stop::IterationLimit;
        }
    };
    // Recompute the reported norms from the weights, independently of the recurrences.
    system.apply_into(&weights, &mut image, &mut workspace);
    for (residual, s) in image.iter_mut().zip(target) {
        *residual = *s - *residual;
    }
    let residual_norm = norm(&image);
    system.apply_transposed_into(&image, &mut transposed_image, &mut workspace);
    let gradient_norm = norm(&transposed_image);
    let norms = Norms {
        operator: recurrence.squared_norm.sqrt(),
        target: target_norm,
        weights: norm(&weights),
        residual: residual_norm,
        gradient: gradient_norm,
    };
    let claimed = matches!(stop, Stop::SmallResidual | Stop::SmallGradient);
    let stop = match accepted(10.0 * options.tolerance, norms) {
        None if claimed => Stop::Rounding,
        _ => stop,
    };
    Ok(LeastSquares { weights, iterations, residual_norm, gradient_norm, stop })
}

/// Norms that the stopping rules compare.
struct Norms {
    operator: f64,
    target: f64,
    weights: f64,
    residual: f64,
    gradient: f64,
}

/// The stopping rule that is met, if any.
fn accepted(tolerance: f64, norms: Norms) -> Option<Stop> {
    let Norms { operator, target, weights, residual, gradient } = norms;
    if residual <= tolerance * (target + operator * weights) {
        return Some(Stop::SmallResidual);
    }
    (gradient <= tolerance * operator * residual).then_some(Stop::SmallGradient)
}

/// Coefficients of one update: `h_bar ← h − a·h_bar`, `w ← w + b·h_bar`, `h ← v − c·h`.
struct Steps {
    h_bar: f64,
    weights: f64,
    h: f64,
}

/// The scalars that are carried from step to step.
struct Recurrence {
    squared_norm: f64,
    residual_norm: f64,
    gradient_norm: f64,
    alpha_bar: f64,
    zeta: f64,
    zeta_bar: f64,
    rho: f64,
    rho_bar: f64,
    c_bar: f64,
    s_bar: f64,
    // For ‖r‖ (Sec. 5).
    beta_double_dot: f64,
    beta_dot: f64,
    rho_dot: f64,
    tau_tilde: f64,
    theta_tilde: f64,
}

impl Recurrence {
    fn new(alpha: f64, beta: f64) -> Self {
        Self {
            squared_norm: alpha * alpha,
            residual_norm: beta,
            gradient_norm: alpha * beta,
            alpha_bar: alpha,
            zeta: 0.0,
            zeta_bar: alpha * beta,
            rho: 1.0,
            rho_bar: 1.0,
            c_bar: 1.0,
            s_bar: 0.0,
            beta_double_dot: beta,
            beta_dot: 0.0,
            rho_dot: 1.0,
            tau_tilde: 0.0,
            theta_tilde: 0.0,
        }
    }

    /// One step with the new entries of the bidiagonal matrix.
    fn advance(&mut self, alpha: f64, beta: f64) -> Steps {
        // Rotation of the bidiagonal.
        let rho_old = self.rho;
        let (c, s, rho) = rotation(self.alpha_bar, beta);
        self.rho = rho;
        let theta = s * alpha;
        self.alpha_bar = c * alpha;

        // Rotation of the second factorization.
        let (rho_bar_old, zeta_old) = (self.rho_bar, self.zeta);
        let theta_bar = self.s_bar * rho;
        (self.c_bar, self.s_bar, self.rho_bar) = rotation(self.c_bar * rho, theta);
        self.zeta = self.c_bar * self.zeta_bar;
        self.zeta_bar *= -self.s_bar;
        let steps = Steps {
            h_bar: theta_bar * rho / (rho_old * rho_bar_old),
            weights: self.zeta / (rho * self.rho_bar),
            h: theta / rho,
        };

        let beta_hat = c * self.beta_double_dot;
        self.beta_double_dot *= -s;
        let theta_tilde_old = self.theta_tilde;
        let (c_tilde, s_tilde, rho_tilde) = rotation(self.rho_dot, theta_bar);
        self.theta_tilde = s_tilde * self.rho_bar;
        self.rho_dot = c_tilde * self.rho_bar;
        self.beta_dot = c_tilde * beta_hat - s_tilde * self.beta_dot;
        self.tau_tilde = (zeta_old - theta_tilde_old * self.tau_tilde) / rho_tilde;
        let tau_dot = (self.zeta - self.theta_tilde * self.tau_tilde) / self.rho_dot;
        let last = (self.beta_dot - tau_dot).powi(2) + self.beta_double_dot.powi(2);
        self.residual_norm = last.sqrt();
        self.gradient_norm = self.zeta_bar.abs();
        self.squared_norm += beta * beta + alpha * alpha;
        steps
    }
}

/// (c, s, r) with `c·a + s·b = r ≥ 0` and `c·b = s·a`.
fn rotation(a: f64, b: f64) -> (f64, f64, f64) {
    let r = a.hypot(b);
    if r == 0.0 { (1.0, 0.0, 0.0) } else { (a / r, b / r, r) }
}

/// `x ← image − c·x`, scaled to norm one; returns the norm before scaling.
fn advance<T: Real>(x: &mut [T], image: &[T], c: f64) -> f64 {
    let c = T::from_f64(c);
    for (x, image) in x.iter_mut().zip(image) {
        *x = *image - c * *x;
    }
    let norm = norm(x);
    if norm > 0.0 {
        scale(x, 1.0 / norm);
    }
    norm
}

/// Moves the weights and their directions; returns ‖w‖.
fn update<T: Real>(weights: &mut [T], h_bar: &mut [T], h: &mut [T], v: &[T], steps: &Steps) -> f64 {
    let [a, b, c] = [steps.h_bar, steps.weights, steps.h].map(T::from_f64);
    for (((w, h_bar), h), v) in weights.iter_mut().zip(h_bar).zip(h).zip(v) {
        *h_bar = *h - a * *h_bar;
        *w += b * *h_bar;
        *h = *v - c * *h;
    }
    norm(weights)
}

fn scale<T: Real>(x: &mut [T], factor: f64) {
    let factor = T::from_f64(factor);
    for value in x {
        *value *= factor;
    }
}

/// Euclidean norm, summed in double precision in a fixed order.
fn norm<T: Real>(x: &[T]) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let chunks = x.chunks_exact(LANES);
    for (sum, value) in sums.iter_mut().zip(chunks.remainder()) {
        *sum += value.to_f64() * value.to_f64();
    }
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += value.to_f64() * value.to_f64();
        }
    }
    sums.iter().sum::<f64>().sqrt()
}

fn check_finite(value: f64, iteration: usize) -> Result<(), Error> {
    if value.is_finite() {
        return Ok(());
    }
    Err(Error(format!(
        "values overflowed in iteration {iteration}; scale the targets and the embedding to about 1, or use double \
         precision"
    )))
}
