//! A transformer that captions the widgets of a screen (LFF Section 4.3): the public widget captioner (Li et al. 2020, google-research
//! `widget_caption`), or a small model without pixels.
//!
//! Every node of a screen is a token of concatenated parts, among them the position encoding of its box. Layers are pre-norm. The decoder
//! sees a single slot: the encoder output of the widget's node. Cross-attention to a single slot reduces to a linear map of that slot,
//! whose result is added to every word of the caption.
//!
//! | | small model | public model |
//! | --- | --- | --- |
//! | text and resource name | embedding of one word | frozen word vectors, a dense layer, and max pooling |
//! | type, clickability, depth | embedding tables | embedding tables with a dense layer each; also the orders in the tree |
//! | position encoding | unchanged | a dense layer follows encodings that are not embedding tables |
//! | slot | node | node, fused with a vector of its pixels |
//! | attention | with biases; one dense layer for the slot | without biases; values and outputs for the slot |
//! | activation | GELU | ReLU |
//! | words and positions of captions | embedding tables | word vectors, sinusoidal encodings |
//! | dropout | none | in all layers |
//!
//! The dense layer of an embedding table is applied to the table instead of the selected rows, which yields the same result with fewer
//! operations. One detail differs from the public code. There, the start of a caption is a zero vector in training, but the embedding of
//! a start word in decoding; here it is a zero vector in both.

mod batch;
mod pixels;

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, activation};
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::encoding::{Encoding, Features};
use posenc_math::lff::widget::{PARTS, PublicInputs, TREE_PLACES};
use rand_chacha::ChaCha8Rng;

use crate::caption::{START, Search, search};
use crate::divergence::TargetVariance;
use crate::draw::{Draw, constant};
use crate::kernels;
use crate::layers::{Dense, Layer, LayerDropout, LayerNorm, LayerStyle, TransformerSizes};
use crate::loss::integers;
use crate::parameters::count_trained;
use crate::position_encoding::PositionEncoding;
use crate::trainer::Loss;
use batch::TEXT_WORDS;
use pixels::PixelEncoder;

pub use batch::{Batch, Node, ReadWords, ScreenInput, WidgetInput};
pub use pixels::Statistics;
pub use posenc_math::lff::widget::{BINS, COORDINATES};

/// Initial standard deviation of the word embeddings of nodes in the small model. Attention starts almost uniform over about sixteen nodes.
/// Word embeddings that are no larger than the other parts of a token go unused for about a thousand steps.
const WORD_DEVIATION: f64 = 3.0;

/// Initial standard deviation of other embedding tables of the public model.
const PUBLIC_DEVIATION: f64 = 0.1;

/// Number of depths with an embedding of their own in the small model; deeper nodes use the last one.
const DEPTHS: usize = 16;

/// Largest wavelength over 2π of the sinusoidal encodings of caption positions.
const TEMPERATURE: f64 = 10_000.0;

/// Screens per batch when the small and the public model generate captions.
const CHUNKS: [usize; 2] = [64, 16];

#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// Vocabulary size of nodes; 0 means no word.
    pub node_words: usize,
    pub node_kinds: usize,
    /// Vocabulary size of captions, with the special words: 0 is padding, 1 the end, 3 the start.
    pub vocabulary: usize,
    /// Maximum number of words of a caption.
    pub max_len: usize,
    pub transformer: TransformerSizes,
    pub decoder_layers: usize,
    /// The term that Eq. 10 adds to the loss.
    pub divergence: Option<Divergence>,
    /// The inputs of the public model, which has the same vocabulary for nodes and captions.
    pub public: Option<PublicInputs>,
}

