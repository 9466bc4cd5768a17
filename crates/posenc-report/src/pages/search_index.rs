//! Search entries of the report: claims, items, embedders and errata.

use posenc_math::embedder::registry;
use posenc_math::errata;

use super::{cited, links};
use crate::Inputs;
use crate::markdown::{bare, slug};
use crate::view::Views;

/// A search entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `claim`, `item`, `embedder` or `erratum`.
    pub kind: &'static str,
    /// Its name or statement, without markup.
    pub title: String,
    /// Details, without markup.
    pub text: String,
    /// Link to it, relative to the report's directory.
    pub link: String,
}

/// All entries, items first.
pub fn all(inputs: &Inputs<'_>, views: &Views<'_>) -> Vec<Entry> {
    let mut items = Vec::new();
    let mut claims = Vec::new();
    for paper in &inputs.catalog.papers {
        for item in &paper.items {
            items.push(Entry {
                kind: "item",
                title: format!("{}, {}", cited(paper), bare(&item.name)),
                text: bare(&item.title),
                link: links::item(&paper.key, &item.item),
            });
        }
        claims.extend(views.judged(paper).map(|(item, own)| {
            let verdict = own.judgement.verdict.name();
            let text = format!("{verdict}; {}, {}", cited(paper), bare(&item.name));
            Entry { kind: "claim", title: bare(&own.claim.says), text, link: own.page() }
        }));
    }
    let embedders = registry().iter().map(|kind| Entry {
        kind: "embedder",
        title: kind.label.to_owned(),
        text: kind.name.to_owned(),
        link: format!("embedders.md#{}", slug(kind.name)),
    });
    let is_known = |paper: &str| inputs.catalog.papers.iter().any(|p| p.key == paper);
    let errata = errata::all().into_iter().filter(|e| is_known(e.paper())).map(|e| Entry {
        kind: "erratum",
        title: e.id.to_owned(),
        text: bare(e.place),
        link: links::erratum(e),
    });
    let mut all = items;
    all.extend(claims);
    all.extend(embedders);
    all.extend(errata);
    all
}
