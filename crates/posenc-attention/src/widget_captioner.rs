//! The public widget captioner (Li et al. 2020, google-research `widget_caption`) at full size, with the position encodings of LFF
//! (Section 4.3).
//!
//! Every node of a screen is a token of six concatenated parts, each of the model's width. Two parts are the words of its text and of its
//! resource name: frozen word vectors, a dense layer, and max pooling. Three parts are embedding tables with a dense layer each: its
//! type, its clickability, and its places in the tree. The last part is the position encoding of its box. The decoder sees a single slot:
//! the encoder output of the widget's node, fused with a vector of its pixels. No attention has a bias. The dense layer of an embedding
//! table is applied to the table instead of the selected rows, which yields the same result with fewer operations.
//!
//! One detail differs from the public code. There, the start of a caption is a zero vector in training, but the embedding of a start word
//! in decoding; here it is a zero vector in both.

mod batch;
mod pixels;

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, activation};
use posenc_math::lff::encoding::{Encoding, Features};
use posenc_math::lff::widget::{BINS, COORDINATES, PARTS, Sizes, TREE_PLACES};
use rand_chacha::ChaCha8Rng;

use crate::caption::{START, Search, search};
use crate::draw::{Draw, constant};
use crate::layers::{
    Dense, Layer, LayerDropout, LayerNorm, LayerStyle, TransformerSizes, causal_bias,
};
use crate::parameters::count_trained;
use crate::position_encoding::PositionEncoding;
use crate::trainer::Loss;
use batch::TEXT_WORDS;
use pixels::PixelEncoder;
pub use pixels::Statistics;

pub use batch::{Batch, Node, ScreenInput, WidgetInput};

/// Initial standard deviation of embedding tables.
const TABLE_DEVIATION: f64 = 0.1;

/// Largest wavelength over 2π of the sinusoidal encodings of caption positions.
const TEMPERATURE: f64 = 10_000.0;

/// Screens per batch when captions are generated.
const CHUNK: usize = 16;

/// An embedding table followed by a dense layer.
#[derive(Module, Debug)]
struct Embedded {
    table: Param<Tensor<2>>,
    projection: Dense,
}

impl Embedded {
    fn new(draw: &mut Draw<'_>, rows: usize, width: usize) -> Self {
        let table = draw.normal([rows, width], TABLE_DEVIATION);
        Embedded { table, projection: draw.dense(width, width) }
    }

    fn rows(&self, at: &Tensor<1, Int>) -> Tensor<2> {
        self.projection.forward(self.table.val()).select(0, at.clone())
    }
}

/// The model with its position encoding.
#[derive(Module, Debug)]
pub struct WidgetCaptioner {
    /// Frozen word vectors `[vocabulary, word_width]`.
    words: Tensor<2>,
    word_projection: Dense,
    kinds: Embedded,
    clickable: Embedded,
    tree: [Embedded; TREE_PLACES],
    position: PositionEncoding,
    /// Dense layer after position encodings that are not embedding tables.
    position_projection: Option<Dense>,
    node: Dense,
    encoder_layers: Vec<Layer>,
    encoder_norm: LayerNorm,
    pixels: PixelEncoder,
    fusion: Dense,
    decoder_layers: Vec<Layer>,
    decoder_norm: LayerNorm,
    output: Dense,
}

