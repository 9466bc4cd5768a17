//! Bitwise comparison of two sets of rows.

use std::collections::BTreeMap;
use std::fmt;

use posenc_experiments::record::{Row, is_of_machine};
use posenc_experiments::verdict::show;

/// Key of a value: group, method, signal, seed, metric, both abscissas as bits.
type Place<'a> = (&'a str, &'a str, &'a str, u64, &'a str, Option<u64>, Option<u64>);

#[derive(Debug, Default, PartialEq)]
pub struct Sameness {
    compared: usize,
    differing: usize,
    first: Option<String>,
    /// Largest relative difference of the differing values, NaN excluded.
    largest: f64,
    missing: usize,
    new: usize,
}

impl Sameness {
    /// Compares recorded with newly measured rows, except machine-dependent metrics (times, rates, memory).
    pub fn of(recorded: &[&Row], measured: &[Row]) -> Sameness {
        let mut now: BTreeMap<Place<'_>, Vec<f64>> = BTreeMap::new();
        for row in measured.iter().filter(|row| !is_of_machine(&row.metric)) {
            now.entry(place(row)).or_default().push(row.value);
        }
        let mut found = Sameness::default();
        for row in recorded.iter().filter(|row| !is_of_machine(&row.metric)) {
            let values = now.get_mut(&place(row)).filter(|values| !values.is_empty());
            let Some(values) = values else {
                found.missing += 1;
                continue;
            };
            let value = values.remove(0);
            found.compared += 1;
            if value.to_bits() == row.value.to_bits() || value.is_nan() && row.value.is_nan() {
                continue;
            }
            found.differing += 1;
            let relative = (value - row.value).abs() / value.abs().max(row.value.abs());
            found.largest = found.largest.max(relative);
            let told =
                || format!("{} is {:?} on record and {value:?} now", described(row), row.value);
            found.first.get_or_insert_with(told);
        }
        found.new = now.values().map(Vec::len).sum();
        found
    }

    /// Whether both sets contain the same values, bit for bit.
    pub fn is_same(&self) -> bool {
        self.differing == 0 && self.missing == 0 && self.new == 0
    }
}

impl fmt::Display for Sameness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.first {
            None => write!(f, "{} values, bitwise equal", self.compared)?,
            Some(first) => write!(
                f,
                "{} of {} values differ (largest relative difference {}); the first: {first}",
                self.differing,
                self.compared,
                show(self.largest)
            )?,
        }
        if self.missing > 0 {
            write!(f, "; {} values of the record were not measured again", self.missing)?;
        }
        if self.new > 0 {
            write!(f, "; {} values are not on record", self.new)?;
        }
        Ok(())
    }
}

fn place(row: &Row) -> Place<'_> {
    let bits = |x: Option<f64>| x.map(f64::to_bits);
    let (x, y) = (bits(row.x), bits(row.y));
    (&row.group, &row.method, &row.signal, row.seed, &row.metric, x, y)
}

fn described(row: &Row) -> String {
    let mut text = format!("{}/{} {}", row.group, row.method, row.metric);
    if row.signal != "-" {
        text += &format!(" of {}", row.signal);
    }
    text += &format!(" seed {}", row.seed);
    text.extend(row.x.map(|x| format!(" at x = {}", show(x))));
    text.extend(row.y.map(|y| format!(", y = {}", show(y))));
    text
}
