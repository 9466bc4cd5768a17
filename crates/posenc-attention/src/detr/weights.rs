//! Loads weights by the names that PyTorch's models give them.

use burn::module::Param;
use burn::tensor::{Device, Tensor};

use crate::draw::parameter;
use crate::layers::{Attention, Dense, LayerNorm};

/// Reads an array by its name and required shape, row by row.
pub type Read<'a, E> = dyn FnMut(&str, &[usize]) -> Result<Vec<f32>, E> + 'a;

/// Transposes a matrix of `rows` rows.
fn transposed(numbers: &[f32], rows: usize) -> Vec<f32> {
    let columns = numbers.len() / rows.max(1);
    (0..columns).flat_map(|c| (0..rows).map(move |r| numbers[r * columns + c])).collect()
}

/// The layer x W + b, from PyTorch's weights `[outputs, inputs]` and bias `[outputs]`.
fn dense_of(weights: &[f32], bias: Vec<f32>, device: &Device) -> Dense {
    let outputs = bias.len();
    let shape = [weights.len() / outputs.max(1), outputs];
    Dense {
        weights: parameter(transposed(weights, outputs), shape, device),
        bias: Some(parameter(bias, [outputs], device)),
    }
}

/// A dense layer of the sizes of `own`. `more` lists further dimensions of its weights in the file, such as `[1, 1]` of a 1 × 1
/// convolution.
pub(super) fn dense<E>(
    own: &Dense,
    name: &str,
    more: &[usize],
    read: &mut Read<'_, E>,
) -> Result<Dense, E> {
    let [inputs, outputs] = own.weights.dims();
    let shape = [&[outputs, inputs], more].concat();
    let weights = read(&format!("{name}.weight"), &shape)?;
    let bias = read(&format!("{name}.bias"), &[outputs])?;
    Ok(dense_of(&weights, bias, &own.weights.device()))
}

/// A layer norm of the width of `own`.
pub(super) fn norm<E>(own: &LayerNorm, name: &str, read: &mut Read<'_, E>) -> Result<LayerNorm, E> {
    let (device, [width]) = (own.gain.device(), own.gain.dims());
    let gain = parameter(read(&format!("{name}.weight"), &[width])?, [width], &device);
    let shift = parameter(read(&format!("{name}.bias"), &[width])?, [width], &device);
    Ok(LayerNorm { gain, shift })
}

/// Attention of the width of `own`; the file has the weights of queries, keys and values in one array.
pub(super) fn attention<E>(
    own: &Attention,
    name: &str,
    read: &mut Read<'_, E>,
) -> Result<Attention, E> {
    let (width, device) = (own.output.outputs(), own.output.weights.device());
    let weights = read(&format!("{name}.in_proj_weight"), &[3 * width, width])?;
    let bias = read(&format!("{name}.in_proj_bias"), &[3 * width])?;
    let mut parts = weights.chunks_exact(width * width).zip(bias.chunks_exact(width));
    let mut next = || parts.next().map(|(w, b)| dense_of(w, b.to_vec(), &device));
    let (query, key, value) = (next(), next(), next());
    let output = dense(&own.output, &format!("{name}.out_proj"), &[], read)?;
    // The array has the required shape, so the second arm is never reached.
    Ok(match (query, key, value) {
        (Some(query), Some(key), Some(value)) => {
            Attention { query, key, value, output, heads: own.heads }
        }
        _ => own.clone(),
    })
}

/// An embedding table of the sizes of `own`.
pub(super) fn table<E>(
    own: &Param<Tensor<2>>,
    name: &str,
    read: &mut Read<'_, E>,
) -> Result<Param<Tensor<2>>, E> {
    let shape = own.dims();
    Ok(parameter(read(name, &shape)?, shape, &own.device()))
}
