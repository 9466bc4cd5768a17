//! Formulas as MathML, which browsers show without a script.
//!
//! Placeholders replace the formulas before the Markdown is parsed, and the HTML gets the formulas back. Placeholders
//! are numbers in private-use characters, which mean nothing to Markdown and are not part of anchors.
//!
//! Formulas come from experiments, which are not trusted. The converter recurses and may panic, so it gets only short
//! formulas, in a thread with its own stack. Only the listed tags and attributes of its MathML are accepted, since its
//! `\href` takes any link. A refused formula is shown as LaTeX.

use anyhow::{Result, anyhow};
use math_core::{LatexToMathML, MathCoreConfig, MathDisplay};
use posenc_report::math::{Math, pieces};

use crate::html::{Token, escaped, tokens};

/// First and last character of a formula's placeholder.
const FROM: char = '\u{e000}';
const TO: char = '\u{e001}';
/// The digit 0 of a formula's number; the others follow.
const ZERO: u32 = 0xe010;
/// An inline formula with more bytes of LaTeX than this may be wider than a phone.
const LONG: usize = 24;

/// Longest formula that is converted, in bytes; the longest of the report has 170.
const LONGEST: usize = 4000;
/// Maximum nesting depth of MathML; browsers stop at 512.
const DEEPEST: usize = 200;
/// Stack of a conversion, in bytes: every byte of the longest formula may be a level of recursion.
const STACK: usize = 32 << 20;
/// Allowed elements of MathML, which only show content.
const ELEMENTS: [&str; 27] = [
    "math",
    "semantics",
    "mi",
    "mn",
    "mo",
    "ms",
    "mtext",
    "mspace",
    "mrow",
    "mfrac",
    "msqrt",
    "mroot",
    "msub",
    "msup",
    "msubsup",
    "munder",
    "mover",
    "munderover",
    "mmultiscripts",
    "mprescripts",
    "mtable",
    "mtr",
    "mtd",
    "mstyle",
    "mpadded",
    "mphantom",
    "menclose",
];
/// Allowed attributes, which load nothing and run nothing.
const ATTRIBUTES: [&str; 34] = [
    "accent",
    "accentunder",
    "class",
    "columnalign",
    "columnlines",
    "columnspacing",
    "depth",
    "dir",
    "display",
    "displaystyle",
    "fence",
    "form",
    "height",
    "largeop",
    "linethickness",
    "lspace",
    "mathbackground",
    "mathcolor",
    "mathsize",
    "mathvariant",
    "maxsize",
    "minsize",
    "movablelimits",
    "notation",
    "rowlines",
    "rowspacing",
    "rspace",
    "scriptlevel",
    "separator",
    "stretchy",
    "style",
    "symmetric",
    "voffset",
    "width",
];

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
    /// An empty collection. Fails only for invalid macros, and none are defined.
    pub fn new() -> Result<Self> {
        let converter = LatexToMathML::new(MathCoreConfig::default())
            .map_err(|_| anyhow!("cannot initialize the LaTeX converter"))?;
        Ok(Formulas { converter, found: Vec::new() })
    }

    /// Replaces each formula of a page with a placeholder.
    pub fn taken_from(&mut self, page: &str) -> String {
        let mut out = String::with_capacity(page.len());
        // Whether the line belongs to a table; `None` while it has only spaces.
        let mut is_cell = None;
        for piece in pieces(page) {
            match piece.math {
                Some(math) => out.push_str(&self.stand_in(math, is_cell == Some(true))),
                // Remove characters that would be mistaken for placeholders.
                None => out.extend(piece.raw.chars().filter(|c| !is_reserved(*c))),
            }
            for c in piece.raw.chars() {
                match c {
                    '\n' => is_cell = None,
                    ' ' | '>' => {}
                    c => is_cell = is_cell.or(Some(c == '|')),
                }
            }
        }
        out
    }

    fn stand_in(&mut self, math: Math<'_>, is_cell: bool) -> String {
        let display = match math.is_display {
            true => MathDisplay::Block,
            false => MathDisplay::Inline,
        };
        // In a table, a bar is written as `\|`, which elsewhere is the LaTeX of a double bar.
        let latex = match is_cell {
            true => math.latex.replace("\\|", "|"),
            false => math.latex.to_owned(),
        };
        let mathml = self.converted(&latex, display).filter(|mathml| is_harmless(mathml));
        let number = self.found.len().to_string();
        let is_long = !math.is_display && latex.len() > LONG;
        self.found.push(Formula { latex, mathml, is_long });
        let digits = number.chars().filter_map(|c| char::from_u32(ZERO + c.to_digit(10)?));
        std::iter::once(FROM).chain(digits).chain(std::iter::once(TO)).collect()
    }

    /// The MathML of a formula.
    fn converted(&self, latex: &str, display: MathDisplay) -> Option<String> {
        if latex.len() > LONGEST {
            return None;
        }
        std::thread::scope(|scope| {
            let convert = || self.converter.convert_with_local_state(latex, display).ok();
            let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, convert);
            thread.ok()?.join().ok()?.map(|result| result.mathml)
        })
    }

    /// Replaces placeholders with MathML. Formulas that cannot be converted are shown as LaTeX.
    pub fn put_into(&self, text: &str) -> String {
        self.replaced(text, |formula| match &formula.mathml {
            // Browsers do not break formulas, so long ones scroll on narrow pages.
            Some(mathml) if formula.is_long => format!("<span class=\"long\">{mathml}</span>"),
            Some(mathml) => mathml.clone(),
            None => format!("<code>{}</code>", escaped(&formula.latex)),
        })
    }

    /// Replaces placeholders with plain text that resembles the formulas.
    pub fn put_as_text(&self, text: &str) -> String {
        self.replaced(text, |formula| formula.latex.replace(['\\', '{', '}'], ""))
    }

    /// Replaces placeholders in HTML with escaped LaTeX.
    pub fn put_escaped(&self, html: &str) -> String {
        self.replaced(html, |formula| escaped(&formula.latex))
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

    /// LaTeX of the formulas that could not be converted.
    pub fn unreadable(&self) -> impl Iterator<Item = &str> {
        self.found.iter().filter(|f| f.mathml.is_none()).map(|f| &*f.latex)
    }
}

