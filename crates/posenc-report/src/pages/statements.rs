//! Statements of the papers, each counted once.

use minijinja::{Value, context};
use posenc_experiments::coverage::{Statement, Tested};
use posenc_experiments::schema::claim::ClaimName;
use posenc_experiments::schema::paper::Paper;
use posenc_experiments::verdict::{Evidence, Verdict};

use super::sentences::{corrected, is_lost_to_holm};
use super::{cited, errata, item_name, named};
use crate::Inputs;
use crate::links;
use crate::records::Side;
use crate::template::safe;
use crate::view::{Views, sides};

/// What the record shows of a statement. Every statement has exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    /// It holds as printed, by computation or on the paper's data at the full protocol.
    Holds,
    /// It holds after a correction, or in one of two readings.
    Corrected,
    /// No claim tests it, and an erratum refutes it from what is printed.
    Contradicted,
    /// It fails, by computation or on the paper's data at the full protocol.
    Fails,
    /// It holds at a reduced scale or on other data.
    TendsToHold,
    /// It fails at a reduced scale or on other data.
    TendsToFail,
    /// It was measured, and the numbers do not decide it.
    Undecided,
    /// None of its claims was run.
    NotRun,
    /// No claim tests it.
    NotTested,
}

impl Status {
    /// The status with its sign.
    fn name(self) -> &'static str {
        match self {
            Status::Holds => "✓ holds",
            Status::Corrected => "✎ holds after correction",
            Status::Contradicted => "✗ contradicted in print",
            Status::Fails => "✗ fails",
            Status::TendsToHold => "✓ tends to hold",
            Status::TendsToFail => "✗ tends to fail",
            Status::Undecided => "? undecided",
            Status::NotRun => "– not run here",
            Status::NotTested => "– not tested here",
        }
    }

    /// The status of a statement whose claims have these verdicts, after Holm's correction, and rows of these classes. `erratum`: whether the
    /// check of its erratum confirms it.
    fn of(judged: &[(Verdict, Option<Evidence>)], erratum: Option<bool>) -> Status {
        let any = |of: &[Verdict]| judged.iter().any(|(verdict, _)| of.contains(verdict));
        let weak = [Evidence::Reduced, Evidence::OtherData];
        let is_tendency =
            judged.iter().any(|(_, rows)| rows.is_some_and(|class| weak.contains(&class)));
        if judged.iter().all(|(verdict, _)| *verdict == Verdict::NotRun) {
            return if judged.is_empty() { Status::NotTested } else { Status::NotRun };
        }
        if any(&[Verdict::NotReproduced, Verdict::DoesNotHold]) {
            return if is_tendency { Status::TendsToFail } else { Status::Fails };
        }
        let open = [
            Verdict::WithinNoise,
            Verdict::Negligible,
            Verdict::NotDecided,
            Verdict::NotComparable,
            Verdict::NotRun,
        ];
        // With an erratum that its check does not confirm, it is open whether the claims test what is printed.
        if any(&open) || erratum == Some(false) {
            return Status::Undecided;
        }
        match (erratum == Some(true) || any(&[Verdict::Erratum, Verdict::Ambiguous]), is_tendency) {
            (true, _) => Status::Corrected,
            (false, true) => Status::TendsToHold,
            (false, false) => Status::Holds,
        }
    }
}

/// The status of a statement on a run; `None` if it is counted elsewhere.
fn status(statement: &Statement, views: &Views<'_>, side: Side) -> Option<Status> {
    let erratum = statement.erratum.as_ref().map(|id| errata::is_confirmed_on(views, side, id));
    let claims = match &statement.tested {
        Tested::By(claims) => claims,
        Tested::Elsewhere(_) => return None,
        // The computation of the erratum decides it.
        Tested::Not(_) if erratum == Some(true) => return Some(Status::Contradicted),
        Tested::Not(_) => return Some(Status::NotTested),
    };
    let judged = claims.iter().filter_map(|name| {
        let own = views.claim(side, name)?;
        let rows = own.judgement.rows;
        Some((corrected(own), rows))
    });
    Some(Status::of(&judged.collect::<Vec<_>>(), erratum))
}

/// Numbers of statements by status: of each paper that lists its statements, and of all. Empty if no paper does.
pub fn by_side(inputs: &Inputs<'_>, views: &Views<'_>) -> Vec<Value> {
    let lists = &inputs.catalog.coverage;
    let papers = || inputs.catalog.papers.iter().filter(|paper| lists.contains_key(&paper.key));
    let of_side = |side: Side| {
        let statuses = |paper: &Paper| -> Vec<Status> {
            let list = lists.get(&paper.key).into_iter().flatten();
            list.filter_map(|own| status(own, views, side)).collect()
        };
        let of_paper = |paper: &Paper| {
            let page = safe(links::coverage_of(&paper.key));
            context! { key => &paper.key, cited => cited(paper), page, counts => counts(&statuses(paper)) }
        };
        context! {
            name => side.name(),
            papers => papers().map(of_paper).collect::<Vec<_>>(),
            counts => counts(&papers().flat_map(statuses).collect::<Vec<_>>()),
        }
    };
    let shown = sides(inputs).into_iter().filter(|_| !lists.is_empty());
    shown.map(of_side).collect()
}

