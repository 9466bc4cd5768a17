//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use posenc_harness::device::Request;
use posenc_harness::options::{DataOptions, IncludeOptions, Reproduce};
use posenc_harness::span::Span;
use posenc_protocols::interpolation::Method;
use posenc_protocols::network_nd::Encoding;
use serde::de::DeserializeOwned;

/// Commands that `xtask` runs itself, because they run cargo or the binary of another crate.
const CHORES: &str = "Commands of cargo xtask itself:
  book       Render report and documents as a site in out/book
  test       Build and run all tests
  check      Check formatting, lints and that the committed report is fresh";

/// Runs the experiments of the papers and renders the report.
#[derive(Parser)]
#[command(name = "cargo xtask", version, max_term_width = 100, after_help = CHORES)]
pub struct Arguments {
    /// Root of the repository. Default: the nearest one above the current directory.
    #[arg(long, global = true, value_name = "DIR", env = "POSENC_ROOT")]
    pub root: Option<PathBuf>,
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Subcommand)]
pub enum Verb {
    /// Run the experiments that have no record yet and render a report of the results
    ///
    /// Examples:
    ///   cargo xtask reproduce                         all papers, 5 to 13 minutes on two cores after the build
    ///   cargo xtask reproduce trading/table1          one table
    ///   cargo xtask reproduce 'lff/fig*' --dry-run    what would run, and how long it would take
    ///   cargo xtask reproduce --profile long          more seeds, images and epochs
    ///   cargo xtask reproduce --budget 1h             start only what ends within an hour
    #[command(verbatim_doc_comment)]
    Reproduce(Box<Reproduce>),
    /// Compare two records: verdicts first, then numbers, then parameters
    ///
    /// Examples:
    ///   cargo xtask diff report/record out/record             the reference and this machine
    ///   cargo xtask diff ../before/report/record report/record trading/table1
    #[command(verbatim_doc_comment)]
    Diff(Diff),
    /// Repeat recorded units and compare every bit of the results
    ///
    /// Examples:
    ///   cargo xtask verify                           8 cheap units of the reference, of many protocols
    ///   cargo xtask verify trading/table1 --all      all units of a table
    ///   cargo xtask verify --from out/record --jobs 1   the results of this machine, on one thread
    #[command(verbatim_doc_comment)]
    Verify(Verify),
    /// Render report/ from the reference records, or check that it is up to date.
    Report(Report),
    /// List papers, items, groups and methods
    ///
    /// Examples:
    ///   cargo xtask list                  everything
    ///   cargo xtask list trading/table1   one table
    ///   cargo xtask list --embedders      embedders and their parameters
    #[command(verbatim_doc_comment)]
    List(List),
    /// Create an embedder, an experiment or a paper of your own
    #[command(subcommand)]
    New(NewVerb),
    /// Fit a picture or a clip of your own and write its reconstruction
    ///
    /// Examples:
    ///   cargo xtask fit photo.jpg --size 512 --out fitted.png             interpolate, with settings from cross-validation
    ///   cargo xtask fit photo.jpg --mask 0.25 --compare --out fitted.png  and compare it with nearest, linear, cubic, ...
    ///   cargo xtask fit photo.jpg --embedder rff --out fitted.png         use a position encoding
    #[command(verbatim_doc_comment)]
    Fit(Fit),
    /// List, verify and download data sets.
    #[command(subcommand)]
    Data(DataVerb),
    /// Measure speed and compare it with PyTorch, JAX and this machine's own limit.
    Bench(Bench),
    /// Show what this machine supports, what is disabled and how to enable it.
    Doctor(Doctor),
}

#[derive(Args)]
pub struct Diff {
    /// A directory of records, such as report/record or out/record.
    #[arg(value_name = "A")]
    pub before: String,
    /// The record to compare with.
    #[arg(value_name = "B")]
    pub after: String,
    /// Globs on paper/item/group/method. Default: all.
    pub selectors: Vec<String>,
    /// Also compare times, rates and memory.
    #[arg(long)]
    pub times: bool,
}

