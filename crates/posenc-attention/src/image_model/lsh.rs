//! LSH attention (Kitaev, Kaiser, Levskaya, "Reformer: The Efficient Transformer", ICLR 2020).
//!
//! Keys are the queries at unit length. In each of R rounds, a slot falls into the bucket $\arg\max [qR_r \,\|\, -qR_r]$ of a random
//! matrix $R_r$. Slots are sorted by bucket and position and cut into chunks. A chunk attends to itself and to the chunk before it (the
//! first chunk to the last). A slot does not attend to later slots, and attends to itself only if there is no other slot. The results
//! $o_r$ of the rounds are averaged, $\sum_r o_r e^{z_r}/\sum_r e^{z_r}$, where $z_r$ is the logarithm of a round's sum of exponentials.

use burn::module::Module;
use burn::tensor::{Tensor, activation};
use posenc_math::lff::image_model::Lsh;
use rand_chacha::ChaCha8Rng;

use crate::draw::{Draw, constant, dropout_mask, normal};
use crate::layers::{Dense, MASK_BIAS};
use crate::loss::integers;
use crate::parameters::numbers;

/// Bias on the score of a slot for itself. It is weaker than [`MASK_BIAS`], so that the first slot attends to itself.
const SELF: f32 = -1e5;

/// Added to the mean square of a query, whose root normalizes the key.
const EPSILON: f64 = 1e-6;

/// Slots of all rounds in bucket order, per image and head. The backward pass reuses the order of the forward pass, because recomputed
/// inputs could fall into other buckets by rounding.
#[derive(Debug, Clone)]
pub struct Orders(Vec<Vec<u32>>);

/// LSH attention with shared queries and keys, without biases.
#[derive(Module, Debug)]
pub struct LshAttention {
    /// `[width, heads · head_width]`.
    query: Dense,
    value: Dense,
    /// `[heads · head_width, width]`.
    output: Dense,
    heads: usize,
    #[module(skip)]
    lsh: Lsh,
}

impl LshAttention {
    /// Attention of `width` inputs and outputs. Weights are sampled as for one head: uniform on ±√(6/(width + `head_width`)).
    pub fn new(draw: &mut Draw<'_>, width: usize, heads: usize, lsh: &Lsh) -> Self {
        let inner = heads * lsh.head_width;
        let limit = (6.0 / (width + lsh.head_width) as f64).sqrt();
        let mut weights =
            |shape: [usize; 2]| Dense { weights: draw.uniform(shape, -limit, limit), bias: None };
        LshAttention {
            query: weights([width, inner]),
            value: weights([width, inner]),
            output: weights([inner, width]),
            heads,
            lsh: *lsh,
        }
    }

    /// Attention of tokens `[B, T, D]`. Slots are arranged in `orders` if given, otherwise in bucket order. Also returns the orders that
    /// were used. `rng` samples the hashing matrices, and a dropout mask if `is_training`. A copy of it in the same place repeats a pass.
    pub fn forward(
        &self,
        x: Tensor<3>,
        is_training: bool,
        rng: &mut ChaCha8Rng,
        orders: Option<&Orders>,
    ) -> (Tensor<3>, Orders) {
        let ([batch, slots, _], device) = (x.dims(), x.device());
        let (heads, Lsh { head_width, chunk, buckets, rounds, dropout }) = (self.heads, self.lsh);
        // Hashing matrices of all rounds, shared by all heads and images.
        let columns = rounds * (buckets / 2);
        let rotations = normal(rng, head_width * columns, 1.0);
        let rotations = constant(rotations, [head_width, columns], &device);
        // Shared by all chunks, heads and images.
        let mask = (is_training && dropout > 0.0)
            .then(|| dropout_mask(rng, dropout, [chunk, 2 * chunk], &device));
        let (queries, values) = (self.query.forward(x.clone()), self.value.forward(x));
        let mut found = Vec::new();
        let mut images = Vec::new();
        for image in 0..batch {
            let mut results = Vec::new();
            for head in 0..heads {
                let part = |all: &Tensor<3>| {
                    let columns = head * head_width..(head + 1) * head_width;
                    let part = all.clone().slice([image..image + 1, 0..slots, columns]);
                    part.reshape([slots, head_width])
                };
                let (q, v) = (part(&queries), part(&values));
                let order = match orders {
                    Some(orders) => orders.0[image * heads + head].clone(),
                    None => self.order(&q, &rotations),
                };
                results.push(self.attend(q, v, &order, mask.as_ref()));
                found.push(order);
            }
            images.push(Tensor::cat(results, 1).unsqueeze::<3>());
        }
        (self.output.forward(Tensor::cat(images, 0)), Orders(found))
    }

