//! Names curves next to them: at their ends, or inside the axes if the ends are close together.

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
/// Maximum distance of a name from the end of its curve, in pixels; beyond it, names go inside the axes.
const FARTHEST: f64 = 32.0;
/// Distance between two samples of a curve, in pixels.
const STEP: f64 = 4.0;

impl Figure {
    /// Decides where the curves of a figure are named, for cells of `width` by `height` pixels. [`Labels::Auto`] in the
    /// result means: at the ends of the curves, or inside the axes in panels whose curves end close together.
    pub(super) fn naming(&self, columns: usize, (width, height): (f64, f64)) -> Labels {
        let panels = || self.panels.iter().filter_map(Panel::series);
        let fits = |series: &Vec<Series>| {
            let lines: usize = series.iter().map(|s| lines(s, width).len()).sum();
            series.len() <= MOST && lines as f64 * LINE <= height - 70.0
        };
        let is_whole = |s: &Series| !lines(s, width).iter().any(|line| line.ends_with('…'));
        match self.labels {
            Labels::Auto => {
                let lines = |s: &Series| !s.scattered && is_whole(s);
                let all = panels().all(|series| fits(series) && series.iter().all(lines));
                let some = panels().any(|series| series.len() > 1);
                if columns < 3 && all && some { Labels::Auto } else { Labels::Legend }
            }
            Labels::End if !panels().all(fits) => Labels::Legend,
            naming => naming,
        }
    }
}

fn lines(series: &Series, width: f64) -> Vec<String> {
    wrapped(&series.name, SIZE, SHARE * width, 2)
}

/// Room for names at the ends of curves, in a cell of `width` pixels.
pub fn beside(series: &[Series], width: f64) -> f64 {
    let lines = series.iter().flat_map(|s| lines(s, width));
    let widest = lines.map(|line| text_width(&line, SIZE)).fold(0.0, f64::max);
    // The estimate of widths is generous.
    if widest > 0.0 { 0.93 * widest + GAP } else { 0.0 }
}

/// The end of a curve, its name in lines, its color, and the middle of the name.
struct End {
    at: (f64, f64),
    lines: Vec<String>,
    color: Rgb,
    middle: f64,
}