impl Sizes {
    /// Floating-point operations of a training step: three times those of a forward pass. `nodes` has the number of nodes of
    /// each screen, `captions` the number of words of each caption, including the end word. `words` are different words of a batch.
    pub fn operations(&self, nodes: &[usize], captions: &[usize], words: usize) -> f64 {
        let d = self.transformer.width as f64;
        let block = |length: usize| length as f64 * self.transformer.layer_operations(length);
        let layers = self.transformer.layers as f64;
        let encoder = |&n: &usize| d * d * (n * self.parts()) as f64 + layers * block(n);
        let decoder = |&t: &usize| {
            let layer = block(t) + d * d;
            self.decoder_layers as f64 * layer + d * (t * self.vocabulary) as f64
        };
        let encoder: f64 = nodes.iter().map(encoder).sum();
        let decoder: f64 = captions.iter().map(decoder).sum();
        let others = self.public.as_ref().map_or(0.0, |own| {
            let tables = (own.types + 2 + TREE_PLACES * own.tree_rows) as f64;
            let fusion = (d + own.pixel_width() as f64) * d;
            // Dropout of attention to the slot differs from word to word, so the output layer has a row for each.
            let outputs = captions.iter().sum::<usize>() as f64 * self.decoder_layers as f64;
            (words * own.word_width) as f64 * d
                + (tables + outputs) * d * d
                + captions.len() as f64 * (own.pixel_operations() + fusion)
        });
        6.0 * (encoder + decoder + others)
    }

    /// Number of concatenated parts of a node.
    fn parts(&self) -> usize {
        if self.public.is_some() { PARTS } else { 4 }
    }

    fn dropout<'a>(&self, rng: Option<&'a mut ChaCha8Rng>) -> LayerDropout<'a> {
        let own = self.public.as_ref();
        let (inner, residual) = own.map_or((0.0, 0.0), |own| (own.dropout, own.residual_dropout));
        LayerDropout { rng, inner, residual }
    }
}

/// An embedding table, in the public model followed by a dense layer.
#[derive(Module, Debug)]
struct Table {
    table: Param<Tensor<2>>,
    projection: Option<Dense>,
}

impl Table {
    fn new(draw: &mut Draw<'_>, rows: usize, width: usize, is_public: bool) -> Self {
        let deviation = if is_public { PUBLIC_DEVIATION } else { 1.0 };
        let table = draw.normal([rows, width], deviation);
        Table { table, projection: is_public.then(|| draw.dense(width, width)) }
    }

    fn rows(&self, at: &Tensor<1, Int>) -> Tensor<2> {
        let table = self.projection.iter().fold(self.table.val(), |table, own| own.forward(table));
        table.select(0, at.clone())
    }
}

/// Frozen word vectors `[vocabulary, word_width]`, and a dense layer.
#[derive(Module, Debug)]
struct WordVectors {
    vectors: Tensor<2>,
    projection: Dense,
}

#[derive(Module, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a model has one, and `Module` has no form for a box"
)]
enum Words {
    /// Trained embeddings of the words of nodes, in the small model.
    Table(Param<Tensor<2>>),
    Vectors(WordVectors),
}

impl Words {
    /// All embeddings, or the vectors of `known` words after the dense layer. The embedding of no word and the vector of the start word are
    /// zero.
    fn of(&self, known: &[usize]) -> Tensor<2> {
        let (rows, zero) = match self {
            Words::Table(table) => (table.val(), Some(0)),
            Words::Vectors(WordVectors { vectors, projection }) => {
                let own = vectors.clone().select(0, integers(known.to_vec(), &vectors.device()));
                (projection.forward(own), known.iter().position(|&word| word == START))
            }
        };
        let (count, device) = (rows.dims()[0], rows.device());
        let kept = (0..count).map(|row| if Some(row) == zero { 0.0 } else { 1.0 }).collect();
        rows * constant(kept, [count, 1], &device)
    }
}

