//! Drawings of screens: boxes with a symbol of their kind and their words. Labeled boxes are outlined and numbered.

use anyhow::Result;
use posenc_experiments::record::captions::{BORDER, BoxKind, Layout};

use super::Frame;
use super::canvas::{self, Anchor, Canvas, FRAME, GRID, INK, PAPER, Stroke, text_width};
use crate::colors::Rgb;

/// Width of a drawing in pixels: four fit side by side on a page.
pub const WIDTH: f64 = 250.0;
/// Margin between the card's edge and the screen, in pixels.
const MARGIN: f64 = 13.0;
/// Height of a screen divided by its width, as for the generated screens.
const ASPECT: f64 = 16.0 / 9.0;
/// Font size of words in pixels, and the smallest one in narrow boxes.
const WORD: f64 = 12.5;
const LEAST_WORD: f64 = 10.5;
/// Radius of the disc under a number.
const BADGE: f64 = 8.5;
/// Color of the outline and the number of a labeled box.
const LABELLED: Rgb = Rgb(9, 105, 218);
/// Fill of boxes that can be tapped.
const SURFACE: Rgb = Rgb(238, 241, 244);

/// The drawing as an SVG document; `alt` is its text alternative.
pub fn svg(layout: &Layout, alt: &str) -> Result<String> {
    let inner = WIDTH - 2.0 * MARGIN;
    let page =
        Frame { left: MARGIN, top: MARGIN, right: WIDTH - MARGIN, bottom: MARGIN + inner * ASPECT };
    let boxes: Vec<Frame> = layout.nodes.iter().map(|node| frame(&page, node.bounds)).collect();
    canvas::draw(WIDTH, page.bottom + MARGIN, alt, |canvas| {
        canvas.outline(page, GRID, 1.0)?;
        // Draw large boxes first, below those inside them.
        let mut order: Vec<usize> = (0..boxes.len()).collect();
        let area = |i: &usize| boxes.get(*i).map_or(0.0, |b| b.width() * b.height());
        order.sort_by(|a, b| area(b).total_cmp(&area(a)));
        for i in order {
            let (Some(node), Some(place)) = (layout.nodes.get(i), boxes.get(i)) else { continue };
            glyph(canvas, node.kind, *place)?;
            if !layout.widgets.contains(&i) {
                let ink = if node.kind == BoxKind::Text { GRID } else { FRAME };
                canvas.outline(*place, ink, 0.9)?;
            }
        }
        // Write words after all boxes: a neighbor may cover a word's box, but not the word.
        for (node, place) in layout.nodes.iter().zip(&boxes) {
            if let Some(word) = &node.word {
                write(canvas, word, *place)?;
            }
        }
        let labelled = layout.widgets.iter().filter_map(|i| boxes.get(*i));
        for place in labelled.clone() {
            canvas.outline(*place, LABELLED, 2.4)?;
        }
        (1..).zip(labelled).try_for_each(|(number, place)| badge(canvas, number, *place))
    })
}

/// Height of the drawing of any screen, in pixels.
#[cfg(test)]
fn height() -> f64 {
    (WIDTH - 2.0 * MARGIN) * ASPECT + 2.0 * MARGIN
}

fn frame(page: &Frame, [left, top, right, bottom]: [f64; 4]) -> Frame {
    let (x, y) = (
        |v: f64| page.left + v / BORDER * page.width(),
        |v: f64| page.top + v / BORDER * page.height(),
    );
    Frame { left: x(left), top: y(top), right: x(right), bottom: y(bottom) }
}

/// Draws the symbol of a kind.
fn glyph(canvas: &Canvas<'_>, kind: BoxKind, f: Frame) -> Result<()> {
    let thin = |points: &[(f64, f64)]| canvas.line(points, FRAME, 1.0, Stroke::Solid(0.9));
    let fill = |ink| canvas.area((f.left, f.top), (f.right, f.bottom), ink);
    let middle = (0.5 * (f.left + f.right), 0.5 * (f.top + f.bottom));
    let least = f.width().min(f.height());
    match kind {
        BoxKind::Text | BoxKind::Container => Ok(()),
        BoxKind::Button => fill(SURFACE),
        BoxKind::Icon => {
            fill(SURFACE)?;
            canvas.disc(middle, 0.28 * least, FRAME, 1.0)
        }
        BoxKind::Image => {
            fill(SURFACE)?;
            thin(&[(f.left, f.top), (f.right, f.bottom)])?;
            thin(&[(f.left, f.bottom), (f.right, f.top)])
        }
        BoxKind::Field => {
            // A cursor.
            fill(PAPER)?;
            let (x, reach) = (f.left + 5.0f64.min(0.5 * f.width()), 0.3 * f.height());
            thin(&[(x, middle.1 - reach), (x, middle.1 + reach)])
        }
        BoxKind::Check => {
            fill(PAPER)?;
            let at = |x: f64, y: f64| (f.left + x * f.width(), f.top + y * f.height());
            thin(&[at(0.2, 0.55), at(0.42, 0.78), at(0.82, 0.25)])
        }
        BoxKind::Switch => {
            fill(SURFACE)?;
            canvas.disc((f.right - 0.5 * least, middle.1), 0.36 * least, FRAME, 1.0)
        }
    }
}

