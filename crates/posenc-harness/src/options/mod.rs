//! The options of `reproduce`.

mod places;
mod share;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use posenc_experiments::selector::Selectors;
use posenc_experiments::yaml::nearest;
use posenc_experiments::{Catalog, Kinds, Profile};

use crate::device::Request;
use crate::memory::Bytes;
use crate::repository::Repository;
use crate::span::Span;

pub use places::Places;
pub use share::Share;

/// Location of the data.
#[derive(Args, Clone)]
pub struct DataOptions {
    /// Data directory. Default: $POSENC_DATA, or else data/ in the repository.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Use a folder of your own images instead of an image set, such as div2k-test=~/photos.
    #[arg(long, value_name = "SET=DIR")]
    pub images: Vec<String>,
}

/// Experiments outside the repository.
#[derive(Args, Clone)]
pub struct IncludeOptions {
    /// Also use the experiments in this folder, which contains a paper.yaml (`cargo xtask new paper` makes one). Can be repeated.
    #[arg(long, value_name = "DIR")]
    pub include: Vec<PathBuf>,
}

/// `reproduce`.
#[derive(Args)]
pub struct Reproduce {
    /// Globs on paper/item/group/method, such as trading/table1/closed-form. Default: all.
    pub selectors: Vec<String>,
    /// How much of the published protocol runs: smoke (a minute), quick (5 to 13 minutes), long (hours) or paper (all).
    #[arg(long, default_value = "quick")]
    pub profile: Profile,
    #[command(flatten)]
    pub data: DataOptions,
    #[command(flatten)]
    pub include: IncludeOptions,
    /// Directory for records and the report. Default: out/.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Device for training: auto (a GPU if available, else the CPU), cpu, wgpu, or wgpu:NAME.
    #[arg(long, value_name = "DEVICE", default_value = "auto", env = "POSENC_DEVICE")]
    pub device: Request,
    /// Number of units that run at a time. Default: the number of cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Seed of every random stream.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Run only the signals (images, clips, lines) with these places in their data set, such as 4 or 0..8, which ends before 8.
    /// With --record, the results join those of other signals that the reference has.
    #[arg(long, value_name = "PLACES")]
    pub signals: Option<Places>,
    /// Print the plan without running it.
    #[arg(long)]
    pub dry_run: bool,
    /// Also run units that already have a record.
    #[arg(long)]
    pub force: bool,
    /// Start nothing that would exceed this time, such as 2h or 1h30m. Selectors run in the order given; for each, the shortest units run
    /// first and those of unknown time last. Trainings stop at the end and keep their progress.
    #[arg(long, value_name = "TIME", conflicts_with = "dry_run")]
    pub budget: Option<Span>,
    /// Memory limit for all units together, such as 8GiB. Default: what the machine, its container and `ulimit` allow.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Bytes>,
    /// Print every note, and for each unit its key, the reason to run it, its estimate, its time and its training steps.
    #[arg(long, short)]
    pub verbose: bool,
    /// Copy the records of this run into report/record unless the records there are better. Units that ran with uncommitted changes run
    /// again.
    #[arg(long, conflicts_with = "include")]
    pub record: bool,
    /// With --record: accept uncommitted changes. The report marks such records.
    #[arg(long, requires = "record")]
    pub allow_dirty: bool,
    /// Run only this share of the plan's jobs, such as 3/8 for the third of eight, and write no report. Shares may run at the
    /// same time, also on several machines with a common --out; afterwards, a run without --share writes the report.
    #[arg(long, value_name = "I/N", conflicts_with_all = ["record"])]
    pub share: Option<Share>,
    /// Submit an array of this many jobs to Slurm, each with a share of the plan, and a job that then runs what is left and
    /// writes the report (docs/SLURM.md). Without --device, they use the CPU.
    #[arg(long, value_name = "N", conflicts_with_all = ["share", "force"],
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub slurm: Option<u16>,
    /// Slurm: pass an option to sbatch, such as --sbatch-arg=--cpus-per-task=8. Can be repeated.
    #[arg(long = "sbatch-arg", value_name = "OPTION", requires = "slurm", allow_hyphen_values = true,
          value_parser = share::sbatch_option)]
    pub sbatch_args: Vec<String>,
    /// Internal: checksum of the plan of the process that submitted this one.
    #[arg(long, value_name = "CHECKSUM", hide = true)]
    pub plan: Option<String>,
}

