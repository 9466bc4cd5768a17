//! A record in long form, one row per measured number: `report/record/<paper>/<item>.csv`.

use std::path::Path;

use polars::prelude::*;
pub use posenc_files::{is_full, write_atomically, write_parts_atomically};

use super::csv::{CsvFile, CsvRow};
use crate::profile::Profile;
use crate::text::{MAX_RECORD_BYTES, read_text};
use crate::yaml::FileError;

/// Name of the only signal of an experiment without data.
pub const NO_SIGNAL: &str = "-";

/// A type that a column of a record can have.
pub trait Field: Sized {
    /// Reads a field.
    fn read(row: &CsvRow<'_>, column: &str) -> Result<Self, FileError>;

    /// The typed column of a data frame, for grouping rows.
    fn column<'a>(name: PlSmallStr, values: impl Iterator<Item = &'a Self>) -> Column
    where
        Self: 'a;

    /// The column as written to the file.
    fn written<'a>(name: PlSmallStr, values: impl Iterator<Item = &'a Self>) -> Column
    where
        Self: 'a,
    {
        Self::column(name, values)
    }
}

impl Field for String {
    fn read(row: &CsvRow<'_>, column: &str) -> Result<Self, FileError> {
        Ok(row.text(column).to_owned())
    }

    fn column<'a>(name: PlSmallStr, values: impl Iterator<Item = &'a Self>) -> Column {
        Column::new(name, values.map(String::as_str).collect::<Vec<_>>())
    }

    /// Writes an empty text as a missing one, which reads back the same: polars writes an empty text as `""`.
    fn written<'a>(name: PlSmallStr, values: impl Iterator<Item = &'a Self>) -> Column {
        let texts = values.map(|text| Some(text.as_str()).filter(|text| !text.is_empty()));
        Column::new(name, texts.collect::<Vec<_>>())
    }
}

impl Field for Option<f64> {
    fn read(row: &CsvRow<'_>, column: &str) -> Result<Self, FileError> {
        row.number(column)
    }

    fn column<'a>(name: PlSmallStr, values: impl Iterator<Item = &'a Self>) -> Column {
        Column::new(name, values.copied().collect::<Vec<_>>())
    }

    /// Uses Rust's shortest form that reads back, not the formatter of polars, so that bytes are equal exactly if numbers are.
    fn written<'a>(name: PlSmallStr, values: impl Iterator<Item = &'a Self>) -> Column {
        let texts = values.map(|value| value.map(|value| format!("{value:?}")));
        Column::new(name, texts.collect::<Vec<_>>())
    }
}

impl Field for f64 {
    fn read(row: &CsvRow<'_>, column: &str) -> Result<Self, FileError> {
        row.number(column)?.ok_or_else(|| row.error(column, "empty; a number belongs here"))
    }

    fn column<'a>(name: PlSmallStr, values: impl Iterator<Item = &'a Self>) -> Column {
        Column::new(name, values.copied().collect::<Vec<_>>())
    }

    fn written<'a>(name: PlSmallStr, values: impl Iterator<Item = &'a Self>) -> Column {
        Column::new(name, values.map(|value| format!("{value:?}")).collect::<Vec<_>>())
    }
}

impl Field for u64 {
    fn read(row: &CsvRow<'_>, column: &str) -> Result<Self, FileError> {
        let value = f64::read(row, column)?;
        if value < 0.0 || value.fract() != 0.0 {
            return Err(row.error(column, format!("{value} is not a whole number")));
        }
        Ok(value as u64)
    }

    fn column<'a>(name: PlSmallStr, values: impl Iterator<Item = &'a Self>) -> Column {
        Column::new(name, values.copied().collect::<Vec<_>>())
    }
}

impl Field for Profile {
    fn read(row: &CsvRow<'_>, column: &str) -> Result<Self, FileError> {
        let text = row.text(column);
        Profile::parse(text).ok_or_else(|| {
            let names = Profile::ALL.map(Profile::name).join(", ");
            row.error(column, format!("`{text}`; allowed: {names}"))
        })
    }

