//! Captions: as tensors, how likely they are, and the search for the likeliest.

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::draw::constant;
use crate::parameters::numbers;

/// Word that fills up.
pub const FILLING: usize = 0;

/// Word that ends a caption.
pub const END: usize = 1;

/// Word that begins one.
pub const START: usize = 3;

/// Captions of widgets, filled up to the longest.
#[derive(Debug, Clone)]
pub struct Captions {
    /// What the decoder reads, `[W, T]`: the start and the words.
    pub read: Tensor<2, Int>,
    /// What it is to say, `[W, T]`: the words and the end.
    said: Tensor<2, Int>,
    /// One over the number of words that are to be said, where one is, else zero, `[W, T]`.
    share: Tensor<2>,
}

impl Captions {
    /// Of words without start and end; `None` without captions.
    pub fn new(captions: &[&[usize]], device: &Device) -> Option<Self> {
        let w = captions.len();
        let t = captions.iter().map(|caption| caption.len()).max()? + 1;
        let total: usize = captions.iter().map(|caption| caption.len() + 1).sum();
        let mut read = vec![FILLING as i64; w * t];
        let mut said = vec![FILLING as i64; w * t];
        let mut share = vec![0.0; w * t];
        for (i, caption) in captions.iter().enumerate() {
            read[i * t] = START as i64;
            for (j, &word) in caption.iter().enumerate() {
                read[i * t + j + 1] = word as i64;
                said[i * t + j] = word as i64;
            }
            said[i * t + caption.len()] = END as i64;
            share[i * t..][..=caption.len()].fill(1.0 / total as f32);
        }
        let table = |numbers| Tensor::from_data(TensorData::new(numbers, [w, t]), device);
        let share = constant(share, [w, t], device);
        Some(Captions { read: table(read), said: table(said), share })
    }

    /// Mean of −log p of the words that are to be said, in nats, for log-probabilities `[W, T, vocabulary]`.
    pub fn cross_entropy(&self, predictions: Tensor<3>) -> Tensor<1> {
        let [w, t, words] = predictions.dims();
        let rows = predictions.reshape([w * t, words]);
        let said = rows.gather(1, self.said.clone().reshape([w * t, 1])).reshape([w, t]);
        (said * self.share.clone()).sum().neg()
    }
}

/// How captions are searched for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// Beams; 1 takes the likeliest word each time.
    pub beams: usize,
    /// α of the length penalty.
    pub alpha: f64,
    /// Most words, without the end.
    pub longest: usize,
}

/// A caption in the making, and the sum of its log-probabilities.
#[derive(Debug, Clone)]
struct Beam {
    words: Vec<usize>,
    score: f64,
    has_ended: bool,
}

impl Beam {
    /// Score over ((5 + length)/6)^α (Wu et al. 2016); the end counts as a word.
    fn normalized(&self, alpha: f64) -> f64 {
        let length = self.words.len() + usize::from(self.has_ended);
        self.score / ((5.0 + length as f64) / 6.0).powf(alpha)
    }

    /// The likeliest continuations; only the end where nothing fits any more. Ties go to the word with the lower number.
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

/// The likeliest captions of so many widgets. `next` gives log-probabilities `[N, vocabulary]` of the word after those that were said,
/// `[N, T]` with the start, of the widgets at the given places `[N]`.
pub fn search(
    widgets: usize,
    how: Search,
    device: &Device,
    next: &mut dyn FnMut(Tensor<1, Int>, Tensor<2, Int>) -> Tensor<2>,
) -> Vec<Vec<usize>> {
    let beams = how.beams.max(1);
    let start = Beam { words: Vec::new(), score: 0.0, has_ended: false };
    let mut all: Vec<Vec<Beam>> = vec![vec![start]; widgets];
    for length in 1..=how.longest + 1 {
        // Beams that go on, with the widget of each.
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
            said.push(START as i64);
            said.extend(beam.words.iter().map(|&word| word as i64));
            rows.push(*widget as i64);
        }
        let said = Tensor::from_data(TensorData::new(said, [count, length]), device);
        let rows = Tensor::from_data(TensorData::new(rows, [count]), device);
        let next = next(rows, said);
        let vocabulary = next.dims()[1].max(1);
        let next = numbers(next);
        let mut grown: Vec<Vec<Beam>> = vec![Vec::new(); widgets];
        for ((widget, beam), scores) in going.iter().zip(next.chunks_exact(vocabulary)) {
            grown[*widget].extend(beam.continued(scores, beams, length > how.longest));
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
