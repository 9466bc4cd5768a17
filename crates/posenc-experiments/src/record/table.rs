//! The numbers of an item, one row per number. On disk they are two tables: `units.csv` has what the numbers of a unit share, and
//! `values.csv` the numbers.

use std::collections::HashMap;
use std::path::Path;

use polars::prelude::*;

use super::csv::{CsvFile, CsvRow};
use super::picture::{check_size, is_file_name};
use crate::profile::Profile;
use crate::yaml::FileError;

/// Name of the only signal of an experiment without data.
pub const NO_SIGNAL: &str = "-";

/// Signal name of units that read a data set as a whole.
pub const ALL_SIGNALS: &str = "all";

/// What precedes the name of a picture in `values.csv`, where numbers have their metric.
pub(super) const PICTURE: &str = "picture:";

/// Columns of `units.csv`, in order.
pub const UNITS: &[&str] =
    &["unit", "group", "method", "signal", "seed", "profile", "device", "data"];
/// Columns of `values.csv`, in order.
pub const VALUES: &[&str] = &["unit", "metric", "x", "y", "value", "measure"];

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub group: String,
    /// The variant's id, or what a unit that measures several methods calls this one.
    pub method: String,
    /// An image, a curve; `-` if there is only one.
    pub signal: String,
    /// Repetition, from 0.
    pub seed: u64,
    pub metric: String,
    pub x: Option<f64>,
    /// Second abscissa, for heat maps.
    pub y: Option<f64>,
    /// The number. NaN is kept as `NaN`: a failed measurement is a result.
    pub value: f64,
    /// Unit of measurement; empty for pure numbers.
    pub unit: String,
    /// Largest profile whose protocol this is.
    pub profile: Profile,
    pub device: String,
    /// Data it was measured on; `-` for none.
    pub data: String,
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
    metric.starts_with("time") || ["rate", "peak_memory", "selection_time"].contains(&metric)
}

/// Whether a metric is counted from the settings, so that it depends on neither the data nor the length of a run.
pub fn is_counted(metric: &str) -> bool {
    ["params", "memory"].contains(&metric)
}

/// Numbers and pictures of an item, in the order of the experiment file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    pub rows: Vec<Row>,
    /// Pictures of units. `metric` is what a picture shows (see [`super::Picture::name`]), `x` and `y` are its width and height, `value` is
    /// its PSNR in dB, NaN without one, and `unit` is the name of its file.
    pub pictures: Vec<Row>,
}

impl From<Vec<Row>> for Table {
    fn from(rows: Vec<Row>) -> Self {
        Table { rows, pictures: Vec::new() }
    }
}

impl Table {
    /// Joins the texts of `units.csv` and `values.csv`; `files` are only used in messages, which name line and column.
    pub fn parse(files: [&Path; 2], texts: [&str; 2]) -> Result<Self, FileError> {
        let mut units: HashMap<u64, Row> = HashMap::new();
        let mut csv = CsvFile::parse(files[0], texts[0], UNITS)?;
        while let Some(row) = csv.next_row()? {
            let unit = Row {
                signal: row.text("signal").into(),
                seed: whole(&row, "seed")?,
                profile: profile(&row)?,
                device: row.text("device").into(),
                data: row.text("data").into(),
                ..Row::new(row.text("group"), row.text("method"), "", 0.0)
            };
            if units.insert(whole(&row, "unit")?, unit).is_some() {
                return Err(row.error("unit", format!("{} appears twice", row.text("unit"))));
            }
        }
        let mut table = Table::default();
        let mut csv = CsvFile::parse(files[1], texts[1], VALUES)?;
        while let Some(row) = csv.next_row()? {
            let Some(unit) = units.get(&whole(&row, "unit")?) else {
                let message = format!("{}: not in {}", row.text("unit"), files[0].display());
                return Err(row.error("unit", message));
            };
            let metric = row.text("metric");
            let picture = metric.strip_prefix(PICTURE);
            let (x, y) = (row.number("x")?, row.number("y")?);
            if let Some(name) = picture {
                if !is_file_name(row.text("measure")) {
                    let message = format!("`{}` is not the name of a picture", row.text("measure"));
                    return Err(row.error("measure", message));
                }
                if super::picture::name(name).is_none() {
                    return Err(row.error("metric", format!("no picture is named `{name}`")));
                }
                let is_whole = |side: &f64| side.fract() == 0.0 && *side >= 1.0;
                let [Some(width), Some(height)] = [x, y].map(|side| side.filter(is_whole)) else {
                    return Err(row.error(
                        "x",
                        "width and height of a picture must be positive whole numbers",
                    ));
                };
                let size = check_size(width as usize, height as usize, 1);
                size.map_err(|e| row.error("x", e.to_string()))?;
            }
            let value = Row {
                metric: picture.unwrap_or(metric).into(),
                x,
                y,
                value: number(&row, "value")?,
                unit: row.text("measure").into(),
                ..unit.clone()
            };
            let list = if picture.is_some() { &mut table.pictures } else { &mut table.rows };
            list.push(value);
        }
        Ok(table)
    }

