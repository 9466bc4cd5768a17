//! Figures as SVG, drawn with plotters.
//!
//! [`FigureSource`] converts rows of a record to a [`Figure`] of numbers and names. Numbers never cause errors: values that cannot be
//! drawn are left out, and the panel reports them. A new kind of panel has its own file, like `dots`, and is named in [`PanelData`].

mod axes;
pub mod canvas;
mod clip;
mod dots;
mod heatmap;
mod legend;
mod lines;
mod names;
mod scale;
mod series;
mod svg;
#[cfg(test)]
mod tests;

use anyhow::Result;
use canvas::{Anchor, Canvas, INK, Marker, SOFT, text_width, wrapped};
use dots::DotRow;
pub use heatmap::Heatmap;
pub use posenc_experiments::schema::display::Labels;
use posenc_experiments::schema::display::{self, PanelKind};
pub use scale::AxisSpec;
pub use series::FigureSource;
pub use svg::STYLE;

use crate::colors::Rgb;

/// Width of every figure, in pixels: GitHub shows about 830.
pub const WIDTH: f64 = 900.0;
/// Margin between the card's edge and its content, in pixels.
const MARGIN: f64 = 18.0;
const TITLE: f64 = 15.0;
/// Size of all other text, in pixels.
const TEXT: f64 = 13.0;

#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub alt: String,
    /// A line above the panels that names the run and the data.
    pub heading: String,
    pub labels: Labels,
    /// The panels, left to right and then down; one to six.
    pub panels: Vec<Panel>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    pub title: String,
    pub x: AxisSpec,
    pub y: AxisSpec,
    pub data: PanelData,
}

/// What a panel shows, by the kinds of drawings.
#[derive(Debug, Clone, PartialEq)]
pub enum PanelData {
    Series(Vec<Series>),
    /// The maps of a figure with equal labels share one color scale.
    Heatmap(Heatmap),
    Dots(Vec<DotRow>),
}

impl PanelData {
    fn read(
        source: FigureSource<'_>,
        panel: &display::Panel,
        look: &series::Look<'_>,
    ) -> Result<Self> {
        Ok(match panel.kind {
            PanelKind::Heatmap => PanelData::Heatmap(heatmap::read(source, panel)?),
            PanelKind::Dots => PanelData::Dots(dots::read(source, panel, look)),
            PanelKind::Lines | PanelKind::Points | PanelKind::Radial => {
                PanelData::Series(source.series(panel, look)?)
            }
        })
    }

    /// Draws the data with their axes in `cell` and returns the frame of the axes.
    fn draw(
        &self,
        canvas: &Canvas<'_>,
        cell: Frame,
        panel: &Panel,
        (figure, names_ends): (&Figure, bool),
    ) -> Result<Frame> {
        let panels = figure.panels.len();
        match self {
            PanelData::Series(series) => {
                lines::draw(canvas, cell, panel, series, (panels, names_ends))
            }
            PanelData::Heatmap(map) => {
                let alike = figure.panels.iter().filter_map(|p| match &p.data {
                    PanelData::Heatmap(other) if other.label == map.label => Some(other),
                    _ => None,
                });
                heatmap::draw(canvas, cell, panel, map, heatmap::range(alike), panels)
            }
            PanelData::Dots(rows) => dots::draw(canvas, cell, panel, rows),
        }
    }
}

/// One curve, or the points of one kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    pub name: String,
    pub color: Rgb,
    pub marker: Marker,
    /// Whether points stand alone, without a line through them.
    pub scattered: bool,
    pub points: Vec<Sample>,
    /// Single runs, drawn if there are too few for an interval; each run is sorted by x.
    pub runs: Vec<Vec<(f64, f64)>>,
    /// Meaning of the shaded area.
    pub band: &'static str,
    pub dashed: Vec<(f64, f64)>,
    /// Meaning of the dashed curve.
    pub dashed_label: String,
    pub published: Vec<(f64, f64)>,
    pub marks: Vec<Mark>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    pub x: f64,
    pub y: f64,
    pub marker: Marker,
    pub label: String,
}

/// A value with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    pub x: f64,
    pub y: f64,
    /// Half width of the interval around it, if it has one.
    pub half_width: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Frame {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Frame {
    fn width(&self) -> f64 {
        self.right - self.left
    }

    fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// Converts shares of the axes to a place on the page.
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.left + x * self.width(), self.bottom - y * self.height())
    }
}

