//! Renders records and published values as a report in Markdown and SVG.
//!
//! [`render`] depends only on its inputs. It runs no experiment and reads no clock, so equal inputs
//! yield equal bytes.
//!
//! A report has a first page with the answers (`README.md`), an index per paper and a page per item (`trading.md`,
//! `trading/table1.md`), lists of claims, statements and errata, and a gallery of embedders. `figures/` contains a drawing per plot
//! and run. `pictures/` contains the recorded pictures, unless the report lies next to the record that has them.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

#[cfg(feature = "book")]
pub mod book;
mod claims;
mod colors;
mod links;
mod markdown;
pub mod math;
mod numbers;
mod output;
mod pages;
mod plot;
mod records;
mod sources;
mod tables;
mod template;
mod view;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use minijinja::{Value, context};
use posenc_experiments::Catalog;
use posenc_experiments::record::Benchmarks;
use rayon::prelude::*;

use pages::Files;
use template::Templates;

pub use claims::verdicts;
pub use output::{Page, PageKind, Report, Stale, is_report};
pub use pages::methods::advice;
pub use records::{Records, shown_rows};

/// Inputs of [`render`].
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// Papers, experiments and published values.
    pub catalog: &'a Catalog,
    pub reference: &'a Records,
    /// A run of this machine to show next to the reference.
    pub local: Option<&'a Records>,
    /// Path or URL of the repository root, relative to the report's directory, such as `..`. Empty for a report outside
    /// a repository; it then has no links to repository files.
    pub repository: &'a str,
    /// Path of the reference's records, relative to the report's directory, such as `record`. Pages show the pictures
    /// from there. With `None`, the report gets copies of the pictures.
    pub record: Option<&'a str>,
    /// Path of the records of [`Inputs::local`], relative to the report's directory. With `None`, pages do not link to them.
    pub local_record: Option<&'a str>,
}

