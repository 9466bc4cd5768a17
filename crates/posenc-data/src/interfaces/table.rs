//! Comma-separated values (RFC 4180): records of fields, which may stand in quotes and then hold commas, line ends and
//! doubled quotes.

/// A record and where it begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Line, counted from 1.
    pub line: usize,
    /// Its fields, without quotes.
    pub fields: Vec<String>,
}

/// The records of a text; empty lines are none.
pub(super) struct Records<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
}

impl<'a> Records<'a> {
    pub fn new(text: &'a str) -> Self {
        Records { rest: text.chars().peekable(), line: 1 }
    }

    /// The next record, none at the end; or the line of what is wrong, and what it is.
    pub fn next(&mut self) -> Result<Option<Record>, (usize, String)> {
        while self.rest.next_if(|c| matches!(c, '\r' | '\n')).is_some_and(|c| self.count(c)) {}
        if self.rest.peek().is_none() {
            return Ok(None);
        }
        let mut record = Record { line: self.line, fields: Vec::new() };
        loop {
            let field = self.field()?;
            record.fields.push(field);
            match self.rest.next() {
                Some(',') => {}
                None => return Ok(Some(record)),
                Some('\n') => {
                    self.line += 1;
                    return Ok(Some(record));
                }
                Some('\r') => return Ok(Some(record)),
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

    fn count(&mut self, character: char) -> bool {
        self.line += usize::from(character == '\n');
        true
    }

    /// A field, up to what ends it.
    fn field(&mut self) -> Result<String, (usize, String)> {
        let mut field = String::new();
        if self.rest.next_if_eq(&'"').is_none() {
            while let Some(c) = self.rest.next_if(|c| !matches!(c, ',' | '\r' | '\n')) {
                field.push(c);
            }
            return Ok(field);
        }
        let opened = self.line;
        while let Some(c) = self.rest.next() {
            match c {
                '"' if self.rest.next_if_eq(&'"').is_some() => field.push('"'),
                '"' => return Ok(field),
                _ => {
                    self.count(c);
                    field.push(c);
                }
            }
        }
        let reason = "a quote is never closed; a download that was cut short looks like this";
        Err((opened, reason.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str) -> Result<Vec<Record>, (usize, String)> {
        let mut records = Records::new(text);
        std::iter::from_fn(|| records.next().transpose()).collect()
    }

    /// Would catch commas, quotes and line ends that are lost or end a field inside of quotes, and wrong lines.
    #[test]
    fn records_by_hand() {
        let record = |line, fields: &[&str]| Record {
            line,
            fields: fields.iter().map(|f| (*f).to_owned()).collect(),
        };
        let text = "a,b\r\n\r\n\"x, \"\"y\"\"\n\",\n,\"\"\r\"last\"";
        let expected = [
            record(1, &["a", "b"]),
            record(3, &["x, \"y\"\n", ""]),
            record(5, &["", ""]),
            record(5, &["last"]),
        ];
        assert_eq!(all(text).unwrap(), expected);
        assert_eq!(all("").unwrap(), []);
        assert_eq!(all("a\n\"b\nc").unwrap_err().0, 2);
        assert_eq!(all("a\n\"b\"c").unwrap_err(), (2, all("\"b\"c").unwrap_err().1));
    }

    proptest! {
        /// Would catch a field that is read otherwise than it was written.
        #[test]
        fn what_is_written_is_read(fields in prop::collection::vec("[a-b,\"\r\n ]{0,5}", 1..5)) {
            let quoted: Vec<String> = fields.iter().map(|f| format!("\"{}\"", f.replace('"', "\"\""))).collect();
            let read = all(&format!("{}\n", quoted.join(","))).unwrap();
            prop_assert_eq!(&read[0].fields, &fields);
            prop_assert_eq!(read.len(), 1);
        }
    }
}
