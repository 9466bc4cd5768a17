//! Markdown as GitHub renders it: tables, escapes, folded parts.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::math::pieces;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Align {
    Left,
    Center,
    Right,
}

#[derive(Debug, Clone, Default)]
pub struct Grid {
    head: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
    /// Places of columns that stay next to the one before them.
    joined: BTreeSet<usize>,
}

/// Maximum number of columns of a table that a person can read.
const MOST_COLUMNS: usize = 8;

impl Grid {
    pub fn column(&mut self, label: impl Into<String>, align: Align) -> &mut Self {
        self.head.push((label.into(), align));
        self
    }

    pub fn columns<L: Into<String>>(
        &mut self,
        labels: impl IntoIterator<Item = L>,
        align: Align,
    ) -> &mut Self {
        self.head.extend(labels.into_iter().map(|label| (label.into(), align)));
        self
    }

    /// Adds a row; its cells are finished Markdown without raw pipes.
    pub fn row(&mut self, cells: Vec<String>) -> &mut Self {
        self.rows.push(cells);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Keeps the last column next to the one before it.
    pub fn join(&mut self) {
        self.joined.insert(self.head.len().saturating_sub(1));
    }

    /// Removes the last column if it has this label and the same value in all `rows`, which are not part of the grid yet.
    pub fn take_constant(&mut self, label: &str, rows: &mut [Vec<String>]) -> Option<String> {
        let first = rows.first()?.last()?.clone();
        let is_constant = rows.iter().all(|row| row.last() == Some(&first));
        let is_wanted = self.head.last().is_some_and(|(own, _)| own == label);
        (is_wanted && is_constant).then(|| {
            self.head.pop();
            rows.iter_mut().for_each(|row| drop(row.pop()));
            first
        })
    }

    /// The table, as several ones if it has too many columns. Each begins with the first `lead` columns.
    pub fn render_in_parts(&self, lead: usize) -> String {
        let most = MOST_COLUMNS.saturating_sub(lead).max(1);
        let mut parts: Vec<Vec<usize>> = Vec::new();
        let mut place = lead;
        while place < self.head.len() {
            let joined = (place + 1..self.head.len()).take_while(|next| self.joined.contains(next));
            let end = joined.last().unwrap_or(place) + 1;
            match parts.last_mut() {
                Some(part) if part.len() + end - place <= most => part.extend(place..end),
                _ => parts.push((place..end).collect()),
            }
            place = end;
        }
        let part = |places: Vec<usize>| {
            let places: Vec<usize> = (0..lead).chain(places).collect();
            let rows = self.rows.iter();
            let row =
                |row: &Vec<String>| places.iter().filter_map(|i| row.get(*i)).cloned().collect();
            let head = places.iter().filter_map(|i| self.head.get(*i)).cloned().collect();
            Grid { head, rows: rows.map(row).collect(), ..Grid::default() }.render()
        };
        parts.into_iter().map(part).collect()
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

/// An author's Markdown as one line. Raw HTML is escaped, and no code or formula stays open at its end.
///
/// Texts of experiments are not trusted: they must not close, hide or forge the text around them.
pub fn inline(text: &str) -> String {
    escaped(&one_line(text), "")
}

/// An author's Markdown as one line for the text of a link.
pub fn label(text: &str) -> String {
    piped(&escaped(&one_line(text), "[]"))
}

/// An author's Markdown for one cell of a table.
pub fn cell(text: &str) -> String {
    piped(&inline(text))
}

/// Escapes the bars that would end a table's cell.
fn piped(text: &str) -> String {
    // Within a cell, `\|` is a single bar, so the double bar of formulas is written as `\Vert`.
    let named: String = pieces(text)
        .map(|piece| match piece.math {
            Some(_) => piece.raw.replace("\\|", "\\Vert "),
            None => piece.raw.to_owned(),
        })
        .collect();
    let mut out = String::with_capacity(named.len());
    let mut escaped = false;
    for c in named.chars() {
        if c == '|' && !escaped {
            out.push('\\');
        }
        out.push(c);
        escaped = c == '\\' && !escaped;
    }
    out
}

/// An author's Markdown as blocks of its own: paragraphs, lists, tables and fenced code. Raw HTML is escaped, headings
/// and definitions of links become paragraphs, and fenced code without an end is closed.
pub fn block(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut paragraph = String::new();
    let mut fence: Option<String> = None;
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text: String =
        text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_hidden(*c)).collect();
    for line in text.trim().split('\n') {
        let content = line.trim();
        let ticks = content.len() - content.trim_start_matches(['`', '~']).len();
        let is_fence =
            ticks >= 3 && content.bytes().take(ticks).all(|b| content.starts_with(b as char));
        let mark = content.get(..ticks).filter(|_| is_fence);
        match (&fence, mark) {
            (Some(open), Some(mark)) if mark.starts_with(open) && content.len() == mark.len() => {
                out.push_str(content);
                out.push('\n');
                fence = None;
            }
            (Some(_), _) => {
                out.push_str(line);
                out.push('\n');
            }
            // The line that opens a fence of backticks contains no other backticks.
            (None, Some(mark)) if mark.starts_with('~') || !content[ticks..].contains('`') => {
                out.push_str(&escaped(&std::mem::take(&mut paragraph), ""));
                fence = Some(mark.to_owned());
                out.push_str(content);
                out.push('\n');
            }
            (None, _) => {
                if begins_block(content) {
                    out.push_str(&escaped(&std::mem::take(&mut paragraph), ""));
                }
                paragraph.push_str(&without_heading(line));
                paragraph.push('\n');
            }
        }
    }
    out.push_str(&escaped(&paragraph, ""));
    if let Some(open) = fence {
        out.push_str(&open);
    }
    // After other text on its line, the opening fence would be text, and the closing one would open a block.
    let begins_with_fence = out.starts_with("```") || out.starts_with("~~~");
    let before = if begins_with_fence { "\n\n" } else { "" };
    let out = out.trim_end();
    // Text right after a fence, a list or a table would become part of it.
    let last = out.rsplit('\n').next().unwrap_or(out).trim_start();
    let ends_block = begins_block(last) || last.starts_with("```") || last.starts_with("~~~");
    let after = if ends_block && !out.is_empty() { "\n\n" } else { "" };
    format!("{before}{out}{after}")
}

/// Like [`block`], but indented as the content of a list item.
pub fn item(text: &str) -> String {
    block(text).trim_end().replace('\n', "\n  ")
}

/// Whether a line ends the paragraph before it. Code and formulas do not extend beyond such a line.
fn begins_block(content: &str) -> bool {
    let digits = content.trim_start_matches(|c: char| c.is_ascii_digit());
    let (number, rest) = content.split_at(content.len() - digits.len());
    let is_mark = match number.is_empty() {
        true => rest.starts_with(['-', '*', '+']),
        false => rest.starts_with(['.', ')']),
    };
    let is_item = is_mark && rest[1..].starts_with([' ', '\t']);
    content.is_empty() || is_item || content.starts_with(['>', '#', '|'])
}

/// Escapes the mark of a line that would be a heading.
fn without_heading(line: &str) -> String {
    let is_mark = |c: char| matches!(c, '>' | '-' | '*' | '+' | ' ' | '\t');
    let content = line
        .trim_start_matches(|c: char| is_mark(c) || c.is_ascii_digit() || matches!(c, '.' | ')'));
    let bare = line.trim();
    let underline =
        !bare.is_empty() && (bare.chars().all(|c| c == '=') || bare.chars().all(|c| c == '-'));
    if underline || content.starts_with('#') {
        let content = if underline { line.trim_start() } else { content };
        let (marks, content) = line.split_at(line.len() - content.len());
        return format!("{marks}\\{content}");
    }
    line.to_owned()
}

/// Escapes text that could become HTML, a picture or a link to a script, define a link or a footnote, or open code or a formula without
/// an end. Also escapes the characters in `more`.
fn escaped(text: &str, more: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        if piece.is_code {
            out.push_str(piece.raw);
            continue;
        }
        if piece.math.is_some() {
            // Renderers without formulas would see these pictures and links.
            let math = piece.raw.replace("![", "!{}[");
            let is_safe = math.split("](").skip(1).all(|to| is_safe_destination(to.chars()));
            out.push_str(&if is_safe { math } else { math.replace("](", "]{}(") });
            continue;
        }
        let mut characters = piece.raw.chars().peekable();
        while let Some(c) = characters.next() {
            match c {
                '\\' => {
                    out.push(c);
                    out.extend(characters.next_if(|c| !c.is_whitespace()));
                }
                '<' if characters
                    .peek()
                    .is_some_and(|c| c.is_ascii_alphabetic() || "/!?".contains(*c)) =>
                {
                    out.push_str("&lt;");
                }
                '`' | '$' => out.extend(['\\', c]),
                ']' if characters.peek() == Some(&':') => out.push_str("\\]"),
                // A picture becomes a link, so that no page loads anything.
                '!' if characters.peek() == Some(&'[') => out.push_str("\\!"),
                ']' if more.is_empty()
                    && characters.peek() == Some(&'(')
                    && !is_safe_destination(characters.clone().skip(1)) =>
                {
                    out.push_str("]\\");
                }
                c if more.contains(c) => out.extend(['\\', c]),
                c => out.push(c),
            }
        }
    }
    // A backslash at the end would escape what follows.
    let backslashes = out.len() - out.trim_end_matches('\\').len();
    if backslashes % 2 == 1 {
        out.push('\\');
    }
    out
}

/// Whether what follows `](` is a path, or a link by `http`, `https` or `mailto`, in plain characters.
fn is_safe_destination(to: impl Iterator<Item = char>) -> bool {
    const LONGEST: usize = 200;
    let mut to = to.skip_while(|c| c.is_whitespace() || *c == '<').take(LONGEST);
    let mut scheme = String::new();
    let end = to.by_ref().find(|c| {
        scheme.extend(c.to_lowercase());
        c.is_whitespace() || ":/?#)&\\".contains(*c)
    });
    match end {
        Some('&' | '\\') => false,
        Some(':') => ["http:", "https:", "mailto:"].contains(&scheme.as_str()),
        Some(_) => true,
        None => scheme.len() < LONGEST,
    }
}

/// A text on one line, without control characters and characters that change the writing direction.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|c| !is_hidden(*c)).collect()
}