/// Whether a character is reserved for placeholders.
fn is_reserved(c: char) -> bool {
    matches!(c, FROM | TO) || (ZERO..ZERO + 10).contains(&u32::from(c))
}

/// Whether MathML has only listed tags and attributes, and is not nested too deeply.
fn is_harmless(mathml: &str) -> bool {
    let mut depth = 0usize;
    tokens(mathml).all(|token| {
        let tag = match token {
            Token::Text(text) => return !text.contains('<'),
            Token::Tag(tag) => tag,
        };
        depth = match tag.closes {
            true => depth.saturating_sub(1),
            false => depth + usize::from(!tag.raw.ends_with("/>")),
        };
        ELEMENTS.contains(&tag.name)
            && depth <= DEEPEST
            && tag
                .attributes()
                .all(|(name, value)| ATTRIBUTES.contains(&name) && !value.contains("url"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches formulas that are put back in the wrong place, and formulas that are lost because they cannot be
    /// converted.
    #[test]
    fn formulas_are_put_back() {
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
        // A norm is written as `\|` in a line of text, and as `\Vert` in a cell.
        for norm in ["so $\\|a\\|$ is", "> | $\\Vert a\\Vert$ | b |"] {
            let taken = formulas.taken_from(norm);
            let back = formulas.put_into(&taken);
            assert!(back.contains('‖') || back.contains('∥'), "{back}");
        }
        // A placeholder with a number that no formula has.
        assert_eq!(formulas.put_into("\u{e000}\u{e019}\u{e019}\u{e001}nothing"), "nothing");
    }

    /// Catches a formula that runs a script, links, or takes the place of another formula; one that overflows the stack
    /// or panics would end the process.
    #[test]
    fn hostile_formulas_are_shown_as_text() {
        let nested =
            |part: &str, end: &str, n: usize| format!("${}x{}$", part.repeat(n), end.repeat(n));
        let mut hostile: Vec<String> = [
            "$\\href{javascript:alert(1)}{x}$",
            "$\\url{javascript:alert(1)}$",
            "$\\text{<img src=x onerror=alert(1)>}$",
            "$\\color{\" onload=\"x}{y}$",
            "$\\textcolor{red;background:url(x)}{y}$",
            "$\\class{zoom}{x}$ $\\htmlData{a=b}{x}$ $\\style{x:y}{z}$",
            "$\\label{a\" onload=\"x}$",
            "$<script>alert(1)</script>$",
            "$\u{e000}\u{e010}\u{e001}$ \u{e000}\u{e010}\u{e001}",
            "$\\def\\a{\\a}\\a$ $\\newcommand{\\b}{\\b\\b}\\b$",
        ]
        .map(str::to_owned)
        .into();
        for n in [10, 300, 1900, 100_000] {
            hostile.push(nested("{", "}", n));
            hostile.push(nested("\\sqrt", "", n));
            hostile.push(nested("\\sqrt{", "}", n));
            hostile.push(nested("\\left(", "\\right)", n));
            hostile.push(nested("\\frac{1}{", "}", n));
            hostile.push(nested("x^{", "}", n));
            hostile.push(nested("\\begin{matrix}", "\\end{matrix}", n));
            hostile.push(nested("\\text{", "}", n));
            hostile.push(nested("'", "", n));
            hostile.push(nested("x_", "", n));
        }
        for page in hostile {
            let mut formulas = Formulas::new().unwrap();
            let taken = formulas.taken_from(&page);
            let shown = formulas.put_into(&taken);
            assert!(
                shown.len() < 1000 + 100 * page.len(),
                "{} of {}",
                shown.len(),
                &page[..40.min(page.len())]
            );
            let tags: Vec<_> = crate::html::tags(&shown).collect();
            for tag in &tags {
                let known = ELEMENTS.contains(&tag.name) || ["code", "span"].contains(&tag.name);
                let attributes = tag.attributes().all(|(name, _)| ATTRIBUTES.contains(&name));
                assert!(known && attributes, "{} in {shown}", tag.raw);
            }
            let inside = tags.iter().filter(|tag| !tag.closes && tag.name == "mrow").count();
            assert!(inside <= DEEPEST + 10, "{inside} in {}", &page[..40.min(page.len())]);
            assert!(!formulas.put_escaped(&taken).contains("<script"));
        }
        // Placeholders in the input are removed.
        let mut formulas = Formulas::new().unwrap();
        let taken = formulas.taken_from("$x$ \u{e000}\u{e010}\u{e001}");
        assert_eq!(taken.matches(FROM).count(), 1);
    }
}
