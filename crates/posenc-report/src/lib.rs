//! Records and published values in, Markdown and SVG out.
//!
//! [`render`] reads a catalog and records, and nothing else: it runs no experiment, asks no clock,
//! and gives the same bytes for the same inputs. A report is a summary (`README.md`), a page per
//! paper, a page of errata, a gallery of embedders, a page of costs, a drawing per plot, shown screen and run under `figures/`, and the recorded pictures
//! under `pictures/`, unless it lies beside the record that has them.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

mod colors;
pub mod costs;
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

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use posenc_experiments::Catalog;
use posenc_experiments::record::Benchmarks;

pub use output::{Report, Section, Stale};
pub use records::{Record, Records, shown_rows};

/// What a report is made from.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// Papers, experiments and published values.
    pub catalog: &'a Catalog,
    /// The run that the repository stands for.
    pub reference: &'a Records,
    /// A run of this machine to show beside it.
    pub local: Option<&'a Records>,
    /// Path or address of the repository's root as seen from the report's directory, such as
    /// `..`; empty where the report lies outside a repository, which leaves links out.
    pub repository: &'a str,
    /// Path of the reference's records as seen from the report's directory, such as `record`: its
    /// pictures are shown from there. Without it the report gets copies.
    pub record: Option<&'a str>,
    /// What runs would cost: a page of its own.
    pub costs: Option<&'a costs::Costs>,
}

impl Inputs<'_> {
    /// A link to a file of the repository; its bare name without a repository.
    fn link(&self, path: &str) -> String {
        match self.repository {
            "" => markdown::code(path),
            root => format!(
                "[{}]({}/{})",
                markdown::code(path),
                root.trim_end_matches('/'),
                markdown::destination(path)
            ),
        }
    }
}

/// Renders all pages and pictures.
///
/// # Errors
///
/// A picture that cannot be drawn, by plot and experiment; numbers alone never cause one.
pub fn render(inputs: &Inputs<'_>) -> Result<Report> {
    let views = view::Views::new(inputs)?;
    let mut files = pages::item::Files::new();
    let mut sections = BTreeMap::new();
    for paper in &inputs.catalog.papers {
        let page = pages::paper::render(inputs, &views, paper, &mut files)?;
        sections.insert(PathBuf::from(format!("{}.md", paper.key)), page);
    }
    sections.insert(PathBuf::from("README.md"), pages::readme::render(inputs, &views));
    for page in sections.values_mut().flatten() {
        page.title = markdown::protect_math(&page.title);
        page.text = markdown::protect_math(&page.text);
    }
    files.extend(sections.iter().map(|(path, page)| (path.clone(), output::joined(page))));
    let errata = pages::errata::render(inputs, &views);
    files.insert(PathBuf::from("errata.md"), finished(&errata));
    let gallery = pages::gallery::render(inputs, &mut files)?;
    files.insert(PathBuf::from("embedders.md"), finished(&gallery));
    if let Some(costs) = inputs.costs {
        let page = pages::costs::render(inputs, costs);
        files.insert(PathBuf::from("costs.md"), finished(&page));
    }
    Ok(Report { files, sections, verdicts: views.verdicts(), unlisted: unlisted(inputs) })
}

/// Puts the table of measured speed between the two lines `<!-- speed … -->` and `<!-- /speed -->` of the
/// repository's own first page; nothing if the page has no such lines.
pub fn with_speed(page: &str, benchmarks: &Benchmarks) -> Option<String> {
    let start = page.find("<!-- speed")?;
    let start = start + page[start..].find("-->\n")? + "-->\n".len();
    let end = start + page[start..].find("<!-- /speed -->")?;
    let table = pages::speed::overview(benchmarks);
    Some(format!("{}\n{table}\n{}", &page[..start], &page[end..]))
}

/// Files beside the reference's pictures that no index lists, below the report's directory.
fn unlisted(inputs: &Inputs<'_>) -> Vec<PathBuf> {
    let Some(record) = inputs.record else { return Vec::new() };
    let mut files = Vec::new();
    for ((paper, item), of_item) in &inputs.reference.items {
        let names = of_item.pictures.surplus.iter().filter_map(|f| f.file_name());
        files.extend(names.map(|n| PathBuf::from(record).join(paper).join(item).join(n)));
    }
    files
}

/// A page's bytes.
fn finished(page: &str) -> Vec<u8> {
    markdown::protect_math(page).into_bytes()
}
