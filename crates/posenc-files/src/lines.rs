//! Line numbers as editors count them.

use crate::is_hidden;

/// Counts lines while a reader moves forward through a text. As in editors, only `\n`, `\r\n` and a single `\r` end a line; form
/// feeds, NEL, U+2028 and U+2029 do not.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lines {
    ended: usize,
    follows_return: bool,
}

impl Lines {
    /// The line, from 1, in which the next byte is.
    #[must_use]
    pub fn line(&self) -> usize {
        self.ended + 1
    }

    /// Moves past the next bytes of the text.
    pub fn pass(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let ends = match byte {
                b'\r' => true,
                b'\n' => !self.follows_return,
                _ => false,
            };
            self.ended += usize::from(ends);
            self.follows_return = *byte == b'\r';
        }
    }
}

/// The line, from 1, of the byte at `offset`.
#[must_use]
pub fn line_at(text: &[u8], offset: usize) -> usize {
    let mut lines = Lines::default();
    lines.pass(text.get(..offset).unwrap_or(text));
    // The `\n` of `\r\n` belongs to the line that it ends.
    let is_inside = offset > 0 && text.get(offset - 1..=offset) == Some(b"\r\n");
    lines.line() - usize::from(is_inside)
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
                "the character U+{:04X} is not allowed; remove it, or write `{}` in double quotes",
                u32::from(c),
                yaml_escape(c)
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

fn yaml_escape(c: char) -> String {
    match u32::from(c) {
        code @ 0..=0xff => format!("\\x{code:02X}"),
        code @ 0x100..=0xffff => format!("\\u{code:04X}"),
        code => format!("\\U{code:08X}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches line numbers that differ from an editor's after a character that is not a line break there.
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
