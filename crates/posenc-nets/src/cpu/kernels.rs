//! Vectorized passes over slices, dispatched to the vector instructions of the machine.
//!
//! On one machine, every sum has a fixed order for any number of threads. Long sums use [`LANES`] partial sums,
//! and [`dots`] uses one partial sum per entry of a vector register.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use pulp::{Arch, Simd, WithSimd};

use crate::optimizer::StepConstants;
use posenc_math::vectorized::vectorized;

/// Partial sums of a reduction; a multiple of the vector width on every machine.
const LANES: usize = 16;

/// Writes the plane of one channel to the interleaved numbers of all channels.
pub fn interleave(plane: &[f32], channel: usize, channels: usize, out: &mut [f32]) {
    if channels == 1 {
        return out.copy_from_slice(plane);
    }
    for (out, value) in out.chunks_exact_mut(channels).zip(plane) {
        out[channel] = *value;
    }
}

/// C ← A B or C ← C + A B, on the calling thread.
pub fn multiply(c: MatMut<'_, f32>, accum: Accum, a: MatRef<'_, f32>, b: MatRef<'_, f32>) {
    matmul(c, accum, a, b, 1.0, Par::Seq);
}

/// One Adam step on a slice of parameters with the gradient `scale` · `gradient`; see [`crate::Adam`].
pub fn adam(
    step: &StepConstants,
    scale: f32,
    gradient: &[f32],
    theta: &mut [f32],
    first: &mut [f32],
    second: &mut [f32],
) {
    let step = *step;
    vectorized(
        #[inline(always)]
        || {
            for (((g, theta), m), v) in
                gradient.iter().zip(theta.iter_mut()).zip(first.iter_mut()).zip(second.iter_mut())
            {
                adam_of_one(&step, g * scale, theta, m, v);
            }
        },
    );
}

/// One Adam step on parameters whose gradient is the weight decay alone.
pub fn adam_without_gradient(
    step: &StepConstants,
    theta: &mut [f32],
    first: &mut [f32],
    second: &mut [f32],
) {
    let step = *step;
    vectorized(
        #[inline(always)]
        || {
            for ((theta, m), v) in theta.iter_mut().zip(first.iter_mut()).zip(second.iter_mut()) {
                adam_of_one(&step, 0.0, theta, m, v);
            }
        },
    );
}

#[inline(always)]
fn adam_of_one(step: &StepConstants, gradient: f32, theta: &mut f32, m: &mut f32, v: &mut f32) {
    let g = gradient + step.weight_decay * *theta;
    *m = step.beta1 * *m + step.one_minus_beta1 * g;
    *v = step.beta2 * *v + step.one_minus_beta2 * g * g;
    *theta -= step.rate * *m / (v.sqrt() * step.root_scale + step.epsilon);
}

/// H ← max(H + b, 0) on columns of `bias.len()` entries.
pub fn add_bias_and_rectify(columns: &mut [f32], bias: &[f32]) {
    vectorized(
        #[inline(always)]
        || {
            for column in columns.chunks_exact_mut(bias.len()) {
                for (h, b) in column.iter_mut().zip(bias) {
                    let z = *h + b;
                    // `max` would turn NaN into zero and hide that a run has diverged.
                    *h = if z < 0.0 { 0.0 } else { z };
                }
            }
        },
    );
}

/// H ← max(H, 0).
pub fn rectify(values: &mut [f32]) {
    vectorized(
        #[inline(always)]
        || {
            for h in values.iter_mut() {
                // `max` would turn NaN into zero and hide that a run has diverged.
                *h = if *h < 0.0 { 0.0 } else { *h };
            }
        },
    );
}

/// H ← H + b on columns of `bias.len()` entries.
pub fn add_bias(columns: &mut [f32], bias: &[f32]) {
    vectorized(
        #[inline(always)]
        || {
            for column in columns.chunks_exact_mut(bias.len()) {
                for (h, b) in column.iter_mut().zip(bias) {
                    *h += b;
                }
            }
        },
    );
}