impl WidgetCaptioner {
    /// Initializes a model with the given word vectors, row by row. `content` samples its weights, `code` those of the position encoding.
    ///
    /// # Errors
    ///
    /// Returns the invalid key of `encoding` and a message with the allowed values; or `word_width` if the word vectors do not have the
    /// shape that `sizes` requires.
    pub fn new(
        sizes: &Sizes,
        encoding: &Encoding,
        words: Vec<f32>,
        content: &mut ChaCha8Rng,
        code: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, (&'static str, String)> {
        let shape = [sizes.vocabulary, sizes.word_width];
        if words.len() != shape[0] * shape[1] {
            let message =
                format!("word vectors must have the shape {shape:?}, got {} values", words.len());
            return Err(("word_width", message));
        }
        let (d, layers) = (sizes.width, sizes.encoder_layers);
        let (heads, feed_forward) = (sizes.heads, sizes.feed_forward);
        let transformer = TransformerSizes { width: d, heads, feed_forward, layers };
        let style = LayerStyle { has_bias: false, ..LayerStyle::RELU };
        let mut draw = Draw { rng: code, device };
        let position = PositionEncoding::new(encoding, &[BINS; COORDINATES], d, &mut draw)?;
        let is_projected = !matches!(encoding.features, Features::None | Features::Embed);
        let position_projection = is_projected.then(|| draw.dense(d, d));
        let mut draw = Draw { rng: content, device };
        let draw = &mut draw;
        Ok(WidgetCaptioner {
            words: constant(words, shape, device),
            word_projection: draw.dense(sizes.word_width, d),
            kinds: Embedded::new(draw, sizes.types, d),
            clickable: Embedded::new(draw, 2, d),
            tree: [(); TREE_PLACES].map(|()| Embedded::new(draw, sizes.tree_rows, d)),
            position,
            position_projection,
            node: draw.dense(PARTS * d, d),
            encoder_layers: Layer::stack(draw, &transformer, layers, style),
            encoder_norm: draw.layer_norm(d),
            pixels: PixelEncoder::new(draw, sizes),
            fusion: draw.dense(sizes.pixel_width() + d, d),
            decoder_layers: Layer::stack(
                draw,
                &transformer,
                sizes.decoder_layers,
                style.with_memory(),
            ),
            decoder_norm: draw.layer_norm(d),
            output: draw.dense(d, sizes.vocabulary),
        })
    }

    /// Number of trained parameters of each part, as in the parameter counts for Table 5.
    pub fn parts(&self) -> Vec<(&'static str, usize)> {
        let norms = self.pixels.norms().map(count_trained).sum();
        vec![
            ("words", count_trained(&self.word_projection)),
            ("type", count_trained(&self.kinds)),
            ("clickable", count_trained(&self.clickable)),
            ("position", count_trained(&self.position) + count_trained(&self.position_projection)),
            ("place in the tree", count_trained(&self.tree)),
            ("node", count_trained(&self.node)),
            ("fusion with pixels", count_trained(&self.fusion)),
            ("encoder", count_trained(&self.encoder_layers) + count_trained(&self.encoder_norm)),
            ("decoder", count_trained(&self.decoder_layers) + count_trained(&self.decoder_norm)),
            ("output", count_trained(&self.output)),
            ("convolutions", count_trained(&self.pixels) - norms),
            ("batch norms", norms),
        ]
    }

    /// The decoder memory of each widget of a batch, `[W, D]`. With `statistics` (in training), batch norms use and record the statistics
    /// of the batch.
    fn memory(
        &self,
        batch: &Batch,
        sizes: &Sizes,
        statistics: Option<&mut Statistics>,
        dropout: &mut LayerDropout<'_>,
    ) -> Tensor<2> {
        let (n, d) = (batch.size(), sizes.width);
        let (b, n) = (n.screens, n.nodes);
        let mut parts = self.texts(batch, b * n, d);
        let prepared = self.position.prepare(&batch.positions, &batch.device);
        let codes = self.position.encode(&prepared, dropout.rng.as_deref_mut());
        let codes = match &self.position_projection {
            Some(projection) => projection.forward(codes),
            None => codes,
        };
        let [depth, before, after] = &self.tree;
        let [at_depth, at_before, at_after] = &batch.tree;
        let tree = depth.rows(at_depth) + before.rows(at_before) + after.rows(at_after);
        let (kinds, clickable) =
            (self.kinds.rows(&batch.kinds), self.clickable.rows(&batch.clickable));
        parts.extend([kinds, codes, clickable, tree]);
        let x = activation::relu(self.node.forward(Tensor::cat(parts, 1))).reshape([b, n, d]);
        let mut x = dropout.inner().apply(x);
        for layer in &self.encoder_layers {
            x = layer.encode(x, None, &batch.bias, dropout);
        }
        let nodes = self.encoder_norm.forward(x).reshape([b * n, d]);
        let own = nodes.select(0, batch.widgets.clone());
        let pictures =
            self.pixels.forward(batch.pictures.clone(), statistics, &mut dropout.inner());
        activation::relu(self.fusion.forward(Tensor::cat(vec![pictures, own], 1)))
    }

    /// Max-pooled word vectors of texts and of resource names, `[B N, D]` each; zero without words.
    fn texts(&self, batch: &Batch, nodes: usize, d: usize) -> Vec<Tensor<2>> {
        let nothing = |rows: usize| constant(vec![0.0; rows * d], [rows, d], &batch.device);
        let Some(texts) = &batch.texts else {
            return vec![nothing(nodes), nothing(nodes)];
        };
        let words = self.project(&batch.known).select(0, texts.words.clone());
        let pooled =
            words.reshape([texts.count, TEXT_WORDS, d]).max_dim(1).reshape([texts.count, d]);
        let pooled = Tensor::cat(vec![pooled, nothing(1)], 0);
        [&texts.of_text, &texts.of_resource].map(|at| pooled.clone().select(0, at.clone())).into()
    }

    fn project(&self, words: &Tensor<1, Int>) -> Tensor<2> {
        self.word_projection.forward(self.words.clone().select(0, words.clone()))
    }

    /// Decoder outputs `[W, T, D]` after the words `[W T]`, indices into `vectors` `[N, D]`. The start word is index N, a zero vector.
    fn decode(
        &self,
        memory: Tensor<2>,
        vectors: Tensor<2>,
        read: &Tensor<1, Int>,
        t: usize,
        dropout: &mut LayerDropout<'_>,
    ) -> Tensor<3> {
        let [w, d] = memory.dims();
        let device = memory.device();
        let nothing = constant(vec![0.0; d], [1, d], &device);
        let vectors = Tensor::cat(vec![vectors, nothing], 0);
        let words = vectors.select(0, read.clone()).reshape([w, t, d]);
        let x = words + constant(places(t, d), [1, t, d], &device);
        let mut x = dropout.residual().apply(x);
        let memory = memory.reshape([w, 1, d]);
        let causal = causal_bias(t, &device);
        for layer in &self.decoder_layers {
            x = layer.decode_slot(x, &memory, &causal, dropout);
        }
        self.decoder_norm.forward(x)
    }

    /// Log-probabilities of the words of all captions, `[W, T, vocabulary]`, with running statistics and without dropout.
    pub fn log_probabilities(&self, sizes: &Sizes, batch: &Batch) -> Tensor<3> {
        self.predict(sizes, batch, None, None)
    }

    fn predict(
        &self,
        sizes: &Sizes,
        batch: &Batch,
        statistics: Option<&mut Statistics>,
        dropout: Option<&mut ChaCha8Rng>,
    ) -> Tensor<3> {
        let mut dropout = dropouts(sizes, dropout);
        let memory = self.memory(batch, sizes, statistics, &mut dropout);
        let vectors = self.project(&batch.known);
        let t = batch.size().said;
        let x = self.decode(memory, vectors, &batch.read, t, &mut dropout);
        activation::log_softmax(self.output.forward(x), 2)
    }

    /// The loss of a training step in nats per word. Records the statistics of the batch for [`WidgetCaptioner::moved`].
    pub fn loss(
        &self,
        sizes: &Sizes,
        batch: &Batch,
        statistics: &mut Statistics,
        dropout: &mut ChaCha8Rng,
    ) -> Option<Loss> {
        let said = self.predict(sizes, batch, Some(statistics), Some(dropout));
        let value = batch.captions.cross_entropy(said);
        Some(Loss { value, penalty: None, operations: sizes.operations(batch.size()) })
    }

    /// Moves the running statistics of batch norms towards those of a batch.
    #[must_use]
    pub fn moved(self, statistics: &Statistics) -> Self {
        WidgetCaptioner { pixels: self.pixels.moved(statistics), ..self }
    }

    /// Captions of all widgets, screen by screen; `None` if the screens do not fit the model.
    pub fn captions(
        &self,
        sizes: &Sizes,
        screens: &[ScreenInput],
        how: Search,
        device: &Device,
    ) -> Option<Vec<Vec<usize>>> {
        let model = self.clone().no_grad();
        // Any word can be generated, so all are projected; the start has the index after the last word.
        let all = model.word_projection.forward(model.words.clone());
        let v = sizes.vocabulary;
        let mut captions = Vec::new();
        for chunk in screens.chunks(CHUNK) {
            let batch = Batch::new(chunk, sizes, device)?;
            let memory = model.memory(&batch, sizes, None, &mut dropouts(sizes, None));
            let widgets = memory.dims()[0];
            captions.extend(search(widgets, how, device, &mut |rows, said| {
                let [count, t] = said.dims();
                let read = said.clone().mask_fill(said.equal_elem(START as i64), v as i64);
                let memory = memory.clone().select(0, rows);
                let none = &mut dropouts(sizes, None);
                let x = model.decode(memory, all.clone(), &read.reshape([count * t]), t, none);
                let x = x.slice([0..count, t - 1..t, 0..sizes.width]);
                activation::log_softmax(model.output.forward(x), 2).reshape([count, v])
            }));
        }
        Some(captions)
    }
}

fn dropouts<'a>(sizes: &Sizes, rng: Option<&'a mut ChaCha8Rng>) -> LayerDropout<'a> {
    LayerDropout { rng, inner: sizes.dropout, residual: sizes.residual_dropout }
}

/// Sinusoidal encodings of positions 0, …, t − 1: sines, then cosines, with wavelengths from 2π to 10,000 · 2π.
fn places(t: usize, width: usize) -> Vec<f32> {
    let half = width / 2;
    let step = TEMPERATURE.ln() / (half as f64 - 1.0).max(1.0);
    let mut all = Vec::with_capacity(t * width);
    for place in 0..t {
        let phase = |i: usize| place as f64 * (-(i as f64) * step).exp();
        all.extend((0..half).map(|i| phase(i).sin() as f32));
        all.extend((0..half).map(|i| phase(i).cos() as f32));
    }
    all
}
