//! The pages of the site, their order, and the document that each comes from.

use std::path::Path;

use posenc_report::{PageKind, Report};

use crate::repository::Repository;

/// Folder of the report in the repository; links in the report are resolved from it.
pub const REPORT: &str = "report";
/// Documents of the repository that are part of the site, with their titles there; others under `docs/` follow.
const DOCUMENTS: [(&str, &str); 8] = [
    ("README.md", "What posenc is"),
    ("docs/METHODOLOGY.md", "Methodology"),
    ("docs/BIAS.md", "Known biases"),
    ("FORMAT.md", "Format of experiments"),
    ("docs/EXTENDING.md", "How to extend"),
    ("ARCHITECTURE.md", "Architecture"),
    ("CONTRIBUTING.md", "Contributing"),
    ("CHANGELOG.md", "Changelog"),
];

/// Maximum number of characters of a title in the navigation.
const LONGEST_TITLE: usize = 200;

/// A page of the site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Path below the site, with the extension `md`; the HTML of the page has the extension `html`.
    pub path: String,
    /// Its name in the navigation, without markup.
    pub title: String,
    /// Path of its document in the repository. Links are relative to it.
    pub document: String,
    pub text: String,
}

/// A page with its subpages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chapter {
    pub page: Page,
    pub below: Vec<Page>,
}

impl Chapter {
    fn of(page: Page) -> Self {
        Chapter { page, below: Vec::new() }
    }
}

/// Chapters under a heading of the navigation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub title: &'static str,
    pub chapters: Vec<Chapter>,
}

/// All pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The first page, before all parts.
    pub first: Page,
    pub parts: Vec<Part>,
}

impl Outline {
    /// The pages of a report, and the public documents of the repository.
    pub fn new(report: &Report, repository: &Repository) -> Self {
        let (mut first, mut papers, mut others) =
            (None, Vec::<Chapter>::new(), Vec::<Chapter>::new());
        for entry in &report.pages {
            let Some(page) = in_site(report, &entry.path, Some(&entry.title)) else { continue };
            match entry.kind {
                PageKind::Summary => first = Some(page),
                PageKind::Paper => papers.push(Chapter::of(page)),
                PageKind::Overview => others.push(Chapter::of(page)),
                PageKind::Item | PageKind::Part => {
                    let is_item = entry.kind == PageKind::Item;
                    let chapters = if is_item { &mut papers } else { &mut others };
                    if let Some(chapter) = chapters.last_mut() {
                        chapter.below.push(page);
                    }
                }
            }
        }
        // Pages that the caller added.
        for path in report.files.keys().filter(|path| path.extension().is_some_and(|e| e == "md")) {
            if report.pages.iter().all(|entry| entry.path != *path) {
                let page = in_site(report, path, None);
                others.extend(page.map(Chapter::of));
            }
        }
        let first = first.unwrap_or_else(|| Page {
            path: FIRST.into(),
            title: "Overview".into(),
            document: in_report(Path::new(SUMMARY)),
            text: String::new(),
        });
        let parts = vec![
            Part { title: "Papers", chapters: papers },
            Part { title: "Across papers", chapters: others },
            Part { title: "Documents", chapters: documents(repository) },
        ];
        Outline { first, parts }
    }

    /// All pages, in the order of the navigation.
    pub fn pages(&self) -> impl Iterator<Item = &Page> {
        let chapters = self.parts.iter().flat_map(|part| &part.chapters);
        std::iter::once(&self.first)
            .chain(chapters.flat_map(|c| std::iter::once(&c.page).chain(&c.below)))
    }

    /// All pages in the same order, mutably.
    pub fn pages_mut(&mut self) -> impl Iterator<Item = &mut Page> {
        let chapters = self.parts.iter_mut().flat_map(|part| &mut part.chapters);
        std::iter::once(&mut self.first)
            .chain(chapters.flat_map(|c| std::iter::once(&mut c.page).chain(&mut c.below)))
    }

    /// The list of chapters that mdBook reads.
    pub fn summary(&self) -> String {
        let link = |page: &Page| {
            let title: String = page
                .title
                .chars()
                .filter(|c| !c.is_control())
                .take(LONGEST_TITLE)
                .flat_map(|c| match c.is_ascii_punctuation() {
                    true => vec!['\\', c],
                    false => vec![c],
                })
                .collect();
            format!("[{title}](<{}>)\n", page.path)
        };
        let mut text = format!("# Summary\n\n{}\n", link(&self.first));
        for part in &self.parts {
            text.push_str(&format!("# {}\n\n", part.title));
            for chapter in &part.chapters {
                text.push_str(&format!("- {}", link(&chapter.page)));
                for page in &chapter.below {
                    text.push_str(&format!("  - {}", link(page)));
                }
            }
            text.push('\n');
        }
        text
    }
}

/// The report's summary.
const SUMMARY: &str = "README.md";
const FIRST: &str = "index.md";

