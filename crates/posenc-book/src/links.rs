//! Where links lead: documents became pages, files of the repository are shown as they are, and nothing else is
//! part of the site.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use posenc_report::Report;

use crate::html::{Token, escaped, tokens};
use crate::pages::{Outline, REPORT};

/// Files of the repository above this size are not shown.
const LONGEST: u64 = 500_000;
/// Folder of the site for files of the repository.
const SOURCES: &str = "source";

/// What a link leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Another site; the link stays.
    Elsewhere,
    /// A file of the site, by path below it, and the place in it.
    File(String, Option<String>),
    /// Something that is not part of the site.
    Outside,
    /// Nothing at all.
    Nowhere,
}

/// All that links can lead to.
pub struct Links<'a> {
    report: &'a Report,
    root: &'a Path,
    /// Pages of each document, with the places in them, in their order.
    documents: BTreeMap<&'a str, Vec<(String, BTreeSet<String>)>>,
    /// Files of the repository that a link leads to, by path below its root.
    sources: BTreeSet<String>,
}

impl<'a> Links<'a> {
    /// Of the pages as mdBook rendered them.
    pub fn new(
        outline: &'a Outline,
        rendered: &BTreeMap<String, Vec<u8>>,
        report: &'a Report,
        root: &'a Path,
    ) -> Self {
        let mut documents: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for page in outline.pages() {
            let path = html_path(&page.path);
            let html = rendered.get(&path).map(|b| String::from_utf8_lossy(b)).unwrap_or_default();
            documents.entry(&page.document).or_default().push((path, places(&html)));
        }
        Links { report, root, documents, sources: BTreeSet::new() }
    }

    /// What a link of a page leads to, which is part of `document`. mdBook has put `.html` in place of `.md`.
    pub fn target(&mut self, document: &str, href: &str) -> Target {
        if has_scheme(href) {
            return Target::Elsewhere;
        }
        let (path, place) = match href.split_once('#') {
            Some((path, place)) => (path, Some(place).filter(|p| !p.is_empty())),
            None => (href, None),
        };
        let Some(path) = joined(document, path) else { return Target::Nowhere };
        let markdown = path.strip_suffix(".html").map(|stem| format!("{stem}.md"));
        for name in [Some(path.as_str()), markdown.as_deref()].into_iter().flatten() {
            if let Some(pages) = self.documents.get(name) {
                return page(pages, place);
            }
        }
        if let Some(file) = self.in_report(&path) {
            return Target::File(file, None);
        }
        let names = [markdown.as_deref(), Some(path.as_str())];
        for name in names.into_iter().flatten() {
            let file = self.root.join(name);
            if file.is_dir() {
                return Target::Outside;
            }
            if file.is_file() {
                return match source(self.root, name) {
                    Some(_) => {
                        self.sources.insert(name.to_owned());
                        Target::File(format!("{SOURCES}/{name}.html"), None)
                    }
                    None => Target::Outside,
                };
            }
        }
        Target::Nowhere
    }

    /// The file of the report that a picture of a page shows, by path below the site.
    pub fn picture(&self, document: &str, src: &str) -> Option<String> {
        if has_scheme(src) {
            return None;
        }
        self.in_report(&joined(document, src)?)
    }

    fn in_report(&self, path: &str) -> Option<String> {
        let name = path.strip_prefix(REPORT)?.strip_prefix('/')?;
        self.report.files.contains_key(Path::new(name)).then(|| name.to_owned())
    }

    /// Files of the repository that are linked to, as pages.
    pub fn source_pages(&self) -> impl Iterator<Item = (String, Vec<u8>)> + '_ {
        self.sources.iter().filter_map(|name| {
            let text = source(self.root, name)?;
            let path = format!("{SOURCES}/{name}.html");
            let up = relative(&path, "index.html", None);
            let page = include_str!("../theme/source.html")
                .replace("{name}", &escaped(name))
                .replace("{up}", &up)
                .replace("{text}", &escaped(&text));
            Some((path, page.into_bytes()))
        })
    }
}

