//! Finds the box of a screen that an expression refers to.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, activation};
use posenc_math::lff::encoding::Encoding;
use rand_chacha::ChaCha8Rng;

use super::{
    BINS, Bounds, CHUNK, COORDINATES, Layers, Layout, Masks, ScreenModel, Stack, attention_bias,
    bias, largest,
};
use crate::draw::{Draw, constant};
use crate::layers::Dense;
use crate::loss::{cross_entropy, integers};
use crate::parameters::numbers;
use crate::position_encoding::PositionEncoding;
use crate::trainer::Loss;

/// Number of word counts per candidate; see [`Candidate::found`].
pub const COUNTS: usize = 2;

/// A box that the expression may refer to.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its class.
    pub class: usize,
    /// How many words of the expression occur in its text, and in its name.
    pub found: [f64; COUNTS],
    /// Its bounds.
    pub bounds: Bounds,
}

/// A screen and a referring expression.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferringScreen {
    /// Words of the expression, in order.
    pub words: Vec<usize>,
    /// Boxes that the expression may refer to, in any order.
    pub candidates: Vec<Candidate>,
    /// Index of the candidate that the expression refers to.
    pub referred: usize,
}

/// Sizes of a [`Referrer`].
#[derive(Debug, Clone, PartialEq)]
pub struct ReferrerSizes {
    /// The transformer layers.
    pub layers: Layers,
    /// Vocabulary size of the expressions.
    pub vocabulary: usize,
    /// Maximum number of words of an expression.
    pub max_len: usize,
    /// Number of classes of candidates.
    pub classes: usize,
}

/// A transformer over the words of an expression and the candidates. The token of a word is the sum of its word embedding and its
/// position embedding.
#[derive(Module, Debug)]
pub struct Referrer {
    words: Param<Tensor<2>>,
    places: Param<Tensor<2>>,
    classes: Param<Tensor<2>>,
    position: PositionEncoding,
    /// Projects the concatenated class embedding, word counts and position encoding.
    candidate: Dense,
    stack: Stack,
    score: Dense,
    #[module(skip)]
    sizes: ReferrerSizes,
}

/// A batch of screens.
struct Batch<'a> {
    screens: &'a [&'a ReferringScreen],
    layout: Layout,
    /// Number of words of each expression; `max_len` is the largest.
    lengths: Vec<usize>,
    max_len: usize,
}

