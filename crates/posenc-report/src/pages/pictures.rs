//! Pictures of an item: the signal and what the methods make of it, side by side.
//!
//! A grid is a table whose cells hold pictures at a width of their own, which Markdown's own
//! syntax for pictures cannot say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Result;
use posenc_experiments::record::GalleryPicture;
use posenc_experiments::record::picture::{Name, Part, Role, name};
use posenc_experiments::schema::Experiment;
use posenc_experiments::schema::display::{Layout, PictureGrid, Signals};

use super::item::Files;
use crate::Inputs;
use crate::markdown::{Align, Grid, attribute, cell, code, details, plain};
use crate::numbers::fixed;
use crate::records::{Run, Side};
use crate::view::View;

/// Widest that a picture is shown, in pixels of the page.
const WIDEST: usize = 256;
/// Widest that a strip of frames is shown.
const WIDEST_STRIP: usize = 640;
/// What a page is wide, about.
const PAGE: usize = 960;
/// Narrower than this a picture shows nothing.
const NARROWEST: usize = 96;

/// The pictures of each run that has some; their files go to `files` unless the report lies beside
/// the record.
pub fn render(
    inputs: &Inputs<'_>,
    view: &View<'_>,
    grid: &PictureGrid,
    files: &mut Files,
) -> Result<String> {
    let mut text = String::new();
    for run in view.runs() {
        let all: Vec<&GalleryPicture> = run.pictures.pictures.iter().collect();
        let shown: Vec<&GalleryPicture> =
            grid.select(&all).into_iter().filter_map(|i| all.get(i).copied()).collect();
        if shown.is_empty() {
            continue;
        }
        let mut paths = BTreeMap::new();
        for picture in &shown {
            let path = path(inputs, view.experiment, run, picture);
            if !is_in_place(inputs, run) {
                files.insert(PathBuf::from(&path), run.pictures.bytes(picture)?);
            }
            paths.insert(picture.file.as_str(), path);
        }
        let who = if view.sides.len() > 1 { run.side.name() } else { "" };
        let board = Board { experiment: view.experiment, grid, pictures: shown, paths };
        text.push_str(&board.title(who));
        text.push_str(&board.body(&all));
    }
    if text.is_empty() {
        return Ok(format!("*No pictures yet: {}*\n\n", cell(&grid.title)));
    }
    Ok(text)
}

/// Whether the report lies beside the record, whose files it then shows.
fn is_in_place(inputs: &Inputs<'_>, run: &Run) -> bool {
    run.side == Side::Reference && inputs.record.is_some()
}

/// Where a picture's file lies, seen from the report's directory.
fn path(
    inputs: &Inputs<'_>,
    experiment: &Experiment,
    run: &Run,
    picture: &GalleryPicture,
) -> String {
    let Experiment { paper, item, .. } = experiment;
    let file = &picture.file;
    match (run.side, inputs.record) {
        (Side::Reference, Some(record)) => {
            format!("{}/{paper}/{item}/{file}", record.trim_end_matches('/'))
        }
        (Side::Reference, None) => format!("pictures/{paper}/{item}/{file}"),
        (Side::Local, _) => format!("pictures/{paper}/{item}-local/{file}"),
    }
}

/// The pictures of one run that a grid shows.
struct Board<'a> {
    experiment: &'a Experiment,
    grid: &'a PictureGrid,
    pictures: Vec<&'a GalleryPicture>,
    /// By file name.
    paths: BTreeMap<&'a str, String>,
}

/// A line of pictures: what a group's methods, or what a method, gives.
#[derive(Clone, Copy)]
struct Line<'a> {
    group: &'a str,
    name: &'static Name,
}

impl<'a> Board<'a> {
    /// Title, whose run it is, what it was reduced by, and which data it shows.
    fn title(&self, who: &str) -> String {
        let mut reduced: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut data = BTreeSet::new();
        let mut groups = BTreeSet::new();
        for picture in &self.pictures {
            groups.insert(picture.group.as_str());
            let group = self.experiment.group(&picture.group);
            if let Some(what) = group.and_then(|g| g.reduced(picture.profile)) {
                reduced.entry(what).or_default().insert(&picture.group);
            }
            if picture.data != "-" {
                data.insert(picture.data.as_str());
            }
        }
        let mut parts: Vec<String> = Vec::new();
        for (what, of) in &reduced {
            let only = match of.len() == groups.len() {
                true => String::new(),
                false => format!(" ({})", of.iter().copied().collect::<Vec<_>>().join(", ")),
            };
            parts.push(format!("Reduced run: {what}{only}"));
        }
        if !data.is_empty() {
            parts.push(format!("Data: {}", data.into_iter().collect::<Vec<_>>().join("; ")));
        }
        if !who.is_empty() {
            let first = parts.first().cloned().unwrap_or_default();
            let joined =
                if first.is_empty() { who.to_owned() } else { format!("{who} – {first}") };
            parts.splice(..parts.len().min(1), [joined]);
        }
        let mut text = format!("**{}**", cell(&self.grid.title));
        if !parts.is_empty() {
            text.push_str(&format!("<br>*{}*", plain(&parts.join(" · "))));
        }
        text + "\n\n"
    }

