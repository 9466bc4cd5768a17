//! Counts of verdicts, always by class of evidence: there is no single total.

use posenc_experiments::verdict::{Evidence, Verdict};

use super::named;
use crate::Inputs;
use crate::markdown::{Align, Grid};
use crate::records::Side;
use crate::view::{Views, side_counts, sides};

/// The classes of evidence, then one for claims that were not run.
fn classes() -> impl Iterator<Item = (Option<Evidence>, &'static str)> {
    let all = Evidence::ALL.into_iter().map(|class| (Some(class), class.name()));
    all.chain([(None, "not run")])
}

/// A table per run, with the name of the run above it if there are two.
fn per_run(inputs: &Inputs<'_>, table: impl Fn(Side) -> Grid) -> String {
    let mut text = String::new();
    for side in sides(inputs) {
        if inputs.local.is_some() {
            text.push_str(&format!("**{}**\n\n", side.name()));
        }
        text.push_str(&table(side).render());
    }
    text
}

/// Counts by verdict and class over all papers, a table per run.
pub fn by_verdict(inputs: &Inputs<'_>, views: &Views<'_>) -> String {
    per_run(inputs, |side| {
        let counts = side_counts(views, side, |_| true);
        let mut grid = Grid::default();
        grid.columns(["Verdict", "Meaning"], Align::Left);
        grid.columns(classes().map(|(_, name)| name), Align::Right);
        for verdict in Verdict::ALL {
            let mut row = vec![named(verdict), super::meaning(verdict).to_owned()];
            row.extend(classes().map(|(class, _)| match counts.of_class(class).of(verdict) {
                0 => String::new(),
                n => n.to_string(),
            }));
            grid.row(row);
        }
        grid
    })
}

/// The meaning of the classes, as a list.
pub fn meanings() -> String {
    let one = |class: Evidence| format!("- {}: {}.\n", class.name(), class.meaning());
    format!("{}\n", Evidence::ALL.map(one).concat())
}
