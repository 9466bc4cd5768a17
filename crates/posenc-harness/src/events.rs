//! What a run does, for programs: one JSON object per line, each written as it happens. FORMAT.md lists the fields.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::ser::Formatter;

/// A unit, by what a program can find it by.
#[derive(Debug, Clone, Serialize)]
pub struct UnitName {
    /// `paper/item/group/method`.
    pub path: String,
    /// Signal; `-` without data.
    pub signal: String,
    /// Repetition, from 0.
    pub repetition: u64,
    /// Key, in hexadecimal.
    pub key: String,
}

/// A claim whose verdict is another than before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedVerdict {
    /// `paper/item`.
    pub item: String,
    /// The claim's id.
    pub claim: String,
    /// Verdict before.
    pub before: &'static str,
    /// Verdict after.
    pub after: &'static str,
}

/// Something that happened.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event<'a> {
    /// The first line.
    RunStarted {
        /// Version of posenc.
        version: &'a str,
        /// Profile that was asked for.
        profile: &'a str,
        /// Seed of the run.
        seed: u64,
        /// Units that have no record.
        units: usize,
        /// Units that run at a time.
        workers: usize,
        /// How long all of them take, as far as is known.
        estimated_seconds: f64,
    },
    /// A unit begins; units that are computed together begin together.
    UnitStarted {
        /// Which.
        #[serde(flatten)]
        unit: &'a UnitName,
    },
    /// A unit has a record on disk.
    UnitFinished {
        /// Which.
        #[serde(flatten)]
        unit: &'a UnitName,
        /// Seconds that it took.
        seconds: f64,
        /// How many numbers it gave.
        values: usize,
        /// Training steps of this process since the unit before of the same job; steps of killed runs are not among them.
        steps: u64,
        /// What its table or plot shows first.
        metric: Option<&'a str>,
        /// The mean of these numbers; null where it is none.
        value: Option<f64>,
        /// In what it is measured; empty for pure numbers.
        value_unit: &'a str,
    },
    /// A unit has none.
    UnitFailed {
        /// Which.
        #[serde(flatten)]
        unit: &'a UnitName,
        /// Seconds until it failed.
        seconds: f64,
        /// Why.
        reason: &'a str,
    },
    /// A line for people.
    Note {
        /// The line.
        text: &'a str,
    },
    /// How far the run is: after each unit, at most once a second.
    Progress {
        /// Units done.
        done: usize,
        /// Units of the run.
        total: usize,
        /// Seconds until all are done, as far as is known.
        seconds_left: f64,
    },
    /// The last line.
    RunFinished {
        /// Units that have a record now.
        units: usize,
        /// Units that failed.
        failed: usize,
        /// Units that did not run: the budget or an interruption left them out.
        left: usize,
        /// Seconds of the run.
        seconds: f64,
        /// `SIGINT` or `SIGTERM`, if one ended the run.
        interrupted: Option<&'a str>,
        /// Claims whose verdicts are others than before.
        verdicts: &'a [ChangedVerdict],
        /// The first page of this machine's report.
        report: String,
    },
}

/// A line: the event, and when.
#[derive(Serialize)]
struct Line<'a> {
    /// Seconds since the run began.
    at: f64,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

/// Where events go.
pub struct Events {
    file: Option<Box<dyn Write + Send>>,
    started: Instant,
}

impl Events {
    /// Nowhere.
    pub fn none() -> Self {
        Events { file: None, started: Instant::now() }
    }

    /// Into a new file, or to the standard output for `-`.
    ///
    /// # Errors
    ///
    /// A file that cannot be created.
    pub fn open(path: &Path) -> Result<Self> {
        let file: Box<dyn Write + Send> = if path == Path::new("-") {
            Box::new(std::io::stdout())
        } else {
            let file = File::create(path)
                .with_context(|| format!("--events {} cannot be written", path.display()))?;
            Box::new(file)
        };
        Ok(Events { file: Some(file), started: Instant::now() })
    }

    /// Writes a line. The first one that cannot be written is the last that is tried; its error is for a warning.
    pub fn write(&mut self, event: &Event<'_>) -> Option<std::io::Error> {
        let file = self.file.as_mut()?;
        let line = Line { at: millis(self.started.elapsed().as_secs_f64()), event };
        // At once, so that a line is whole unless the disk or the process ends within it.
        let written = json(&line).and_then(|mut bytes| {
            bytes.push(b'\n');
            file.write_all(&bytes)?;
            file.flush()
        });
        if written.is_err() {
            self.file = None;
        }
        written.err()
    }
}

/// JSON in which hidden characters have their codes, so that events can be printed; a program reads the same text.
fn json(value: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, Escaping))?;
    Ok(bytes)
}

struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> std::io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| posenc_text::is_hidden(*c)) {
            let (plain, behind) = rest.split_at(at);
            writer.write_all(plain.as_bytes())?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = behind.get(c.len_utf8()..).unwrap_or_default();
        }
        writer.write_all(rest.as_bytes())
    }
}

/// Seconds to the millisecond: what is behind it says nothing.
pub fn millis(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches an event that changes a terminal, and one that a program reads otherwise.
    #[test]
    fn events_hold_no_hidden_characters() {
        let text = "a\u{9b}2J\u{7f}\u{202e}\u{2028}\u{e0041}é\n\u{1b}";
        let bytes = json(&Event::Note { text }).unwrap();
        let line = String::from_utf8(bytes).unwrap();
        assert!(!line.contains(posenc_text::is_hidden), "{line:?}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["text"], text);
    }
}
