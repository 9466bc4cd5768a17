//! What a person sees while units run: bars on a terminal, one line per unit elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

/// Progress of a run, weighted by estimated cost so that the time left is not fooled by a few
/// long units among many short ones.
pub struct Progress {
    bar: Option<ProgressBar>,
    state: Mutex<State>,
    started: Instant,
    total_units: usize,
    total_cost: f64,
}

#[derive(Default)]
struct State {
    units: usize,
    cost: f64,
    failed: usize,
}

impl Progress {
    /// For so many units of so much estimated cost in all (seconds on one core).
    pub fn new(total_units: usize, total_cost: f64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(1000);
            // The template is fixed text; if it could not be parsed the default would serve.
            if let Ok(style) =
                ProgressStyle::with_template("{bar:40} {msg}").map(|s| s.progress_chars("=> "))
            {
                bar.set_style(style);
            }
            bar
        });
        Progress {
            bar,
            state: Mutex::default(),
            started: Instant::now(),
            total_units,
            total_cost: total_cost.max(1e-9),
        }
    }

    /// A unit ended, well or not.
    pub fn unit(&self, path: &str, signal: &str, seconds: f64, cost: f64, error: Option<&str>) {
        let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        state.units += 1;
        state.cost += cost;
        state.failed += usize::from(error.is_some());
        let share = (state.cost / self.total_cost).clamp(0.0, 1.0);
        let elapsed = self.started.elapsed().as_secs_f64();
        let left = elapsed * (1.0 - share) / share.max(1e-6);
        let name = if signal == posenc_experiments::plan::NO_SIGNAL {
            path.to_owned()
        } else {
            format!("{path} {signal}")
        };
        let line = match error {
            Some(error) => format!("failed {name}: {error}"),
            None => format!("[{}/{}] {name}: {seconds:.2} s", state.units, self.total_units),
        };
        match &self.bar {
            Some(bar) => {
                if error.is_some() {
                    bar.println(line);
                }
                bar.set_position((share * 1000.0) as u64);
                bar.set_message(format!(
                    "{}/{} units, {} left, last {name}",
                    state.units,
                    self.total_units,
                    duration(left)
                ));
            }
            None => eprintln!("{line}"),
        }
    }

    /// A line for the person who waits.
    pub fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    /// Clears the bar and says what was done.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if state.units > 0 {
            eprintln!(
                "{} units in {}{}",
                state.units,
                duration(self.started.elapsed().as_secs_f64()),
                match state.failed {
                    0 => String::new(),
                    n => format!(", {n} failed"),
                }
            );
        }
    }
}

/// A duration for people: `0.8 s`, `12 s`, `3 min 05 s`, `2 h 10 min`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..10 => format!("{seconds:.1} s"),
        10..120 => format!("{whole} s"),
        120..7200 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}
