//! Published against measured values, one panel per table and one line per row.

use anyhow::Result;

use super::canvas::{
    self, Anchor, Canvas, FRAME, GRID, INK, Marker, SOFT, Stroke, text_width, wrapped,
};
use super::scale::{AxisSpec, Scale};
use super::{MARGIN, TEXT, TITLE, WIDTH};
use crate::colors::Rgb;

/// Height of a line, in pixels.
const LINE: f64 = 17.0;
const GAP: f64 = 22.0;
const COLUMNS: usize = 2;

/// How a measured value compares with the published protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The published protocol on the paper's data.
    Full,
    Reduced,
    Other,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Full, Kind::Reduced, Kind::Other];

    fn look(self) -> (Marker, Rgb, &'static str) {
        match self {
            Kind::Full => (Marker::Disc, Rgb(9, 105, 218), "measured, full protocol"),
            Kind::Reduced => (Marker::Diamond, Rgb(191, 87, 0), "measured, reduced run"),
            Kind::Other => (Marker::Square, Rgb(110, 119, 129), "measured on other data"),
        }
    }
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Dot {
    pub label: String,
    pub published: f64,
    pub measured: Option<(f64, Kind)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DotPanel {
    pub title: String,
    /// Label below the axis, with its unit.
    pub axis: String,
    /// Groups of rows, with their headings.
    pub groups: Vec<(String, Vec<Dot>)>,
}

impl DotPanel {
    fn height(&self) -> f64 {
        let lines: usize = self.groups.iter().map(|(_, dots)| 1 + dots.len()).sum();
        24.0 + LINE * lines as f64 + 44.0
    }
}

pub fn svg(panels: &[DotPanel], alt: &str) -> Result<String> {
    let mut columns = vec![(Vec::new(), 0.0f64); COLUMNS];
    for panel in panels {
        // The shortest column takes the next panel.
        let Some((own, height)) = columns.iter_mut().min_by(|a, b| a.1.total_cmp(&b.1)) else {
            continue;
        };
        own.push((panel, *height));
        *height += panel.height() + GAP;
    }
    let tallest = columns.iter().map(|(_, height)| *height).fold(0.0, f64::max);
    let head = MARGIN + 30.0;
    let width = (WIDTH - 2.0 * MARGIN - GAP * (COLUMNS - 1) as f64) / COLUMNS as f64;
    canvas::draw(WIDTH, head + tallest + MARGIN - GAP, alt, |canvas| {
        legend(canvas, panels)?;
        for (number, (own, _)) in columns.iter().enumerate() {
            let left = MARGIN + number as f64 * (width + GAP);
            for (panel, top) in own {
                draw(canvas, panel, (left, head + top), width)?;
            }
        }
        Ok(())
    })
}

fn legend(canvas: &Canvas<'_>, panels: &[DotPanel]) -> Result<()> {
    let dots = || panels.iter().flat_map(|p| &p.groups).flat_map(|(_, dots)| dots);
    let has = |kind: &Kind| dots().any(|dot| dot.measured.is_some_and(|(_, k)| k == *kind));
    let mut entries = vec![(Marker::Ring, INK, "published")];
    entries.extend(Kind::ALL.iter().filter(|kind| has(kind)).map(|kind| kind.look()));
    let (mut x, y) = (MARGIN + 6.0, MARGIN + 10.0);
    for (marker, ink, words) in entries {
        canvas.marker((x, y - 4.5), marker, 9.0, ink)?;
        canvas.text(words, (x + 11.0, y), TEXT, Anchor::Start, INK, false)?;
        x += 34.0 + 0.86 * text_width(words, TEXT);
    }
    Ok(())
}

fn draw(canvas: &Canvas<'_>, panel: &DotPanel, (left, top): (f64, f64), width: f64) -> Result<()> {
    let dots = || panel.groups.iter().flat_map(|(_, dots)| dots);
    let title = wrapped(&panel.title, TITLE, width, 1).concat();
    canvas.text(&title, (left, top + 14.0), TITLE, Anchor::Start, INK, true)?;
    let longest = dots().map(|dot| 0.86 * text_width(&dot.label, TEXT)).fold(0.0, f64::max);
    let from = left + 18.0 + longest.min(0.42 * width);
    let to = left + width - 8.0;
    let values = dots().flat_map(|d| std::iter::once(d.published).chain(d.measured.map(|m| m.0)));
    let spec = AxisSpec { label: panel.axis.clone(), ..AxisSpec::default() };
    let scale = Scale::new(&spec, values, false);
    let at = |value: f64| scale.place(value).map(|share| from + share * (to - from));
    let lines: usize = panel.groups.iter().map(|(_, dots)| 1 + dots.len()).sum();
    let (first, last) = (top + 24.0, top + 24.0 + LINE * lines as f64);
    for tick in scale.ticks(5) {
        let x = from + tick.at * (to - from);
        canvas.line(&[(x, first), (x, last)], GRID, 1.0, Stroke::Solid(0.8))?;
        canvas.text(&tick.label, (x, last + 15.0), TEXT, Anchor::Middle, SOFT, false)?;
    }
    canvas.line(&[(from, last), (to, last)], FRAME, 1.0, Stroke::Solid(1.0))?;
    let middle = 0.5 * (from + to);
    canvas.text(&panel.axis, (middle, last + 32.0), TEXT, Anchor::Middle, SOFT, false)?;
    let mut y = first;
    for (heading, dots) in &panel.groups {
        let words = wrapped(heading, TEXT, width, 1).concat();
        canvas.text(&words, (left, y + 13.0), TEXT, Anchor::Start, SOFT, true)?;
        y += LINE;
        for dot in dots {
            let words = wrapped(&dot.label, TEXT, 1.2 * (from - left - 14.0), 1).concat();
            canvas.text(&words, (from - 8.0, y + 13.0), TEXT, Anchor::End, INK, false)?;
            let height = y + 0.5 * LINE;
            let published = at(dot.published);
            let measured = dot.measured.and_then(|(value, kind)| Some((at(value)?, kind)));
            if let (Some(a), Some((b, _))) = (published, measured) {
                canvas.line(&[(a, height), (b, height)], FRAME, 1.0, Stroke::Solid(1.4))?;
            }
            if let Some(x) = published {
                canvas.marker((x, height), Marker::Ring, 10.0, INK)?;
            }
            if let Some((x, kind)) = measured {
                let (marker, ink, _) = kind.look();
                canvas.marker((x, height), marker, 8.0, ink)?;
            }
            y += LINE;
        }
    }
    Ok(())
}
