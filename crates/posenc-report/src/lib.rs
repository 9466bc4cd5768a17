//! Renders records and published values as a report in Markdown and SVG.
//!
//! [`render`] depends only on its inputs. It runs no experiment and reads no clock, so equal inputs
//! yield equal bytes.
//!
//! A report has a summary (`README.md`), an index per paper and a page per item (`trading.md`, `trading/table1.md`),
//! lists of claims and errata, a gallery of embedders and a page of costs. `figures/` contains a drawing per plot,
//! screen and run. `pictures/` contains the recorded pictures, unless the report lies next to the record that has them.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

mod colors;
pub mod costs;
mod data;
mod markdown;
pub mod math;
mod numbers;
mod output;
mod pages;
mod plot;
mod records;
mod series;
mod sources;
mod tables;
mod view;

use std::path::PathBuf;

use anyhow::Result;
use posenc_experiments::Catalog;
use posenc_experiments::record::Benchmarks;

use pages::places;

pub use output::{Page, PageKind, Report, Stale, is_report};
pub use pages::choice::advice;
pub use records::{Record, Records, shown_rows};

/// Inputs of [`render`].
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// Papers, experiments and published values.
    pub catalog: &'a Catalog,
    /// The committed reference run.
    pub reference: &'a Records,
    /// A run of this machine to show next to the reference.
    pub local: Option<&'a Records>,
    /// Path or URL of the repository root, relative to the report's directory, such as `..`. Empty for a report outside
    /// a repository; it then has no links to repository files.
    pub repository: &'a str,
    /// Path of the reference's records, relative to the report's directory, such as `record`. Pages show the pictures
    /// from there. With `None`, the report gets copies of the pictures.
    pub record: Option<&'a str>,
    /// Estimated costs of runs. They get a page of their own.
    pub costs: Option<&'a costs::Costs>,
}

impl Inputs<'_> {
    /// A link with the text `name` to a file of the repository; `None` without a repository.
    fn named_link(&self, name: &str, path: &str) -> Option<String> {
        let root = Some(self.repository.trim_end_matches('/')).filter(|root| !root.is_empty())?;
        Some(format!("[{name}]({root}/{})", markdown::destination(path)))
    }

    /// A link to a file of the repository; without a repository, only its path.
    fn link(&self, path: &str) -> String {
        let name = markdown::code(path);
        self.named_link(&name, path).unwrap_or(name)
    }
}

/// Renders all pages and pictures.
///
/// # Errors
///
/// A picture that cannot be drawn; the error names the plot and the experiment. Non-finite numbers alone never cause
/// one.
pub fn render(inputs: &Inputs<'_>) -> Result<Report> {
    let views = view::Views::new(inputs)?;
    let mut pages = Pages::default();
    let summary = pages::readme::render(inputs, &views, &mut pages.files)?;
    pages.add(PageKind::Summary, places::SUMMARY, summary);
    for paper in &inputs.catalog.papers {
        let index = pages::paper::render(inputs, &views, paper);
        pages.add(PageKind::Paper, places::paper(&paper.key), index);
        for (place, item) in paper.items.iter().enumerate() {
            let page = pages::item::render(inputs, &views, paper, place, &mut pages.files)?;
            pages.add(PageKind::Item, places::item(&paper.key, &item.item), page);
        }
    }
    pages.add(PageKind::Overview, places::CLAIMS, pages::claim_lists::overview(inputs, &views));
    for paper in &inputs.catalog.papers {
        let parts = pages::claim_lists::of_paper(inputs, &views, paper);
        for (part, page) in parts.into_iter().enumerate() {
            pages.add(PageKind::Part, places::claims_part(&paper.key, part), page);
        }
    }
    pages.add(PageKind::Overview, places::ERRATA, pages::errata::overview(inputs, &views));
    for paper in &inputs.catalog.papers {
        if let Some(page) = pages::errata::of_paper(inputs, &views, paper) {
            pages.add(PageKind::Part, places::errata_of(&paper.key), page);
        }
    }
    pages.add(PageKind::Overview, "narrow.md", pages::narrow::render(inputs, &views));
    if let Some(coverage) = pages::coverage::overview(inputs, &views) {
        pages.add(PageKind::Overview, "coverage.md", coverage);
    }
    for paper in &inputs.catalog.papers {
        if let Some(page) = pages::coverage::of_paper(inputs, &views, paper) {
            pages.add(PageKind::Part, places::coverage_of(&paper.key), page);
        }
    }
    let gallery = pages::gallery::render(inputs, &mut pages.files)?;
    pages.add(PageKind::Overview, "embedders.md", gallery);
    if let Some(costs) = inputs.costs {
        pages.add(PageKind::Overview, "costs.md", pages::costs::render(inputs, costs));
    }
    pages.files.insert(PathBuf::from(data::claims::FILE), data::claims::render(inputs, &views)?);
    pages.files.insert(PathBuf::from(data::claims::SCHEMA_FILE), data::claims::schema()?);
    if let Some(metadata) = data::ro_crate::render(inputs, &views)? {
        pages.files.insert(PathBuf::from(data::ro_crate::FILE), metadata);
    }
    let Pages { files, pages } = pages;
    let digest = pages::readme::digest(inputs, &views).map(|text| markdown::protect_math(&text));
    let (verdicts, unlisted) = (views.verdicts(), unlisted(inputs));
    Ok(Report { files, pages, digest, verdicts, unlisted })
}

#[derive(Default)]
struct Pages {
    files: pages::Files,
    pages: Vec<Page>,
}

impl Pages {
    fn add(&mut self, kind: PageKind, path: impl Into<PathBuf>, content: pages::Content) {
        let path = path.into();
        let text = markdown::protect_math(&format!(
            "{}\n\n# {}\n\n{}",
            pages::MARKER,
            content.title,
            content.text.trim()
        ));
        let text = places::relocated(&text, &path);
        self.files.insert(path.clone(), format!("{text}\n").into_bytes());
        self.pages.push(Page { path, title: content.title, kind });
    }
}

/// Replaces the text between the lines `<!-- NAME … -->` and `<!-- /NAME -->` of a page; `None` without these lines.
fn with_block(page: &str, name: &str, text: &str) -> Option<String> {
    let start = page.find(&format!("<!-- {name}"))?;
    let start = start + page[start..].find("-->\n")? + "-->\n".len();
    let end = start + page[start..].find(&format!("<!-- /{name} -->"))?;
    Some(format!("{}\n{text}\n{}", &page[..start], &page[end..]))
}

/// Puts the answer and the first decided findings of a report into the block `findings` of the repository's README; `None` if the
/// page has no such block or the report no findings.
pub fn with_findings(page: &str, report: &Report) -> Option<String> {
    with_block(page, "findings", &report.digest.as_ref()?.replace("](", "](report/"))
}

/// Puts the table of measured speed into the block `speed` of a page; `None` if the page has no such block.
pub fn with_speed(page: &str, benchmarks: &Benchmarks) -> Option<String> {
    with_block(page, "speed", &pages::speed::overview(benchmarks))
}

/// Files next to the reference's pictures that no index lists, as paths below the report's directory.
fn unlisted(inputs: &Inputs<'_>) -> Vec<PathBuf> {
    let Some(record) = inputs.record else { return Vec::new() };
    let mut files = Vec::new();
    for ((paper, item), of_item) in &inputs.reference.items {
        let names = of_item.pictures.surplus.iter().filter_map(|f| f.file_name());
        files.extend(names.map(|n| PathBuf::from(record).join(paper).join(item).join(n)));
    }
    files
}