    fn body(&self, all: &[&GalleryPicture]) -> String {
        let mut signals: Vec<&str> = Vec::new();
        for picture in &self.pictures {
            if !signals.contains(&picture.signal.as_str()) {
                signals.push(&picture.signal);
            }
        }
        let mut sections = Vec::new();
        for signal in &signals {
            let mut section = String::new();
            // Alone a signal without a name of its own needs none.
            if signals.len() > 1 || *signal != "-" {
                section.push_str(&format!("{}\n\n", plain(signal)));
            }
            section.push_str(&match self.grid.kind {
                Layout::Grid => self.tables(signal),
                Layout::Strip => self.strips(signal),
            });
            sections.push(section);
        }
        // Whoever asks for all gets the first open and may open the others.
        let open = if self.grid.signals == Signals::All { 1 } else { sections.len() };
        let folded = sections.split_off(open.min(sections.len()));
        let mut text = sections.concat();
        if !folded.is_empty() {
            // Markdown does not reach into a summary.
            let names: Vec<_> = signals.iter().skip(open).map(|s| attribute(s)).collect();
            let summary = format!("{} more: {}", folded.len(), names.join(", "));
            text.push_str(&details(&summary, &folded.concat()));
        }
        let notes = self.notes(&signals, all);
        if !notes.is_empty() {
            text.push_str(&format!("<sub>{}</sub>\n\n", notes.join(" · ")));
        }
        text
    }

    /// What the numbers are, how pixels were enlarged, and what was asked for but is not there.
    fn notes(&self, signals: &[&str], all: &[&GalleryPicture]) -> Vec<String> {
        let mut notes = Vec::new();
        if self.pictures.iter().any(|p| self.number(p).is_some()) {
            let what = match &self.grid.caption {
                Some(caption) if caption.metric != "psnr" => caption.metric.replace('_', " "),
                _ => "PSNR of the picture".to_owned(),
            };
            notes.push(format!("numbers: {}", plain(&what)));
        }
        let enlarged: BTreeSet<usize> =
            self.pictures.iter().map(|p| p.enlarged).filter(|n| *n > 1).collect();
        if !enlarged.is_empty() {
            let factors: Vec<_> = enlarged.iter().map(|n| format!("{n} × {n}")).collect();
            notes.push(format!(
                "small pictures are enlarged: {} for each pixel",
                factors.join(", ")
            ));
        }
        if let Signals::Names(names) = &self.grid.signals {
            let missing: Vec<_> =
                names.iter().filter(|n| !signals.contains(&n.as_str())).map(|n| code(n)).collect();
            if !missing.is_empty() {
                let there: BTreeSet<_> = all
                    .iter()
                    .filter(|p| self.grid.groups.contains(&p.group))
                    .map(|p| plain(&p.signal))
                    .collect();
                let there = there.into_iter().collect::<Vec<_>>().join(", ");
                notes.push(format!("no pictures of {}; there are: {there}", missing.join(", ")));
            }
        }
        notes
    }

    /// The number below a reconstruction, with its unit.
    fn number(&self, picture: &GalleryPicture) -> Option<String> {
        let digits = self.grid.caption.as_ref().map_or(2, |c| c.digits);
        let metric = self.grid.caption.as_ref().map_or("psnr", |c| c.metric.as_str());
        let shown = |value: f64, unit: &str| {
            let unit = if unit == "count" { "" } else { unit };
            format!("{} {unit}", fixed(value, digits)).trim_end().to_owned()
        };
        if metric == "psnr" {
            return picture.psnr.map(|value| shown(value, "dB"));
        }
        let is_reconstruction = name(&picture.name).is_some_and(|n| n.role == Role::Reconstruction);
        let value = picture.values.iter().find(|v| v.metric == metric)?;
        is_reconstruction.then(|| shown(value.value, &value.unit))
    }

