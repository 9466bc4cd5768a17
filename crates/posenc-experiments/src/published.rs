//! Published values: `data/papers/<paper>.csv`.

mod check;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::record::csv::CsvFile;
use crate::schema::Experiment;
use crate::schema::claim::{Select, same_place};
use crate::text::read_record;
use crate::yaml::FileError;

/// A number that a paper prints, or that comes from its theory or from its authors' notebooks or code.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedValue {
    pub item: String,
    pub group: String,
    pub method: String,
    /// Signal; empty for a mean over signals.
    pub signal: String,
    pub metric: String,
    pub x: Option<f64>,
    /// The number; `None` if the paper leaves the cell empty.
    pub value: Option<f64>,
    /// Standard deviation printed next to it.
    pub deviation: Option<f64>,
    pub unit: String,
    /// `paper`, `notebook`, `plot`, `theory` or `code`.
    pub source: String,
    pub note: String,
    pub line: usize,
}

impl PublishedValue {
    /// Whether the authors' notebooks or code print the number, and the paper does not.
    pub fn is_of_code(&self) -> bool {
        ["notebook", "code"].contains(&self.source.as_str())
    }
}

/// All published values, by paper.
#[derive(Debug, Clone, Default)]
pub struct Published {
    papers: BTreeMap<String, Vec<PublishedValue>>,
}

const COLUMNS: &[&str] =
    &["item", "group", "method", "signal", "metric", "x", "value", "std", "unit", "source", "note"];

/// Where a published value comes from.
const SOURCES: [&str; 5] = ["paper", "notebook", "plot", "theory", "code"];

impl Published {
    /// Reads `<directory>/<paper>.csv`; a missing file is a paper without values.
    pub fn read(&mut self, directory: &Path, paper: &str) -> Result<(), FileError> {
        let file = directory.join(format!("{paper}.csv"));
        if let Some(text) = read_record(&file)? {
            self.papers.insert(paper.to_owned(), Published::parse(&file, text)?);
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, paper: &str) {
        self.papers.remove(paper);
    }

    /// Parses `text`; `file` is only used in messages.
    pub fn parse(file: &Path, text: String) -> Result<Vec<PublishedValue>, FileError> {
        let mut csv = CsvFile::parse(file, &text, COLUMNS)?;
        let mut values = Vec::new();
        let mut lines = HashMap::new();
        while let Some(row) = csv.next_row()? {
            let spaced = |c: &&&str| row.text(c) != row.text(c).trim();
            if let Some(column) = COLUMNS.iter().find(spaced) {
                return Err(row.error(column, "spaces before or behind the text; remove them"));
            }
            if !SOURCES.contains(&row.text("source")) {
                let allowed = SOURCES.join(", ");
                let message =
                    format!("`{}` is not allowed; allowed: {allowed}", row.text("source"));
                return Err(row.error("source", message));
            }
            let number = |column| match row.number(column)? {
                Some(v) if !v.is_finite() || (column == "std" && v < 0.0) => {
                    let allowed = if column == "std" { "0 or more" } else { "a finite number" };
                    Err(row.error(column, format!("{v} is not allowed; allowed: {allowed}")))
                }
                number => Ok(number),
            };
            let text = |c: &str| row.text(c).to_owned();
            let value = PublishedValue {
                item: text("item"),
                group: text("group"),
                method: text("method"),
                signal: text("signal"),
                metric: text("metric"),
                x: number("x")?,
                value: number("value")?,
                deviation: number("std")?,
                unit: text("unit"),
                source: text("source"),
                note: text("note"),
                line: row.line(),
            };
            let x = value.x.map(|x| format!("{:.9e}", x + 0.0));
            let key = ["item", "group", "method", "signal", "metric"].map(text);
            if let Some(line) = lines.insert((key, x), value.line) {
                let message = format!(
                    "same item, group, method, signal, metric and x as line {line}; remove one of the two"
                );
                return Err(row.error("value", message));
            }
            values.push(value);
        }
        Ok(values)
    }

    /// Rejects values of a paper that nothing uses, such as those with a misspelled name. `directory` is that of the file, and `is_missing`
    /// decides about an item whether its experiment is left out.
    pub(crate) fn check(
        &self,
        directory: &Path,
        paper: &str,
        experiments: &[Experiment],
        is_missing: impl Fn(&str) -> bool,
    ) -> Result<(), FileError> {
        let values = self.papers.get(paper).into_iter().flatten();
        let values = values.filter(|value| !is_missing(&value.item));
        check::values(&directory.join(format!("{paper}.csv")), paper, values, experiments)
    }

    pub fn item<'a>(
        &'a self,
        paper: &str,
        item: &'a str,
    ) -> impl Iterator<Item = &'a PublishedValue> + 'a {
        self.papers.get(paper).into_iter().flatten().filter(move |v| v.item == item)
    }

    /// Values that a selection matches; its `from` is ignored.
    pub fn select<'a>(
        &'a self,
        paper: &str,
        item: &'a str,
        select: &'a Select,
    ) -> impl Iterator<Item = &'a PublishedValue> + 'a {
        self.item(paper, item).filter(move |v| {
            v.group == select.group
                && v.metric == select.metric
                && select.takes(&v.method, &v.signal)
                && select.x.as_ref().is_none_or(|x| x.contains(v.x))
        })
    }

    /// One value by all its keys.
    pub fn value(
        &self,
        paper: &str,
        item: &str,
        group: &str,
        method: &str,
        metric: &str,
        x: Option<f64>,
    ) -> Option<&PublishedValue> {
        let is_same = |a: Option<f64>| match (a, x) {
            (Some(a), Some(x)) => same_place(a, x),
            (a, x) => a == x,
        };
        self.papers.get(paper)?.iter().find(|v| {
            v.item == item
                && v.group == group
                && v.method == method
                && v.metric == metric
                && is_same(v.x)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a misspelled source, which tables would show as the paper's, and a text with a comma whose remedy destroys the file.
    #[test]
    fn sources_and_commas_are_checked() {
        let parse = |row: &str| {
            let text = format!("{}\n{row}\n", COLUMNS.join(","));
            Published::parse(Path::new("a.csv"), text).map(|all| all.len())
        };
        assert_eq!(parse("fig1,run,A,,psnr,,1,,dB,paper,\"a, b\"").unwrap(), 1);
        let wrong = parse("fig1,run,A,,psnr,,1,,dB,figure,").unwrap_err().to_string();
        assert!(wrong.contains("a.csv:2") && wrong.contains("allowed: paper, notebook"), "{wrong}");
        let comma = parse("fig1,run,A,,psnr,,1,,dB,paper,a, b").unwrap_err().to_string();
        assert!(comma.contains("in quotes") && !comma.contains("delete"), "{comma}");
    }
}
