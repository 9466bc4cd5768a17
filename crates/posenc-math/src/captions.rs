//! Metrics of generated captions against references: BLEU, ROUGE-L, CIDEr-D, METEOR and the F1 of tuples.
//!
//! All metrics but [`meteor`] are case-sensitive. All scores are finite: a candidate without words or without references
//! scores 0 in every metric, and the mean over no candidates is 0.

use std::collections::BTreeMap;

pub mod bleu;
pub mod cider;
pub mod meteor;
pub mod rouge;
pub mod stem;
pub mod tuples;

/// A caption to judge. A slice of them is a corpus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Its words.
    pub words: Vec<String>,
    /// The words of its reference captions, any number of them.
    pub references: Vec<Vec<String>>,
}

impl Candidate {
    /// Of texts whose words white space separates.
    #[must_use]
    pub fn split<T: AsRef<str>>(candidate: &str, references: &[T]) -> Self {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let references = references.iter().map(|text| words(text.as_ref())).collect();
        Candidate { words: words(candidate), references }
    }

    /// Whether there is anything to compare.
    fn is_comparable(&self) -> bool {
        !self.words.is_empty() && !self.references.is_empty()
    }

    /// Number of words of the reference nearest in length, the shorter of two equally near; 0 without references.
    fn closest_length(&self) -> usize {
        let lengths = self.references.iter().map(Vec::len);
        lengths.min_by_key(|&n| (n.abs_diff(self.words.len()), n)).unwrap_or(0)
    }
}

/// A metric's values over a corpus.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores {
    /// Of each candidate, in the order of the corpus.
    pub each: Vec<f64>,
    /// Their mean; 0 for none.
    pub mean: f64,
}

impl Scores {
    /// Of the values of all candidates.
    #[must_use]
    pub fn new(each: Vec<f64>) -> Self {
        // A sum over nothing would be −0.
        let mean = each.iter().fold(0.0, |sum, value| sum + value) / each.len().max(1) as f64;
        Scores { each, mean }
    }

    /// Those of the candidates at the indices that are kept.
    #[must_use]
    pub fn subset(&self, keep: impl Fn(usize) -> bool) -> Self {
        let kept = self.each.iter().enumerate().filter(|(index, _)| keep(*index));
        Scores::new(kept.map(|(_, value)| *value).collect())
    }

    fn of(corpus: &[Candidate], score: impl Fn(&Candidate) -> f64) -> Self {
        Scores::new(corpus.iter().map(score).collect())
    }
}

/// How often each run of `order` ≥ 1 words occurs.
fn ngram_counts(words: &[String], order: usize) -> BTreeMap<&[String], usize> {
    let mut counts = BTreeMap::new();
    for ngram in words.windows(order) {
        *counts.entry(ngram).or_default() += 1;
    }
    counts
}
