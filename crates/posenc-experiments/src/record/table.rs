//! A record in long form, one row per measured number: `report/record/<paper>/<item>.csv`.

use std::io::Write;
use std::path::Path;

use polars::prelude::*;

use super::csv::CsvFile;
use crate::schema::Profile;
use crate::schema::claim::Select;
use crate::text::{MAX_RECORD_BYTES, read_text};
use crate::yaml::FileError;

/// One measured number.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Group key.
    pub group: String,
    /// Method (the variant's id).
    pub method: String,
    /// Signal: an image, a curve; `-` where there is only one.
    pub signal: String,
    /// Repetition, from 0.
    pub seed: u64,
    /// Metric.
    pub metric: String,
    /// Abscissa.
    pub x: Option<f64>,
    /// Second abscissa, for heat maps.
    pub y: Option<f64>,
    /// The number. NaN is kept as `NaN`: a failed measurement is a result.
    pub value: f64,
    /// Unit; empty for pure numbers.
    pub unit: String,
    /// Largest profile whose protocol this is.
    pub profile: Profile,
    /// Device that measured it.
    pub device: String,
    /// Data it was measured on; `-` for none.
    pub data: String,
}

impl Row {
    /// Whether a selection names this row.
    pub fn selected(&self, select: &Select) -> bool {
        self.group == select.group
            && self.metric == select.metric
            && select.method.as_ref().is_none_or(|m| *m == self.method)
            && select.signal.as_ref().is_none_or(|s| *s == self.signal)
            && select.x.as_ref().is_none_or(|x| x.contains(self.x))
    }
}

/// Whether a metric is read off the machine, its clock or its memory, and so differs from run to run.
pub fn is_of_machine(metric: &str) -> bool {
    metric.starts_with("time") || ["rate", "peak_memory"].contains(&metric)
}

/// A column of texts, and where a row has it.
type TextColumn = (&'static str, fn(&Row) -> &str);

/// Columns of texts that may be empty, or hold what a user named.
const TEXTS: [TextColumn; 7] = [
    ("group", |r| &r.group),
    ("method", |r| &r.method),
    ("signal", |r| &r.signal),
    ("metric", |r| &r.metric),
    ("unit", |r| &r.unit),
    ("device", |r| &r.device),
    ("data", |r| &r.data),
];

/// All rows of an item, in the order of the experiment file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// The rows.
    pub rows: Vec<Row>,
}

/// Columns of a record file, in order.
pub const COLUMNS: &[&str] = &[
    "paper", "item", "group", "method", "signal", "seed", "metric", "x", "y", "value", "unit",
    "profile", "device", "data",
];

impl Table {
    /// Reads a record; damage is named by line and column.
    pub fn read(file: &Path, paper: &str, item: &str) -> Result<Self, FileError> {
        Table::parse(file, read_text(file, MAX_RECORD_BYTES)?, paper, item)
    }