    /// The texts of `units.csv` and `values.csv`. Numbers are in the shortest form that reads back the same.
    pub fn to_csv(&self) -> PolarsResult<[String; 2]> {
        let named = |row: &Row| Row { metric: format!("{PICTURE}{}", row.metric), ..row.clone() };
        let pictures: Vec<Row> = self.pictures.iter().map(named).collect();
        let all: Vec<&Row> = self.rows.iter().chain(&pictures).collect();
        let mut units: Vec<&Row> = Vec::new();
        let mut numbers = HashMap::new();
        let of_row: Vec<u64> = (all.iter())
            .map(|row| {
                let Row { group, method, signal, seed, profile, device, data, .. } = row;
                let key = (group, method, signal, seed, profile, device, data);
                *numbers.entry(key).or_insert_with(|| {
                    units.push(row);
                    units.len() as u64 - 1
                })
            })
            .collect();
        let texts = |name: &str, rows: &[&Row], of: fn(&Row) -> &str| {
            // polars writes an empty text as `""`, and a missing one as nothing.
            let texts = rows.iter().map(|row| Some(of(row)).filter(|text| !text.is_empty()));
            Column::new(name.into(), texts.collect::<Vec<_>>())
        };
        let floats = |name: &str, of: fn(&Row) -> Option<f64>| {
            let texts = all.iter().map(|row| of(row).map(shortest));
            Column::new(name.into(), texts.collect::<Vec<_>>())
        };
        let seeds = units.iter().map(|row| row.seed).collect::<Vec<_>>();
        let of_units = vec![
            Column::new("unit".into(), (0..units.len() as u64).collect::<Vec<_>>()),
            texts("group", &units, |row| &row.group),
            texts("method", &units, |row| &row.method),
            texts("signal", &units, |row| &row.signal),
            Column::new("seed".into(), seeds),
            texts("profile", &units, |row| row.profile.name()),
            texts("device", &units, |row| &row.device),
            texts("data", &units, |row| &row.data),
        ];
        let of_values = vec![
            Column::new("unit".into(), of_row),
            texts("metric", &all, |row| &row.metric),
            floats("x", |row| row.x),
            floats("y", |row| row.y),
            floats("value", |row| Some(row.value)),
            texts("measure", &all, |row| &row.unit),
        ];
        Ok([written(units.len(), of_units)?, written(all.len(), of_values)?])
    }
}

