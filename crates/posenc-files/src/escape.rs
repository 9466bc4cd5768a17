//! Escapes characters that are invisible or change how other text is shown.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Longest output of another program in a message, in characters.
const LONGEST_OUTPUT: usize = 2000;

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
#[must_use]
pub fn shown_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_hidden(c) && c != '\n' && c != '\t')
}

fn replaced(text: &str, hides: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&hides) else { return Cow::Borrowed(text) };
    let (plain, rest) = text.split_at(first);
    let mut shown = plain.to_owned();
    for c in rest.chars() {
        match c {
            c if !hides(c) => shown.push(c),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c => shown.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(shown)
}

/// The output of another program as one line of at most 2000 characters, with ` | ` between its lines. Longer output loses its beginning,
/// since programs report errors at the end.
#[must_use]
pub fn one_line(output: &[u8]) -> String {
    // The result needs only the last bytes, since a character has at most four.
    let start = output.len().saturating_sub(8 * LONGEST_OUTPUT);
    let text = String::from_utf8_lossy(output.get(start..).unwrap_or_default());
    let lines = text.split(['\n', '\r']).map(str::trim_end).filter(|line| !line.trim().is_empty());
    let joined = lines.collect::<Vec<_>>().join(" | ");
    let line = escaped(joined.trim());
    match line.chars().count().checked_sub(LONGEST_OUTPUT) {
        None | Some(0) if start == 0 => line.into_owned(),
        surplus => line.chars().skip(surplus.unwrap_or(0)).fold("…".to_owned(), |mut text, c| {
            text.push(c);
            text
        }),
    }
}

/// A writer that escapes all text, for implementations of [`fmt::Display`].
pub struct Escaping<W>(pub W);

impl<W: Write> Write for Escaping<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(&escaped(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a character that controls the terminal, breaks a line or changes the reading direction but is not escaped, and plain text
    /// that changes.
    #[test]
    fn hidden_characters_are_shown_by_their_codes() {
        for c in ('\0'..='\u{1f}').chain('\u{7f}'..='\u{9f}') {
            assert!(is_hidden(c), "{c:?}");
        }
        for c in ('\u{2028}'..='\u{202e}')
            .chain('\u{2066}'..='\u{2069}')
            .chain(['\u{feff}', '\u{e0041}'])
        {
            assert!(is_hidden(c), "{c:?}");
        }
        assert_eq!(
            escaped("a\x1b[31m\r\nb\u{202e}\u{9b}\0\t"),
            "a\\u{1b}[31m\\r\\nb\\u{202e}\\u{9b}\\u{0}\\t"
        );
        for plain in ["", "Rahimi & Recht: √2 ≥ 1 − ε, “π” 中文 हिन्दी \u{200d} \\n", "👩\u{200d}🔬"]
        {
            assert_eq!(escaped(plain), plain);
        }
        let twice = escaped("a\nb").into_owned();
        assert_eq!(escaped(&twice), twice);
        assert_eq!(shown_lines("a\tb\nc\rd"), "a\tb\nc\\rd");
    }

    /// Catches output of another program that makes a message several lines or a megabyte long.
    #[test]
    fn output_is_one_line() {
        assert_eq!(
            one_line(b"fatal: a\r\n\n  hint: \x1b[1mb\xff\n"),
            "fatal: a |   hint: \\u{1b}[1mb\u{fffd}"
        );
        assert_eq!(one_line(b""), "");
        let long = one_line(&[b"x\n".repeat(1 << 20), b"the reason".to_vec()].concat());
        assert!(long.chars().count() <= LONGEST_OUTPUT + 1, "{}", long.len());
        assert!(long.starts_with('…') && long.ends_with("| the reason"), "{long}");
    }
}
