//! Formulas as MathML, which browsers show without a script.
//!
//! Formulas are taken out of the Markdown before mdBook reads it, and put back into its HTML: what stands for them
//! between consists of characters for private use, which mean nothing to Markdown and stay out of anchors.

use anyhow::{Result, anyhow};
use math_core::{LatexToMathML, MathCoreConfig, MathDisplay};
use posenc_report::math::{Math, pieces};

use crate::html::escaped;

/// Begins and ends what stands for a formula.
const FROM: char = '\u{e000}';
const TO: char = '\u{e001}';
/// The digit 0 of a formula's number; the others follow.
const ZERO: u32 = 0xe010;
/// A formula in a line of text whose LaTeX is longer than this may be wider than a phone.
const LONG: usize = 24;

/// The formulas of a site.
pub struct Formulas {
    converter: LatexToMathML,
    found: Vec<Formula>,
}

struct Formula {
    latex: String,
    mathml: Option<String>,
    is_long: bool,
}

impl Formulas {
    /// None yet.
    ///
    /// # Errors
    ///
    /// Never, as long as we define no macros.
    pub fn new() -> Result<Self> {
        let converter = LatexToMathML::new(MathCoreConfig::default())
            .map_err(|_| anyhow!("the converter of formulas cannot be set up"))?;
        Ok(Formulas { converter, found: Vec::new() })
    }

    /// The page with something in place of each formula.
    pub fn taken_from(&mut self, page: &str) -> String {
        let mut out = String::with_capacity(page.len());
        for piece in pieces(page) {
            match piece.math {
                Some(math) => {
                    let line = out.rsplit('\n').next().unwrap_or_default();
                    let is_cell = line.trim_start_matches([' ', '>']).starts_with('|');
                    out.push_str(&self.stand_in(math, is_cell));
                }
                None => out.push_str(piece.raw),
            }
        }
        out
    }

    fn stand_in(&mut self, math: Math<'_>, is_cell: bool) -> String {
        let display = match math.is_display {
            true => MathDisplay::Block,
            false => MathDisplay::Inline,
        };
        // In a table a bar is written with a backslash, which elsewhere is the LaTeX of a double bar.
        let latex = match is_cell {
            true => math.latex.replace("\\|", "|"),
            false => math.latex.to_owned(),
        };
        let converted = self.converter.convert_with_local_state(&latex, display);
        let mathml = converted.ok().map(|result| result.mathml);
        let number = self.found.len().to_string();
        let is_long = !math.is_display && latex.len() > LONG;
        self.found.push(Formula { latex, mathml, is_long });
        let digits = number.chars().filter_map(|c| char::from_u32(ZERO + c.to_digit(10)?));
        std::iter::once(FROM).chain(digits).chain(std::iter::once(TO)).collect()
    }

    /// Text of a page with its formulas; one that cannot be converted is shown as it was written.
    pub fn put_into(&self, text: &str) -> String {
        self.replaced(text, |formula| match &formula.mathml {
            // Browsers do not break a formula's line: a long one scrolls where the page is narrow.
            Some(mathml) if formula.is_long => format!("<span class=\"long\">{mathml}</span>"),
            Some(mathml) => mathml.clone(),
            None => format!("<code>{}</code>", escaped(&formula.latex)),
        })
    }

    /// The value of an attribute with its formulas, as far as plain text can show them.
    pub fn put_as_text(&self, text: &str) -> String {
        self.replaced(text, |formula| formula.latex.replace(['\\', '{', '}'], ""))
    }

    fn replaced(&self, text: &str, shown: impl Fn(&Formula) -> String) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once(FROM) {
            out.push_str(before);
            let (digits, behind) = behind.split_once(TO).unwrap_or((behind, ""));
            let digits = digits
                .chars()
                .filter_map(|c| char::from_digit(u32::from(c).checked_sub(ZERO)?, 10));
            let number = digits.collect::<String>().parse::<usize>().ok();
            out.push_str(&number.and_then(|n| self.found.get(n)).map(&shown).unwrap_or_default());
            rest = behind;
        }
        out.push_str(rest);
        out
    }

    /// Formulas that could not be converted, as they were written.
    pub fn unreadable(&self) -> impl Iterator<Item = &str> {
        self.found.iter().filter(|f| f.mathml.is_none()).map(|f| &*f.latex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches formulas that come back in another place, and one that is lost because it cannot be converted.
    #[test]
    fn formulas_come_back() {
        let mut formulas = Formulas::new().unwrap();
        let page: String = (0..11).map(|i| format!("$x_{{{i}}}$ ")).collect();
        let taken = formulas.taken_from(&(page + "`$5` $\\nonsense{<}$\n| $a \\| b$ |"));
        assert!(!taken.contains("x_") && taken.contains("`$5`"), "{taken}");
        let back = formulas.put_into(&taken);
        let tens: Vec<_> = back.match_indices("<mn>10</mn>").collect();
        assert_eq!(tens.len(), 1, "{back}");
        assert!(back.contains("<code>\\nonsense{&lt;}</code>"), "{back}");
        assert!(!back.contains('‖') && !back.contains('∥'), "{back}");
        assert_eq!(formulas.unreadable().collect::<Vec<_>>(), ["\\nonsense{<}"]);
        assert!(formulas.put_as_text(&taken).starts_with("x_0 x_1 "));
        // A norm in a line of text has its double bars; in a cell they have a name.
        for norm in ["so $\\|a\\|$ is", "> | $\\Vert a\\Vert$ | b |"] {
            let taken = formulas.taken_from(norm);
            let back = formulas.put_into(&taken);
            assert!(back.contains('‖') || back.contains('∥'), "{back}");
        }
        // A number that no formula has.
        assert_eq!(formulas.put_into("\u{e000}\u{e019}\u{e019}\u{e001}nothing"), "nothing");
    }
}