/// Whether a character is not allowed in XML, or makes a text look different from its content.
pub fn is_hidden(c: char) -> bool {
    posenc_files::is_hidden(c) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// A text with some of its characters replaced.
pub fn replaced(text: &str, replacement: impl Fn(char) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match replacement(c) {
            Some(other) => out.push_str(&other),
            None => out.push(c),
        }
    }
    out
}

/// Escapes text from data for any place within a line, so that nothing in it is markup.
pub fn plain(text: &str) -> String {
    replaced(&one_line(text), |c| match c {
        '<' => Some("&lt;".to_owned()),
        '>' => Some("&gt;".to_owned()),
        '&' => Some("&amp;".to_owned()),
        c => "\\`*_[]|~$#".contains(c).then(|| format!("\\{c}")),
    })
}

/// Like [`plain`], for the start of a paragraph: the text begins neither a list nor a heading.
pub fn paragraph(text: &str) -> String {
    let plain = plain(text);
    let digits = plain.trim_start_matches(|c: char| c.is_ascii_digit());
    let (number, rest) = plain.split_at(plain.len() - digits.len());
    match rest.chars().next() {
        Some('-' | '+' | '=') if number.is_empty() => format!("\\{plain}"),
        Some('.' | ')') if !number.is_empty() => format!("{number}\\{rest}"),
        _ => plain,
    }
}