impl Figure {
    pub fn svg(&self) -> Result<String> {
        let heatmaps = self.panels.iter().any(|p| matches!(p.data, PanelData::Heatmap(_)));
        let columns = match self.panels.len() {
            0 | 1 => 1,
            2 | 4 => 2,
            3 if heatmaps => 3,
            _ if heatmaps || self.labels == Labels::End => 2,
            _ => 3,
        };
        let rows = self.panels.len().div_ceil(columns);
        let panel_height = match (columns, heatmaps) {
            (1, true) => 470.0,
            (1, false) => 380.0,
            (2, true) => 318.0,
            (2, false) => 320.0,
            _ => 290.0,
        };
        let heading = wrapped(&self.heading, TEXT, WIDTH - 2.0 * MARGIN, 4);
        let head = MARGIN + 18.0 * heading.len() as f64;
        let gap = 14.0;
        let cell = (WIDTH - 2.0 * MARGIN - gap * (columns - 1) as f64) / columns as f64;
        let frame = Frame { left: 0.0, top: 0.0, right: cell, bottom: panel_height };
        let is_crowded = || self.panels.iter().any(|p| lines::is_crowded(frame, p));
        let names_ends = self.has_room_for_names(columns, frame)
            && (self.labels == Labels::End || !is_crowded());
        let legend = legend::Legend::new(self, !names_ends);
        let body = rows as f64 * (panel_height + gap);
        let height = head + body + legend.height() + MARGIN - 4.0;
        canvas::draw(WIDTH, height, &self.alt, |canvas| {
            for (i, line) in heading.iter().enumerate() {
                let y = MARGIN + 12.0 + 18.0 * i as f64;
                canvas.text(line, (MARGIN, y), TEXT, Anchor::Start, SOFT, false)?;
            }
            for (i, row) in self.panels.chunks(columns).enumerate() {
                // All titles of a row take the same number of lines, so that the frames are aligned.
                let title = |panel: &Panel| wrapped(&panel.title, TITLE, cell - 8.0, 2);
                let titles: Vec<_> = row.iter().map(title).collect();
                let lines = titles.iter().map(Vec::len).max().unwrap_or(0);
                let top = head + i as f64 * (panel_height + gap);
                for (j, (panel, title)) in row.iter().zip(&titles).enumerate() {
                    let left = MARGIN + j as f64 * (cell + gap);
                    let frame = Frame { left, top, right: left + cell, bottom: top + panel_height };
                    panel.draw(canvas, frame, (title, lines), (self, names_ends))?;
                }
            }
            legend.draw(canvas, head + body)
        })
    }
}

impl Panel {
    /// Its curves or points; `None` for other data.
    fn series(&self) -> Option<&Vec<Series>> {
        match &self.data {
            PanelData::Series(series) => Some(series),
            _ => None,
        }
    }

    fn draw(
        &self,
        canvas: &Canvas<'_>,
        cell: Frame,
        (title, lines): (&[String], usize),
        (figure, names_ends): (&Figure, bool),
    ) -> Result<()> {
        let top = cell.top + 4.0 + 18.0 * lines as f64;
        let inner = Frame { top, ..cell };
        let frame = self.data.draw(canvas, inner, self, (figure, names_ends))?;
        for (i, line) in title.iter().enumerate() {
            let y = top - 4.0 - 18.0 * (title.len() - 1 - i) as f64;
            let half = 0.5 * text_width(line, TITLE);
            // Above the middle of the frame, but within the cell.
            let middle = 0.5 * (frame.left + frame.right);
            let middle = middle.min(cell.right - half).max(cell.left + half);
            canvas.text(line, (middle, y), TITLE, Anchor::Middle, INK, true)?;
        }
        Ok(())
    }
}

/// Writes remarks on omitted values in small print from `y` downward, on a background like that of the card.
fn remark(canvas: &Canvas<'_>, frame: Frame, mut y: f64, remarks: &[String]) -> Result<()> {
    let size = 12.0;
    for line in remarks.iter().flat_map(|r| wrapped(r, size, frame.width() - 16.0, 3)) {
        let half = 0.5 * text_width(&line, size) + 3.0;
        let middle = 0.5 * (frame.left + frame.right);
        canvas.area((middle - half, y - 11.0), (middle + half, y + 4.0), canvas::PAPER)?;
        canvas.text(&line, (middle, y), size, Anchor::Middle, SOFT, false)?;
        y += 15.0;
    }
    Ok(())
}
