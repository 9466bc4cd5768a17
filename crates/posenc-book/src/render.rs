//! Runs mdBook to create empty pages with navigation from a list of pages.
//!
//! mdBook gets only paths and titles. It could also convert the Markdown, but it trusts it: raw HTML passes, its parser
//! recurses, and some tags make it panic. The contents of pages are therefore created by [`crate::body`].

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use mdbook_driver::MDBook;
use mdbook_driver::config::Config;

use crate::pages::Outline;

/// Files that replace mdBook's or are added to them. Pages use the reader's fonts, and code is not highlighted: both
/// would need more bytes than a page.
const THEME: [(&str, &str); 6] = [
    ("theme/fonts/fonts.css", "/* The reader's fonts. */\n"),
    ("theme/highlight.js", include_str!("../theme/highlight.js")),
    ("theme/favicon.svg", include_str!("../theme/favicon.svg")),
    ("theme/head.hbs", include_str!("../theme/head.hbs")),
    ("posenc.css", include_str!("../theme/posenc.css")),
    ("posenc.js", include_str!("../theme/posenc.js")),
];

/// Settings of mdBook. Most of them turn a feature off.
const SETTINGS: &str = r#"
[book]
title = "posenc"
language = "en"
src = "src"
[build]
build-dir = "book"
create-missing = false
use-default-preprocessors = false
[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
smart-punctuation = false
definition-lists = false
admonitions = false
no-section-label = true
hash-files = false
additional-css = ["posenc.css"]
additional-js = ["posenc.js"]
[output.html.fold]
enable = true
level = 0
[output.html.print]
enable = false
[output.html.search]
enable = false
[output.html.playground]
runnable = false
"#;

/// The files that mdBook creates for the pages, which have no content yet.
pub fn render(outline: &Outline) -> Result<BTreeMap<String, Vec<u8>>> {
    let directory = tempfile::tempdir().context("no directory for temporary files")?;
    let root = directory.path();
    for page in outline.pages() {
        put(root, &format!("src/{}", page.path), "")?;
    }
    put(root, "src/SUMMARY.md", &outline.summary())?;
    for (name, text) in THEME {
        put(root, name, text)?;
    }
    let config: Config = SETTINGS.parse().context("settings of mdBook")?;
    let book = MDBook::load_with_config(root, config).context("mdBook cannot read the pages")?;
    book.build().context("mdBook cannot render the pages")?;
    let mut files = BTreeMap::new();
    collect(&root.join("book"), "", &mut files)?;
    // Only servers need these files.
    for name in ["404.html", ".nojekyll"] {
        files.remove(name);
    }
    if !files.contains_key("index.html") {
        bail!("mdBook rendered no index.html");
    }
    Ok(files)
}

fn put(root: &Path, name: &str, text: &str) -> Result<()> {
    let file = root.join(name);
    posenc_files::write_new(&file, text.as_bytes())
        .with_context(|| format!("{} cannot be written", file.display()))
}

fn collect(folder: &Path, below: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
    let cannot = || format!("{} cannot be read", folder.display());
    for entry in std::fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = if below.is_empty() { name.into_owned() } else { format!("{below}/{name}") };
        if path.is_dir() {
            collect(&path, &name, files)?;
        } else {
            files.insert(name, std::fs::read(&path).with_context(cannot)?);
        }
    }
    Ok(())
}