/// Text from data as the value of an HTML attribute: nothing in it is markup, neither of HTML nor of the Markdown
/// around it.
pub fn attribute(text: &str) -> String {
    let is_markup = |c| "<>&\"|`$\\]".contains(c);
    replaced(&one_line(text), |c| is_markup(c).then(|| format!("&#{};", u32::from(c))))
}

/// Text from data as inline code.
pub fn code(text: &str) -> String {
    let one_line = one_line(text);
    if one_line.is_empty() {
        return String::new();
    }
    // Renderers split tables at `\\|` differently, and code spans have no escapes.
    if one_line.contains("\\|") {
        let attribute = attribute(&one_line).replace('*', "&#42;").replace('_', "&#95;");
        return format!("<code>{}</code>", attribute.replace('[', "&#91;").replace('~', "&#126;"));
    }
    let longest = one_line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    format!("{fence}{space}{}{space}{fence}", one_line.replace('|', "\\|"))
}

/// A path as the destination of a link.
pub fn destination(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            other => {
                let _ = write!(out, "%{other:02X}");
            }
        }
    }
    out
}

/// A collapsed part of a page.
pub fn details(summary: &str, body: &str) -> String {
    format!("<details>\n<summary>{summary}</summary>\n\n{}\n\n</details>\n\n", body.trim())
}

