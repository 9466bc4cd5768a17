//! F1 of sets of tuples: the last step of SPICE (Anderson et al. 2016), whose tuples are (object), (object, attribute) and
//! (object, relation, object). Equal tuples match; SPICE also matches synonyms of WordNet.

use std::collections::BTreeSet;

use super::Scores;

/// F1, the harmonic mean of precision and recall, from 0 to 1. 0 if the sets share no tuple, even if both are empty.
pub fn tuple_f1<T: Ord>(candidate: &BTreeSet<T>, reference: &BTreeSet<T>) -> f64 {
    let shared = candidate.intersection(reference).count();
    let both = candidate.len() + reference.len();
    2.0 * shared as f64 / both.max(1) as f64
}

/// F1 of each pair (tuples of the candidate, union of the tuples of its references), and the mean.
pub fn tuple_scores<T: Ord>(corpus: &[[BTreeSet<T>; 2]]) -> Scores {
    Scores::new(
        corpus.iter().map(|[candidate, reference]| tuple_f1(candidate, reference)).collect(),
    )
}
