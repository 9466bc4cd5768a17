//! Panels of curves with bands, theory and published values, or of points.

use anyhow::Result;

use super::axes::Axes;
use super::canvas::{Canvas, Marker, Stroke};
use super::names;
use super::scale::Scale;
use super::{AxisSpec, Frame, Panel, Sample, Series, clip, remark};
use crate::colors::Rgb;
use crate::numbers::counted;

/// Maximum number of vertices of all curves in one of six panels, which keeps the figure below 300 kB.
const CORNERS: usize = 7000;
/// Maximum number of points without a line in one of six panels.
const POINTS: usize = 700;
/// Published values of a curve are drawn small if there are more than this.
const MANY: usize = 24;
/// Curves with at most this many values always have markers.
const SPARSE: usize = 4;
/// Distance between two markers on a curve, in pixels.
const SPACING: f64 = 34.0;

/// Counts of the values that a panel leaves out.
#[derive(Default)]
struct Left {
    not_finite: usize,
    not_positive: usize,
    thinned: Option<usize>,
}

impl Left {
    fn count(&mut self, x: &AxisSpec, y: &AxisSpec, point: (f64, f64)) -> bool {
        if !AxisSpec::default().shows(point.0) || !AxisSpec::default().shows(point.1) {
            self.not_finite += 1;
            false
        } else if !x.shows(point.0) || !y.shows(point.1) {
            self.not_positive += 1;
            false
        } else {
            true
        }
    }

    fn remarks(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.not_finite > 0 {
            all.push(format!("{} not finite, not shown", counted(self.not_finite, "value")));
        }
        if self.not_positive > 0 {
            let what = counted(self.not_positive, "value");
            all.push(format!("{what} ≤ 0, not shown on a logarithmic axis"));
        }
        if let Some(every) = self.thinned {
            all.push(format!("one point in {every} is shown"));
        }
        all
    }
}

pub fn draw(
    canvas: &Canvas<'_>,
    cell: Frame,
    panel: &Panel,
    series: &[Series],
    (panels, are_named): (usize, bool),
) -> Result<Frame> {
    let mut left = Left::default();
    let share = 6 / panels.clamp(1, 6);
    let series: Vec<Series> = series.iter().map(|s| drawable(s, panel, &mut left)).collect();
    let axes = axes(cell, panel, &series, are_named);
    axes.grid(canvas)?;
    let budget = CORNERS * share / series.len().max(1) / 4;
    for s in &series {
        band(canvas, &axes, s, budget)?;
    }
    for s in &series {
        for run in &s.runs {
            let run = thin(run, (budget / s.runs.len()).max(8));
            stroke(canvas, &axes, &run, (s.color, 0.5), Stroke::Solid(0.9))?;
        }
    }
    for s in series.iter().filter(|s| !s.scattered) {
        curve(canvas, &axes, s, budget)?;
    }
    let alone: usize = series.iter().filter(|s| s.scattered).map(|s| s.points.len()).sum();
    let every = alone.div_ceil(POINTS * share).max(1);
    if every > 1 {
        left.thinned = Some(every);
    }
    for s in series.iter().filter(|s| s.scattered) {
        points(canvas, &axes, s, every)?;
    }
    for s in &series {
        let ink = (darker(s.color), 1.0);
        stroke(canvas, &axes, &thin(&s.dashed, budget), ink, Stroke::Dashed)?;
    }
    for (i, s) in series.iter().enumerate().filter(|(_, s)| !s.scattered) {
        markers(canvas, &axes, s, i, series.len())?;
    }
    for s in &series {
        let many = s.published.len() > MANY;
        for place in thin(&s.published, 400).into_iter().filter_map(|p| axes.on_page(p)) {
            canvas.cross(place, s.color, many)?;
        }
    }
    for s in &series {
        for mark in &s.marks {
            if let Some(place) = axes.on_page((mark.x, mark.y)) {
                canvas.marked(place, mark.marker, 12.0, darker(s.color))?;
            }
        }
    }
    axes.draw(canvas)?;
    if are_named {
        names::at_ends(canvas, &axes, &series, cell.width())?;
    }
    let mut remarks = left.remarks();
    let is_empty =
        |s: &Series| s.points.is_empty() && s.dashed.is_empty() && s.published.is_empty();
    if series.iter().all(|s| is_empty(s) && s.marks.is_empty()) {
        remarks.insert(0, "no values to draw".into());
    }
    remark(canvas, axes.frame, axes.frame.top + 16.0, &remarks)?;
    Ok(axes.frame)
}