    /// As [`Table::read`], of the text of `file`, which is only named in messages.
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
            let text = |c: &str| row.text(c).to_owned();
            let required = |c: &str| {
                row.number(c)?.ok_or_else(|| row.error(c, "empty; a number belongs here"))
            };
            let seed = required("seed")?;
            if seed < 0.0 || seed.fract() != 0.0 {
                return Err(row.error("seed", format!("{seed} is not a whole number")));
            }
            let profile = Profile::parse(row.text("profile")).ok_or_else(|| {
                let names = Profile::ALL.map(Profile::name).join(", ");
                row.error("profile", format!("`{}`; allowed: {names}", row.text("profile")))
            })?;
            rows.push(Row {
                group: text("group"),
                method: text("method"),
                signal: text("signal"),
                seed: seed as u64,
                metric: text("metric"),
                x: row.number("x")?,
                y: row.number("y")?,
                value: required("value")?,
                unit: text("unit"),
                profile,
                device: text("device"),
                data: text("data"),
            });
        }
        Ok(Table { rows })
    }

    /// The rows as a data frame with typed columns, for analysis.
    pub fn frame(&self, paper: &str, item: &str) -> PolarsResult<DataFrame> {
        fn text<'a>(rows: &'a [Row], name: &str, f: impl Fn(&'a Row) -> &'a str) -> Column {
            Column::new(name.into(), rows.iter().map(f).collect::<Vec<_>>())
        }
        let constant = |name: &str, v: &str| Column::new(name.into(), vec![v; self.rows.len()]);
        let rows = &self.rows;
        let columns = vec![
            constant("paper", paper),
            constant("item", item),
            text(rows, "group", |r| &r.group),
            text(rows, "method", |r| &r.method),
            text(rows, "signal", |r| &r.signal),
            Column::new("seed".into(), self.rows.iter().map(|r| r.seed).collect::<Vec<_>>()),
            text(rows, "metric", |r| &r.metric),
            Column::new("x".into(), self.rows.iter().map(|r| r.x).collect::<Vec<_>>()),
            Column::new("y".into(), self.rows.iter().map(|r| r.y).collect::<Vec<_>>()),
            Column::new("value".into(), self.rows.iter().map(|r| r.value).collect::<Vec<_>>()),
            text(rows, "unit", |r| &r.unit),
            text(rows, "profile", |r| r.profile.name()),
            text(rows, "device", |r| &r.device),
            text(rows, "data", |r| &r.data),
        ];
        DataFrame::new(self.rows.len(), columns)
    }

    /// The record as CSV. Numbers are printed in the shortest form that reads back the same.
    pub fn to_csv(&self, paper: &str, item: &str) -> PolarsResult<String> {
        // polars prints floats with its own formatter; ours is Rust's shortest round trip, so
        // that bytes are equal exactly where numbers are.
        let number = |v: Option<f64>| v.map(|v| format!("{v:?}"));
        let mut frame = self.frame(paper, item)?;
        for (name, f) in [
            ("x", (|r: &Row| r.x) as fn(&Row) -> Option<f64>),
            ("y", |r| r.y),
            ("value", |r| Some(r.value)),
        ] {
            let texts: Vec<_> = self.rows.iter().map(|r| number(f(r))).collect();
            frame.with_column(Column::new(name.into(), texts))?;
        }
        // An empty text would come out as `""`; nothing says the same and reads better.
        for (name, f) in TEXTS {
            let texts: Vec<_> =
                self.rows.iter().map(|r| Some(f(r)).filter(|t| !t.is_empty())).collect();
            frame.with_column(Column::new(name.into(), texts))?;
        }
        let mut bytes = Vec::new();
        CsvWriter::new(&mut bytes).with_quote_style(QuoteStyle::Necessary).finish(&mut frame)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Writes the record beside itself and renames it: a reader never sees half a file.
    pub fn write(&self, file: &Path, paper: &str, item: &str) -> Result<(), FileError> {
        let problem = |message: String| FileError {
            file: file.to_owned(),
            line: None,
            key: String::new(),
            message,
        };
        let text =
            self.to_csv(paper, item).map_err(|e| problem(format!("cannot be written: {e}")))?;
        write_if_changed(file, text.as_bytes())
            .map_err(|e| problem(format!("cannot be written: {e}")))
    }

    /// Rows that a selection names.
    pub fn select<'a>(&'a self, select: &'a Select) -> impl Iterator<Item = &'a Row> + 'a {
        self.rows.iter().filter(move |r| r.selected(select))
    }
}

/// As [`write_atomically`], but leaves a file alone that has these bytes: nothing waits for the disk then.
pub fn write_if_changed(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    match std::fs::read(file) {
        Ok(before) if before == bytes => Ok(()),
        _ => write_atomically(file, bytes),
    }
}

/// Writes a file by way of a temporary one in the same directory.
pub fn write_atomically(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    write_parts_atomically(file, &[bytes])
}

/// Whether an error says that there is no more space: the disk, a quota or a limit on the size of files.
pub fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// As [`write_atomically`], of pieces that need not lie side by side in memory. Where there is no more space the error
/// says how much was to be written.
pub fn write_parts_atomically(file: &Path, parts: &[&[u8]]) -> std::io::Result<()> {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    write_parts(file, parts).map_err(|error| match is_full(&error) {
        true => std::io::Error::new(
            error.kind(),
            format!("{error}; {bytes} bytes were to be written: free some space"),
        ),
        false => error,
    })
}

fn write_parts(file: &Path, parts: &[&[u8]]) -> std::io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut temporary =
        tempfile::Builder::new().prefix(".writing-").suffix(".tmp").tempfile_in(directory)?;
    for part in parts {
        temporary.write_all(part)?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(file).map_err(|e| e.error)?;
    // Temporary files are private; records are for everyone who may read the directory.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a name that reads back as another, and empty fields written as quotes.
    #[test]
    fn names_with_quotes_commas_and_line_breaks_read_back() {
        let row = |method: &str, signal: &str| Row {
            group: "g".into(),
            method: method.into(),
            signal: signal.into(),
            seed: 0,
            metric: "test_psnr".into(),
            x: None,
            y: Some(0.1),
            value: 1e-300,
            unit: String::new(),
            profile: Profile::Quick,
            device: "cpu".into(),
            data: "-".into(),
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

    /// Catches lines that shift with blank lines, line breaks inside quotes, or characters that end no line in an editor; and a
    /// header of a million columns that takes memory for each.
    #[test]
    fn damage_is_reported_in_its_line() {
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
