//! Text that others wrote: characters that are invisible or change how other text is shown, and line numbers.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Maximum number of characters of another program's output in a message.
const MAX_OUTPUT: usize = 2000;

/// Whether a character is invisible or changes how text around it is shown: control characters (C0 with line breaks and tabs, DEL, C1),
/// line and paragraph separators, controls of the reading direction, and invisible format characters. The joiners U+200C and U+200D do
/// not count, since several scripts need them.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text in one line: hidden characters appear as `\n`, `\t`, `\u{1b}` and the like. Backslashes are unchanged, so escaping
/// twice has no further effect.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    replaced(text, is_hidden)
}

/// Like [`escaped`], but keeps tabs and the line break `\n`: for text whose line breaks come from the program.
pub(crate) fn shown_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_hidden(c) && c != '\n' && c != '\t')
}

fn replaced(text: &str, hides: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hides) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    for c in text.chars() {
        match c {
            c if !hides(c) => shown.push(c),
            '\n' | '\r' | '\t' => shown.extend(c.escape_default()),
            c => shown.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(shown)
}

/// The output of another program as one line of at most 2000 characters, with ` | ` between its lines. Longer output loses its beginning,
/// since programs report errors at the end.
#[must_use]
pub fn one_line(output: &[u8]) -> String {
    // A character has at most four bytes.
    let start = output.len().saturating_sub(8 * MAX_OUTPUT);
    let text = String::from_utf8_lossy(output.get(start..).unwrap_or_default());
    let lines = text.split(['\n', '\r']).map(str::trim_end).filter(|line| !line.trim().is_empty());
    let joined = lines.collect::<Vec<_>>().join(" | ");
    let line = escaped(joined.trim());
    match line.chars().count().saturating_sub(MAX_OUTPUT) {
        0 if start == 0 => line.into_owned(),
        surplus => "…".chars().chain(line.chars().skip(surplus)).collect(),
    }
}

/// A writer that escapes all text, for implementations of [`fmt::Display`].
pub struct Escaping<W>(pub W);

impl<W: Write> Write for Escaping<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(&escaped(text))
    }
}

/// The line, from 1, of the byte at `offset`. As in editors, only `\n`, `\r\n` and a single `\r` end a line; form feeds, NEL, U+2028 and
/// U+2029 do not.
#[must_use]
pub fn line_at(text: &[u8], offset: usize) -> usize {
    let ends = (1..=offset.min(text.len())).filter(|end| {
        text[end - 1] == b'\n' || text[end - 1] == b'\r' && text.get(*end) != Some(&b'\n')
    });
    ends.count() + 1
}

/// The first reason to reject a YAML text, with its line. Rejected are invisible characters, characters that end a line only for some
/// parsers, and directives (`%TAG`), which take libyaml quadratic time.
#[must_use]
pub fn unreadable(text: &str) -> Option<(usize, String)> {
    let mut line_starts = true;
    for (at, c) in text.char_indices() {
        let message = match c {
            '\n' | '\r' | '\t' => None,
            '%' if line_starts => {
                Some("the line begins with `%`; YAML directives are not allowed".to_owned())
            }
            c if is_hidden(c) => Some(format!(
                "the character U+{0:04X} is not allowed; remove it, or write `\\U{0:08X}` in double quotes",
                u32::from(c)
            )),
            _ => None,
        };
        if let Some(message) = message {
            return Some((line_at(text.as_bytes(), at), message));
        }
        line_starts = matches!(c, '\n' | '\r');
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a character that controls the terminal, breaks a line or changes the reading direction but is not escaped, and plain text
    /// that changes.
    #[test]
    fn hidden_characters_are_shown_by_their_codes() {
        let controls = ('\0'..='\u{1f}').chain('\u{7f}'..='\u{9f}');
        let directions = ('\u{2028}'..='\u{202e}').chain('\u{2066}'..='\u{2069}');
        for c in controls.chain(directions).chain(['\u{feff}', '\u{e0041}']) {
            assert!(is_hidden(c), "{c:?}");
        }
        let shown = escaped("a\x1b[31m\r\nb\u{202e}\u{9b}\0\t");
        assert_eq!(shown, "a\\u{1b}[31m\\r\\nb\\u{202e}\\u{9b}\\u{0}\\t");
        assert_eq!(escaped(&shown), shown);
        for plain in ["", "√2 ≥ 1 − ε, “π” 中文 हिन्दी \u{200d} \\n", "👩\u{200d}🔬"]
        {
            assert_eq!(escaped(plain), plain);
        }
        assert_eq!(shown_lines("a\tb\nc\rd"), "a\tb\nc\\rd");
    }

    /// Catches output of another program that makes a message several lines or a megabyte long.
    #[test]
    fn output_is_one_line() {
        let line = one_line(b"fatal: a\r\n\n  hint: \x1b[1mb\xff\n");
        assert_eq!(line, "fatal: a |   hint: \\u{1b}[1mb\u{fffd}");
        assert_eq!(one_line(b""), "");
        let long = one_line(&[b"x\n".repeat(1 << 20), b"the reason".to_vec()].concat());
        assert!(long.chars().count() <= MAX_OUTPUT + 1, "{}", long.len());
        assert!(long.starts_with('…') && long.ends_with("| the reason"), "{long}");
    }

    /// Catches line numbers that differ from an editor's.
    #[test]
    fn lines_end_at_line_feeds_and_carriage_returns() {
        for (before, line) in [
            ("", 1),
            ("a\n", 2),
            ("a\r\n", 2),
            ("a\r", 2),
            ("a\r\rb", 3),
            ("a\n\r\n\n", 4),
            ("a\u{85}\u{2028}\u{2029}\u{c}\u{b}", 1),
        ] {
            let text = format!("{before}x");
            assert_eq!(line_at(text.as_bytes(), before.len()), line, "{before:?}");
        }
        assert_eq!(line_at(b"a\r\nb", 2), 1);
        assert_eq!(line_at(b"a\nb", 100), 2);
    }
}
