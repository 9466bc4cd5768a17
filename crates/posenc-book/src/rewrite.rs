//! Rewrites the contents of pages for the site: links within it, pictures that can be enlarged, formulas, and marks of
//! verdicts.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use posenc_experiments::verdict::Verdict;
use posenc_report::Report;

use crate::body;
use crate::html::{Tag, Token, between, escaped, tags, tokens};
use crate::links::{Destination, Links, html_path, relative};
use crate::math::Formulas;
use crate::pages::{Outline, Page};
use crate::pictures::{STEPS, Shrinking, is_drawing, shrunk, size};
use crate::repository::Repository;
use crate::{HEAVIEST, Site};

/// Maximum size of a page's own text and pictures, in bytes; the rest of [`HEAVIEST`] is for styles and scripts.
const BUDGET: u64 = HEAVIEST - 300_000;
/// Width of the text in pixels, and of pictures without a width.
const TEXT_WIDTH: u32 = 960;
/// Folder of the site for pictures that were made smaller.
const SMALLER: &str = "smaller";

pub fn rewrite(
    outline: &Outline,
    mut files: BTreeMap<String, Vec<u8>>,
    formulas: &Formulas,
    report: &Report,
    repository: &Repository,
) -> Result<Site> {
    let mut bodies = BTreeMap::new();
    for page in outline.pages() {
        let body = body::html(&page.text).with_context(|| format!("the page {}", page.path))?;
        bodies.insert(html_path(&page.path), body);
    }
    let links = Links::new(outline, &bodies, report, repository);
    let mut maker = Maker { links, formulas, files: BTreeMap::new(), remarks: Vec::new() };
    for page in outline.pages() {
        let path = html_path(&page.path);
        let html = files.get(&path).map(|b| String::from_utf8_lossy(b)).unwrap_or_default();
        let Some((head, _, foot)) = between(&html, "<main>", "</main>") else {
            bail!("mdBook's page {path} has no <main> element");
        };
        let body = bodies.get(&path).map(String::as_str).unwrap_or_default();
        let content = maker.content(page, &path, body);
        // Do not load the next page in advance.
        let foot = foot.replace("rel=\"next prefetch\"", "rel=\"next\"");
        let html = format!("{head}{content}{foot}");
        files.insert(path, html.into_bytes());
    }
    let sources: Vec<_> = maker.links.source_pages().collect();
    files.extend(sources);
    files.extend(maker.files);
    Ok(Site { files, remarks: maker.remarks })
}

/// State that all pages share while they are rewritten.
struct Maker<'a> {
    links: Links<'a>,
    formulas: &'a Formulas,
    /// Pictures that pages show or link to.
    files: BTreeMap<String, Vec<u8>>,
    remarks: Vec<String>,
}

