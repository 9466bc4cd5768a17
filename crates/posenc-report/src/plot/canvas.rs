//! A plotters drawing area in pixels of the page, with the drawing primitives of figures.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Frame;
use super::svg::{DASHED, DOTTED, FONT_FACTOR, HALO, Svg, UNITS};
use crate::colors::Rgb;

/// Mean width of a character in units of the font's size; wide, since fonts differ.
const CHARACTER: f64 = 0.62;

pub const INK: Rgb = Rgb(31, 35, 40);
pub const SOFT: Rgb = Rgb(72, 79, 88);
pub const FRAME: Rgb = Rgb(140, 149, 159);
pub const GRID: Rgb = Rgb(208, 215, 222);
pub const PAPER: Rgb = Rgb(255, 255, 255);

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stroke {
    /// Solid, with this width in pixels.
    Solid(f64),
    Dashed,
    Dotted,
}

/// The part of a text that is at its position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Marker {
    #[default]
    None,
    Disc,
    Square,
    /// A triangle on its base.
    Triangle,
    /// A square on its corner.
    Diamond,
    /// A triangle on its tip.
    Tip,
    Ring,
    Frame,
    Plus,
    Star,
}

impl Marker {
    /// Markers of curves that share a hue, in turn.
    pub const TURN: [Marker; 8] = [
        Marker::Disc,
        Marker::Square,
        Marker::Triangle,
        Marker::Diamond,
        Marker::Ring,
        Marker::Tip,
        Marker::Frame,
        Marker::Plus,
    ];
}

pub struct Canvas<'a> {
    area: DrawingArea<Svg<'a>, Shift>,
}

/// Draws one file of `width` × `height` pixels; `alt` is its text alternative.
pub fn draw(
    width: f64,
    height: f64,
    alt: &str,
    paint: impl FnOnce(&Canvas<'_>) -> Result<()>,
) -> Result<String> {
    let mut text = String::new();
    let size = ((width * UNITS) as u32, (height * UNITS) as u32);
    let canvas = Canvas { area: Svg::new(&mut text, size, alt).into_drawing_area() };
    paint(&canvas)?;
    drawn(canvas.area.present())?;
    drop(canvas);
    Ok(text)
}

/// Estimated width of a text, in pixels.
pub fn text_width(text: &str, size: f64) -> f64 {
    let units: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ':' | '\'' | '|' | ' ' | '(' | ')' => 0.6,
            'm' | 'w' | 'M' | 'W' | '%' | '→' => 1.5,
            c if c.is_uppercase() => 1.2,
            '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.75,
            _ => 1.0,
        })
        .sum();
    units * CHARACTER * size
}

