//! Comma-separated values (RFC 4180): records of fields, which may be quoted and then contain commas, line breaks and doubled
//! quotes.

use std::borrow::Cow;

use crate::Lines;

/// Maximum number of fields of a record; the tables of this project have up to 14 columns.
pub const MOST_FIELDS: usize = 1000;

/// The line of an error, and its description.
pub type Fault = (usize, String);

/// A record and its line.
#[derive(Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Line where it begins, counted from 1.
    pub line: usize,
    /// Its fields, without quotes.
    pub fields: Vec<Cow<'a, str>>,
}

/// Reads the records of a text; skips empty lines and a byte order mark at the beginning.
pub struct Records<'a> {
    rest: &'a str,
    lines: Lines,
}

impl<'a> Records<'a> {
    /// Starts at the first record.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Records { rest: text.strip_prefix('\u{feff}').unwrap_or(text), lines: Lines::default() }
    }

    /// The first record, which names the columns.
    ///
    /// # Errors
    ///
    /// Those of [`Records::next_record`], and an error for another separator and for the line `sep=` of spreadsheets.
    pub fn header(&mut self) -> Result<Option<Record<'a>>, Fault> {
        let header = self.next_record()?;
        let is_foreign = |f: &Cow<'_, str>| f.contains([';', '|', '\t']) || f.starts_with("sep=");
        let foreign = header.as_ref().filter(|header| header.fields.iter().any(is_foreign));
        let reason = "the separator must be a comma; save the table with commas between fields, points in numbers, and the names \
                      of the columns in the first line";
        foreign.map_or(Ok(()), |header| Err((header.line, reason.to_owned())))?;
        Ok(header)
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    ///
    /// Returns an error for a quote that is never closed, for text after a closing quote, and for more than [`MOST_FIELDS`] fields.
    pub fn next_record(&mut self) -> Result<Option<Record<'a>>, Fault> {
        let blank = self.rest.len() - self.rest.trim_start_matches(['\r', '\n']).len();
        self.take(blank);
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut record = Record { line: self.lines.line(), fields: Vec::new() };
        loop {
            if record.fields.len() == MOST_FIELDS {
                let reason = format!("more than {MOST_FIELDS} fields in a line, the limit");
                return Err((record.line, reason));
            }
            record.fields.push(self.field()?);
            let Some(next) = self.rest.chars().next() else { return Ok(Some(record)) };
            let line = self.lines.line();
            self.take(next.len_utf8());
            match next {
                ',' => {}
                '\n' | '\r' => return Ok(Some(record)),
                other => {
                    let reason = format!(
                        "`{other}` after a closing quote; allowed: a comma or the end of the line, and quotes inside of \
                         quotes doubled"
                    );
                    return Err((line, reason));
                }
            }
        }
    }

    /// Consumes the next `length` bytes.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.lines.pass(taken.as_bytes());
        self.rest = rest;
        taken
    }

    /// Reads a field, up to its delimiter.
    fn field(&mut self) -> Result<Cow<'a, str>, Fault> {
        if !self.rest.starts_with('"') {
            let length = self.rest.find([',', '\r', '\n']).unwrap_or(self.rest.len());
            return Ok(Cow::Borrowed(self.take(length)));
        }
        let opened = self.lines.line();
        self.take(1);
        let mut field = Cow::Borrowed("");
        loop {
            let Some(length) = self.rest.find('"') else {
                let reason = "a quote is never closed; the download may be incomplete";
                return Err((opened, reason.to_owned()));
            };
            let part = self.take(length);
            self.take(1);
            if field.is_empty() {
                field = Cow::Borrowed(part);
            } else {
                field.to_mut().push_str(part);
            }
            if !self.rest.starts_with('"') {
                return Ok(field);
            }
            self.take(1);
            field.to_mut().push('"');
        }
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

    /// Catches commas, quotes and line ends that are lost or that end a quoted field, and wrong line numbers.
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
        assert!(all(&",".repeat(MOST_FIELDS)).unwrap_err().1.contains("more than 1000 fields"));
    }

    /// Catches a table of a spreadsheet whose columns would be reported as missing.
    #[test]
    fn other_separators_are_named() {
        for text in
            ["\u{feff}x;psnr\r\n0,5;26,36", "sep=,\nx,psnr", "sep=;\nx;psnr", "x\tpsnr", "x,b;c"]
        {
            let (line, reason) = Records::new(text).header().unwrap_err();
            assert!(
                line == 1 && reason.contains("separator must be a comma"),
                "{text:?}: {reason}"
            );
        }
        assert_eq!(
            Records::new("\u{feff}x,psnr\n").header().unwrap(),
            Some(record(1, &["x", "psnr"]))
        );
        assert_eq!(Records::new("").header().unwrap(), None);
    }

    /// Catches line numbers that differ from an editor's.
    #[test]
    fn lines_are_counted_as_by_an_editor() {
        for text in ["a\nb\nc", "a\r\nb\r\nc", "a\rb\rc", "a\u{2028}\n\"b\u{85}\u{c}\"\nc"] {
            let lines: Vec<usize> = all(text).unwrap().iter().map(|r| r.line).collect();
            assert_eq!(lines, [1, 2, 3], "{text:?}");
        }
        let lines: Vec<usize> = all("\"a\r\nb\rc\"\rd").unwrap().iter().map(|r| r.line).collect();
        assert_eq!(lines, [1, 4]);
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
