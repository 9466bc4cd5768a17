//! Lists of all claims: an overview with the meaning of the verdicts, and a page per paper.

use posenc_experiments::schema::paper::Paper;
use posenc_experiments::verdict::Evidence;

use super::{Content, named, places, totals};
use crate::Inputs;
use crate::markdown::{Align, Grid, anchor, cell, label};
use crate::numbers::MISSING;
use crate::view::{Views, sides};

/// Renders the overview: the meaning of each verdict, counts, and links to the lists.
pub fn overview(inputs: &Inputs<'_>, views: &Views<'_>) -> Content {
    let methodology = "[Methodology](../docs/METHODOLOGY.md)";
    let linked = inputs.named_link("Methodology", "docs/METHODOLOGY.md");
    let opening = include_str!("../../templates/claims.md").trim();
    let opening =
        opening.replace(methodology, &linked.unwrap_or_else(|| "`docs/METHODOLOGY.md`".into()));
    let mut text = format!("{opening}\n\n");
    let mut links = Grid::default();
    links.column("Paper", Align::Left).column("Claims", Align::Right);
    for paper in &inputs.catalog.papers {
        let own = views.all().filter(|v| v.experiment.paper == paper.key);
        let count: usize = own.map(|v| v.experiment.claims.len()).sum();
        if count > 0 {
            let name = format!("[{}]({})", label(&paper.title), places::claims_of(&paper.key));
            links.row(vec![name, count.to_string()]);
        }
    }
    if !links.is_empty() {
        text.push_str(&links.render());
    }
    text.push_str(&format!(
        "## Meaning of the verdicts\n\n{}\n\n{}Classes of evidence:\n\n{}",
        anchor("verdicts"),
        totals::by_verdict(inputs, views),
        totals::meanings()
    ));
    let methodology = include_str!("../../templates/methodology.md").trim();
    text.push_str(&format!("## Methods in brief\n\n{methodology}\n"));
    Content { title: "Claims and verdicts".into(), text }
}

/// Maximum size of the rows of a page, in bytes.
const LONGEST: usize = 48_000;

/// Renders the claims of a paper with their verdicts, split into pages of limited size. Empty without claims.
pub fn of_paper(inputs: &Inputs<'_>, views: &Views<'_>, paper: &Paper) -> Vec<Content> {
    let mut pages: Vec<Vec<Vec<String>>> = vec![Vec::new()];
    let mut length = 0;
    for item in &paper.items {
        let Some(view) = views.get(&paper.key, &item.item) else { continue };
        let mut rows = Vec::new();
        for (i, claim) in view.experiment.claims.iter().enumerate() {
            let judged = view.sides.iter().filter_map(|side| side.judgements.get(i));
            let mut row: Vec<String> = judged.map(|j| named(j.verdict)).collect();
            let judgement = view.sides.first().and_then(|side| side.judgements.get(i));
            let class = judgement.and_then(|judgement| judgement.evidence);
            row.push(class.map_or(MISSING, Evidence::name).to_owned());
            row.push(cell(&claim.says));
            let place = places::claim(&paper.key, &item.item, &claim.id);
            row.push(format!("[{}]({place})", label(&item.name)));
            rows.push(row);
        }
        // Claims of an item stay together.
        let own: usize = rows.iter().flatten().map(|cell| cell.len() + 3).sum();
        if length > 0 && length + own > LONGEST {
            pages.push(Vec::new());
            length = 0;
        }
        length += own;
        if let Some(page) = pages.last_mut() {
            page.extend(rows);
        }
    }
    pages.retain(|rows| !rows.is_empty());
    let count = pages.len();
    let page = |(number, rows): (usize, Vec<Vec<String>>)| {
        let mut links = vec![
            format!("[{}]({})", label(&paper.title), places::paper(&paper.key)),
            format!("[Meaning of the verdicts]({})", places::VERDICTS),
        ];
        links.extend((0..count).filter(|other| count > 1 && *other != number).map(|other| {
            format!("[Part {}]({})", other + 1, places::claims_part(&paper.key, other))
        }));
        let part =
            if count > 1 { format!(", part {} of {count}", number + 1) } else { String::new() };
        let mut grid = head(inputs);
        for row in rows {
            grid.row(row);
        }
        Content {
            title: format!("Claims of {}{part}", cell(&paper.title)),
            text: format!("{}\n\n{}", links.join(" · "), grid.render()),
        }
    };
    pages.into_iter().enumerate().map(page).collect()
}

/// The header of a list.
fn head(inputs: &Inputs<'_>) -> Grid {
    let mut grid = Grid::default();
    match sides(inputs).as_slice() {
        [_] => drop(grid.column("Verdict", Align::Left)),
        sides => drop(grid.columns(sides.iter().map(|side| side.name()), Align::Left)),
    }
    grid.columns(["Evidence", "Claim", "Item"], Align::Left);
    grid
}