#[derive(Module, Debug)]
pub struct Captioner {
    words: Words,
    kinds: Table,
    clickable: Table,
    /// Depth; in the public model also pre-order and post-order.
    tree: Vec<Table>,
    position: PositionEncoding,
    position_projection: Option<Dense>,
    /// Projects the concatenated parts of a node.
    node: Dense,
    encoder_layers: Vec<Layer>,
    encoder_norm: LayerNorm,
    pixels: Option<PixelEncoder>,
    /// Embeddings of the words of captions and of their positions, in the small model.
    caption_words: Option<Param<Tensor<2>>>,
    caption_places: Option<Param<Tensor<2>>>,
    decoder_layers: Vec<Layer>,
    /// The map of the slot in each layer of the small model; layers of the public model have attention to a memory.
    memory: Vec<Dense>,
    decoder_norm: LayerNorm,
    output: Dense,
    /// Target variance of the penalty on learned frequencies.
    target: Option<TargetVariance>,
    #[module(skip)]
    sizes: Sizes,
}

impl Captioner {
    /// Initializes a model. `content` samples its weights, `code` those of the position encoding. `vectors` are the word vectors of the
    /// public model, row by row.
    pub fn new(
        sizes: &Sizes,
        encoding: &Encoding,
        vectors: Vec<f32>,
        [mut content, mut code]: [ChaCha8Rng; 2],
        device: &Device,
    ) -> Self {
        let (public, is_public) = (sizes.public.as_ref(), sizes.public.is_some());
        let TransformerSizes { width: d, layers, .. } = sizes.transformer;
        let mut draw = Draw { rng: &mut code, device };
        let position = PositionEncoding::new(encoding, &[BINS; COORDINATES], d, &mut draw);
        let is_projected =
            is_public && !matches!(encoding.features, Features::None | Features::Embed);
        let position_projection = is_projected.then(|| draw.dense(d, d));
        let draw = &mut Draw { rng: &mut content, device };
        let style = match is_public {
            true => LayerStyle { has_bias: false, ..LayerStyle::RELU },
            false => LayerStyle::GELU,
        };
        let of_slot = LayerStyle { has_memory: is_public, ..style };
        let words = match public {
            Some(own) => Words::Vectors(WordVectors {
                vectors: constant(vectors, [sizes.vocabulary, own.word_width], device),
                projection: draw.dense(own.word_width, d),
            }),
            None => Words::Table(draw.normal([sizes.node_words, d], WORD_DEVIATION)),
        };
        let tree = public.map_or(vec![DEPTHS], |own| vec![own.tree_rows; TREE_PLACES]);
        Captioner {
            words,
            kinds: Table::new(draw, sizes.node_kinds, d, is_public),
            clickable: Table::new(draw, 2, d, is_public),
            tree: tree.into_iter().map(|rows| Table::new(draw, rows, d, is_public)).collect(),
            position,
            position_projection,
            node: draw.dense(sizes.parts() * d, d),
            encoder_layers: Layer::stack(draw, &sizes.transformer, layers, style),
            encoder_norm: draw.layer_norm(d),
            pixels: public.map(|own| PixelEncoder::new(draw, own, d)),
            caption_words: (!is_public).then(|| draw.normal([sizes.vocabulary, d], 1.0)),
            caption_places: (!is_public).then(|| draw.normal([sizes.max_len + 1, d], 1.0)),
            decoder_layers: Layer::stack(draw, &sizes.transformer, sizes.decoder_layers, of_slot),
            memory: match is_public {
                true => Vec::new(),
                false => (0..sizes.decoder_layers).map(|_| draw.dense(d, d)).collect(),
            },
            decoder_norm: draw.layer_norm(d),
            output: draw.dense(d, sizes.vocabulary),
            target: TargetVariance::of(sizes.divergence, encoding, device),
            sizes: sizes.clone(),
        }
    }

    pub fn position_encoding(&self) -> &PositionEncoding {
        &self.position
    }

