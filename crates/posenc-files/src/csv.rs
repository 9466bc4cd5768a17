//! Comma-separated values (RFC 4180). The crate `csv` accepts a quote that is never closed and counts other lines than an editor.

use std::borrow::Cow;

use crate::line_at;

/// Maximum number of fields of a record; the tables of this project have up to 14 columns.
const MAX_FIELDS: usize = 1000;

/// The line of an error, and its description.
pub type Fault = (usize, String);

/// A record: the line where it begins, and its fields without quotes.
#[derive(Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub line: usize,
    pub fields: Vec<Cow<'a, str>>,
}

/// Reads the records of a text; skips empty lines and a byte order mark at the beginning.
pub struct Records<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Records<'a> {
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Records { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 }
    }

    /// The first record, which names the columns.
    pub fn header(&mut self) -> Result<Option<Record<'a>>, Fault> {
        let header = self.next_record()?;
        let is_foreign = |f: &Cow<'_, str>| f.contains([';', '|', '\t']) || f.starts_with("sep=");
        match &header {
            Some(found) if found.fields.iter().any(is_foreign) => Err((
                found.line,
                "the separator must be a comma; save the table with commas between fields, points in numbers, and the names \
                 of the columns in the first line"
                    .to_owned(),
            )),
            _ => Ok(header),
        }
    }

    /// The next record; `None` at the end.
    pub fn next_record(&mut self) -> Result<Option<Record<'a>>, Fault> {
        self.take(self.rest.len() - self.rest.trim_start_matches(['\r', '\n']).len());
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut record = Record { line: self.line, fields: Vec::new() };
        loop {
            if record.fields.len() == MAX_FIELDS {
                let reason = format!("more than {MAX_FIELDS} fields in a line, the limit");
                return Err((record.line, reason));
            }
            record.fields.push(self.field()?);
            match self.rest.chars().next() {
                None | Some('\r' | '\n') => return Ok(Some(record)),
                Some(',') => _ = self.take(1),
                Some(other) => {
                    let reason = format!(
                        "`{other}` after a closing quote; allowed: a comma or the end of the line, and quotes inside of \
                         quotes doubled"
                    );
                    return Err((self.line, reason));
                }
            }
        }
    }

    /// Consumes the next `length` bytes, which do not end within `\r\n`.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.line += line_at(taken.as_bytes(), length) - 1;
        self.rest = rest;
        taken
    }

    /// Reads a field, up to its delimiter.
    fn field(&mut self) -> Result<Cow<'a, str>, Fault> {
        let Some(quoted) = self.rest.strip_prefix('"') else {
            let length = self.rest.find([',', '\r', '\n']).unwrap_or(self.rest.len());
            return Ok(self.take(length).into());
        };
        let mut quotes = quoted.match_indices('"').map(|(at, _)| at).peekable();
        let length = loop {
            match (quotes.next(), quotes.peek()) {
                (Some(at), Some(next)) if *next == at + 1 => _ = quotes.next(),
                (Some(at), _) => break at,
                (None, _) => {
                    let reason = "a quote is never closed; the download may be incomplete";
                    return Err((self.line, reason.to_owned()));
                }
            }
        };
        let field = self.take(length + 2).get(1..=length).unwrap_or_default();
        Ok(if field.contains('"') { field.replace("\"\"", "\"").into() } else { field.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<Record<'_>>, Fault> {
        let mut records = Records::new(text);
        std::iter::from_fn(|| records.next_record().transpose()).collect()
    }

    fn record<'a>(line: usize, fields: &[&'a str]) -> Record<'a> {
        Record { line, fields: fields.iter().map(|f| Cow::Borrowed(*f)).collect() }
    }

    /// Catches commas, quotes and line ends that are lost or that end a quoted field, and line numbers that differ from an editor's.
    #[test]
    fn records_are_read() {
        let text = "\u{feff}a,b\r\n\r\n\"x, \"\"y\"\"\n\",\n,\"\"\r\"last\"";
        let expected = [
            record(1, &["a", "b"]),
            record(3, &["x, \"y\"\n", ""]),
            record(5, &["", ""]),
            record(6, &["last"]),
        ];
        assert_eq!(all(text).unwrap(), expected);
        assert_eq!(all("").unwrap(), []);
        assert_eq!(all("\"\"\"\"").unwrap(), [record(1, &["\""])]);
        assert_eq!(all("a\n\"b\nc").unwrap_err().0, 2);
        assert_eq!(all("a\n\"b\"c").unwrap_err(), (2, all("\"b\"c").unwrap_err().1));
        assert!(all(&",".repeat(MAX_FIELDS)).unwrap_err().1.contains("more than 1000 fields"));
        for text in ["a\r\n\"b\"\r\nc", "a\rb\rc", "a\u{2028}\n\"b\u{85}\u{c}\"\nc"] {
            let lines: Vec<usize> = all(text).unwrap().iter().map(|r| r.line).collect();
            assert_eq!(lines, [1, 2, 3], "{text:?}");
        }
        let lines: Vec<usize> = all("\"a\r\nb\rc\"\rd").unwrap().iter().map(|r| r.line).collect();
        assert_eq!(lines, [1, 4]);
    }

    /// Catches a table of a spreadsheet whose columns would be reported as missing.
    #[test]
    fn other_separators_are_named() {
        for text in
            ["\u{feff}x;psnr\r\n0,5;26,36", "sep=,\nx,psnr", "sep=;\nx;psnr", "x\tpsnr", "x,b;c"]
        {
            let (line, reason) = Records::new(text).header().unwrap_err();
            assert!(line == 1 && reason.contains("separator must be a comma"), "{reason}");
        }
        let header = Records::new("\u{feff}x,psnr\n").header().unwrap();
        assert_eq!(header, Some(record(1, &["x", "psnr"])));
    }

    /// Catches a field that changes when it is written and read: all fields of six characters from a small set.
    #[test]
    fn fields_survive_a_round_trip() {
        let kinds = ["a", ",", "\"", "\r", "\n", " "];
        for n in 0..kinds.len().pow(6) {
            let field: String =
                (0..6).map(|i| kinds[n / kinds.len().pow(i) % kinds.len()]).collect();
            let quoted = format!("\"{}\",\"b\"\n", field.replace('"', "\"\""));
            assert_eq!(all(&quoted).unwrap(), [record(1, &[&field, "b"])]);
        }
    }
}
