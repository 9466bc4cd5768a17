//! Where links lead: to pages of the site, and to copies of the repository's public files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use percent_encoding::percent_decode_str;

use crate::Report;

/// Maximum size in bytes of a file that the site shows a copy of.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// A repository with its report.
///
/// A text may link to any path. Only files of the report and files that git tracks are public: neither `.git` nor notes, data
/// sets or targets of symbolic links.
pub struct Repository<'a> {
    root: &'a Path,
    report: &'a Report,
    /// Regular files that git tracks, with slashes.
    tracked: BTreeSet<String>,
}

impl<'a> Repository<'a> {
    pub fn new(root: &'a Path, report: &'a Report) -> Self {
        let listed = posenc_files::git(root, &["ls-files", "-z", "--stage"]).ok();
        let listed = listed.filter(|output| output.status.success()).map(|output| output.stdout);
        let listed = listed.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let file = |entry: &str| {
            let (mode, name) = entry.split_once('\t')?;
            mode.starts_with("100").then(|| name.to_owned())
        };
        let tracked = listed.split('\0').filter_map(file).collect();
        Repository { root, report, tracked }
    }

    pub fn tracked(&self) -> impl Iterator<Item = &str> {
        self.tracked.iter().map(String::as_str)
    }

    /// The text of a public file, by its path with slashes.
    pub fn text(&self, name: &str) -> Option<String> {
        String::from_utf8(self.bytes(name)?).ok()
    }

    /// Whether a folder has files that git tracks.
    fn has_folder(&self, name: &str) -> bool {
        let start = if name.is_empty() { String::new() } else { format!("{name}/") };
        self.tracked.range(start.clone()..).next().is_some_and(|file| file.starts_with(&start))
    }

    fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let of_report = name.strip_prefix("report/").map(Path::new);
        if let Some(bytes) = of_report.and_then(|name| self.report.files.get(name)) {
            return Some(bytes.clone());
        }
        let file = self.root.join(self.tracked.get(name)?);
        let data = std::fs::symlink_metadata(&file).ok()?;
        (data.is_file() && data.len() <= MAX_FILE_BYTES).then(|| std::fs::read(file).ok())?
    }
}

/// Resolves the links of all pages.
pub struct Links<'a> {
    pub repository: &'a Repository<'a>,
    /// Paths of the documents that are pages of the site.
    pub pages: BTreeSet<String>,
    /// Files that pages show or link to, by path in the site.
    pub files: BTreeMap<String, Vec<u8>>,
    pub remarks: Vec<String>,
}

impl Links<'_> {
    /// The link in the site in place of a link of `document`; `None` if it leads to nothing public.
    pub fn target(&mut self, document: &str, href: &str) -> Option<String> {
        self.resolved(document, href, false)
    }

    /// Like [`Links::target`], for a picture that a page shows, and whether the picture may also be opened as a page.
    pub fn picture(&mut self, document: &str, src: &str) -> Option<(String, bool)> {
        let found = self.resolved(document, src, true)?;
        if !is_picture(&found) || found.contains(':') {
            self.remarks.push(format!("{document}: the picture {src:?} is not part of the site"));
            return None;
        }
        let may_open = joined(document, src).is_some_and(|name| self.may_open(&name));
        Some((found, may_open))
    }

    fn resolved(&mut self, document: &str, href: &str, is_shown: bool) -> Option<String> {
        let scheme = href.split(['/', '#', '?']).next().and_then(|start| start.split_once(':'));
        if let Some((scheme, _)) = scheme {
            let is_known = ["http", "https", "mailto"].contains(&&*scheme.to_ascii_lowercase());
            return is_known.then(|| href.to_owned());
        }
        let (path, anchor) = href.split_at(href.find('#').unwrap_or(href.len()));
        if path.is_empty() {
            return Some(href.to_owned());
        }
        let name = joined(document, path);
        let found = name.as_ref().and_then(|name| self.found(name, (path, anchor), is_shown));
        // A folder of the repository has no page.
        let is_folder = |name: &String| self.repository.has_folder(name);
        if found.is_none() && !name.as_ref().is_some_and(is_folder) {
            let exists = name.is_some_and(|name| self.repository.root.join(name).exists());
            let why = if exists { "leads to what the site does not show" } else { "leads nowhere" };
            self.remarks.push(format!("{document}: the link {href:?} {why}"));
        }
        found
    }

    fn found(
        &mut self,
        name: &str,
        (path, anchor): (&str, &str),
        is_shown: bool,
    ) -> Option<String> {
        if self.pages.contains(name) {
            return Some(format!("{}.html{anchor}", path.strip_suffix(".md")?));
        }
        let bytes = self.repository.bytes(name)?;
        if is_picture(name) && (is_shown || self.may_open(name)) {
            self.files.insert(name.to_owned(), bytes);
            return Some(path.to_owned());
        }
        // A browser may download other formats. The first character says that the text is UTF-8. mdBook takes any `.md` in a link for
        // a page.
        let text = format!("\u{feff}{}", String::from_utf8(bytes).ok()?);
        let copy = |name: &str| format!("{}.txt", name.strip_suffix(".md").unwrap_or(name));
        self.files.insert(copy(name), text.into_bytes());
        Some(copy(path))
    }

    /// Whether a picture may be opened as a page of its own: a drawing of others may run a script there.
    fn may_open(&self, name: &str) -> bool {
        let of_report = name.strip_prefix("report/").map(Path::new);
        !name.ends_with(".svg")
            || of_report.is_some_and(|name| self.repository.report.files.contains_key(name))
    }
}

fn is_picture(name: &str) -> bool {
    [".svg", ".png", ".jpg"].iter().any(|end| name.ends_with(end))
}

/// The path in the repository of a relative link of `document`; `None` if it leads out of it.
fn joined(document: &str, link: &str) -> Option<String> {
    let link = percent_decode_str(link).decode_utf8().ok()?;
    if link.starts_with('/') || link.contains('\\') {
        return None;
    }
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
