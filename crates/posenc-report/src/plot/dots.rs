//! Dot plots: measured and published means in rows, with their standard deviations.

use anyhow::Result;
use posenc_experiments::record::Row;
use posenc_experiments::schema::display;

use super::axes::{Axes, TICK};
use super::canvas::{Anchor, Canvas, INK, Marker, SOFT, Stroke, text_width};
use super::scale::Scale;
use super::series::{CurveKey, FigureSource, Look, name, several};
use super::{AxisSpec, Frame, Panel, clip, remark};
use crate::colors::{Rgb, legible};
use crate::numbers::{fixed, mean_deviation};

/// Distance of the measured and of the published value from the middle of their row, as a share of its height.
const APART: f64 = 0.2;

#[derive(Debug, Clone, PartialEq)]
pub struct DotRow {
    pub name: String,
    pub color: Rgb,
    /// Whether the measured value comes from a reduced run or other data.
    pub reduced: bool,
    /// Measured mean and standard deviation; without a deviation for a single value.
    pub measured: Option<(f64, Option<f64>)>,
    /// Published mean and standard deviation.
    pub published: Option<(f64, Option<f64>)>,
}

/// A row per method, signal or metric with its measured and its published mean.
pub fn read(source: FigureSource<'_>, panel: &display::Panel, look: &Look<'_>) -> Vec<DotRow> {
    let keys = source.keys(panel);
    let several = several(&keys);
    let group = source.experiment.group(&panel.group);
    let full = |row: &Row| {
        group.is_none_or(|g| g.reduced(row.profile).is_none() && g.is_papers_data(&row.data))
    };
    let row = |key: &CurveKey| {
        let own = |r: &&Row| {
            r.method == key.method
                && (key.signal.is_empty() || r.signal == key.signal)
                && group.is_none_or(|g| g.untrained(r).is_none())
        };
        let rows: Vec<&Row> = source.measured(panel, &key.metric).filter(own).collect();
        let values: Vec<f64> = rows.iter().map(|r| r.value).collect();
        let (mean, deviation) = mean_deviation(&values);
        let printed = source
            .printed(panel, key)
            .filter(|v| panel.published && v.signal == key.signal && v.x.is_none());
        let row = DotRow {
            name: look.name(&name(several, key)),
            color: source.style(panel, several, key, look).0,
            reduced: !rows.iter().all(|r| full(r)),
            measured: (!values.is_empty())
                .then_some((mean, Some(deviation).filter(|_| values.len() > 1))),
            published: { printed }.find_map(|v| Some((v.value?, v.deviation))),
        };
        Some(row).filter(|r| r.measured.is_some() || r.published.is_some())
    };
    keys.iter().filter_map(row).collect()
}

/// Draws the panel's rows from the top.
pub fn draw(canvas: &Canvas<'_>, cell: Frame, panel: &Panel, rows: &[DotRow]) -> Result<Frame> {
    let names = rows.iter().map(|r| text_width(&r.name, TICK)).fold(30.0, f64::max);
    let names = names.min(0.45 * cell.width());
    let ends = rows.iter().flat_map(|r| {
        let end = |(v, d): (f64, Option<f64>)| [v - d.unwrap_or(0.0), v + d.unwrap_or(0.0)];
        r.measured.into_iter().chain(r.published).flat_map(end)
    });
    let x = Scale::new(&panel.x, ends, false);
    let rows_spec = AxisSpec { from: Some(0.0), to: Some(1.0), ..AxisSpec::default() };
    let y = Scale::new(&rows_spec, std::iter::empty(), true);
    let inner = Frame { left: cell.left + names, ..cell };
    let axes = Axes::without_y(inner, (&panel.x, &rows_spec), (x, y));
    axes.grid(canvas)?;
    let step = 1.0 / rows.len().max(1) as f64;
    for (i, row) in rows.iter().enumerate() {
        let middle = 1.0 - (i as f64 + 0.5) * step;
        let both = row.measured.is_some() && row.published.is_some();
        let apart = if both { APART * step } else { 0.0 };
        let (left, y) = axes.frame.at(0.0, middle);
        let name = (left - 10.0, y + 0.36 * TICK);
        canvas.text(&row.name, name, TICK, Anchor::End, INK, false)?;
        if let Some(value) = row.published {
            bar(canvas, &axes, value, middle - apart, SOFT)?;
            if let Some(place) = place(&axes, value.0, middle - apart) {
                canvas.cross(place, SOFT, false)?;
            }
        }
        if let Some(value) = row.measured {
            bar(canvas, &axes, value, middle + apart, row.color)?;
            beyond(canvas, &axes, value.0, middle + apart, row.color)?;
            if let Some(place) = place(&axes, value.0, middle + apart) {
                let marker = if row.reduced { Marker::Ring } else { Marker::Disc };
                canvas.marker(place, marker, 9.5, row.color)?;
            }
        }
    }
    axes.draw(canvas)?;
    if rows.iter().all(|r| r.measured.is_none() && r.published.is_none()) {
        remark(canvas, axes.frame, axes.frame.top + 16.0, &["no values to draw".into()])?;
    }
    Ok(axes.frame)
}

fn place(axes: &Axes, value: f64, y: f64) -> Option<(f64, f64)> {
    let x = axes.x.place(value).filter(|x| clip::contains((*x, y)))?;
    Some(axes.frame.at(x, y))
}

/// Writes a value beyond the axis as text at the end of the axis.
fn beyond(canvas: &Canvas<'_>, axes: &Axes, value: f64, y: f64, ink: Rgb) -> Result<()> {
    let (share, text) = match axes.x.place(value) {
        Some(share) if share < 0.0 => (0.0, format!("← {}", fixed(value, 1))),
        Some(share) if share > 1.0 => (1.0, format!("{} →", fixed(value, 1))),
        _ => return Ok(()),
    };
    let anchor = if share < 0.5 { Anchor::Start } else { Anchor::End };
    let (x, y) = axes.frame.at(share, y);
    let inset = if share < 0.5 { 6.0 } else { -6.0 };
    canvas.name(&text, (x + inset, y + 0.36 * TICK), TICK, anchor, legible(ink))
}

fn bar(
    canvas: &Canvas<'_>,
    axes: &Axes,
    (value, deviation): (f64, Option<f64>),
    y: f64,
    ink: Rgb,
) -> Result<()> {
    let Some(deviation) = deviation else { return Ok(()) };
    let end = |v: f64| Some((axes.x.place(v)?, y));
    // On a logarithmic axis a bar can reach below every positive number.
    let low = end(value - deviation).or(Some((-1.0, y)));
    axes.line(canvas, &[low, end(value + deviation)], (ink, 0.6), Stroke::Solid(1.8))
}
