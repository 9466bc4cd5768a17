//! Sentences with numbers: headlines of claims, and the answers of items and papers.
//!
//! Every number is computed from the record or the published values when the page is rendered. A sentence of an answer is shown only if
//! each verdict that it states is that of the record. A published number is shown only next to the paper's data at the full protocol.

use minijinja::{Value, context};
use posenc_experiments::schema::answer::{AnswerSentence, Outcome};
use posenc_experiments::schema::claim::{ClaimName, Number, Part, Quantity, Sentence};
use posenc_experiments::schema::paper::Paper;
use posenc_experiments::verdict::{Evidence, Interval, Numbers, Verdict};

use crate::Inputs;
use crate::markdown::{inline, plain};
use crate::numbers::{fixed, signed, significant};
use crate::records::Side;
use crate::template::safe;
use crate::view::{JudgedClaim, SideView, View, Views, sides};

/// Significant digits of a number whose sentence does not state its decimals.
const DIGITS: usize = 3;

/// Largest p of a finding after Holm's correction.
pub const SIGNIFICANT: f64 = 0.05;

/// What a verdict means next to all other claims of the paper: a claim whose p is too large after Holm's correction is open.
fn corrected(own: JudgedClaim<'_>) -> Verdict {
    let is_stated = !Outcome::Open.is(own.judgement.verdict);
    match own.holm.is_some_and(|p| p > SIGNIFICANT) && is_stated {
        true => Verdict::WithinNoise,
        false => own.judgement.verdict,
    }
}

/// Our answer to the paper's question by run, where a sentence is true on the record.
pub fn of_paper(inputs: &Inputs<'_>, views: &Views<'_>, paper: &Paper) -> Vec<Value> {
    let stated = inputs.catalog.answers.get(&paper.key).map(Vec::as_slice).unwrap_or_default();
    let of_side = |side: Side| {
        let find = |name: &str| views.claim(side, &ClaimName::parse(name, Some(&paper.key))?);
        Some(context! { side => side.name(), text => safe(answer(stated, find, corrected)?) })
    };
    sides(inputs).into_iter().filter_map(of_side).collect()
}

/// The answer to an item by run, where there are claims and records.
pub fn of_item(view: &View<'_>) -> Vec<Value> {
    let run = view.sides.iter().filter(|side| side.run.is_some());
    let of_side = |side: &SideView| {
        Some(context! { side => side.side.name(), text => safe(item_answer(view, side)?) })
    };
    run.filter_map(of_side).collect()
}

/// The sentences of the experiment's answer that are true on this run, or else the first headline that holds, or the first claim that
/// was decided.
fn item_answer(view: &View<'_>, side: &SideView) -> Option<String> {
    let find = |id: &str| side.claims(view).find(|own| own.claim.id == id);
    let stated = answer(&view.experiment.answer, find, |own| own.judgement.verdict);
    let first_headline = || side.claims(view).find_map(headline);
    if let Some(text) = stated.or_else(first_headline) {
        return Some(text);
    }
    let is_decided = |verdict: Verdict| {
        !matches!(verdict, Verdict::NotRun | Verdict::NotComparable | Verdict::NotDecided)
    };
    let JudgedClaim { claim, judgement, .. } =
        side.claims(view).find(|own| is_decided(own.judgement.verdict))?;
    let measured = match judgement.measured.as_str() {
        "" | "–" => String::new(),
        measured => format!(" Measured: {}.", plain(measured)),
    };
    Some(format!("{}: {}{measured}", super::named(judgement.verdict), inline(&claim.says)))
}

/// The sentences of an answer that are true on a run, joined. `find` returns a claim by its name in the answer, `verdict` its verdict.
fn answer<'v>(
    sentences: &[AnswerSentence],
    find: impl Fn(&str) -> Option<JudgedClaim<'v>>,
    verdict: impl Fn(JudgedClaim<'v>) -> Verdict,
) -> Option<String> {
    let is_true = |own: &&AnswerSentence| {
        own.states
            .iter()
            .all(|(claim, outcome)| find(claim).is_some_and(|own| outcome.is(verdict(own))))
    };
    let shown = sentences.iter().filter(is_true);
    let texts: Vec<String> =
        shown.filter_map(|own| filled(&own.sentence, |claim| find(claim?))).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// The headline of a claim with its numbers; `None` if the claim does not hold or the record lacks a number.
pub fn headline(own: JudgedClaim<'_>) -> Option<String> {
    let headline = own.claim.headline.as_ref()?;
    filled(headline, |_| Some(own)).filter(|_| Outcome::Holds.is(own.judgement.verdict))
}

/// A sentence with its numbers; `None` if the record lacks one of them.
fn filled<'v>(
    sentence: &Sentence,
    find: impl Fn(Option<&str>) -> Option<JudgedClaim<'v>>,
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

fn shown(number: &Number, own: JudgedClaim<'_>) -> Option<String> {
    let JudgedClaim { view, side, claim, judgement, .. } = own;
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