/// An id in the form used in links: lower case letters, digits and hyphens.
pub fn slug(id: &str) -> String {
    id.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect()
}

/// A text without Markdown's markup, for places that show none.
pub fn bare(text: &str) -> String {
    one_line(text).chars().filter(|c| !matches!(c, '*' | '`' | '$' | '[' | ']' | '\\')).collect()
}

/// Wraps inline math that Markdown would damage as `` $`…`$ ``, which GitHub does not change. In plain `$…$`, GitHub
/// unescapes `\,` and `\{` and treats some `_` and `*` as emphasis. Code is not changed.
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
        // An underscore inside a word is not markup.
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
        // The table removes the backslash of `\|`, so a norm would become an absolute value.
        assert_eq!(cell("$\\|x\\| = |y|$"), "$\\Vert x\\Vert  = \\|y\\|$");
        assert_eq!(plain("a|b <c> *d*"), "a\\|b &lt;c&gt; \\*d\\*");
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(attribute("a|\"b\" `$`\n<i>"), "a&#124;&#34;b&#34; &#96;&#36;&#96; &#60;i&#62;");
    }

    /// Catches text that closes its code span, leaves markup open, or becomes HTML.
    #[test]
    fn no_markup_stays_open() {
        assert_eq!(code("a `` b` c"), "``` a `` b` c ```");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code("a\\|`b*"), "<code>a&#92;&#124;&#96;b&#42;</code>");
        assert_eq!(plain("a\\|b\u{202e}\u{0}"), "a\\\\\\|b");
        assert_eq!(cell("a \\\\| b | c \\| d"), "a \\\\\\| b \\| c \\| d");
        assert_eq!(inline("a < b <c> `<d>` `e $f \\"), "a < b &lt;c> `<d>` \\`e \\$f \\\\");
        assert_eq!(label("a](b) `[c]` $[d]$"), "a\\](b) `[c]` $[d]$");
        assert_eq!(inline("![a](https://b) [c](d.md#e)"), "\\![a](https://b) [c](d.md#e)");
        assert_eq!(inline("[a](HTTPS://b) [c](\\d:e)"), "[a](HTTPS://b) [c]\\(\\d:e)");
        assert_eq!(inline("[a]( java:b) $[c](d:e)$"), "[a]\\( java:b) $[c]{}(d:e)$");
        assert_eq!(block("a\n\n# b\n\n```sh\n# c <d>"), "a\n\n\\# b\n\n```sh\n# c <d>\n```\n\n");
        assert_eq!(block("```\na\n```"), "\n\n```\na\n```\n\n");
        assert_eq!(block("- a\n  # b\n===\n[c]: d"), "- a\n  \\# b\n\\===\n[c\\]: d");
        assert_eq!(block("a `b\n- c` $d\ne$"), "a \\`b\n- c\\` $d\ne$");
        assert_eq!(block("a\r# b\r\n~~~ `\n<c>\n~~~ \n<d>"), "a\n\\# b\n~~~ `\n<c>\n~~~\n&lt;d>");
        assert_eq!(item("a\n- b"), "a\n  - b");
        assert_eq!(paragraph("- a"), "\\- a");
        assert_eq!(paragraph("12. a"), "12\\. a");
        assert_eq!(paragraph("12 a-b"), "12 a-b");
        assert_eq!(destination("a b/(c).md"), "a%20b/%28c%29.md");
    }

    /// Catches quadratic time: it would take hours for these texts.
    #[test]
    fn long_hostile_texts_take_linear_time() {
        for part in [
            "`", "$", "\\", "|", "<", "a ", "```\n", "- a\n", "$a|", "` `` ", "[", "#\n",
            "\u{202e}", "a\n\n",
        ] {
            let text = part.repeat((1 << 18) / part.len());
            for make in [
                inline,
                label,
                cell,
                block,
                item,
                plain,
                paragraph,
                attribute,
                code,
                bare,
                protect_math,
            ] {
                assert!(make(&text).len() < 16 * text.len(), "{part:?}");
            }
        }
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
}