    /// Number of trained parameters of each part of the public model, as in the parameter counts for Table 5.
    pub fn parts(&self) -> Vec<(&'static str, usize)> {
        let norms = self.pixels.iter().flat_map(PixelEncoder::norms).map(count_trained).sum();
        let fusion = self.pixels.as_ref().map_or(0, |own| count_trained(&own.fusion));
        vec![
            ("words", count_trained(&self.words)),
            ("type", count_trained(&self.kinds)),
            ("clickable", count_trained(&self.clickable)),
            ("position", count_trained(&self.position) + count_trained(&self.position_projection)),
            ("place in the tree", count_trained(&self.tree)),
            ("node", count_trained(&self.node)),
            ("fusion with pixels", fusion),
            ("encoder", count_trained(&self.encoder_layers) + count_trained(&self.encoder_norm)),
            ("decoder", count_trained(&self.decoder_layers) + count_trained(&self.decoder_norm)),
            ("output", count_trained(&self.output)),
            ("convolutions", count_trained(&self.pixels) - fusion - norms),
            ("batch norms", norms),
        ]
    }

    /// The slot of each widget of a batch, `[W, D]`. With `statistics` (in training), batch norms use and record the statistics of the
    /// batch.
    pub fn memory(
        &self,
        batch: &Batch,
        statistics: Option<&mut Statistics>,
        dropout: Option<&mut ChaCha8Rng>,
    ) -> Tensor<2> {
        let mut dropout = self.sizes.dropout(dropout);
        let [text, resource, kinds, clickable, tree @ ..] = &batch.columns;
        let texts = self.texts(batch);
        let codes = batch.coordinates.clone();
        let codes = self.position.encode_boxes(codes, dropout.rng.as_deref_mut(), &batch.device);
        let codes = self.position_projection.iter().fold(codes, |codes, own| own.forward(codes));
        let text = texts.clone().select(0, text.clone());
        let (kinds, clickable) = (self.kinds.rows(kinds), self.clickable.rows(clickable));
        let tree = self.tree.iter().zip(tree).map(|(table, at)| table.rows(at));
        let parts = match self.sizes.public {
            Some(_) => {
                let tree = tree.reduce(|sum, own| sum + own);
                let resource = texts.select(0, resource.clone());
                [text, resource, kinds, codes, clickable].into_iter().chain(tree).collect()
            }
            None => vec![text, kinds, tree.fold(clickable, |sum, own| sum + own), codes],
        };
        let x = activation::relu(self.node.forward(Tensor::cat(parts, 1)));
        let mut x = dropout.inner().apply(x);
        for layer in &self.encoder_layers {
            x = layer.attend_segments(x, &batch.nodes, false, &mut dropout);
            x = layer.transform(x, &mut dropout);
        }
        let nodes = self.encoder_norm.forward(x).select(0, batch.widgets.clone());
        match (&self.pixels, &batch.pictures) {
            (Some(pixels), Some(pictures)) => {
                pixels.forward(nodes, pictures.clone(), statistics, &mut dropout.inner())
            }
            _ => nodes,
        }
    }

    /// Vectors of texts; the first one, of texts without words, is zero.
    fn texts(&self, batch: &Batch) -> Tensor<2> {
        let words = self.words.of(&batch.known);
        if self.sizes.public.is_none() {
            return words;
        }
        let (count, d) = (batch.texts.dims()[0] / TEXT_WORDS, words.dims()[1]);
        let words = words.select(0, batch.texts.clone()).reshape([count, TEXT_WORDS, d]);
        words.max_dim(1).reshape([count, d])
    }

    /// Embeddings of the words that a decoder reads: those of `known`, or the whole vocabulary of the small model.
    fn read_words(&self, known: &[usize]) -> Tensor<2> {
        let own = self.caption_words.as_ref();
        own.map_or_else(|| self.words.of(known), |words| words.val())
    }

