//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use posenc_harness::device::Request;
use posenc_harness::options::{DataOptions, Reproduce};
use posenc_harness::slurm::Task;
use posenc_harness::span::Span;

/// Verbs that `xtask` keeps to itself, since they run cargo or a program of another crate.
const CHORES: &str = "And of cargo xtask itself:
  book       Render report and documents as a site in out/book
  test       Build and run all tests
  check      Check formatting, lints and that the committed report is fresh";

/// Runs the experiments of the papers and renders the report.
#[derive(Parser)]
#[command(name = "cargo xtask", version, max_term_width = 100, after_help = CHORES)]
pub struct Arguments {
    /// Repository; found from the current directory upwards where absent.
    #[arg(long, global = true, value_name = "DIR", env = "POSENC_ROOT")]
    pub root: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Subcommand)]
pub enum Verb {
    /// Run what has no record yet and render the report of this machine.
    Reproduce(Box<Reproduce>),
    /// Say what two records differ in: claims first, then numbers, then parameters.
    Diff(Diff),
    /// Run a sample of units again, on one thread and on several, and compare every bit.
    Verify(Verify),
    /// Render report/ from the reference records, or check that it is fresh.
    Report(Report),
    /// List papers, items, groups and methods.
    List(List),
    /// Write the files of an embedder or an experiment of your own.
    #[command(subcommand)]
    New(NewVerb),
    /// Estimate what a profile takes on this many cores, on a GPU, on a cluster.
    Costs(CostOptions),
    /// Fit a picture or a clip of your own and write what an encoding makes of it.
    Fit(Fit),
    /// List, verify and download data sets.
    #[command(subcommand)]
    Data(DataVerb),
    /// Measure speed against peers and against this machine's own limit.
    Bench(Bench),
    /// Hand captions of this machine to SPICE's own scorer (Java), or read its scores.
    Captions(Captions),
    /// Say what this machine offers, what is switched off and how to get it.
    Doctor(Doctor),
    /// What jobs of Slurm run.
    #[command(hide = true)]
    Work(Task),
}

/// `diff`.
#[derive(Args)]
pub struct Diff {
    /// Directory of records, such as report/record or out/record, or a git revision, whose report/record is read.
    #[arg(value_name = "A")]
    pub before: String,
    /// The other one.
    #[arg(value_name = "B")]
    pub after: String,
    /// Globs on paper/item/group/method; all where absent.
    pub selectors: Vec<String>,
    /// Compare times, rates and memory, too.
    #[arg(long)]
    pub times: bool,
}

/// `verify`.
#[derive(Args)]
pub struct Verify {
    /// Globs on paper/item/group/method; all where absent.
    pub selectors: Vec<String>,
    /// How many units.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub units: u16,
    /// Seed of the choice of units.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Profile whose units are chosen from: smoke, quick, long, paper.
    #[arg(long, default_value = "quick")]
    pub profile: String,
    /// Data.
    #[command(flatten)]
    pub data: DataOptions,
    /// Where the records of this machine are; out/ where absent.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Only run the units, into this directory: what the processes that `verify` starts are told.
    #[arg(long, value_name = "DIR", hide = true)]
    pub run_into: Option<PathBuf>,
    /// Units that such a process runs at a time.
    #[arg(long, value_name = "N", hide = true, default_value_t = 1)]
    pub jobs: u16,
}

/// `report`.
#[derive(Args)]
pub struct Report {
    /// Only say whether report/ is what its records give; exit 1 if not.
    #[arg(long)]
    pub check: bool,
    /// Render there instead of report/.
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    pub out: Option<PathBuf>,
}

/// `list`.
#[derive(Args)]
pub struct List {
    /// Globs on paper/item/group/method; all where absent.
    pub selectors: Vec<String>,
    /// List the embedders with their parameters instead.
    #[arg(long)]
    pub embedders: bool,
}

/// `costs`.
#[derive(Args)]
pub struct CostOptions {
    /// Globs on paper/item/group/method; all where absent.
    pub selectors: Vec<String>,
    /// Profile: smoke, quick, long, paper.
    #[arg(long, default_value = "paper")]
    pub profile: String,
    /// Cores of the machine, or of each node.
    #[arg(long, value_name = "C", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    pub cores: u16,
    /// Nodes of the cluster.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    pub nodes: u16,
    /// Floating-point operations that a GPU does in a second, sustained, in units of 10^12: an assumption of yours.
    #[arg(long, value_name = "R", default_value_t = 10.0, value_parser = positive)]
    pub gpu_tflops: f64,
}

/// A finite number above 0.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("allowed is a number above 0".to_owned()),
    }
}

/// `data`.
#[derive(Subcommand)]
pub enum DataVerb {
    /// Show for each data set: whether it is present, its size and license, how to get it and what stands in for it.
    List(DataOptions),
    /// Recompute all checksums.
    Check(DataOptions),
    /// Download data sets, verify their checksums and put them into the data directory.
    Fetch(Fetch),
}

/// `data fetch`.
#[derive(Args)]
pub struct Fetch {
    /// Ids of data sets, or items such as trading/table1 for the sets that they use; all sets where absent.
    pub sets: Vec<String>,
    /// Data directory; else $POSENC_DATA, else data/ in the repository.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Download from this address, which has the files as in the data directory, instead of those of the manifest.
    #[arg(long, value_name = "URL", value_parser = url)]
    pub mirror: Option<String>,
    /// Fail when no data arrives for this long, such as 30s or 2m.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub stall: Span,
}

