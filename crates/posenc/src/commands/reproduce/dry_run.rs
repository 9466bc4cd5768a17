//! `--dry-run`: what would run, why, and for how long. On one screen unless `--verbose` is given.

use std::collections::BTreeSet;
use std::path::Path;

use posenc_experiments::plan::NO_SIGNAL;
use posenc_harness::machine;
use posenc_harness::options::Reproduce;
use posenc_harness::plan::{PlannedJob, lookup};
use posenc_harness::span::counted;
use posenc_harness::store::Store;
use posenc_harness::timings::{Estimate, Timings};

/// Number of lines of a screen.
const SCREEN: usize = 24;

/// What the lines of a plan are about, the finest first.
#[derive(Clone, Copy)]
enum Level {
    Unit,
    Method,
    Group,
    Item,
}

/// Units of a plan that have a name in common.
struct Line {
    name: String,
    units: usize,
    time: Estimate,
    reasons: BTreeSet<String>,
}

/// Prints a plan below `above` lines on the same screen.
pub fn print(
    planned: &[PlannedJob<'_>],
    store: &Store,
    options: &Reproduce,
    [record, out]: [&Path; 2],
    above: usize,
) {
    let again = options.again();
    let reasons: Vec<_> = planned.iter().map(|p| lookup(p, store, again, true)).collect();
    let jobs: Vec<PlannedJob<'_>> = planned
        .iter()
        .zip(&reasons)
        .map(|(p, own)| p.only(own.iter().map(|(unit, _)| unit.clone()).collect()))
        .collect();
    let timings = Timings::read(out, record, &jobs);
    let lines = |level: Level| {
        let mut lines: Vec<Line> = Vec::new();
        for (p, reasons) in jobs.iter().zip(&reasons) {
            let of_job = timings.estimate(p);
            let seconds = of_job.seconds / reasons.len().max(1) as f64;
            let time = Estimate { seconds, unknown: of_job.unknown.min(1) };
            for (unit, reason) in reasons {
                let name = name(level, p, &unit.signal);
                let reason = reason.to_string();
                match lines.last_mut().filter(|last| last.name == name) {
                    Some(last) => {
                        last.units += 1;
                        last.time = [last.time, time].into_iter().sum();
                        last.reasons.insert(reason);
                    }
                    None => {
                        let reasons = BTreeSet::from([reason]);
                        lines.push(Line { name, units: 1, time, reasons });
                    }
                }
            }
        }
        lines
    };
    // One line is for the sum.
    let most = SCREEN.saturating_sub(above + 1);
    let is_whole = options.verbose;
    let levels = [Level::Unit, Level::Method, Level::Group];
    let finest = levels.into_iter().map(lines).find(|all| is_whole || all.len() <= most);
    let mut shown = finest.unwrap_or_else(|| lines(Level::Item));
    if !is_whole && shown.len() > most {
        shown.sort_by(|a, b| b.time.seconds.total_cmp(&a.time.seconds));
        let rest = shown.split_off(most.saturating_sub(1));
        shown.iter().for_each(print_line);
        let units = rest.iter().map(|line| line.units).sum();
        let time: Estimate = rest.iter().map(|line| line.time).sum();
        println!(
            "and {} more items: {}, {time}; --verbose prints each unit",
            rest.len(),
            counted(units)
        );
    } else {
        shown.iter().for_each(print_line);
    }
    let total: usize = planned.iter().map(|p| p.to_run.len()).sum();
    let units: usize = jobs.iter().map(|p| p.to_run.len()).sum();
    let workers = options.jobs.map_or_else(machine::cores, usize::from);
    println!(
        "{units} of {total} units would run on {workers} workers, {}",
        timings.makespan(&jobs, workers)
    );
}

fn name(level: Level, planned: &PlannedJob<'_>, signal: &str) -> String {
    let job = &planned.job;
    let profile = job.recorded_profile;
    match level {
        Level::Unit => {
            let signal = if signal == NO_SIGNAL { "" } else { signal };
            format!("{} seed {} {signal} [{profile}]", job.path(), job.seed_index)
        }
        Level::Method => format!("{} [{profile}]", job.path()),
        Level::Group => format!("{}/{} [{profile}]", job.experiment.id(), job.group.id),
        Level::Item => job.experiment.id(),
    }
}

fn print_line(line: &Line) {
    let reasons: Vec<&str> = line.reasons.iter().map(String::as_str).take(2).collect();
    let more = if line.reasons.len() > 2 { ", …" } else { "" };
    let units = if line.units == 1 { String::new() } else { format!("{}, ", counted(line.units)) };
    println!("{}: {units}{}{more}, {}", line.name, reasons.join("; "), line.time);
}
