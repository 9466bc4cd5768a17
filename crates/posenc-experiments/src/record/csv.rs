//! CSV files read through polars, every damage named by file and line.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use polars::prelude::*;

use crate::text::{MAX_RECORD_BYTES, read_text};
use crate::yaml::FileError;

/// A CSV file whose columns are all texts until asked for as numbers.
pub struct CsvFile {
    file: PathBuf,
    columns: Vec<(String, StringChunked)>,
    rows: usize,
}

impl CsvFile {
    /// Reads `file` and checks that its header has exactly `expected`, in any order.
    pub fn read(file: &Path, expected: &[&str]) -> Result<Self, FileError> {
        CsvFile::parse(file, read_text(file, MAX_RECORD_BYTES)?, expected)
    }

    /// As [`CsvFile::read`], of the text of `file`, which is only named in messages.
    pub fn parse(file: &Path, text: String, expected: &[&str]) -> Result<Self, FileError> {
        let problem = |line: Option<usize>, message: String| FileError {
            file: file.to_owned(),
            line,
            key: String::new(),
            message,
        };
        let fields = text.lines().next().map_or(0, field_count);
        for (i, line) in text.lines().enumerate() {
            if !line.is_empty() && field_count(line) != fields {
                return Err(problem(
                    Some(i + 1),
                    format!(
                        "{} fields, the header has {fields}; restore the file (git checkout) or delete it",
                        field_count(line)
                    ),
                ));
            }
        }
        let frame = CsvReadOptions::default()
            .with_infer_schema_length(Some(0))
            .with_parse_options(CsvParseOptions::default().with_missing_is_null(false))
            .into_reader_with_file_handle(Cursor::new(text.into_bytes()))
            .finish()
            .map_err(|e| problem(None, format!("not a CSV file: {e}")))?;
        let names: Vec<String> = frame.get_column_names().iter().map(|n| n.to_string()).collect();
        for name in expected {
            if !names.iter().any(|n| n == name) {
                return Err(problem(
                    Some(1),
                    format!(
                        "column `{name}` is missing; the header must be {}",
                        expected.join(",")
                    ),
                ));
            }
        }
        if let Some(extra) = names.iter().find(|n| !expected.contains(&n.as_str())) {
            return Err(problem(
                Some(1),
                format!("unknown column `{extra}`; the header must be {}", expected.join(",")),
            ));
        }
        let rows = frame.height();
        let columns = names
            .iter()
            .map(|n| {
                let column = frame.column(n)?.str()?.clone();
                Ok((n.clone(), column))
            })
            .collect::<PolarsResult<Vec<_>>>()
            .map_err(|e| problem(None, format!("not a CSV file: {e}")))?;
        Ok(CsvFile { file: file.to_owned(), columns, rows })
    }

    /// Number of rows below the header.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A field as text; empty where the file has nothing.
    pub fn text(&self, row: usize, column: &str) -> &str {
        self.columns.iter().find(|(n, _)| n == column).and_then(|(_, c)| c.get(row)).unwrap_or("")
    }

    /// A field as a number; `None` where the file has nothing.
    pub fn number(&self, row: usize, column: &str) -> Result<Option<f64>, FileError> {
        let text = self.text(row, column);
        if text.is_empty() {
            return Ok(None);
        }
        text.parse()
            .map(Some)
            .map_err(|_| self.error(row, column, format!("`{text}` is not a number")))
    }

    /// An error at a field.
    pub fn error(&self, row: usize, column: &str, message: impl Into<String>) -> FileError {
        FileError {
            file: self.file.clone(),
            // Our files have no line breaks inside fields: row 0 is line 2.
            line: Some(row + 2),
            key: column.to_owned(),
            message: message.into(),
        }
    }
}

/// Number of fields of a line, quotes respected.
fn field_count(line: &str) -> usize {
    let mut quoted = false;
    let mut count = 1;
    for byte in line.bytes() {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => count += 1,
            _ => {}
        }
    }
    count
}
