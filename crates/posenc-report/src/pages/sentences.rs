//! Sentences with numbers: headlines of claims, and the answers of items and papers.
//!
//! Every number is computed from the record or the published values when the page is rendered. A sentence of an answer is shown only if
//! each verdict that it states is that of the record. A published number is shown only next to the paper's data at the full protocol.

use posenc_experiments::schema::answer::{AnswerSentence, Outcome};
use posenc_experiments::schema::claim::{Claim, Number, Part, Quantity, Sentence};
use posenc_experiments::verdict::{Evidence, Interval, Judgement, Numbers, Verdict};

use crate::markdown::inline;
use crate::numbers::{fixed, signed, significant};
use crate::view::{SideView, View};

/// Significant digits of a number whose sentence does not state its decimals.
const DIGITS: usize = 3;

/// A claim with its verdict on a run.
pub type Found<'v> = (&'v View<'v>, &'v SideView, &'v Claim, &'v Judgement);

/// Largest p of a finding after Holm's correction.
pub const SIGNIFICANT: f64 = 0.05;

/// What a verdict means next to all other claims of the paper: a claim whose p is too large after Holm's correction is open.
pub fn corrected((view, side, claim, judgement): Found<'_>) -> Verdict {
    let place = view.experiment.claims.iter().position(|own| own.id == claim.id);
    let holm = place.and_then(|place| side.holm.get(place).copied().flatten());
    let is_stated = !Outcome::Open.is(judgement.verdict);
    match holm.is_some_and(|p| p > SIGNIFICANT) && is_stated {
        true => Verdict::WithinNoise,
        false => judgement.verdict,
    }
}

/// The sentences of an answer that are true on a run, joined. `find` returns a claim by its name in the answer, `verdict` its verdict.
pub fn answer<'v>(
    sentences: &[AnswerSentence],
    find: impl Fn(&str) -> Option<Found<'v>>,
    verdict: impl Fn(Found<'v>) -> Verdict,
) -> Option<String> {
    let is_true = |own: &&AnswerSentence| {
        own.states
            .iter()
            .all(|(claim, outcome)| find(claim).is_some_and(|found| outcome.is(verdict(found))))
    };
    let shown = sentences.iter().filter(is_true);
    let texts: Vec<String> =
        shown.filter_map(|own| filled(&own.sentence, |claim| find(claim?))).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// The headline of a claim with its numbers; `None` if the claim does not hold or the record lacks a number.
pub fn headline(found: Found<'_>) -> Option<String> {
    let (.., claim, judgement) = found;
    let headline = claim.headline.as_ref()?;
    filled(headline, |_| Some(found)).filter(|_| Outcome::Holds.is(judgement.verdict))
}

/// A sentence with its numbers; `None` if the record lacks one of them.
fn filled<'v>(
    sentence: &Sentence,
    find: impl Fn(Option<&str>) -> Option<Found<'v>>,
) -> Option<String> {
    let mut text = String::new();
    for part in &sentence.parts {
        match part {
            Part::Text(words) => text.push_str(words),
            Part::Number(number) => {
                text.push_str(&shown(number, find(number.claim.as_deref())?)?);
            }
        }
    }
    Some(inline(&text))
}

fn shown(number: &Number, (view, side, claim, judgement): Found<'_>) -> Option<String> {
    let numbers = Numbers::of(claim, view.context(side));
    let printed = |value: f64| match number.digits {
        Some(digits) => fixed(value, digits),
        None => significant(value, DIGITS),
    };
    Some(match number.quantity {
        Quantity::Mean(i) => with_unit(printed(numbers.mean(i)?.mean), numbers.unit(i)),
        Quantity::Published(i) => {
            // Numbers of other data say nothing next to the paper's.
            let is_comparable =
                matches!(judgement.rows, Some(Evidence::Theory | Evidence::PaperFull));
            if !is_comparable {
                return None;
            }
            with_unit(printed(numbers.published(i)?), numbers.unit_as_published(i))
        }
        Quantity::Ratio(i, j) => printed(numbers.ratio(i, j)?),
        Quantity::Difference(i, j) => {
            difference(&numbers.difference(i, j)?, numbers.unit(i), number.digits)
        }
    })
}

/// A difference with its 95 % confidence interval and the number of independent repetitions.
fn difference(interval: &Interval, unit: &str, digits: Option<usize>) -> String {
    let mean = interval.mean;
    let digits = digits.unwrap_or_else(|| {
        let magnitude = if mean == 0.0 { 0.0 } else { mean.abs().log10().floor() };
        (DIGITS as f64 - 1.0 - magnitude).clamp(0.0, 9.0) as usize
    });
    let value = with_unit(signed(mean, digits), unit);
    match interval.half_width {
        None => value,
        Some(half) => {
            let [low, high] = [mean - half, mean + half].map(|end| fixed(end, digits));
            format!("{value} (95 % CI {low} to {high}, n = {})", interval.n)
        }
    }
}

fn with_unit(text: String, unit: &str) -> String {
    match unit {
        "" | "count" | "1" => text,
        // A scale of the number, not a unit.
        unit if unit.strip_prefix('x').is_some_and(|n| n.parse::<f64>().is_ok()) => text,
        unit => format!("{text} {unit}"),
    }
}
