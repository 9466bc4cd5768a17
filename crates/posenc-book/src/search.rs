//! The search index: a script that pages load when a reader searches.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use posenc_report::Report;

use crate::links::html_path;
use crate::pages::{Outline, in_report};

pub const FILE: &str = "search.js";

/// A script that sets `posenc_entries`: kind, title, text and link of every search entry.
pub fn index(report: &Report, outline: &Outline) -> Result<Vec<u8>> {
    let pages: BTreeSet<(&str, &str)> =
        outline.pages().map(|page| (page.document.as_str(), page.path.as_str())).collect();
    let entry = |entry: &posenc_report::Entry| {
        let (path, place) = entry.link.split_once('#').unwrap_or((&entry.link, ""));
        let document = in_report(Path::new(path));
        let (_, page) = pages.iter().find(|(of, _)| *of == document)?;
        let place = if place.is_empty() { String::new() } else { format!("#{place}") };
        let link = format!("{}{place}", html_path(page));
        Some([entry.kind.to_owned(), entry.title.clone(), entry.text.clone(), link])
    };
    let entries: Vec<[String; 4]> = report.entries.iter().filter_map(entry).collect();
    let json = serde_json::to_string(&entries).context("the index of the search")?;
    Ok(format!("window.posenc_entries = {json};\n").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Repository;
    use posenc_report::{Entry, Page, PageKind};

    /// Catches links to Markdown, and entries of pages that the site lacks.
    #[test]
    fn entries_lead_to_pages_of_the_site() {
        let root = tempfile::tempdir().unwrap();
        let mut report = Report::default();
        for (path, kind) in [("README.md", PageKind::Summary), ("a.md", PageKind::Paper)] {
            report.pages.push(Page { path: path.into(), title: path.into(), kind });
            report.files.insert(path.into(), b"# A\n".to_vec());
        }
        let entry = |link: &str| Entry {
            kind: "claim",
            title: "a \"b\" </script>".into(),
            text: String::new(),
            link: link.into(),
        };
        report.entries = vec![entry("a.md#x"), entry("README.md"), entry("gone.md")];
        let outline = Outline::new(&report, &Repository::new(root.path()));
        let script = String::from_utf8(index(&report, &outline).unwrap()).unwrap();
        assert_eq!(
            script,
            "window.posenc_entries = [[\"claim\",\"a \\\"b\\\" </script>\",\"\",\"a.html#x\"],\
             [\"claim\",\"a \\\"b\\\" </script>\",\"\",\"index.html\"]];\n"
        );
    }
}
