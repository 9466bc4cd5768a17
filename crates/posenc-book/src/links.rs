//! Resolves links. Links to documents lead to pages of the site, and links to public files of the repository to a copy of the
//! file's text. The site contains nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use posenc_report::Report;

use crate::html::{escaped, tags};
use crate::pages::{Outline, Page, REPORT};
use crate::pictures::is_picture;
use crate::repository::Repository;

/// Folder of the site for files of the repository.
const SOURCES: &str = "source";
/// Folder of the repository for documents and their pictures.
const DOCUMENTS: &str = "docs";

/// Target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Another site; the link stays.
    Elsewhere,
    /// A file of the site, by path below it, and the place in it.
    File(String, Option<String>),
    /// Something that is not part of the site.
    Outside,
    Nowhere,
}

/// All possible targets of links.
pub struct Links<'a> {
    report: &'a Report,
    repository: &'a Repository,
    /// The page of each document, with its anchors.
    documents: BTreeMap<&'a str, (String, BTreeSet<String>)>,
    /// Files of the repository that a link leads to, with their text, by path below its root.
    sources: BTreeMap<String, String>,
    /// Pictures of the repository's documents, which are at the same path in the site.
    pictures: BTreeMap<String, Vec<u8>>,
}

impl<'a> Links<'a> {
    /// Collects the link targets of all pages. `bodies` maps the path of a page to its HTML.
    pub fn new(
        outline: &'a Outline,
        bodies: &BTreeMap<String, String>,
        report: &'a Report,
        repository: &'a Repository,
    ) -> Self {
        let of = |page: &'a Page| {
            let path = html_path(&page.path);
            let places = bodies.get(&path).map(|html| places(html)).unwrap_or_default();
            (page.document.as_str(), (path, places))
        };
        let documents = outline.pages().map(of).collect();
        let pictures = repository.files_in(DOCUMENTS).filter(|name| is_picture(name));
        let pictures =
            pictures.filter_map(|name| Some((name.to_owned(), repository.bytes(name)?))).collect();
        Links { report, repository, documents, sources: BTreeMap::new(), pictures }
    }

    /// Resolves a link on a page of `document`.
    pub fn target(&mut self, document: &str, href: &str) -> Destination {
        // On a page opened from a file, `//host/x` is a file on another machine.
        if href.starts_with("//") {
            return Destination::Nowhere;
        }
        if has_scheme(href) {
            return Destination::Elsewhere;
        }
        let (path, place) = match href.split_once('#') {
            Some((path, place)) => (path, Some(place).filter(|p| !p.is_empty())),
            None => (href, None),
        };
        let Some(path) = joined(document, &decoded(path)) else { return Destination::Nowhere };
        if let Some((file, places)) = self.documents.get(path.as_str()) {
            return match place {
                Some(place) if !places.contains(place) => Destination::Nowhere,
                place => Destination::File(file.clone(), place.map(str::to_owned)),
            };
        }
        if let Some(file) = self.in_site(&path) {
            return Destination::File(file, None);
        }
        let file = format!("{SOURCES}/{path}.html");
        if self.sources.contains_key(&path) {
            return Destination::File(file, None);
        }
        if let Some(text) = self.repository.text(&path) {
            self.sources.insert(path, text);
            return Destination::File(file, None);
        }
        match self.repository.exists(&path) {
            true => Destination::Outside,
            false => Destination::Nowhere,
        }
    }

    /// The file of a picture on a page, by path below the site.
    pub fn picture(&self, document: &str, src: &str) -> Option<String> {
        if has_scheme(src) {
            return None;
        }
        self.in_site(&joined(document, &decoded(src))?)
    }

    /// The path below the site of a file that the site shows unchanged.
    fn in_site(&self, path: &str) -> Option<String> {
        if self.pictures.contains_key(path) {
            return Some(path.to_owned());
        }
        let name = path.strip_prefix(REPORT)?.strip_prefix('/')?;
        self.report.files.contains_key(Path::new(name)).then(|| name.to_owned())
    }

    /// The content of a file that the site shows unchanged, by path below the site.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        let picture = self.pictures.get(name).or_else(|| self.report.files.get(Path::new(name)));
        picture.map(Vec::as_slice)
    }

    /// Files of the repository that are linked to, as pages.
    pub fn source_pages(&self) -> impl Iterator<Item = (String, Vec<u8>)> + '_ {
        self.sources.iter().map(|(name, text)| {
            let path = format!("{SOURCES}/{name}.html");
            let up = relative(&path, "index.html", None);
            let page = include_str!("../theme/source.html")
                .replace("{name}", &escaped(name))
                .replace("{up}", &up)
                .replace("{text}", &escaped(text));
            (path, page.into_bytes())
        })
    }
}

/// Anchors of a page.
fn places(html: &str) -> BTreeSet<String> {
    tags(html).filter_map(|tag| tag.attribute("id")).collect()
}

/// Path of the HTML of a page.
pub fn html_path(path: &str) -> String {
    format!("{}.html", path.strip_suffix(".md").unwrap_or(path))
}

/// Whether a link begins with `https:` or the like.
fn has_scheme(href: &str) -> bool {
    let name = href.split([':', '/', '#', '?']).next().unwrap_or_default();
    href[name.len()..].starts_with(':') && !name.is_empty() || href.starts_with("//")
}

/// Resolves a path relative to a document, from the root of both; `None` if it leads above the root.
pub fn joined(document: &str, path: &str) -> Option<String> {
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

/// Relative link from `page` to `file`, both paths within the site, percent-encoded.
pub fn relative(page: &str, file: &str, place: Option<&str>) -> String {
    if page == file
        && let Some(place) = place
    {
        return format!("#{}", encoded(place));
    }
    let from: Vec<&str> = page.split('/').collect();
    let to: Vec<&str> = file.split('/').collect();
    let folders = from.len().min(to.len()) - 1;
    let common = (0..folders).take_while(|i| from[*i] == to[*i]).count();
    let mut parts = vec![".."; from.len() - 1 - common];
    parts.extend(&to[common..]);
    let link = encoded(&parts.join("/"));
    match place {
        Some(place) => format!("{link}#{}", encoded(place)),
        None => link,
    }
}

/// Percent-encodes a path or an anchor for a link.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_alphanumeric() || "/-._~=+,()".contains(c) => out.push(c),
            c => c
                .encode_utf8(&mut [0; 4])
                .bytes()
                .for_each(|byte| out.push_str(&format!("%{byte:02X}"))),
        }
    }
    out
}

/// Decodes percent-encoding. Text that is not valid UTF-8 afterwards is returned unchanged.
pub fn decoded(link: &str) -> String {
    let mut bytes = Vec::with_capacity(link.len());
    let mut rest = link;
    while let Some((before, behind)) = rest.split_once('%') {
        bytes.extend(before.bytes());
        let digits = behind.get(..2).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(b'%');
                rest = behind;
            }
        }
    }
    bytes.extend(rest.bytes());
    String::from_utf8(bytes).unwrap_or_else(|_| link.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches links that are one folder off, and names that a browser would misread because of their characters.
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
