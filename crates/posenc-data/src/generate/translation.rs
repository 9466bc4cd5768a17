//! Pairs of sentences in two synthetic languages: every word has one translation, and some words swap places with the next. A word thus
//! depends only on the same position, or a neighboring one, in the other language.

use posenc_math::random::below;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::draw;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lengths {
    /// Log-normal with median 12 and standard deviation 0.5 of the logarithm, similar to natural sentences.
    LogNormal,
    Constant,
    /// Uniform from 2 to the maximum length.
    Uniform,
}

/// A sentence and its translation: words 0, 1, …
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    pub source: Vec<usize>,
    pub target: Vec<usize>,
}

#[derive(Debug, Clone)]
pub struct Translation {
    dictionary: Vec<usize>,
    /// Which words swap places with the next one.
    moves: Vec<bool>,
    lengths: Lengths,
    longest: usize,
}

impl Translation {
    /// Samples two languages of `words` words, with sentences of at most `longest` (2 or more) words. Each word swaps places with
    /// probability ⅓.
    pub fn new(words: usize, lengths: Lengths, longest: usize, rng: &mut ChaCha8Rng) -> Self {
        let words = words.max(2);
        let mut dictionary: Vec<usize> = (0..words).collect();
        draw::shuffle(&mut dictionary, rng);
        let moves = (0..words).map(|_| draw::chance(rng, 1.0 / 3.0)).collect();
        Translation { dictionary, moves, lengths, longest: longest.max(2) }
    }

    pub fn words(&self) -> usize {
        self.dictionary.len()
    }

    pub fn pair(&self, rng: &mut ChaCha8Rng) -> Pair {
        let length = match self.lengths {
            Lengths::Constant => self.longest,
            Lengths::Uniform => 2 + below(rng, self.longest - 1),
            Lengths::LogNormal => {
                let length = 12.0 * draw::exponential(0.5 * draw::normal(rng));
                ((length + 0.5) as usize).clamp(2, self.longest)
            }
        };
        let source: Vec<usize> = (0..length).map(|_| below(rng, self.words())).collect();
        let mut order: Vec<usize> = (0..length).collect();
        let mut i = 0;
        while i + 1 < length {
            if self.moves[source[i]] {
                order.swap(i, i + 1);
                i += 1;
            }
            i += 1;
        }
        let target = order.iter().map(|&i| self.dictionary[source[i]]).collect();
        Pair { source, target }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a dictionary with two translations of one word, words that move too far, and lengths with another distribution.
    #[test]
    fn translations_are_substitutions_with_neighbors_exchanged() {
        let mut rng = posenc_math::random::stream(1, "languages");
        let languages = Translation::new(32, Lengths::LogNormal, 40, &mut rng);
        let mut sorted = languages.dictionary.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..32).collect::<Vec<_>>());
        let (mut lengths, mut moved) = (Vec::new(), 0);
        for _ in 0..2000 {
            let Pair { source, target } = languages.pair(&mut rng);
            assert_eq!(source.len(), target.len());
            let mut i = 0;
            while i < source.len() {
                let word = |i: usize| languages.dictionary[source[i]];
                if languages.moves[source[i]] && i + 1 < source.len() {
                    assert_eq!((target[i], target[i + 1]), (word(i + 1), word(i)));
                    moved += 1;
                    i += 1;
                } else {
                    assert_eq!(target[i], word(i));
                }
                i += 1;
            }
            lengths.push(source.len());
        }
        assert!(moved > 2000);
        lengths.sort_unstable();
        assert!((11..=13).contains(&lengths[1000]), "{}", lengths[1000]);
        // 84 % are below 12 e^½ = 19.8.
        assert!((18..=22).contains(&lengths[1680]), "{}", lengths[1680]);
        assert!(lengths[0] >= 2 && lengths[1999] <= 40);
    }

    #[test]
    fn lengths_are_as_described() {
        let mut rng = posenc_math::random::stream(2, "lengths");
        let constant = Translation::new(8, Lengths::Constant, 9, &mut rng);
        assert!((0..50).all(|_| constant.pair(&mut rng).source.len() == 9));
        let uniform = Translation::new(8, Lengths::Uniform, 9, &mut rng);
        let mut counts = [0usize; 10];
        (0..8000).for_each(|_| counts[uniform.pair(&mut rng).source.len()] += 1);
        assert!(
            counts[..2] == [0, 0] && counts[2..].iter().all(|n| (850..1150).contains(n)),
            "{counts:?}"
        );
    }
}
