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
