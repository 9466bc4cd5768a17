//! Links and sizes of the committed Markdown pages of this repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Maximum size of a page, in bytes.
const LONGEST: usize = 72_000;
/// Maximum size of the first page, in bytes.
const FIRST: usize = 8192;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the repository").to_owned()
}

/// Markdown files of the repository's root, of `docs` and of `report`, by path below the root.
fn pages() -> BTreeMap<PathBuf, String> {
    let root = root();
    let mut found = BTreeMap::new();
    let mut waiting = vec![(root.clone(), false), (root.join("docs"), true)];
    waiting.push((root.join("report"), true));
    while let Some((folder, is_deep)) = waiting.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && is_deep {
                waiting.push((path, true));
            } else if path.extension().is_some_and(|e| e == "md") && path.is_file() {
                let text = fs::read_to_string(&path).expect("text");
                found.insert(path.strip_prefix(&root).expect("below").to_owned(), text);
            }
        }
    }
    found
}

/// Anchors and link destinations of a page.
#[derive(Default)]
struct Links {
    places: BTreeSet<String>,
    destinations: BTreeSet<String>,
}

/// The anchor that GitHub generates for a heading.
fn slug(heading: &str) -> String {
    let kept = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' || c == '-' => c.to_lowercase().next(),
        c if c.is_whitespace() => Some('-'),
        _ => None,
    };
    heading.trim().chars().filter_map(kept).collect()
}

fn attributes(html: &str, links: &mut Links) {
    for part in html.split(" id=\"").skip(1) {
        links.places.extend(part.split('"').next().map(str::to_owned));
    }
    for name in [" href=\"", " src=\""] {
        for part in html.split(name).skip(1) {
            links.destinations.extend(part.split('"').next().map(str::to_owned));
        }
    }
}

fn links(text: &str) -> Links {
    let mut links = Links::default();
    let mut heading: Option<String> = None;
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let count = used.entry(slug.clone()).or_insert(0);
                links.places.insert(match *count {
                    0 => slug,
                    n => format!("{slug}-{n}"),
                });
                *count += 1;
            }
            Event::Text(text) | Event::Code(text) => {
                heading.as_mut().into_iter().for_each(|heading| heading.push_str(&text));
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.destinations.insert(dest_url.into_string());
            }
            Event::Html(html) | Event::InlineHtml(html) => attributes(&html, &mut links),
            _ => {}
        }
    }
    links
}

/// A path without `.` and `..`; `None` if it leads out of the repository.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if !out.pop() => return None,
            Component::Normal(name) => out.push(name),
            _ => {}
        }
    }
    Some(out)
}

fn decoded(link: &str) -> String {
    let mut out = Vec::new();
    let mut rest = link.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let value = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        let value = value.filter(|_| *first == b'%');
        out.push(value.unwrap_or(*first));
        rest = if value.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Catches a link to a page, an anchor, a file or a picture that does not exist.
#[test]
fn relative_links_have_targets() {
    let pages = pages();
    assert!(pages.len() > 60, "{} pages", pages.len());
    let all: BTreeMap<&PathBuf, Links> = pages.iter().map(|(p, t)| (p, links(t))).collect();
    let mut problems = Vec::new();
    let mut count = 0;
    for (page, own) in &all {
        for destination in &own.destinations {
            let scheme = destination.split(['/', '#']).next().unwrap_or_default();
            if scheme.contains(':') {
                continue;
            }
            count += 1;
            let (file, place) = destination.split_once('#').unwrap_or((destination, ""));
            let target = match file {
                "" => Some((*page).clone()),
                file => normal(&page.parent().expect("a folder").join(decoded(file))),
            };
            let exists = target.as_ref().is_some_and(|target| root().join(target).exists());
            let has_place = place.is_empty()
                || target.and_then(|t| all.get(&t)).is_none_or(|t| t.places.contains(place));
            if !exists || !has_place {
                problems.push(format!("{}: {destination}", page.display()));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count > 1000, "{count} links");
}

/// Catches pages that are too long to be read.
#[test]
fn pages_are_short() {
    let pages = pages();
    let of_report = pages.iter().filter(|(path, _)| path.starts_with("report"));
    let long = of_report.filter(|(_, text)| text.len() > LONGEST);
    let long: Vec<_> = long.map(|(path, text)| (path.display().to_string(), text.len())).collect();
    assert_eq!(long, []);
    let first = &pages[Path::new("report/README.md")];
    assert!(first.len() <= FIRST, "report/README.md has {} bytes", first.len());
}

/// Catches a question without an answer on the first page and in the README, a sentence that the record cannot fill, and a table with more
/// columns than a person can read.
#[test]
fn the_first_page_answers_every_question() {
    let pages = pages();
    let first = &pages[Path::new("report/README.md")];
    for heading in ["Zheng et al. 2021", "Zheng et al. 2022", "Li et al. 2021"] {
        let section = first.split(&format!("## [{heading}](")).nth(1).expect("a section");
        let section = section.split("\n## ").next().unwrap_or_default();
        assert!(section.contains("n = ") && section.contains("Evidence: "), "{section}");
        assert!(section.contains("*Not tested here:*"), "{section}");
        assert!(pages[Path::new("README.md")].contains(&format!("- **[{heading}]")), "{heading}");
    }
    assert!(first.contains("## Which encoding should I use?\n"), "{first}");
    assert!(!first.contains(['{', '}']), "{first}");
    for (path, text) in pages.iter().filter(|(path, _)| path.starts_with("report")) {
        let is_ruler =
            |line: &&str| line.starts_with("| -") && line.chars().all(|c| "|-: ".contains(c));
        let widest = text.lines().filter(is_ruler).map(|line| line.matches('|').count() - 1).max();
        assert!(widest.unwrap_or(0) <= 8, "{}: {widest:?} columns", path.display());
    }
}
