//! Words, their numbers and their vectors.

use posenc_data::interfaces::{
    CaptionVocabulary, END, PADDING, START, UNKNOWN, WordVectors, resource_words, text_words,
};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::write;
use crate::support::assert_says;

/// Catches a tokenizer that differs from NLTK 3.10 and from the pattern of the public code.
#[test]
fn words_are_those_of_the_public_code() {
    for (text, words) in [
        (
            "Hello, world: a:b 10:30 'hi' \"q\" ...x--y and/or",
            "hello world a b 10:30 hi q x y and/or",
        ),
        ("5% off! john's users' wi-fi it’s", "5 off john 's users wi-fi it s"),
        ("Cannot GONNA a.b.c.", "can not gon na a.b.c"),
        ("they'll say (hello.)", "they 'll say hello"),
        ("写真 — … ·", ""),
        (
            "abcdefghijklmnopqrstuvwxyz1234 abcdefghijklmnopqrstuvwxyz12345",
            "abcdefghijklmnopqrstuvwxyz1234",
        ),
    ] {
        assert_eq!(text_words(text).join(" "), words, "{text}");
    }
    for (resource, words) in [
        ("a:id/IDNumber", "id number"),
        ("a:id/btn_ok_2x", "btn ok x"),
        ("a:id/ID_x", "i x"),
        ("a:id/ABC", "abc"),
        ("toolBar", "tool bar"),
        ("a:id/éA9", ""),
    ] {
        assert_eq!(resource_words(resource).join(" "), words, "{resource}");
    }
}

/// Catches counts that differ from the public code's, ties that are broken randomly, and targets that contain UNKNOWN.
#[test]
fn a_vocabulary_is_sorted_by_frequency() {
    let words = "go to the the to menu to go".split(' ');
    let vocabulary = CaptionVocabulary::new(words.clone(), 7);
    assert_eq!((PADDING, END, UNKNOWN, START, vocabulary.size()), (0, 1, 2, 3, 7));
    let order: Vec<Option<&str>> = (0..8).map(|n| vocabulary.word(n)).collect();
    assert_eq!(order[3..], [None, Some("to"), Some("go"), Some("the"), None]);
    let text = ["the", "menu", "to"].map(str::to_owned);
    assert_eq!(vocabulary.text(&text), [6, UNKNOWN, 4]);
    assert_eq!(vocabulary.caption(&text), [6, 4, END]);
    for size in [0, 3, 4] {
        let vocabulary = CaptionVocabulary::new(words.clone(), size);
        assert_eq!((vocabulary.size(), vocabulary.number("to")), (4, None));
    }
}

/// Catches vectors of another word, padding that is not zero, and absent words that are zero or differ from run to run.
#[test]
fn vectors_are_those_of_the_vocabulary() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(
        &folder.path().join("v.txt"),
        ", 9 9 9\nthe 1 2 -3e-1\ngo 4 5 6\nthe 7 7 7\nto 1 1 1",
    );
    let vocabulary = CaptionVocabulary::new(["the", "the", "zzz", "go"], 100);
    let vectors = WordVectors::read(&path, &vocabulary, 3).unwrap();
    assert_eq!(vectors.absent(), 1);
    let table = |seed| vectors.table(&mut ChaCha8Rng::seed_from_u64(seed));
    let rows = table(1);
    assert_eq!(rows, table(1));
    assert_ne!(rows, table(2));
    assert_eq!((rows.len(), &rows[..3]), (21, &[0.0; 3][..]));
    assert_eq!(rows[12..18], [1.0, 2.0, -0.3, 4.0, 5.0, 6.0]);
    let random = || rows[3..12].iter().chain(&rows[18..]);
    assert!(random().all(|v| (0.0..0.1).contains(v)) && random().any(|v| *v > 0.01));

    for (text, parts) in [
        ("the 1 2 3\ngo 1 2", [":2", "2 numbers after the word, 3 are expected"]),
        ("the 1 2 3 4\n", [":1", "4 numbers"]),
        ("a 1 2 3\nthe 1 x 3\n", [":2", "`x` of the word `the` is not a finite number"]),
        ("the 1 nan 3\n", [":1", "`nan`"]),
        ("the 1 2 1e99\n", [":1", "`1e99`"]),
        ("the  1 2\n", [":1", "`` of the word `the`"]),
        ("a 1 2 3\n", ["none of the 3 vocabulary words", "English"]),
        ("", ["none of the 3 vocabulary words", "English"]),
    ] {
        let error = WordVectors::read(&write(&path, text), &vocabulary, 3).unwrap_err();
        assert_says(&error, &[&["v.txt"], &parts[..]].concat());
    }
    let error = WordVectors::read(&write(&path, b"the 1 2 \xff\n"), &vocabulary, 3).unwrap_err();
    assert_says(&error, &["v.txt:1", "not a finite number"]);
    let long = vec![b'a'; (1 << 16) + 9];
    let error = WordVectors::read(&write(&path, long), &vocabulary, 3).unwrap_err();
    assert_says(&error, &["v.txt:1", "more than 65536 bytes in a line"]);
}

proptest! {
    /// Catches a character that is split, and words that the public code drops.
    #[test]
    fn any_text_becomes_words(text in "(.|[a-cA-C'.,: …é_/-]|n't){0,30}") {
        for word in text_words(&text) {
            prop_assert!(word.is_ascii() && (1..=30).contains(&word.len()), "{word}");
            prop_assert!(!word.contains(|c: char| c.is_whitespace() || c.is_ascii_uppercase()), "{word}");
        }
        for word in resource_words(&text) {
            prop_assert!(!word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase()), "{word}");
        }
    }
}
