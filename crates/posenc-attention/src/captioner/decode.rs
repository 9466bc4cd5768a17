//! What a captioner says: greedy and beam search.

use burn::tensor::{Device, Int, Tensor, TensorData, activation};

use super::batch::{END, FILLING, START};
use super::{Batch, Captioner, Captions, ScreenInput, Sizes};
use crate::parameters::numbers;

/// Screens that are looked at at once.
const CHUNK: usize = 64;

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
}

/// Captions of all widgets, screen by screen, by beam search with `beams` beams (1: greedy) and length penalty `alpha`;
/// `None` if the screens are no batch. Ties go to the word with the lower number.
pub fn captions(
    model: &Captioner,
    sizes: &Sizes,
    screens: &[ScreenInput],
    beams: usize,
    alpha: f64,
    device: &Device,
) -> Option<Vec<Vec<usize>>> {
    let model = model.without_gradients();
    let mut all = Vec::new();
    for chunk in screens.chunks(CHUNK) {
        let memory = model.memory(&Batch::new(chunk, sizes, device)?, None);
        all.extend(search(&model, sizes, memory, beams.max(1), alpha, device));
    }
    Some(all)
}

fn indices(numbers: Vec<i64>, device: &Device) -> Tensor<1, Int> {
    let count = numbers.len();
    Tensor::from_data(TensorData::new(numbers, [count]), device)
}

fn search(
    model: &Captioner,
    sizes: &Sizes,
    memory: Tensor<2>,
    beams: usize,
    alpha: f64,
    device: &Device,
) -> Vec<Vec<usize>> {
    let [widgets, _] = memory.dims();
    let start = Beam { words: Vec::new(), score: 0.0, has_ended: false };
    let mut all: Vec<Vec<Beam>> = vec![vec![start]; widgets];
    for length in 1..=sizes.longest + 1 {
        // Beams that go on, with the widget of each.
        let mut going = Vec::new();
        for (widget, own) in all.iter().enumerate() {
            going.extend(own.iter().filter(|beam| !beam.has_ended).map(|beam| (widget, beam)));
        }
        if going.is_empty() {
            break;
        }
        let rows = going.iter().map(|(widget, _)| *widget as i64).collect();
        let rows = indices(rows, device);
        let read = Captions::new(going.iter().map(|(_, beam)| beam.words.as_slice()), device);
        // Of the last word that each beam read: all have read as many.
        let last = (1..=going.len()).map(|beam| (beam * length - 1) as i64).collect();
        let scores = model.scores(&memory.clone().select(0, rows), &read);
        let next = numbers(activation::log_softmax(scores.select(0, indices(last, device)), 1));
        let mut grown: Vec<Vec<Beam>> = vec![Vec::new(); widgets];
        for ((widget, beam), scores) in going.iter().zip(next.chunks_exact(sizes.vocabulary)) {
            grown[*widget].extend(continued(beam, scores, beams, length > sizes.longest));
        }
        for (own, grown) in all.iter_mut().zip(grown) {
            own.retain(|beam| beam.has_ended);
            own.extend(grown);
            own.sort_by(|a, b| b.normalized(alpha).total_cmp(&a.normalized(alpha)));
            own.truncate(beams);
        }
    }
    let best = |own: Vec<Beam>| own.into_iter().next().map_or_else(Vec::new, |beam| beam.words);
    all.into_iter().map(best).collect()
}

/// The likeliest continuations of a beam; only its end where nothing fits any more.
fn continued(beam: &Beam, scores: &[f32], count: usize, is_full: bool) -> Vec<Beam> {
    let mut words: Vec<usize> = (0..scores.len())
        .filter(|&word| word != FILLING && word != START && (!is_full || word == END))
        .collect();
    words.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    let one = |word: usize| {
        let has_ended = word == END;
        let mut words = beam.words.clone();
        if !has_ended {
            words.push(word);
        }
        Beam { words, score: beam.score + f64::from(scores[word]), has_ended }
    };
    words.into_iter().take(count).map(one).collect()
}
