//! Metrics of generated captions against references: BLEU, ROUGE-L, CIDEr-D and METEOR.
//!
//! All metrics but [`meteor`] are case-sensitive. All scores are finite: a candidate without words or without references
//! scores 0 in every metric, and the mean over no candidates is 0.

use std::collections::BTreeMap;

pub mod bleu;
pub mod cider;
pub mod meteor;
pub mod rouge;

/// A generated caption and its references. A slice of candidates is a corpus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Words of the generated caption.
    pub words: Vec<String>,
    /// Words of each reference caption; any number of references.
    pub references: Vec<Vec<String>>,
}

impl Candidate {
    /// Splits texts into words at white space.
    pub fn split<T: AsRef<str>>(candidate: &str, references: &[T]) -> Self {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let references = references.iter().map(|text| words(text.as_ref())).collect();
        Candidate { words: words(candidate), references }
    }

    fn is_comparable(&self) -> bool {
        !self.words.is_empty() && !self.references.is_empty()
    }

    /// Number of words of the reference closest in length, the shorter one of two equally close; 0 without references.
    fn closest_length(&self) -> usize {
        let lengths = self.references.iter().map(Vec::len);
        lengths.min_by_key(|&n| (n.abs_diff(self.words.len()), n)).unwrap_or(0)
    }
}

/// A metric's values over a corpus.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores {
    /// Value of each candidate, in the order of the corpus.
    pub each: Vec<f64>,
    /// Mean of `each`; 0 if it is empty.
    pub mean: f64,
}

impl Scores {
    /// Scores with the given values of all candidates.
    pub fn new(each: Vec<f64>) -> Self {
        // `sum` of an empty iterator would be −0.
        let mean = each.iter().fold(0.0, |sum, value| sum + value) / each.len().max(1) as f64;
        Scores { each, mean }
    }

    /// Scores of the candidates whose index satisfies `keep`.
    pub fn subset(&self, keep: impl Fn(usize) -> bool) -> Self {
        let kept = self.each.iter().enumerate().filter(|(index, _)| keep(*index));
        Scores::new(kept.map(|(_, value)| *value).collect())
    }

    fn of(corpus: &[Candidate], score: impl Fn(&Candidate) -> f64) -> Self {
        Scores::new(corpus.iter().map(score).collect())
    }
}

/// Number of occurrences of each n-gram of `order` ≥ 1 words.
fn ngram_counts(words: &[String], order: usize) -> BTreeMap<&[String], usize> {
    let mut counts = BTreeMap::new();
    for ngram in words.windows(order) {
        *counts.entry(ngram).or_default() += 1;
    }
    counts
}
