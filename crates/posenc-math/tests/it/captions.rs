//! Compares caption metrics with pycocoevalcap 1.2 (BLEU, ROUGE-L, CIDEr-D) and NLTK 3.10.4 (METEOR) on
//! captions that `benches/peers/caption_examples.py` generated and scored, and tests properties that hold for any captions.

use std::slice::from_ref;

use posenc_math::captions::bleu::bleu;
use posenc_math::captions::cider::Cider;
use posenc_math::captions::meteor::meteor;
use posenc_math::captions::rouge::rouge;
use posenc_math::captions::{Candidate, Scores};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Examples {
    pycocoevalcap: String,
    nltk: String,
    corpora: Vec<Example>,
}

#[derive(Deserialize)]
struct Example {
    /// Candidate and its references.
    captions: Vec<(String, Vec<String>)>,
    bleu: Vec<Corpus>,
    rouge: Expected,
    cider: Expected,
    meteor: Expected,
}

#[derive(Deserialize)]
struct Corpus {
    corpus: f64,
    each: Vec<f64>,
}

#[derive(Deserialize)]
struct Expected {
    mean: f64,
    each: Vec<f64>,
}

fn examples() -> Examples {
    let all: Examples =
        serde_json::from_str(include_str!("../data/caption_examples.json")).unwrap();
    assert_eq!((all.pycocoevalcap.as_str(), all.nltk.as_str()), ("1.2", "3.10.4"));
    assert_eq!(all.corpora.len(), 3);
    all
}

fn corpus(example: &Example) -> Vec<Candidate> {
    example.captions.iter().map(|(words, of)| Candidate::split(words, of)).collect()
}

fn assert_close(own: &[f64], expected: &[f64], what: &str) {
    assert_eq!(own.len(), expected.len(), "{what}");
    for (index, (own, expected)) in own.iter().zip(expected).enumerate() {
        assert!((own - expected).abs() < 1e-9, "{what}, {index}: {own} {expected}");
    }
}

fn assert_scores(own: &Scores, expected: &Expected, what: &str) {
    assert_close(&own.each, &expected.each, what);
    assert_close(&[own.mean], &[expected.mean], what);
}

/// Catches a difference in any step of BLEU, ROUGE-L or CIDEr-D: clipping, lengths, orders, document frequencies.
#[test]
fn scores_agree_with_pycocoevalcap() {
    for (number, example) in examples().corpora.iter().enumerate() {
        let corpus = corpus(example);
        let own = bleu(&corpus);
        for (k, expected) in example.bleu.iter().enumerate() {
            let each: Vec<f64> = corpus.iter().map(|one| bleu(from_ref(one))[k]).collect();
            assert_close(&each, &expected.each, &format!("corpus {number}, BLEU-{}", k + 1));
            assert!((own[k] - expected.corpus).abs() < 1e-9);
        }
        assert_scores(&rouge(&corpus), &example.rouge, &format!("corpus {number}, ROUGE-L"));
        let cider = Cider::new(&corpus).scores(&corpus);
        assert_scores(&cider, &example.cider, &format!("corpus {number}, CIDEr-D"));
    }
}

/// Catches a difference in alignment, chunks or the treatment of upper case.
#[test]
fn scores_agree_with_nltk() {
    for (number, example) in examples().corpora.iter().enumerate() {
        let corpus = corpus(example);
        assert_scores(&meteor(&corpus), &example.meteor, &format!("corpus {number}, METEOR"));
    }
}

/// Catches another stemmer than Porter's second one: the first has other stems for these words.
#[test]
fn words_are_stemmed_by_the_second_porter_stemmer() {
    let score = |words: &str, of: &str| meteor(&[Candidate::split(words, &[of])]).mean;
    assert!(score("dying", "dies") > 0.0);
    assert!(score("generously", "generous") > 0.0 && score("generate", "generous") == 0.0);
}

