//! Words of user interfaces: tokenizers, a vocabulary and word vectors.

use std::collections::BTreeMap;
use std::path::Path;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use crate::error::DataError;
use crate::files::{self, files_in, has_ending, only_file};
use crate::lines::each_line;
use posenc_files::limits::MAX_VECTOR_BYTES;

/// Maximum number of words of a text or caption.
pub const LABEL_WORDS: usize = 10;
/// Maximum length of a word in letters; longer ones are dropped.
const MAX_WORD: usize = 30;

pub const PADDING: usize = 0;
pub const END: usize = 1;
/// Number of all words outside of the vocabulary.
pub const UNKNOWN: usize = 2;
pub const START: usize = 3;
/// Count of numbers for special tokens.
const SPECIAL: usize = 4;

/// Signs that end a word and are dropped.
const SIGNS: &str = ";@#$%&?!*[](){}<>\"«»“”‘’„`‒–—―";
/// Endings that are words of their own.
const ENDINGS: [&str; 3] = ["'s", "'m", "'d"];
/// Longer endings, split off after those.
const LONG_ENDINGS: [&str; 4] = ["'ll", "'re", "'ve", "n't"];
/// Two words written as one.
const JOINED: [(&str, [&str; 2]); 8] = [
    ("cannot", ["can", "not"]),
    ("d'ye", ["d", "'ye"]),
    ("gimme", ["gim", "me"]),
    ("gonna", ["gon", "na"]),
    ("gotta", ["got", "ta"]),
    ("lemme", ["lem", "me"]),
    ("more'n", ["more", "'n"]),
    ("wanna", ["wan", "na"]),
];

/// Splits a text into lower-case words. Drops words without an ASCII letter or digit, then all characters that are not ASCII, then words of
/// more than 30 letters.
///
/// For ordinary text, the result equals that of NLTK's tokenizer (the rules of the Penn Treebank), which the public code uses, except for
/// inner periods: NLTK has learned which abbreviations keep their last period; here those with another period do.
pub fn text_words(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let mut pieces = Vec::new();
    for chunk in text.split_whitespace() {
        let characters: Vec<char> = chunk.chars().collect();
        let mut piece = String::new();
        for (i, &c) in characters.iter().enumerate() {
            let next = characters.get(i + 1);
            let before = i.checked_sub(1).map(|i| &characters[i]);
            let ends = match c {
                ',' | ':' => !next.is_some_and(char::is_ascii_digit),
                '.' | '-' | '\'' => next == Some(&c) || before == Some(&c),
                _ => SIGNS.contains(c),
            };
            if ends {
                take_apart(&std::mem::take(&mut piece), false, &mut pieces);
            } else {
                piece.push(c);
            }
        }
        take_apart(&piece, false, &mut pieces);
    }
    // Removes the period that ends the text, also before closing quotes and brackets.
    let closes = |c: char| c.is_whitespace() || "])}>\"'»”’".contains(c);
    if let Some(shorter) = pieces.last().and_then(|last| last.strip_suffix('.'))
        && text.trim_end_matches(closes).ends_with('.')
    {
        let shorter = shorter.to_owned();
        pieces.pop();
        take_apart(&shorter, true, &mut pieces);
    }
    let is_word = |piece: &String| piece.bytes().any(|b| b.is_ascii_alphanumeric());
    let ascii = |piece: String| piece.chars().filter(char::is_ascii).collect::<String>();
    let words = pieces.into_iter().filter(is_word).map(ascii);
    words.filter(|word| word.len() <= MAX_WORD).collect()
}

