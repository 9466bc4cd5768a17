//! Cross-entropies of log-probabilities. For logits, [`crate::kernels::cross_entropy`] needs only one pass over memory.

use burn::tensor::{Device, Int, Tensor, TensorData};

pub(crate) fn integers<T: TryInto<i64>>(numbers: Vec<T>, device: &Device) -> Tensor<1, Int> {
    // Indices are far below 2⁶³.
    let numbers: Vec<i64> = numbers.into_iter().map(|v| v.try_into().unwrap_or(i64::MAX)).collect();
    let count = numbers.len();
    Tensor::from_data(TensorData::new(numbers, [count]), device)
}

/// log p of the true class of each row of `[N, C]`, as `[N, 1]`.
fn of_truth(log_probabilities: Tensor<2>, truth: Tensor<1, Int>) -> Tensor<2> {
    log_probabilities.gather(1, truth.unsqueeze_dim(1))
}

/// Mean of −log p of the true class of each row `[N, C]`, in nats.
pub fn cross_entropy(log_probabilities: Tensor<2>, truth: Tensor<1, Int>) -> Tensor<1> {
    of_truth(log_probabilities, truth).mean().neg()
}

/// Sum of −log p of the true class of each row `[N, C]` times the row's weight `[N, 1]`, in nats.
pub fn weighted_cross_entropy(
    log_probabilities: Tensor<2>,
    truth: Tensor<1, Int>,
    weights: Tensor<2>,
) -> Tensor<1> {
    (of_truth(log_probabilities, truth) * weights).sum().neg()
}
