//! Sentences with numbers: the answers of items and papers.
//!
//! Every number is computed from the record or the published values when the page is rendered. A sentence of an answer is shown only if
//! each verdict that it states is that of the record. A published number is shown only next to the paper's data at the full protocol.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{Value, context};
use posenc_experiments::plan::NO_SIGNAL;
use posenc_experiments::record::Row;
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

/// Data that a protocol generates itself.
const GENERATED: &str = "generated";

/// Significant digits of a number whose sentence does not state its decimals.
const DIGITS: usize = 3;

/// Largest p of a stated verdict after Holm's correction.
const SIGNIFICANT: f64 = 0.05;

/// Whether a verdict states something although its p is too large after Holm's correction. Without a part of the numbers, a p-value decides
/// nothing.
pub fn is_lost_to_holm(verdict: Verdict, holm: Option<f64>) -> bool {
    let states = !Outcome::Open.is(verdict) && verdict != Verdict::NotRun;
    holm.is_some_and(|p| p > SIGNIFICANT) && states
}

/// What a verdict means next to all other claims of the paper: a claim whose p is too large after Holm's correction is open.
pub fn corrected(own: JudgedClaim<'_>) -> Verdict {
    match is_lost_to_holm(own.judgement.verdict, own.holm) {
        true => Verdict::WithinNoise,
        false => own.judgement.verdict,
    }
}

/// An answer to the paper's question by run: the sentences that are true on the record, and what was measured for them.
pub fn of_paper(
    inputs: &Inputs<'_>,
    views: &Views<'_>,
    paper: &Paper,
    answers: &BTreeMap<String, Vec<AnswerSentence>>,
) -> Vec<Value> {
    let stated = answers.get(&paper.key).map(Vec::as_slice).unwrap_or_default();
    let of_side = |side: Side| {
        let find = |name: &str| views.claim(side, &ClaimName::parse(name, Some(&paper.key))?);
        let shown = true_sentences(stated, find, corrected);
        let claims = shown.iter().flat_map(|(own, _)| &own.states);
        let evidence = evidence(claims.filter_map(|(claim, _)| find(claim)), Some(paper));
        let sentences: Vec<_> = shown.into_iter().map(|(_, text)| safe(text)).collect();
        let has_any = !sentences.is_empty();
        (has_any, context! { side => side.name(), sentences, evidence => safe(evidence) })
    };
    let all: Vec<(bool, Value)> = sides(inputs).into_iter().map(of_side).collect();
    // Below the answer of the reference run, a run of this paper on this machine that decides nothing says so.
    let is_answered = all.first().is_some_and(|(has_any, _)| *has_any)
        && views.all().any(|view| {
            view.experiment.paper == paper.key && view.runs().any(|run| run.side == Side::Local)
        });
    let shown = all.into_iter().filter(|(has_any, _)| *has_any || is_answered);
    shown.map(|(_, answer)| answer).collect()
}

/// The classes of the rows behind claims with their data, such as `theory · other data (embedded:text)`. For a claim of another paper, data that
/// `paper` did not use are other data.
fn evidence<'v>(claims: impl Iterator<Item = JudgedClaim<'v>>, paper: Option<&Paper>) -> String {
    let mut data: BTreeMap<Evidence, (BTreeSet<&str>, bool)> = BTreeMap::new();
    for JudgedClaim { view, side, claim, judgement, .. } in claims {
        let (Some(class), Some(run)) = (judgement.rows, &side.run) else { continue };
        let (mut names, mut reduced) = (BTreeSet::new(), false);
        for select in claim.selects() {
            let is_own =
                |row: &&Row| select.group == row.group && select.takes(&row.method, &row.signal);
            for row in run.table.rows.iter().filter(is_own) {
                names.insert(if row.data == NO_SIGNAL { GENERATED } else { &*row.data });
                let group = view.experiment.group(&row.group);
                reduced |= group.is_some_and(|group| group.reduced(row.profile).is_some());
            }
        }
        let is_foreign = paper.is_some_and(|paper| {
            let is_used = |name: &&str| paper.data.iter().any(|own| own == name);
            paper.key != view.experiment.paper && !names.iter().all(is_used)
        });
        let is_paper = matches!(class, Evidence::PaperFull | Evidence::Reduced);
        let class = if is_foreign && is_paper { Evidence::OtherData } else { class };
        let (own, is_reduced) = data.entry(class).or_default();
        own.extend(names);
        *is_reduced |= reduced;
        // Computations without data.
        if class != Evidence::OtherData {
            own.remove(GENERATED);
        }
    }
    let named = |(class, (data, is_reduced)): (Evidence, (BTreeSet<&str>, bool))| {
        let data = data.into_iter().map(plain).collect::<Vec<_>>().join(", ");
        let data = if data.is_empty() { data } else { format!(" ({data})") };
        let reduced = if is_reduced && class == Evidence::OtherData { ", reduced" } else { "" };
        format!("{}{reduced}{data}", class.name())
    };
    data.into_iter().map(named).collect::<Vec<_>>().join(" · ")
}

