//! Values over two coordinates, as rectangles in viridis, with a color bar.

use std::collections::HashMap;

use anyhow::Result;
use posenc_experiments::record::Row;
use posenc_experiments::schema::display;

use super::axes::{Axes, TICK};
use super::canvas::{Anchor, Canvas, FRAME, INK, SOFT, Stroke, text_width, wrapped};
use super::scale::{AxisSpec, Scale};
use super::series::{FigureSource, cells};
use super::{Frame, Panel, TEXT, remark};
use crate::colors::{Rgb, viridis};
use crate::markdown::bare;
use crate::numbers::counted;

/// Maximum number of rectangles of a figure, which keeps it below 300 kB.
const RECTANGLES: usize = 8400;
/// Maximum number of cells along an axis; finer maps are averaged.
const CELLS: usize = 96;
/// Width of the color bar, in pixels.
const BAR: f64 = 16.0;
const HOLE: Rgb = Rgb(160, 160, 160);

#[derive(Debug, Clone, PartialEq)]
pub struct Heatmap {
    pub label: String,
    pub cells: Vec<(f64, f64, f64)>,
}

/// Lowest and highest finite value of several maps; `None` if no value is finite.
pub fn range<'a>(maps: impl Iterator<Item = &'a Heatmap>) -> Option<(f64, f64)> {
    let any = AxisSpec::default();
    let values = maps.flat_map(|m| &m.cells).map(|c| c.2).filter(|v| any.shows(*v));
    values.fold(None, |range, v| match range {
        None => Some((v, v)),
        Some((low, high)) => Some((v.min(low), v.max(high))),
    })
}

/// The values of the panel's first method.
pub fn read(source: FigureSource<'_>, panel: &display::Panel) -> Result<Heatmap> {
    let method = source.keys(panel).into_iter().next().map(|k| k.method).unwrap_or_default();
    let is_placed = |r: &&Row| r.method == method && r.x.is_some() && r.y.is_some();
    let rows: Vec<&Row> = source.measured(panel, &panel.metric).filter(is_placed).collect();
    let mut cells = cells(&rows)?;
    cells.sort_by_key(|(x, y, _)| (x.to_bits(), y.to_bits()));
    Ok(Heatmap { label: bare(panel.color_label.as_deref().unwrap_or(&panel.metric)), cells })
}

/// Draws the panel's map; the colors span `range`.
pub fn draw(
    canvas: &Canvas<'_>,
    cell: Frame,
    panel: &Panel,
    map: &Heatmap,
    range: Option<(f64, f64)>,
    panels: usize,
) -> Result<Frame> {
    let ends = range.map_or(vec![], |(low, high)| vec![low, high]);
    let values = Scale::new(&AxisSpec::default(), ends.into_iter(), true);
    let (grid, blocks) = fitting(map, panel, &values, RECTANGLES / panels.max(1));
    let ticks = values.ticks(6);
    let widest = ticks.iter().map(|t| text_width(&t.label, TICK)).fold(34.0, f64::max);
    let label = wrapped(&map.label, TEXT, cell.height() - 50.0, 1);
    let beside = 14.0 + BAR + 10.0 + widest + 22.0;
    let scale = |edges: &[f64], spec: &AxisSpec| {
        Scale::between(spec.log, edges[0], edges[edges.len() - 1], spec.reversed)
    };
    let scales = (scale(&grid.x, &panel.x), scale(&grid.y, &panel.y));
    let axes = Axes::new(cell, (&panel.x, &panel.y), scales, Some(1.0), beside);
    for (rows, columns, color) in blocks {
        let at = |column: usize, row: usize| {
            let (x, y) = (grid.x[column], grid.y[row]);
            axes.frame.at(axes.x.share(x), axes.y.share(y))
        };
        canvas.rectangle(at(columns.0, rows.1), at(columns.1, rows.0), color)?;
    }
    axes.draw(canvas)?;
    bar(canvas, axes.frame, &ticks, widest, &label)?;
    let mut remarks = grid.remarks;
    if grid.values.iter().all(Option::is_none) {
        remarks.insert(0, "no values to draw".into());
    }
    // Below the axis, since every part of the map shows data.
    remark(canvas, axes.frame, axes.frame.bottom + 55.0, &remarks)?;
    Ok(axes.frame)
}

/// The finest grid and color levels that need at most `budget` rectangles.
fn fitting(map: &Heatmap, panel: &Panel, values: &Scale, budget: usize) -> (Grid, Vec<Block>) {
    let fine = Grid::of(map, panel, CELLS);
    for levels in [64, 32] {
        let blocks = fine.blocks(values, levels);
        if blocks.len() <= budget {
            return (fine, blocks);
        }
    }
    // A grid of this size fits with any values.
    let coarse = Grid::of(map, panel, (budget as f64).sqrt() as usize);
    let blocks = coarse.blocks(values, 64);
    (coarse, blocks)
}

fn bar(
    canvas: &Canvas<'_>,
    frame: Frame,
    ticks: &[super::scale::Tick],
    widest: f64,
    label: &[String],
) -> Result<()> {
    let (left, right) = (frame.right + 14.0, frame.right + 14.0 + BAR);
    let steps = 64;
    for i in 0..steps {
        let share = i as f64 / steps as f64;
        let (_, low) = frame.at(0.0, share);
        let (_, high) = frame.at(0.0, share + 1.0 / steps as f64);
        let color = viridis((i as f64 + 0.5) / steps as f64);
        canvas.rectangle((left, high), (right, low), color)?;
    }
    canvas.outline(Frame { left, right, ..frame }, FRAME, 1.0)?;
    for tick in ticks {
        let (_, y) = frame.at(0.0, tick.at);
        canvas.line(&[(right, y), (right + 5.0, y)], FRAME, 1.0, Stroke::Solid(1.0))?;
        canvas.text(
            &tick.label,
            (right + 8.0, y + 0.36 * TICK),
            TICK,
            Anchor::Start,
            SOFT,
            false,
        )?;
    }
    let middle = 0.5 * (frame.top + frame.bottom);
    for line in label {
        canvas.text_upward(line, (right + widest + 24.0, middle), TEXT, INK)?;
    }
    Ok(())
}

