//! Statements of the papers, each counted once.

use posenc_experiments::coverage::{Statement, Tested};
use posenc_experiments::schema::paper::Paper;
use posenc_experiments::verdict::{Evidence, Judgement, Verdict};

use super::{cited, places};
use crate::Inputs;
use crate::markdown::{Align, Grid, plain};
use crate::records::Side;
use crate::view::Views;

/// What the record shows of a statement. Every statement has exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It holds as printed, by computation or on the paper's data at the full protocol.
    Holds,
    /// It holds after a correction, or in one of two readings.
    Corrected,
    /// It fails, by computation or on the paper's data at the full protocol.
    Fails,
    /// It holds at a reduced scale or on other data.
    TendsToHold,
    /// It fails at a reduced scale or on other data.
    TendsToFail,
    /// It was measured, and the numbers do not decide it.
    Undecided,
    /// No claim tests it, or none that was run.
    NotTested,
}

impl Status {
    const ALL: [Status; 7] = [
        Status::Holds,
        Status::Corrected,
        Status::Fails,
        Status::TendsToHold,
        Status::TendsToFail,
        Status::Undecided,
        Status::NotTested,
    ];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Status::Holds => "hold",
            Status::Corrected => "hold after correction",
            Status::Fails => "fail",
            Status::TendsToHold => "tend to hold",
            Status::TendsToFail => "tend to fail",
            Status::Undecided => "undecided",
            Status::NotTested => "not tested here",
        }
    }

    /// The status of a statement whose claims have these verdicts.
    fn of(judged: &[&Judgement], has_erratum: bool) -> Status {
        let any = |of: &[Verdict]| judged.iter().any(|judgement| of.contains(&judgement.verdict));
        let weak = [Evidence::PaperReduced, Evidence::OtherData];
        let is_tendency = judged.iter().any(|j| j.rows.is_some_and(|class| weak.contains(&class)));
        if judged.iter().all(|judgement| judgement.verdict == Verdict::NotRun) {
            return Status::NotTested;
        }
        if any(&[Verdict::NotReproduced]) {
            return if is_tendency { Status::TendsToFail } else { Status::Fails };
        }
        let open = [
            Verdict::WithinNoise,
            Verdict::Negligible,
            Verdict::NotDecided,
            Verdict::NotComparable,
            Verdict::NotRun,
        ];
        if any(&open) {
            return Status::Undecided;
        }
        match (has_erratum || any(&[Verdict::Erratum, Verdict::Ambiguous]), is_tendency) {
            (true, _) => Status::Corrected,
            (false, true) => Status::TendsToHold,
            (false, false) => Status::Holds,
        }
    }
}

/// The status of a statement on a run; `None` if it is counted elsewhere.
pub fn status(statement: &Statement, views: &Views<'_>, side: Side) -> Option<Status> {
    let claims = match &statement.tested {
        Tested::By(claims) => claims,
        Tested::Elsewhere(_) => return None,
        // The computation of the erratum decides it.
        Tested::Not(_) if statement.erratum.is_some() => return Some(Status::Corrected),
        Tested::Not(_) => return Some(Status::NotTested),
    };
    let judged: Vec<&Judgement> =
        claims.iter().filter_map(|name| Some(views.claim(side, name)?.3)).collect();
    Some(Status::of(&judged, statement.erratum.is_some()))
}

/// Number of statements of some papers with each status, in the order of [`Status::ALL`].
fn counts(inputs: &Inputs<'_>, views: &Views<'_>, side: Side, papers: &[&Paper]) -> [usize; 7] {
    let statements = papers.iter().filter_map(|paper| inputs.catalog.coverage.get(&paper.key));
    let all: Vec<Status> =
        statements.flatten().filter_map(|own| status(own, views, side)).collect();
    Status::ALL.map(|status| all.iter().filter(|own| **own == status).count())
}

/// Papers that list their statements.
fn listed<'a>(inputs: &Inputs<'a>) -> Vec<&'a Paper> {
    let catalog = inputs.catalog;
    catalog.papers.iter().filter(|paper| catalog.coverage.contains_key(&paper.key)).collect()
}

/// All statements in three sentences; empty if no paper lists its statements.
pub fn summary(inputs: &Inputs<'_>, views: &Views<'_>, side: Side) -> String {
    let papers = listed(inputs);
    if papers.is_empty() {
        return String::new();
    }
    let counts = counts(inputs, views, side, &papers);
    let [holds, corrected, fails, tends, tends_not, undecided, untested] = counts;
    format!(
        "The papers make {} statements that a number can decide. By computation, or on the papers' own data at the full protocol, \
         {holds} hold as printed and {fails} fail; {corrected} hold after a correction or in one of two readings. At a reduced scale or \
         on other data, {tends} tend to hold and {tends_not} tend to fail. {undecided} are undecided, and {untested} are not tested here.",
        counts.iter().sum::<usize>()
    )
}

/// A row per paper with the number of its statements by status.
pub fn table(inputs: &Inputs<'_>, views: &Views<'_>, side: Side) -> String {
    let mut grid = Grid::default();
    grid.column("Paper", Align::Left);
    grid.column("Statements", Align::Right);
    grid.columns(Status::ALL.map(Status::name), Align::Right);
    for paper in listed(inputs) {
        let counts = counts(inputs, views, side, &[paper]);
        let page = places::coverage_of(&paper.key);
        let mut row = vec![format!("[{}]({page})", plain(&cited(paper)))];
        row.push(counts.iter().sum::<usize>().to_string());
        row.extend(counts.map(|n| n.to_string()));
        grid.row(row);
    }
    grid.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgement(verdict: Verdict, rows: Evidence) -> Judgement {
        Judgement {
            verdict,
            evidence: Some(rows),
            rows: Some(rows),
            condition: String::new(),
            measured: String::new(),
            statistics: String::new(),
            reason: String::new(),
            p_values: Vec::new(),
            decisive_p: 0,
            of_limit: None,
        }
    }

    /// Catches a statement that holds although one of its claims fails, is undecided or has an erratum, and a tendency that counts as
    /// decided.
    #[test]
    fn the_worst_claim_decides_a_statement() {
        use Verdict::{Erratum, Negligible, NotReproduced, NotRun, Reproduced, WithinNoise};
        let full = Evidence::PaperFull;
        for (claims, has_erratum, expected) in [
            (vec![(Reproduced, full), (Reproduced, Evidence::Theory)], false, Status::Holds),
            (vec![(Reproduced, full)], true, Status::Corrected),
            (vec![(Reproduced, full), (Erratum, full)], false, Status::Corrected),
            (vec![(Reproduced, full), (NotReproduced, full)], false, Status::Fails),
            (vec![(NotReproduced, Evidence::OtherData)], false, Status::TendsToFail),
            (
                vec![(Reproduced, full), (Reproduced, Evidence::PaperReduced)],
                false,
                Status::TendsToHold,
            ),
            (vec![(Reproduced, full), (WithinNoise, full)], false, Status::Undecided),
            (vec![(Negligible, full)], true, Status::Undecided),
            (vec![(Reproduced, full), (NotRun, full)], false, Status::Undecided),
            (vec![(NotRun, full)], false, Status::NotTested),
            (vec![], false, Status::NotTested),
        ] {
            let all: Vec<Judgement> = claims.iter().map(|(v, e)| judgement(*v, *e)).collect();
            let all: Vec<&Judgement> = all.iter().collect();
            assert_eq!(Status::of(&all, has_erratum), expected, "{claims:?}, {has_erratum}");
        }
    }
}
