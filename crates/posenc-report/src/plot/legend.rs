//! The legend, in columns below the panels: it never covers data.

use std::collections::HashMap;

use anyhow::Result;

use super::canvas::{Anchor, Canvas, INK, Marker, SOFT, Stroke, text_width, wrapped};
use super::{Figure, MARGIN, Panel, PanelData, Series, TEXT, WIDTH};
use crate::colors::Rgb;

const ROW: f64 = 21.0;
/// Width of the sample before a name and the gap after it, in pixels.
const SAMPLE: f64 = 36.0;
/// Gap between two columns, in pixels.
const GAP: f64 = 22.0;
/// Maximum number of marks of a name that several embedders share.
const MARKS: usize = 6;
const MOST: usize = 40;

/// A sample before a name. A name that panels of different embedders share, such as that of a signal, has several
/// samples.
pub enum Sign {
    Curve { color: Rgb, marker: Marker, scattered: bool },
    Band,
    Runs,
    Dashed,
    Point(Marker),
    Published,
    More,
}

/// Names of curves in columns, and below them rows that explain the marks.
pub struct Legend {
    curves: Vec<(Vec<Sign>, String)>,
    samples: usize,
    marks: Vec<Vec<(Sign, String)>>,
    columns: usize,
    width: f64,
}

impl Legend {
    /// Collects every name once, in the order of the panels, if curves are `named` here, and explanations of the marks.
    pub fn new(figure: &Figure, named: bool) -> Legend {
        let mut curves: Vec<(Vec<Sign>, String)> = Vec::new();
        let all: Vec<&Series> = figure.panels.iter().filter_map(Panel::series).flatten().collect();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let is_dashes = |s: &Series| s.points.is_empty() && s.dashed_label == s.name;
        let is_named = |s: &Series| named && !is_dashes(s) && !s.name.is_empty();
        for s in all.iter().filter(|s| is_named(s)) {
            let mark = Sign::Curve { color: s.color, marker: s.marker, scattered: s.scattered };
            let same = |m: &Sign| matches!(m, Sign::Curve { color, .. } if *color == s.color);
            match places.get(s.name.as_str()).and_then(|place| curves.get_mut(*place)) {
                Some((marks, _)) if marks.iter().any(same) || marks.len() == MARKS => {}
                Some((marks, _)) => marks.push(mark),
                None => {
                    places.insert(&s.name, curves.len());
                    curves.push((vec![mark], s.name.clone()));
                }
            }
        }
        // A single name adds nothing to the title.
        if curves.len() == 1 {
            curves.clear();
        }
        if curves.len() > MOST {
            let more = curves.len() - MOST;
            curves.truncate(MOST);
            curves.push((vec![Sign::More], format!("and {more} more")));
        }
        let mut marks: Vec<(Sign, String)> = Vec::new();
        let mut explain = |mark: Sign, text: &str| {
            if !marks.iter().any(|(_, known)| known == text) {
                marks.push((mark, text.to_owned()));
            }
        };
        for s in all.iter().filter(|s| s.points.iter().any(|p| p.half_width.is_some())) {
            explain(Sign::Band, s.band);
        }
        if all.iter().any(|s| !s.runs.is_empty()) {
            explain(Sign::Runs, "single runs (too few for an interval)");
        }
        for s in all.iter().filter(|s| !s.dashed.is_empty() && (named || !is_dashes(s))) {
            explain(Sign::Dashed, &s.dashed_label);
        }
        for mark in all.iter().flat_map(|s| &s.marks) {
            explain(Sign::Point(mark.marker), &mark.label);
        }
        if all.iter().any(|s| !s.published.is_empty()) {
            marks.push((Sign::Published, "published".into()));
        }
        let rows = || {
            figure.panels.iter().flat_map(|p| match &p.data {
                PanelData::Dots(rows) => rows.as_slice(),
                _ => &[],
            })
        };
        let disc = (Sign::Point(Marker::Disc), "measured");
        let ring = (Sign::Point(Marker::Ring), "measured in a reduced run or on other data");
        for (is_shown, (sign, what)) in [
            (rows().any(|row| row.measured.is_some() && !row.reduced), disc),
            (rows().any(|row| row.measured.is_some() && row.reduced), ring),
            (rows().any(|row| row.published.is_some()), (Sign::Published, "published")),
        ] {
            if is_shown {
                marks.push((sign, format!("{what}, mean ± standard deviation")));
            }
        }
        let room = WIDTH - 2.0 * MARGIN;
        for (_, name) in &mut curves {
            *name = wrapped(name, TEXT, room / 2.0 - SAMPLE, 1).concat();
        }
        let widest = curves.iter().map(|(_, n)| text_width(n, TEXT)).fold(0.0, f64::max);
        let samples = curves.iter().map(|(marks, _)| marks.len()).max().unwrap_or(1);
        let width = samples as f64 * SAMPLE + widest + GAP;
        let most = ((room / width) as usize).clamp(1, curves.len().max(1));
        // Use only as many columns as the rows need, so that no column is nearly empty.
        let rows = curves.len().div_ceil(most).max(1);
        let columns = curves.len().div_ceil(rows).max(1);
        Legend { curves, samples, marks: in_rows(marks, room), columns, width }
    }