fn counts(all: &[Status]) -> Value {
    let count = |status| all.iter().filter(|own| **own == status).count();
    let [tend_to_hold, tend_to_fail, not_run] =
        [Status::TendsToHold, Status::TendsToFail, Status::NotRun].map(count);
    context! {
        all => all.len(),
        holds => count(Status::Holds) + tend_to_hold,
        corrected => count(Status::Corrected),
        fails => count(Status::Fails) + tend_to_fail + count(Status::Contradicted),
        undecided => count(Status::Undecided),
        not_tested => count(Status::NotTested) + not_run,
        not_run,
        tend_to_hold,
        tend_to_fail,
    }
}

/// The statements of a paper in the order of its sections, with the claims that test them; `None` if the paper has no list.
pub fn page(inputs: &Inputs<'_>, views: &Views<'_>, paper: &Paper) -> Option<Value> {
    let statements = inputs.catalog.coverage.get(&paper.key)?;
    let sides = sides(inputs);
    let link = |name: &ClaimName| {
        let verdict = |side: &Side| {
            let found = views.claim(*side, name);
            let is_lost =
                found.as_ref().is_some_and(|own| is_lost_to_holm(own.judgement.verdict, own.holm));
            let verdict = named(found.map_or(Verdict::NotRun, |own| own.judgement.verdict));
            context! { verdict, is_lost }
        };
        context! {
            verdicts => sides.iter().map(verdict).collect::<Vec<_>>(),
            item => safe(item_name(inputs, &name.paper, &name.item)),
            id => &name.claim,
            page => safe(links::claim(&name.paper, &name.item, &name.claim)),
        }
    };
    let one = |own: &Statement| {
        let (mut claims, mut not_tested, mut elsewhere) = (Vec::new(), None, None);
        match &own.tested {
            Tested::By(names) => claims = names.iter().map(&link).collect(),
            Tested::Not(reason) => not_tested = Some(reason),
            Tested::Elsewhere(place) => elsewhere = Some(place),
        }
        let status = |side: &Side| status(own, views, *side).map_or("", Status::name);
        let statuses: Vec<&str> = sides.iter().map(status).collect();
        let erratum = own.erratum.as_deref().and_then(errata::find);
        let erratum = erratum.map(|erratum| safe(links::erratum(erratum)));
        context! { section => &own.section, text => &own.statement, statuses, claims, not_tested, elsewhere, erratum }
    };
    let of_side = |side: &Side| {
        let counted: Vec<Status> =
            statements.iter().filter_map(|own| status(own, views, *side)).collect();
        context! { name => side.name(), counts => counts(&counted) }
    };
    let is_elsewhere = |own: &&Statement| matches!(own.tested, Tested::Elsewhere(_));
    let elsewhere = statements.iter().filter(is_elsewhere).count();
    let runs: Vec<_> = sides.iter().map(of_side).collect();
    Some(context! { runs, elsewhere, statements => statements.iter().map(one).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a statement that holds although one of its claims fails, is undecided or has an erratum, an erratum that its check does
    /// not confirm, and a tendency that counts as
    /// decided.
    #[test]
    fn the_worst_claim_decides_a_statement() {
        use Verdict::{Erratum, Negligible, NotReproduced, NotRun, Reproduced, WithinNoise};
        let full = Evidence::PaperFull;
        for (claims, erratum, expected) in [
            (vec![(Reproduced, full), (Reproduced, Evidence::Theory)], None, Status::Holds),
            (vec![(Reproduced, full)], Some(true), Status::Corrected),
            (vec![(Reproduced, full)], Some(false), Status::Undecided),
            (vec![(Reproduced, full), (Erratum, full)], None, Status::Corrected),
            (vec![(Reproduced, full), (NotReproduced, full)], None, Status::Fails),
            (vec![(NotReproduced, Evidence::OtherData)], None, Status::TendsToFail),
            (vec![(Reproduced, full), (Reproduced, Evidence::Reduced)], None, Status::TendsToHold),
            (vec![(Reproduced, full), (WithinNoise, full)], None, Status::Undecided),
            (vec![(Negligible, full)], Some(true), Status::Undecided),
            (vec![(Reproduced, full), (NotRun, full)], None, Status::Undecided),
            (vec![(NotRun, full)], None, Status::NotRun),
            (vec![], None, Status::NotTested),
        ] {
            let all: Vec<_> = claims.iter().map(|(v, e)| (*v, Some(*e))).collect();
            assert_eq!(Status::of(&all, erratum), expected, "{claims:?}, {erratum:?}");
        }
    }
}