/// A page of the report. Without a title, it gets that of its heading.
fn in_site(report: &Report, path: &Path, title: Option<&str>) -> Option<Page> {
    let text = String::from_utf8_lossy(report.files.get(path)?).into_owned();
    let (place, title) = match slashed(path).as_str() {
        SUMMARY => (FIRST.to_owned(), Some("Overview".to_owned())),
        place => (place.to_owned(), title.map(plain)),
    };
    Some(whole(&in_report(path), &place, title.as_deref(), text))
}

/// The published documents of the repository.
fn documents(repository: &Repository) -> Vec<Chapter> {
    let known = DOCUMENTS.iter().map(|(name, title)| (*name, Some(*title)));
    let more = repository.files_in("docs").filter(|name| name.ends_with(".md"));
    let more = more.filter(|name| DOCUMENTS.iter().all(|(known, _)| known != name));
    let chapter = |(name, title): (&str, Option<&str>)| {
        let place = match name {
            "README.md" => "docs/posenc.md".to_owned(),
            name => format!("docs/{}", name.trim_start_matches("docs/").to_lowercase()),
        };
        Some(Chapter::of(whole(name, &place, title, repository.text(name)?)))
    };
    known.chain(more.map(|name| (name, None))).filter_map(chapter).collect()
}

/// The page of a document. Without a title, it gets that of its heading.
fn whole(document: &str, path: &str, title: Option<&str>, text: String) -> Page {
    let text = without_marker(&text).to_owned();
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    let title = title.map(str::to_owned).or_else(|| heading.map(plain));
    let title = title.unwrap_or_else(|| path.trim_end_matches(".md").to_owned());
    Page { path: path.into(), title, document: document.into(), text }
}

/// Removes the first line of a generated page, which is a note for editors.
fn without_marker(text: &str) -> &str {
    match text.strip_prefix("<!-- Generated by").and_then(|rest| rest.split_once("-->")) {
        Some((_, rest)) => rest.trim_start(),
        None => text,
    }
}

/// A heading without Markdown's markup.
fn plain(title: &str) -> String {
    title.chars().filter(|c| !matches!(c, '`' | '$' | '*' | '\\' | '{' | '}')).collect()
}

fn slashed(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

/// Path of a file of the report in the repository.
pub fn in_report(path: &Path) -> String {
    format!("{REPORT}/{}", slashed(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report = Report::default();
        for (path, kind, text) in [
            (
                "README.md",
                PageKind::Summary,
                "<!-- Generated by x. -->\n\n# Summary\n\n[B](b.md)\n",
            ),
            ("b.md", PageKind::Paper, "# B\n\nof items\n"),
            ("b/fig1.md", PageKind::Item, "# Figure 1. $x$\n\nbody\n"),
            ("a.md", PageKind::Paper, "# A\n"),
            ("a/index.md", PageKind::Item, "# Index\n"),
            ("claims.md", PageKind::Overview, "# Claims\n"),
            ("claims/a.md", PageKind::Part, "# Claims of A\n"),
        ] {
            let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap().to_owned();
            report.pages.push(posenc_report::Page { path: path.into(), title, kind });
            report.files.insert(path.into(), text.as_bytes().to_vec());
        }
        report.files.insert("costs.md".into(), b"# What it costs\n\ntext\n".to_vec());
        report.files.insert("figures/a/fig1.svg".into(), b"<svg/>".to_vec());
        report
    }

    /// Catches a page of the report that the site lacks, and papers in another order than on the first page.
    #[test]
    fn every_page_of_the_report_is_in_the_site() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("docs")).unwrap();
        std::fs::write(root.path().join("docs/CLUSTER.md"), "# On a cluster\n").unwrap();
        std::fs::write(root.path().join("FORMAT.md"), "# Format\n").unwrap();
        crate::repository::tests::track(root.path());
        std::fs::write(root.path().join("docs/DRAFT.md"), "# Not tracked\n").unwrap();
        let outline = Outline::new(&report(), &Repository::new(root.path()));
        let pages: Vec<_> = outline.pages().map(|p| (&*p.path, &*p.title)).collect();
        assert_eq!(
            pages,
            [
                ("index.md", "Overview"),
                ("b.md", "B"),
                ("b/fig1.md", "Figure 1. x"),
                ("a.md", "A"),
                ("a/index.md", "Index"),
                ("claims.md", "Claims"),
                ("claims/a.md", "Claims of A"),
                ("costs.md", "What it costs"),
                ("docs/format.md", "Format of experiments"),
                ("docs/cluster.md", "On a cluster"),
            ]
        );
        assert!(outline.first.text.starts_with("# Summary\n"), "{}", outline.first.text);
        let item = outline.pages().nth(2).unwrap();
        assert_eq!(item.text, "# Figure 1. $x$\n\nbody\n");
        assert_eq!(item.document, "report/b/fig1.md");
        assert!(outline.summary().contains("  - [Figure 1\\. x](<b/fig1.md>)"));
    }
}
