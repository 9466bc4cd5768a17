//! BLEU-1 and BLEU-2 (Papineni et al. 2002): clipped n-gram precision times a brevity penalty relative to the reference closest
//! in length.

use super::{Candidate, ngram_counts};

/// Longest n-grams; BLEU-n is the geometric mean over n-grams of 1 to n words.
const ORDERS: usize = 2;

/// COCO-caption's constants, added to the counts of [`bleu`] to avoid a division by zero.
const TINY: f64 = 1e-15;
const SMALL: f64 = 1e-9;

/// Counts of one candidate or of many.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    words: usize,
    closest_words: usize,
    /// N-grams of the candidate, by order.
    all: [usize; ORDERS],
    /// N-grams that a reference contains, clipped at their largest count in one reference.
    correct: [usize; ORDERS],
}

impl Counts {
    fn of(candidate: &Candidate) -> Self {
        let (words, closest_words) = (candidate.words.len(), candidate.closest_length());
        let mut counts = Counts { words, closest_words, ..Counts::default() };
        for k in 0..ORDERS {
            let references: Vec<_> =
                candidate.references.iter().map(|words| ngram_counts(words, k + 1)).collect();
            for (ngram, count) in ngram_counts(&candidate.words, k + 1) {
                let most = references.iter().filter_map(|r| r.get(ngram)).max();
                counts.all[k] += count;
                counts.correct[k] += most.map_or(0, |&most| most.min(count));
            }
        }
        counts
    }

    fn add(&mut self, other: &Counts) {
        self.words += other.words;
        self.closest_words += other.closest_words;
        for k in 0..ORDERS {
            self.all[k] += other.all[k];
            self.correct[k] += other.correct[k];
        }
    }

    fn bleu(&self) -> [f64; ORDERS] {
        let ratio = (self.words as f64 + TINY) / (self.closest_words as f64 + SMALL);
        let penalty = if ratio < 1.0 { (1.0 - 1.0 / ratio).exp() } else { 1.0 };
        let mut product = 1.0;
        std::array::from_fn(|k| {
            product *= (self.correct[k] as f64 + TINY) / (self.all[k] as f64 + SMALL);
            product.powf(1.0 / (k + 1) as f64) * penalty
        })
    }
}

/// BLEU of a corpus from the summed counts of all candidates, from 0 to 1, as COCO-caption computes it; BLEU-n is at index n − 1.
///
/// A perfect match scores about 1 − 1e-9. For a perfect match of one word, BLEU-2 is 0.001, since there are no pairs of words. All
/// n-grams of a candidate without references count as wrong. An empty corpus scores 0.
pub fn bleu(corpus: &[Candidate]) -> [f64; ORDERS] {
    let mut sum = Counts::default();
    corpus.iter().for_each(|candidate| sum.add(&Counts::of(candidate)));
    let comparable = corpus.iter().any(Candidate::is_comparable);
    if comparable { sum.bleu() } else { [0.0; ORDERS] }
}
