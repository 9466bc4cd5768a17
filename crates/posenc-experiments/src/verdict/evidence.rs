//! Evidence behind verdicts: theory, the paper's data, other data.

use std::collections::BTreeSet;

use super::clusters::is_without_signal;
use super::points::{Context, rows};
use crate::record::{NO_SIGNAL, Row, is_of_machine};
use crate::schema::claim::Claim;
use crate::schema::protocol::WithoutData;
use crate::schema::{Group, Profile};

/// The class of the evidence behind a verdict, weakest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// Exact: no data, or arithmetic on printed numbers.
    Theory,
    /// The paper's data at the full protocol.
    PaperFull,
    /// No data or the paper's data, at a reduced protocol or with fewer signals.
    Reduced,
    /// Generated or substitute data, a data set that the paper did not use, or the user's own.
    OtherData,
    /// The authors' notebooks, code or project page have the number, and the paper does not.
    AuthorsCode,
    /// A statement of this project, not of the paper.
    Ours,
    /// A statement that is counted for another paper.
    Repeated,
}

impl Evidence {
    /// All classes, in the order of tables.
    pub const ALL: [Evidence; 7] = [
        Evidence::Theory,
        Evidence::PaperFull,
        Evidence::Reduced,
        Evidence::OtherData,
        Evidence::AuthorsCode,
        Evidence::Ours,
        Evidence::Repeated,
    ];

    pub fn name(self) -> &'static str {
        self.name_and_meaning().0
    }

    /// The meaning, as a sentence without its full stop.
    pub fn meaning(self) -> &'static str {
        self.name_and_meaning().1
    }

    fn name_and_meaning(self) -> (&'static str, &'static str) {
        match self {
            Evidence::Theory => {
                ("theory", "an exact computation without data, or arithmetic on printed numbers")
            }
            Evidence::PaperFull => {
                ("paper's data, full", "measured on the paper's data with its full protocol")
            }
            Evidence::Reduced => (
                "reduced",
                "computed without data or measured on the paper's data, with fewer points, signals, seeds or training steps",
            ),
            Evidence::OtherData => (
                "other data",
                "measured on generated data (embedded:…), on a substitute (substitute:…), on files of the user (user:…), or on a data set that the paper did not use",
            ),
            Evidence::AuthorsCode => (
                "authors' code",
                "a number that the authors' notebooks, code or project page have, and the paper does not",
            ),
            Evidence::Ours => ("our claim", "a statement of this project, not of the paper"),
            Evidence::Repeated => ("repeated", "a statement that is counted for another paper"),
        }
    }
}

pub(super) struct Basis {
    /// The class; `None` for a claim on measured values without rows.
    pub class: Option<Evidence>,
    /// The class of the rows alone, whoever makes the statement.
    pub rows: Option<Evidence>,
    /// How the weakest rows fall short of the full protocol; several groups can do so in several ways.
    pub condition: String,
}

/// The basis of a claim's verdict: that of the weakest row of its checks.
pub(super) fn of(claim: &Claim, context: Context<'_>) -> Basis {
    let mut found: BTreeSet<(Evidence, String)> = BTreeSet::new();
    // Many rows of a unit differ only in their abscissas.
    type Source<'a> = (&'a str, &'a str, &'a str, bool, bool, Profile, &'a str);
    let mut known: BTreeSet<Source<'_>> = BTreeSet::new();
    let (mut is_measured, mut is_of_code) = (false, false);
    for own in &claim.checks {
        is_of_code |= own.check.published().into_iter().any(|select| {
            let mut values = context.published_of(select);
            values.any(|value| value.value.is_some() && value.is_of_code())
        });
        for select in own.check.measured() {
            is_measured = true;
            for row in rows(select, context) {
                let is_of_signal = row.signal != NO_SIGNAL;
                let (group, method, metric) = (&*row.group, &*row.method, &*row.metric);
                let (profile, data) = (row.profile, &*row.data);
                if known.insert((group, method, metric, is_of_signal, own.is_exact, profile, data))
                {
                    found.insert(of_row(row, own.is_exact, context));
                }
            }
        }
    }
    let worst = found.last().map(|(class, _)| *class);
    let ways = found.iter().filter(|(class, how)| Some(*class) == worst && !how.is_empty());
    let condition = ways.map(|(_, how)| &**how).collect::<Vec<_>>().join(" · ");
    let rows = worst.or((!is_measured).then_some(Evidence::Theory));
    let stated = match claim {
        Claim { repeats: Some(_), .. } => Some(Evidence::Repeated),
        Claim { is_ours: true, .. } => Some(Evidence::Ours),
        _ => is_of_code.then_some(Evidence::AuthorsCode),
    };
    Basis { class: rows.map(|class| stated.unwrap_or(class)), rows, condition }
}

fn of_row(row: &Row, is_exact: bool, context: Context<'_>) -> (Evidence, String) {
    let Some(group) = context.experiment.group(&row.group) else {
        return (Evidence::OtherData, "of a group that no longer exists".to_owned());
    };
    let plain = |class| (class, String::new());
    // Counts from the settings depend neither on data nor on the length of a run.
    if is_exact && (row.data == "-" || group.has_papers_model(row)) {
        return plain(Evidence::Theory);
    }
    let reduction = match (group.reduced(row.profile), row.profile) {
        (Some(reduced), _) => Some(reduced.to_owned()),
        (None, Profile::Paper) => {
            let rows = context.record.into_iter().flat_map(|table| table.of_group(&group.id));
            group.parts(rows.filter(|other| other.method == row.method)).pop_first()
        }
        (None, profile) => Some(format!("profile {profile}")),
    };
    let other = |label: Option<&str>| {
        let parts: Vec<&str> = label.into_iter().chain(reduction.as_deref()).collect();
        (Evidence::OtherData, parts.join("; "))
    };
    let full = match row.data.as_str() {
        _ if is_without_signal(row, group) => Evidence::Theory,
        "-" => match group.kind().map(|kind| kind.without_data) {
            // Times are measured, even those of a computation without data.
            Some(WithoutData::Theory) if is_of_machine(&row.metric) => Evidence::PaperFull,
            Some(WithoutData::Theory) => Evidence::Theory,
            Some(WithoutData::Defined) => Evidence::PaperFull,
            Some(WithoutData::Generated) | None => {
                return other(None);
            }
        },
        data if group.data.is_some() && group.is_papers_data(data) => Evidence::PaperFull,
        data => return other(Some(data)),
    };
    if full == Evidence::PaperFull
        && let Some(part) = picked(group, context)
    {
        return (Evidence::Reduced, part);
    }
    match reduction {
        Some(reduction) => (Evidence::Reduced, reduction),
        None => plain(full),
    }
}

/// How a group falls short of the signals of its item: it picks some of a data set that another group runs as a whole.
fn picked(group: &Group, context: Context<'_>) -> Option<String> {
    let data = group.data.as_ref()?;
    let count = data.pick.as_ref()?.len();
    let mut others = context.experiment.groups.iter().filter_map(|other| other.data.as_ref());
    let is_whole = others.any(|other| other.set == data.set && other.pick.is_none());
    let s = if count == 1 { "" } else { "s" };
    is_whole.then(|| format!("{count} picked signal{s} of the set"))
}
