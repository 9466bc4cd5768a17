//! The pages of the site in the order of its navigation.

use std::path::Path;

use crate::{PageKind, Report};

use super::links::Repository;

/// Documents that come first; others in `docs/` follow.
const DOCUMENTS: [&str; 8] = [
    "README.md",
    "docs/METHODOLOGY.md",
    "docs/BIAS.md",
    "FORMAT.md",
    "docs/EXTENDING.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
];

pub struct Page {
    /// Its path in the repository; links are relative to it. The site has the same folders.
    pub document: String,
    pub title: String,
    pub text: String,
}

/// Chapters under a heading of the navigation. The pages after the first of a chapter are below it.
pub struct Part {
    pub title: &'static str,
    pub chapters: Vec<Vec<Page>>,
}

/// The pages of a report and the documents of its repository.
pub fn parts(report: &Report, repository: &Repository<'_>) -> Vec<Part> {
    let [mut first, mut papers, mut others]: [Vec<Vec<Page>>; 3] = Default::default();
    for entry in &report.pages {
        let Some(page) = report_page(report, &entry.path) else { continue };
        let (part, is_below) = match entry.kind {
            PageKind::Summary => (&mut first, false),
            PageKind::Paper => (&mut papers, false),
            PageKind::Item => (&mut papers, true),
            PageKind::Overview => (&mut others, false),
            PageKind::Part => (&mut others, true),
        };
        match part.last_mut() {
            Some(chapter) if is_below => chapter.push(page),
            _ => part.push(vec![page]),
        }
    }

    let rest = repository.tracked().filter(|name| {
        let name = name.strip_prefix("docs/").filter(|name| name.ends_with(".md"));
        name.is_some_and(|name| {
            name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        })
    });
    let rest = rest.filter(|name| !DOCUMENTS.contains(name));
    let document = |name: &str| Some(vec![page(name, repository.text(name)?)]);
    let documents = DOCUMENTS.into_iter().chain(rest).filter_map(document).collect();
    vec![
        Part { title: "", chapters: first },
        Part { title: "Papers", chapters: papers },
        Part { title: "Across papers", chapters: others },
        Part { title: "Documents", chapters: documents },
    ]
}

fn report_page(report: &Report, path: &Path) -> Option<Page> {
    let text = String::from_utf8_lossy(report.files.get(path)?);
    Some(page(&in_repository(path), text.into_owned()))
}

/// The path in the repository of a file of the report.
pub fn in_repository(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    format!("report/{}", parts.join("/"))
}

fn page(document: &str, text: String) -> Page {
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    let is_markup = |c: char| c.is_control() || "`$*\\{}".contains(c);
    let title: String =
        heading.unwrap_or(document).chars().filter(|c| !is_markup(*c)).take(200).collect();
    Page { document: document.to_owned(), title, text }
}
