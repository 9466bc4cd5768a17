//! Layout of the pictures: one column or one row per method.

use std::collections::BTreeMap;

use posenc_experiments::record::GalleryPicture;
use posenc_experiments::record::picture::{Name, Part, Role, name};

use super::Board;
use crate::markdown::{Align, Grid, attribute, plain};
use crate::numbers::distinct;

/// Maximum display width of a picture in CSS pixels.
const WIDEST: usize = 256;
/// Maximum display width of a strip of frames.
const WIDEST_STRIP: usize = 640;
/// Approximate width of a page.
const PAGE: usize = 960;
/// Minimum useful width of a picture.
const NARROWEST: usize = 96;

/// A row of pictures with one group and one kind of picture.
#[derive(Clone, Copy)]
struct Line<'a> {
    group: &'a str,
    name: &'static Name,
}

impl<'a> Board<'a> {
    /// The picture of a row and a method, from the first repetition; without a method the one that all share.
    fn find(
        &self,
        line: Line<'_>,
        method: Option<&str>,
        signal: &str,
    ) -> Option<&'a GalleryPicture> {
        let fits = |p: &&GalleryPicture| {
            p.group == line.group
                && method.is_none_or(|method| p.method == method)
                && p.signal == signal
                && p.name == line.name.name
        };
        self.pictures.iter().copied().filter(fits).min_by_key(|p| p.seed)
    }

    /// Methods of a group with pictures, in definition order.
    fn methods(&self, group: &str) -> Vec<&'a str> {
        let own = self.pictures.iter().filter(|p| p.group == group);
        distinct(own.map(|p| p.method.as_str()))
    }

    /// Groups with pictures of a signal, in grid order.
    fn groups(&self, signal: &str) -> Vec<&'a str> {
        let has = |g: &&str| self.pictures.iter().any(|p| p.group == **g && p.signal == signal);
        self.grid.groups.iter().map(String::as_str).filter(has).collect()
    }

    /// The requested names: either those shared by all methods or the others.
    fn names(&self, shared: bool) -> Vec<&'static Name> {
        let names = self.grid.show.iter().filter_map(|n| name(n));
        names.filter(|n| n.is_shared() == shared).collect()
    }

    /// Roles of the displayed shared pictures.
    fn roles(&self) -> Vec<Role> {
        distinct(self.names(true).into_iter().map(|name| name.role))
    }

    fn shared_name(&self, role: Role, part: Part) -> Option<&'static Name> {
        self.names(true).into_iter().find(|n| n.role == role && n.part == part)
    }

    /// One column per method. Groups with no method in common get separate tables.
    pub fn tables(&self, signal: &str) -> String {
        let mut blocks: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
        for group in self.groups(signal) {
            let methods = self.methods(group);
            match blocks.last_mut() {
                Some((groups, columns)) if methods.iter().any(|m| columns.contains(m)) => {
                    groups.push(group);
                    columns.extend(
                        methods.into_iter().filter(|m| !columns.contains(m)).collect::<Vec<_>>(),
                    );
                }
                _ => blocks.push((vec![group], methods)),
            }
        }
        blocks.iter().map(|(groups, methods)| self.table(signal, groups, methods)).collect()
    }

    fn table(&self, signal: &str, groups: &[&str], methods: &[&str]) -> String {
        let own = self.names(false);
        let methods = if own.is_empty() { &[] } else { methods };
        let roles = self.roles();
        // If methods have no pictures, the shared pictures define the rows.
        let mut kinds: Vec<&'static Name> = own.clone();
        for name in self.names(true) {
            if kinds.iter().all(|k| k.part != name.part) {
                kinds.push(name);
            }
        }
        let named = self.grid.groups.len() > 1 || kinds.len() > 1;
        let width = shown_width(roles.len() + methods.len());
        let mut grid = Grid::default();
        if named {
            grid.column("", Align::Left);
        }
        for role in &roles {
            let label = self.names(true).iter().find(|n| n.role == *role).map(|n| role_words(n));
            grid.column(label.unwrap_or_default(), Align::Center);
        }
        grid.columns(methods.iter().map(|method| plain(method)), Align::Center);
        let mut last: BTreeMap<(Role, Part), &str> = BTreeMap::new();
        for group in groups {
            for kind in &kinds {
                let line = Line { group, name: kind };
                let mut cells = Vec::new();
                for role in &roles {
                    let picture = self
                        .shared_name(*role, kind.part)
                        .and_then(|name| self.find(Line { name, ..line }, None, signal));
                    // Do not repeat the picture of the row above.
                    let new = picture.filter(|p| {
                        last.insert((*role, kind.part), &p.blake3) != Some(p.blake3.as_str())
                    });
                    cells.push(new.map_or(String::new(), |p| self.image(p, width, true)));
                }
                for method in methods {
                    let picture =
                        self.find(line, Some(method), signal).filter(|_| !kind.is_shared());
                    cells.push(picture.map_or(String::new(), |p| self.image(p, width, true)));
                }
                if cells.iter().all(String::is_empty) {
                    continue;
                }
                if named {
                    let kind = (kinds.len() > 1).then(|| kind.words());
                    let group = (self.grid.groups.len() > 1).then(|| plain(group));
                    let label: Vec<_> = group.into_iter().chain(kind).collect();
                    cells.insert(0, label.join("<br>"));
                }
                grid.row(cells);
            }
        }
        if grid.is_empty() { String::new() } else { grid.render() }
    }

    /// One row per method below the signal itself, since wide pictures are easier to compare vertically.
    pub fn strips(&self, signal: &str) -> String {
        let parts = distinct(self.grid.show.iter().filter_map(|n| Some(name(n)?.part)));
        let mut grid = Grid::default();
        grid.column("", Align::Left).columns(parts.iter().map(|p| part_words(*p)), Align::Center);
        let width = |part: Part| match part {
            Part::Frames | Part::Boxes => WIDEST_STRIP,
            _ => WIDEST,
        };
        let several = self.grid.groups.len() > 1;
        let mut last: BTreeMap<(Role, Part), &str> = BTreeMap::new();
        for group in self.groups(signal) {
            for role in self.roles() {
                let mut label = String::new();
                let mut cells = Vec::new();
                for part in &parts {
                    let name = self.shared_name(role, *part);
                    let picture =
                        name.and_then(|name| self.find(Line { group, name }, None, signal));
                    let new = picture.filter(|p| {
                        last.insert((role, *part), &p.blake3) != Some(p.blake3.as_str())
                    });
                    if let (Some(name), Some(_)) = (name, new) {
                        label = role_words(name);
                    }
                    cells.push(new.map_or(String::new(), |p| self.image(p, width(*part), false)));
                }
                if cells.iter().any(|c| !c.is_empty()) {
                    cells.insert(0, label);
                    grid.row(cells);
                }
            }
            for method in self.methods(group) {
                for role in [Role::Reconstruction, Role::Error] {
                    let mut label = None;
                    let mut cells = Vec::new();
                    for part in &parts {
                        let own = self.names(false);
                        let name = own.into_iter().find(|n| n.role == role && n.part == *part);
                        let picture = name
                            .and_then(|name| self.find(Line { group, name }, Some(method), signal));
                        if let (None, Some(p), Some(name)) = (&label, picture, name) {
                            let mut lines = vec![plain(method)];
                            lines.extend(several.then(|| plain(group)));
                            lines.extend((role == Role::Error).then(|| role_words(name)));
                            lines.extend(self.number(p).map(|number| plain(&number)));
                            label = Some(lines.join("<br>"));
                        }
                        let image = picture.map(|p| self.image(p, width(*part), false));
                        cells.push(image.unwrap_or_default());
                    }
                    if let Some(label) = label {
                        cells.insert(0, label);
                        grid.row(cells);
                    }
                }
            }
        }
        if grid.is_empty() { String::new() } else { grid.render() }
    }

    /// The picture, with its number below if `captioned`.
    fn image(&self, picture: &GalleryPicture, widest: usize, captioned: bool) -> String {
        let Some(path) = self.paths.get(picture.blake3.as_str()) else { return String::new() };
        let number = self.number(picture);
        let width = picture.shown_width().min(widest);
        let image = format!(
            "<img src=\"{}\" width=\"{width}\" alt=\"{}\">",
            attribute(path),
            attribute(&alt(picture, number.as_deref()))
        );
        match number.filter(|_| captioned) {
            Some(number) => format!("{image}<br>{}", plain(&number)),
            None => image,
        }
    }
}

fn alt(picture: &GalleryPicture, number: Option<&str>) -> String {
    let Some(name) = name(&picture.name) else { return picture.name.clone() };
    let words = name.words();
    let mut letters = words.chars();
    let first: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let mut text = format!("{first}{}", letters.as_str());
    if picture.signal != "-" {
        text.push_str(&format!(" of {}", picture.signal));
    }
    if !name.is_shared() {
        text.push_str(&format!(" by {} ({})", picture.method, picture.group));
    }
    match number {
        Some(number) => format!("{text}: {number}"),
        None => text,
    }
}

/// Display width of pictures with `columns` pictures side by side.
fn shown_width(columns: usize) -> usize {
    (PAGE / columns.max(1)).clamp(NARROWEST, WIDEST)
}

fn role_words(name: &Name) -> String {
    Name { part: Part::Whole, ..*name }.words()
}

fn part_words(part: Part) -> &'static str {
    match part {
        Part::Whole => "",
        Part::Detail => "detail",
        Part::Frames => "frames",
        Part::Slice => "x–t slice",
        Part::Boxes => "boxes",
    }
}
