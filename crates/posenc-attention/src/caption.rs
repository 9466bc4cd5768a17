//! Greedy and beam search of captions.

use burn::tensor::{Device, Int, Tensor};

use crate::loss::integers;
use crate::parameters::numbers;

const FILLING: usize = 0;

/// The word that ends a caption.
pub const END: usize = 1;

/// The word that starts a caption.
pub const START: usize = 3;

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
