//! The bar at the top and the block at the bottom. Lengths are in pixels.

use super::captions::{Caption, ordinal_or_last};
use super::{CANVAS, Draft, NodeKind};

/// Maximum height of the sheet at the bottom.
const MAX_SHEET_HEIGHT: f64 = 900.0;

/// A bar with a title, an optional icon at its left, and up to three icons from its right edge on. Returns its lower edge.
pub(super) fn app_bar(draft: &mut Draft) -> f64 {
    let depth = draft.count(1, 4);
    let top = draft.length(40.0, 110.0);
    let height = draft.length(130.0, 230.0);
    let middle = top + 0.5 * height;
    let size = draft.length(80.0, 140.0).min(0.9 * height);
    let margin = draft.length(20.0, 60.0);
    let gap = draft.length(20.0, 60.0);
    let mut left = margin;
    let icon = |left: f64| [left, middle - 0.5 * size, left + size, middle + 0.5 * size];
    if draft.chance(0.8) {
        draft.widget(NodeKind::Icon, depth, icon(left), Caption::Back, &[]);
        left += size + gap;
    }
    let mut right = CANVAS[0] - margin;
    let icons = draft.count(0, 3);
    for &caption in &[Caption::More, Caption::Search, Caption::Share][..icons] {
        draft.widget(NodeKind::Icon, depth, icon(right - size), caption, &[]);
        right -= size + gap;
    }
    let width = draft.length(150.0, 450.0).min(right - left);
    let half = 0.5 * draft.length(50.0, 90.0);
    draft.text(depth, [left, middle - half, left + width, middle + half]);
    top + height
}

/// Nothing, tabs, the buttons of a player, or a sheet of choices. Returns its upper edge.
pub(super) fn bottom(draft: &mut Draft) -> f64 {
    match draft.count(0, 5) {
        0 => CANVAS[1],
        1 | 2 => tabs(draft),
        3 | 4 => player(draft),
        _ => sheet(draft),
    }
}

fn tabs(draft: &mut Draft) -> f64 {
    let depth = draft.count(1, 4);
    let count = draft.count(3, 5);
    let (margin, gap) = (draft.length(10.0, 100.0), draft.length(5.0, 40.0));
    let height = draft.length(130.0, 230.0);
    let bottom = CANVAS[1] - draft.length(10.0, 80.0);
    let width = (CANVAS[0] - 2.0 * margin - (count - 1) as f64 * gap) / count as f64;
    for i in 0..count {
        let left = margin + i as f64 * (width + gap);
        let pixels = [left, bottom - height, left + width, bottom];
        draft.widget(NodeKind::Button, depth, pixels, Caption::Tab, &[ordinal_or_last(i, count)]);
    }
    bottom - height
}

/// Three or five icons, and above them the title of the track.
fn player(draft: &mut Draft) -> f64 {
    let all = [Caption::Shuffle, Caption::Previous, Caption::Play, Caption::Next, Caption::Repeat];
    let depth = draft.count(1, 4);
    let captions = if draft.chance(0.5) { &all[..] } else { &all[1..4] };
    let count = captions.len() as f64;
    let (size, gap) = (draft.length(80.0, 140.0), draft.length(30.0, 90.0));
    let total = count * size + (count - 1.0) * gap;
    let center = draft.length(0.5 * CANVAS[0] - 150.0, 0.5 * CANVAS[0] + 150.0);
    let left = (center - 0.5 * total).min(CANVAS[0] - total).max(0.0);
    let bottom = CANVAS[1] - draft.length(20.0, 160.0);
    let top = bottom - size;
    for (i, &caption) in captions.iter().enumerate() {
        let left = left + i as f64 * (size + gap);
        draft.widget(NodeKind::Icon, depth, [left, top, left + size, bottom], caption, &[]);
    }
    let half = 0.5 * draft.length(300.0, 700.0);
    let (bottom, height) = (top - draft.length(10.0, 60.0), draft.length(40.0, 80.0));
    draft.text(depth, [center - half, bottom - height, center + half, bottom]);
    bottom - height
}

fn sheet(draft: &mut Draft) -> f64 {
    let depth = draft.count(1, 4);
    let count = draft.count(2, 4);
    let (margin, gap) = (draft.length(10.0, 80.0), draft.length(5.0, 30.0));
    let most = (MAX_SHEET_HEIGHT - (count - 1) as f64 * gap) / count as f64;
    let height = draft.length(110.0, 260.0).min(most);
    let bottom = CANVAS[1] - draft.length(10.0, 80.0);
    for i in 0..count {
        let bottom = bottom - (count - 1 - i) as f64 * (height + gap);
        let pixels = [margin, bottom - height, CANVAS[0] - margin, bottom];
        let slots = [ordinal_or_last(i, count)];
        draft.widget(NodeKind::Container, depth, pixels, Caption::Sheet, &slots);
    }
    bottom - count as f64 * height - (count - 1) as f64 * gap
}