    fn column<'a>(name: PlSmallStr, values: impl Iterator<Item = &'a Self>) -> Column {
        Column::new(name, values.map(|profile| profile.name()).collect::<Vec<_>>())
    }
}

/// Defines the columns of a record: the single list from which rows are stored, read and written.
macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// One measured number.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Row {
            $($(#[$doc])* pub $name: $kind,)*
        }

        /// Columns of a record file, in order. The first two are the same in all rows.
        pub const COLUMNS: &[&str] = &["paper", "item", $(stringify!($name)),*];

        impl Row {
            fn read(row: &CsvRow<'_>) -> Result<Self, FileError> {
                Ok(Row { $($name: Field::read(row, stringify!($name))?,)* })
            }
        }

        impl Table {
            fn written(&self) -> Vec<Column> {
                vec![$(Field::written(stringify!($name).into(), self.rows.iter().map(|row| &row.$name)),)*]
            }
        }
    };
}

columns! {
    /// Group key.
    group: String,
    /// Method (the variant's id).
    method: String,
    /// Signal: an image, a curve; `-` if there is only one.
    signal: String,
    /// Repetition, from 0.
    seed: u64,
    /// Metric.
    metric: String,
    /// Abscissa.
    x: Option<f64>,
    /// Second abscissa, for heat maps.
    y: Option<f64>,
    /// The number. NaN is kept as `NaN`: a failed measurement is a result.
    value: f64,
    /// Unit; empty for pure numbers.
    unit: String,
    /// Largest profile whose protocol this is.
    profile: Profile,
    /// Device that measured it.
    device: String,
    /// Data it was measured on; `-` for none.
    data: String,
}

impl Row {
    /// A number of the full protocol without signal, abscissa, unit and data, measured on the CPU.
    pub fn new(group: &str, method: &str, metric: &str, value: f64) -> Self {
        Row {
            group: group.into(),
            method: method.into(),
            signal: NO_SIGNAL.into(),
            seed: 0,
            metric: metric.into(),
            x: None,
            y: None,
            value,
            unit: String::new(),
            profile: Profile::Paper,
            device: "cpu".into(),
            data: "-".into(),
        }
    }

    /// Whether two rows are the same, with NaN equal to NaN.
    pub fn is_same(&self, other: &Row) -> bool {
        let without_nan = |row: &Row| {
            let value = if row.value.is_nan() { 0.0 } else { row.value };
            (row.value.is_nan(), Row { value, ..row.clone() })
        };
        self == other || without_nan(self) == without_nan(other)
    }
}

/// Whether a metric measures the machine (time or memory), so that it varies from run to run.
pub fn is_of_machine(metric: &str) -> bool {
    metric.starts_with("time") || ["rate", "peak_memory"].contains(&metric)
}

/// Whether a metric is counted from the settings, so that it depends on neither the data nor the length of a run.
pub fn is_counted(metric: &str) -> bool {
    ["params", "memory"].contains(&metric)
}

/// All rows of an item, in the order of the experiment file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// The rows.
    pub rows: Vec<Row>,
}

impl Table {
    /// Reads a record; errors name line and column.
    pub fn read(file: &Path, paper: &str, item: &str) -> Result<Self, FileError> {
        Table::parse(file, read_text(file, MAX_RECORD_BYTES)?, paper, item)
    }

    /// Like [`Table::read`], but parses `text`; `file` is only used in messages.
    pub fn parse(file: &Path, text: String, paper: &str, item: &str) -> Result<Self, FileError> {
        let mut csv = CsvFile::parse(file, &text, COLUMNS)?;
        let mut rows = Vec::new();
        while let Some(row) = csv.next_row()? {
            for (column, expected) in [("paper", paper), ("item", item)] {
                let found = row.text(column);
                if found != expected {
                    let message = format!("`{found}` in the record of {paper}/{item}");
                    return Err(row.error(column, message));
                }
            }
            rows.push(Row::read(&row)?);
        }
        Ok(Table { rows })
    }

