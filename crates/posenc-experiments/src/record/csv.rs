//! CSV tables of records and published values. Every error has file and line.

use std::borrow::Cow;
use std::path::Path;

use posenc_files::csv::{Fault, Record, Records};

use crate::yaml::FileError;

/// A CSV file whose header has exactly the expected columns.
pub struct CsvFile<'a> {
    file: &'a Path,
    records: Records<'a>,
    /// Columns that the file must have, each with its index.
    columns: Vec<(&'static str, usize)>,
}

/// A row below the header.
pub struct CsvRow<'a> {
    file: &'a Path,
    columns: &'a [(&'static str, usize)],
    record: Record<'a>,
}

fn fault(file: &Path, (line, message): Fault) -> FileError {
    FileError::of(file, message).at(line)
}

impl<'a> CsvFile<'a> {
    /// Reads the header of `text`, which must name exactly `expected`, in any order; `file` is only used in messages.
    pub fn parse(
        file: &'a Path,
        text: &'a str,
        expected: &[&'static str],
    ) -> Result<Self, FileError> {
        let mut records = Records::new(text);
        let header = records.header().map_err(|e| fault(file, e))?;
        let (line, names) = header.map_or((1, Vec::new()), |header| (header.line, header.fields));
        let problem = |message: String| {
            let message = format!("{message}; the header must be {}", expected.join(","));
            Err(fault(file, (line, message)))
        };
        let mut columns = Vec::with_capacity(expected.len());
        for name in expected {
            let mut places = (0..).zip(&names).filter(|(_, n)| n == name).map(|(place, _)| place);
            match (places.next(), places.next()) {
                (Some(place), None) => columns.push((*name, place)),
                (None, _) => return problem(format!("column `{name}` is missing")),
                (Some(_), Some(_)) => return problem(format!("column `{name}` appears twice")),
            }
        }
        if let Some(extra) = names.iter().find(|n| !expected.contains(&n.as_ref())) {
            return problem(format!("unknown column `{extra}`"));
        }
        Ok(CsvFile { file, records, columns })
    }

    /// The next row; `None` at the end.
    pub fn next_row(&mut self) -> Result<Option<CsvRow<'_>>, FileError> {
        let Some(record) = self.records.next_record().map_err(|e| fault(self.file, e))? else {
            return Ok(None);
        };
        let (found, fields) = (record.fields.len(), self.columns.len());
        if found != fields {
            let message = format!(
                "{found} fields, the header has {fields}; put a text with a comma in quotes, and restore a file that a program wrote (git checkout)"
            );
            return Err(fault(self.file, (record.line, message)));
        }
        Ok(Some(CsvRow { file: self.file, columns: &self.columns, record }))
    }
}

impl CsvRow<'_> {
    /// A field as text, possibly empty.
    pub fn text(&self, column: &str) -> &str {
        let place = self.columns.iter().find(|(name, _)| *name == column).map(|(_, place)| *place);
        place.and_then(|place| self.record.fields.get(place)).map_or("", Cow::as_ref)
    }

    /// A field as a number; `None` if it is empty.
    pub fn number(&self, column: &str) -> Result<Option<f64>, FileError> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| self.error(column, format!("`{text}` is not a number")))
    }

    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.record.line
    }

    /// An error at a field.
    pub fn error(&self, column: &str, message: impl Into<String>) -> FileError {
        FileError::of(self.file, message).at(self.record.line).key(column)
    }
}
