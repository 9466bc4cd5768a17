//! A plotters back end that writes SVG.
//!
//! Colors follow the reader's theme: an embedded style sheet gives every color its counterpart for dark backgrounds.
//! Browsers apply it to images by the color scheme of the surrounding page. Maps, drawn as rectangles, keep their
//! colors.
//!
//! plotters has integer coordinates. A unit is a tenth of a pixel, and the header scales the picture. Unlike plotters'
//! own back end, this one draws dashed lines and merges neighboring rectangles.

use std::collections::BTreeSet;
use std::convert::Infallible;

use plotters_backend::text_anchor::HPos;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontStyle, FontTransform,
};

use crate::colors::{Rgb, dark};
use crate::markdown::{is_hidden, replaced};

pub const UNITS: f64 = 10.0;
/// plotters divides the size of a font by this before it writes it.
pub const FONT_FACTOR: f64 = 1.24;
/// plotters' styles have no dashes: lines of this width, in units, are dashed.
pub const DASHED: u32 = 17;
/// Lines of this width, in units, are dotted.
pub const DOTTED: u32 = 9;
/// plotters has no outlined text: text of this style has a rim in the color of the card.
pub const HALO: FontStyle = FontStyle::Oblique;
/// Radius of the card's corners, in units.
const CORNER: u32 = 100;

pub struct Svg<'a> {
    text: &'a mut String,
    size: (u32, u32),
    /// Color of the path of rectangles that is not closed yet.
    open: Option<BackendColor>,
    /// Colors of areas and text that depend on the theme.
    fills: BTreeSet<(u8, u8, u8)>,
    /// Colors of lines that depend on the theme.
    strokes: BTreeSet<(u8, u8, u8)>,
}

/// End of the first line of every plot.
pub const STYLE: &str = "font-family=\"-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif\" \
                         stroke-linejoin=\"round\" stroke-linecap=\"round\">";

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl<'a> Svg<'a> {
    /// Begins a document of `size` units; `alt` describes it to readers who cannot see it.
    pub fn new(text: &'a mut String, size: (u32, u32), alt: &str) -> Self {
        let (width, height) = size;
        let alt = escaped(alt);
        let px = |units: u32| f64::from(units) / UNITS;
        text.push_str(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" aria-label=\"{alt}\" {STYLE}\n\
             <title>{alt}</title>\n\
             <rect x=\"5\" y=\"5\" width=\"{}\" height=\"{}\" rx=\"{CORNER}\" fill=\"#FFFFFF\" stroke=\"#D0D7DE\" stroke-width=\"10\"/>\n",
            px(width),
            px(height),
            width.saturating_sub(10),
            height.saturating_sub(10),
        ));
        let fills = BTreeSet::from([(255, 255, 255)]);
        let strokes = BTreeSet::from([(208, 215, 222), (255, 255, 255)]);
        Svg { text, size, open: None, fills, strokes }
    }

    fn dark_style(&self) -> String {
        let rule = |attribute: &str, rest: &str, (r, g, b): &(u8, u8, u8)| {
            let Rgb(dr, dg, db) = dark(Rgb(*r, *g, *b));
            format!(
                "[{attribute}=\"#{r:02X}{g:02X}{b:02X}\"]{rest}{{{attribute}:#{dr:02X}{dg:02X}{db:02X}}}"
            )
        };
        let fills = self.fills.iter().map(|c| rule("fill", ":not(path)", c));
        let strokes = self.strokes.iter().map(|c| rule("stroke", "", c));
        let rules: Vec<String> = fills.chain(strokes).collect();
        format!(
            "<style>\n@media (prefers-color-scheme: dark) {{\n{}\n}}\n</style>\n",
            rules.join("\n")
        )
    }

    /// Closes an open path and writes an element, unless `color` is transparent.
    fn element(&mut self, color: BackendColor, text: String) -> Drawn {
        if color.alpha != 0.0 {
            self.close();
            self.text.push_str(&text);
            self.text.push('\n');
        }
        Ok(())
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.text.push_str("\"/>\n");
        }
    }
}