impl Referrer {
    /// Initializes a model. `content` samples its weights, `code` those of the position encoding.
    ///
    /// # Errors
    ///
    /// Returns the invalid key of `encoding` and a message with the allowed values.
    pub fn new(
        sizes: &ReferrerSizes,
        encoding: &Encoding,
        content: &mut ChaCha8Rng,
        code: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, (&'static str, String)> {
        let d = sizes.layers.sizes.width;
        let sides = [BINS; COORDINATES];
        let position = PositionEncoding::new(encoding, &sides, d, &mut Draw { rng: code, device })?;
        let mut draw = Draw { rng: content, device };
        Ok(Referrer {
            words: draw.normal([sizes.vocabulary, d], 1.0),
            places: draw.normal([sizes.max_len, d], 1.0),
            classes: draw.normal([sizes.classes, d], 1.0),
            position,
            candidate: draw.dense(2 * d + COUNTS, d),
            stack: Stack::new(&mut draw, sizes.layers),
            score: draw.dense(d, 1),
            sizes: sizes.clone(),
        })
    }

    /// `None` if there is no screen, or if a screen has no words, too many words, no candidates, an unknown word or class, or a
    /// `referred` index that is out of range.
    fn batch<'a>(&self, screens: &'a [&'a ReferringScreen]) -> Option<Batch<'a>> {
        let sizes = &self.sizes;
        for screen in screens {
            let is_wrong = screen.words.is_empty()
                || screen.words.len() > sizes.max_len
                || screen.referred >= screen.candidates.len()
                || screen.words.iter().any(|&word| word >= sizes.vocabulary)
                || screen.candidates.iter().any(|candidate| candidate.class >= sizes.classes);
            if is_wrong {
                return None;
            }
        }
        let bounds: Vec<Vec<Bounds>> =
            screens.iter().map(|s| s.candidates.iter().map(|c| c.bounds).collect()).collect();
        let layout = Layout::new(bounds.iter().map(Vec::as_slice))?;
        let lengths: Vec<usize> = screens.iter().map(|screen| screen.words.len()).collect();
        let max_len = lengths.iter().copied().max()?;
        Some(Batch { screens, layout, lengths, max_len })
    }

    /// Log-probability of each candidate, `[B, N]`.
    fn log_probabilities(
        &self,
        batch: &Batch<'_>,
        masks: Option<Masks<'_>>,
        device: &Device,
    ) -> Tensor<2> {
        let (of_layers, of_code) = masks.map(|m| (m.layers, m.code)).unzip();
        let Batch { screens, layout, lengths, max_len: t } = batch;
        let (b, t, n) = (screens.len(), *t, layout.max_boxes);
        let d = self.sizes.layers.sizes.width;
        let mut words = vec![0; b * t];
        for (row, screen) in words.chunks_exact_mut(t).zip(*screens) {
            row.iter_mut().zip(&screen.words).for_each(|(slot, &word)| *slot = word);
        }
        let words = self.words.val().select(0, integers(words, device)).reshape([b, t, d]);
        let words = words + self.places.val().slice([0..t, 0..d]).unsqueeze::<3>();
        let all = || screens.iter().flat_map(|screen| &screen.candidates);
        let classes = integers(all().map(|candidate| candidate.class).collect(), device);
        let count = classes.dims()[0];
        let found = all().flat_map(|candidate| candidate.found.map(|v| v as f32)).collect();
        let parts = vec![
            self.classes.val().select(0, classes),
            constant(found, [count, COUNTS], device),
            layout.codes(&self.position, of_code, device),
        ];
        let candidates = layout.filled(self.candidate.forward(Tensor::cat(parts, 1)), device);
        let own = layout.bias();
        let said = bias(lengths, t);
        let rows = said.chunks_exact(t).zip(own.chunks_exact(n));
        let both = rows.flat_map(|(words, boxes)| words.iter().chain(boxes).copied()).collect();
        let x = Tensor::cat(vec![words, candidates], 1);
        let x = self.stack.forward(x, &attention_bias(both, b, device), of_layers);
        let scores = self.score.forward(x.slice([0..b, t..t + n, 0..d])).reshape([b, n]);
        activation::log_softmax(scores + constant(own, [b, n], device), 1)
    }

    /// Log-probability of each candidate of a screen; `None` if the screen does not fit the model.
    pub fn of_screen(&self, screen: &ReferringScreen, device: &Device) -> Option<Vec<f32>> {
        let batch = [screen];
        Some(numbers(self.log_probabilities(&self.batch(&batch)?, None, device)))
    }

    /// The likeliest candidate of each screen; `None` if a screen does not fit the model.
    pub fn choices(&self, screens: &[&ReferringScreen], device: &Device) -> Option<Vec<usize>> {
        let model = self.clone().no_grad();
        let mut all = Vec::new();
        for chunk in screens.chunks(CHUNK) {
            let batch = model.batch(chunk)?;
            let rows = numbers(model.log_probabilities(&batch, None, device));
            all.extend(rows.chunks_exact(batch.layout.max_boxes).map(largest));
        }
        Some(all)
    }
}

impl ScreenModel for Referrer {
    type Screen = ReferringScreen;

    /// The mean cross-entropy over screens.
    fn loss(
        &self,
        screens: &[&ReferringScreen],
        masks: Option<Masks<'_>>,
        device: &Device,
    ) -> Option<Loss> {
        let batch = self.batch(screens)?;
        let truth = screens.iter().map(|screen| screen.referred).collect();
        let boxes: usize = batch.layout.counts.iter().sum();
        let d = self.sizes.layers.sizes.width as f64;
        let operations =
            self.sizes.layers.operations(screens.len(), batch.max_len + batch.layout.max_boxes)
                + 6.0 * boxes as f64 * d * (2.0 * d + COUNTS as f64 + 1.0);
        let log_probabilities = self.log_probabilities(&batch, masks, device);
        let value = cross_entropy(log_probabilities, integers(truth, device));
        Some(Loss { value, penalty: None, operations })
    }
}
