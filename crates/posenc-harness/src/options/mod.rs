//! The options of a run, as `reproduce` takes them.

mod executor;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use posenc_experiments::selector::Selectors;
use posenc_experiments::{Catalog, Profile};

use crate::device::Request;
use crate::memory::Bytes;
use crate::span::Span;

pub use executor::{Executor, ExecutorOptions, SlurmOptions};

/// Where data is.
#[derive(Args, Clone)]
pub struct DataOptions {
    /// Data directory; else $POSENC_DATA, else data/ in the repository.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// A folder of your own images in place of an image set, such as div2k-test=~/photos.
    #[arg(long, value_name = "SET=DIR")]
    pub images: Vec<String>,
}

/// `reproduce`.
#[derive(Args)]
pub struct Reproduce {
    /// Globs on paper/item/group/method, such as trading/table1/closed-form; all where absent.
    pub selectors: Vec<String>,
    /// How much of the published protocol: smoke, quick, long, paper.
    #[arg(long, default_value = "quick")]
    pub profile: String,
    /// Repeat what made these records (a directory such as report/record, or a git revision) and compare every bit; exit
    /// 1 if one differs. Profile and seed are as recorded.
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["profile", "seed", "dry_run", "record", "failed", "budget",
          "timeout", "events"])]
    pub from: Option<String>,
    /// Data.
    #[command(flatten)]
    pub data: DataOptions,
    /// Where records and the report of this machine go; out/ where absent, with --from out/repeat.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Where training runs: auto (a GPU where there is one, else the CPU), cpu, wgpu, or wgpu:NAME.
    #[arg(long, value_name = "DEVICE", default_value = "auto", env = "POSENC_DEVICE")]
    pub device: Request,
    /// Units run at a time; the number of cores where absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Seed of every random stream.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Print the plan and stop.
    #[arg(long)]
    pub dry_run: bool,
    /// Run units again that have a record.
    #[arg(long)]
    pub force: bool,
    /// Run only units that failed last time.
    #[arg(long, conflicts_with = "force")]
    pub failed: bool,
    /// Begin only what ends within this time, such as 2h or 1h30m, what gives verdicts soonest first.
    #[arg(long, value_name = "TIME", conflicts_with = "dry_run")]
    pub budget: Option<Span>,
    /// A unit that takes longer than this, such as 10m, fails, and the others go on.
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<Span>,
    /// Memory that units may take together, such as 8GiB; what the machine, its container and `ulimit` leave if absent.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Bytes>,
    /// Go on after a unit that fails: so it is without this option, too.
    #[arg(long)]
    pub keep_going: bool,
    /// Begin nothing after the first unit that fails.
    #[arg(long, conflicts_with = "keep_going")]
    pub fail_fast: bool,
    /// Write the report this often while units run, such as 5m; after the first minute and after each item if absent.
    #[arg(long, value_name = "TIME")]
    pub report_every: Option<Span>,
    /// Write what happens as it happens, one JSON object per line (FORMAT.md); - for the standard output.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub events: Option<PathBuf>,
    /// Tell of each unit its key, why it runs, what was expected and what it took.
    #[arg(long, short)]
    pub verbose: bool,
    /// Tell failures, warnings and the summary only.
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Promote the records of this run into report/record, where they are not worse.
    #[arg(long)]
    pub record: bool,
    /// Where units run.
    #[command(flatten)]
    pub executor: ExecutorOptions,
}

/// The profile of that name.
pub fn parse_profile(name: &str) -> Result<Profile> {
    let Some(profile) = Profile::parse(name) else {
        bail!("--profile {name}: allowed are {}", Profile::ALL.map(Profile::name).join(", "));
    };
    Ok(profile)
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
        let ids: Vec<String> = catalog.experiments.iter().map(|e| e.id()).collect();
        let hint = posenc_experiments::yaml::nearest(first, ids.iter().map(String::as_str))
            .map(|n| format!(" Did you mean {n}?"))
            .unwrap_or_default();
        bail!("selector `{first}` selects nothing.{hint} `cargo xtask list` shows all.");
    }
    Ok(selectors)
}