/// Axes around all curves, with room for names at their ends if `are_named`.
fn axes(cell: Frame, panel: &Panel, series: &[Series], are_named: bool) -> Axes {
    let xs = series.iter().flat_map(|s| {
        let points = s.points.iter().map(|p| p.x);
        let marks = s.marks.iter().map(|m| m.x);
        points.chain(s.dashed.iter().chain(&s.published).map(|p| p.0)).chain(marks)
    });
    let ys = series.iter().flat_map(|s| {
        let points = s.points.iter().flat_map(|p| {
            let h = p.half_width.unwrap_or(0.0);
            // An interval that reaches below zero has no lower end on a logarithmic axis.
            [p.y, p.y + h, if panel.y.log && p.y - h <= 0.0 { p.y } else { p.y - h }]
        });
        let runs = s.runs.iter().flatten().map(|p| p.1);
        points.chain(s.dashed.iter().chain(&s.published).map(|p| p.1)).chain(runs)
    });
    let scattered = series.iter().any(|s| s.scattered);
    let single = xs.clone().all(|x| Some(x) == xs.clone().next());
    let scales =
        (Scale::new(&panel.x, xs.clone(), !scattered && !single), Scale::new(&panel.y, ys, false));
    let beside = if are_named { names::beside(series, cell.width()) } else { 0.0 };
    Axes::new(cell, (&panel.x, &panel.y), scales, None, beside)
}

/// Whether the curves of a panel end too close together for names at their ends.
pub fn is_crowded(cell: Frame, panel: &Panel) -> bool {
    let own = panel.series().into_iter().flatten();
    let series: Vec<Series> = own.map(|s| drawable(s, panel, &mut Left::default())).collect();
    names::are_crowded(&axes(cell, panel, &series, true), &series, cell.width())
}