    /// The record as CSV. Numbers are printed in the shortest form that reads back the same.
    pub fn to_csv(&self, paper: &str, item: &str) -> PolarsResult<String> {
        let same = |name: &str, text: &str| Column::new(name.into(), vec![text; self.rows.len()]);
        let mut columns = vec![same("paper", paper), same("item", item)];
        columns.extend(self.written());
        let mut frame = DataFrame::new(self.rows.len(), columns)?;
        let mut bytes = Vec::new();
        CsvWriter::new(&mut bytes).with_quote_style(QuoteStyle::Necessary).finish(&mut frame)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a name that does not read back equal, and empty fields written as quotes.
    #[test]
    fn names_with_quotes_commas_and_line_breaks_read_back() {
        let row = |method: &str, signal: &str| Row {
            signal: signal.into(),
            y: Some(0.1),
            profile: Profile::Quick,
            ..Row::new("g", method, "test_psnr", 1e-300)
        };
        let rows = vec![
            row("Gau 5\"", "a\"b.png"),
            row("\"\"", "\"a, b\".png"),
            row("a\r\nb\rc\n", "\n"),
            row("Gau", "-"),
        ];
        let table = Table { rows };
        let text = table.to_csv("p", "i").unwrap();
        assert!(text.ends_with("p,i,g,Gau,-,0,test_psnr,,0.1,1e-300,,quick,cpu,-\n"), "{text}");
        let back = Table::parse(Path::new("t.csv"), text, "p", "i").unwrap();
        assert_eq!(back, table);
    }

    /// Catches a record whose bytes change when it is read and written again.
    #[test]
    fn records_of_the_repository_are_rewritten_unchanged() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../report/record/rethinking");
        let names = posenc_files::entries(&folder).unwrap().into_iter().map(|entry| entry.name);
        let items: Vec<String> = names
            .filter_map(|name| Some(name.to_str()?.strip_suffix(".csv")?.to_owned()))
            .collect();
        assert!(items.len() > 5, "{items:?}");
        for item in items {
            let file = folder.join(format!("{item}.csv"));
            let text = read_text(&file, MAX_RECORD_BYTES).unwrap().replace("\r\n", "\n");
            let table = Table::parse(&file, text.clone(), "rethinking", &item).unwrap();
            assert!(table.to_csv("rethinking", &item).unwrap() == text, "{item}");
        }
    }

    /// Catches a column that FORMAT.md does not list, or lists in another position.
    #[test]
    fn columns_are_described() {
        let format = include_str!("../../../../FORMAT.md");
        assert!(format.contains(&format!("`{}`", COLUMNS.join(","))));
    }

    /// Catches line numbers that are wrong after blank lines, line breaks inside quotes, or characters that do not end a line in an
    /// editor. Also catches a header of a million columns that uses memory for each.
    #[test]
    fn damage_is_reported_with_its_line() {
        let header = COLUMNS.join(",");
        let row =
            |method: &str, value: &str| format!("p,i,g,{method},-,0,m,,,{value},,smoke,cpu,-");
        let (good, bad) = (row("Gau", "1"), row("Gau", "x"));
        let odd = row("\"a\n\nb\u{2028}\u{85}\"", "1");
        for (text, line) in [
            (format!("{header}\n{good}\n{bad}\n"), 3),
            (format!("{header}\r\n{good}\r\n{bad}"), 3),
            (format!("{header}\r{good}\r{bad}"), 3),
            (format!("{header}\n\n\n{good}\n\n{bad}\n"), 6),
            (format!("{header}\n{odd}\n{bad}\n"), 5),
        ] {
            let message = Table::parse(Path::new("t.csv"), text, "p", "i").unwrap_err().to_string();
            assert!(message.starts_with(&format!("t.csv:{line}: `value`: `x`")), "{message}");
        }
        let wide = ",".repeat(1_000_000);
        let message = Table::parse(Path::new("t.csv"), wide, "p", "i").unwrap_err().to_string();
        assert!(message.starts_with("t.csv:1: more than 1000 fields"), "{message}");
        let forged = format!("{header}\n{}\n", row("Gau", "\"x\n\u{1b}[2Jerror: forged\""));
        let message = Table::parse(Path::new("t.csv"), forged, "p", "i").unwrap_err().to_string();
        assert!(message.contains("`x\\n\\u{1b}[2Jerror: forged`"), "{message}");
    }
}
