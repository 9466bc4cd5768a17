//! Summary before a run: one screen, or every detail with `--verbose`.

use anyhow::Result;
use posenc_data::{Origin, VIDEO_CURE};
use posenc_experiments::plan::Job;
use posenc_experiments::selector::Selectors;
use posenc_experiments::{Catalog, Profile};

use posenc_harness::data::DataSets;
use posenc_harness::device::{CPU, Devices};
use posenc_harness::options::Reproduce;
use posenc_harness::plan::{PlannedJob, readers};
use posenc_harness::protocol::{self, Placement};
use posenc_harness::timings::Estimate;

use super::second_build::is_second;

/// Maximum number of data sets to list.
const MAX_SETS: usize = 8;

/// Notices about a plan: groups that do not run, and the data in use.
pub struct Notices {
    profile: Profile,
    refused: usize,
    sets: Vec<SetLine>,
    details: Vec<String>,
}

struct SetLine {
    name: String,
    status: &'static str,
    effect: String,
}

pub struct Size {
    pub units: usize,
    /// Units that wait for attention models.
    pub waiting: usize,
    pub total: usize,
    pub workers: usize,
    /// Estimated time of the units to run.
    pub time: Estimate,
}

impl Notices {
    /// Collects the notices about the groups and data sets of a plan.
    pub fn of(
        catalog: &Catalog,
        selectors: &Selectors,
        profile: Profile,
        selected: &[Job<'_>],
        data: &DataSets,
    ) -> Result<Self> {
        let mut details = Vec::new();
        let groups = catalog.experiments.iter().flat_map(|e| e.groups.iter().map(move |g| (e, g)));
        for (experiment, group) in groups {
            let is_selected = selectors.matches_group(experiment, group);
            if let Some(reason) = group.refused(profile).filter(|_| is_selected) {
                let (id, group, reason) = (experiment.id(), &group.id, reason.trim());
                details.push(format!("not run at `{profile}`: {id}/{group}: {reason}"));
            }
        }
        let mut notices = Notices { profile, refused: details.len(), sets: Vec::new(), details };
        notices.add_data_sets(selected, data)?;
        Ok(notices)
    }

    fn add_data_sets(&mut self, selected: &[Job<'_>], data: &DataSets) -> Result<()> {
        let mut seen = Vec::new();
        for set in selected.iter().filter_map(|j| j.group.data.as_ref()) {
            if seen.contains(&&set.set) {
                continue;
            }
            seen.push(&set.set);
            let mut line = |status, effect| {
                self.sets.push(SetLine { name: set.set.clone(), status, effect });
            };
            let (label, origin, warnings) = match data.files(&set.set)? {
                Some(files) => match &files.found {
                    Ok(found) => (found.label.clone(), found.origin, found.warnings.clone()),
                    Err(absence) => {
                        let groups = readers(selected, &set.set);
                        line("missing", format!("{} not run", counted_groups(groups.len())));
                        self.details.push(format!("not run: {}: {absence}", groups.join(", ")));
                        continue;
                    }
                },
                None => {
                    let identity = data.identity(&set.set)?;
                    (identity.label.clone(), identity.origin, identity.warnings.clone())
                }
            };
            for image in warnings.iter().filter_map(|warning| warning.strip_prefix("skipped: ")) {
                line("skipped", image.to_owned());
            }
            let labeled = format!("labeled {label}");
            match origin {
                Origin::Published => line("found", "the data of the manifest".to_owned()),
                Origin::Substitute => line("substitute", labeled),
                Origin::Other => line("other data", labeled),
                Origin::User if label.starts_with("unverified:") => line("unverified", labeled),
                Origin::User => line("your data", labeled),
                // A set that is always generated needs no notice.
                Origin::Embedded if warnings.is_empty() => {}
                Origin::Embedded if warnings.iter().any(|w| w.contains(VIDEO_CURE)) => {
                    line("unread", format!("{labeled}; {VIDEO_CURE}"));
                }
                Origin::Embedded => line("missing", format!("synthetic data ({label})")),
            }
            self.details.extend(warnings.iter().map(|warning| format!("note: {warning}")));
        }
        Ok(())
    }

    /// Prints a table of data sets, or every detail; returns the number of lines.
    pub fn print(&self, is_detailed: bool) -> usize {
        let lines = if is_detailed { self.details.clone() } else { self.lines() };
        lines.iter().for_each(|line| eprintln!("{line}"));
        lines.len()
    }

    fn lines(&self) -> Vec<String> {
        let width = self.sets.iter().map(|set| set.name.len()).max().unwrap_or(0);
        let line = |SetLine { name, status, effect }: &SetLine| {
            format!("  {name:width$}  {status:10}  {effect}")
        };
        let mut lines: Vec<String> = self.sets.iter().take(MAX_SETS).map(line).collect();
        let more = self.sets.len() - lines.len();
        lines.extend((more > 0).then(|| format!("  and {more} more data sets")));
        if self.sets.iter().any(|set| set.status == "missing") {
            let cure = "`cargo xtask data fetch` (`data list` describes them)";
            lines.push(format!("get missing data sets with {cure}"));
        }
        if self.refused > 0 {
            let do_not = if self.refused == 1 { "does not" } else { "do not" };
            lines.push(format!(
                "{} {do_not} run at profile {}; --verbose prints the reasons",
                counted_groups(self.refused),
                self.profile
            ));
        }
        lines
    }

    pub fn start(
        &self,
        size: &Size,
        options: &Reproduce,
        work: &[PlannedJob<'_>],
        devices: &Devices,
    ) {
        let &Size { units, waiting, total, workers, time } = size;
        if !is_second() {
            let is_gpu = work.iter().any(|w| w.to_run.iter().any(|unit| unit.parts.device != CPU));
            let device = if is_gpu { devices.header() } else { "the CPU".to_owned() };
            let version = env!("CARGO_PKG_VERSION");
            eprintln!("posenc {version}: training on {device}; up to {workers} units at a time");
            // If nothing can run, the reasons are printed.
            self.print(options.verbose || total == 0);
        }
        let time = match units {
            0 => String::new(),
            _ => format!(", {time}"),
        };
        let wait = match waiting {
            0 => String::new(),
            1 => ", 1 waits for attention models".to_owned(),
            _ => format!(", {waiting} wait for attention models"),
        };
        eprintln!(
            "profile {}: {units} of {total} units to run, {} on record{wait}{time}",
            self.profile,
            total - units - waiting
        );
        if devices.training() != CPU
            && work
                .iter()
                .any(|w| protocol::placement(w.job.protocol()) == Placement::CpuInThisBuild)
        {
            eprintln!(
                "note: attention models train on the CPU in this build; set POSENC_WGPU=attention to build them for \
                 wgpu, too"
            );
        }
    }
}

fn counted_groups(groups: usize) -> String {
    format!("{groups} group{}", if groups == 1 { "" } else { "s" })
}