/// Catches a division by zero if there are no captions, words or references.
#[test]
fn empty_input_scores_zero() {
    let none = Scores::default();
    assert_eq!(bleu(&[]), [0.0; 2]);
    assert_eq!(Cider::new(&[]).scores(&[]), none);
    assert_eq!((rouge(&[]), meteor(&[])), (none.clone(), none.clone()));

    let references: [&[&str]; 4] = [&[], &[""], &["a b"], &["", "a b"]];
    let mut corpus: Vec<Candidate> = references.map(|r| Candidate::split("", r)).to_vec();
    corpus.push(Candidate::split("a b", references[0]));
    let each = [0.0; 5];
    assert!(corpus.iter().all(|one| bleu(from_ref(one)) == [0.0; 2]));
    assert!(bleu(&corpus).iter().all(|v| (0.0..1e-6).contains(v)), "{:?}", bleu(&corpus));
    assert_eq!(rouge(&corpus).each, each);
    assert_eq!(meteor(&corpus).each, each);
    assert_eq!(Cider::new(&corpus).scores(&corpus).each, each);
    // A scorer without a corpus gives every n-gram weight 0.
    assert_eq!(Cider::new(&[]).score(&Candidate::split("a b", &["a b"])), 0.0);
}

fn caption() -> impl Strategy<Value = Vec<String>> {
    let word = prop_oneof![
        "[abc]",
        "tabs?|Opens?|opened|opening",
        "[a-z]{0,4}(ies|ied|eed|ing|y|alli|logi|ion){0,3}",
        "\\PC{1,4}"
    ];
    prop::collection::vec(word, 0..9)
}

fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let one = (caption(), prop::collection::vec(caption(), 0..5))
        .prop_map(|(words, references)| Candidate { words, references });
    prop::collection::vec(one, 0..6)
}

/// All metrics of one candidate; CIDEr-D uses the document frequencies of `cider`.
fn all(cider: &Cider<'_>, candidate: &Candidate) -> [f64; 5] {
    let alone = from_ref(candidate);
    let [one, two] = bleu(alone);
    [one, two, rouge(alone).mean, meteor(alone).mean, cider.score(candidate) / 10.0]
}

proptest! {
    /// Catches values that are NaN or out of range, and candidates that affect each other's values.
    #[test]
    fn values_are_bounded(corpus in candidates()) {
        let cider = Cider::new(&corpus);
        let inside = |value: f64| (0.0..=1.0 + 1e-9).contains(&value);
        let cider_each = cider.scores(&corpus).each.into_iter().map(|v| v / 10.0);
        let each = rouge(&corpus).each.into_iter().zip(meteor(&corpus).each).zip(cider_each);
        for (candidate, ((rouge, meteor), cider_alone)) in corpus.iter().zip(each) {
            let values = all(&cider, candidate);
            prop_assert!(values.into_iter().all(inside), "{:?}", values);
            prop_assert_eq!(&values[2..], &[rouge, meteor, cider_alone]);
        }
        prop_assert!(bleu(&corpus).into_iter().all(inside));
        prop_assert!(inside(rouge(&corpus).mean) && inside(meteor(&corpus).mean));
    }

    /// Catches a caption that scores above the reference itself, through repetitions, length or order.
    #[test]
    fn the_reference_itself_is_best(corpus in candidates(), reference in caption(), words in caption()) {
        let cider = Cider::new(&corpus);
        let of = |words: &[String]| {
            let references = vec![reference.clone()];
            all(&cider, &Candidate { words: words.to_vec(), references })
        };
        let best = of(&reference);
        for (metric, (best, value)) in best.into_iter().zip(of(&words)).enumerate() {
            prop_assert!(value <= best + 1e-9, "metric {metric}: {value} above {best}");
        }
        if reference.len() > 1 {
            let expected = 1.0 - 0.5 / (reference.len() as f64).powi(3);
            prop_assert!((best[3] - expected).abs() < 1e-12, "{} {expected}", best[3]);
            prop_assert!([0, 1, 2].iter().all(|&metric| (best[metric] - 1.0).abs() < 1e-8));
        }
    }
}