/// The text of a file of the repository, if it is one that can be shown.
fn source(root: &Path, name: &str) -> Option<String> {
    posenc_files::read(&root.join(name), LONGEST).ok().and_then(|text| String::from_utf8(text).ok())
}

/// The page that has a place, or the document's first.
fn page(pages: &[(String, BTreeSet<String>)], place: Option<&str>) -> Target {
    let first = pages.first().map(|(path, _)| path.clone());
    match place {
        None => first.map_or(Target::Nowhere, |path| Target::File(path, None)),
        Some(place) => match pages.iter().find(|(_, places)| places.contains(place)) {
            Some((path, _)) => Target::File(path.clone(), Some(place.to_owned())),
            None => Target::Nowhere,
        },
    }
}

/// Places of a page that links can name.
fn places(html: &str) -> BTreeSet<String> {
    let tags = tokens(html).filter_map(|token| match token {
        Token::Tag(tag) => tag.attribute("id"),
        Token::Text(_) => None,
    });
    tags.collect()
}

/// Where the HTML of a page lies.
pub fn html_path(path: &str) -> String {
    format!("{}.html", path.strip_suffix(".md").unwrap_or(path))
}

/// Whether a link begins with `https:` or the like.
fn has_scheme(href: &str) -> bool {
    let name = href.split([':', '/', '#', '?']).next().unwrap_or_default();
    href[name.len()..].starts_with(':') && !name.is_empty() || href.starts_with("//")
}

/// A path that is relative to a document, from the repository's root; `None` if it leads above that.
fn joined(document: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(document.to_owned());
    }
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A file of the site as seen from a page of it, as it may stand in a link.
pub fn relative(page: &str, file: &str, place: Option<&str>) -> String {
    if page == file
        && let Some(place) = place
    {
        return format!("#{place}");
    }
    let from: Vec<&str> = page.split('/').collect();
    let to: Vec<&str> = file.split('/').collect();
    let folders = from.len().min(to.len()) - 1;
    let common = (0..folders).take_while(|i| from[*i] == to[*i]).count();
    let mut parts = vec![".."; from.len() - 1 - common];
    parts.extend(&to[common..]);
    let mut link = String::new();
    for c in parts.join("/").chars() {
        match c {
            '%' | '#' | '?' | ' ' | '"' => link.push_str(&format!("%{:02X}", c as u32)),
            c => link.push(c),
        }
    }
    match place {
        Some(place) => format!("{link}#{place}"),
        None => link,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches links that are one folder off, and names that a browser takes for a query.
    #[test]
    fn links_are_relative_to_their_page() {
        let check = |page: &str, file: &str, expected: &str| {
            assert_eq!(relative(page, file, None), expected);
        };
        check("index.html", "a/b.html", "a/b.html");
        check("a/b.html", "a/c.html", "c.html");
        check("a/b.html", "index.html", "../index.html");
        check("a/b.html", "figures/a/x 1%.svg", "../figures/a/x%201%25.svg");
        check("source/a/b/c.html", "source/a.html", "../../a.html");
        assert_eq!(relative("a/b.html", "a/b.html", Some("x")), "#x");
        assert_eq!(relative("a/b.html", "c.html", Some("x")), "../c.html#x");
    }

    #[test]
    fn paths_stay_within_the_repository() {
        assert_eq!(joined("report/a.md", "../docs/b.md").as_deref(), Some("docs/b.md"));
        assert_eq!(joined("README.md", "report/./x.svg").as_deref(), Some("report/x.svg"));
        assert_eq!(joined("README.md", "../x"), None);
        assert_eq!(joined("report/a.md", "").as_deref(), Some("report/a.md"));
        for (href, is) in [
            ("https://a.b", true),
            ("mailto:a", true),
            ("a.md#x:y", false),
            ("#a:b", false),
            ("//a.b/c", true),
        ] {
            assert_eq!(has_scheme(href), is, "{href}");
        }
    }
}