/// Edges of the cells along one axis, half way between neighboring centers.
fn edges(centers: &[f64]) -> Vec<f64> {
    let n = centers.len();
    if n < 2 {
        let c = centers.first().copied().unwrap_or(0.0);
        let reach = 0.5 * c.abs().max(1.0);
        return vec![c - reach, c + reach];
    }
    let mut edges = vec![centers[0] - 0.5 * (centers[1] - centers[0])];
    edges.extend(centers.windows(2).map(|w| 0.5 * w[0] + 0.5 * w[1]));
    edges.push(centers[n - 1] + 0.5 * (centers[n - 1] - centers[n - 2]));
    edges
}

/// Values on a full grid, row by row from the lowest y.
#[derive(Debug, Clone)]
struct Grid {
    /// Edges of the columns and of the rows, in the axes' own measure.
    x: Vec<f64>,
    y: Vec<f64>,
    values: Vec<Option<f64>>,
    columns: usize,
    remarks: Vec<String>,
}

/// Range of rows, range of columns (ends excluded), and color.
type Block = ((usize, usize), (usize, usize), Rgb);

impl Grid {
    fn of(map: &Heatmap, panel: &Panel, most: usize) -> Grid {
        let any = AxisSpec::default();
        let measure = |spec: &AxisSpec, v: f64| if spec.log { v.log10() } else { v };
        let mut remarks = Vec::new();
        let cells: Vec<_> = map
            .cells
            .iter()
            .filter(|(x, y, _)| panel.x.shows(*x) && panel.y.shows(*y))
            .map(|(x, y, v)| (measure(&panel.x, *x), measure(&panel.y, *y), *v))
            .collect();
        if cells.len() < map.cells.len() {
            let lost = counted(map.cells.len() - cells.len(), "cell");
            remarks.push(format!("{lost} outside the axes, not shown"));
        }
        let holes = cells.iter().filter(|c| !any.shows(c.2)).count();
        if holes > 0 {
            remarks.push(format!("{} not finite (gray)", counted(holes, "value")));
        }
        let (xs, x_every) = centers(cells.iter().map(|c| c.0), most);
        let (ys, y_every) = centers(cells.iter().map(|c| c.1), most);
        if x_every * y_every > 1 {
            remarks.push(format!("averaged over {x_every} × {y_every} cells"));
        }
        let place =
            |all: &[f64], v: f64| all.binary_search_by(|own| own.total_cmp(&(v + 0.0))).ok();
        let columns = xs.len().div_ceil(x_every).max(1);
        let rows = ys.len().div_ceil(y_every).max(1);
        let mut sums = vec![(0.0, 0usize); rows * columns];
        for (x, y, v) in cells.iter().filter(|c| any.shows(c.2)) {
            if let (Some(i), Some(j)) = (place(&xs, *x), place(&ys, *y)) {
                let sum = &mut sums[(j / y_every) * columns + i / x_every];
                *sum = (sum.0 + v, sum.1 + 1);
            }
        }
        let mean =
            |(sum, n): (f64, usize)| (n > 0).then(|| sum / n as f64).filter(|v| any.shows(*v));
        Grid {
            x: edges(&middles(&xs, x_every)),
            y: edges(&middles(&ys, y_every)),
            values: sums.into_iter().map(mean).collect(),
            columns,
            remarks,
        }
    }

    /// Merges neighboring cells of one color into rectangles: first along rows, then across rows of equal extent.
    fn blocks(&self, scale: &Scale, levels: usize) -> Vec<Block> {
        let level = |v: &Option<f64>| {
            v.and_then(|v| scale.place(v))
                .map(|s| ((s.max(0.0) * levels as f64) as usize).min(levels - 1))
        };
        let color = |level: Option<usize>| {
            level.map_or(HOLE, |l| viridis((l as f64 + 0.5) / levels as f64))
        };
        let mut blocks: Vec<Block> = Vec::new();
        let mut above: HashMap<(usize, usize, Option<usize>), usize> = HashMap::new();
        for (j, row) in self.values.chunks(self.columns).enumerate() {
            let mut here = HashMap::new();
            let mut start = 0;
            for i in 1..=row.len() {
                let l = level(&row[start]);
                if i < row.len() && level(&row[i]) == l {
                    continue;
                }
                let place = match above.get(&(start, i, l)) {
                    Some(block) => {
                        blocks[*block].0.1 = j + 1;
                        *block
                    }
                    None => {
                        blocks.push(((j, j + 1), (start, i), color(l)));
                        blocks.len() - 1
                    }
                };
                here.insert((start, i, l), place);
                start = i;
            }
            above = here;
        }
        // Rectangles of one color become one path.
        blocks.sort_by_key(|(rows, columns, c)| ((c.0, c.1, c.2), *rows, *columns));
        blocks
    }
}

/// Sorted distinct values, zero without a sign, and the number of them that share a cell.
fn centers(values: impl Iterator<Item = f64>, most: usize) -> (Vec<f64>, usize) {
    let mut all: Vec<f64> = values.map(|v| v + 0.0).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    let every = all.len().div_ceil(most.max(1)).max(1);
    (all, every)
}

fn middles(values: &[f64], every: usize) -> Vec<f64> {
    values.chunks(every.max(1)).map(|c| 0.5 * c[0] + 0.5 * c[c.len() - 1]).collect()
}
