//! Sentences and their translations, line by line: `train.en` and `train.de`, plain or compressed (`.gz`).

use std::collections::HashMap;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use posenc_files::limits::MAX_WEIGHT_BYTES;
use posenc_math::random::below;
use rand_chacha::ChaCha8Rng;

use crate::error::DataError;
use crate::files;
use crate::generate::Pair;
use crate::lines::each_line;

/// Maximum number of lines: three times WMT14 English–German.
const MAX_LINES: usize = 1 << 24;
/// Maximum number of words, slightly more than one side of WMT14. A word takes about 50 bytes of memory, whatever its length.
const MAX_WORDS: usize = 1 << 27;
/// Maximum ratio of the text's size to that of its compressed file: text expands 3 to 10 times, zeros 1,000 times.
const MAX_EXPANSION: u64 = 100;
/// Texts of at most this size, in bytes, may exceed the ratio.
const SHORT_TEXT: u64 = 1 << 24;

/// Pairs of sentences as lower-case words, with punctuation as separate words.
#[derive(Debug, Clone)]
pub struct ParallelText {
    /// Words of both languages, pair by pair.
    pub pairs: Vec<[Vec<String>; 2]>,
    /// Pairs that are skipped because one side has no word.
    pub skipped: usize,
}

impl ParallelText {
    /// Reads `<split>.<language>` or `<split>.<language>.gz` of both languages from a folder.
    pub fn read(folder: &Path, split: &str, languages: [&str; 2]) -> Result<Self, DataError> {
        let read = |language: &str| -> Result<(PathBuf, Vec<Vec<String>>), DataError> {
            let path = find(folder, split, language)?;
            let lines = read_lines(&path)?;
            Ok((path, lines))
        };
        let ((source, first), (target, second)) = (read(languages[0])?, read(languages[1])?);
        if first.len() != second.len() {
            let message = format!(
                "{} lines, but {} has {}; line n of one must translate line n of the other: fetch both again",
                second.len(),
                source.display(),
                first.len()
            );
            return Err(DataError::at(&target, message));
        }
        let all = first.len();
        let has_words =
            |pair: &(Vec<String>, Vec<String>)| !pair.0.is_empty() && !pair.1.is_empty();
        let pairs: Vec<[Vec<String>; 2]> =
            first.into_iter().zip(second).filter(has_words).map(|(a, b)| [a, b]).collect();
        if pairs.is_empty() {
            return Err(DataError::at(&source, "no line has words in both languages"));
        }
        Ok(ParallelText { skipped: all - pairs.len(), pairs })
    }
}

fn find(folder: &Path, split: &str, language: &str) -> Result<PathBuf, DataError> {
    let plain = folder.join(format!("{split}.{language}"));
    let packed = folder.join(format!("{split}.{language}.gz"));
    [plain, packed].into_iter().find(|path| path.is_file()).ok_or_else(|| {
        let hint = "parallel text has one file per language, with a sentence in each line";
        DataError::missing(folder, format!("{split}.{language} or {split}.{language}.gz"), hint)
    })
}

fn read_lines(path: &Path) -> Result<Vec<Vec<String>>, DataError> {
    let file = files::open(path)?;
    let length = file.metadata().map_err(|source| DataError::io(path, "file", source))?.len();
    let expanded = length.saturating_mul(MAX_EXPANSION).max(SHORT_TEXT);
    let reader: Box<dyn Read> = match path.extension().is_some_and(|e| e == "gz") {
        true => Box::new(MultiGzDecoder::new(BufReader::new(file))),
        false => Box::new(file),
    };
    let hint = "is it text with a sentence in each line?";
    let (mut lines, mut n_words) = (Vec::new(), 0);
    each_line(path, reader, MAX_WEIGHT_BYTES.min(expanded), hint, |number, line| {
        let damaged = |reason: String| DataError::at_line(path, number, reason);
        let text = str::from_utf8(line)
            .map_err(|_| damaged("not UTF-8; convert it: iconv -t UTF-8".to_owned()))?;
        let words = words(text);
        n_words += words.len();
        if lines.len() == MAX_LINES || n_words > MAX_WORDS {
            return Err(damaged(format!(
                "more than {MAX_LINES} lines or {MAX_WORDS} words (the limits); split the file"
            )));
        }
        lines.push(words);
        Ok(true)
    })?;
    Ok(lines)
}

