//! The page of one paper.

use posenc_experiments::record::Row;
use posenc_experiments::schema::Group;
use posenc_experiments::schema::claim::ClaimName;
use posenc_experiments::schema::paper::Paper;
use posenc_experiments::schema::protocol::WithoutData;
use posenc_experiments::verdict::Verdict;

use super::{Content, errata, named, places, sentences};
use crate::Inputs;
use crate::markdown::{Align, Grid, block, cell, destination, label, plain};
use crate::numbers::MISSING;
use crate::view::{SideView, View, Views, sides};

/// Renders the index of a paper: what it is about, and a line per item.
pub fn render(inputs: &Inputs<'_>, views: &Views<'_>, paper: &Paper) -> Content {
    let title = cell(&paper.title);
    let mut text = String::new();
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
    text.push_str(&answers(inputs, views, paper));
    let mut links = vec![format!("[Findings across papers]({})", places::SUMMARY)];
    let has_claims = paper.items.iter().filter_map(|i| views.get(&paper.key, &i.item));
    if has_claims.into_iter().any(|view| !view.experiment.claims.is_empty()) {
        links.push(format!("[All claims of this paper]({})", places::claims_of(&paper.key)));
    }
    if !errata::of(paper).is_empty() {
        links.push(format!("[Errata]({})", places::errata_of(&paper.key)));
    }
    text.push_str(&format!("{}\n\n", links.join(" · ")));
    let mut contents = Grid::default();
    contents.column("Item", Align::Left).column("What it shows", Align::Left);
    let sides = if inputs.local.is_some() {
        vec!["Reference run", "This machine"]
    } else {
        vec!["Verdicts"]
    };
    if inputs.local.is_none() {
        contents.columns(["Protocol", "Data"], Align::Left);
    }
    for side in &sides {
        contents.column(*side, Align::Left);
    }
    for item in &paper.items {
        let mut row = vec![
            format!("[{}]({})", label(&item.name), places::item(&paper.key, &item.item)),
            cell(&item.title),
        ];
        match views.get(&paper.key, &item.item) {
            None => {
                row.push("*no experiment yet*".into());
                let width = if inputs.local.is_none() { 3 } else { sides.len() };
                row.extend((1..width).map(|_| String::new()));
            }
            Some(view) => {
                if let [side] = view.sides.as_slice() {
                    row.extend(conditions(view, side));
                }
                row.extend(view.sides.iter().map(|s| s.counts().signs()));
            }
        }
        contents.row(row);
    }
    text.push_str(&contents.render());
    let legend: Vec<_> = Verdict::ALL.into_iter().map(named).collect();
    text.push_str(&format!(
        "<sub>{} – [meaning of the verdicts]({})</sub>\n\n",
        legend.join(" · "),
        places::VERDICTS
    ));
    Content { title, text }
}

/// Our answer to the paper's question, by run; empty without a sentence that is true on the record.
pub fn answers(inputs: &Inputs<'_>, views: &Views<'_>, paper: &Paper) -> String {
    let mut text = String::new();
    let Some(sentences) = inputs.catalog.answers.get(&paper.key) else { return text };
    for side in sides(inputs) {
        let find = |name: &str| views.claim(side, &ClaimName::parse(name, Some(&paper.key))?);
        let Some(answer) = sentences::answer(sentences, find, sentences::corrected) else {
            continue;
        };
        let who = match inputs.local {
            Some(_) => format!("Our answer ({})", side.name().to_lowercase()),
            None => "Our answer".to_owned(),
        };
        text.push_str(&format!("**{who}.** {answer}\n\n"));
    }
    text
}

/// Protocol and data of a run.
fn conditions(view: &View<'_>, side: &SideView) -> [String; 2] {
    let Some(run) = &side.run else { return [MISSING, MISSING].map(str::to_owned) };
    let all = view.conditions(run);
    let rows = || run.table.rows.iter();
    let is_reduced = |row: &Row| {
        let group = view.experiment.group(&row.group);
        group.is_some_and(|group| group.reduced(row.profile).is_some())
    };
    let protocol = match (all.reduced.is_empty(), rows().all(is_reduced)) {
        (true, _) => "full",
        (false, true) => "reduced",
        (false, false) => "reduced in part",
    };
    let generates = |row: &Row| {
        let kind = view.experiment.group(&row.group).and_then(Group::kind);
        row.data == "-" && kind.is_some_and(|kind| kind.without_data == WithoutData::Generated)
    };
    let mut data: Vec<_> = all.data.iter().filter(|d| *d != "-").map(|d| plain(d)).collect();
    if rows().any(generates) {
        data.push("generated".to_owned());
    }
    let data = if data.is_empty() { "none".to_owned() } else { data.join(", ") };
    [protocol.to_owned(), data]
}