impl Maker<'_> {
    /// The content of a page.
    fn content(&mut self, page: &Page, path: &str, content: &str) -> String {
        let shrinking = self.shrinking(page, content);
        let mut out = String::with_capacity(content.len() * 2);
        // The end tag of the open link, and the nesting depth of code.
        let mut link_end = "</a>";
        let (mut in_link, mut code) = (false, 0usize);
        for token in tokens(content) {
            let tag = match token {
                Token::Text(text) => {
                    let text = self.formulas.put_into(text);
                    out.push_str(&if code > 0 { text } else { marked(&text) });
                    continue;
                }
                Token::Tag(tag) => tag,
            };
            match (tag.name, tag.closes) {
                ("img", _) => out.push_str(&self.picture(page, path, tag, in_link, shrinking)),
                ("a", false) if tag.attribute("href").is_some() => {
                    in_link = true;
                    let (start, end) = self.link(page, path, tag);
                    link_end = end;
                    out.push_str(&start);
                }
                ("a", true) => {
                    out.push_str(if in_link { link_end } else { "</a>" });
                    (in_link, link_end) = (false, "</a>");
                }
                (name, closes) => {
                    if matches!(name, "code" | "pre") {
                        code = if closes { code.saturating_sub(1) } else { code + 1 };
                    }
                    out.push_str(&self.formulas.put_escaped(tag.raw));
                }
            }
        }
        out
    }

    /// The start and the end of a link.
    fn link(&mut self, page: &Page, path: &str, tag: Tag<'_>) -> (String, &'static str) {
        let href = tag.attribute("href").unwrap_or_default();
        match self.links.target(&page.document, &href) {
            Destination::Elsewhere => (self.formulas.put_escaped(tag.raw), "</a>"),
            Destination::File(file, place) => {
                self.take(&file);
                let href = relative(path, &file, place.as_deref());
                let attribute = |name: &str| {
                    tag.attribute(name).map(|value| format!(" {name}=\"{}\"", escaped(&value)))
                };
                let more: String = ["class", "id"].into_iter().filter_map(attribute).collect();
                (format!("<a href=\"{href}\"{more}>"), "</a>")
            }
            Destination::Outside => ("<span>".into(), "</span>"),
            Destination::Nowhere => {
                let document = &page.document;
                self.remarks
                    .push(format!("{document}: link {href} has no target in the repository"));
                ("<span>".into(), "</span>")
            }
        }
    }

    /// A picture within a link to its file; a script shows it enlarged.
    fn picture(
        &mut self,
        page: &Page,
        path: &str,
        tag: Tag<'_>,
        in_link: bool,
        shrinking: Option<Shrinking>,
    ) -> String {
        let src = tag.attribute("src").unwrap_or_default();
        let Some(name) = self.links.picture(&page.document, &src) else {
            let document = &page.document;
            self.remarks.push(format!(
                "{document}: picture {src} is neither in the report nor tracked by git in docs/"
            ));
            return String::new();
        };
        let Some(bytes) = self.links.bytes(&name) else { return String::new() };
        let natural = size(&name, bytes);
        let width = shown_width(tag, natural);
        let small = shrinking.and_then(|step| smaller_copy(&name, bytes, width, step));
        self.take(&name);
        let shown = match small {
            Some((file, bytes)) => {
                self.files.insert(file.clone(), bytes);
                file
            }
            None => name.clone(),
        };
        let alt = self.formulas.put_as_text(&tag.attribute("alt").unwrap_or_default());
        let mut img =
            format!("<img src=\"{}\" alt=\"{}\"", relative(path, &shown, None), escaped(&alt));
        if let Some((w, h)) = natural.filter(|(w, _)| *w > 0) {
            let height = (f64::from(h) * f64::from(width) / f64::from(w)).round();
            img.push_str(&format!(" width=\"{width}\" height=\"{height}\""));
        }
        img.push_str(" loading=\"lazy\" decoding=\"async\">");
        if in_link {
            return img;
        }
        let kind = if is_drawing(&name) { "plot" } else { "picture" };
        format!("<a class=\"zoom {kind}\" href=\"{}\">{img}</a>", relative(path, &name, None))
    }

    fn take(&mut self, name: &str) {
        if let Some(bytes) = self.links.bytes(name) {
            self.files.entry(name.to_owned()).or_insert_with(|| bytes.to_vec());
        }
    }

    /// The factor by which a page's pictures must shrink; `None` if they all fit.
    fn shrinking(&self, page: &Page, content: &str) -> Option<Shrinking> {
        // A picture that is shown at two widths has two copies.
        let mut pictures = BTreeSet::new();
        for tag in tags(content).filter(|tag| tag.name == "img") {
            let src = tag.attribute("src").unwrap_or_default();
            let Some(name) = self.links.picture(&page.document, &src) else { continue };
            let natural = self.links.bytes(&name).and_then(|bytes| size(&name, bytes));
            pictures.insert((name, shown_width(tag, natural)));
        }
        // Formulas and links make the text longer.
        let text = 2 * content.len();
        let fits = |step: Option<Shrinking>| {
            let loaded = |(name, width): &(String, u32)| {
                let bytes = self.links.bytes(name)?;
                let small = step.and_then(|step| smaller_copy(name, bytes, *width, step));
                let small = small.map(|(file, small)| (file, small.len()));
                Some(small.unwrap_or_else(|| (name.clone(), bytes.len())))
            };
            let files: BTreeMap<_, _> = pictures.iter().filter_map(loaded).collect();
            (text + files.values().sum::<usize>()) as u64 <= BUDGET
        };
        if fits(None) {
            return None;
        }
        STEPS.iter().find(|step| fits(Some(**step))).or(STEPS.last()).copied()
    }
}

