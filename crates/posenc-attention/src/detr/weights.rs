//! Loads weights by the names that PyTorch's models give them.

use burn::tensor::Device;

use super::{Detr, Head, Network, Stem};
use crate::draw::parameter;
use crate::layers::{Attended, Attention, Dense, Layer, LayerNorm};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// The residual network, with torchvision's names.
    Backbone,
    /// The whole model without its position encoding, with the names of DETR's code.
    Model,
}

/// Reads an array by its name and required shape, row by row.
pub type Read<'a, E> = dyn FnMut(&str, &[usize]) -> Result<Vec<f32>, E> + 'a;

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
fn dense<E>(own: &Dense, name: &str, more: &[usize], read: &mut Read<'_, E>) -> Result<Dense, E> {
    let [inputs, outputs] = own.weights.dims();
    let shape = [&[outputs, inputs], more].concat();
    let weights = read(&format!("{name}.weight"), &shape)?;
    let bias = read(&format!("{name}.bias"), &[outputs])?;
    Ok(dense_of(&weights, bias, &own.weights.device()))
}

/// A layer norm of the width of `own`.
fn norm<E>(own: &LayerNorm, name: &str, read: &mut Read<'_, E>) -> Result<LayerNorm, E> {
    let (device, [width]) = (own.gain.device(), own.gain.dims());
    let gain = parameter(read(&format!("{name}.weight"), &[width])?, [width], &device);
    let shift = parameter(read(&format!("{name}.bias"), &[width])?, [width], &device);
    Ok(LayerNorm { gain, shift })
}

/// Attention of the width of `own`; the file has the weights of queries, keys and values in one array.
fn attention<E>(own: &Attention, name: &str, read: &mut Read<'_, E>) -> Result<Attention, E> {
    let (width, device) = (own.output.outputs(), own.output.weights.device());
    let weights = read(&format!("{name}.in_proj_weight"), &[3 * width, width])?;
    let bias = read(&format!("{name}.in_proj_bias"), &[3 * width])?;
    let part = |i: usize| {
        let weights = &weights[i * width * width..][..width * width];
        dense_of(weights, bias[i * width..][..width].to_vec(), &device)
    };
    let output = dense(&own.output, &format!("{name}.out_proj"), &[], read)?;
    Ok(Attention { query: part(0), key: part(1), value: part(2), output, heads: own.heads })
}

/// A layer with the weights of PyTorch's transformer layers, which number their norms.
fn layer<E>(own: &Layer, name: &str, read: &mut Read<'_, E>) -> Result<Layer, E> {
    let mut norms = 0;
    let mut next = |old: &LayerNorm, read: &mut Read<'_, E>| {
        norms += 1;
        norm(old, &format!("{name}.norm{norms}"), read)
    };
    let mut attended = |old: &Attended, part: &str, read: &mut Read<'_, E>| -> Result<_, E> {
        let attention = attention(&old.attention, &format!("{name}.{part}"), read)?;
        Ok(Attended { attention, norm: next(&old.norm, read)? })
    };
    let first = attended(&own.own, "self_attn", read)?;
    let memory = own.memory.as_ref().map(|old| attended(old, "multihead_attn", read));
    let memory = memory.transpose()?;
    let up = dense(&own.dense.up, &format!("{name}.linear1"), &[], read)?;
    let down = dense(&own.dense.down, &format!("{name}.linear2"), &[], read)?;
    let dense_norm = next(&own.dense_norm, read)?;
    let dense = own.dense.with(up, down);
    Ok(Layer { own: first, memory, dense_norm, dense, ..own.clone() })
}

fn layers<E>(own: &[Layer], name: &str, read: &mut Read<'_, E>) -> Result<Vec<Layer>, E> {
    let named = own.iter().enumerate();
    named.map(|(i, own)| layer(own, &format!("transformer.{name}.layers.{i}"), read)).collect()
}

impl Detr {
    /// Replaces the weights by those of a file. Models of patches do not change. `read` receives the name and shape of each array.
    pub fn with_weights<E>(mut self, holds: Holds, read: &mut Read<'_, E>) -> Result<Self, E> {
        let Stem::Network(Network { backbone, projection }) = self.stem else {
            return Ok(self);
        };
        if holds == Holds::Backbone {
            let backbone = backbone.read("", read)?;
            return Ok(Detr { stem: Stem::Network(Network { backbone, projection }), ..self });
        }
        let backbone = backbone.read("backbone.0.body.", read)?;
        let projection = dense(&projection, "input_proj", &[1, 1], read)?;
        self.encoder_layers = layers(&self.encoder_layers, "encoder", read)?;
        self.decoder_layers = layers(&self.decoder_layers, "decoder", read)?;
        let shape = self.queries.dims();
        let queries = read("query_embed.weight", &shape)?;
        let mut own = |i: usize| {
            let name = format!("bbox_embed.layers.{i}");
            dense(&self.head.boxes[i], &name, &[], read)
        };
        let boxes = [own(0)?, own(1)?, own(2)?];
        let head = Head {
            norm: norm(&self.head.norm, "transformer.decoder.norm", read)?,
            classes: dense(&self.head.classes, "class_embed", &[], read)?,
            boxes,
        };
        let queries = parameter(queries, shape, &self.queries.device());
        let stem = Stem::Network(Network { backbone, projection });
        Ok(Detr { stem, queries, head, ..self })
    }
}
