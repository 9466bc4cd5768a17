//! ROUGE-L (Lin 2004): F-measure of the longest common subsequence of a candidate and a reference.

use super::{Candidate, Scores};

/// Weight of recall relative to precision, as in COCO-caption.
const BETA: f64 = 1.2;

/// ROUGE-L of each candidate, from 0 to 1, and the mean, as COCO-caption computes them.
///
/// The F-measure combines the largest precision and the largest recall over the references, even if they belong to different
/// references. An empty candidate scores 0; COCO-caption scores 1 if a reference is also empty.
/// Time is proportional to the product of both lengths, memory to the length of a reference.
pub fn rouge(corpus: &[Candidate]) -> Scores {
    Scores::of(corpus, score)
}

fn score(candidate: &Candidate) -> f64 {
    let (mut precision, mut recall) = (0.0f64, 0.0f64);
    for reference in &candidate.references {
        let common = longest_common_subsequence(&candidate.words, reference) as f64;
        if common > 0.0 {
            precision = precision.max(common / candidate.words.len() as f64);
            recall = recall.max(common / reference.len() as f64);
        }
    }
    if precision == 0.0 {
        return 0.0;
    }
    let square = BETA * BETA;
    (1.0 + square) * precision * recall / (recall + square * precision)
}

/// Number of words of the longest common subsequence.
fn longest_common_subsequence(a: &[String], b: &[String]) -> usize {
    // At index j: the length for the words of `a` so far and the first j words of `b`.
    let mut lengths = vec![0; b.len() + 1];
    for word in a {
        let mut diagonal = 0;
        for (j, other) in b.iter().enumerate() {
            let above = lengths[j + 1];
            lengths[j + 1] = if word == other { diagonal + 1 } else { above.max(lengths[j]) };
            diagonal = above;
        }
    }
    lengths[b.len()]
}
