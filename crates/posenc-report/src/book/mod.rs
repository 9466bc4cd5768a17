//! Builds a static site from the report and the documents. It works from the file system, without a server or network.
//!
//! mdBook renders it, with its theme and search. This module passes it pages as HTML that cannot run a script, with formulas as
//! MathML, and copies the pictures and source files that pages link to.
//!
//! It has a feature, `book`, so that mdBook is compiled only for the site and its tests.

mod chapters;
mod html;
mod links;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use mdbook_html::HtmlHandlebars;
use mdbook_renderer::book::{Book, BookItem, Chapter, SectionNumber};
use mdbook_renderer::config::Config;
use mdbook_renderer::{RenderContext, Renderer};
use posenc_experiments::output::check_folder;

use crate::Report;

use chapters::Page;
use links::{Links, Repository};

const SETTINGS: &str = r#"
[book]
title = "posenc"
[output.html]
additional-css = ["posenc.css"]
default-theme = "light"
preferred-dark-theme = "navy"
hash-files = false
input-404 = ""
no-section-label = true
fold = { enable = true }
playground = { runnable = false, copyable = false }
print = { enable = false }
search = { use-boolean-and = true, heading-split-level = 2 }
"#;
/// The first page, which leads to the summary of the report.
const INDEX: &str = "<!DOCTYPE html>\n<meta charset=\"UTF-8\">\n<title>posenc</title>\n\
     <meta http-equiv=\"refresh\" content=\"0; url=report/README.html\">\n<a href=\"report/README.html\">posenc</a>\n";
/// Lists the files and folders of a site, so that a later run replaces them only.
const LIST: &str = ".posenc-book";
/// Folder in which the next site is made.
const NEXT: &str = ".next";

/// Builds the site of a report and its repository in a folder. Returns what readers will miss: links without a target, and formulas
/// that cannot be converted. The report must be rendered with `repository: ".."` and without `record`.
pub fn build(report: &Report, root: &Path, out: &Path) -> Result<Vec<String>> {
    check_folder(out, root, |out| out.join(LIST).is_file())?;
    let repository = Repository::new(root, report);
    let parts = chapters::parts(report, &repository);
    let pages = parts.iter().flat_map(|part| part.chapters.iter().flatten());
    let pages = pages.map(|page| page.document.clone()).collect();
    let (files, remarks) = (BTreeMap::new(), Vec::new());
    let mut links = Links { repository: &repository, pages, files, remarks };
    if repository.tracked().next().is_none() {
        let root = root.display();
        links.remarks.push(format!(
            "{root}: git lists no files, so the site has no documents and source files; build it in a git checkout"
        ));
    }
    let converter = html::Converter::new()?;
    let mut chapter = |page: &Page, number: Vec<u32>, above: &[String]| -> Result<Chapter> {
        let html = converter.html(page, &mut links).with_context(|| page.document.clone())?;
        // One block of HTML for mdBook, since it has no empty line.
        let html = format!("<div>{html}</div>\n");
        let mut chapter = Chapter::new(&page.title, html, &page.document, above.to_vec());
        chapter.number = Some(SectionNumber::new(number));
        Ok(chapter)
    };
    let mut book = Book::new();
    for part in &parts {
        if !part.title.is_empty() {
            book.push_item(BookItem::PartTitle(part.title.to_owned()));
        }
        for pages in &part.chapters {
            let Some((first, below)) = pages.split_first() else { continue };
            let mut whole = chapter(first, vec![1], &[])?;
            for page in below {
                let item = chapter(page, vec![1, 1], std::slice::from_ref(&first.title))?;
                whole.sub_items.push(item.into());
            }
            book.push_item(whole);
        }
    }
    write(book, &links, out)
        .with_context(|| format!("cannot write the site to {}", out.display()))?;
    Ok(links.remarks)
}

/// Renders the book and adds the files that it links to, then replaces the site in `out`.
fn write(book: Book, links: &Links<'_>, out: &Path) -> Result<()> {
    let next = out.join(NEXT);
    if next.exists() {
        fs::remove_dir_all(&next)?;
    }
    fs::create_dir_all(next.join("src"))?;
    let list = out.join(LIST);
    fs::OpenOptions::new().create(true).append(true).open(&list)?;
    fs::write(next.join("posenc.css"), include_str!("../../theme/posenc.css"))?;
    let site = next.join("book");
    let config: Config = SETTINGS.parse()?;
    HtmlHandlebars::new().render(&RenderContext::new(&next, book, config, &site))?;
    // mdBook shows titles of results as HTML without escaping them.
    let index = site.join("searchindex.js");
    fs::write(&index, fs::read_to_string(&index)?.replace('<', "＜"))?;
    fs::write(site.join("index.html"), INDEX)?;
    for (name, bytes) in &links.files {
        let file = site.join(name);
        fs::create_dir_all(file.parent().unwrap_or(&site))?;
        fs::write(file, bytes)?;
    }

    let earlier = fs::read_to_string(&list)?;
    let is_own = |name: &&str| !name.is_empty() && !name.starts_with('.') && !name.contains('/');
    for earlier in earlier.lines().filter(is_own).map(|name| out.join(name)) {
        if earlier.is_dir() {
            fs::remove_dir_all(earlier)?;
        } else if earlier.exists() {
            fs::remove_file(earlier)?;
        }
    }
    let entries = fs::read_dir(&site)?.collect::<std::io::Result<Vec<_>>>()?;
    let names = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned());
    fs::write(list, names.collect::<Vec<_>>().join("\n"))?;
    for entry in entries {
        fs::rename(entry.path(), out.join(entry.file_name()))?;
    }
    Ok(fs::remove_dir_all(next)?)
}
