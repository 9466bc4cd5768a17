//! Captions: targets as tensors, their cross-entropy, and greedy and beam search.

use burn::tensor::{Device, Int, Tensor};

use crate::draw::constant;
use crate::loss::{integers, weighted_cross_entropy};
use crate::parameters::numbers;

const FILLING: usize = 0;

/// The word that ends a caption.
pub const END: usize = 1;

/// The word that starts a caption.
pub const START: usize = 3;

/// Target sentences of a decoder, padded to the longest.
#[derive(Debug, Clone)]
pub struct Sentences {
    /// Decoder input `[W, T]`: the start word and the words.
    pub read: Tensor<2, Int>,
    /// Decoder targets `[W T]`: the words and the end word.
    targets: Tensor<1, Int>,
    /// Loss weights `[W T, 1]`: one over the number of all words and ends, zero for the padding.
    weights: Tensor<2>,
}

impl Sentences {
    /// Takes sentences without start and end words, and the words for padding, end and start. `None` if there are no sentences.
    pub fn new(
        sentences: &[&[usize]],
        [filling, end, start]: [usize; 3],
        device: &Device,
    ) -> Option<Self> {
        let w = sentences.len();
        let t = sentences.iter().map(|words| words.len()).max()? + 1;
        let total: usize = sentences.iter().map(|words| words.len() + 1).sum();
        let (mut read, mut targets) = (vec![filling; w * t], vec![filling; w * t]);
        let mut weights = vec![0.0; w * t];
        for (i, words) in sentences.iter().enumerate() {
            read[i * t] = start;
            read[i * t + 1..][..words.len()].copy_from_slice(words);
            targets[i * t..][..words.len()].copy_from_slice(words);
            targets[i * t + words.len()] = end;
            weights[i * t..][..=words.len()].fill(1.0 / total as f32);
        }
        Some(Sentences {
            read: integers(read, device).reshape([w, t]),
            targets: integers(targets, device),
            weights: constant(weights, [w * t, 1], device),
        })
    }

    /// Mean cross-entropy of the words and ends in nats, for log-probabilities `[W, T, vocabulary]`.
    pub fn cross_entropy(&self, log_probabilities: Tensor<3>) -> Tensor<1> {
        let [w, t, words] = log_probabilities.dims();
        let rows = log_probabilities.reshape([w * t, words]);
        weighted_cross_entropy(rows, self.targets.clone(), self.weights.clone())
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// Number of beams; 1 is greedy search.
    pub beams: usize,
    /// α of the length penalty.
    pub alpha: f64,
    /// Maximum number of words, without the end word.
    pub max_len: usize,
}

/// A partial caption and the sum of its log-probabilities.
#[derive(Debug, Clone)]
struct Beam {
    words: Vec<usize>,
    score: f64,
    has_ended: bool,
}

impl Beam {
    /// Score divided by ((5 + length)/6)^α (Wu et al. 2016); the end word counts.
    fn normalized(&self, alpha: f64) -> f64 {
        let length = self.words.len() + usize::from(self.has_ended);
        self.score / ((5.0 + length as f64) / 6.0).powf(alpha)
    }

    /// The `count` most likely continuations; only the end word if the caption is full. Ties go to the word with the lower index.
    fn continued(&self, scores: &[f32], count: usize, is_full: bool) -> Vec<Beam> {
        let mut best: Vec<usize> = Vec::with_capacity(count + 1);
        for word in 0..scores.len() {
            if word == FILLING || word == START || (is_full && word != END) {
                continue;
            }
            let is_worse = |&other: &usize| scores[other].total_cmp(&scores[word]).is_ge();
            let place = best.iter().take_while(|other| is_worse(other)).count();
            if place < count {
                best.insert(place, word);
                best.truncate(count);
            }
        }
        let one = |word: usize| {
            let has_ended = word == END;
            let mut words = self.words.clone();
            if !has_ended {
                words.push(word);
            }
            Beam { words, score: self.score + f64::from(scores[word]), has_ended }
        };
        best.into_iter().map(one).collect()
    }
}

/// The most likely captions of `widgets` widgets, by greedy or beam search, without start and end words.
///
/// `next` takes the indices `[N]` of widgets and the words so far `[N, T]`, start word included. It returns
/// log-probabilities `[N, vocabulary]` of the next word.
pub fn search(
    widgets: usize,
    how: Search,
    device: &Device,
    next: &mut dyn FnMut(Tensor<1, Int>, Tensor<2, Int>) -> Tensor<2>,
) -> Vec<Vec<usize>> {
    let beams = how.beams.max(1);
    let start = Beam { words: Vec::new(), score: 0.0, has_ended: false };
    let mut all: Vec<Vec<Beam>> = vec![vec![start]; widgets];
    for length in 1..=how.max_len + 1 {
        // Beams that continue, with the widget of each.
        let mut going = Vec::new();
        for (widget, own) in all.iter().enumerate() {
            going.extend(own.iter().filter(|beam| !beam.has_ended).map(|beam| (widget, beam)));
        }
        if going.is_empty() {
            break;
        }
        let count = going.len();
        let mut said = Vec::with_capacity(count * length);
        let mut rows = Vec::with_capacity(count);
        for (widget, beam) in &going {
            said.push(START);
            said.extend(&beam.words);
            rows.push(*widget);
        }
        let said = integers(said, device).reshape([count, length]);
        let next = next(integers(rows, device), said);
        let vocabulary = next.dims()[1].max(1);
        let next = numbers(next);
        let mut grown: Vec<Vec<Beam>> = vec![Vec::new(); widgets];
        for ((widget, beam), scores) in going.iter().zip(next.chunks_exact(vocabulary)) {
            grown[*widget].extend(beam.continued(scores, beams, length > how.max_len));
        }
        for (own, grown) in all.iter_mut().zip(grown) {
            own.retain(|beam| beam.has_ended);
            own.extend(grown);
            own.sort_by(|a, b| b.normalized(how.alpha).total_cmp(&a.normalized(how.alpha)));
            own.truncate(beams);
        }
    }
    let best = |own: Vec<Beam>| own.into_iter().next().map_or_else(Vec::new, |beam| beam.words);
    all.into_iter().map(best).collect()
}
