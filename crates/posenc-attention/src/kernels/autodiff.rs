//! Registers the operations in burn's autodiff graph, with the derivatives of `flex.rs`.

use std::fmt;
use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{AutodiffBackend, Flex};
use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn_flex::FlexTensor;

use super::segments::Layout;
use super::{Kernels, flex};

/// Maps the gradient of a result to those of the inputs.
#[derive(Clone)]
struct Derivative<const N: usize>(Arc<dyn Fn(FlexTensor) -> [FlexTensor; N] + Send + Sync>);

impl<const N: usize> fmt::Debug for Derivative<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Derivative")
    }
}

#[derive(Debug)]
struct Operation;

impl<const N: usize> Backward<Flex, N> for Operation {
    type State = Derivative<N>;

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradients = ops.state.0(grads.consume::<Flex>(&ops.node));
        for (node, gradient) in ops.parents.into_iter().zip(gradients) {
            if let Some(node) = node {
                grads.register::<Flex>(node.id, gradient);
            }
        }
    }
}

/// A tensor of an autodiff graph; its type does not depend on the checkpoint strategy.
type Float = FloatTensor<Autodiff<Flex>>;

/// The nodes of inputs, and their tensors.
fn opened<const N: usize>(inputs: [Float; N]) -> ([NodeGuard; N], [FlexTensor; N]) {
    let nodes = inputs.each_ref().map(|input| input.node());
    (nodes, inputs.map(|input| input.into_primitive()))
}

/// Registers the result of an operation on the inputs with these nodes.
fn registered<C: CheckpointStrategy, const N: usize>(
    nodes: [NodeGuard; N],
    y: FlexTensor,
    derivative: impl Fn(FlexTensor) -> [FlexTensor; N] + Send + Sync + 'static,
) -> Float {
    match Backward::<Flex, N>::prepare::<C>(Operation, nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish(Derivative(Arc::new(derivative)), y),
        OpsKind::UnTracked(prep) => prep.finish(y),
    }
}

impl<C: CheckpointStrategy> Kernels for Autodiff<Flex, C> {
    fn affine(x: Float, weights: Float, bias: Float) -> Float {
        let (nodes, [x, weights, bias]) = opened([x, weights, bias]);
        let y = Flex::affine(x.clone(), weights.clone(), bias);
        registered::<C, 3>(nodes, y, move |g| flex::affine_backward([&x, &weights, &g]))
    }

    fn normalize_rows(x: Float, gain: Float, shift: Float, epsilon: f64) -> Float {
        let (nodes, [x, gain, shift]) = opened([x, gain, shift]);
        let y = Flex::normalize_rows(x.clone(), gain.clone(), shift, epsilon);
        let derivative = move |g| flex::normalize_rows_backward([&x, &gain, &g], epsilon);
        registered::<C, 3>(nodes, y, derivative)
    }

    fn gelu_tanh(x: Float) -> Float {
        let (nodes, [x]) = opened([x]);
        let y = Flex::gelu_tanh(x.clone());
        registered::<C, 1>(nodes, y, move |g| [flex::gelu_tanh_backward([&x, &g])])
    }

    fn attend(
        query: Float,
        key: Float,
        value: Float,
        bias: Float,
        layout: Layout,
    ) -> (Float, Float) {
        let (nodes, [q, k, v]) = opened([query, key, value]);
        let bias = bias.into_primitive();
        let (y, p) = Flex::attend(q.clone(), k.clone(), v.clone(), bias, layout.clone());
        let weights = <Self as AutodiffBackend>::from_inner(p.clone());
        let derivative = move |g| flex::attend_backward([&q, &k, &v, &p, &g], &layout);
        (registered::<C, 3>(nodes, y, derivative), weights)
    }

    fn cross_entropy(scores: Float, targets: Vec<usize>) -> Float {
        let (nodes, [scores]) = opened([scores]);
        let loss = Flex::cross_entropy(scores.clone(), targets.clone());
        let derivative = move |g| [flex::cross_entropy_backward([&scores, &g], &targets)];
        registered::<C, 1>(nodes, loss, derivative)
    }
}
