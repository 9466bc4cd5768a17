//! Layout of the pictures: one column or one row per method.

use std::collections::BTreeMap;

use posenc_experiments::record::Row;
use posenc_experiments::record::picture::{Name, Role, name};
use posenc_experiments::schema::display::Layout;

use super::Board;
use crate::markdown::{Align, Grid, attribute, plain};
use crate::numbers::distinct;

/// Maximum display width of a picture in CSS pixels.
const WIDEST: usize = 256;
/// Maximum display width of a picture with a row of its own.
const WIDEST_STRIP: usize = 640;
/// Approximate width of a page.
const PAGE: usize = 960;
/// Minimum useful width of a picture.
const NARROWEST: usize = 96;

impl<'a> Board<'a> {
    /// The picture of a group with this name, from the first repetition; without a method the one that all share.
    fn find(&self, group: &str, name: &Name, method: Option<&str>) -> Option<&'a Row> {
        let fits = |p: &&Row| {
            p.group == group && p.metric == name.name && method.is_none_or(|own| p.method == own)
        };
        self.pictures.iter().copied().filter(fits).min_by_key(|p| p.seed)
    }

    /// Methods of a group with pictures, in definition order.
    fn methods(&self, group: &str) -> Vec<&'a str> {
        let own = self.pictures.iter().filter(|p| p.group == group);
        distinct(own.map(|p| p.method.as_str()))
    }

    /// The pictures as tables. Groups with no method in common get separate ones.
    pub fn tables(&self) -> String {
        let mut blocks: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
        for group in &self.grid.groups {
            let methods = self.methods(group);
            match blocks.last_mut() {
                _ if methods.is_empty() => {}
                Some((groups, all)) if methods.iter().any(|m| all.contains(m)) => {
                    groups.push(group);
                    *all = distinct(all.iter().copied().chain(methods));
                }
                _ => blocks.push((vec![group], methods)),
            }
        }
        blocks.iter().map(|(groups, methods)| self.table(groups, methods)).collect()
    }

    /// A row for each group and kind of picture, with the signal and then the methods; in a strip, these are the rows.
    fn table(&self, groups: &[&str], methods: &[&str]) -> String {
        let is_strip = self.grid.kind == Layout::Strip;
        let names = self.grid.show.iter().filter_map(|n| name(n));
        let (shared, mut kinds): (Vec<&Name>, Vec<&Name>) =
            names.partition(|n| n.role == Role::Truth);
        let methods = if kinds.is_empty() { &[] } else { methods };
        // Methods have no pictures of these parts.
        for name in &shared {
            if kinds.iter().all(|kind| kind.part != name.part) {
                kinds.push(name);
            }
        }
        let truth = (!shared.is_empty()).then(|| "ground truth".to_owned());
        let columns: Vec<String> =
            truth.into_iter().chain(methods.iter().map(|method| plain(method))).collect();
        let width = match is_strip {
            true => WIDEST_STRIP,
            false => (PAGE / columns.len().max(1)).clamp(NARROWEST, WIDEST),
        };
        let (mut labels, mut rows) = (Vec::new(), Vec::new());
        let mut last: BTreeMap<&str, &str> = BTreeMap::new();
        for group in groups {
            for kind in &kinds {
                let mut cells = Vec::new();
                if !shared.is_empty() {
                    let name = shared.iter().find(|name| name.part == kind.part);
                    let picture = name.and_then(|name| self.find(group, name, None));
                    // Do not repeat the picture of the row above.
                    let is_old = picture
                        .is_some_and(|p| last.insert(kind.part, &p.unit) == Some(p.unit.as_str()));
                    cells.push(picture.filter(|_| !is_old));
                }
                for method in methods {
                    let picture = self.find(group, kind, Some(method));
                    cells.push(picture.filter(|_| kind.role != Role::Truth));
                }
                if cells.iter().all(Option::is_none) {
                    continue;
                }
                let kind = (kinds.len() > 1).then(|| kind.words());
                let group = (self.grid.groups.len() > 1).then(|| plain(group));
                labels.push(group.into_iter().chain(kind).collect::<Vec<_>>().join("<br>"));
                let image = |p: Option<_>| p.map_or(String::new(), |p| self.image(p, width));
                rows.push(cells.into_iter().map(image).collect::<Vec<_>>());
            }
        }
        let (heads, labels, rows) = match is_strip {
            false => (columns, labels, rows),
            true => {
                let of = |i| rows.iter().filter_map(|row| row.get(i)).cloned().collect();
                let rows = (0..columns.len()).map(of).collect();
                (labels, columns, rows)
            }
        };
        let is_labeled = labels.iter().any(|label| !label.is_empty());
        let mut grid = Grid::default();
        if is_labeled {
            grid.column("", Align::Left);
        }
        grid.columns(heads, Align::Center);
        for (label, row) in labels.into_iter().zip(rows) {
            grid.row(Some(label).filter(|_| is_labeled).into_iter().chain(row).collect());
        }
        if grid.is_empty() { String::new() } else { grid.render() }
    }

    /// The picture with its number below.
    fn image(&self, picture: &Row, widest: usize) -> String {
        let path = format!("{}/{}", self.folder, picture.unit);
        let number = self.number(picture);
        let width = picture.x.unwrap_or(0.0).min(widest as f64);
        let image = format!(
            "<img src=\"{}\" width=\"{width}\" alt=\"{}\">",
            attribute(&path),
            attribute(&alt(picture, number.as_deref()))
        );
        match number {
            Some(number) => format!("{image}<br>{}", plain(&number)),
            None => image,
        }
    }
}

fn alt(picture: &Row, number: Option<&str>) -> String {
    let Some(name) = name(&picture.metric) else { return picture.metric.clone() };
    let words = name.words();
    let mut letters = words.chars();
    let first: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let mut text = format!("{first}{}", letters.as_str());
    if picture.signal != "-" {
        text.push_str(&format!(" of {}", picture.signal));
    }
    if name.role != Role::Truth {
        text.push_str(&format!(" by {} ({})", picture.method, picture.group));
    }
    match number {
        Some(number) => format!("{text}: {number}"),
        None => text,
    }
}
