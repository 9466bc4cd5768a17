//! Which pages the site has, in which order, and from which document each comes.

use std::path::Path;

use posenc_report::{Report, Section};

use crate::repository::Repository;

/// Where the report lies in the repository, as far as its links are concerned.
pub const REPORT: &str = "report";
/// Sections of the report's summary that stand on the first page, behind its opening.
const FIRST: [&str; 2] = ["Results", "How to run it"];
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

/// Characters of a title in the navigation.
const LONGEST_TITLE: usize = 200;

/// A page of the site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Where it lies below the site, with the ending `md`; its HTML lies beside that place.
    pub path: String,
    /// Its name in the navigation, without markup.
    pub title: String,
    /// The document it is part of, as a path below the repository: its links are relative to that.
    pub document: String,
    /// Its Markdown.
    pub text: String,
}

/// A page with those that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chapter {
    /// The page.
    pub page: Page,
    /// Pages below it in the navigation.
    pub below: Vec<Page>,
}

/// Chapters under a heading of the navigation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The heading.
    pub title: &'static str,
    /// The chapters.
    pub chapters: Vec<Chapter>,
}

/// All pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The first page, which stands above all parts.
    pub first: Page,
    /// The parts.
    pub parts: Vec<Part>,
}

impl Outline {
    /// The pages of a report, and the public documents of the repository.
    pub fn new(report: &Report, repository: &Repository) -> Self {
        let (first, claims) = summary(report);
        let mut papers = Vec::new();
        let mut others = vec![Chapter { page: claims, below: Vec::new() }];
        for (path, sections) in &report.sections {
            if path != Path::new(SUMMARY) {
                papers.push(paper(path, sections));
            }
        }
        papers.sort_by_key(|chapter| position(&first.text, &chapter.page.document));
        for (path, bytes) in &report.files {
            let is_page = path.extension().is_some_and(|e| e == "md");
            if is_page && !report.sections.contains_key(path) {
                let text = String::from_utf8_lossy(bytes).into_owned();
                let page = whole(&in_report(path), &slashed(path), None, text);
                others.push(Chapter { page, below: Vec::new() });
            }
        }
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

    /// The same, to be changed.
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

/// The first page, and the rest of the report's summary.
fn summary(report: &Report) -> (Page, Page) {
    let sections = report.sections.get(Path::new(SUMMARY)).map_or(&[][..], Vec::as_slice);
    let (opening, rest) = sections.split_at(sections.len().min(1));
    let chosen = FIRST.iter().filter_map(|title| rest.iter().find(|s| s.title == *title));
    let first = opening.iter().chain(chosen).map(|s| &*s.text).collect::<String>();
    let rest = rest.iter().filter(|s| !FIRST.contains(&&*s.title)).map(|s| &*s.text);
    let rest = format!("# Claims, methods, machines\n\n{}", rest.collect::<String>());
    let page = |path: &str, title: &str, text: String| Page {
        path: path.into(),
        title: title.into(),
        document: in_report(Path::new(SUMMARY)),
        text: without_marker(&text).to_owned(),
    };
    let (first_path, rest_path) = ("index.md", "claims.md");
    (page(first_path, "Overview", first), page(rest_path, "Claims, methods, machines", rest))
}

/// The page of a paper, with one for each of its items.
fn paper(path: &Path, sections: &[Section]) -> Chapter {
    let key = slashed(&path.with_extension(""));
    let document = in_report(path);
    let page = |name: &str, title: &str, text: String| Page {
        path: format!("{key}/{name}.md"),
        title: plain(title),
        document: document.clone(),
        text: without_marker(&text).to_owned(),
    };
    let (opening, items) = sections.split_at(sections.len().min(1));
    let title = opening.first().map_or(&*key, |s| &*s.title);
    let text = opening.iter().map(|s| &*s.text).collect();
    let item = |(number, section): (usize, &Section)| {
        let numbered = format!("part-{}", number + 1);
        let name = section.anchor.as_deref().filter(|a| *a != "index").unwrap_or(&numbered);
        let anchor = section.anchor.iter().map(|a| format!("<a id=\"{a}\"></a>\n\n"));
        let text =
            format!("# {}\n\n{}{}", section.title, anchor.collect::<String>(), section.body());
        page(name, &section.title, text)
    };
    Chapter {
        page: page("index", title, text),
        below: items.iter().enumerate().map(item).collect(),
    }
}

/// Documents of the repository: those that it publishes.
fn documents(repository: &Repository) -> Vec<Chapter> {
    let known = DOCUMENTS.iter().map(|(name, title)| (*name, Some(*title)));
    let more = repository.files_in("docs").filter(|name| name.ends_with(".md"));
    let more = more.filter(|name| DOCUMENTS.iter().all(|(known, _)| known != name));
    let chapter = |(name, title): (&str, Option<&str>)| {
        let place = match name {
            "README.md" => "docs/posenc.md".to_owned(),
            name => format!("docs/{}", name.trim_start_matches("docs/").to_lowercase()),
        };
        let page = whole(name, &place, title, repository.text(name)?);
        Some(Chapter { page, below: Vec::new() })
    };
    known.chain(more.map(|name| (name, None))).filter_map(chapter).collect()
}

/// A document that is a page of its own; without a title it has that of its heading.
fn whole(document: &str, path: &str, title: Option<&str>, text: String) -> Page {
    let text = without_marker(&text).to_owned();
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    let title = title.map(str::to_owned).or_else(|| heading.map(plain));
    let title = title.unwrap_or_else(|| path.trim_end_matches(".md").to_owned());
    Page { path: path.into(), title, document: document.into(), text }
}

/// Where the first page first speaks of a document of the report; behind all others where it does not.
fn position(text: &str, document: &str) -> usize {
    let name = document.rsplit('/').next().unwrap_or(document);
    text.find(&format!("]({name})")).unwrap_or(usize::MAX)
}

/// The first line of a generated page speaks to whoever edits it.
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

/// Where a file of the report lies in the repository.
fn in_report(path: &Path) -> String {
    format!("{REPORT}/{}", slashed(path))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;

    fn report() -> Report {
        let section = |anchor: Option<&str>, title: &str, text: &str| Section {
            anchor: anchor.map(str::to_owned),
            title: title.to_owned(),
            text: text.to_owned(),
        };
        let summary = vec![
            section(
                None,
                "Summary",
                "<!-- Generated by x. -->\n\n# Summary\n\n[B](b.md) [A](a.md)\n\n",
            ),
            section(None, "Scope", "## Scope\n\nscope\n\n"),
            section(None, "Results", "## Results\n\nresults\n\n"),
        ];
        let paper = |name: &str| {
            vec![
                section(None, name, "# P\n\nof items\n\n"),
                section(
                    Some("fig1"),
                    "Figure 1. $x$",
                    "<a id=\"fig1\"></a>\n\n## Figure 1. $x$\n\nbody\n\n",
                ),
            ]
        };
        let sections = [("README.md", summary), ("a.md", paper("A")), ("b.md", paper("B"))];
        let sections: BTreeMap<_, _> =
            sections.into_iter().map(|(n, s)| (PathBuf::from(n), s)).collect();
        let mut files: BTreeMap<PathBuf, Vec<u8>> =
            sections.keys().map(|p| (p.clone(), Vec::new())).collect();
        files.insert("costs.md".into(), b"# What it costs\n\ntext\n".to_vec());
        files.insert("figures/a/fig1.svg".into(), b"<svg/>".to_vec());
        Report { files, sections, ..Report::default() }
    }

    /// Catches a page of the report that the site lacks, and papers in another order than on the first page.
    #[test]
    fn every_page_of_the_report_is_one_of_the_site() {
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
                ("b/index.md", "B"),
                ("b/fig1.md", "Figure 1. x"),
                ("a/index.md", "A"),
                ("a/fig1.md", "Figure 1. x"),
                ("claims.md", "Claims, methods, machines"),
                ("costs.md", "What it costs"),
                ("docs/format.md", "Format of experiments"),
                ("docs/cluster.md", "On a cluster"),
            ]
        );
        assert!(outline.first.text.starts_with("# Summary\n"), "{}", outline.first.text);
        assert!(outline.first.text.contains("results") && !outline.first.text.contains("scope"));
        let item = outline.pages().nth(2).unwrap();
        assert_eq!(item.text, "# Figure 1. $x$\n\n<a id=\"fig1\"></a>\n\nbody\n\n");
        assert_eq!(item.document, "report/b.md");
        assert!(outline.summary().contains("  - [Figure 1\\. x](<b/fig1.md>)"));
    }
}
