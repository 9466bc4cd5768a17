//! The page of one paper.

use anyhow::Result;
use posenc_experiments::schema::paper::Paper;

use super::item::{self, Files};
use super::{MARKER, named};
use crate::markdown::{Align, Grid, block, cell, destination, label, plain, slug};
use crate::view::Views;
use crate::{Inputs, Section};
use posenc_experiments::verdict::Verdict;

/// The page: what all items have in common, then a section per item. Pictures go to `files`.
pub fn render(
    inputs: &Inputs<'_>,
    views: &Views<'_>,
    paper: &Paper,
    files: &mut Files,
) -> Result<Vec<Section>> {
    let title = cell(&paper.title);
    let mut text = format!("{MARKER}\n\n# {title}\n\n");
    text.push_str(&format!(
        "{}. *{}*, {}.",
        plain(&paper.authors.join(", ")),
        cell(&paper.venue),
        paper.year
    ));
    if let Some(arxiv) = &paper.arxiv {
        text.push_str(&format!(
            " [arXiv:{}](https://arxiv.org/abs/{})",
            plain(arxiv),
            destination(arxiv)
        ));
    }
    text.push_str(&format!("\n\n{}\n\n", block(&paper.summary).trim_end()));
    text.push_str("[Summary of all papers](README.md) · [Errata](errata.md)\n\n");
    let mut contents = Grid::default();
    contents.column("Item", Align::Left).column("What it shows", Align::Left);
    let sides = if inputs.local.is_some() {
        vec!["Reference run", "This machine"]
    } else {
        vec!["Verdicts"]
    };
    for side in &sides {
        contents.column(*side, Align::Left);
    }
    for item in &paper.items {
        let mut row =
            vec![format!("[{}](#{})", label(&item.name), slug(&item.item)), cell(&item.title)];
        match views.get(&paper.key, &item.item) {
            None => {
                row.push("*not in the harness yet*".into());
                row.extend(sides.iter().skip(1).map(|_| String::new()));
            }
            Some(view) => row.extend(view.sides.iter().map(|s| s.counts().signs())),
        }
        contents.row(row);
    }
    text.push_str(&contents.render());
    let legend: Vec<_> = Verdict::ALL.into_iter().map(named).collect();
    text.push_str(&format!(
        "<sub>{} – [what they mean](README.md#verdicts)</sub>\n\n",
        legend.join(" · ")
    ));
    let mut sections = vec![Section::opening(title, text)];
    for item in &paper.items {
        let view = views.get(&paper.key, &item.item);
        sections.push(item::render(inputs, views, item, view, files)?);
    }
    Ok(sections)
}
