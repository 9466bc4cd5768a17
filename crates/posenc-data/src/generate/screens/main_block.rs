//! The block between the bar and the bottom. Lengths are in pixels.

use super::captions::{Caption, column, key, ordinal};
use super::{CANVAS, Draft, NodeKind};

/// Maximum number of rows of lists whose rows are nodes, too.
const MAX_ROWS_WITH_BOXES: usize = 4;

struct Region {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

/// A list, settings, a form, a grid, a keypad or a dialog between these heights.
pub(super) fn main_block(draft: &mut Draft, [top, bottom]: [f64; 2]) {
    let margin = draft.length(20.0, 160.0);
    let region = Region {
        left: margin,
        top: top + draft.length(10.0, 200.0),
        right: CANVAS[0] - margin,
        bottom: bottom - draft.length(10.0, 200.0),
    };
    let depth = draft.count(1, 3);
    match draft.count(0, 6) {
        0 => list(draft, depth, &region),
        1 => settings(draft, depth, &region),
        2 | 3 => form(draft, depth, &region),
        4 => grid(draft, depth, &region),
        5 => keypad(draft, depth, &region),
        _ => dialog(draft, depth, &region),
    }
}

/// Factor, at most 1, that scales lengths of total `filled` to fit into `room`.
fn fit(filled: f64, room: f64) -> f64 {
    if filled > room { room / filled } else { 1.0 }
}

/// A box with its vertical center at `middle`.
fn around(left: f64, right: f64, middle: f64, height: f64) -> [f64; 4] {
    [left, middle - 0.5 * height, right, middle + 0.5 * height]
}

/// Rows, each with a text and a delete icon of the same height.
fn list(draft: &mut Draft, depth: usize, region: &Region) {
    let count = draft.count(3, 6);
    let (height, gap) = (draft.length(110.0, 260.0), draft.length(5.0, 50.0));
    let rows = count as f64;
    let factor = fit(rows * height + (rows - 1.0) * gap, region.bottom - region.top);
    let (height, gap) = (factor * height, factor * gap);
    let pad = draft.length(10.0, 60.0);
    let size = draft.length(60.0, 120.0).min(0.9 * height);
    for i in 0..count {
        let top = region.top + i as f64 * (height + gap);
        let middle = top + 0.5 * height;
        if count <= MAX_ROWS_WITH_BOXES {
            let pixels = [region.left, top, region.right, top + height];
            draft.widget(NodeKind::Container, depth, pixels, Caption::Item, &[ordinal(i)]);
        }
        let (left, width) = (region.left + pad, draft.length(250.0, 700.0));
        let word = draft.text(depth + 1, around(left, left + width, middle, size));
        let right = region.right - pad;
        let pixels = around(right - size, right, middle, size);
        draft.widget(NodeKind::Icon, depth + 1, pixels, Caption::Delete, &[word]);
    }
}

/// Rows of different heights, each with a text and a check box or switch of the same height.
fn settings(draft: &mut Draft, depth: usize, region: &Region) {
    let count = draft.count(3, 6);
    let heights: Vec<f64> = (0..count).map(|_| draft.length(110.0, 260.0)).collect();
    let gap = draft.length(5.0, 50.0);
    let filled = heights.iter().sum::<f64>() + (count - 1) as f64 * gap;
    let factor = fit(filled, region.bottom - region.top);
    let least = factor * heights.iter().copied().fold(f64::INFINITY, f64::min);
    let (kind, size) = if draft.chance(0.5) {
        let side = draft.length(50.0, 100.0);
        (NodeKind::Check, [side; 2])
    } else {
        (NodeKind::Switch, [draft.length(90.0, 170.0), draft.length(50.0, 90.0)])
    };
    let [width, height] = [size[0], size[1].min(0.9 * least)];
    let is_left = draft.chance(0.3);
    let pad = draft.length(20.0, 60.0);
    let mut top = region.top;
    for row in heights {
        let middle = top + 0.5 * factor * row;
        let text_width = draft.length(250.0, 700.0);
        let (left, text_left) = if is_left {
            (region.left, region.left + width + pad)
        } else {
            (region.right - width, region.left)
        };
        let pixels = around(text_left, text_left + text_width, middle, height);
        let word = draft.text(depth + 1, pixels);
        let pixels = around(left, left + width, middle, height);
        draft.widget(kind, depth + 1, pixels, Caption::Setting, &[word]);
        top += factor * (row + gap);
    }
}

/// Fields, each with a label of the same height at its left or a label above it, and a submit button.
fn form(draft: &mut Draft, depth: usize, region: &Region) {
    let count = draft.count(3, 5);
    let is_above = draft.chance(0.5);
    let (height, gap) = (draft.length(90.0, 160.0), draft.length(30.0, 90.0));
    let (label, label_gap) = (draft.length(40.0, 70.0), draft.length(5.0, 20.0));
    let (button, button_gap) = (draft.length(90.0, 170.0), draft.length(30.0, 120.0));
    let row = if is_above { height + label + label_gap } else { height };
    let fields = count as f64;
    let filled = fields * row + (fields - 1.0) * gap + button_gap + button;
    let factor = fit(filled, region.bottom - region.top);
    let [height, gap, label, label_gap, row] =
        [height, gap, label, label_gap, row].map(|length| factor * length);
    let label_width = draft.length(200.0, 320.0);
    let aside = draft.length(10.0, 40.0);
    let mut top = region.top;
    for _ in 0..count {
        let (text, left) = if is_above {
            ([region.left, top, region.left + label_width, top + label], region.left)
        } else {
            let right = region.left + label_width;
            ([region.left, top, right, top + height], right + aside)
        };
        let word = draft.text(depth + 1, text);
        let field_top = if is_above { top + label + label_gap } else { top };
        let pixels = [left, field_top, region.right, field_top + height];
        draft.widget(NodeKind::Field, depth + 1, pixels, Caption::Field, &[word]);
        top += row + gap;
    }
    let half = 0.5 * draft.length(300.0, 900.0);
    let center = 0.5 * (region.left + region.right);
    let top = top - gap + factor * button_gap;
    let pixels = [center - half, top, center + half, top + factor * button];
    draft.widget(NodeKind::Button, depth, pixels, Caption::Submit, &[]);
}

/// A grid of boxes that fills the width.
fn cells(draft: &mut Draft, rows: usize, columns: usize, region: &Region) -> Vec<[f64; 4]> {
    let (gap, row_gap) = (draft.length(10.0, 80.0), draft.length(10.0, 80.0));
    let height = if rows == 4 { draft.length(110.0, 260.0) } else { draft.length(180.0, 420.0) };
    let filled = rows as f64 * height + (rows - 1) as f64 * row_gap;
    let factor = fit(filled, region.bottom - region.top);
    let (height, row_gap) = (factor * height, factor * row_gap);
    let width = (region.right - region.left - (columns - 1) as f64 * gap) / columns as f64;
    let cell = |i: usize| {
        let left = region.left + (i % columns) as f64 * (width + gap);
        let top = region.top + (i / columns) as f64 * (height + row_gap);
        [left, top, left + width, top + height]
    };
    (0..rows * columns).map(cell).collect()
}

fn grid(draft: &mut Draft, depth: usize, region: &Region) {
    let (rows, columns) = (draft.count(2, 3), draft.count(2, 4));
    for (i, pixels) in cells(draft, rows, columns, region).into_iter().enumerate() {
        let slots = [column(i % columns, columns), ordinal(i / columns)];
        draft.widget(NodeKind::Image, depth + 1, pixels, Caption::Image, &slots);
    }
}

fn keypad(draft: &mut Draft, depth: usize, region: &Region) {
    for (i, pixels) in cells(draft, 4, 3, region).into_iter().enumerate() {
        draft.widget(NodeKind::Button, depth + 1, pixels, Caption::Key, &[key(i)]);
    }
}

/// A panel with a title, two or three buttons and an optional icon in its corner, and texts above and below it.
fn dialog(draft: &mut Draft, depth: usize, region: &Region) {
    let room = region.bottom - region.top;
    let height = draft.length(350.0, 700.0).min(0.6 * room);
    let top = region.top + (room - height) * draft.share();
    let bottom = top + height;
    draft.node(NodeKind::Container, depth, [region.left, top, region.right, bottom]);

    let pad = draft.length(20.0, 60.0);
    let (left, right) = (region.left + pad, region.right - pad);
    let (title_height, title_width) = (draft.length(50.0, 90.0), draft.length(200.0, 600.0));
    let title = [left, top + pad, left + title_width, top + pad + title_height];
    let word = draft.text(depth + 1, title);
    if draft.chance(0.5) {
        let size = draft.length(60.0, 110.0);
        let pixels = [right - size, top + pad, right, top + pad + size];
        draft.widget(NodeKind::Icon, depth + 1, pixels, Caption::Close, &[]);
    }
    let all = [Caption::Later, Caption::Cancel, Caption::Accept];
    let captions = if draft.chance(0.5) { &all[..] } else { &all[1..] };
    let count = captions.len() as f64;
    let gap = draft.length(10.0, 60.0);
    let width = draft.length(180.0, 330.0).min((right - left - (count - 1.0) * gap) / count);
    let button_top = bottom - pad - draft.length(80.0, 150.0).min(0.4 * height);
    let total = count * width + (count - 1.0) * gap;
    let start = if draft.chance(0.5) { left } else { right - total };
    for (i, &caption) in captions.iter().enumerate() {
        let left = start + i as f64 * (width + gap);
        let pixels = [left, button_top, left + width, bottom - pad];
        draft.widget(NodeKind::Button, depth + 1, pixels, caption, &[word]);
    }

    for _ in 0..draft.count(4, 6) {
        let (width, height) = (draft.length(200.0, 800.0), draft.length(40.0, 80.0));
        let (above, below) = (top - region.top - height, region.bottom - bottom - height);
        let is_above = if above.min(below) > 0.0 { draft.chance(0.5) } else { above > below };
        let (from, room) = if is_above { (region.top, above) } else { (bottom, below) };
        let top = from + room.max(0.0) * draft.share();
        let most = (region.right - region.left - width).max(0.0);
        let left = region.left + most * draft.share();
        draft.text(depth, [left, top, (left + width).min(region.right), top + height]);
    }
}
