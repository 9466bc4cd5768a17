//! METEOR (Lavie and Agarwal 2007) with matches of words and of stems (Porter's second stemmer, as in METEOR 1.5). Without matches by
//! WordNet synonyms and paraphrases, scores are below those of the full metric.

use std::collections::BTreeMap;

use rust_stemmers::{Algorithm, Stemmer};

use super::{Candidate, Scores};

/// Weight of recall relative to precision.
const ALPHA: f64 = 0.9;
/// Exponent of the fragmentation penalty.
const BETA: f64 = 3.0;
/// The largest fragmentation penalty.
const GAMMA: f64 = 0.5;

/// METEOR of each candidate, from 0 to 1, and the mean. The score of a candidate is that of its best reference, as NLTK's
/// `meteor_score` computes it with this stemmer and a WordNet without synsets.
///
/// Words are compared in lower case. From the last to the first, each word is matched with the last equal word of the reference
/// that has no match yet. The remaining words are matched in the same way by their stems. A perfect match of m words scores
/// 1 − 1/(2m³).
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

/// Indices of each match in the candidate and in the reference, sorted by the index in the candidate.
fn align(candidate: &[String], reference: &[String]) -> Vec<[usize; 2]> {
    let mut matches: Vec<[usize; 2]> = Vec::new();
    let mut open = [candidate, reference]
        .map(|words| words.iter().cloned().enumerate().collect::<Vec<(usize, String)>>());
    let stemmer = Stemmer::create(Algorithm::English);
    for stemmed in [false, true] {
        if stemmed {
            for (_, word) in open.iter_mut().flatten() {
                *word = stemmer.stem(word).into_owned();
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
