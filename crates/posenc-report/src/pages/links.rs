//! Paths of pages, and links between them.
//!
//! Links in all texts of the report, including those of experiments, are relative to the report's directory:
//! `trading/table1.md`, `figures/trading/fig7-test.svg`, `../docs/METHODOLOGY.md`. [`relocated`] adapts them to the
//! page that contains the text, so that the same text can be part of several pages.

use std::path::Path;

use posenc_math::errata::Erratum;

use crate::markdown::slug;
use crate::math::pieces;

pub fn paper(key: &str) -> String {
    format!("{key}.md")
}

pub fn item(paper: &str, item: &str) -> String {
    format!("{}/{}.md", slug(paper), slug(item))
}

/// The anchor of a claim on the page of its item.
pub fn claim_anchor(item: &str, claim: &str) -> String {
    slug(&format!("{item}-{claim}"))
}

/// A claim on the page of its item.
pub fn claim(paper: &str, item: &str, claim: &str) -> String {
    format!("{}#{}", self::item(paper, item), claim_anchor(item, claim))
}

/// The page that lists the claims of a paper.
pub fn claims_of(paper: &str) -> String {
    format!("claims/{}.md", slug(paper))
}

/// The page that lists the statements of a paper and the claims that test them.
pub fn coverage_of(paper: &str) -> String {
    format!("coverage/{}.md", slug(paper))
}

pub fn errata_of(paper: &str) -> String {
    format!("errata/{}.md", slug(paper))
}

/// An erratum on the page of its paper.
pub fn erratum(erratum: &Erratum) -> String {
    format!("{}#{}", errata_of(erratum.paper()), slug(erratum.id))
}

/// Makes links and pictures of a page relative to the page's own directory. Code and formulas are not changed.
pub fn relocated(text: &str, page: &Path) -> String {
    let folder = page.parent().unwrap_or(Path::new("")).to_string_lossy();
    let name = page.file_name().unwrap_or_default().to_string_lossy();
    if folder.is_empty() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 64);
    for piece in pieces(text) {
        if piece.is_code || piece.math.is_some() {
            out.push_str(piece.raw);
        } else {
            relocate(piece.raw, &folder, &name, &mut out);
        }
    }
    out
}

/// Tags whose attributes are links.
const TAGS: [&str; 3] = ["<img ", "<a ", "<source "];

fn relocate(text: &str, folder: &str, name: &str, out: &mut String) {
    let mut rest = text;
    while let Some(place) = rest.find(['<', ']']) {
        let (before, here) = rest.split_at(place);
        out.push_str(before);
        if let Some(behind) = here.strip_prefix("](") {
            out.push_str("](");
            let end = behind.find([')', ' ', '\n']).unwrap_or(behind.len());
            // After an escaped bracket there is no link.
            let is_escaped = before.len() - before.trim_end_matches('\\').len();
            match is_escaped % 2 {
                0 => out.push_str(&seen_from(&behind[..end], folder, name)),
                _ => out.push_str(&behind[..end]),
            }
            rest = &behind[end..];
        } else if let Some(tag) = TAGS.iter().find(|tag| here.starts_with(**tag)) {
            let end = here.find('>').unwrap_or(here.len());
            out.push_str(tag);
            attributes(&here[tag.len()..end], folder, name, out);
            rest = &here[end..];
        } else {
            let first = here.chars().next().map_or(0, char::len_utf8);
            out.push_str(&here[..first]);
            rest = &here[first..];
        }
    }
    out.push_str(rest);
}

/// The attributes of a tag.
fn attributes(text: &str, folder: &str, name: &str, out: &mut String) {
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("=\"") {
        let (value, behind) = behind.split_once('"').unwrap_or((behind, ""));
        let key = before.rsplit(' ').next().unwrap_or(before);
        let is_link = matches!(key, "src" | "href" | "srcset");
        let value = if is_link { seen_from(value, folder, name) } else { value.to_owned() };
        out.push_str(&format!("{before}=\"{value}\""));
        rest = behind;
    }
    out.push_str(rest);
}

/// A destination relative to a page in `folder`.
fn seen_from(destination: &str, folder: &str, name: &str) -> String {
    let scheme = destination.split(['/', '#', '?']).next().unwrap_or_default();
    if destination.is_empty() || destination.starts_with(['#', '/']) || scheme.contains(':') {
        return destination.to_owned();
    }
    match destination.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) {
        None => format!("../{destination}"),
        // A link within the page needs no file name.
        Some(rest) => match rest.strip_prefix(name) {
            Some(place) if place.starts_with('#') => place.to_owned(),
            _ => rest.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(relocated(text, Path::new("trading/table1.md")), expected);
    }

    /// Catches links that are one folder off, and changes to other kinds of links.
    #[test]
    fn links_become_relative_to_their_page() {
        check("[a](trading/fig10.md) [b](lff/fig1.md#x)", "[a](fig10.md) [b](../lff/fig1.md#x)");
        check("[a](trading/table1.md#c) [b](trading.md)", "[a](#c) [b](../trading.md)");
        check("![a](figures/trading/a.svg)", "![a](../figures/trading/a.svg)");
        check("[a](../docs/b.md)", "[a](../../docs/b.md)");
        check("[`a`](claims.md) $[x](y)$ `[x](y)`", "[`a`](../claims.md) $[x](y)$ `[x](y)`");
        for same in ["[a](#b)", "[a](https://a.b/c)", "[a](mailto:a@b.c)", "\\](a.md)", "a] (b.md)"]
        {
            check(same, same);
        }
        check(
            "<img src=\"record/a.png\" width=\"8\" alt=\"a src b\"> <a id=\"x\"></a>",
            "<img src=\"../record/a.png\" width=\"8\" alt=\"a src b\"> <a id=\"x\"></a>",
        );
        check("<source srcset=\"figures/a.svg\">", "<source srcset=\"../figures/a.svg\">");
        assert_eq!(relocated("[a](b.md)", Path::new("README.md")), "[a](b.md)");
    }
}
