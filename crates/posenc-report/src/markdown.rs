//! Markdown as GitHub renders it: tables, escapes, folded parts.

use std::fmt::Write;

use crate::math::pieces;

/// Alignment of a table's column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Align {
    /// Text.
    Left,
    /// Pictures.
    Center,
    /// Numbers.
    Right,
}

/// A table.
#[derive(Debug, Clone, Default)]
pub struct Grid {
    head: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// Adds a column.
    pub fn column(&mut self, label: impl Into<String>, align: Align) -> &mut Self {
        self.head.push((label.into(), align));
        self
    }

    /// Adds a row; its cells are finished Markdown without raw pipes.
    pub fn row(&mut self, cells: Vec<String>) -> &mut Self {
        self.rows.push(cells);
        self
    }

    /// Whether there is nothing below the head.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table, with an empty line behind it.
    pub fn render(&self) -> String {
        let mut text = String::from("|");
        for (label, _) in &self.head {
            let _ = write!(text, " {label} |");
        }
        text.push_str("\n|");
        for (_, align) in &self.head {
            text.push_str(match align {
                Align::Left => " --- |",
                Align::Center => " :---: |",
                Align::Right => " ---: |",
            });
        }
        text.push('\n');
        for row in &self.rows {
            text.push('|');
            for cell in row {
                let _ = write!(text, " {cell} |");
            }
            text.push('\n');
        }
        text.push('\n');
        text
    }
}

/// Markdown written by an author, for one cell of a table.
pub fn cell(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // There `\|` is a bar; the double bar of formulas has a name, too.
    let named: String = pieces(&one_line)
        .map(|piece| match piece.math {
            Some(_) => piece.raw.replace("\\|", "\\Vert "),
            None => piece.raw.to_owned(),
        })
        .collect();
    let mut out = String::with_capacity(named.len());
    let mut before = ' ';
    for c in named.chars() {
        if c == '|' && before != '\\' {
            out.push('\\');
        }
        out.push(c);
        before = c;
    }
    out
}

/// Text from data, for anywhere: nothing in it is taken for markup.
pub fn plain(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::with_capacity(one_line.len());
    for c in one_line.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' | '#' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Text from data as the value of an HTML attribute: nothing in it is taken for markup, neither
/// by HTML nor by Markdown around it.
pub fn attribute(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::with_capacity(one_line.len());
    for c in one_line.chars().filter(|c| !c.is_control()) {
        match c {
            '<' | '>' | '&' | '"' | '|' | '`' | '$' | '\\' => {
                let _ = write!(out, "&#{};", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// Text from data in typewriter face.
pub fn code(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    match one_line.contains('`') {
        true => format!("`` {one_line} ``"),
        false if one_line.is_empty() => String::new(),
        false => format!("`{one_line}`"),
    }
}

/// A part that is folded until a reader opens it.
pub fn details(summary: &str, body: &str) -> String {
    format!("<details>\n<summary>{summary}</summary>\n\n{}\n\n</details>\n\n", body.trim())
}

/// A place that links can name.
pub fn anchor(id: &str) -> String {
    format!("<a id=\"{}\"></a>", slug(id))
}

/// An id as it may stand in links: lower case letters, digits and hyphens.
pub fn slug(id: &str) -> String {
    id.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect()
}

/// A text without Markdown's markup, for places that show none.
pub fn bare(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    one_line.chars().filter(|c| !matches!(c, '*' | '`' | '$' | '[' | ']' | '\\')).collect()
}

/// Wraps inline math that Markdown would damage as `` $`…`$ ``, which GitHub leaves alone: in
/// plain `$…$` it unescapes `\,` and `\{`, and takes some `_` and `*` for emphasis. Code stays.
pub fn protect_math(page: &str) -> String {
    let mut out = String::with_capacity(page.len() + 64);
    for piece in pieces(page) {
        match piece.math {
            // Between plain dollars, and neither a display nor protected already.
            Some(math) if piece.raw.len() == math.latex.len() + 2 && is_fragile(math.latex) => {
                let lines = math.latex.split('\n').map(str::trim).collect::<Vec<_>>();
                out.push_str(&format!("$`{}`$", lines.join(" ")));
            }
            _ => out.push_str(piece.raw),
        }
    }
    out
}

/// Whether Markdown would change the formula.
fn is_fragile(math: &str) -> bool {
    let mut before = ' ';
    for c in math.chars() {
        let escape = before == '\\' && c.is_ascii_punctuation();
        // Inside a word an underscore is only that.
        let emphasis = c == '*' || (c == '_' && !before.is_alphanumeric());
        if escape || emphasis || matches!(c, '|' | '<' | '>' | '~' | '\n') {
            return true;
        }
        before = c;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches cells that break a row apart.
    #[test]
    fn pipes_stay_inside_their_cell() {
        assert_eq!(cell("$|x|$\nand"), "$\\|x\\|$ and");
        assert_eq!(cell("a \\| b"), "a \\| b");
        // A norm would become a bar: the table takes its backslash.
        assert_eq!(cell("$\\|x\\| = |y|$"), "$\\Vert x\\Vert  = \\|y\\|$");
        assert_eq!(plain("a|b <c> *d*"), "a\\|b &lt;c&gt; \\*d\\*");
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(attribute("a|\"b\" `$`\n<i>"), "a&#124;&#34;b&#34; &#96;&#36;&#96; &#60;i&#62;");
    }

    /// Catches formulas that GitHub shows without their spaces, braces and bars.
    #[test]
    fn fragile_math_is_protected() {
        let check = |from: &str, to: &str| assert_eq!(protect_math(from), to);
        check("a $x_i$ b $n$", "a $x_i$ b $n$");
        check("$10{,}000\\,x$", "$`10{,}000\\,x`$");
        check("$\\lVert x\\rVert_{2}$ and $|x|$", "$\\lVert x\\rVert_{2}$ and $`|x|`$");
        check("$(x)_j$", "$`(x)_j`$");
        check("$a\n  + |b|$", "$`a + |b|`$");
        check("`$|x|$` \\$5 | 3$ $$|y|$$ $`|z|`$", "`$|x|$` \\$5 | 3$ $$|y|$$ $`|z|`$");
        check("```sh\necho $a|$b\n```\n$|c|$", "```sh\necho $a|$b\n```\n$`|c|`$");
        check("5$ and\n\n6$", "5$ and\n\n6$");
    }

    #[test]
    fn a_table() {
        let mut grid = Grid::default();
        grid.column("name", Align::Left).column("value", Align::Right);
        grid.row(vec!["a".into(), "1".into()]);
        assert_eq!(grid.render(), "| name | value |\n| --- | ---: |\n| a | 1 |\n\n");
    }
}