#[derive(Args)]
pub struct Verify {
    /// Globs on paper/item/group/method. Default: all.
    pub selectors: Vec<String>,
    /// The directory of records, such as out/record. Default: report/record. Each method is repeated at its recorded profile and
    /// seed.
    #[arg(long, value_name = "DIR")]
    pub from: Option<String>,
    /// Number of units to repeat, cheap ones of many protocols first.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub sample: u16,
    /// Repeat all units of the selection; exit with 1 if a method is no longer what was recorded.
    #[arg(long, conflicts_with = "sample")]
    pub all: bool,
    #[command(flatten)]
    pub data: DataOptions,
    #[command(flatten)]
    pub include: IncludeOptions,
    /// Device for units that were measured on another than the CPU: auto, wgpu, or wgpu:NAME.
    #[arg(long, value_name = "DEVICE", default_value = "auto", env = "POSENC_DEVICE")]
    pub device: Request,
    /// Number of units that run at a time. Default: the number of cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

#[derive(Args)]
pub struct Report {
    /// Only check that report/ matches its records; exit with 1 if it does not.
    #[arg(long)]
    pub check: bool,
    /// Render into this directory instead of report/.
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    pub out: Option<PathBuf>,
    /// Experiments outside the repository, which are only rendered into another directory.
    #[command(flatten)]
    pub include: IncludeOptions,
}

#[derive(Args)]
pub struct List {
    /// Globs on paper/item/group/method. Default: all.
    pub selectors: Vec<String>,
    /// List the embedders with their parameters instead.
    #[arg(long)]
    pub embedders: bool,
    #[command(flatten)]
    pub include: IncludeOptions,
}

#[derive(Subcommand)]
pub enum DataVerb {
    /// Show for each data set: whether it is present, its size and license, how to get it and what is used instead.
    List(DataOptions),
    /// Compute and compare all checksums.
    Check(DataOptions),
    /// Download data sets, verify their checksums and put them into the data directory.
    Fetch(Fetch),
}

#[derive(Args)]
pub struct Fetch {
    /// Ids of data sets, or items such as trading/table1 for the sets that they use; all sets if absent.
    pub sets: Vec<String>,
    /// Data directory; else $POSENC_DATA, else data/ in the repository.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Download from this mirror instead of the manifest's addresses; its paths must match the data directory.
    #[arg(long, value_name = "URL", value_parser = url)]
    pub mirror: Option<String>,
    /// Fail when no data arrives for this long, such as 30s or 2m.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub stall: Span,
}

/// Accepts an http:// or https:// address.
fn url(text: &str) -> Result<String, String> {
    posenc_data::check_url(text).map(|()| text.to_owned())
}

#[derive(Subcommand)]
pub enum NewVerb {
    /// Create an embedder and an experiment that compares it with others, from a formula or as Rust code.
    Embedder(NewEmbedder),
    /// Copy an experiment, reduced to the parts that you may want to change.
    Experiment(NewExperiment),
    /// Create a paper: a folder of experiments with one item, published values and statements.
    Paper(NewPaper),
}

#[derive(Args)]
pub struct NewPaper {
    /// Key of the paper: a-z, 0-9 and hyphens.
    pub name: String,
    /// Write the paper into this folder outside the repository. Commands use it with the same option. Default: experiments/NAME, with
    /// published values and statements in data/papers.
    #[arg(long, value_name = "DIR")]
    pub include: Option<PathBuf>,
}

#[derive(Args)]
pub struct NewEmbedder {
    /// Name of a-z, 0-9 and hyphens, such as lorentzian.
    pub name: String,
    /// The profile psi(u) of u = t - x, such as "1/(1+(u/w)^2)"; nothing is compiled.
    /// Without it, Rust code to edit is written.
    #[arg(long, value_name = "PSI")]
    pub formula: Option<String>,
    /// Value of a parameter of the formula, such as w=0.01.
    #[arg(long, value_name = "NAME=VALUE", requires = "formula")]
    pub set: Vec<String>,
    /// Add it to the paper in this folder, such as experiments/trading or one made by `new paper`, instead of experiments/extensions.
    #[arg(long, value_name = "DIR")]
    pub include: Option<PathBuf>,
}

#[derive(Args)]
pub struct NewExperiment {
    /// Name of a-z, 0-9 and hyphens.
    pub name: String,
    /// Item to copy, such as trading/table1.
    #[arg(long, value_name = "ITEM")]
    pub from: String,
    /// Copy only this group. Can be repeated.
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,
    /// Add it to the paper in this folder, such as experiments/trading or one made by `new paper`, instead of experiments/extensions.
    #[arg(long, value_name = "DIR")]
    pub include: Option<PathBuf>,
}

/// How the weights are computed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FitSolver {
    /// Ridge regression along each axis of a grid (not with --mask).
    Ridge,
    /// Least squares of minimum norm: factorizations on a grid, iterations with --mask.
    ClosedForm,
    /// Full-batch Adam.
    GradientDescent,
}

/// Parses the name that a value has in experiment files.
fn named<T: DeserializeOwned>(name: &str) -> Result<T, String> {
    serde_json::from_value(name.into()).map_err(|e| e.to_string())
}

