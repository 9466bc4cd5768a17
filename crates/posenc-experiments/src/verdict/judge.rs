//! The verdict on a claim: that of its checks, or of its correction.

use std::collections::BTreeMap;

use posenc_math::errata::Severity;

use super::checks::Check;
use super::clusters::Clusters;
use super::comparable::missing;
use super::points::{Context, not_run};
use super::{Judgement, Verdict, evidence, floors, samples};
use crate::schema::claim::{Claim, ClaimCheck};

/// Judges a claim. A wrong statement whose correction holds is an erratum, not a failure.
pub fn judge(claim: &Claim, context: Context<'_>) -> Judgement {
    let judgement = with_erratum(claim, context);
    let basis = evidence::of(claim, context);
    let verdict = match judgement.verdict {
        Verdict::Reproduced if claim.is_ours => Verdict::Holds,
        Verdict::NotReproduced if claim.is_ours => Verdict::DoesNotHold,
        other => other,
    };
    let is_run = verdict != Verdict::NotRun;
    Judgement {
        verdict,
        evidence: basis.class.filter(|_| is_run),
        rows: basis.rows.filter(|_| is_run),
        condition: if is_run { basis.condition } else { String::new() },
        ..judgement
    }
}

fn with_erratum(claim: &Claim, context: Context<'_>) -> Judgement {
    let printed = all(&claim.checks, context);
    let Some(link) = &claim.erratum else { return printed };
    if printed.verdict != Verdict::NotReproduced {
        return printed;
    }
    let corrected = all(&link.checks, context);
    let is_ambiguous =
        |e: &&posenc_math::errata::Erratum| e.id == link.id && e.severity == Severity::Ambiguous;
    let (verdict, as_judged, what) = match posenc_math::errata::all().iter().any(is_ambiguous) {
        true => (Verdict::Ambiguous, "as we read it", "the other reading"),
        false => (Verdict::Erratum, "as printed", "corrected"),
    };
    match corrected.verdict {
        Verdict::Reproduced => Judgement {
            verdict,
            // A reader of this text alone must see which statement it belongs to.
            measured: format!("{what}: {}", corrected.measured),
            statistics: corrected.statistics,
            reason: format!(
                "{as_judged} it fails ({}); {what}: {}",
                printed.measured, link.corrected
            ),
            p_values: corrected.p_values,
            decisive_p: corrected.decisive_p,
            ..printed
        },
        _ => Judgement {
            reason: format!(
                "{}; the correction ({}) is {}: {}",
                printed.reason,
                link.corrected,
                corrected.verdict.name(),
                corrected.measured
            ),
            ..printed
        },
    }
}

/// The verdicts of the checks that do not hold, if they differ, such as ` (1 not reproduced, 2 within noise)`.
fn others(judged: &[(&ClaimCheck, Judgement)]) -> String {
    let mut counts: BTreeMap<Verdict, usize> = BTreeMap::new();
    for (_, judgement) in judged {
        *counts.entry(judgement.verdict).or_default() += 1;
    }
    counts.remove(&Verdict::Reproduced);
    let each: Vec<String> =
        counts.iter().map(|(verdict, n)| format!("{n} {}", verdict.name())).collect();
    if counts.len() < 2 { String::new() } else { format!(" ({})", each.join(", ")) }
}

/// Number of checks whose numbers are shown if all of a claim's checks hold.
const SHOWN_CHECKS: usize = 3;

/// Judges several checks that must all hold. The texts name the checks that do not hold, or else the first ones.
fn all(checks: &[ClaimCheck], context: Context<'_>) -> Judgement {
    let mut judged: Vec<(&ClaimCheck, Judgement)> =
        checks.iter().map(|own| (own, decide(&own.check, own.is_exact, context))).collect();
    if judged.len() == 1
        && let Some((_, only)) = judged.pop()
    {
        return only;
    }
    let verdict = Verdict::worst(judged.iter().map(|(_, judgement)| judgement.verdict));
    let holds = |judgement: &Judgement| judgement.verdict == Verdict::Reproduced;
    let held = judged.iter().filter(|(_, judgement)| holds(judgement)).count();
    let mut shown: Vec<_> = judged.iter().filter(|(_, judgement)| !holds(judgement)).collect();
    if shown.is_empty() {
        shown = judged.iter().take(SHOWN_CHECKS).collect();
    }
    let text = |of: fn(&Judgement) -> String| {
        let labeled = |(own, judgement): &&(&ClaimCheck, Judgement)| match of(judgement) {
            text if text.is_empty() || own.label.is_empty() => text,
            text => format!("{}: {text}", own.label),
        };
        let texts: Vec<String> = shown.iter().map(labeled).filter(|t| !t.is_empty()).collect();
        texts.join("; ")
    };
    let numbers = text(|j| j.measured.clone());
    // Without a decision, the number of checks that hold would read like one.
    let measured = match verdict {
        Verdict::NotRun | Verdict::NotDecided | Verdict::NotComparable => numbers,
        _ => format!("{held} of {} checks hold{}; {numbers}", judged.len(), others(&judged)),
    };
    let reason = text(|j| match j.reason.as_str() {
        "" => String::new(),
        reason => format!("{} ({reason})", j.verdict.name()),
    });
    let mut judgement = Judgement::new(verdict, measured, text(|j| j.statistics.clone()), reason);
    // The check that is nearest to its limit shows how narrow the claim is.
    let distance = |share: &f64| (share - 1.0).abs();
    let shares = judged.iter().filter_map(|(_, judgement)| judgement.of_limit);
    judgement.of_limit = shares.min_by(|a, b| distance(a).total_cmp(&distance(b)));
    let mut decides: Option<(usize, f64)> = None;
    for (_, own) in judged {
        let decisive = verdict != Verdict::NotReproduced || own.verdict == verdict;
        for p in own.p_values {
            // A failure rests on the check that refutes most clearly, anything else on the least clear check.
            let is_nearer =
                |known: f64| if verdict == Verdict::NotReproduced { p < known } else { p > known };
            if decisive && decides.is_none_or(|(_, known)| is_nearer(known)) {
                decides = Some((judgement.p_values.len(), p));
            }
            judgement.p_values.push(p);
        }
    }
    judgement.decisive_p = decides.map_or(0, |(place, _)| place);
    judgement
}

fn decide(check: &Check, is_exact: bool, context: Context<'_>) -> Judgement {
    if context.record.is_none() {
        return not_run("no record").judgement();
    }
    let clusters = Clusters::new(check, is_exact, context);
    let missing = || check.measured().find_map(|select| missing(select, context));
    let judgement = match check.rule().judge(clusters, context) {
        Ok(judgement) => judgement
            .unless(missing())
            .unless(floors::below(check, context))
            .unless(floors::solved(check, context)),
        Err(reason) => return reason.judgement(),
    };
    let is_decided = !matches!(judgement.verdict, Verdict::NotComparable | Verdict::NotRun);
    let lack = samples::too_few(check, context).or_else(|| samples::one_run(check, context));
    match lack.filter(|_| is_decided && !is_exact) {
        Some(reason) => Judgement { verdict: Verdict::NotDecided, reason, ..judgement },
        None => judgement,
    }
}
