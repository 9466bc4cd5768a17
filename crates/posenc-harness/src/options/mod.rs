//! The options of `reproduce`.

mod places;
mod share;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use posenc_experiments::selector::Selectors;
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
    /// How much of the published protocol runs: smoke (a minute), quick (about 12 minutes), long (hours) or paper (all).
    #[arg(long, default_value = "quick")]
    pub profile: String,
    /// Data.
    #[command(flatten)]
    pub data: DataOptions,
    /// Experiments outside the repository.
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
    /// Run the shortest units first and start nothing that would exceed this time, such as 2h or 1h30m.
    #[arg(long, value_name = "TIME", conflicts_with = "dry_run")]
    pub budget: Option<Span>,
    /// Memory limit for all units together, such as 8GiB. Default: what the machine, its container and `ulimit` allow.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Bytes>,
    /// Write the report this often while units run, such as 5m. Default: after ten items or one minute, then after each item.
    #[arg(long, value_name = "TIME")]
    pub report_every: Option<Span>,
    /// Print every note, and for each unit its key, the reason to run it, its estimate, its time and its training steps.
    #[arg(long, short)]
    pub verbose: bool,
    /// Print only failures, warnings and the summary.
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Copy the records of this run into report/record unless the records there are better.
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

/// Reads the catalog without files that have an error, and prints these errors.
pub fn usable_catalog(
    repository: &Repository,
    include: &[PathBuf],
    kinds: Kinds,
) -> Result<Catalog> {
    let catalog = Catalog::usable(repository.root(), include, kinds)?;
    catalog.broken.iter().for_each(|error| eprintln!("error: {error}; the file is left out"));
    Ok(catalog)
}

/// Parses the name of a profile.
pub fn parse_profile(name: &str) -> Result<Profile> {
    let allowed = || Profile::ALL.map(Profile::name).join(", ");
    Profile::parse(name).with_context(|| format!("--profile {name}: allowed are {}", allowed()))
}

/// Parses selectors and refuses those that select nothing: a typo must not look like success.
pub fn parse_selectors(catalog: &Catalog, texts: &[String]) -> Result<Selectors> {
    let selectors = Selectors::parse(texts).map_err(anyhow::Error::msg)?;
    let mut all = Vec::new();
    for e in &catalog.experiments {
        for g in &e.groups {
            for v in &g.variants {
                all.push((e.paper.as_str(), e.item.as_str(), g.id.as_str(), v.id.as_str()));
            }
        }
    }
    let unmatched = selectors.unmatched(&all);
    if let Some(first) = unmatched.first() {
        if catalog.experiments.iter().any(|e| e.id() == *first) {
            bail!("`{first}` only shows records of other items; there is nothing to run");
        }
        let ids: Vec<String> = catalog.experiments.iter().map(|e| e.id()).collect();
        let hint = posenc_experiments::yaml::nearest(first, ids.iter().map(String::as_str))
            .map(|n| format!(" Did you mean {n}?"))
            .unwrap_or_default();
        let among = if catalog.broken.is_empty() { "" } else { " in files without errors" };
        bail!("selector `{first}` selects nothing{among}.{hint} `cargo xtask list` shows all.");
    }
    Ok(selectors)
}
