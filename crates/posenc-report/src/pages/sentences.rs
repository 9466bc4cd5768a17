//! Sentences of experiments with their numbers: headline findings and the answers of items.
//!
//! Every number is computed from the record or the published values when the page is rendered.

use posenc_experiments::schema::claim::{Claim, Number, Part, Quantity, Sentence};
use posenc_experiments::verdict::{Interval, Numbers};

use crate::markdown::inline;
use crate::numbers::{fixed, signed, significant};
use crate::view::{SideView, View};

/// Significant digits of a number whose sentence does not state its decimals.
const DIGITS: usize = 3;

/// A sentence with its numbers; `None` if the record lacks one of them. Numbers without a claim belong to `own`.
pub fn filled(
    view: &View<'_>,
    side: &SideView,
    sentence: &Sentence,
    own: Option<&Claim>,
) -> Option<String> {
    let mut text = String::new();
    for part in &sentence.parts {
        match part {
            Part::Text(words) => text.push_str(words),
            Part::Number(number) => text.push_str(&shown(view, side, number, own)?),
        }
    }
    Some(inline(&text))
}

fn shown(view: &View<'_>, side: &SideView, number: &Number, own: Option<&Claim>) -> Option<String> {
    let claim = match &number.claim {
        Some(id) => view.experiment.claims.iter().find(|claim| claim.id == *id),
        None => own,
    }?;
    let numbers = Numbers::of(claim, view.context(side));
    let printed = |value: f64| match number.digits {
        Some(digits) => fixed(value, digits),
        None => significant(value, DIGITS),
    };
    Some(match number.quantity {
        Quantity::Mean(i) => with_unit(printed(numbers.mean(i)?.mean), numbers.unit(i)),
        Quantity::Published(i) => {
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
