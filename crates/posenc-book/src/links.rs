//! Where links lead: to pages of the site, and to copies of the repository's public files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use percent_encoding::percent_decode_str;
use posenc_report::Report;

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
        let scheme = href.split(['/', '#', '?']).next().and_then(|start| start.split_once(':'));
        if let Some((scheme, _)) = scheme {
            let is_known = ["http", "https", "mailto"].contains(&&*scheme.to_ascii_lowercase());
            return is_known.then(|| href.to_owned());
        }
        let (path, anchor) = href.split_at(href.find('#').unwrap_or(href.len()));
        if path.is_empty() {
            return Some(href.to_owned());
        }
        let found = joined(document, path).and_then(|name| self.found(&name, path, anchor));
        if found.is_none()
            && !joined(document, path).is_some_and(|n| self.repository.root.join(n).exists())
        {
            self.remarks.push(format!("{document}: the link {href:?} leads nowhere"));
        }
        found
    }

    fn found(&mut self, name: &str, path: &str, anchor: &str) -> Option<String> {
        if self.pages.contains(name) {
            return Some(format!("{}.html{anchor}", path.strip_suffix(".md")?));
        }
        let bytes = self.repository.bytes(name)?;
        if is_picture(name) {
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

    /// Like [`Links::target`], for a picture that a page shows.
    pub fn picture(&mut self, document: &str, src: &str) -> Option<String> {
        let found = self.target(document, src)?;
        let is_own = is_picture(&found) && !found.contains(':');
        if !is_own {
            self.remarks.push(format!("{document}: the picture {src:?} is not part of the site"));
        }
        is_own.then_some(found)
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
