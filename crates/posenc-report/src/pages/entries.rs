//! What a search over the report finds: claims, items, embedders and errata.

use posenc_experiments::verdict::Verdict;
use posenc_math::embedder::registry;
use posenc_math::errata;

use super::{cited, places};
use crate::Inputs;
use crate::markdown::{bare, slug};
use crate::view::Views;

/// Something that a search finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `claim`, `item`, `embedder` or `erratum`.
    pub kind: &'static str,
    /// Its name or statement, without markup.
    pub title: String,
    /// More about it, without markup.
    pub text: String,
    /// Its place, as seen from the report's directory.
    pub link: String,
}

/// All entries, items first.
pub fn all(inputs: &Inputs<'_>, views: &Views<'_>) -> Vec<Entry> {
    let mut items = Vec::new();
    let mut claims = Vec::new();
    for paper in &inputs.catalog.papers {
        for item in &paper.items {
            let name = format!("{}, {}", cited(paper), bare(&item.name));
            items.push(Entry {
                kind: "item",
                title: name.clone(),
                text: bare(&item.title),
                link: places::item(&paper.key, &item.item),
            });
            let Some(view) = views.get(&paper.key, &item.item) else { continue };
            for (i, claim) in view.experiment.claims.iter().enumerate() {
                let judgement = view.sides.first().and_then(|side| side.judgements.get(i));
                let verdict = judgement.map_or(Verdict::NotRun, |j| j.verdict);
                claims.push(Entry {
                    kind: "claim",
                    title: bare(&claim.says),
                    text: format!("{}; {name}", verdict.name()),
                    link: places::claim(&paper.key, &item.item, &claim.id),
                });
            }
        }
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
        link: places::erratum(e),
    });
    let mut all = items;
    all.extend(claims);
    all.extend(embedders);
    all.extend(errata);
    all
}
