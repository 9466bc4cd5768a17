//! Events of a run for programs: one JSON object per line, written as they happen. FORMAT.md lists the fields.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::ser::Formatter;

/// Identifies a unit.
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

/// A claim whose verdict changed during the run.
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

/// An event of a run.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event<'a> {
    /// The first line.
    RunStarted {
        /// Version of posenc.
        version: &'a str,
        /// Requested profile.
        profile: &'a str,
        /// Seed of the run.
        seed: u64,
        /// Units without a record.
        units: usize,
        /// Number of units that run at a time.
        workers: usize,
        /// Estimated seconds until all of these units are done.
        estimated_seconds: f64,
    },
    /// A unit starts; units that are computed together start together.
    UnitStarted {
        /// The unit.
        #[serde(flatten)]
        unit: &'a UnitName,
    },
    /// A unit has a record on disk.
    UnitFinished {
        /// The unit.
        #[serde(flatten)]
        unit: &'a UnitName,
        /// Seconds that the unit took.
        seconds: f64,
        /// Number of recorded values.
        values: usize,
        /// Training steps of this process since the previous unit of the same job, without steps of killed runs.
        steps: u64,
        /// Metric that the unit's table or plot shows first.
        metric: Option<&'a str>,
        /// Mean of the metric's values; null if it is not finite.
        value: Option<f64>,
        /// Unit of measurement; empty for dimensionless values.
        value_unit: &'a str,
    },
    /// A unit failed.
    UnitFailed {
        /// The unit.
        #[serde(flatten)]
        unit: &'a UnitName,
        /// Seconds until it failed.
        seconds: f64,
        /// Reason of the failure.
        reason: &'a str,
    },
    /// A line for people.
    Note {
        /// The line.
        text: &'a str,
    },
    /// Progress of the run, after each unit but at most once a second.
    Progress {
        /// Units done.
        done: usize,
        /// Units of the run.
        total: usize,
        /// Estimated seconds until all units are done.
        seconds_left: f64,
    },
    /// The last line.
    RunFinished {
        /// Units that have a record now.
        units: usize,
        /// Units that failed.
        failed: usize,
        /// Units that did not run because of the budget or an interrupt.
        left: usize,
        /// Seconds of the run.
        seconds: f64,
        /// `SIGINT` or `SIGTERM`, if one ended the run.
        interrupted: Option<&'a str>,
        /// Claims whose verdicts changed.
        verdicts: &'a [ChangedVerdict],
        /// The first page of this machine's report.
        report: String,
    },
}

/// A line of output: an event with its time.
#[derive(Serialize)]
struct Line<'a> {
    /// Seconds since the run began.
    at: f64,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

/// Writer of events.
pub struct Events {
    file: Option<Box<dyn Write + Send>>,
    started: Instant,
}

impl Events {
    /// Discards all events.
    pub fn none() -> Self {
        Events { file: None, started: Instant::now() }
    }

    /// Writes events to a new file, or to standard output if the path is `-`.
    ///
    /// # Errors
    ///
    /// The file cannot be created.
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

    /// Writes an event as a line. After the first error no further events are written; the error is returned once, for a warning.
    pub fn write(&mut self, event: &Event<'_>) -> Option<std::io::Error> {
        let file = self.file.as_mut()?;
        let line = Line { at: millis(self.started.elapsed().as_secs_f64()), event };
        // Writes the line at once, so that it is complete unless the disk is full or the process is killed.
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

/// Serializes to JSON with hidden characters escaped, so that events can be printed safely. Parsers read the same text.
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
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| posenc_files::is_hidden(*c)) {
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

/// Rounds seconds to milliseconds; further digits are not meaningful.
pub fn millis(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches control characters of an event that reach the terminal, and escapes that change the parsed text.
    #[test]
    fn events_hold_no_hidden_characters() {
        let text = "a\u{9b}2J\u{7f}\u{202e}\u{2028}\u{e0041}é\n\u{1b}";
        let bytes = json(&Event::Note { text }).unwrap();
        let line = String::from_utf8(bytes).unwrap();
        assert!(!line.contains(posenc_files::is_hidden), "{line:?}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["text"], text);
    }
}
