//! Pictures of an item: the signal and the reconstructions of the methods, side by side.
//!
//! A grid is a table of HTML images, since the Markdown syntax for images cannot set a width.

mod layout;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Result;
use posenc_experiments::record::picture::{Role, name};
use posenc_experiments::record::{ALL_SIGNALS, NO_SIGNAL, Row};
use posenc_experiments::schema::Experiment;
use posenc_experiments::schema::display::PictureGrid;
use posenc_experiments::text::{MAX_RECORD_BYTES, read_bytes};

use super::Files;
use crate::Inputs;
use crate::markdown::{cell, paragraph, plain};
use crate::numbers::fixed;
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
        let is_shown = grid.selection(&run.pictures);
        let shown: Vec<&Row> = run.pictures.iter().filter(|own| is_shown(own)).collect();
        if shown.is_empty() {
            continue;
        }
        let id = view.experiment.id();
        let folder = match (run.side, inputs.record) {
            (Side::Reference, Some(record)) => format!("{}/{id}", record.trim_end_matches('/')),
            _ => {
                let folder = format!("pictures/{id}{}", run.side.ending());
                for file in shown.iter().map(|picture| &picture.unit) {
                    let bytes = read_bytes(&run.folder.join(file), MAX_RECORD_BYTES)?;
                    files.insert(PathBuf::from(format!("{folder}/{file}")), bytes);
                }
                folder
            }
        };
        let who = view.who(run.side).unwrap_or_default();
        let board = Board { experiment: view.experiment, run, grid, pictures: shown, folder };
        text.push_str(&board.title(who));
        text.push_str(&board.body());
    }
    if text.is_empty() {
        return Ok(format!("*No pictures yet: {}*\n\n", cell(&grid.title)));
    }
    Ok(text)
}

/// The pictures of one run that a grid shows.
struct Board<'a> {
    experiment: &'a Experiment,
    run: &'a Run,
    grid: &'a PictureGrid,
    pictures: Vec<&'a Row>,
    /// Where their files are, relative to the directory of the report.
    folder: String,
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
        let conditions = parts.join(" · ");
        let between = if who.is_empty() || conditions.is_empty() { "" } else { " – " };
        let remark = plain(&format!("{who}{between}{conditions}"));
        let remark = if remark.is_empty() { remark } else { format!("<br>*{remark}*") };
        format!("**{}**{remark}\n\n", cell(&self.grid.title))
    }

    fn body(&self) -> String {
        let signal = self.pictures.first().map_or("-", |picture| picture.signal.as_str());
        let mut text = self.tables();
        // An unnamed signal needs no heading.
        if signal != "-" {
            text.insert_str(0, &format!("{}\n\n", paragraph(signal)));
        }
        if self.pictures.iter().any(|p| self.number(p).is_some()) {
            let what = match &self.grid.caption {
                Some(metric) => metric.replace('_', " "),
                None => "PSNR of the picture".to_owned(),
            };
            text.push_str(&format!("<sub>numbers: {}</sub>\n\n", plain(&what)));
        }
        text
    }

    /// The number below a reconstruction and its unit.
    fn number(&self, picture: &Row) -> Option<String> {
        let shown = |value: f64, unit: &str| {
            let unit = if unit == "count" { "" } else { unit };
            format!("{} {unit}", fixed(value, 2)).trim_end().to_owned()
        };
        let Some(metric) = &self.grid.caption else {
            return (!picture.value.is_nan()).then(|| shown(picture.value, "dB"));
        };
        let is_reconstruction =
            name(&picture.metric).is_some_and(|n| n.role == Role::Reconstruction);
        // A unit with several pictures may have one number.
        let signals = [&*picture.signal, NO_SIGNAL, ALL_SIGNALS];
        let of_unit = |row: &&Row| {
            row.metric == *metric
                && row.x.is_none()
                && row.y.is_none()
                && row.seed == picture.seed
                && signals.contains(&&*row.signal)
        };
        let row = self.run.rows(&picture.group, &picture.method, None, None).find(of_unit)?;
        is_reconstruction.then(|| shown(row.value, &row.unit))
    }
}