    /// The picture of a line and a method; the first repetition's.
    fn find(&self, line: Line<'_>, method: &str, signal: &str) -> Option<&'a GalleryPicture> {
        let fits = |p: &&&GalleryPicture| {
            p.group == line.group
                && p.method == method
                && p.signal == signal
                && p.name == line.name.name
        };
        self.pictures.iter().copied().filter(|p| fits(&p)).min_by_key(|p| p.seed)
    }

    /// A picture that all methods of a group share; any of theirs.
    fn shared(&self, line: Line<'_>, signal: &str) -> Option<&'a GalleryPicture> {
        let fits = |p: &&&GalleryPicture| {
            p.group == line.group && p.signal == signal && p.name == line.name.name
        };
        self.pictures.iter().copied().filter(|p| fits(&p)).min_by_key(|p| p.seed)
    }

    /// Methods of a group that have pictures, in the order of the definition.
    fn methods(&self, group: &str) -> Vec<&'a str> {
        let mut methods = Vec::new();
        for picture in self.pictures.iter().filter(|p| p.group == group) {
            if !methods.contains(&picture.method.as_str()) {
                methods.push(&picture.method);
            }
        }
        methods
    }

    /// Groups that have pictures of a signal, in the order of the grid.
    fn groups(&self, signal: &str) -> Vec<&'a str> {
        let has = |g: &&str| self.pictures.iter().any(|p| p.group == **g && p.signal == signal);
        self.grid.groups.iter().map(String::as_str).filter(has).collect()
    }

    /// Names shown, as they are asked for: shared by all methods, or not.
    fn names(&self, shared: bool) -> Vec<&'static Name> {
        let names = self.grid.show.iter().filter_map(|n| name(n));
        names.filter(|n| n.is_shared() == shared).collect()
    }

    /// Roles of shared pictures and the parts that only shared pictures show.
    fn roles(&self) -> Vec<Role> {
        let mut roles = Vec::new();
        for name in self.names(true) {
            if !roles.contains(&name.role) {
                roles.push(name.role);
            }
        }
        roles
    }

    fn shared_name(&self, role: Role, part: Part) -> Option<&'static Name> {
        self.names(true).into_iter().find(|n| n.role == role && n.part == part)
    }

    /// A column per method. Groups whose methods have nothing in common get a table each.
    fn tables(&self, signal: &str) -> String {
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
        // Without pictures of the methods the shared ones make the rows.
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
        for method in methods {
            grid.column(plain(method), Align::Center);
        }
        let mut last: BTreeMap<(Role, Part), &str> = BTreeMap::new();
        for group in groups {
            for kind in &kinds {
                let line = Line { group, name: kind };
                let mut cells = Vec::new();
                for role in &roles {
                    let picture = self
                        .shared_name(*role, kind.part)
                        .and_then(|name| self.shared(Line { name, ..line }, signal));
                    // Not again what stands above.
                    let new = picture.filter(|p| {
                        last.insert((*role, kind.part), &p.file) != Some(p.file.as_str())
                    });
                    cells.push(new.map_or(String::new(), |p| self.image(p, width, true)));
                }
                for method in methods {
                    let picture = self.find(line, method, signal).filter(|_| !kind.is_shared());
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

    /// A row per method, the signal itself above: wide pictures below each other compare well.
    fn strips(&self, signal: &str) -> String {
        let mut parts: Vec<Part> = Vec::new();
        for name in self.grid.show.iter().filter_map(|n| name(n)) {
            if !parts.contains(&name.part) {
                parts.push(name.part);
            }
        }
        let mut grid = Grid::default();
        grid.column("", Align::Left);
        for part in &parts {
            grid.column(part_words(*part), Align::Center);
        }
        let width = |part: Part| match part {
            Part::Frames => WIDEST_STRIP,
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
                    let picture = name.and_then(|name| self.shared(Line { group, name }, signal));
                    let new = picture
                        .filter(|p| last.insert((role, *part), &p.file) != Some(p.file.as_str()));
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
                        let picture =
                            name.and_then(|name| self.find(Line { group, name }, method, signal));
                        if let (None, Some(p), Some(name)) = (&label, picture, name) {
                            let mut lines = vec![plain(method)];
                            lines.extend(several.then(|| plain(group)));
                            lines.extend((role == Role::Error).then(|| role_words(name)));
                            lines.extend(self.number(p));
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

    /// The picture, with its number below where there is room for one.
    fn image(&self, picture: &GalleryPicture, widest: usize, captioned: bool) -> String {
        let Some(path) = self.paths.get(picture.file.as_str()) else { return String::new() };
        let number = self.number(picture);
        let width = picture.shown_width().min(widest);
        let image = format!(
            "<img src=\"{}\" width=\"{width}\" alt=\"{}\">",
            attribute(path),
            attribute(&alt(picture, number.as_deref()))
        );
        match number.filter(|_| captioned) {
            Some(number) => format!("{image}<br>{number}"),
            None => image,
        }
    }
}

/// What a picture shows, for those who do not see it.
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

/// Width that so many pictures side by side are shown with.
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
    }
}
