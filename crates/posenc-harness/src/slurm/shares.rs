//! Splits a plan into shares, and finds a share in the plan of a node.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use posenc_experiments::plan::Job;
use posenc_experiments::record::KeyParts;

use super::files::{FORMAT, Share, SharedJob};
use crate::plan::PlannedJob;
use crate::timings::Timings;
use crate::unit::Unit;

/// Minimum estimated seconds per task without `--array-size`. Starting a task takes a few seconds.
const WORTH_A_TASK: f64 = 60.0;
/// Maximum number of tasks without `--array-size`.
const MOST_TASKS: usize = 16;

pub struct Shares<'a> {
    /// Work of each task of the array.
    pub tasks: Vec<Vec<PlannedJob<'a>>>,
    /// Jobs that measure time. They run one after another on one exclusive node, because their times are compared with each other.
    pub clock: Vec<PlannedJob<'a>>,
}

/// Splits work into at most `tasks` shares of about equal cost: assigns the most expensive job first, each to the share with
/// the least work. Jobs are not split, because their units share an embedding and a checkpoint.
pub fn split<'a>(work: Vec<PlannedJob<'a>>, timings: &Timings, tasks: Option<usize>) -> Shares<'a> {
    let (clock, together): (Vec<_>, Vec<_>) =
        work.into_iter().partition(|w| w.job.protocol().kind().measures_time);
    let mut together: Vec<(f64, PlannedJob<'_>)> =
        together.into_iter().map(|job| (timings.seconds(&job), job)).collect();
    together.sort_by(|a, b| b.0.total_cmp(&a.0));
    let total: f64 = together.iter().map(|(seconds, _)| seconds).sum();
    let wanted = tasks.unwrap_or(((total / WORTH_A_TASK).ceil() as usize).clamp(1, MOST_TASKS));
    let mut shares: Vec<(f64, Vec<PlannedJob<'_>>)> = Vec::new();
    shares.resize_with(wanted.min(together.len()), || (0.0, Vec::new()));
    for (seconds, work) in together {
        if let Some((sum, share)) = shares.iter_mut().min_by(|a, b| a.0.total_cmp(&b.0)) {
            // A minimum cost keeps a thousand free jobs from all going to one share.
            *sum += seconds.max(1e-3);
            share.push(work);
        }
    }
    Shares { tasks: shares.into_iter().map(|(_, share)| share).collect(), clock }
}

/// A share in its file format.
pub fn written(work: &[PlannedJob<'_>], timings: &Timings) -> Share {
    let of = |w: &PlannedJob<'_>| {
        let first = w.to_run.first()?;
        Some(SharedJob {
            path: w.job.path(),
            repetition: w.job.seed_index,
            parts: first.parts.clone(),
            units: w.to_run.iter().map(|u| (u.signal.clone(), u.parts.key())).collect(),
        })
    };
    Share {
        format: FORMAT,
        seconds: work.iter().map(|w| timings.seconds(w)).sum(),
        jobs: work.iter().filter_map(of).collect(),
    }
}

/// Keeps only the jobs that a share runs.
pub fn only<'a>(jobs: Vec<Job<'a>>, share: &Share) -> Vec<Job<'a>> {
    let is_shared = |job: &Job<'_>| {
        let path = job.path();
        share.jobs.iter().any(|s| s.repetition == job.seed_index && s.path == path)
    };
    jobs.into_iter().filter(is_shared).collect()
}

/// The units of a share, in the plan of this machine.
///
/// # Errors
///
/// A unit is missing or has another key on this machine, because its code, experiments or data differ from the submitter's.
pub fn found<'a>(
    share: &Share,
    planned: Vec<PlannedJob<'a>>,
    node: &str,
) -> Result<Vec<PlannedJob<'a>>> {
    ensure!(share.format == FORMAT, "the share is of format {}, not {FORMAT}", share.format);
    let mut plan: BTreeMap<(String, u64), PlannedJob<'a>> =
        planned.into_iter().map(|p| ((p.job.path(), p.job.seed_index), p)).collect();
    let mut all = Vec::new();
    for shared in &share.jobs {
        let path = &shared.path;
        let mut planned = plan.remove(&(path.clone(), shared.repetition)).with_context(|| {
            format!("{path} is not in the plan of {node}: experiments or data differ from the submitter's")
        })?;
        for (signal, key) in &shared.units {
            let Some(unit) = planned.units.iter().find(|u| u.signal == *signal) else {
                bail!(
                    "{path} {signal} is not in the plan of {node}: its data differ from the submitter's"
                );
            };
            if unit.parts.key() != *key {
                bail!("{path} {signal} has another key on {node}: {}", differences(shared, unit));
            }
        }
        planned.to_run.retain(|unit| shared.units.contains_key(&unit.signal));
        all.push(planned);
    }
    Ok(all)
}

/// How a unit of this machine differs from the submitter's.
fn differences(shared: &SharedJob, unit: &Unit) -> String {
    let submitted = KeyParts { identity: unit.parts.identity.clone(), ..shared.parts.clone() };
    let own = |name: &str| match name {
        "specification" => "the experiment's settings differ (experiments/)",
        "data" => "the data differ (--data, the manifest)",
        "device" => "the node trains on another class of device (--device, --gres)",
        "revision" => "the code differs (rebuild, submit again)",
        _ => "the seed differs",
    };
    let names = unit.parts.differences(&submitted);
    if names.is_empty() {
        return "the unit names differ".to_owned();
    }
    names.into_iter().map(own).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> KeyParts {
        KeyParts {
            identity: "g.m.a.seed=0".into(),
            specification: "s".into(),
            data: "d".into(),
            device: "cpu".into(),
            seed: 0,
            revisions: "1".into(),
        }
    }

    /// Catches a refused share whose message names another cause, such as the seed if the code differs.
    #[test]
    fn each_difference_is_named() {
        let path = "paper/item/g/m".to_owned();
        let shared = SharedJob { path, repetition: 0, parts: parts(), units: BTreeMap::new() };
        let named = |parts: KeyParts| {
            let (signal, data) = ("a".to_owned(), "d".to_owned());
            differences(&shared, &Unit { signal, signal_index: 0, parts, data })
        };
        for (own, part) in [
            (KeyParts { specification: "other".into(), ..parts() }, "settings differ"),
            (KeyParts { data: "other".into(), ..parts() }, "data differ"),
            (KeyParts { device: "gpu".into(), ..parts() }, "class of device"),
            (KeyParts { seed: 1, ..parts() }, "seed differs"),
            (KeyParts { revisions: "2".into(), ..parts() }, "code differs"),
            (parts(), "unit names differ"),
        ] {
            let text = named(own);
            assert!(text.contains(part) && !text.contains(';'), "{part}: {text}");
        }
    }
}
