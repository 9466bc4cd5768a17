//! BLEU-1 and BLEU-2 (Papineni et al. 2002): clipped n-gram precision times a brevity penalty relative to the reference closest
//! in length.

use super::{Candidate, ngram_counts};

/// Longest n-grams; BLEU-n is the geometric mean over n-grams of 1 to n words.
pub const ORDERS: usize = 2;

/// COCO-caption's constants, added to the counts of [`bleu`] to avoid a division by zero.
const TINY: f64 = 1e-15;
const SMALL: f64 = 1e-9;

/// BLEU of a corpus, from 0 to 1; BLEU-n is at index n − 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Bleu {
    /// From the summed counts of all candidates; not the mean of `each`.
    pub corpus: [f64; ORDERS],
    /// From the counts of each candidate alone.
    pub each: Vec<[f64; ORDERS]>,
}

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

/// BLEU as COCO-caption computes it.
///
/// A perfect match scores about 1 − 1e-9. For a perfect match of one word, BLEU-2 is 0.001, since there are no pairs of words. In
/// the corpus value, all n-grams of a candidate without references count as wrong. An empty corpus scores 0.
#[must_use]
pub fn bleu(corpus: &[Candidate]) -> Bleu {
    let mut sum = Counts::default();
    let mut each = Vec::with_capacity(corpus.len());
    for candidate in corpus {
        let counts = Counts::of(candidate);
        sum.add(&counts);
        each.push(if candidate.is_comparable() { counts.bleu() } else { [0.0; ORDERS] });
    }
    let comparable = corpus.iter().any(Candidate::is_comparable);
    Bleu { corpus: if comparable { sum.bleu() } else { [0.0; ORDERS] }, each }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches counts that are not clipped at the largest count in one reference, and a length that is not the closest.
    #[test]
    fn values_computed_manually() {
        let the = [Candidate::split("the the the the", &["the cat the mat", "the dog"])];
        let [one, two] = bleu(&the).corpus;
        assert!((one - 0.5).abs() < 1e-8 && two < 1e-7, "{one} {two}");
        // Three words are equally close to two and to four, so there is no penalty. Two words are closest to three.
        let near = |words: &str| bleu(&[Candidate::split(words, &["a b c d", "a b"])]).corpus[0];
        assert!((near("a b c") - 1.0).abs() < 1e-8);
        let short = bleu(&[Candidate::split("a b", &["a b c", "a b c d"])]).corpus[0];
        assert!((short - (-0.5f64).exp()).abs() < 1e-8);
    }

    /// Catches a mean over candidates in place of counts over the corpus.
    #[test]
    fn counts_are_summed_over_the_corpus() {
        let corpus = [Candidate::split("a b c", &["a b c"]), Candidate::split("x", &["y"])];
        assert!((bleu(&corpus).corpus[0] - 0.75).abs() < 1e-8);
    }
}