fn ends(axes: &Axes, series: &[Series], width: f64) -> Vec<End> {
    let mut ends: Vec<End> = Vec::new();
    for s in series.iter().filter(|s| !s.name.is_empty()) {
        let last = on_page(axes, s).into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let end = |at: (f64, f64)| End { at, lines: lines(s, width), color: s.color, middle: at.1 };
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
pub fn is_crowded(axes: &Axes, series: &[Series], width: f64) -> bool {
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

/// Boxes that touch: the top of the first, and the wanted middle and the height of each.
struct Block {
    top: f64,
    boxes: Vec<(f64, f64)>,
}

impl Block {
    /// Places boxes within the frame, as close as possible to the wanted middles.
    fn of(boxes: Vec<(f64, f64)>, frame: Frame) -> Block {
        let (mut above, mut sum) = (0.0, 0.0);
        for (middle, height) in &boxes {
            sum += middle - above - 0.5 * height;
            above += height;
        }
        let top = sum / boxes.len().max(1) as f64;
        let lowest = (frame.bottom + 8.0 - above).max(frame.top - 8.0);
        Block { top: top.clamp(frame.top - 8.0, lowest), boxes }
    }

    fn bottom(&self) -> f64 {
        self.top + self.boxes.iter().map(|b| b.1).sum::<f64>()
    }
}

/// Middles of boxes that do not overlap, as close as possible to the wanted ones: (middle, height), from the top.
fn spread(wanted: &[(f64, f64)], frame: Frame) -> Vec<f64> {
    let mut blocks: Vec<Block> = Vec::new();
    for own in wanted {
        let mut block = Block::of(vec![*own], frame);
        while let Some(mut above) = blocks.pop_if(|above| above.bottom() > block.top) {
            above.boxes.append(&mut block.boxes);
            block = Block::of(above.boxes, frame);
        }
        blocks.push(block);
    }
    let mut middles = Vec::with_capacity(wanted.len());
    for block in blocks {
        let mut edge = block.top;
        for (_, height) in block.boxes {
            middles.push(edge + 0.5 * height);
            edge += height;
        }
    }
    middles
}

/// Names curves where their names cover little and are close to no other curve.
pub fn inside(canvas: &Canvas<'_>, axes: &Axes, series: &[Series]) -> Result<()> {
    let curves: Vec<Vec<(f64, f64)>> = series.iter().map(|s| dense(&on_page(axes, s))).collect();
    // Points that a name should not cover, and the cost of covering them.
    let points: Vec<((f64, f64), f64)> = series
        .iter()
        .flat_map(|s| {
            let published = s.published.iter().map(|p| (*p, 2.0));
            published.chain(s.marks.iter().map(|m| ((m.x, m.y), 14.0)))
        })
        .filter_map(|((x, y), cost)| {
            Some((axes.frame.at(axes.x.place(x)?, axes.y.place(y)?), cost))
        })
        .collect();
    let mut boxes: Vec<Option<Frame>> = vec![None; series.len()];
    // Repeat once, since the first names were placed before the later ones.
    for _ in 0..2 {
        for i in 0..series.len() {
            let Some(own) = series.get(i).filter(|s| !s.name.is_empty()) else { continue };
            let half = 0.5 * text_width(&own.name, SIZE) * 0.93 + 2.0;
            let taken =
                || boxes.iter().enumerate().filter(|(j, _)| *j != i).filter_map(|(_, b)| *b);
            let best = candidates(axes.frame, &curves[i], half)
                .map(|(frame, anchor, cost)| {
                    let labels = taken().filter(|other| overlap(&frame, other)).count();
                    (
                        frame,
                        cost + 900.0 * labels as f64 + cover(&frame, anchor, i, &curves, &points),
                    )
                })
                .min_by(|a, b| a.1.total_cmp(&b.1));
            boxes[i] = best.map(|(frame, _)| frame);
        }
    }
    for (s, frame) in series.iter().zip(boxes) {
        if let Some(frame) = frame {
            let place =
                (0.5 * (frame.left + frame.right), 0.5 * (frame.top + frame.bottom) + 0.36 * SIZE);
            canvas.name(&s.name, place, SIZE, Anchor::Middle, legible(s.color))?;
        }
    }
    Ok(())
}

/// Candidate boxes of a name around the samples of its curve, each with its sample and the cost of its side.
fn candidates(
    frame: Frame,
    curve: &[(f64, f64)],
    half: f64,
) -> impl Iterator<Item = (Frame, (f64, f64), f64)> {
    let every = curve.len().div_ceil(80).max(1);
    let sides = [
        (0.0, -0.5 * LINE - 4.0, 0.0),
        (0.0, 0.5 * LINE + 4.0, 0.3),
        (half + 6.0, 0.0, 0.4),
        (-half - 6.0, 0.0, 0.5),
        // On the curve, as on a contour line.
        (0.0, 0.0, 3.0),
    ];
    curve.iter().step_by(every).flat_map(move |&(x, y)| {
        sides.into_iter().filter_map(move |(dx, dy, cost)| {
            let (x0, y0) = (x + dx, y + dy);
            let own = Frame {
                left: x0 - half,
                right: x0 + half,
                top: y0 - 0.5 * LINE,
                bottom: y0 + 0.5 * LINE,
            };
            let is_inside = own.left > frame.left + 3.0
                && own.right < frame.right - 3.0
                && own.top > frame.top + 2.0
                && own.bottom < frame.bottom - 2.0;
            is_inside.then_some((own, (x, y), cost))
        })
    })
}

/// Cost of a name: it covers curves and marks, or its place on its curve is close to another curve.
fn cover(
    frame: &Frame,
    anchor: (f64, f64),
    own: usize,
    curves: &[Vec<(f64, f64)>],
    points: &[((f64, f64), f64)],
) -> f64 {
    let holds = |p: &&(f64, f64)| {
        frame.left - 1.0 < p.0 && p.0 < frame.right + 1.0 && frame.top < p.1 && p.1 < frame.bottom
    };
    let mut cost: f64 = points.iter().filter(|(p, _)| holds(&p)).map(|(_, cost)| cost).sum();
    let middle = (0.5 * (frame.left + frame.right), 0.5 * (frame.top + frame.bottom));
    let square = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).powi(2) + (a.1 - b.1).powi(2);
    for (i, curve) in curves.iter().enumerate() {
        let covered = curve.iter().filter(holds).count() as f64;
        if i == own {
            cost += 0.3 * covered;
            continue;
        }
        let nearest =
            |to| curve.iter().map(|p| square(*p, to)).fold(f64::INFINITY, f64::min).sqrt();
        // A name must be closer to its own curve than to another.
        let closer = square(anchor, middle).sqrt() + 3.0 - nearest(middle);
        cost += 4.0 * covered + (16.0 - nearest(anchor)).max(0.0) + 2.0 * closer.max(0.0);
    }
    cost
}

fn overlap(a: &Frame, b: &Frame) -> bool {
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
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

/// Resamples a polyline in steps of about [`STEP`] pixels.
fn dense(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64)> = points.first().copied().into_iter().collect();
    for pair in points.windows(2) {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        let steps = (((x1 - x0).hypot(y1 - y0) / STEP).ceil() as usize).clamp(1, 400);
        all.extend((1..=steps).map(|i| {
            let t = i as f64 / steps as f64;
            (x0 + t * (x1 - x0), y0 + t * (y1 - y0))
        }));
    }
    all
}