/// G ← G where the activation H after ReLU is positive, else 0. Adds the columns of the new G to `bias`.
pub fn mask_and_sum(gradient: &mut [f32], activations: &[f32], bias: &mut [f32]) {
    vectorized(
        #[inline(always)]
        || {
            let width = bias.len();
            for (gradient, activations) in
                gradient.chunks_exact_mut(width).zip(activations.chunks_exact(width))
            {
                for ((g, h), b) in gradient.iter_mut().zip(activations).zip(bias.iter_mut()) {
                    *g = if *h > 0.0 { *g } else { 0.0 };
                    *b += *g;
                }
            }
        },
    );
}

/// z ← 1/(1 + e^-z).
pub fn sigmoid(z: &mut [f32]) {
    for z in z {
        *z = 1.0 / (1.0 + (-*z).exp());
    }
}

/// y ← y + x.
pub fn add(x: &[f32], y: &mut [f32]) {
    vectorized(
        #[inline(always)]
        || {
            for (y, x) in y.iter_mut().zip(x) {
                *y += x;
            }
        },
    );
}

/// Σ r² in double precision, lane by lane.
#[inline(always)]
fn sum_of_squares(r: &[f32]) -> f64 {
    let (chunks, rest) = r.as_chunks::<LANES>();
    let mut sums = [0.0_f64; LANES];
    for chunk in chunks {
        for k in 0..LANES {
            sums[k] += f64::from(chunk[k]) * f64::from(chunk[k]);
        }
    }
    for (sum, r) in sums.iter_mut().zip(rest) {
        *sum += f64::from(*r) * f64::from(*r);
    }
    sums.iter().sum()
}

/// r ← y − t; returns Σ r² in double precision.
pub fn residual(y: &[f32], t: &[f32], r: &mut [f32]) -> f64 {
    vectorized(
        #[inline(always)]
        || {
            for ((r, y), t) in r.iter_mut().zip(y).zip(t) {
                *r = y - t;
            }
            sum_of_squares(r)
        },
    )
}

/// y ← y − t; returns Σ y² of the new y in double precision.
pub fn residual_in_place(y: &mut [f32], t: &[f32]) -> f64 {
    vectorized(
        #[inline(always)]
        || {
            for (y, t) in y.iter_mut().zip(t) {
                *y -= t;
            }
            sum_of_squares(y)
        },
    )
}

/// u ← u − c; returns Σ θ (u − 2c) with the old u. Short partial sums are in single precision, like their factors,
/// and are added in double precision.
pub fn subtract_and_inner(theta: &[f32], c: &[f32], u: &mut [f32]) -> f64 {
    Arch::new().dispatch(SubtractAndInner { theta, c, u })
}

struct SubtractAndInner<'a> {
    theta: &'a [f32],
    c: &'a [f32],
    u: &'a mut [f32],
}

impl WithSimd for SubtractAndInner<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        /// Number of vectors summed in single precision, in `CHAINS` chains.
        const SHORT: usize = 32;
        const CHAINS: usize = 4;
        let (us, u_rest) = S::as_mut_simd_f32s(self.u);
        let (thetas, theta_rest) = S::as_simd_f32s(self.theta);
        let (cs, c_rest) = S::as_simd_f32s(self.c);
        let mut sum = 0.0;
        for ((us, thetas), cs) in
            us.chunks_mut(SHORT).zip(thetas.chunks(SHORT)).zip(cs.chunks(SHORT))
        {
            let mut short = [simd.splat_f32s(0.0); CHAINS];
            for ((us, thetas), cs) in
                us.chunks_mut(CHAINS).zip(thetas.chunks(CHAINS)).zip(cs.chunks(CHAINS))
            {
                for (k, u) in us.iter_mut().enumerate() {
                    let rest = simd.sub_f32s(*u, cs[k]);
                    let twice = simd.sub_f32s(rest, cs[k]);
                    short[k] = simd.mul_add_e_f32s(thetas[k], twice, short[k]);
                    *u = rest;
                }
            }
            for short in short {
                sum += f64::from(simd.reduce_sum_f32s(short));
            }
        }
        for (k, u) in u_rest.iter_mut().enumerate() {
            let rest = *u - c_rest[k];
            sum += f64::from(theta_rest[k]) * f64::from(rest - c_rest[k]);
            *u = rest;
        }
        sum
    }
}