/// A series with only the values that the axes can show, sorted by x.
fn drawable(series: &Series, panel: &Panel, left: &mut Left) -> Series {
    let mut shown = series.clone();
    shown.points.retain(|p| left.count(&panel.x, &panel.y, (p.x, p.y)));
    shown.dashed.retain(|p| left.count(&panel.x, &panel.y, *p));
    shown.published.retain(|p| left.count(&panel.x, &panel.y, *p));
    for run in &mut shown.runs {
        run.retain(|p| AxisSpec::default().shows(p.1) && panel.x.shows(p.0) && panel.y.shows(p.1));
    }
    // A mark without a place lies on a value that is already counted.
    shown.marks.retain(|m| panel.x.shows(m.x) && panel.y.shows(m.y));
    for p in &mut shown.points {
        p.half_width = p.half_width.filter(|h| AxisSpec::default().shows(p.y.abs() + h));
    }
    if !shown.scattered {
        shown.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    shown.dashed.sort_by(|a, b| a.0.total_cmp(&b.0));
    shown
}

fn stroke(
    canvas: &Canvas<'_>,
    axes: &Axes,
    points: &[(f64, f64)],
    ink: (Rgb, f64),
    stroke: Stroke,
) -> Result<()> {
    let places: Vec<_> =
        points.iter().map(|(x, y)| Some((axes.x.place(*x)?, axes.y.place(*y)?))).collect();
    axes.line(canvas, &places, ink, stroke)
}

fn band(canvas: &Canvas<'_>, axes: &Axes, s: &Series, budget: usize) -> Result<()> {
    let samples: Vec<&Sample> = s.points.iter().filter(|p| p.half_width.is_some()).collect();
    if samples.is_empty() {
        return Ok(());
    }
    let ends = |p: &Sample| {
        let h = p.half_width.unwrap_or(0.0);
        // A lower end that is not positive has no place on a logarithmic axis: the band leaves the frame.
        let low = axes.y.place(p.y - h).unwrap_or(-1.0);
        Some((axes.x.place(p.x)?, low, axes.y.place(p.y + h)?))
    };
    if s.scattered || samples.len() == 1 || samples.len() < s.points.len() {
        // Draw bars if there are too few intervals for an area.
        for (x, low, high) in samples.iter().filter_map(|p| ends(p)) {
            let bar = [Some((x, low)), Some((x, high))];
            axes.line(canvas, &bar, (s.color, 0.5), Stroke::Solid(1.4))?;
        }
        return Ok(());
    }
    let places: Vec<_> = samples.iter().filter_map(|p| ends(p)).collect();
    let upper = places.iter().map(|(x, _, high)| (*x, *high)).collect::<Vec<_>>();
    let lower = places.iter().map(|(x, low, _)| (*x, *low)).collect::<Vec<_>>();
    let mut outline = thin(&upper, budget);
    outline.extend(thin(&lower, budget).into_iter().rev());
    let shown: Vec<_> = clip::polygon(&outline).iter().map(|p| axes.frame.at(p.0, p.1)).collect();
    canvas.polygon(&shown, s.color, 0.18)
}

fn curve(canvas: &Canvas<'_>, axes: &Axes, s: &Series, budget: usize) -> Result<()> {
    let all: Vec<_> = s.points.iter().map(|p| (p.x, p.y)).collect();
    // Draw a paler, broader line if theory lies on it, so that the dashes stay visible.
    let (opacity, width) = if s.dashed.is_empty() { (1.0, 2.2) } else { (0.55, 3.0) };
    stroke(canvas, axes, &thin(&all, budget), (s.color, opacity), Stroke::Solid(width))
}

fn points(canvas: &Canvas<'_>, axes: &Axes, s: &Series, every: usize) -> Result<()> {
    for p in s.points.iter().step_by(every) {
        let Some(place) = axes.on_page((p.x, p.y)) else { continue };
        match s.marker {
            Marker::None | Marker::Disc => canvas.disc(place, 2.9, s.color, 0.75)?,
            marker => canvas.marker(place, marker, 6.0, s.color)?,
        }
    }
    Ok(())
}

/// Draws markers along a curve at a minimum distance. Each curve starts at a different offset, so that markers do not
/// coincide.
fn markers(canvas: &Canvas<'_>, axes: &Axes, s: &Series, index: usize, count: usize) -> Result<()> {
    let places: Vec<_> = s.points.iter().filter_map(|p| axes.on_page((p.x, p.y))).collect();
    let marker = match s.marker {
        // A line through a handful of values would hide how few they are, and one value has no line.
        Marker::None if places.len() <= SPARSE => Marker::Disc,
        marker => marker,
    };
    let few = places.len() <= 12;
    let phase = SPACING * index as f64 / count.max(1) as f64;
    let mut last: Option<(f64, f64)> = None;
    let mut run = SPACING - phase;
    for p in places {
        if let Some(q) = last {
            run += (p.0 - q.0).hypot(p.1 - q.1);
        }
        last = Some(p);
        if few || run >= SPACING {
            run = 0.0;
            canvas.marker(p, marker, 6.5, s.color)?;
        }
    }
    Ok(())
}

/// Reduces points to about `most`; keeps the lowest and the highest of every bucket.
fn thin(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let most = most.max(8);
    if points.len() <= most {
        return points.to_vec();
    }
    let size = points.len().div_ceil(most / 2);
    let mut kept = Vec::with_capacity(most + 2);
    for bucket in points.chunks(size) {
        let low = (0..bucket.len()).min_by(|a, b| bucket[*a].1.total_cmp(&bucket[*b].1));
        let high = (0..bucket.len()).max_by(|a, b| bucket[*a].1.total_cmp(&bucket[*b].1));
        if let (Some(low), Some(high)) = (low, high) {
            kept.push(bucket[low.min(high)]);
            if low != high {
                kept.push(bucket[low.max(high)]);
            }
        }
    }
    kept.first_mut().iter_mut().for_each(|p| **p = points[0]);
    kept.last_mut().iter_mut().for_each(|p| **p = points[points.len() - 1]);
    kept
}

fn darker(c: Rgb) -> Rgb {
    let dark = |v: u8| (f64::from(v) * 0.62).round() as u8;
    Rgb(dark(c.0), dark(c.1), dark(c.2))
}