    fn rows(&self) -> usize {
        self.curves.len().div_ceil(self.columns)
    }

    /// Height in pixels; 0 without entries.
    pub fn height(&self) -> f64 {
        let rows = self.rows() + self.marks.len();
        if rows == 0 { 0.0 } else { rows as f64 * ROW + 6.0 }
    }

    /// Draws the legend in the middle of the figure, with its upper edge at `top`.
    pub fn draw(&self, canvas: &Canvas<'_>, top: f64) -> Result<()> {
        let whole = self.columns as f64 * self.width - GAP;
        let left = 0.5 * (WIDTH - whole);
        let rows = self.rows();
        for (i, (marks, name)) in self.curves.iter().enumerate() {
            // Down the columns, so that a sweep reads from light to dark.
            let x = left + (i / rows) as f64 * self.width;
            let y = top + 12.0 + (i % rows) as f64 * ROW;
            for (j, mark) in marks.iter().enumerate() {
                sample(canvas, (x + j as f64 * SAMPLE, y), mark)?;
            }
            label(canvas, (x + self.samples as f64 * SAMPLE, y), name)?;
        }
        for (i, row) in self.marks.iter().enumerate() {
            let whole: f64 = row.iter().map(|(_, name)| mark_width(name)).sum::<f64>() - GAP;
            let mut x = 0.5 * (WIDTH - whole);
            for (mark, name) in row {
                let y = top + 12.0 + (rows + i) as f64 * ROW;
                sample(canvas, (x, y), mark)?;
                label(canvas, (x + SAMPLE, y), name)?;
                x += mark_width(name);
            }
        }
        Ok(())
    }
}

fn mark_width(name: &str) -> f64 {
    SAMPLE + text_width(name, TEXT) + GAP
}

/// Arranges the marks in rows of at most `room` pixels.
fn in_rows(marks: Vec<(Sign, String)>, room: f64) -> Vec<Vec<(Sign, String)>> {
    let mut rows: Vec<Vec<(Sign, String)>> = Vec::new();
    let mut used = f64::INFINITY;
    for (mark, name) in marks {
        let name = wrapped(&name, TEXT, room - SAMPLE, 1).concat();
        let width = mark_width(&name);
        if used + width > room + GAP {
            rows.push(Vec::new());
            used = 0.0;
        }
        used += width;
        if let Some(row) = rows.last_mut() {
            row.push((mark, name));
        }
    }
    rows
}

fn label(canvas: &Canvas<'_>, (x, y): (f64, f64), name: &str) -> Result<()> {
    canvas.text(name, (x, y + 0.36 * TEXT), TEXT, Anchor::Start, INK, false)
}

fn sample(canvas: &Canvas<'_>, (x, y): (f64, f64), mark: &Sign) -> Result<()> {
    let (from, to, middle) = ((x, y), (x + 28.0, y), (x + 14.0, y));
    match mark {
        Sign::Curve { color, marker, scattered } => {
            if !scattered {
                canvas.line(&[from, to], *color, 1.0, Stroke::Solid(2.2))?;
            }
            let alone = *scattered && *marker == Marker::None;
            canvas.marker(middle, if alone { Marker::Disc } else { *marker }, 7.0, *color)
        }
        Sign::Band => {
            let edge = [(x, y - 6.0), (x + 28.0, y - 6.0), (x + 28.0, y + 6.0), (x, y + 6.0)];
            canvas.polygon(&edge, SOFT, 0.2)
        }
        Sign::Runs => canvas.line(&[from, to], SOFT, 0.6, Stroke::Solid(0.9)),
        Sign::Dashed => canvas.line(&[from, to], SOFT, 1.0, Stroke::Dashed),
        Sign::Point(marker) => canvas.marked(middle, *marker, 11.0, SOFT),
        Sign::Published => canvas.cross(middle, SOFT, false),
        Sign::More => Ok(()),
    }
}