pub fn sum(x: &[f32]) -> f32 {
    vectorized(
        #[inline(always)]
        || {
            let (chunks, rest) = x.as_chunks::<LANES>();
            let mut sums = [0.0_f32; LANES];
            for chunk in chunks {
                for k in 0..LANES {
                    sums[k] += chunk[k];
                }
            }
            for (sum, x) in sums.iter_mut().zip(rest) {
                *sum += x;
            }
            sums.iter().sum()
        },
    )
}

/// Rows that are processed together. Their independent sums keep the multipliers busy, and the rows are still in the
/// L1 cache when the next column needs them.
pub const ROWS: usize = 8;

/// out_k = ψ_k·r for rows ψ_k that are contiguous in `rows`.
pub fn dots(rows: &[f32], r: &[f32], out: &mut [f32]) {
    Arch::new().dispatch(Dots { rows, r, out });
}

struct Dots<'a> {
    rows: &'a [f32],
    r: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let n = self.r.len();
        let mut rows = self.rows.chunks_exact(ROWS * n);
        let mut outs = self.out.chunks_exact_mut(ROWS);
        for (rows, out) in (&mut rows).zip(&mut outs) {
            dots_of::<S, ROWS>(simd, rows, self.r, out);
        }
        for (row, out) in rows.remainder().chunks_exact(n).zip(outs.into_remainder()) {
            dots_of::<S, 1>(simd, row, self.r, std::slice::from_mut(out));
        }
    }
}

#[inline(always)]
fn dots_of<S: Simd, const K: usize>(simd: S, rows: &[f32], r: &[f32], out: &mut [f32]) {
    let n = r.len();
    let (r, r_rest) = S::as_simd_f32s(r);
    let parts: [_; K] = std::array::from_fn(|k| S::as_simd_f32s(&rows[k * n..(k + 1) * n]));
    let heads: [&[S::f32s]; K] = std::array::from_fn(|k| &parts[k].0[..r.len()]);
    let mut sums = [simd.splat_f32s(0.0); K];
    for i in 0..r.len() {
        for k in 0..K {
            sums[k] = simd.mul_add_e_f32s(heads[k][i], r[i], sums[k]);
        }
    }
    for k in 0..K {
        let mut sum = simd.reduce_sum_f32s(sums[k]);
        for (x, r) in parts[k].1.iter().zip(r_rest) {
            sum += x * r;
        }
        out[k] = sum;
    }
}

/// y ← y + Σ_k w_k ψ_k for rows ψ_k that are contiguous in `rows`.
pub fn axpys(rows: &[f32], w: &[f32], y: &mut [f32]) {
    vectorized(
        #[inline(always)]
        || {
            let n = y.len();
            let mut k = 0;
            while k + 4 <= w.len() {
                let (a, rest) = rows[k * n..].split_at(n);
                let (b, rest) = rest.split_at(n);
                let (c, rest) = rest.split_at(n);
                let d = &rest[..n];
                let y = &mut y[..n];
                let [wa, wb, wc, wd] = [w[k], w[k + 1], w[k + 2], w[k + 3]];
                for i in 0..n {
                    let sum = a[i].mul_add(wa, y[i]);
                    let sum = b[i].mul_add(wb, sum);
                    let sum = c[i].mul_add(wc, sum);
                    y[i] = d[i].mul_add(wd, sum);
                }
                k += 4;
            }
            while k < w.len() {
                let row = &rows[k * n..(k + 1) * n];
                for i in 0..n {
                    y[i] = row[i].mul_add(w[k], y[i]);
                }
                k += 1;
            }
        },
    );
}
