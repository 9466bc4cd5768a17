//! The report during a run: first after ten items or a minute, then after each item that finishes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use posenc_experiments::Catalog;
use posenc_experiments::verdict::{Evidence, Verdict};
use posenc_harness::executor::{Feed, FinishedItem};
use posenc_harness::run_env::ResultInputs;
use posenc_harness::span::counted;

use super::results::{self, Verdicts};

/// The first report is written after this time at the latest.
const FIRST: Duration = Duration::from_secs(60);
/// The first report is written earlier if this many items have finished.
const FIRST_ITEMS: usize = 10;
const INTERVAL: Duration = Duration::from_secs(20);
/// Writing reports takes at most 1/`SHARE` of the time.
const SHARE: u32 = 20;

pub struct Reporter<'a> {
    inputs: ResultInputs<'a>,
    units: usize,
    /// Units that wait for attention models, by item.
    waiting: BTreeMap<String, usize>,
    /// The page that the run is about.
    page: PathBuf,
    finished: Receiver<FinishedItem>,
    lines: Sender<String>,
}

impl<'a> Reporter<'a> {
    pub fn new(
        inputs: ResultInputs<'a>,
        units: usize,
        waiting: BTreeMap<String, usize>,
        page: PathBuf,
    ) -> (Feed, Self) {
        let (items, finished) = channel();
        let (lines, printed) = channel();
        let reporter = Reporter { inputs, units, waiting, page, finished, lines };
        (Feed { finished: items, lines: printed }, reporter)
    }

    /// Writes reports until the run closes its end of the channel. Returns the items that finished after the last report; the final report
    /// tells about them.
    pub fn run(self) -> Vec<FinishedItem> {
        let mut next = Instant::now() + FIRST;
        let mut is_first = true;
        let mut finished: Vec<FinishedItem> = Vec::new();
        loop {
            let item =
                match self.finished.recv_timeout(next.saturating_duration_since(Instant::now())) {
                    // Nothing new to report: waits for the next item.
                    Err(RecvTimeoutError::Timeout) if finished.is_empty() && !is_first => {
                        self.finished.recv().map_err(RecvTimeoutError::from)
                    }
                    other => other,
                };
            match item {
                Ok(item) => finished.push(item),
                Err(RecvTimeoutError::Disconnected) => return finished,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() < next && !(is_first && finished.len() >= FIRST_ITEMS) {
                continue;
            }
            let began = Instant::now();
            if self.write(&finished, is_first) {
                finished.clear();
            }
            is_first = false;
            next = Instant::now() + INTERVAL.max(began.elapsed().saturating_mul(SHARE));
        }
    }

    /// Writes a report. Returns whether the run still took the lines about the finished items.
    fn write(&self, finished: &[FinishedItem], is_first: bool) -> bool {
        let Reporter { inputs, units, waiting, page, .. } = self;
        let left = match finished.last() {
            Some(FinishedItem { left, time, .. }) => {
                format!("{left} of {units} units are left ({time})")
            }
            None => format!("{} to run", counted(*units)),
        };
        let notice = format!("This run is not finished: {left}. Reload this page later.");
        // A failed interim report is no failure of the run; the final report will return the error.
        let items = finished.iter().map(|finished| finished.item.clone()).collect();
        let Ok(verdicts) = results::write(inputs, Some(&notice), Some(&items)) else {
            return false;
        };
        let mut lines: Vec<String> = finished
            .iter()
            .map(|f| line(inputs.plans.catalog, &f.item, &verdicts, waiting))
            .collect();
        if is_first {
            lines.push(format!("report so far: {}", page.display()));
        }
        lines.into_iter().all(|line| self.lines.send(line).is_ok())
    }
}

/// A line with an item's number of claims per verdict, by class of evidence.
pub fn line(
    catalog: &Catalog,
    item: &str,
    verdicts: &Verdicts,
    waiting: &BTreeMap<String, usize>,
) -> String {
    if let Some(units) = waiting.get(item) {
        return format!("{item}: waits for attention models ({})", counted(*units));
    }
    let experiment = catalog.experiments.iter().find(|e| e.id() == item);
    let of = experiment.and_then(|e| verdicts.get(&(e.paper.clone(), e.item.clone())));
    let mut classes: BTreeMap<Option<Evidence>, BTreeMap<Verdict, usize>> = BTreeMap::new();
    for one in of.into_iter().flatten() {
        *classes.entry(one.evidence).or_default().entry(one.verdict).or_default() += 1;
    }
    // Claims that were not run come last.
    let classes = Evidence::ALL.iter().copied().map(Some).chain([None]).filter_map(|class| {
        let counts = classes.get(&class)?;
        let each: Vec<String> =
            counts.iter().map(|(verdict, n)| format!("{n} {}", verdict.name())).collect();
        Some(match class {
            Some(class) => format!("{}: {}", class.name(), each.join(", ")),
            None => format!("claims: {}", each.join(", ")),
        })
    });
    match classes.collect::<Vec<_>>().as_slice() {
        [] => format!("{item}: finished"),
        each => format!("{item}: {}", each.join("; ")),
    }
}