/// The width at which a page shows a picture with this natural size.
fn shown_width(tag: Tag<'_>, natural: Option<(u32, u32)>) -> u32 {
    let asked = tag.attribute("width").and_then(|width| width.parse().ok());
    asked.or(natural.map(|(width, _)| width.min(TEXT_WIDTH))).unwrap_or(TEXT_WIDTH)
}

/// A smaller copy of a picture, after its path below the site; `None` as in [`shrunk`].
fn smaller_copy(
    name: &str,
    bytes: &[u8],
    width: u32,
    (density, quality): Shrinking,
) -> Option<(String, Vec<u8>)> {
    let small = shrunk(bytes, width, (density, quality))?;
    Some((format!("{SMALLER}/{name}-{width}-{density}-{quality}.jpg"), small))
}

/// Wraps the signs of verdicts in marks, which look the same with any font.
fn marked(text: &str) -> String {
    let mut out = text.to_owned();
    for verdict in Verdict::ALL {
        let sign = verdict.sign();
        // The other signs also occur in ordinary text.
        let has_color = matches!(
            verdict,
            Verdict::Reproduced
                | Verdict::Erratum
                | Verdict::NotReproduced
                | Verdict::NotComparable
        );
        if has_color && out.contains(sign) {
            let class = verdict.name().replace(' ', "-");
            let name = verdict.name();
            let mark = format!("<span class=\"mark {class}\" title=\"{name}\">{sign}</span>");
            out = out.replace(sign, &mark);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights;

    fn outline(text: &str) -> Outline {
        let page = |path: &str, document: &str, text: &str| Page {
            path: path.into(),
            title: path.into(),
            document: document.into(),
            text: text.into(),
        };
        let below = vec![page("p/fig1.md", "report/p/fig1.md", text)];
        let paper = page("p.md", "report/p.md", "# P\n\n[a](p/fig1.md) [b](#nothing)\n");
        let chapters = vec![crate::pages::Chapter { page: paper, below }];
        let parts = vec![crate::pages::Part { title: "Papers", chapters }];
        Outline { first: page("index.md", "report/README.md", "# Title\n"), parts }
    }

    fn made(text: &str, pictures: &[(&str, Vec<u8>)]) -> Site {
        let mut outline = outline(text);
        let files = pictures.iter().map(|(n, b)| ((*n).into(), b.clone())).collect();
        let report = Report { files, ..Report::default() };
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("data")).unwrap();
        std::fs::write(root.path().join("data/a.yaml"), "a: <1>\n").unwrap();
        std::fs::create_dir(root.path().join("docs")).unwrap();
        std::fs::write(root.path().join("docs/shot.svg"), "<svg></svg>").unwrap();
        crate::repository::tests::track(root.path());
        std::fs::write(root.path().join("data/notes.txt"), "private").unwrap();
        let repository = Repository::new(root.path());
        let mut formulas = Formulas::new().unwrap();
        for page in outline.pages_mut() {
            page.text = formulas.taken_from(&page.text);
        }
        let rendered = crate::render::render(&outline).unwrap();
        rewrite(&outline, rendered, &formulas, &report, &repository).unwrap()
    }

    fn page<'a>(site: &'a Site, name: &str) -> &'a str {
        std::str::from_utf8(&site.files[name]).unwrap()
    }

    /// Catches links to the paths of documents instead of pages, and pictures that are shown twice or cannot be opened.
    #[test]
    fn links_pictures_and_verdicts_are_rewritten() {
        let drawing = b"<svg width=\"480\" height=\"240\"></svg>".to_vec();
        let site = made(
            "# Figure 1. $\\sigma$\n\n<a id=\"fig1\"></a>\n\n![a $x$ \"b\"](../figures/p/f.svg)\n\n\
             [up](../README.md), [data](../../data/a.yaml), [folder](../../data/), [lost](gone.md), \
             [paper](https://example.org/x.md), ![shot](../../docs/shot.svg)\n\n| a | b |\n|---|---|\n| ✅ reproduced | `✅` $|x|$ |\n",
            &[("figures/p/f.svg", drawing)],
        );
        let item = page(&site, "p/fig1.html");
        let content = between(item, "<main>", "</main>").unwrap().1;
        let has = |part: &str| assert!(content.contains(part), "{part} in {content}");
        has(
            "<h1 id=\"figure-1-\"><a href=\"#figure-1-\" class=\"header\">Figure 1. <math><mi>σ</mi></math></a></h1>",
        );
        has(
            "<a class=\"zoom plot\" href=\"../figures/p/f.svg\"><img src=\"../figures/p/f.svg\" alt=\"a x &quot;b&quot;\" \
             width=\"480\" height=\"240\" loading=\"lazy\" decoding=\"async\"></a>",
        );
        has("<a href=\"../index.html\">up</a>");
        has("<a href=\"../source/data/a.yaml.html\">data</a>");
        has(
            "<span>folder</span>, <span>lost</span>, <a href=\"https://example.org/x.md\">paper</a>",
        );
        has("<a class=\"zoom plot\" href=\"../docs/shot.svg\">");
        assert_eq!(site.files["docs/shot.svg"], b"<svg></svg>");
        has("<td><span class=\"mark reproduced\" title=\"reproduced\">✅</span> reproduced</td>");
        has("<code>✅</code>");
        assert_eq!(content.matches("<img").count(), 2);
        assert!(page(&site, "source/data/a.yaml.html").contains("a: &lt;1&gt;"));
        let paper = page(&site, "p.html");
        assert!(paper.contains("<a href=\"p/fig1.html\">a</a> <span>b</span>"), "{paper}");
        assert_eq!(
            site.remarks,
            [
                "report/p.md: link #nothing has no target in the repository",
                "report/p/fig1.md: link gone.md has no target in the repository"
            ]
        );
        assert!(!item.contains("prefetch") && !item.contains("<label class=\"checkbox"));
    }

    /// Catches pages that are too heavy because of their pictures, and pictures that are shrunk without need.
    #[test]
    fn pictures_are_shrunk_only_on_heavy_pages() {
        let noise = crate::pictures::tests::noise(500, 400);
        let text = |n: usize| {
            let one =
                |i| format!("<img src=\"../pictures/p/{i}.png\" width=\"256\" alt=\"{i}\">\n");
            format!("# Title\n\n{}\n", (0..n).map(one).collect::<String>())
        };
        let names: Vec<_> = (0..4).map(|i| format!("pictures/p/{i}.png")).collect();
        let pictures: Vec<_> = names.iter().map(|n| (n.as_str(), noise.clone())).collect();
        assert!(noise.len() as u64 > BUDGET / 4 && (noise.len() as u64) < BUDGET / 2);
        let light = made(&text(2), &pictures);
        assert!(!light.files.keys().any(|name| name.starts_with(SMALLER)));
        let heavy = made(&text(4), &pictures);
        let smaller = heavy.files.keys().filter(|name| name.starts_with(SMALLER)).count();
        assert_eq!(smaller, 4);
        assert!(heavy.files.contains_key("pictures/p/3.png"), "the picture itself can be opened");
        for (name, weight) in weights(&heavy.files) {
            assert!(weight < HEAVIEST, "{name}: {weight}");
        }
    }

    /// Catches copies of one picture in two sizes that overwrite each other, and a page that is too heavy because only
    /// one of them counts.
    #[test]
    fn a_picture_in_two_sizes_has_two_copies() {
        let noise = crate::pictures::tests::noise(900, 700);
        let image = |i: usize, width: u32| {
            format!("<img src=\"../pictures/p/{i}.png\" width=\"{width}\" alt=\"{i}\">\n")
        };
        let images: String = (0..3).map(|i| image(i, 900) + &image(i, 90)).collect();
        let names: Vec<_> = (0..3).map(|i| format!("pictures/p/{i}.png")).collect();
        let pictures: Vec<_> = names.iter().map(|n| (n.as_str(), noise.clone())).collect();
        let site = made(&format!("# Title\n\n{images}\n"), &pictures);
        for name in names {
            let start = format!("{SMALLER}/{name}-");
            let copies = site.files.iter().filter(|(file, _)| file.starts_with(&start));
            let widths: BTreeSet<_> = copies.map(|(file, bytes)| size(file, bytes)).collect();
            assert_eq!(widths.len(), 2, "{name}: {widths:?}");
        }
        for (name, weight) in weights(&site.files) {
            assert!(weight < HEAVIEST, "{name}: {weight}");
        }
    }
}