/// Renders all pages and pictures.
///
/// # Errors
///
/// A picture that cannot be drawn; the error names the plot and the experiment. Non-finite numbers alone never cause
/// one.
pub fn render(inputs: &Inputs<'_>) -> Result<Report> {
    let views = view::Views::new(inputs);
    let papers = &inputs.catalog.papers;
    let contexts: Vec<Value> = papers.iter().map(|own| pages::paper(inputs, &views, own)).collect();
    let shared = pages::report(inputs, &views, &contexts);
    let moved = links::Moved::of(papers);
    let templates = Templates::new()?;
    let mut sections = Vec::new();
    let mut pages = Pages { templates, shared, files: Files::new(), texts: Vec::new() };
    let summary = pages::readme::page(inputs, &views);
    pages.add(PageKind::Summary, "README.md", "readme.md", summary)?;
    // Figures take most of the time.
    let page = |view: &&view::View<'_>| -> Result<_> {
        let mut files = Files::new();
        let page = pages::item::page(inputs, &views, view, &mut files)?;
        let key = (view.experiment.paper.clone(), view.experiment.item.clone());
        Ok((key, (page, files)))
    };
    let all: Vec<_> = views.all().collect();
    let none = || (context! {}, Files::new());
    let mut items: HashMap<_, _> = all.par_iter().map(page).collect::<Result<_>>()?;
    for (paper, own) in papers.iter().zip(&contexts) {
        let page = context! { paper => own };
        pages.add(PageKind::Paper, links::paper(&paper.key), "paper.md", page)?;
        for (index, item) in paper.items.iter().enumerate() {
            let (page, files) =
                items.remove(&(paper.key.clone(), item.item.clone())).unwrap_or_else(none);
            pages.files.extend(files);
            let page = context! { paper => own, index, ..page };
            let path = links::item(&paper.key, &item.item);
            pages.add(PageKind::Item, &path, "item.md", page)?;
            if let Some((host, _)) = moved.page(&path) {
                let text = pages.texts.pop().map(|(_, text)| text).unwrap_or_default();
                sections.push((host, moved.section(&path, &text, &pages::cited(paper))));
            }
        }
    }
    let about = pages::readme::about(inputs, &views);
    pages.add(PageKind::Overview, "about.md", "about.md", about)?;
    pages.add(PageKind::Overview, "claims.md", "claims.md", context! {})?;
    for (paper, own) in papers.iter().zip(&contexts) {
        if let Some(page) = pages::statements::page(inputs, &views, paper) {
            let page = context! { paper => own, ..page };
            pages.add(PageKind::Part, links::coverage_of(&paper.key), "paper_coverage.md", page)?;
        }
        if views.judged(paper).next().is_some() {
            let page = context! { paper => own };
            pages.add(PageKind::Part, links::claims_of(&paper.key), "paper_claims.md", page)?;
        }
    }
    pages.add(PageKind::Overview, "errata.md", "errata.md", context! {})?;
    let embedders = pages::embedders::page(inputs, &mut pages.files)?;
    pages.add(PageKind::Overview, "embedders.md", "embedders.md", embedders)?;
    let protocols = pages::protocols::page(&inputs.catalog.kinds);
    pages.add(PageKind::Overview, "protocols.md", "protocols.md", protocols)?;
    let Pages { templates, shared, mut files, texts } = pages;
    let all_claims = claims::render(inputs, &views, &moved);
    files.insert(PathBuf::from(claims::FILE), all_claims);
    files.insert(PathBuf::from(claims::SCHEMA_FILE), claims::SCHEMA.into());
    let finished =
        |path: &Path, text: &str| links::relocated(&markdown::protect_math(text), path, &moved);
    let mut pages = Vec::new();
    for (page, mut text) in texts {
        for (_, section) in sections.iter().filter(|(host, _)| Path::new(host) == page.path) {
            text.push_str(&format!("\n\n{section}"));
        }
        let text = finished(&page.path, &text);
        files.insert(page.path.clone(), format!("{}\n\n{text}\n", pages::MARKER).into_bytes());
        pages.push(page);
    }
    let digest = templates.render("digest.md", shared)?;
    let digest = (!digest.is_empty()).then(|| finished(Path::new("README.md"), &digest));
    let unstated = pages::sentences::unstated(inputs, &views);
    Ok(Report { files, pages, digest, verdicts: views.verdicts(), unstated })
}

struct Pages {
    templates: Templates,
    /// What all pages can show.
    shared: Value,
    files: Files,
    /// Pages with their text, whose links are relative to the report's directory.
    texts: Vec<(Page, String)>,
}

impl Pages {
    fn add(
        &mut self,
        kind: PageKind,
        path: impl Into<PathBuf>,
        template: &str,
        own: Value,
    ) -> Result<()> {
        let text = self.templates.render(template, context! { ..own, ..self.shared.clone() })?;
        self.texts.push((Page { path: path.into(), kind }, text));
        Ok(())
    }
}

/// Replaces the text between the lines `<!-- NAME … -->` and `<!-- /NAME -->` of a page; `None` without these lines.
fn with_block(page: &str, name: &str, text: &str) -> Option<String> {
    let start = page.find(&format!("<!-- {name}"))?;
    let start = start + page[start..].find("-->\n")? + "-->\n".len();
    let end = start + page[start..].find(&format!("<!-- /{name} -->"))?;
    Some(format!("{}\n{text}\n{}", &page[..start], &page[end..]))
}

/// Puts the short answers of a report into the block `answers` of the repository's README; `None` if the page has no such block or the
/// report no answers.
pub fn with_answers(page: &str, report: &Report) -> Option<String> {
    with_block(page, "answers", &links::from_root(report.digest.as_ref()?))
}

/// Puts the table of measured speed into the block `speed` of a page; `None` if the page has no such block.
pub fn with_speed(page: &str, benchmarks: &Benchmarks) -> Result<Option<String>> {
    let tables = pages::speed::overview(&Templates::new()?, benchmarks)?;
    Ok(with_block(page, "speed", &format!("{tables}\n")))
}