impl DrawingBackend for Svg<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        self.close();
        let style = self.dark_style();
        self.text.push_str(&style);
        self.text.push_str("</svg>\n");
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        self.draw_rect((x, y), (x + 1, y + 1), &color, true)
    }

    /// Consecutive rectangles of one color become one path, which takes a third of the bytes and has no seams.
    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        _: bool,
    ) -> Drawn {
        let color = style.color();
        if self.open.is_none_or(|open| open.rgb != color.rgb) {
            self.close();
            let fill = hexadecimal(color);
            *self.text += &format!("<path shape-rendering=\"crispEdges\" fill=\"{fill}\" d=\"");
            self.open = Some(color);
        }
        let (width, height) = (right - left, bottom - top);
        *self.text += &format!("M{left},{top}h{width}v{height}h{}z", -width);
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        let (color, width) = (style.color(), style.stroke_width());
        let dashes = match width {
            DASHED => " stroke-dasharray=\"62 42\"",
            DOTTED => " stroke-dasharray=\"2 36\"",
            _ => "",
        };
        self.strokes.insert(color.rgb);
        let (opacity, stroke, points) = (opacity(color), hexadecimal(color), joined(path));
        let stroke = format!("stroke=\"{stroke}\" stroke-width=\"{width}\"{dashes}");
        self.element(
            color,
            format!("<polyline fill=\"none\"{opacity} {stroke} points=\"{points}\"/>"),
        )
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        radius: u32,
        style: &S,
        _: bool,
    ) -> Drawn {
        let (color, width) = (style.color(), style.stroke_width());
        self.fills.insert(color.rgb);
        let (opacity, fill) = (opacity(color), hexadecimal(color));
        let circle = format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"");
        self.element(color, format!("{circle}{opacity} fill=\"{fill}\" stroke-width=\"{width}\"/>"))
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Drawn {
        let color = style.color();
        self.fills.insert(color.rgb);
        let (opacity, fill, points) = (opacity(color), hexadecimal(color), joined(corners));
        self.element(color, format!("<polygon{opacity} fill=\"{fill}\" points=\"{points}\"/>"))
    }

    /// The baseline is 0.76 of the font size below the given place.
    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        (x, y): BackendCoord,
    ) -> Drawn {
        let color = style.color();
        let anchor = match style.anchor().h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        self.fills.insert(color.rgb);
        let weight = match style.style() {
            FontStyle::Bold => " font-weight=\"bold\"",
            // That is, HALO.
            FontStyle::Oblique => {
                " font-weight=\"600\" paint-order=\"stroke\" stroke=\"#FFFFFF\" stroke-width=\"32\""
            }
            _ => "",
        };
        let turn = match style.transform() {
            FontTransform::Rotate270 => format!(" transform=\"rotate(270, {x}, {y})\""),
            _ => String::new(),
        };
        let (opacity, fill, size) =
            (opacity(color), hexadecimal(color), style.size() / FONT_FACTOR);
        let text = escaped(text).replace('\'', "&apos;");
        self.element(
            color,
            format!(
                "<text x=\"{x}\" y=\"{y}\" dy=\"0.76em\" text-anchor=\"{anchor}\" font-size=\"{size}\"{opacity} \
                 fill=\"{fill}\"{weight}{turn}>{text}</text>"
            ),
        )
    }
}

fn hexadecimal(color: BackendColor) -> String {
    let (r, g, b) = color.rgb;
    format!("#{r:02X}{g:02X}{b:02X}")
}

fn opacity(color: BackendColor) -> String {
    if color.alpha == 1.0 { String::new() } else { format!(" opacity=\"{}\"", color.alpha) }
}

fn joined(points: impl IntoIterator<Item = BackendCoord>) -> String {
    let points: Vec<String> = points.into_iter().map(|(x, y)| format!("{x},{y}")).collect();
    points.join(" ")
}

fn escaped(text: &str) -> String {
    replaced(text, |c| {
        let entity = match c {
            '<' => "&lt;",
            '>' => "&gt;",
            '&' => "&amp;",
            '"' => "&quot;",
            c if is_hidden(c) => "",
            _ => return None,
        };
        Some(entity.to_owned())
    })
}