/// Which units run again although they have a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    None,
    /// Those that ran with uncommitted changes.
    Uncommitted,
    All,
}

impl Reproduce {
    /// Which units run again although they have a record.
    pub fn again(&self) -> Again {
        match self {
            Reproduce { force: true, .. } => Again::All,
            Reproduce { record: true, allow_dirty: false, .. } => Again::Uncommitted,
            _ => Again::None,
        }
    }
}

/// Reads the catalog without what has an error, and prints these errors.
pub fn usable_catalog(
    repository: &Repository,
    include: &[PathBuf],
    kinds: Kinds,
) -> Result<Catalog> {
    let catalog = Catalog::usable(repository.root(), include, kinds)?;
    catalog
        .broken
        .iter()
        .for_each(|error| eprintln!("error: {error}; left out with what needs it"));
    Ok(catalog)
}

/// Parses selectors and refuses those that select nothing: a typo must not look like success.
pub fn parse_selectors(catalog: &Catalog, texts: &[String]) -> Result<Selectors> {
    let selectors = Selectors::parse(texts).map_err(anyhow::Error::msg)?;
    let groups = catalog.experiments.iter().flat_map(|e| e.groups.iter().map(move |g| (e, g)));
    let all: Vec<(&str, &str, &str, &str)> = groups
        .flat_map(|(e, g)| g.variants.iter().map(|v| (&*e.paper, &*e.item, &*g.id, &*v.id)))
        .collect();
    if let Some(first) = selectors.unmatched(&all).first() {
        if catalog.experiments.iter().any(|e| e.id() == *first) {
            bail!("`{first}` only shows records of other items; there is nothing to run");
        }
        let all: Vec<[&str; 4]> = all.iter().map(|(p, i, g, m)| [*p, *i, *g, *m]).collect();
        let hint = correction(first, &all).map(|c| format!(" Did you mean {c}?"));
        let among = if catalog.broken.is_empty() { "" } else { " in files without errors" };
        bail!(
            "selector `{first}` selects nothing{among}.{} `cargo xtask list` shows all.",
            hint.unwrap_or_default()
        );
    }
    Ok(selectors)
}

/// The selector with its first wrong part replaced by the nearest name of that kind, or the path of an item, a group or a method with the
/// name of the selector or a similar one. `all` has the path of each method.
fn correction(selector: &str, all: &[[&str; 4]]) -> Option<String> {
    let named = |name: &str| {
        let mut paths = all.iter().flat_map(|path| (1..=4).map(|end| path[..end].join("/")));
        paths.find(|path| path.ends_with(&format!("/{name}")))
    };
    if let Some(path) = named(selector) {
        return Some(path);
    }
    let mut parts: Vec<&str> = selector.splitn(4, '/').collect();
    let mut left: Vec<&[&str; 4]> = all.iter().collect();
    for kind in 0..parts.len() {
        let start = Selectors::parse(&[parts[..=kind].join("/")]).ok()?;
        let (right, wrong): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|[p, i, g, m]| start.matches(p, i, g, m));
        left = right;
        if left.is_empty() {
            let Some(name) = nearest(parts[kind], wrong.iter().map(|path| path[kind])) else {
                return named(nearest(selector, all.iter().flatten().copied())?);
            };
            parts[kind] = name;
            return Some(parts.join("/"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a selector without a hint although it is nearly right, or lacks the start of a path.
    #[test]
    fn a_wrong_selector_is_corrected() {
        let all = [
            ["trading", "table1", "closed-form", "Gau"],
            ["trading", "table1", "simple", "LinF"],
            ["rethinking", "fig3", "rank", "Gau/2"],
        ];
        for (wrong, corrected) in [
            ("tradign", "trading"),
            ("trading/tabel1", "trading/table1"),
            ("tradign/table1/simple", "trading/table1/simple"),
            ("trading/table1/close-form", "trading/table1/closed-form"),
            ("trading/*/closed-form/Gaus", "trading/*/closed-form/Gau"),
            ("rethinking/fig3/rank/Gau/3", "rethinking/fig3/rank/Gau/2"),
            ("table1", "trading/table1"),
            ("table1/simple", "trading/table1/simple"),
            ("Gau", "trading/table1/closed-form/Gau"),
            ("tabel1", "trading/table1"),
        ] {
            assert_eq!(correction(wrong, &all).as_deref(), Some(corrected), "{wrong}");
        }
        assert_eq!(correction("quite/another", &all), None);
    }
}
