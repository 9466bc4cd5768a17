//! The report and the documents as a static site, which works from the file system: no server, no network.
//!
//! [`Site::new`] takes a rendered report and the repository it is about. mdBook makes the navigation; what
//! this crate adds is a page per item, formulas as MathML, links that stay within the site, pictures that can be
//! enlarged, tables that can be sorted, a search, and an upper bound on what a page weighs. Nothing in a record, an experiment or a
//! document can run a script on a page, or publish a file that is not public.
//!
//! It is no dependency of the runner, so that whoever wants numbers only does not compile mdBook.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

mod body;
mod html;
mod links;
mod math;
mod output;
mod pages;
mod pictures;
mod render;
mod repository;
mod rewrite;
mod search;
mod weight;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use posenc_report::Report;

pub use repository::Repository;
pub use weight::weights;

/// What a page and all that it loads may weigh, in bytes.
pub const HEAVIEST: u64 = 2_000_000;

/// A finished site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its files by path below its directory, with slashes.
    pub files: BTreeMap<String, Vec<u8>>,
    /// What is not as it should be: links that lead nowhere, formulas that cannot be shown.
    pub remarks: Vec<String>,
}

impl Site {
    /// Makes the site of a report about a repository, rendered with `repository: ".."` and without `record`.
    ///
    /// # Errors
    ///
    /// A page that is too long, or that mdBook cannot make.
    pub fn new(report: &Report, repository: &Repository) -> Result<Self> {
        let mut outline = pages::Outline::new(report, repository);
        let mut formulas = math::Formulas::new()?;
        for page in outline.pages_mut() {
            page.text = formulas.taken_from(&page.text);
        }
        let rendered = render::render(&outline)?;
        let mut site = rewrite::rewrite(&outline, rendered, &formulas, report, repository)?;
        site.files.insert(search::FILE.to_owned(), search::index(report, &outline)?);
        let unreadable = formulas.unreadable();
        if !repository.is_listed() {
            let root = repository.root().display();
            site.remarks.push(format!(
                "git lists no files of {root}, so the site has neither the documents nor other files of the repository"
            ));
        }
        site.remarks.extend(unreadable.map(|f| format!("the formula {f} cannot be converted")));
        Ok(site)
    }

    /// Writes the files that differ, and removes what an earlier site left in `directory`.
    ///
    /// # Errors
    ///
    /// A directory that holds other files than a site's; a file that cannot be written.
    pub fn write(&self, directory: &Path) -> Result<()> {
        output::write(&self.files, directory)
    }
}