/// Options of `fit` with a position encoding. One of them is enough to select it.
#[derive(Args)]
pub struct FitWithEncoding {
    /// How the features of the axes are combined: simple (concatenation) or complex (Kronecker product).
    #[arg(long, value_parser = named::<Encoding>, default_value = "complex", help_heading = ENCODING)]
    pub encoding: Encoding,
    /// Kind of embedder. `list --embedders` shows all.
    #[arg(long, value_name = "KIND", default_value = posenc_math::embedder::names::GAUSSIAN, help_heading = ENCODING)]
    pub embedder: String,
    /// Parameter of the embedder, such as sigma=0.003. Default: chosen from the training positions (complex encoding without
    /// hidden layers), otherwise by a rule for photographs.
    #[arg(long, value_name = "NAME=VALUE", help_heading = ENCODING)]
    pub set: Vec<String>,
    /// How the weights are computed. Default: ridge, with --mask closed-form.
    #[arg(long, value_enum, help_heading = ENCODING)]
    pub solver: Option<FitSolver>,
    /// Hidden layers (gradient descent). Default: 0.
    #[arg(long, value_parser = clap::value_parser!(u16).range(0..=16), help_heading = ENCODING)]
    pub depth: Option<u16>,
    /// Width of the hidden layers. Default: 256.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=8192), help_heading = ENCODING)]
    pub width: Option<u16>,
    /// Steps of Adam. Default: 500.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), help_heading = ENCODING)]
    pub epochs: Option<u32>,
    /// Learning rate of Adam. Default: the papers' value.
    #[arg(long, value_name = "RATE", help_heading = ENCODING)]
    pub learning_rate: Option<f64>,
}

impl FitWithEncoding {
    pub fn hidden_layers(&self) -> u16 {
        self.depth.unwrap_or(0)
    }

    pub fn hidden_width(&self) -> u16 {
        self.width.unwrap_or(256)
    }
}

const ENCODING: &str = "Options of a position encoding, which replaces the interpolation";

#[derive(Args)]
pub struct Fit {
    /// Picture, video, folder of frames or npz file.
    pub file: PathBuf,
    /// How values between the training positions are computed: auto (kriging with settings from cross-validation on these
    /// positions), nearest, linear (along each axis, or on Delaunay triangles at random positions), cubic (splines, or
    /// Clough-Tocher elements), thin-plate, kriging or mean.
    #[arg(long, value_parser = named::<Method>, default_value = "auto", conflicts_with = "FitWithEncoding")]
    pub method: Method,
    /// Also run the other methods of interpolation, and print PSNR and time of all.
    #[arg(long)]
    pub compare: bool,
    /// Do not fit; print the methods with the best PSNR for their run time on report signals with the same sampling as the file.
    #[arg(long, conflicts_with_all = ["compare", "FitWithEncoding"])]
    pub advise: bool,
    /// Crop the center and downsample it to N × N (clips: N × N × N).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=4096))]
    pub size: Option<u32>,
    /// Train on every S-th position along each axis; 1 trains on all.
    #[arg(long, value_name = "S", default_value_t = 2, conflicts_with = "mask",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    pub step: u16,
    /// Train on a random fraction of the positions instead.
    #[arg(long, value_name = "FRACTION")]
    pub mask: Option<f64>,
    /// Device for gradient descent: auto (a GPU if available, else the CPU), cpu, wgpu, or wgpu:NAME.
    #[arg(long, value_name = "DEVICE", default_value = "auto", env = "POSENC_DEVICE")]
    pub device: Request,
    /// Seed of the mask, of random frequencies and of the initial weights.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// File for the reconstruction: .png for a picture, .npz or a folder for a clip. Optional with --compare and --advise.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["compare", "advise"])]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub model: Option<FitWithEncoding>,
}

#[derive(Args)]
pub struct Bench {
    /// Workloads. Default: all.
    pub names: Vec<String>,
    /// Device to measure: cpu, auto (a GPU if available), wgpu, or wgpu:NAME. On a GPU only
    /// training workloads run.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub device: Request,
    /// Store the results in report/record, so that the report shows them.
    #[arg(long)]
    pub record: bool,
    /// With --record: accept uncommitted changes. The report marks such records.
    #[arg(long, requires = "record")]
    pub allow_dirty: bool,
    /// Number of measured runs per workload, rounded up to a multiple of three. Medians are printed.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub repeats: u16,
}

#[derive(Args)]
pub struct Doctor {
    #[command(flatten)]
    pub data: DataOptions,
    /// Also open this device and show what it can train: auto, cpu, wgpu, or wgpu:NAME.
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<Request>,
}