    /// Slots of all rounds in bucket order.
    fn order(&self, queries: &Tensor<2>, rotations: &Tensor<2>) -> Vec<u32> {
        let Lsh { buckets, rounds, .. } = self.lsh;
        let slots = queries.dims()[0];
        let rotated = numbers(queries.clone().detach().matmul(rotations.clone()));
        let half = buckets / 2;
        let mut order = Vec::with_capacity(rounds * slots);
        for round in 0..rounds {
            let bucket = |slot: usize| {
                let row = &rotated[(slot * rounds + round) * half..][..half];
                let mut best = (0, f32::NEG_INFINITY);
                for (i, &v) in row.iter().enumerate() {
                    if v > best.1 {
                        best = (i, v);
                    }
                    if -v > best.1 {
                        best = (half + i, -v);
                    }
                }
                best.0
            };
            let bucket: Vec<usize> = (0..slots).map(bucket).collect();
            let mut sorted: Vec<u32> = (0..slots as u32).collect();
            // Stable: slots of a bucket stay in their order.
            sorted.sort_by_key(|&slot| bucket[slot as usize]);
            order.extend(sorted);
        }
        order
    }

    /// One head of one image: queries and values `[T, d]` to `[T, d]`.
    fn attend(
        &self,
        q: Tensor<2>,
        v: Tensor<2>,
        order: &[u32],
        mask: Option<&Tensor<2>>,
    ) -> Tensor<2> {
        let Lsh { chunk, rounds, head_width: d, .. } = self.lsh;
        let [slots, _] = q.dims();
        let device = q.device();
        let chunks = rounds * slots / chunk;
        let sorted = integers(order.to_vec(), &device);
        let mut back = vec![0; order.len()];
        for (place, &slot) in order.iter().enumerate() {
            back[place / slots * slots + slot as usize] = place;
        }
        let back = integers(back, &device);
        // Keys of unit length: the query over the root of its mean square, over √d.
        let size = (q.clone() * q.clone()).mean_dim(1).add_scalar(EPSILON).sqrt();
        let k = q.clone() / size.mul_scalar((d as f64).sqrt());
        let cut = |x: Tensor<2>| x.select(0, sorted.clone()).reshape([chunks, chunk, d]);
        let seen = |x: Tensor<2>| {
            let own = cut(x);
            let last = own.clone().slice([chunks - 1..chunks, 0..chunk, 0..d]);
            let first = own.clone().slice([0..chunks - 1, 0..chunk, 0..d]);
            Tensor::cat(vec![Tensor::cat(vec![last, first], 0), own], 1)
        };
        let scores = cut(q).matmul(seen(k).swap_dims(1, 2));
        let scores = scores + constant(bias(order, chunk), [chunks, chunk, 2 * chunk], &device);
        let largest = scores.clone().detach().max_dim(2);
        let weights = (scores - largest.clone()).exp();
        let sum = weights.clone().sum_dim(2);
        let size = largest + sum.clone().log();
        let mut weights = weights / sum;
        if let Some(mask) = mask {
            weights = weights * mask.clone().unsqueeze::<3>();
        }
        let rows = rounds * slots;
        let found = weights.matmul(seen(v)).reshape([rows, d]).select(0, back.clone());
        let size = size.reshape([rows, 1]).select(0, back);
        let mixed = activation::softmax(size.reshape([rounds, slots, 1]), 0);
        (found.reshape([rounds, slots, d]) * mixed).sum_dim(0).reshape([slots, d])
    }
}

/// The bias on the scores `[chunks, chunk, 2 chunk]`: [`MASK_BIAS`] for later slots, [`SELF`] for the slot itself.
fn bias(order: &[u32], chunk: usize) -> Vec<f32> {
    let chunks = order.len() / chunk;
    let mut bias = Vec::with_capacity(order.len() * 2 * chunk);
    for c in 0..chunks {
        let own = &order[c * chunk..][..chunk];
        let before = &order[(c + chunks - 1) % chunks * chunk..][..chunk];
        for query in own {
            bias.extend(before.iter().chain(own).map(|key| match key.cmp(query) {
                std::cmp::Ordering::Greater => MASK_BIAS,
                std::cmp::Ordering::Equal => SELF,
                std::cmp::Ordering::Less => 0.0,
            }));
        }
    }
    bias
}
