//! CIDEr-D (Vedantam et al. 2015): cosine similarity of n-gram counts with TF-IDF weights. The document frequency of an n-gram is
//! the number of images that have it in a reference.

use std::collections::BTreeMap;

use super::{Candidate, Scores, ngram_counts};

const ORDERS: usize = 4;
/// Standard deviation of the Gaussian length penalty, in words.
const SIGMA: f64 = 6.0;
const SCALE: f64 = 10.0;

/// A CIDEr-D scorer with the document frequencies of a corpus.
#[derive(Debug, Clone)]
pub struct Cider<'a> {
    /// Number of images that have an n-gram in a reference.
    images: BTreeMap<&'a [String], usize>,
    /// Logarithm of the number of images.
    log_images: f64,
}

/// TF-IDF weights of a caption's n-grams, by order.
struct Vector<'a> {
    weights: [BTreeMap<&'a [String], f64>; ORDERS],
    norms: [f64; ORDERS],
    words: usize,
}

impl<'a> Cider<'a> {
    /// Counts the n-grams in the references of a corpus with one candidate per image. Does not read the candidates
    /// themselves.
    pub fn new(corpus: &'a [Candidate]) -> Self {
        let mut images: BTreeMap<&[String], usize> = BTreeMap::new();
        for candidate in corpus {
            let mut ngrams: Vec<&[String]> = Vec::new();
            for order in 1..=ORDERS {
                ngrams.extend(candidate.references.iter().flat_map(|words| words.windows(order)));
            }
            ngrams.sort_unstable();
            ngrams.dedup();
            for ngram in ngrams {
                *images.entry(ngram).or_default() += 1;
            }
        }
        Cider { images, log_images: (corpus.len().max(1) as f64).ln() }
    }

    /// CIDEr-D of a candidate, from 0 to 10, as COCO-caption computes it: the mean over its references, and over n-grams
    /// of 1 to 4 words.
    ///
    /// An order counts as 0 if a reference has no n-gram of it, so even a perfect caption of two words scores at most 5.
    /// N-grams that all images have get weight 0, so with a single image every score is 0. The candidate need not belong to
    /// the counted corpus: an n-gram that the corpus lacks has a document frequency of 1.
    pub fn score(&self, candidate: &Candidate) -> f64 {
        if !candidate.is_comparable() {
            return 0.0;
        }
        let own = self.vector(&candidate.words);
        let sum: f64 = candidate.references.iter().map(|r| similarity(&own, &self.vector(r))).sum();
        SCALE * sum / (ORDERS * candidate.references.len()) as f64
    }

    /// CIDEr-D of all candidates and the mean.
    pub fn scores(&self, corpus: &[Candidate]) -> Scores {
        Scores::of(corpus, |candidate| self.score(candidate))
    }

    fn vector<'b>(&self, words: &'b [String]) -> Vector<'b> {
        let weights = std::array::from_fn(|k| {
            let mut weights = BTreeMap::new();
            for (ngram, count) in ngram_counts(words, k + 1) {
                let images = self.images.get(ngram).copied().unwrap_or(1);
                weights.insert(ngram, count as f64 * (self.log_images - (images as f64).ln()));
            }
            weights
        });
        let norm = |weights: &BTreeMap<_, f64>| weights.values().map(|w| w * w).sum::<f64>().sqrt();
        let norms = std::array::from_fn(|k| norm(&weights[k]));
        Vector { weights, norms, words: words.len() }
    }
}

/// Sum over orders of cosine similarities, with the candidate's weights clipped at those of the reference.
fn similarity(candidate: &Vector<'_>, reference: &Vector<'_>) -> f64 {
    let mut sum = 0.0;
    for k in 0..ORDERS {
        let norms = candidate.norms[k] * reference.norms[k];
        if norms > 0.0 {
            let of = |(ngram, &own): (&&[String], &f64)| {
                reference.weights[k].get(*ngram).map_or(0.0, |&weight| own.min(weight) * weight)
            };
            sum += candidate.weights[k].iter().map(of).sum::<f64>() / norms;
        }
    }
    let difference = candidate.words.abs_diff(reference.words) as f64;
    sum * (-difference * difference / (2.0 * SIGMA * SIGMA)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches document frequencies that are counted in the scored subset instead of the whole corpus.
    #[test]
    fn subsets_use_the_document_frequencies_of_the_corpus() {
        let captions = ["a red button", "a blue button", "the first row", "the last row"];
        let corpus: Vec<Candidate> =
            captions.iter().map(|c| Candidate::split("a red row", &[c])).collect();
        let all = Cider::new(&corpus);
        let whole = all.scores(&corpus);
        assert_eq!(all.scores(&corpus[1..3]).each, whole.each[1..3]);
        assert_eq!(all.scores(&corpus[1..3]), whole.subset(|index| index == 1 || index == 2));
        assert_ne!(Cider::new(&corpus[1..3]).scores(&corpus[1..3]).each, whole.each[1..3]);
    }
}