fn written(rows: usize, columns: Vec<Column>) -> PolarsResult<String> {
    let mut frame = DataFrame::new(rows, columns)?;
    let mut bytes = Vec::new();
    CsvWriter::new(&mut bytes).with_quote_style(QuoteStyle::Necessary).finish(&mut frame)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Rust's shortest form that reads back the same, not that of polars; whole numbers without `.0`.
fn shortest(value: f64) -> String {
    let text = format!("{value:?}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

fn number(row: &CsvRow<'_>, column: &str) -> Result<f64, FileError> {
    row.number(column)?.ok_or_else(|| row.error(column, "empty; a number belongs here"))
}

fn whole(row: &CsvRow<'_>, column: &str) -> Result<u64, FileError> {
    let text = row.text(column);
    text.parse().map_err(|_| row.error(column, format!("`{text}` is not a whole number")))
}

fn profile(row: &CsvRow<'_>) -> Result<Profile, FileError> {
    let text = row.text("profile");
    text.parse().map_err(|allowed: String| row.error("profile", format!("`{text}`; {allowed}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(units: &str, values: &str) -> Result<Table, FileError> {
        Table::parse([Path::new("units.csv"), Path::new("values.csv")], [units, values])
    }

    /// Catches a name or number that does not read back equal, rows that change their order or unit, and empty fields written as
    /// quotes.
    #[test]
    fn tables_read_back() {
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
            Row { x: Some(-0.0), value: f64::NEG_INFINITY, unit: "dB".into(), ..row("Gau", "-") },
            Row { value: 1e16, ..row("Gau", "-") },
            Row { value: 3.0, seed: 1, ..row("Gau", "-") },
            Row { value: 12_345_678.0, ..row("Gau", "-") },
        ];
        let file = "0123456789abcdef.png";
        let (x, y, metric) = (Some(4.0), Some(3.0), "truth".into());
        let pictures = vec![Row { metric, x, y, unit: file.into(), ..row("Gau", "b") }];
        let table = Table { rows, pictures };
        let [units, values] = table.to_csv().unwrap();
        assert!(
            units.ends_with(
                "\n3,g,Gau,-,0,quick,cpu,-\n4,g,Gau,-,1,quick,cpu,-\n5,g,Gau,b,0,quick,cpu,-\n"
            ),
            "{units}"
        );
        let expected = "3,test_psnr,-0,0.1,-inf,dB\n3,test_psnr,,0.1,1e16,\n4,test_psnr,,0.1,3,\n\
                        3,test_psnr,,0.1,12345678,\n5,picture:truth,4,3,1e-300,0123456789abcdef.png\n";
        assert!(values.ends_with(expected), "{values}");
        let back = parse(&units, &values).unwrap();
        assert_eq!(back, table);
        assert!(back.rows[3].x.unwrap().is_sign_negative());
    }

    /// Catches a column that FORMAT.md does not list, or lists in another position.
    #[test]
    fn columns_are_described() {
        let format = include_str!("../../../../FORMAT.md");
        for columns in [UNITS, VALUES] {
            assert!(format.contains(&format!("`{}`", columns.join(","))));
        }
    }

    /// Catches line numbers that are wrong after blank lines, line breaks inside quotes, or characters that do not end a line in an
    /// editor; and values of a unit that does not exist or that exists twice.
    #[test]
    fn damage_is_reported_with_its_line() {
        let units = UNITS.join(",") + "\n0,g,Gau,-,0,smoke,cpu,-\n1,g,Tri,-,0,smoke,cpu,-\n";
        let header = VALUES.join(",");
        let row = |metric: &str, value: &str| format!("0,{metric},,,{value},");
        let (good, bad) = (row("m", "1"), row("m", "x"));
        let odd = row("\"a\n\nb\u{2028}\u{85}\"", "1");
        for (text, line) in [
            (format!("{header}\n{good}\n{bad}\n"), 3),
            (format!("{header}\r\n{good}\r\n{bad}"), 3),
            (format!("{header}\r{good}\r{bad}"), 3),
            (format!("{header}\n\n\n{good}\n\n{bad}\n"), 6),
            (format!("{header}\n{odd}\n{bad}\n"), 5),
        ] {
            let message = parse(&units, &text).unwrap_err().to_string();
            assert!(message.starts_with(&format!("values.csv:{line}: `value`: `x`")), "{message}");
        }
        let text = format!("{header}\n2,m,,,1,\n");
        let message = parse(&units, &text).unwrap_err().to_string();
        assert!(message.starts_with("values.csv:2: `unit`: 2: not in units.csv"), "{message}");
        let twice = units.replace("\n1,", "\n0,");
        let message = parse(&twice, &header).unwrap_err().to_string();
        assert!(message.starts_with("units.csv:3: `unit`: 0 appears twice"), "{message}");
        for name in ["../x.png", "0123456789abcdef", "0123456789abcdeg.png"] {
            let text = format!("{header}\n0,picture:truth,1,1,NaN,{name}\n");
            let message = parse(&units, &text).unwrap_err().to_string();
            assert!(message.contains("is not the name of a picture"), "{message}");
        }
        for (shown, size, part) in [
            ("foo", "1,1", "no picture is named `foo`"),
            ("truth", ",", "`x`: width and height of a picture must be positive whole numbers"),
            ("truth", "-inf,NaN", "must be positive whole numbers"),
            ("truth", "1.5,1", "must be positive whole numbers"),
            ("truth", "-3,1", "must be positive whole numbers"),
            ("truth", "1e9,1", "16384 on a side"),
        ] {
            let text = format!("{header}\n0,picture:{shown},{size},NaN,0123456789abcdef.png\n");
            let message = parse(&units, &text).unwrap_err().to_string();
            assert!(message.contains(part), "{part}: {message}");
        }
        for (from, to, part) in [
            ("-,0,", "-,0.5,", "`seed`: `0.5` is not a whole number"),
            ("smoke", "big", "`profile`: `big`; allowed: smoke"),
            ("Gau", "\"x\n\u{1b}[2J\",", "fields, the header has 8"),
        ] {
            let message = parse(&units.replacen(from, to, 1), &header).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let wide = ",".repeat(1_000_000);
        let message = parse(&wide, &header).unwrap_err().to_string();
        assert!(message.starts_with("units.csv:1: more than 1000 fields"), "{message}");
    }
}
