//! Progress display: one line per finished item and, on a terminal, bars.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use posenc_experiments::plan::NO_SIGNAL;
use posenc_files::escaped;

use crate::span::{and_failed, counted, duration};
use crate::timings::Estimate;

/// Without a terminal, the remaining time is printed if nothing else was printed for this long.
const TELL_EVERY: Duration = Duration::from_secs(60);
const DRAW_EVERY: Duration = Duration::from_millis(250);
/// Maximum number of units in flight that have their own line.
const MOST_LINES: usize = 24;

pub struct Finished {
    pub seconds: f64,
    pub peak_memory: Option<u64>,
    pub values: usize,
    /// Training steps of this process since the previous unit.
    pub steps: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub total: usize,
    /// Units that have a record now.
    pub done: usize,
    pub failed: usize,
    /// Seconds of all units that have ended.
    pub seconds: f64,
}

impl Tally {
    /// Units that have neither run nor failed.
    pub fn left(&self) -> usize {
        self.total.saturating_sub(self.done + self.failed)
    }
}

/// A unit, or several computed together, in flight.
pub struct InFlight {
    pub name: String,
    pub elapsed: f64,
    /// Completed fraction of the job, if known.
    pub fraction: Option<f64>,
}

pub struct Progress {
    is_verbose: bool,
    screen: Option<Screen>,
    started: Instant,
    total: usize,
    done: usize,
    failed: usize,
    drawn: Instant,
}

struct Screen {
    all: MultiProgress,
    bar: ProgressBar,
    /// Styles of a running unit with and without a known fraction.
    styles: [ProgressStyle; 2],
    lines: Vec<ProgressBar>,
}

impl Screen {
    fn new(workers: usize) -> Self {
        let all = MultiProgress::new();
        // The templates are valid constants, so the fallback is never used.
        let style = |template: &str| {
            ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> ")
        };
        let line = |style: ProgressStyle| all.add(ProgressBar::new(1000).with_style(style));
        let styles = [style("  {bar:12} {wide_msg}"), style("  {wide_msg}")];
        let bar = line(style("{bar:30} {wide_msg}"));
        let [_, plain] = &styles;
        let lines = (0..workers.clamp(1, MOST_LINES)).map(|_| line(plain.clone())).collect();
        Screen { all, bar, styles, lines }
    }
}

/// `path signal`, or the path alone if there is only one signal.
pub fn named(path: &str, signal: &str) -> String {
    if signal == NO_SIGNAL { path.to_owned() } else { format!("{path} {signal}") }
}

impl Progress {
    /// For `total` units on `workers` workers.
    pub fn new(total: usize, workers: usize, is_verbose: bool) -> Self {
        let is_drawn = total > 0 && std::io::stderr().is_terminal();
        let now = Instant::now();
        Progress {
            is_verbose,
            screen: is_drawn.then(|| Screen::new(workers)),
            started: now,
            total,
            done: 0,
            failed: 0,
            drawn: now,
        }
    }

    /// Reports that the last unit of an item has ended. `finished` counts the finished items, `items` all items.
    pub fn item_finished(&mut self, item: &str, tally: &Tally, finished: usize, items: usize) {
        self.say(&format!(
            "[{finished}/{items}] {item}: {}{}, {}",
            counted(tally.done),
            and_failed(tally.failed),
            duration(tally.seconds)
        ));
        self.drawn = Instant::now();
    }

    /// Prints a line above the bars.
    pub fn say(&self, line: &str) {
        let draw = |screen: &Screen| screen.all.println(escaped(line)).is_ok();
        if !self.screen.as_ref().is_some_and(draw) {
            eprintln!("{line}");
        }
    }

    /// Prints details of a job that starts, with `--verbose` only.
    pub fn detail(&mut self, line: impl FnOnce() -> String) {
        if self.is_verbose {
            self.say(&line());
        }
    }

    /// Reports a unit that now has a record, with its name and key. `expected` is its estimated time in seconds; 0 if unknown.
    pub fn finished(&mut self, name: &str, key: &str, expected: f64, finished: &Finished) {
        self.done += 1;
        let Finished { seconds, peak_memory, values, steps } = *finished;
        if self.is_verbose {
            let memory = peak_memory.map(|bytes| format!(", peak memory {} MiB", bytes >> 20));
            let expected = match expected {
                0.0 => String::new(),
                _ => format!(", expected {}", duration(expected)),
            };
            self.say(&format!(
                "[{}/{}] {name}: {seconds:.2} s{expected}{}, {values} values, {steps} steps, key {key}",
                self.done + self.failed,
                self.total,
                memory.unwrap_or_default()
            ));
        }
    }

    pub fn failed(&mut self, name: &str, reason: &str) {
        self.failed += 1;
        self.say(&format!("failed: {name}: {reason}"));
    }

    /// Whether it is time for [`Progress::draw`].
    pub fn is_due(&self) -> bool {
        self.drawn.elapsed() >= if self.screen.is_some() { DRAW_EVERY } else { TELL_EVERY }
    }

    /// Shows the units in flight and the time left.
    pub fn draw(&mut self, in_flight: &[InFlight], left: Estimate) {
        self.drawn = Instant::now();
        let (ended, total) = (self.done + self.failed, self.total);
        let line = format!("{ended}/{total} units{}, left: {left}", and_failed(self.failed));
        let Some(screen) = &self.screen else {
            self.say(&line);
            return;
        };
        screen.bar.set_position((ended * 1000 / total.max(1)) as u64);
        screen.bar.set_message(line);
        let [with_bar, plain] = &screen.styles;
        for (place, bar) in screen.lines.iter().enumerate() {
            let unit = in_flight.get(place);
            let fraction = unit.and_then(|unit| unit.fraction);
            bar.set_style(if fraction.is_some() { with_bar } else { plain }.clone());
            bar.set_position((fraction.unwrap_or(0.0) * 1000.0) as u64);
            bar.set_message(unit.map_or_else(String::new, |unit| {
                let part = fraction.map(|f| format!(", {:.0} %", 100.0 * f));
                let name = escaped(&unit.name);
                format!("{name}: {}{}", duration(unit.elapsed), part.unwrap_or_default())
            }));
        }
    }

    /// Clears the bars and prints a summary.
    pub fn finish(&mut self) {
        if let Some(screen) = self.screen.take() {
            let _ = screen.all.clear();
        }
        let units = self.done + self.failed;
        if units > 0 {
            eprintln!(
                "{} in {}{}",
                counted(units),
                duration(self.started.elapsed().as_secs_f64()),
                and_failed(self.failed)
            );
        }
    }
}
