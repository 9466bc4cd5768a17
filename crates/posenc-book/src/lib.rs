//! Builds a static site from the report and the documents. It works from the file system, without a server or network.
//!
//! [`Site::new`] takes a rendered report and its repository. mdBook creates the navigation. This crate adds a page per
//! item, formulas as MathML, links that stay within the site, pictures that can be enlarged, tables that can be sorted,
//! a search, and a maximum size of a page. No text of a record, an experiment or a document can run a script on a page,
//! or publish a file that is not public.
//!
//! The runner does not depend on this crate, so that mdBook is compiled only for the site.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

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

pub use links::decoded;
pub use output::check as check_directory;
pub use repository::Repository;
pub use weight::weights;

/// Maximum size of a page with everything that it loads, in bytes.
pub const HEAVIEST: u64 = 2_000_000;

/// A finished site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its files by path below its directory, with slashes.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Problems: links without a target, pictures that are missing, formulas that cannot be converted.
    pub remarks: Vec<String>,
}

impl Site {
    /// Builds the site of a report about a repository. The report must be rendered with `repository: ".."` and without
    /// `record`.
    ///
    /// # Errors
    ///
    /// A page that is too long, or that mdBook cannot render.
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
                "{root}: git lists no files, so the site omits documents and source files; build it in a git checkout"
            ));
        }
        site.remarks.extend(unreadable.map(|f| format!("the formula {f} cannot be converted")));
        Ok(site)
    }

    /// Writes the files that differ, and removes what an earlier site left in `directory`, which [`check_directory`] accepted.
    ///
    /// # Errors
    ///
    /// A file that cannot be written or removed.
    pub fn write(&self, directory: &Path) -> Result<()> {
        output::write(&self.files, directory)
    }
}