/// Writes a word in its box, smaller if the box is narrow.
fn write(canvas: &Canvas<'_>, word: &str, f: Frame) -> Result<()> {
    let room = f.width() - 2.0;
    let size = (WORD * room / text_width(word, WORD).max(1.0)).clamp(LEAST_WORD, WORD);
    let (left, middle) = (f.left + 3.0, 0.5 * (f.top + f.bottom));
    canvas.text(word, (left, middle + 0.36 * size), size, Anchor::Start, INK, false)
}

/// Writes the number of a labeled box on its upper left corner.
fn badge(canvas: &Canvas<'_>, number: usize, f: Frame) -> Result<()> {
    let (x, y) = (f.left, f.top);
    canvas.disc((x, y), BADGE + 1.2, PAPER, 1.0)?;
    canvas.disc((x, y), BADGE, LABELLED, 1.0)?;
    canvas.text(&number.to_string(), (x, y + 4.4), 12.0, Anchor::Middle, PAPER, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use posenc_experiments::record::captions::LayoutNode;

    fn layout() -> Layout {
        let node = |kind, bounds, word: Option<&str>| LayoutNode {
            kind,
            bounds,
            word: word.map(str::to_owned),
        };
        let mut nodes = vec![
            node(BoxKind::Text, [20.0, 3.0, 50.0, 7.0], Some("<a> & \"b\"")),
            node(BoxKind::Text, [20.0, 13.0, 22.0, 17.0], Some("birthday")),
        ];
        for (i, kind) in (0..).zip(BoxKind::ALL) {
            let top = 20.0 + 8.0 * f64::from(i);
            nodes.push(node(kind, [2.0 + f64::from(i), top, 90.0, top + 6.0], None));
        }
        nodes.push(node(BoxKind::Icon, [0.0, 0.0, 99.0, 0.0], None));
        Layout { nodes, widgets: vec![3, 4, 9, 10] }
    }

    /// Catches boxes that are left out, drawn twice or misplaced, missing numbers, and words that are not escaped.
    #[test]
    fn every_box_and_number_is_drawn_once() {
        let layout = layout();
        let svg = svg(&layout, "a \"screen\" <of> boxes").unwrap();
        let tenths = |v: f64, extent: f64| ((MARGIN + v / BORDER * extent) * 10.0).round() as i64;
        let (width, height) = (WIDTH - 2.0 * MARGIN, super::height() - 2.0 * MARGIN);
        for node in &layout.nodes {
            let [left, top, right, bottom] = node.bounds;
            let (left, right) = (tenths(left, width), tenths(right, width));
            let (top, bottom) = (tenths(top, height), tenths(bottom, height));
            // A box without height has its corners in pairs.
            let mut corners =
                vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
            corners.dedup();
            let points: Vec<String> = corners.iter().map(|(x, y)| format!("{x},{y}")).collect();
            let drawn = svg.matches(&format!("points=\"{}\"", points.join(" "))).count();
            assert_eq!(drawn, 1, "{node:?}");
        }
        for number in 1..=4 {
            assert_eq!(svg.matches(&format!(">{number}</text>")).count(), 1, "{number}");
        }
        assert!(!svg.contains(">5</text>"));
        assert_eq!(svg.matches(" fill=\"#0969DA\"").count(), 4, "discs");
        assert_eq!(svg.matches(" stroke=\"#0969DA\"").count(), 4, "outlines");
        assert_eq!(svg.matches("&lt;a&gt; &amp; &quot;b&quot;</text>").count(), 1, "{svg}");
        assert!(svg.contains("<title>a &quot;screen&quot; &lt;of&gt; boxes</title>"));
        assert!(!svg.contains("<a>"));
        assert_eq!(svg, super::svg(&layout, "a \"screen\" <of> boxes").unwrap());
    }
}
