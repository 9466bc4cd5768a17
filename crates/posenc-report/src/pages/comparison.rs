//! The figure of the first page: published against measured values of all tables.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use posenc_experiments::record::is_counted;
use posenc_experiments::schema::ItemKind;

use super::{Files, cited, links};
use crate::Inputs;
use crate::markdown::{bare, label, plain};
use crate::plot::comparison::{Dot, DotPanel, svg};
use crate::records::Side;
use crate::tables::pairs;
use crate::view::Views;

/// Renders the figure of a run with a link per table; empty if no table has a published and a measured value. Adds the
/// drawing to `files`.
pub fn render(
    inputs: &Inputs<'_>,
    views: &Views<'_>,
    side: Side,
    files: &mut Files,
) -> Result<String> {
    let mut panels = Vec::new();
    let mut links = Vec::new();
    for paper in &inputs.catalog.papers {
        for item in &paper.items {
            let Some(view) = views.get(&paper.key, &item.item) else { continue };
            if view.experiment.kind != ItemKind::Table {
                continue;
            }
            let Some(run) = view.runs().find(|run| run.side == side) else { continue };
            let Some((column, pairs)) = pairs::of(view, run) else { continue };
            // Counts agree exactly or are wrong; a picture of rounding tells nothing.
            if is_counted(&column.metric) {
                continue;
            }
            panels.push(DotPanel {
                title: format!("{}, {}", cited(paper), bare(&item.name)),
                axis: bare(&column.label),
                groups: groups(pairs),
            });
            let place = links::item(&paper.key, &item.item);
            links.push(format!("[{}, {}]({place})", plain(&cited(paper)), label(&item.name)));
        }
    }
    if panels.is_empty() {
        return Ok(String::new());
    }
    let titles: Vec<_> = panels.iter().map(|panel| panel.title.as_str()).collect();
    let titles = titles.join("; ");
    let alt = format!("Published against measured values, one panel per table: {titles}");
    let drawing = svg(&panels, &alt).context("cannot draw the figure of all tables")?;
    let name = format!("figures/summary/tables{}.svg", side.ending());
    let text = format!(
        "![{}]({name})\n\n<sub>Published (ring) against measured values of {}. Tables of parameter counts, \
         and those measured only at a reduced scale and on other data, are omitted.</sub>\n\n",
        plain(&alt),
        links.join(", ")
    );
    files.insert(PathBuf::from(name), drawing.into_bytes());
    Ok(text)
}

/// Groups consecutive rows of the same group.
fn groups(pairs: Vec<(String, Dot)>) -> Vec<(String, Vec<Dot>)> {
    let mut groups: Vec<(String, Vec<Dot>)> = Vec::new();
    for (group, dot) in pairs {
        match groups.last_mut() {
            Some((name, dots)) if *name == group => dots.push(dot),
            _ => groups.push((group, vec![dot])),
        }
    }
    groups
}