/// Adds the words of a piece without spaces and signs, and splits off a final period and endings. `is_bare` marks a piece whose final
/// period was already removed.
fn take_apart(piece: &str, is_bare: bool, words: &mut Vec<String>) {
    let mut rest = piece;
    if !is_bare
        && let Some(shorter) = rest.strip_suffix('.')
        && !shorter.contains('.')
    {
        rest = shorter;
    }
    let is_ending = ENDINGS.iter().chain(&LONG_ENDINGS).any(|ending| *ending == rest);
    if !is_ending && !["'t", "'n"].contains(&rest) {
        rest = rest.strip_prefix('\'').unwrap_or(rest);
    }
    let mut endings = Vec::new();
    let cut = |rest: &str, ending: &str| {
        let before = rest.strip_suffix(ending)?;
        (!before.is_empty() && !before.ends_with('\'')).then_some(before.len())
    };
    for group in [&["'"], &ENDINGS[..], &LONG_ENDINGS[..]] {
        if let Some((at, ending)) = group.iter().find_map(|e| Some((cut(rest, e)?, *e))) {
            rest = &rest[..at];
            endings.push(ending);
        }
    }
    match JOINED.iter().find(|(joined, _)| *joined == rest) {
        Some((_, parts)) => words.extend(parts.map(str::to_owned)),
        None if rest.is_empty() => {}
        None => words.push(rest.to_owned()),
    }
    words.extend(endings.into_iter().rev().map(str::to_owned));
}

/// Splits the name of an Android resource such as `com.example:id/playButton_big` into lower-case words: runs of ASCII letters after the
/// slash, split at each capital. As in the public code, the last of several capitals belongs to the following letters, and is lost before a
/// digit or a sign.
pub fn resource_words(resource: &str) -> Vec<String> {
    let name = resource.trim();
    let name = name.split_once('/').map_or(name, |(_, name)| name);
    let letters = name.as_bytes();
    let run =
        |from: usize, is: fn(&u8) -> bool| letters[from..].iter().take_while(|b| is(b)).count();
    let mut words = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let capitals = run(at, u8::is_ascii_uppercase);
        let small = run(at + capitals, u8::is_ascii_lowercase);
        let (length, step) = match (capitals, small) {
            (0, 0) => (0, 1),
            (0 | 1, _) if small > 0 => (capitals + small, capitals + small),
            _ if small > 0 => (capitals - 1, capitals - 1),
            _ if at + capitals == letters.len() => (capitals, capitals),
            _ => (capitals - 1, capitals),
        };
        if length > 0 {
            // Bytes of ASCII, so no letter is cut in two.
            words.push(String::from_utf8_lossy(&letters[at..at + length]).to_ascii_lowercase());
        }
        at += step;
    }
    words
}

/// Words by their numbers: the four special tokens, then words by decreasing frequency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptionVocabulary {
    numbers: BTreeMap<String, usize>,
    words: Vec<String>,
}

