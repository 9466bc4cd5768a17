//! Paths of pages, and links between them.
//!
//! Links in all texts of the report, including those of experiments, are relative to the report's directory:
//! `trading/table1.md`, `figures/trading/fig7-test.svg`, `../docs/METHODOLOGY.md`. [`relocated`] adapts them to the
//! page that contains the text, so that the same text can be part of several pages.

use std::collections::BTreeMap;
use std::path::Path;

use posenc_experiments::schema::Experiment;
use posenc_experiments::schema::paper::{Item, Paper};
use posenc_math::errata::Erratum;

use crate::Inputs;
use crate::markdown::slug;
use crate::math::pieces;
use crate::records::Side;

/// The item of a paper's errata.
pub const ERRATA: &str = "errata";

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

/// The page of the item `errata` of a paper.
pub fn errata_of(paper: &str) -> String {
    item(paper, ERRATA)
}

/// An erratum on the page of its paper.
pub fn erratum(erratum: &Erratum) -> String {
    format!("{}#{}", errata_of(erratum.paper()), slug(erratum.id))
}

/// A plot or comparison of an item, drawn for a run.
pub fn figure(of: &Experiment, id: &str, side: Side) -> String {
    format!("figures/{}/{}-{id}{}.svg", of.paper, of.item, side.ending())
}

/// The values of an item's record as a link, if the report links to records.
pub fn values(inputs: &Inputs<'_>, paper: &str, item: &str) -> Option<String> {
    let repository = inputs.repository.trim_end_matches('/');
    let folder = match inputs.record {
        Some(record) => record.trim_end_matches('/').to_owned(),
        None if repository.is_empty() => return None,
        None => format!("{repository}/report/record"),
    };
    Some(format!("{folder}/{paper}/{item}/values.csv"))
}

/// Items that are on the page of another one: the page that an item would have, the one that shows it, and the prefix of its anchors.
pub struct Moved(BTreeMap<String, (String, String)>);

impl Moved {
    pub fn of(papers: &[Paper]) -> Moved {
        let all = papers.iter().flat_map(|paper| paper.items.iter().map(move |own| (paper, own)));
        let moved = |(paper, own): (&Paper, &Item)| {
            let (host, host_item) = own.page.as_ref()?.split_once('/')?;
            papers.iter().find(|paper| paper.key == host)?;
            let to = (item(host, host_item), slug(&paper.key));
            Some((item(&paper.key, &own.item), to))
        };
        Moved(all.filter_map(moved).collect())
    }

    /// The page that shows an item in place of its own, and the prefix of its anchors there.
    pub fn page(&self, page: &str) -> Option<&(String, String)> {
        self.0.get(page)
    }

    /// The place to which a link to an item leads.
    pub fn link(&self, destination: &str) -> String {
        let (page, anchor) = destination.split_once('#').unwrap_or((destination, ""));
        let Some((host, prefix)) = self.page(page) else { return destination.to_owned() };
        let name = page.rsplit('/').next().unwrap_or(page).trim_end_matches(".md");
        let anchor = if anchor.is_empty() { name } else { anchor };
        format!("{host}#{prefix}-{anchor}")
    }

    /// The text of an item's page as a section of the page that shows it.
    pub fn section(&self, page: &str, text: &str, cited: &str) -> String {
        let prefix = self.page(page).map(|(_, prefix)| prefix.as_str()).unwrap_or_default();
        let (mut out, mut is_code) = (String::new(), false);
        for line in text.lines() {
            is_code ^= ["```", "~~~"].iter().any(|fence| line.trim_start().starts_with(fence));
            if line.starts_with('#') && !is_code {
                out.push('#');
            }
            out.push_str(&line.replace("<a id=\"", &format!("<a id=\"{prefix}-")));
            out.push('\n');
        }
        let anchor = self.link(page);
        let anchor = anchor.split_once('#').map_or("", |(_, anchor)| anchor);
        let out = out.replacen("## ", &format!("## {cited}: "), 1);
        format!("<a id=\"{anchor}\"></a>\n\n{}", out.trim_end())
    }
}

/// Makes links and pictures of a page relative to the page's own directory. Code and formulas are not changed.
pub fn relocated(text: &str, page: &Path, moved: &Moved) -> String {
    let folder = page.parent().unwrap_or(Path::new("")).to_string_lossy();
    let name = page.file_name().unwrap_or_default().to_string_lossy();
    with_destinations(text, &|destination| {
        let destination = moved.link(destination);
        if folder.is_empty() {
            return destination;
        }
        let own = destination.strip_prefix(&*folder).and_then(|rest| rest.strip_prefix('/'));
        match own.map(|rest| (rest, rest.strip_prefix(&*name))) {
            None => format!("../{destination}"),
            // A link within the page needs no file name.
            Some((_, Some(place))) if place.starts_with('#') => place.to_owned(),
            Some((rest, _)) => rest.to_owned(),
        }
    })
}

/// The links of a text of the report as seen from the repository's root.
pub fn from_root(text: &str) -> String {
    with_destinations(text, &|destination| format!("report/{destination}"))
}

/// Start of a picture in HTML, up to its path.
const IMAGE: &str = "<img src=\"";

/// Replaces relative destinations of links and pictures outside of code and formulas.
fn with_destinations(text: &str, change: &dyn Fn(&str) -> String) -> String {
    let change = |destination: &str| {
        let scheme = destination.split(['/', '#', '?']).next().unwrap_or_default();
        let is_relative = !destination.starts_with(['#', '/']) && !scheme.contains(':');
        match is_relative && !destination.is_empty() {
            true => change(destination),
            false => destination.to_owned(),
        }
    };
    let mut out = String::with_capacity(text.len() + 64);
    for piece in pieces(text) {
        if piece.is_code || piece.math.is_some() {
            out.push_str(piece.raw);
        } else {
            replace(piece.raw, &change, &mut out);
        }
    }
    out
}

fn replace(text: &str, change: &dyn Fn(&str) -> String, out: &mut String) {
    let mut rest = text;
    while let Some(place) = rest.find(['<', ']']) {
        let (before, here) = rest.split_at(place);
        // After an escaped bracket there is no link.
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        let (start, ends): (&str, &[char]) = match here {
            _ if here.starts_with("](") && backslashes % 2 == 0 => ("](", &[')', ' ', '\n']),
            _ if here.starts_with(IMAGE) => (IMAGE, &['"']),
            _ => (&here[..1], &[]),
        };
        let behind = &here[start.len()..];
        let end = if ends.is_empty() { 0 } else { behind.find(ends).unwrap_or(behind.len()) };
        out.extend([before, start, &change(&behind[..end])]);
        rest = &behind[end..];
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let moved =
            Moved([("trading/fig4.md".into(), ("lff/fig4.md".into(), "trading".into()))].into());
        assert_eq!(relocated(text, Path::new("trading/table1.md"), &moved), expected);
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
        check(
            "[a](trading/fig4.md) [b](trading/fig4.md#c)",
            "[a](../lff/fig4.md#trading-fig4) [b](../lff/fig4.md#trading-c)",
        );
        assert_eq!(relocated("[a](b.md)", Path::new("README.md"), &Moved::of(&[])), "[a](b.md)");
        assert_eq!(from_root("[a](b.md) [c](https://d.e)"), "[a](report/b.md) [c](https://d.e)");
    }
}
