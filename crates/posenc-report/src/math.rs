//! Where formulas stand in a Markdown page: `$…$`, `` $`…`$ `` and `$$…$$`, as GitHub reads them.

/// A formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Math<'a> {
    /// Its LaTeX, without dollars.
    pub latex: &'a str,
    /// Whether it stands on a line of its own (`$$…$$`).
    pub is_display: bool,
}

/// A stretch of a page: a formula, or what lies between formulas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The text as it stands in the page; all pieces behind each other are the page.
    pub raw: &'a str,
    /// The formula, if it is one.
    pub math: Option<Math<'a>>,
}

/// Cuts a page at its formulas. Code and escaped dollars belong to the text between them.
pub fn pieces(page: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = page;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (length, math) = next(rest);
        let (raw, behind) = rest.split_at(length);
        rest = behind;
        Some(Piece { raw, math })
    })
}

/// Length of the first piece of `text`, and its formula.
fn next(text: &str) -> (usize, Option<Math<'_>>) {
    let mut place = 0;
    while let Some(found) = text[place..].find(['$', '`', '\\']) {
        place += found;
        let here = &text[place..];
        let taken = match here.as_bytes()[0] {
            b'\\' => 1 + here[1..].chars().next().map_or(0, char::len_utf8),
            b'`' => code_length(here),
            _ => match formula(here) {
                // What stands before it is a piece of its own.
                Some(_) if place > 0 => return (place, None),
                Some((length, math)) => return (length, Some(math)),
                None if here.starts_with("$$") || here.starts_with("$`") => 2,
                None => 1,
            },
        };
        place += taken;
    }
    (text.len(), None)
}

/// Length of the formula at the start of `text`, and the formula.
fn formula(text: &str) -> Option<(usize, Math<'_>)> {
    let closed = |from: &str, to: &str| {
        let inner = text.strip_prefix(from)?;
        inner.find(to).map(|end| &inner[..end])
    };
    if text.starts_with("$$") {
        let latex = closed("$$", "$$")?;
        return Some((latex.len() + 4, Math { latex, is_display: true }));
    }
    if text.starts_with("$`") {
        let latex = closed("$`", "`$")?;
        return Some((latex.len() + 4, Math { latex, is_display: false }));
    }
    let latex = between_dollars(text)?;
    Some((latex.len() + 2, Math { latex, is_display: false }))
}

/// Length of the code that begins with the backticks at the start of `text`.
fn code_length(text: &str) -> usize {
    let ticks = text.len() - text.trim_start_matches('`').len();
    let mut place = ticks;
    while let Some(found) = text[place..].find('`') {
        let start = place + found;
        let run = text[start..].len() - text[start..].trim_start_matches('`').len();
        place = start + run;
        if run == ticks {
            return place;
        }
    }
    ticks
}

/// What stands between the dollar at the start of `text` and its partner in the same paragraph.
fn between_dollars(text: &str) -> Option<&str> {
    let paragraph = text.split("\n\n").next().unwrap_or(text);
    let mut escaped = false;
    for (i, c) in paragraph.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '$' => {
                let inner = &paragraph[1..i];
                let digit = paragraph[i + 1..].starts_with(|c: char| c.is_ascii_digit());
                let math =
                    !inner.is_empty() && inner.trim() == inner && !inner.contains('`') && !digit;
                return math.then_some(inner);
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches text that is taken for a formula, a formula that is not seen, and a piece that is lost.
    #[test]
    fn formulas_are_told_from_dollars() {
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
    }
}