/// Splits a text into lower-case runs of letters and digits, and single other characters.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for character in text.chars().flat_map(char::to_lowercase) {
        if character.is_alphanumeric() {
            word.push(character);
            continue;
        }
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if !character.is_whitespace() && !character.is_control() {
            words.push(character.to_string());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The most frequent words of both languages, numbered from 0; all other words share the last number.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    numbers: [HashMap<String, usize>; 2],
    words: usize,
}

impl Vocabulary {
    /// Builds a vocabulary of the `words` most frequent words of each language. Ties are broken alphabetically.
    pub fn new(text: &ParallelText, words: usize) -> Self {
        let numbers = [0, 1].map(|language| {
            let mut counts: HashMap<&str, usize> = HashMap::new();
            for word in text.pairs.iter().flat_map(|pair| &pair[language]) {
                *counts.entry(word).or_default() += 1;
            }
            let mut sorted: Vec<(&str, usize)> = counts.into_iter().collect();
            sorted.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
            let first = sorted.into_iter().take(words).enumerate();
            first.map(|(number, (word, _))| (word.to_owned(), number)).collect()
        });
        Vocabulary { numbers, words }
    }

    /// Number of words of a language, including the one for all others.
    pub fn size(&self) -> usize {
        self.words + 1
    }

    pub fn number(&self, text: &ParallelText) -> Corpus {
        let side = |pair: &[Vec<String>; 2], language: usize| {
            let number = |word: &String| self.numbers[language].get(word).copied();
            pair[language].iter().map(|word| number(word).unwrap_or(self.words)).collect()
        };
        let pairs = text.pairs.iter();
        Corpus { pairs: pairs.map(|p| Pair { source: side(p, 0), target: side(p, 1) }).collect() }
    }
}

/// Pairs of sentences as numbers. None is empty.
#[derive(Debug, Clone)]
pub struct Corpus {
    pairs: Vec<Pair>,
}

impl Corpus {
    /// A random pair, with each sentence truncated to `longest` words.
    pub fn natural(&self, longest: usize, rng: &mut ChaCha8Rng) -> Pair {
        let mut pair = self.pairs[below(rng, self.pairs.len())].clone();
        pair.source.truncate(longest);
        pair.target.truncate(longest);
        pair
    }

    /// Entropy of the target's words, truncated to `longest` per sentence, in nats: the loss of a unigram model.
    pub fn target_entropy(&self, words: usize, longest: usize) -> f64 {
        let mut counts = vec![0usize; words];
        for word in self.pairs.iter().flat_map(|pair| pair.target.iter().take(longest)) {
            counts[*word] += 1;
        }
        let total = counts.iter().sum::<usize>() as f64;
        let share = |&n: &usize| n as f64 / total;
        counts.iter().filter(|n| **n > 0).map(|n| -share(n) * share(n).ln()).sum()
    }

    /// Concatenates random pairs until both sides have `length` words, then truncates both. All positions are equally frequent, and only
    /// the first pair starts at the same position on both sides.
    pub fn filled(&self, length: usize, rng: &mut ChaCha8Rng) -> Pair {
        let mut filled = Pair { source: Vec::new(), target: Vec::new() };
        while filled.source.len() < length || filled.target.len() < length {
            let pair = &self.pairs[below(rng, self.pairs.len())];
            filled.source.extend(&pair.source);
            filled.target.extend(&pair.target);
        }
        filled.source.truncate(length);
        filled.target.truncate(length);
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_lower_case_and_signs_are_separate() {
        assert_eq!(words("Two men, zwei Männer.\r\n"), ["two", "men", ",", "zwei", "männer", "."]);
        assert!(words(" \t\n").is_empty());
    }
}