impl CaptionVocabulary {
    /// Builds a vocabulary of `size` numbers, including the special ones, from the most frequent of `words`. Ties are broken
    /// alphabetically.
    pub fn new<'a>(words: impl IntoIterator<Item = &'a str>, size: usize) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for word in words {
            *counts.entry(word).or_default() += 1;
        }
        let mut sorted: Vec<(&str, usize)> = counts.into_iter().collect();
        // The sort is stable, so ties stay in alphabetical order.
        sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let kept = sorted.into_iter().take(size.saturating_sub(SPECIAL));
        let words: Vec<String> = kept.map(|(word, _)| word.to_owned()).collect();
        let numbers = words.iter().enumerate().map(|(i, word)| (word.clone(), i + SPECIAL));
        CaptionVocabulary { numbers: numbers.collect(), words }
    }

    /// Number of words and special tokens, at least 4.
    pub fn size(&self) -> usize {
        self.words.len() + SPECIAL
    }

    pub fn number(&self, word: &str) -> Option<usize> {
        self.numbers.get(word).copied()
    }

    /// The word of a number; `None` for the special ones.
    pub fn word(&self, number: usize) -> Option<&str> {
        self.words.get(number.checked_sub(SPECIAL)?).map(String::as_str)
    }

    /// The numbers of a text; [`UNKNOWN`] outside of the vocabulary.
    pub fn text(&self, words: &[String]) -> Vec<usize> {
        words.iter().map(|word| self.number(word).unwrap_or(UNKNOWN)).collect()
    }

    /// The numbers of a caption, followed by [`END`]. Words outside of the vocabulary are dropped, as in the public code, so that no model
    /// learns to predict [`UNKNOWN`].
    pub fn caption(&self, words: &[String]) -> Vec<usize> {
        let known = words.iter().filter_map(|word| self.number(word));
        known.chain(std::iter::once(END)).collect()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct WordVectors {
    dimension: usize,
    size: usize,
    /// By the numbers of their words.
    vectors: BTreeMap<usize, Vec<f32>>,
}

impl WordVectors {
    /// Reads vectors, as [`WordVectors::read`], from the only text file in a folder, or from the only one with an ending like GloVe's, such
    /// as `.300d.txt`.
    pub fn in_folder(
        folder: &Path,
        vocabulary: &CaptionVocabulary,
        dimension: usize,
    ) -> Result<Self, DataError> {
        let ending = format!(".{dimension}d.txt");
        let texts = files_in(folder)?.into_iter().filter(|path| has_ending(path, &["txt"]));
        let wanted: &str = if texts.count() > 1 { &ending } else { ".txt" };
        let hint = format!("a file such as glove.6B{ending} is expected");
        let fits = |name: &str| name.ends_with(wanted);
        Self::read(&only_file(folder, "file of word vectors", &hint, fits)?, vocabulary, dimension)
    }

    /// Reads the vectors of the vocabulary's words from a file in GloVe's format: each line has a word and `dimension` numbers, separated
    /// by single spaces. If a word appears twice, the first vector counts.
    pub fn read(
        path: &Path,
        vocabulary: &CaptionVocabulary,
        dimension: usize,
    ) -> Result<Self, DataError> {
        let file = files::open(path)?;
        let numbers: BTreeMap<&[u8], usize> =
            vocabulary.numbers.iter().map(|(word, n)| (word.as_bytes(), *n)).collect();
        let mut vectors = BTreeMap::new();
        let hint = format!("each line must have a word and {dimension} numbers");
        each_line(path, file, MAX_VECTOR_BYTES, &hint, |at, line| {
            let damaged = |reason: String| DataError::at_line(path, at, reason);
            let line = line.trim_ascii_end();
            let found = line.iter().filter(|byte| **byte == b' ').count();
            if found != dimension {
                return Err(damaged(format!(
                    "{found} numbers after the word, {dimension} are expected; the download may be incomplete, or the \
                     vectors have another length"
                )));
            }
            let mut parts = line.split(|byte| *byte == b' ');
            let word = parts.next().unwrap_or_default();
            if let Some(&number) = numbers.get(word) {
                let vector: Result<Vec<f32>, String> = parts.map(finite).collect();
                let vector = vector.map_err(|part| {
                    let word = String::from_utf8_lossy(word);
                    damaged(format!(
                        "`{part}` of the word `{word}` is not a finite number; fetch the file again"
                    ))
                })?;
                vectors.entry(number).or_insert(vector);
            }
            Ok(vectors.len() < numbers.len())
        })?;
        if vectors.is_empty() && !numbers.is_empty() {
            let reason = format!(
                "contains none of the {} vocabulary words; check that it has vectors for English words",
                numbers.len()
            );
            return Err(DataError::at(path, reason));
        }
        Ok(WordVectors { dimension, size: vocabulary.size(), vectors })
    }

    /// How many words the file has no vector for.
    pub fn absent(&self) -> usize {
        self.size - SPECIAL - self.vectors.len()
    }

    /// All vectors of the vocabulary, `(size, dimension)` row by row. Padding is zero; absent words and the other special
    /// numbers are uniform on [0, 0.1), as in the public code.
    pub fn table(&self, rng: &mut ChaCha8Rng) -> Vec<f32> {
        let mut table = vec![0.0; self.size * self.dimension];
        for (number, row) in table.chunks_exact_mut(self.dimension.max(1)).enumerate() {
            match self.vectors.get(&number) {
                Some(vector) => row.copy_from_slice(vector),
                None if number == PADDING => {}
                None => row.fill_with(|| (rng.next_u32() >> 8) as f32 * (0.1 / 16_777_216.0)),
            }
        }
        table
    }
}

/// Parses a finite number; an error contains the text of the part.
fn finite(part: &[u8]) -> Result<f32, String> {
    let number = str::from_utf8(part).ok().and_then(|part| part.parse::<f32>().ok());
    number.filter(|n| n.is_finite()).ok_or_else(|| String::from_utf8_lossy(part).into_owned())
}