/// The answer to an item by run, where there are claims and records.
pub fn of_item(view: &View<'_>) -> Vec<Value> {
    let run = view.sides.iter().filter(|side| side.run.is_some());
    let of_side = |side: &SideView| {
        let (text, claims) = item_answer(view, side)?;
        let evidence =
            evidence(side.claims(view).filter(|own| claims.contains(&own.claim.id)), None);
        Some(context! { side => side.side.name(), text => safe(text), evidence => safe(evidence) })
    };
    run.filter_map(of_side).collect()
}

/// The sentences of the experiment's answer that are true on this run, or else the first claim that was decided; and the claims
/// behind them.
fn item_answer(view: &View<'_>, side: &SideView) -> Option<(String, BTreeSet<String>)> {
    let find = |id: &str| side.claims(view).find(|own| own.claim.id == id);
    let stated = true_sentences(&view.experiment.answer, find, |own| own.judgement.verdict);
    if !stated.is_empty() {
        let claims = stated.iter().flat_map(|(own, _)| &own.states);
        let claims = claims.map(|(claim, _)| claim.clone()).collect();
        let texts: Vec<String> = stated.into_iter().map(|(_, text)| text).collect();
        return Some((texts.join(" "), claims));
    }
    if side.side == Side::Local && !view.experiment.answer.is_empty() {
        let text = "This run decides none of the sentences of our answer; the verdicts below say what it measured.";
        return Some((text.to_owned(), BTreeSet::new()));
    }
    let is_decided = |verdict: Verdict| {
        !matches!(verdict, Verdict::NotRun | Verdict::NotComparable | Verdict::NotDecided)
    };
    let own = side.claims(view).find(|own| is_decided(own.judgement.verdict))?;
    let measured = match own.judgement.measured.as_str() {
        "" | "–" => String::new(),
        measured => format!(" Measured: {}.", plain(measured)),
    };
    let verdict = super::named(own.judgement.verdict);
    let text = format!("{verdict}: {}{measured}", inline(&own.claim.says));
    Some((text, BTreeSet::from([own.claim.id.clone()])))
}

/// The sentences of an answer that are true on a run, with their numbers. `find` returns a claim by its name in the answer, `verdict` its
/// verdict.
fn true_sentences<'a, 'v>(
    sentences: &'a [AnswerSentence],
    find: impl Fn(&str) -> Option<JudgedClaim<'v>>,
    verdict: impl Fn(JudgedClaim<'v>) -> Verdict,
) -> Vec<(&'a AnswerSentence, String)> {
    let is_true = |own: &&AnswerSentence| {
        own.states
            .iter()
            .all(|(claim, outcome)| find(claim).is_some_and(|own| outcome.is(verdict(own))))
    };
    let shown = sentences.iter().filter(is_true);
    shown.filter_map(|own| Some((own, filled(&own.sentence, &find)?))).collect()
}

/// Claims of answers that were measured in the reference run, but whose verdict no sentence states, so that the pages leave them out without a
/// word: as text.
pub fn unstated(inputs: &Inputs<'_>, views: &Views<'_>) -> Vec<String> {
    let mut all = Vec::new();
    for paper in &inputs.catalog.papers {
        let find =
            |name: &str| views.claim(Side::Reference, &ClaimName::parse(name, Some(&paper.key))?);
        let catalog = inputs.catalog;
        for (key, answers) in
            [("answer", &catalog.answers), ("short_answer", &catalog.short_answers)]
        {
            let stated = answers.get(&paper.key).map(Vec::as_slice).unwrap_or_default();
            let own = left_out(stated, find, corrected).into_iter();
            all.extend(own.map(|what| format!("{} {key}: {what}", paper.key)));
        }
    }
    for view in views.all() {
        let Some(side) = view.sides.first() else { continue };
        let find = |id: &str| side.claims(view).find(|own| own.claim.id == id);
        let own = left_out(&view.experiment.answer, find, |own| own.judgement.verdict);
        all.extend(own.into_iter().map(|what| format!("{} answer: {what}", view.experiment.id())));
    }
    all
}

fn left_out<'v>(
    sentences: &[AnswerSentence],
    find: impl Fn(&str) -> Option<JudgedClaim<'v>>,
    verdict: impl Fn(JudgedClaim<'v>) -> Verdict,
) -> Vec<String> {
    let shown = true_sentences(sentences, &find, &verdict);
    let is_stated = |claim: &str| shown.iter().any(|(own, _)| own.names(claim));
    let named: BTreeSet<&str> =
        sentences.iter().flat_map(|own| &own.states).map(|(claim, _)| claim.as_str()).collect();
    let hidden = named.into_iter().filter(|claim| !is_stated(claim));
    let text = |claim: &str| {
        let verdict = verdict(find(claim)?);
        let text = format!("no sentence is true while `{claim}` is {}", verdict.name());
        (verdict != Verdict::NotRun).then_some(text)
    };
    hidden.filter_map(text).collect()
}

/// A sentence with its numbers; `None` if the record lacks one of them.
fn filled<'v>(
    sentence: &Sentence,
    find: impl Fn(&str) -> Option<JudgedClaim<'v>>,
) -> Option<String> {
    let mut text = String::new();
    for part in &sentence.parts {
        match part {
            Part::Text(words) => text.push_str(words),
            Part::Number(number) => {
                text.push_str(&shown(number, find(&number.claim)?)?);
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
        Quantity::Count(i) => numbers.count(i)?.to_string(),
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
    let unit = if unit == "%" { "percentage points" } else { unit };
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