    /// Decoder outputs after each word of `read`, `[N, D]`. `memory` `[W, D]` comes from [`Captioner::memory`], `words` from
    /// [`Captioner::read_words`].
    fn decode(
        &self,
        memory: &Tensor<2>,
        words: Tensor<2>,
        read: &ReadWords,
        dropout: Option<&mut ChaCha8Rng>,
    ) -> Tensor<2> {
        let mut dropout = self.sizes.dropout(dropout);
        let places = match &self.caption_places {
            Some(places) => places.val(),
            None => sinusoids(self.sizes.max_len + 1, words.dims()[1], &memory.device()),
        };
        let x = words.select(0, read.words.clone()) + places.select(0, read.places.clone());
        let mut x = dropout.residual().apply(x);
        for (i, layer) in self.decoder_layers.iter().enumerate() {
            x = layer.attend_segments(x, &read.lengths, true, &mut dropout);
            x = match self.memory.get(i) {
                Some(map) => x + map.forward(memory.clone()).select(0, read.captions.clone()),
                None => layer.attend_slots(x, memory, &read.captions, &mut dropout),
            };
            x = layer.transform(x, &mut dropout);
        }
        self.decoder_norm.forward(x)
    }

    /// Logits `[N, vocabulary]` of the words of all captions of a batch and of their ends, with the statistics and the dropout of training
    /// if these are given.
    pub fn scores(
        &self,
        batch: &Batch,
        statistics: Option<&mut Statistics>,
        mut dropout: Option<&mut ChaCha8Rng>,
    ) -> Tensor<2> {
        let memory = self.memory(batch, statistics, dropout.as_deref_mut());
        let words = self.read_words(&batch.known);
        self.output.forward(self.decode(&memory, words, &batch.read, dropout))
    }

    /// The loss of a training step in nats per word. `dropout` samples the dropout masks. Records the statistics of the batch for
    /// [`Captioner::moved`].
    pub fn loss(
        &self,
        batch: &Batch,
        statistics: &mut Statistics,
        dropout: &mut ChaCha8Rng,
    ) -> Loss {
        let scores = self.scores(batch, Some(statistics), Some(dropout));
        Loss {
            value: kernels::cross_entropy(scores, &batch.targets),
            penalty: self.target.as_ref().and_then(|target| target.penalty(&self.position)),
            operations: batch.operations(&self.sizes),
        }
    }

    /// Moves the running statistics of batch norms towards those of a batch.
    #[must_use]
    pub fn moved(self, statistics: &Statistics) -> Self {
        Captioner { pixels: self.pixels.map(|own| own.moved(statistics)), ..self }
    }

    /// Captions of all widgets, screen by screen.
    pub fn captions(
        &self,
        screens: &[ScreenInput],
        how: Search,
        device: &Device,
    ) -> Vec<Vec<usize>> {
        let model = self.clone().no_grad();
        // Any word can be generated, so all are known.
        let all: Vec<usize> = (0..self.sizes.vocabulary).collect();
        let words = model.read_words(&all);
        let mut captions = Vec::new();
        for chunk in screens.chunks(CHUNKS[usize::from(self.sizes.public.is_some())]) {
            let memory = model.memory(&Batch::new(chunk, &self.sizes, device), None, None);
            captions.extend(search(memory.dims()[0], how, device, &mut |rows, said| {
                let [count, length] = said.dims();
                let memory = memory.clone().select(0, rows);
                let last = integers((1..=count).map(|beam| beam * length - 1).collect(), device);
                let x = model.decode(&memory, words.clone(), &ReadWords::alike(said), None);
                activation::log_softmax(model.output.forward(x.select(0, last)), 1)
            }));
        }
        captions
    }
}

/// Sinusoidal encodings of positions 0, …, t − 1: sines, then cosines, with wavelengths from 2π to 10,000 · 2π.
fn sinusoids(t: usize, width: usize, device: &Device) -> Tensor<2> {
    let half = width / 2;
    let step = TEMPERATURE.ln() / (half as f64 - 1.0).max(1.0);
    let mut all = Vec::with_capacity(t * width);
    for place in 0..t {
        let phase = |i: usize| place as f64 * (-(i as f64) * step).exp();
        all.extend((0..half).map(|i| phase(i).sin() as f32));
        all.extend((0..half).map(|i| phase(i).cos() as f32));
    }
    constant(all, [t, width], device)
}