/// An address of the web.
fn url(text: &str) -> Result<String, String> {
    posenc_data::check_url(text).map(|()| text.to_owned())
}

/// `new`.
#[derive(Subcommand)]
pub enum NewVerb {
    /// An embedder, with an experiment that compares it: by formula without compiling, else by code.
    Embedder(NewEmbedder),
    /// An experiment from one that there is, cut down to what is yours to change.
    Experiment(NewExperiment),
}

/// `new embedder`.
#[derive(Args)]
pub struct NewEmbedder {
    /// Its name: a-z, 0-9, hyphens, such as lorentzian.
    pub name: String,
    /// The profile psi(u) of u = t - x, such as "1/(1+(u/w)^2)"; nothing is compiled.
    #[arg(long, value_name = "PSI", conflicts_with = "code")]
    pub formula: Option<String>,
    /// A number that stands in the formula, such as w=0.01.
    #[arg(long, value_name = "NAME=VALUE", requires = "formula")]
    pub set: Vec<String>,
    /// Write Rust with a starting profile to change; what is done without --formula.
    #[arg(long)]
    pub code: bool,
    /// Print what would be written and stop.
    #[arg(long)]
    pub dry_run: bool,
}

/// `new experiment`.
#[derive(Args)]
pub struct NewExperiment {
    /// Its name: a-z, 0-9, hyphens.
    pub name: String,
    /// The item it is made from, such as trading/table1.
    #[arg(long, value_name = "ITEM")]
    pub from: String,
    /// Only this group of it; may stand several times.
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,
    /// Print what would be written and stop.
    #[arg(long)]
    pub dry_run: bool,
}

/// How the axes' features are joined.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FitEncoding {
    /// One after the other.
    Simple,
    /// Their Kronecker product.
    Complex,
}

impl std::fmt::Display for FitEncoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FitEncoding::Simple => "simple encoding",
            FitEncoding::Complex => "complex encoding",
        })
    }
}

/// How weights are found.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FitSolver {
    /// Least squares: factorizations on a grid, iterations with --mask.
    ClosedForm,
    /// Full-batch Adam.
    GradientDescent,
}

/// `fit`.
#[derive(Args)]
pub struct Fit {
    /// Picture, video, folder of frames or npz file.
    pub file: PathBuf,
    /// How the axes' features are joined.
    #[arg(long, value_enum, default_value = "complex")]
    pub encoding: FitEncoding,
    /// Kind of embedder; `list --embedders` shows all.
    #[arg(long, value_name = "KIND", default_value = posenc_math::embedder::names::GAUSSIAN)]
    pub embedder: String,
    /// A parameter of the embedder, such as sigma=0.003; the papers' choice where absent.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// How weights are found.
    #[arg(long, value_enum, default_value = "closed-form")]
    pub solver: FitSolver,
    /// Cut out the middle and reduce it to N × N (clips: N × N × N).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=4096))]
    pub size: Option<u32>,
    /// Every so many positions along each axis train; 1 for all.
    #[arg(long, value_name = "S", default_value_t = 2, conflicts_with = "mask",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    pub step: u16,
    /// A random share of the positions trains instead.
    #[arg(long, value_name = "FRACTION")]
    pub mask: Option<f64>,
    /// Hidden layers (gradient descent).
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=16))]
    pub depth: u16,
    /// Width of the hidden layers.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=8192))]
    pub width: u16,
    /// Steps of Adam.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    pub epochs: u32,
    /// Learning rate of Adam; the papers' where absent.
    #[arg(long, value_name = "RATE")]
    pub learning_rate: Option<f64>,
    /// Most iterations of the closed form with --mask; fewer smooth.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub iterations: u32,
    /// Where gradient descent runs: auto (a GPU where there is one, else the CPU), cpu, wgpu, or wgpu:NAME.
    #[arg(long, value_name = "DEVICE", default_value = "auto", env = "POSENC_DEVICE")]
    pub device: Request,
    /// Seed of the mask, of random frequencies and of the initial weights.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Where the reconstruction goes: .png for a picture, .npz or a folder for a clip.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// `bench`.
#[derive(Args)]
pub struct Bench {
    /// Workloads; all where absent.
    pub names: Vec<String>,
    /// What is measured: cpu, auto (a GPU where there is one), wgpu, or wgpu:NAME. On a device the
    /// workloads that train.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub device: Request,
    /// Write the numbers there as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Put the numbers into report/record, from where the report shows them.
    #[arg(long)]
    pub record: bool,
    /// Measured runs per workload; medians are shown.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub repeats: u16,
}

/// `captions`.
#[derive(Args)]
pub struct Captions {
    /// Item whose units describe widgets, such as lff/table1.
    pub item: String,
    /// Write what the scorer reads, a file per unit, into DIR/in, and say how to start it.
    #[arg(long, value_name = "DIR", required_unless_present = "scores")]
    pub export: Option<PathBuf>,
    /// Read what the scorer wrote into DIR/out, and print its scores per method.
    #[arg(long, value_name = "DIR", conflicts_with = "export")]
    pub scores: Option<PathBuf>,
    /// Where the records of this machine are; out/ where absent.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Seed of the run.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
}

/// `doctor`.
#[derive(Args)]
pub struct Doctor {
    /// Data.
    #[command(flatten)]
    pub data: DataOptions,
    /// Open a device, too, and say what trains there: auto, cpu, wgpu, or wgpu:NAME.
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<Request>,
}
