//! Registers the operations in burn's autodiff graph.

use burn::backend::AutodiffBackend;
use burn::backend::tensor::FloatTensor;
use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};

use super::{Derivatives, Kernels};

/// Registers the gradients of the tracked inputs.
macro_rules! register {
    ($grads:ident, $ops:ident.parents, $values:expr) => {
        for (node, gradient) in $ops.parents.into_iter().zip($values) {
            if let Some(node) = node {
                $grads.register::<B>(node.id, gradient);
            }
        }
    };
}

#[derive(Debug)]
struct Affine;

impl<B: Derivatives> Backward<B, 3> for Affine {
    /// x, W.
    type State = [FloatTensor<B>; 2];

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let [x, weights] = ops.state;
        register!(grads, ops.parents, B::affine_backward([x, weights, gradient]));
    }
}

#[derive(Debug)]
struct LayerNorm;

impl<B: Derivatives> Backward<B, 3> for LayerNorm {
    /// x, gain; ε.
    type State = ([FloatTensor<B>; 2], f64);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let ([x, gain], epsilon) = ops.state;
        let gradients = B::normalize_rows_backward([x, gain, gradient], epsilon);
        register!(grads, ops.parents, gradients);
    }
}

#[derive(Debug)]
struct Gelu;

impl<B: Derivatives> Backward<B, 1> for Gelu {
    type State = FloatTensor<B>;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        register!(grads, ops.parents, [B::gelu_tanh_backward([ops.state, gradient])]);
    }
}

#[derive(Debug)]
struct Attend;

impl<B: Derivatives> Backward<B, 3> for Attend {
    /// Q, K, V, the weights; whether causal.
    type State = ([FloatTensor<B>; 4], bool);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let ([q, k, v, weights], causal) = ops.state;
        let gradients = B::attend_backward([q, k, v, weights, gradient], causal);
        register!(grads, ops.parents, gradients);
    }
}

#[derive(Debug)]
struct AttendSegments;

impl<B: Derivatives> Backward<B, 3> for AttendSegments {
    /// Q, K, V, the weights; lengths, heads, whether causal.
    type State = ([FloatTensor<B>; 4], Vec<usize>, usize, bool);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let g = grads.consume::<B>(&ops.node);
        let ([q, k, v, p], lengths, heads, causal) = ops.state;
        let gradients = B::attend_segments_backward([q, k, v, p, g], (&lengths, heads, causal));
        register!(grads, ops.parents, gradients);
    }
}

#[derive(Debug)]
struct CrossEntropy;

impl<B: Derivatives> Backward<B, 1> for CrossEntropy {
    /// Scores, and the target columns.
    type State = (FloatTensor<B>, Vec<usize>);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let (scores, targets) = ops.state;
        let change = B::cross_entropy_backward([scores, gradient], &targets);
        register!(grads, ops.parents, [change]);
    }
}

/// A tensor of an autodiff graph.
type Float<B, C> = FloatTensor<Autodiff<B, C>>;

impl<B: Kernels + Derivatives, C: CheckpointStrategy> Kernels for Autodiff<B, C> {
    fn affine(x: Float<B, C>, weights: Float<B, C>, bias: Float<B, C>) -> Float<B, C> {
        let nodes = [x.node(), weights.node(), bias.node()];
        let [x, weights, bias] = [x, weights, bias].map(|t| t.into_primitive());
        match Affine.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let y = B::affine(x.clone(), weights.clone(), bias);
                prep.finish([x, weights], y)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::affine(x, weights, bias)),
        }
    }

    fn normalize_rows(
        x: Float<B, C>,
        gain: Float<B, C>,
        shift: Float<B, C>,
        epsilon: f64,
    ) -> Float<B, C> {
        let nodes = [x.node(), gain.node(), shift.node()];
        let [x, gain, shift] = [x, gain, shift].map(|t| t.into_primitive());
        match LayerNorm.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let y = B::normalize_rows(x.clone(), gain.clone(), shift, epsilon);
                prep.finish(([x, gain], epsilon), y)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::normalize_rows(x, gain, shift, epsilon)),
        }
    }

    fn gelu_tanh(x: Float<B, C>) -> Float<B, C> {
        match Gelu.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let x = x.into_primitive();
                let y = B::gelu_tanh(x.clone());
                prep.finish(x, y)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::gelu_tanh(x.into_primitive())),
        }
    }

    fn attend(
        query: Float<B, C>,
        key: Float<B, C>,
        value: Float<B, C>,
        bias: Float<B, C>,
        heads: usize,
        causal: bool,
    ) -> (Float<B, C>, Float<B, C>) {
        let nodes = [query.node(), key.node(), value.node()];
        let [q, k, v, bias] = [query, key, value, bias].map(|t| t.into_primitive());
        match Attend.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (y, weights) = B::attend(q.clone(), k.clone(), v.clone(), bias, heads, causal);
                let shown = <Self as AutodiffBackend>::from_inner(weights.clone());
                (prep.finish(([q, k, v, weights], causal), y), shown)
            }
            OpsKind::UnTracked(prep) => {
                let (y, weights) = B::attend(q, k, v, bias, heads, causal);
                (prep.finish(y), <Self as AutodiffBackend>::from_inner(weights))
            }
        }
    }

    fn attend_segments(
        query: Float<B, C>,
        key: Float<B, C>,
        value: Float<B, C>,
        lengths: Vec<usize>,
        heads: usize,
        causal: bool,
    ) -> (Float<B, C>, Float<B, C>) {
        let nodes = [query.node(), key.node(), value.node()];
        let [q, k, v] = [query, key, value].map(|t| t.into_primitive());
        match AttendSegments.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let of = [q.clone(), k.clone(), v.clone()];
                let (y, weights) = B::attend_segments(q, k, v, lengths.clone(), heads, causal);
                let shown = <Self as AutodiffBackend>::from_inner(weights.clone());
                let [q, k, v] = of;
                (prep.finish(([q, k, v, weights], lengths, heads, causal), y), shown)
            }
            OpsKind::UnTracked(prep) => {
                let (y, weights) = B::attend_segments(q, k, v, lengths, heads, causal);
                (prep.finish(y), <Self as AutodiffBackend>::from_inner(weights))
            }
        }
    }

    fn cross_entropy(scores: Float<B, C>, targets: Vec<usize>) -> Float<B, C> {
        let node = scores.node();
        let scores = scores.into_primitive();
        match CrossEntropy.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let loss = B::cross_entropy(scores.clone(), targets.clone());
                prep.finish((scores, targets), loss)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::cross_entropy(scores, targets)),
        }
    }
}
