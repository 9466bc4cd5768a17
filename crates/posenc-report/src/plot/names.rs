//! Names curves at their ends.

use anyhow::Result;
use posenc_experiments::schema::display::Labels;

use super::axes::Axes;
use super::canvas::{Anchor, Canvas, Stroke, text_width, wrapped};
use super::{Figure, Frame, Panel, Series, clip};
use crate::colors::{Rgb, legible};

const SIZE: f64 = 12.5;
/// Height of a line of a name.
const LINE: f64 = 14.5;
/// Gap between the axes and the names at the ends of curves, in pixels.
const GAP: f64 = 11.0;
/// Names take at most this share of a panel's width.
const SHARE: f64 = 0.34;
/// If a panel has more curves than this, the legend names them.
const MOST: usize = 12;
/// Maximum distance of a name from the end of its curve, in pixels; beyond it, the legend names the curves.
const FARTHEST: f64 = 32.0;

impl Figure {
    /// Whether names at the ends of the curves have room in cells like `cell` and are wanted.
    pub(super) fn has_room_for_names(&self, columns: usize, cell: Frame) -> bool {
        let (width, height) = (cell.width(), cell.height());
        let panels = || self.panels.iter().filter_map(Panel::series);
        let fits = |series: &Vec<Series>| {
            let lines: usize = series.iter().map(|s| in_lines(s, width).len()).sum();
            series.len() <= MOST && lines as f64 * LINE <= height - 70.0
        };
        let is_whole = |s: &Series| !in_lines(s, width).iter().any(|line| line.ends_with('…'));
        match self.labels {
            Labels::Auto => {
                let is_short = |s: &Series| !s.scattered && is_whole(s);
                let all = panels().all(|series| fits(series) && series.iter().all(is_short));
                let some = panels().any(|series| series.len() > 1);
                columns < 3 && all && some
            }
            Labels::End => panels().all(fits),
            Labels::Legend => false,
        }
    }
}

fn in_lines(series: &Series, width: f64) -> Vec<String> {
    wrapped(&series.name, SIZE, SHARE * width, 2)
}

/// Room for names at the ends of curves, in a cell of `width` pixels.
pub fn beside(series: &[Series], width: f64) -> f64 {
    let lines = series.iter().flat_map(|s| in_lines(s, width));
    let widest = lines.map(|line| text_width(&line, SIZE)).fold(0.0, f64::max);
    // The estimate of widths is generous.
    if widest > 0.0 { 0.93 * widest + GAP } else { 0.0 }
}

/// The end of a curve.
struct End {
    at: (f64, f64),
    /// The curve's name.
    lines: Vec<String>,
    color: Rgb,
    /// Height of the middle of the name.
    middle: f64,
}

fn ends(axes: &Axes, series: &[Series], width: f64) -> Vec<End> {
    let mut ends: Vec<End> = Vec::new();
    for s in series.iter().filter(|s| !s.name.is_empty()) {
        let last = on_page(axes, s).into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let end =
            |at: (f64, f64)| End { at, lines: in_lines(s, width), color: s.color, middle: at.1 };
        ends.extend(last.map(end));
    }
    ends.sort_by(|a, b| a.at.1.total_cmp(&b.at.1));
    let wanted: Vec<(f64, f64)> =
        ends.iter().map(|end| (end.at.1, end.lines.len() as f64 * LINE)).collect();
    for (end, middle) in ends.iter_mut().zip(spread(&wanted, axes.frame)) {
        end.middle = middle;
    }
    ends
}

/// Whether the curves end too close together for names at their ends.
pub fn are_crowded(axes: &Axes, series: &[Series], width: f64) -> bool {
    ends(axes, series, width).iter().any(|end| (end.middle - end.at.1).abs() > FARTHEST)
}

/// Names curves at their ends; moves names apart if they would overlap.
pub fn at_ends(canvas: &Canvas<'_>, axes: &Axes, series: &[Series], width: f64) -> Result<()> {
    let right = axes.frame.right;
    let left = right + GAP - 1.0;
    for End { at: (x, y), lines, color, middle } in ends(axes, series, width) {
        let is_short = right - x > 6.0;
        if (middle - y).abs() > 2.5 || is_short {
            let leader = [(x + 2.0, y), (right.max(x + 2.0), y), (left - 2.0, middle)];
            let from = if is_short { 0 } else { 1 };
            canvas.line(&leader[from..], color, 0.55, Stroke::Solid(0.9))?;
        }
        for (i, line) in lines.iter().enumerate() {
            let down = (i as f64 - 0.5 * (lines.len() - 1) as f64) * LINE;
            let place = (left, middle + down + 0.36 * SIZE);
            canvas.name(line, place, SIZE, Anchor::Start, legible(color))?;
        }
    }
    Ok(())
}

/// Middles of boxes that do not overlap, close to the wanted ones: (middle, height), from the top.
fn spread(wanted: &[(f64, f64)], frame: Frame) -> Vec<f64> {
    let below_the_last = |middles: &mut [f64]| {
        let mut edge = frame.top - 8.0;
        for (middle, (_, height)) in middles.iter_mut().zip(wanted) {
            *middle = middle.max(edge + 0.5 * height);
            edge = *middle + 0.5 * height;
        }
    };
    let above_the_next = |middles: &mut [f64]| {
        let mut edge = frame.bottom + 8.0;
        for (middle, (_, height)) in middles.iter_mut().zip(wanted).rev() {
            *middle = middle.min(edge - 0.5 * height);
            edge = *middle - 0.5 * height;
        }
    };
    let mut lower: Vec<f64> = wanted.iter().map(|(middle, _)| *middle).collect();
    let mut upper = lower.clone();
    below_the_last(&mut lower);
    above_the_next(&mut lower);
    above_the_next(&mut upper);
    below_the_last(&mut upper);
    // Their means do not overlap, either, and are as far from the wanted ones on both sides.
    lower.iter().zip(&upper).map(|(a, b)| 0.5 * (a + b)).collect()
}

/// The visible points of a curve on the page; those of theory or published values if nothing is measured.
fn on_page(axes: &Axes, s: &Series) -> Vec<(f64, f64)> {
    let own: Vec<(f64, f64)> = match (s.points.is_empty(), s.dashed.is_empty()) {
        (false, _) => s.points.iter().map(|p| (p.x, p.y)).collect(),
        (true, false) => s.dashed.clone(),
        (true, true) => s.published.clone(),
    };
    let places: Vec<_> =
        own.iter().map(|(x, y)| Some((axes.x.place(*x)?, axes.y.place(*y)?))).collect();
    let mut page: Vec<(f64, f64)> = clip::line(&places).concat();
    if page.is_empty() {
        page = places.into_iter().flatten().filter(|p| clip::contains(*p)).collect();
    }
    page.into_iter().map(|(x, y)| axes.frame.at(x, y)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame = Frame { left: 0.0, top: 0.0, right: 100.0, bottom: 100.0 };

    /// Catches names that cover each other, and names that move without need.
    #[test]
    fn names_are_spread() {
        assert_eq!(spread(&[(20.0, 10.0), (60.0, 10.0)], FRAME), [20.0, 60.0]);
        let close = spread(&[(50.0, 10.0), (51.0, 10.0), (52.0, 20.0)], FRAME);
        assert!(
            close[1] - close[0] >= 10.0 - 1e-9 && close[2] - close[1] >= 15.0 - 1e-9,
            "{close:?}"
        );
        let low = spread(&[(99.0, 10.0), (100.0, 10.0)], FRAME);
        assert!(low[1] <= 108.0 - 5.0 + 1e-9, "{low:?}");
    }
}
