//! METEOR (Lavie and Agarwal 2007) of words that are equal or have the same stem; without WordNet and paraphrases, so that
//! scores are below those of the full metric.

use std::collections::BTreeMap;

use super::{Candidate, Scores, stem::stem};

/// Weight of recall against precision.
const ALPHA: f64 = 0.9;
/// Power of the penalty for matches that lie apart.
const BETA: f64 = 3.0;
/// The largest penalty.
const GAMMA: f64 = 0.5;

/// METEOR of each candidate, from 0 to 1, and the mean: that of the best reference, as NLTK's `meteor_score` computes it
/// with a WordNet that has no synsets.
///
/// Words are compared in lower case. Each, from the last on, is matched with the last equal word of the reference that is
/// free; then those left over likewise by their stems. A perfect match of m words scores 1 − 1/(2m³).
#[must_use]
pub fn meteor(corpus: &[Candidate]) -> Scores {
    Scores::of(corpus, |candidate| {
        let words = lower(&candidate.words);
        let scores = candidate.references.iter().map(|reference| score(&words, &lower(reference)));
        scores.fold(0.0, f64::max)
    })
}

fn lower(words: &[String]) -> Vec<String> {
    words.iter().map(|word| word.to_lowercase()).collect()
}

fn score(candidate: &[String], reference: &[String]) -> f64 {
    let matches = align(candidate, reference);
    if matches.is_empty() {
        return 0.0;
    }
    let count = matches.len() as f64;
    let (precision, recall) = (count / candidate.len() as f64, count / reference.len() as f64);
    let mean = precision * recall / (ALPHA * precision + (1.0 - ALPHA) * recall);
    let breaks = matches.windows(2).filter(|w| w[1] != [w[0][0] + 1, w[0][1] + 1]).count();
    let fragmentation = (breaks + 1) as f64 / count;
    (1.0 - GAMMA * fragmentation.powf(BETA)) * mean
}

/// Index in the candidate and in the reference of each match, by rising index in the candidate.
fn align(candidate: &[String], reference: &[String]) -> Vec<[usize; 2]> {
    let mut matches: Vec<[usize; 2]> = Vec::new();
    let mut open = [candidate, reference]
        .map(|words| words.iter().cloned().enumerate().collect::<Vec<(usize, String)>>());
    for stemmed in [false, true] {
        if stemmed {
            for (_, word) in open.iter_mut().flatten() {
                *word = stem(word);
            }
        }
        open = match_equal(&mut matches, open);
    }
    matches.sort_unstable();
    matches
}

/// Adds matches of equal words; returns the words left over.
fn match_equal(
    matches: &mut Vec<[usize; 2]>,
    [mut own, mut other]: [Vec<(usize, String)>; 2],
) -> [Vec<(usize, String)>; 2] {
    let mut free: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, word) in &other {
        free.entry(word).or_default().push(*index);
    }
    let first = matches.len();
    for (index, word) in own.iter().rev() {
        if let Some(last) = free.get_mut(word.as_str()).and_then(Vec::pop) {
            matches.push([*index, last]);
        }
    }
    let mut taken = [0, 1].map(|side| {
        let mut indices: Vec<usize> = matches[first..].iter().map(|m| m[side]).collect();
        indices.sort_unstable();
        indices
    });
    for (words, taken) in [&mut own, &mut other].into_iter().zip(&mut taken) {
        words.retain(|(index, _)| taken.binary_search(index).is_err());
    }
    [own, other]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Would catch precision and recall confused, and chunks that are counted wrong.
    #[test]
    fn values_computed_manually() {
        let score = |candidate: &str, reference: &str| {
            meteor(&[Candidate::split(candidate, &[reference])]).mean
        };
        assert!((score("a b", "a b") - (1.0 - 0.5 / 8.0)).abs() < 1e-15);
        // Two matches in one chunk of a reference of four words.
        let f_mean = 0.5 / (0.9 + 0.1 * 0.5);
        assert!((score("a b", "a b c d") - (1.0 - 0.5 / 8.0) * f_mean).abs() < 1e-15);
        // Both words match in two chunks.
        assert!((score("a b", "b a") - 0.5).abs() < 1e-15);
        // "A" is matched, and next to "b".
        assert!((score("a A b", "a b") - (1.0 - 0.5 / 8.0) / (0.9 + 0.1 * 1.5)).abs() < 1e-15);
        assert!((score("Buttons", "button") - 0.5).abs() < 1e-15);
    }

    /// Would catch words that are matched from the first on, and stems that take a word from an equal one.
    #[test]
    fn later_words_and_equal_words_go_first() {
        let words = |text: &str| lower(&Candidate::split(text, &[""; 0]).words);
        assert_eq!(align(&words("a"), &words("a a")), [[0, 1]]);
        assert_eq!(align(&words("a a"), &words("a")), [[1, 0]]);
        assert_eq!(align(&words("row rows"), &words("rows x row")), [[0, 2], [1, 0]]);
        assert_eq!(align(&words("row rows"), &words("rowing rows")), [[0, 0], [1, 1]]);
    }
}
