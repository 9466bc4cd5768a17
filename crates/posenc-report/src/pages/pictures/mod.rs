//! Pictures of an item: the signal and the reconstructions of the methods, side by side.
//!
//! A grid is a table of HTML images, since the Markdown syntax for images cannot set a width.

mod layout;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Result;
use posenc_experiments::record::GalleryPicture;
use posenc_experiments::record::picture::{Role, name};
use posenc_experiments::schema::Experiment;
use posenc_experiments::schema::display::{Layout, PictureGrid, Signals};

use super::Files;
use crate::Inputs;
use crate::markdown::{attribute, cell, code, details, paragraph, plain};
use crate::numbers::{distinct, fixed};
use crate::records::{Run, Side};
use crate::view::View;

/// Renders the pictures of each run; adds their files to `files` unless the report refers to the files
/// of the record.
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
            let is_in_record = run.side == Side::Reference && inputs.record.is_some();
            if !is_in_record {
                files.insert(PathBuf::from(&path), run.pictures.bytes(picture)?);
            }
            paths.insert(picture.blake3.as_str(), path);
        }
        let who = view.who(run.side).unwrap_or_default();
        let board = Board { experiment: view.experiment, grid, pictures: shown, paths };
        text.push_str(&board.title(who));
        text.push_str(&board.body(&all));
    }
    if text.is_empty() {
        return Ok(format!("*No pictures yet: {}*\n\n", cell(&grid.title)));
    }
    Ok(text)
}

/// Path of a picture file, relative to the directory of the report.
fn path(
    inputs: &Inputs<'_>,
    experiment: &Experiment,
    run: &Run,
    picture: &GalleryPicture,
) -> String {
    let Experiment { paper, item, .. } = experiment;
    let file = picture.file();
    match (run.side, inputs.record) {
        (Side::Reference, Some(record)) => {
            format!("{}/{paper}/{item}/{file}", record.trim_end_matches('/'))
        }
        _ => format!("pictures/{paper}/{item}{}/{file}", run.side.ending()),
    }
}

/// The pictures of one run that a grid shows.
struct Board<'a> {
    experiment: &'a Experiment,
    grid: &'a PictureGrid,
    pictures: Vec<&'a GalleryPicture>,
    paths: BTreeMap<&'a str, String>,
}

impl<'a> Board<'a> {
    /// Title, side of the run, how the run was reduced, and its data.
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
        let signals = distinct(self.pictures.iter().map(|picture| picture.signal.as_str()));
        let mut sections = Vec::new();
        for signal in &signals {
            let mut section = String::new();
            // A single unnamed signal needs no heading.
            if signals.len() > 1 || *signal != "-" {
                section.push_str(&format!("{}\n\n", paragraph(signal)));
            }
            section.push_str(&match self.grid.kind {
                Layout::Grid => self.tables(signal),
                Layout::Strip => self.strips(signal),
            });
            sections.push(section);
        }
        // With all signals, only the first is open; the others are folded.
        let open = if self.grid.signals == Signals::All { 1 } else { sections.len() };
        let folded = sections.split_off(open.min(sections.len()));
        let mut text = sections.concat();
        if !folded.is_empty() {
            // Markdown is not rendered inside a summary.
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

    /// Notes on the numbers, on enlarged pixels, and on requested pictures that are missing.
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
            notes.push(format!("small pictures are enlarged ({} per pixel)", factors.join(", ")));
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
                notes.push(format!("no pictures of {}; available: {there}", missing.join(", ")));
            }
        }
        notes
    }

    /// The number below a reconstruction and its unit.
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
}
