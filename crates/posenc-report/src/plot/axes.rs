//! Frame, grid, ticks and labels of a panel.

use anyhow::Result;

use super::canvas::{Anchor, Canvas, FRAME, GRID, INK, SOFT, Stroke, text_width, wrapped};
use super::scale::{AxisSpec, Scale, Tick};
use super::{Frame, TEXT, clip};
use crate::colors::Rgb;

/// Size of the numbers at the ticks, in pixels.
pub const TICK: f64 = 12.0;

/// Axes that are ready to be drawn: the frame leaves room for their labels.
pub struct Axes {
    /// The rectangle that data are drawn in.
    pub frame: Frame,
    pub x: Scale,
    pub y: Scale,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    y_label: Vec<String>,
    x_label: Vec<String>,
    left: f64,
}

impl Axes {
    /// Lays out axes inside `cell`. With `aspect`, the frame has that ratio of width to height; `beside` pixels stay
    /// free on the right.
    pub fn new(
        cell: Frame,
        (x_spec, y_spec): (&AxisSpec, &AxisSpec),
        (x, y): (Scale, Scale),
        aspect: Option<f64>,
        beside: f64,
    ) -> Axes {
        let top = cell.top + 8.0;
        let x_label = wrapped(&x_spec.label, TEXT, cell.width() - 60.0 - beside, 2);
        let bottom = cell.bottom - 26.0 - 17.0 * x_label.len() as f64;
        let y_label = wrapped(&y_spec.label, TEXT, bottom - top + 30.0, 2);
        let y_ticks = y.ticks(((bottom - top) / 40.0) as usize);
        let widest = y_ticks.iter().map(|t| text_width(&t.label, TICK)).fold(30.0, f64::max);
        let mut left = cell.left + 17.0 * y_label.len() as f64 + widest + 19.0;
        let mut right = cell.right - 12.0 - beside;
        let mut bottom = bottom;
        if let Some(aspect) = aspect {
            let spare = (right - left) - aspect * (bottom - top);
            if spare > 0.0 {
                left += 0.5 * spare;
                right -= 0.5 * spare;
            } else {
                bottom = top + (right - left) / aspect;
            }
        }
        // Keep a minimum frame if the cell is too small for its labels.
        right = right.max(left + 40.0);
        let frame = Frame { left, top, right, bottom: bottom.max(top + 40.0) };
        // Request at least four ticks even on a narrow axis; labels that touch are left out.
        let x_ticks = sparse(x.ticks(((frame.width() / 70.0) as usize).max(4)), frame.width());
        let left = left - widest - 16.0;
        Axes { frame, x, y, x_ticks, y_ticks, y_label, x_label, left }
    }

    /// Axes without ticks on the y axis; the caller draws the names of its rows.
    pub fn without_y(cell: Frame, specs: (&AxisSpec, &AxisSpec), scales: (Scale, Scale)) -> Axes {
        // Do not reserve room for its labels at the left.
        let cell = Frame { left: cell.left - 34.0, ..cell };
        Axes { y_ticks: Vec::new(), ..Axes::new(cell, specs, scales, None, 0.0) }
    }

    /// Place of a point on the page; `None` beyond the axes.
    pub fn on_page(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        let (x, y) = (self.x.place(x)?, self.y.place(y)?);
        clip::contains((x, y)).then(|| self.frame.at(x, y))
    }

    /// Draws the visible parts of a line through places in shares of the axes.
    pub fn line(
        &self,
        canvas: &Canvas<'_>,
        places: &[Option<(f64, f64)>],
        (ink, opacity): (Rgb, f64),
        stroke: Stroke,
    ) -> Result<()> {
        for part in clip::line(places) {
            let on_page: Vec<_> = part.iter().map(|p| self.frame.at(p.0, p.1)).collect();
            canvas.line(&on_page, ink, opacity, stroke)?;
        }
        Ok(())
    }

    /// Draws the grid, which belongs below the data.
    pub fn grid(&self, canvas: &Canvas<'_>) -> Result<()> {
        let x = self.x_ticks.iter().map(|tick| (tick, [(tick.at, 0.0), (tick.at, 1.0)]));
        let y = self.y_ticks.iter().map(|tick| (tick, [(0.0, tick.at), (1.0, tick.at)]));
        for (_, ends) in x.chain(y).filter(|(tick, _)| !tick.label.is_empty()) {
            let ends = ends.map(|(x, y)| self.frame.at(x, y));
            canvas.line(&ends, GRID, 1.0, Stroke::Dotted)?;
        }
        Ok(())
    }

    /// Draws frame, ticks and labels, which belong above the data.
    pub fn draw(&self, canvas: &Canvas<'_>) -> Result<()> {
        let f = self.frame;
        canvas.outline(f, FRAME, 1.0)?;
        for tick in &self.x_ticks {
            let (x, y) = f.at(tick.at, 0.0);
            let length = if tick.label.is_empty() { 3.0 } else { 5.0 };
            canvas.line(&[(x, y), (x, y + length)], FRAME, 1.0, Stroke::Solid(1.0))?;
            if !tick.label.is_empty() {
                canvas.text(&tick.label, (x, y + 18.0), TICK, Anchor::Middle, SOFT, false)?;
            }
        }
        for tick in &self.y_ticks {
            let (x, y) = f.at(0.0, tick.at);
            let length = if tick.label.is_empty() { 3.0 } else { 5.0 };
            canvas.line(&[(x - length, y), (x, y)], FRAME, 1.0, Stroke::Solid(1.0))?;
            if !tick.label.is_empty() {
                canvas.text(
                    &tick.label,
                    (x - 8.0, y + 0.36 * TICK),
                    TICK,
                    Anchor::End,
                    SOFT,
                    false,
                )?;
            }
        }
        for (i, line) in self.x_label.iter().enumerate() {
            let place = (0.5 * (f.left + f.right), f.bottom + 37.0 + 17.0 * i as f64);
            canvas.text(line, place, TEXT, Anchor::Middle, INK, false)?;
        }
        for (i, line) in self.y_label.iter().enumerate() {
            let back = (self.y_label.len() - 1 - i) as f64;
            let place = (self.left - 17.0 * back, 0.5 * (f.top + f.bottom));
            canvas.text_upward(line, place, TEXT, INK)?;
        }
        Ok(())
    }
}

/// Drops labels that would touch a neighbor; those of minor ticks first.
fn sparse(mut ticks: Vec<Tick>, width: f64) -> Vec<Tick> {
    ticks.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut taken: Vec<(f64, f64)> = Vec::new();
    let mut order: Vec<usize> = (0..ticks.len()).collect();
    order.sort_by_key(|i| !ticks[*i].major);
    for i in order {
        if ticks[i].label.is_empty() {
            continue;
        }
        let half = 0.5 * text_width(&ticks[i].label, TICK) + 3.0;
        let (from, to) = (ticks[i].at * width - half, ticks[i].at * width + half);
        if taken.iter().any(|(a, b)| from < *b && *a < to) {
            ticks[i].label.clear();
        } else {
            taken.push((from, to));
        }
    }
    ticks
}