/// Breaks a text into lines of at most `width` pixels; the last of `most` lines ends in `…` where
/// more would follow.
pub fn wrapped(text: &str, size: f64, width: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if line.is_empty() || text_width(&longer, size) <= width {
            line = longer;
        } else {
            lines.push(std::mem::replace(&mut line, word.to_owned()));
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    let cut = lines.len() > most;
    lines.truncate(most.max(1));
    let last = lines.len();
    for (i, line) in lines.iter_mut().enumerate() {
        let ends = i + 1 == last && cut;
        if ends || text_width(line, size) > width {
            let mut end = line.chars().next().map_or(0, char::len_utf8);
            let mut used = 0.0;
            for (place, c) in line.char_indices() {
                used += text_width(c.encode_utf8(&mut [0; 4]), size);
                if used + size > width {
                    break;
                }
                end = end.max(place + c.len_utf8());
            }
            line.truncate(end);
            line.push('…');
        }
    }
    lines
}

fn color(c: Rgb) -> RGBColor {
    RGBColor(c.0, c.1, c.2)
}

/// Converts pixels to units. Nothing is drawn beyond the limit; it only keeps the cast in range.
fn unit(v: f64) -> i32 {
    (v.clamp(-1e5, 1e5) * UNITS).round() as i32
}

fn at((x, y): (f64, f64)) -> (i32, i32) {
    (unit(x), unit(y))
}

impl Canvas<'_> {
    pub fn line(
        &self,
        points: &[(f64, f64)],
        ink: Rgb,
        opacity: f64,
        stroke: Stroke,
    ) -> Result<()> {
        if points.len() < 2 {
            return Ok(());
        }
        let width = match stroke {
            // Shift reserved widths by one unit, which is hardly visible: they mean dashes and dots.
            Stroke::Solid(width) => match (width * UNITS).round() as u32 {
                w if w == DASHED || w == DOTTED => w + 1,
                w => w.max(1),
            },
            Stroke::Dashed => DASHED,
            Stroke::Dotted => DOTTED,
        };
        let mut units: Vec<_> = points.iter().copied().map(at).collect();
        units.dedup();
        if units.len() == 1 {
            units.push(units[0]);
        }
        let style = color(ink).mix(opacity).stroke_width(width);
        drawn(self.area.draw(&PathElement::new(units, style)))
    }

    pub(super) fn outline(&self, f: Frame, ink: Rgb, width: f64) -> Result<()> {
        let (upper, lower) =
            ([(f.left, f.top), (f.right, f.top)], [(f.right, f.bottom), (f.left, f.bottom)]);
        let corners = [upper[0], upper[1], lower[0], lower[1], upper[0]];
        self.line(&corners, ink, 1.0, Stroke::Solid(width))
    }

    pub fn polygon(&self, points: &[(f64, f64)], ink: Rgb, opacity: f64) -> Result<()> {
        if points.len() < 3 {
            return Ok(());
        }
        let units: Vec<_> = points.iter().copied().map(at).collect();
        drawn(self.area.draw(&Polygon::new(units, color(ink).mix(opacity).filled())))
    }

    /// A filled rectangle that follows the theme.
    pub fn area(
        &self,
        (left, top): (f64, f64),
        (right, bottom): (f64, f64),
        ink: Rgb,
    ) -> Result<()> {
        self.polygon(&[(left, top), (right, top), (right, bottom), (left, bottom)], ink, 1.0)
    }

    /// A filled rectangle of a map, of the same color in both themes.
    pub fn rectangle(&self, from: (f64, f64), to: (f64, f64), ink: Rgb) -> Result<()> {
        drawn(self.area.draw(&Rectangle::new([at(from), at(to)], color(ink).filled())))
    }

    pub fn disc(&self, center: (f64, f64), radius: f64, ink: Rgb, opacity: f64) -> Result<()> {
        let style = color(ink).mix(opacity).filled();
        drawn(self.area.draw(&Circle::new(at(center), unit(radius), style)))
    }

    pub fn marker(&self, (x, y): (f64, f64), marker: Marker, size: f64, ink: Rgb) -> Result<()> {
        let r = size / 2.0;
        let square = [(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)];
        let closed = |points: &[(f64, f64)]| {
            let mut all = points.to_vec();
            all.push(points[0]);
            self.polygon(points, PAPER, 1.0)?;
            self.line(&all, ink, 1.0, Stroke::Solid(1.6))
        };
        match marker {
            Marker::None => Ok(()),
            Marker::Disc => self.disc((x, y), r * 1.05, ink, 1.0),
            Marker::Square => {
                self.polygon(&square.map(|(a, b)| (x + 0.9 * (a - x), y + 0.9 * (b - y))), ink, 1.0)
            }
            Marker::Triangle | Marker::Tip => {
                let up = if marker == Marker::Triangle { -r } else { r };
                let base = y - 0.8 * up;
                let corners = [(x, y + 1.2 * up), (x + 1.15 * r, base), (x - 1.15 * r, base)];
                self.polygon(&corners, ink, 1.0)
            }
            Marker::Diamond => {
                let r = 1.25 * r;
                self.polygon(&[(x, y - r), (x + r, y), (x, y + r), (x - r, y)], ink, 1.0)
            }
            Marker::Ring => {
                self.disc((x, y), r * 1.1, ink, 1.0)?;
                self.disc((x, y), r * 0.55, PAPER, 1.0)
            }
            Marker::Frame => closed(&square.map(|(a, b)| (x + 0.8 * (a - x), y + 0.8 * (b - y)))),
            Marker::Star => {
                let corner = |i: u32| {
                    let reach = if i.is_multiple_of(2) { 1.3 * r } else { 0.55 * r };
                    let (sin, cos) = (f64::from(i) * std::f64::consts::PI / 5.0).sin_cos();
                    (x + reach * sin, y - reach * cos)
                };
                self.polygon(&(0..10).map(corner).collect::<Vec<_>>(), ink, 1.0)
            }
            Marker::Plus => {
                self.line(&[(x - r, y), (x + r, y)], ink, 1.0, Stroke::Solid(2.0))?;
                self.line(&[(x, y - r), (x, y + r)], ink, 1.0, Stroke::Solid(2.0))
            }
        }
    }

    /// A marker with a light rim, legible on its own curve.
    pub fn marked(&self, at: (f64, f64), marker: Marker, size: f64, ink: Rgb) -> Result<()> {
        self.marker(at, marker, size + 4.5, PAPER)?;
        self.marker(at, marker, size, ink)
    }

    /// The mark of a published value: a cross with a light rim, legible on its own curve. With `many` crosses, they are
    /// small and have no rims, which would cover the curve.
    pub fn cross(&self, (x, y): (f64, f64), ink: Rgb, many: bool) -> Result<()> {
        let (r, strokes) = match many {
            false => (4.2, [Some((PAPER, 4.4)), Some((ink, 2.1))]),
            true => (2.3, [None, Some((ink, 1.1))]),
        };
        for (shade, width) in strokes.into_iter().flatten() {
            for sign in [-1.0, 1.0] {
                let ends = [(x - r, y - sign * r), (x + r, y + sign * r)];
                self.line(&ends, shade, 1.0, Stroke::Solid(width))?;
            }
        }
        Ok(())
    }

    /// A text whose baseline runs through `y`.
    pub fn text(
        &self,
        text: &str,
        place: (f64, f64),
        size: f64,
        anchor: Anchor,
        ink: Rgb,
        bold: bool,
    ) -> Result<()> {
        let style = if bold { FontStyle::Bold } else { FontStyle::Normal };
        self.write(text, place, size, anchor, ink, style, FontTransform::None)
    }

    /// The name of a curve: a text with a rim in the color of the card, legible on lines.
    pub fn name(
        &self,
        text: &str,
        place: (f64, f64),
        size: f64,
        anchor: Anchor,
        ink: Rgb,
    ) -> Result<()> {
        self.write(text, place, size, anchor, ink, HALO, FontTransform::None)
    }

    /// A text that runs upward, its baseline through `x`.
    pub fn text_upward(&self, text: &str, place: (f64, f64), size: f64, ink: Rgb) -> Result<()> {
        let (style, turn) = (FontStyle::Normal, FontTransform::Rotate270);
        self.write(text, place, size, Anchor::Middle, ink, style, turn)
    }

    fn write(
        &self,
        text: &str,
        (x, y): (f64, f64),
        size: f64,
        anchor: Anchor,
        ink: Rgb,
        weight: FontStyle,
        turn: FontTransform,
    ) -> Result<()> {
        let horizontal = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        // The back end puts the baseline 0.76 of the font size below the given place.
        let drop = 0.76 * size;
        let place = match turn {
            FontTransform::Rotate270 => (x - drop, y),
            _ => (x, y - drop),
        };
        let font = FontDesc::new(FontFamily::SansSerif, size * UNITS * FONT_FACTOR, weight)
            .transform(turn);
        let ink = color(ink);
        let style = TextStyle::from(font).color(&ink).pos(Pos::new(horizontal, VPos::Top));
        drawn(self.area.draw(&Text::new(text, at(place), style)))
    }
}

fn drawn<E: std::fmt::Display>(result: Result<(), E>) -> Result<()> {
    result.map_err(|e| anyhow!("SVG: {e}"))
}
