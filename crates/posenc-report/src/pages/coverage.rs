//! Every statement of the papers, with the claims that test it or the reason why none does.

use posenc_experiments::coverage::{Statement, Tested};
use posenc_experiments::schema::claim::ClaimName;
use posenc_experiments::schema::paper::Paper;

use crate::Inputs;
use crate::markdown::{Align, Grid, cell, label, plain};
use crate::pages::statements::{self, Status};
use crate::pages::{Content, item_name, places};
use crate::records::Side;
use crate::view::{Views, sides};

/// Renders the overview: how many statements of each paper hold. `None` if no paper lists its statements.
pub fn overview(inputs: &Inputs<'_>, views: &Views<'_>) -> Option<Content> {
    let mut text = "These pages list the statements of each paper that a measurement or a computation could test, section by section. \
                    Each statement names the claims that test it, with their verdicts, or the reason why no claim does. The worst \
                    verdict of its claims decides a statement.\n\n"
        .to_owned();
    for side in sides(inputs) {
        let summary = statements::summary(inputs, views, side);
        if summary.is_empty() {
            return None;
        }
        let who = inputs.local.map(|_| format!("**{}.** ", side.name())).unwrap_or_default();
        let table = statements::table(inputs, views, side);
        text.push_str(&format!("{who}{summary}\n\n{table}"));
    }
    Some(Content { title: "Coverage".into(), text })
}

fn tested(statements: &[Statement]) -> usize {
    statements.iter().filter(|s| matches!(s.tested, Tested::By(_))).count()
}

/// Renders the statements of a paper in the order of its sections; `None` if the paper has no list.
pub fn of_paper(inputs: &Inputs<'_>, views: &Views<'_>, paper: &Paper) -> Option<Content> {
    let statements = inputs.catalog.coverage.get(&paper.key)?;
    let mut grid = Grid::default();
    grid.columns(
        ["Section", "Statement", "Status", "Claims, or why it is not tested"],
        Align::Left,
    );
    for statement in statements {
        let tested = match &statement.tested {
            Tested::By(claims) => {
                let links: Vec<_> = claims.iter().map(|c| link(inputs, views, c)).collect();
                links.join("<br>")
            }
            Tested::Not(reason) => format!("*none:* {}", cell(reason)),
            Tested::Elsewhere(place) => format!("*elsewhere:* {}", cell(place)),
        };
        let status = statements::status(statement, views, Side::Reference);
        let status = status.map_or("", Status::name);
        grid.row(vec![
            plain(&statement.section),
            cell(&statement.statement),
            status.to_owned(),
            tested,
        ]);
    }
    let text = format!(
        "[{}]({}) · [Coverage of all papers](coverage.md)\n\nClaims test {} of {} statements.\n\n{}",
        label(&paper.title),
        places::paper(&paper.key),
        tested(statements),
        statements.len(),
        grid.render()
    );
    Some(Content { title: format!("Coverage of {}", cell(&paper.title)), text })
}

/// A claim with its verdict on the reference and a link to it.
fn link(inputs: &Inputs<'_>, views: &Views<'_>, claim: &ClaimName) -> String {
    let ClaimName { paper, item, claim: id } = claim;
    let sign = views.claim(Side::Reference, claim).map(|(.., judgement)| judgement.verdict.sign());
    let (name, place) = (item_name(inputs, paper, item), places::claim(paper, item, id));
    format!("{} [{name}, {}]({place})", sign.unwrap_or("–"), plain(id))
}
