//! Registers the operations in burn's autodiff graph.

use burn::backend::tensor::FloatTensor;
use burn::backend::{AutodiffBackend, Backend};
use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};

use super::Kernels;

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

impl<B: Kernels> Backward<B, 3> for Affine {
    /// x, W.
    type State = [FloatTensor<B>; 2];

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let [x, weights] = ops.state;
        let (dx, dw, db) = B::affine_backward(x, weights, gradient);
        register!(grads, ops.parents, [dx, dw, db]);
    }
}

#[derive(Debug)]
struct LayerNorm;

impl<B: Kernels> Backward<B, 3> for LayerNorm {
    /// x, gain; ε.
    type State = ([FloatTensor<B>; 2], f64);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let ([x, gain], epsilon) = ops.state;
        let (dx, dgain, dshift) = B::normalize_rows_backward(x, gain, gradient, epsilon);
        register!(grads, ops.parents, [dx, dgain, dshift]);
    }
}

#[derive(Debug)]
struct Gelu;

impl<B: Kernels> Backward<B, 1> for Gelu {
    type State = FloatTensor<B>;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let dx = B::gelu_tanh_backward(ops.state, gradient);
        register!(grads, ops.parents, [dx]);
    }
}

#[derive(Debug)]
struct Attend;

impl<B: Kernels> Backward<B, 3> for Attend {
    /// Q, K, V, the weights; whether causal.
    type State = ([FloatTensor<B>; 4], bool);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let ([q, k, v, weights], causal) = ops.state;
        let (dq, dk, dv) = B::attend_backward(q, k, v, weights, gradient, causal);
        register!(grads, ops.parents, [dq, dk, dv]);
    }
}

#[derive(Debug)]
struct AttendSegments;

impl<B: Kernels> Backward<B, 3> for AttendSegments {
    /// Q, K, V, the weights; lengths, heads, whether causal.
    type State = ([FloatTensor<B>; 4], Vec<usize>, usize, bool);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let g = grads.consume::<B>(&ops.node);
        let ([q, k, v, p], lengths, heads, causal) = ops.state;
        let (dq, dk, dv) = B::attend_segments_backward(q, k, v, p, g, lengths, heads, causal);
        register!(grads, ops.parents, [dq, dk, dv]);
    }
}

#[derive(Debug)]
struct CrossEntropy;

impl<B: Kernels> Backward<B, 1> for CrossEntropy {
    /// Scores, and the target columns.
    type State = (FloatTensor<B>, Vec<usize>);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let (scores, targets) = ops.state;
        register!(grads, ops.parents, [B::cross_entropy_backward(scores, targets, gradient)]);
    }
}

impl<B: Kernels + Backend, C: CheckpointStrategy> Kernels for Autodiff<B, C> {
    fn affine(
        x: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
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
        x: FloatTensor<Self>,
        gain: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self> {
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

    fn gelu_tanh(x: FloatTensor<Self>) -> FloatTensor<Self> {
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
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        heads: usize,
        causal: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
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
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        lengths: Vec<usize>,
        heads: usize,
        causal: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
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

    fn cross_entropy(scores: FloatTensor<Self>, targets: Vec<usize>) -> FloatTensor<Self> {
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
