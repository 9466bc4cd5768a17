//! Finds formulas and code in a Markdown page: `$…$`, `` $`…`$ `` and `$$…$$` as GitHub reads them, and code in
//! backticks.
//!
//! Pages contain text from records and experiments. Every search therefore continues where the previous one ended, so
//! that a page takes linear time whatever it contains.

use std::collections::HashMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Math<'a> {
    pub latex: &'a str,
    /// Whether it is a display formula (`$$…$$`).
    pub is_display: bool,
}

/// A stretch of a page: a formula, code, or the text between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The text as written in the page. The concatenation of all pieces is the page.
    pub raw: &'a str,
    pub math: Option<Math<'a>>,
    /// Whether it is code, with its backticks.
    pub is_code: bool,
}

/// Splits a page into formulas, code, and the text between them. Escaped dollars belong to the text.
pub fn pieces(page: &str) -> Pieces<'_> {
    Pieces {
        page,
        place: 0,
        found: None,
        dollars: dollars(page),
        ticks: ticks(page),
        displays: places(page, b"$$"),
        protected: places(page, b"`$"),
    }
}

#[derive(Debug, Clone)]
pub struct Pieces<'a> {
    page: &'a str,
    place: usize,
    /// A piece that follows the text before it.
    found: Option<Piece<'a>>,
    /// Places of dollars without a backslash before them.
    dollars: Vec<usize>,
    /// Places of runs of backticks, by length.
    ticks: HashMap<usize, Vec<usize>>,
    displays: Vec<usize>,
    protected: Vec<usize>,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if let Some(piece) = self.found.take() {
            return Some(piece);
        }
        let start = self.place;
        while let Some(offset) = self.page.get(self.place..)?.find(['$', '`', '\\']) {
            let here = self.place + offset;
            let rest = &self.page[here..];
            let piece = match rest.as_bytes().first() {
                Some(b'\\') => {
                    self.place = here + 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                    continue;
                }
                Some(b'`') => self.code(here),
                _ => self.formula(here),
            };
            let Some(piece) = piece else { continue };
            self.place = here + piece.raw.len();
            if here == start {
                return Some(piece);
            }
            self.found = Some(piece);
            return Some(text(&self.page[start..here]));
        }
        self.place = self.page.len();
        (start < self.place).then(|| text(&self.page[start..]))
    }
}

impl<'a> Pieces<'a> {
    /// The code that begins at `here`; without an end, the backticks are text.
    fn code(&mut self, here: usize) -> Option<Piece<'a>> {
        let rest = &self.page[here..];
        let ticks = rest.len() - rest.trim_start_matches('`').len();
        self.place = here + ticks;
        let end = next(self.ticks.get(&ticks)?, here + ticks)? + ticks;
        Some(Piece { raw: &self.page[here..end], math: None, is_code: true })
    }

    /// The formula that begins at `here`; without an end, the dollar is text.
    fn formula(&mut self, here: usize) -> Option<Piece<'a>> {
        let rest = &self.page[here..];
        let (ticks, end) = if rest.starts_with("$$") {
            self.place = here + 2;
            (2, next(&self.displays, here + 2)?)
        } else if rest.starts_with("$`") {
            self.place = here + 2;
            (2, next(&self.protected, here + 2)?)
        } else {
            self.place = here + 1;
            (1, next(&self.dollars, here + 1)?)
        };
        let latex = &self.page[here + ticks..end];
        let raw = &self.page[here..end + ticks];
        let is_display = raw.starts_with("$$");
        if ticks == 1 {
            let digit = self.page[end + 1..].starts_with(|c: char| c.is_ascii_digit());
            let is_math = !latex.is_empty() && latex.trim() == latex && !latex.contains('`');
            if !is_math || digit || latex.contains("\n\n") {
                return None;
            }
        }
        Some(Piece { raw, math: Some(Math { latex, is_display }), is_code: false })
    }
}

/// The first of these places that is not before `from`.
fn next(places: &[usize], from: usize) -> Option<usize> {
    places.get(places.partition_point(|place| *place < from)).copied()
}

/// All places of a text of two bytes.
fn places(page: &str, needle: &[u8; 2]) -> Vec<usize> {
    let pairs = page.as_bytes().windows(2).enumerate();
    pairs.filter(|(_, pair)| pair == needle).map(|(place, _)| place).collect()
}

fn text(raw: &str) -> Piece<'_> {
    Piece { raw, math: None, is_code: false }
}

fn dollars(page: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut escaped = false;
    for (place, byte) in page.bytes().enumerate() {
        if byte == b'$' && !escaped {
            places.push(place);
        }
        escaped = byte == b'\\' && !escaped;
    }
    places
}

fn ticks(page: &str) -> HashMap<usize, Vec<usize>> {
    let mut runs: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut length = 0;
    for (place, byte) in page.bytes().chain([0]).enumerate() {
        if byte == b'`' {
            length += 1;
        } else if length > 0 {
            runs.entry(length).or_default().push(place - length);
            length = 0;
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches text that is mistaken for a formula, a formula that is missed, and a piece that is lost.
    #[test]
    fn formulas_are_distinguished_from_dollars() {
        let check = |page: &str, expected: &[(&str, bool)]| {
            let found: Vec<_> = pieces(page).filter_map(|p| p.math).collect();
            let found: Vec<_> = found.iter().map(|m| (m.latex, m.is_display)).collect();
            assert_eq!(found, expected, "{page}");
            let joined: String = pieces(page).map(|p| p.raw).collect();
            assert_eq!(joined, page);
        };
        check("a $x_i$ b", &[("x_i", false)]);
        check("$x$$y$", &[("x", false), ("y", false)]);
        check("$$x$$ and $`|y|`$", &[("x", true), ("|y|", false)]);
        check("`$x$` and \\$5 to $6", &[]);
        check("```sh\necho $a $b\n```\n$c$", &[("c", false)]);
        check("5$ and\n\n6$", &[]);
        check("$$ open and $` open", &[]);
        check("σ $σ$ é", &[("σ", false)]);
        check("$a\\$b$ \\\\$c$ $ $d$", &[("a\\$b", false), ("c", false), ("d", false)]);
        check("`` `$a$` `` \\`$b$`", &[("b", false)]);
        check("$", &[]);
        check("\\", &[]);
        check("", &[]);
    }

    #[test]
    fn code_is_a_piece_of_its_own() {
        let code: Vec<_> =
            pieces("a `b` ``c ` d`` `e `` \\`f`").filter(|p| p.is_code).map(|p| p.raw).collect();
        assert_eq!(code, ["`b`", "``c ` d``", "`e `` \\`"]);
    }

    /// Catches searches that start over: a quadratic implementation would take hours for these pages.
    #[test]
    fn hostile_pages_of_a_megabyte_take_linear_time() {
        let size = 1 << 20;
        let mut pages: Vec<String> = [
            "$ a\n\n", "$", "`", "$`", "$$ ", "\\", "$a ", "\\$$a", "` `` ", "$1", "```\n$", "$` `",
        ]
        .iter()
        .map(|part| part.repeat(size / part.len()))
        .collect();
        // Runs of backticks of every length, each without a closing run.
        pages.push((1..1400).map(|n| "`".repeat(n) + " ").collect());
        for page in pages {
            assert_eq!(pieces(&page).map(|p| p.raw.len()).sum::<usize>(), page.len());
        }
    }
}
