//! Files of a run in `<out>/slurm/`: the active run, its shares, the reports of its tasks and its result.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Parser as _;
use posenc_experiments::record::KeyParts;
use posenc_experiments::text::{MAX_RECORD_BYTES, read_text};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::options::{Reproduce, SlurmOptions};
use crate::store::write_file;

/// The command line of a submitted run.
#[derive(clap::Parser)]
struct Stored {
    #[arg(long)]
    root: PathBuf,
    #[command(subcommand)]
    verb: StoredVerb,
}

#[derive(clap::Subcommand)]
enum StoredVerb {
    Reproduce(Reproduce),
}

/// Format version of these files.
pub const FORMAT: u32 = 2;

/// `run.json`: the request. Every task and the collecting step read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterRun {
    pub format: u32,
    /// `<number>-<eight digits>`; no two runs share it.
    pub id: String,
    /// Arguments of `posenc` for the same run on one machine, with full paths.
    pub arguments: Vec<String>,
    pub slurm: SlurmOptions,
    /// Units of the run: those that had no record when it was submitted.
    pub units: usize,
}

/// `state.json`: what was submitted so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Rounds in order.
    pub rounds: Vec<Round>,
}

/// The job array, the job that measures time, and the collecting step after both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Slurm's job number of the array, and its number of tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<(String, usize)>,
    /// Slurm's number of the job that measures time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    pub collect: String,
}

/// `share-<name>.json`: what one task runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    pub format: u32,
    pub seconds: f64,
    /// The jobs, most expensive first.
    pub jobs: Vec<SharedJob>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedJob {
    /// `paper/item/group/method`.
    pub path: String,
    pub repetition: u64,
    /// Key parts as the submitter computed them; `identity` is that of the first unit.
    pub parts: KeyParts,
    /// Keys of the units by signal.
    pub units: BTreeMap<String, String>,
}

/// `task-<name>.json`: the report of a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskReport {
    /// Starts of the task, in order.
    pub attempts: Vec<Attempt>,
    /// Whether the last start ran to its end.
    pub ended: bool,
    /// Reasons of failed units, by key.
    pub failed: BTreeMap<String, String>,
    /// The error that kept all units from running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    pub node: String,
    /// Units of the share that had a record.
    pub on_record: usize,
    /// Units of the share without a record.
    pub to_run: usize,
}

/// `result.json`: how the run ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ending {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PathBuf>,
    /// Units of the run that have a record.
    pub recorded: usize,
    pub failed: Vec<FailedUnit>,
    /// Arrays that were submitted.
    pub rounds: usize,
    /// Number of times that Slurm restarted a task.
    pub restarts: usize,
    /// The error that prevented tables and report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A unit without a record at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedUnit {
    /// `paper/item/group/method`, repetition and signal.
    pub unit: String,
    /// The reason of the failure, if known.
    pub reason: String,
    /// Log of its task.
    pub log: PathBuf,
}

/// `current.json`: the run that owns the directory. It serves as a lock, because kernel locks do not reach other nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub id: String,
    /// Who submitted it: machine and process.
    pub by: String,
}

#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// The directory of a run of `out`.
    pub fn of(out: &Path, id: &str) -> Self {
        Folder(slurm_directory(out).join(id))
    }

    /// The directory that a task received as its argument.
    pub fn at(path: &Path) -> Self {
        Folder(path.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn share(&self, name: &str) -> PathBuf {
        self.file(&format!("share-{name}.json"))
    }

    /// Report of a share's task.
    pub fn task(&self, name: &str) -> PathBuf {
        self.file(&format!("task-{name}.json"))
    }

    /// Log of a share's task.
    pub fn log(&self, name: &str) -> PathBuf {
        self.file(&format!("task-{name}.log"))
    }

    pub fn run(&self) -> Result<ClusterRun> {
        let run: ClusterRun = read(&self.file("run.json"))?;
        if run.format != FORMAT {
            bail!("{} is of format {}, not {FORMAT}", self.file("run.json").display(), run.format);
        }
        Ok(run)
    }

    /// `state.json`; empty before anything was submitted.
    pub fn state(&self) -> Result<State> {
        Ok(read_if_there(&self.file("state.json"))?.unwrap_or_default())
    }

    /// `result.json`, once the run has ended.
    pub fn ending(&self) -> Result<Option<Ending>> {
        read_if_there(&self.file("result.json"))
    }

    /// Names of all shares of a round.
    pub fn names(round: usize, submitted: &Round) -> Vec<String> {
        let tasks = submitted.array.as_ref().map_or(0, |(_, tasks)| *tasks);
        let mut names: Vec<String> = (0..tasks).map(|n| name(round, Some(n))).collect();
        names.extend(submitted.clock.as_ref().map(|_| name(round, None)));
        names
    }
}

/// The name of a share: `<round>-<number>`, or `<round>-clock` for the jobs that measure time.
pub fn name(round: usize, number: Option<usize>) -> String {
    number.map_or_else(|| format!("{round}-clock"), |number| format!("{round}-{number}"))
}

/// Directory of the runs of `out`.
pub fn slurm_directory(out: &Path) -> PathBuf {
    out.join("slurm")
}

pub fn claim_file(out: &Path) -> PathBuf {
    slurm_directory(out).join("current.json")
}

/// The claim on `out`, if any.
pub fn claim(out: &Path) -> Result<Option<Claim>> {
    read_if_there(&claim_file(out))
}

impl ClusterRun {
    /// Parses the arguments into the repository and the options of `reproduce`.
    pub fn options(&self) -> Result<(PathBuf, Reproduce)> {
        let all = std::iter::once("posenc".to_owned()).chain(self.arguments.iter().cloned());
        let Stored { root, verb: StoredVerb::Reproduce(options) } = Stored::try_parse_from(all)
            .with_context(|| format!("the arguments of run {} are not understood", self.id))?;
        Ok((root, options))
    }

    pub fn job_name(&self) -> String {
        job_name(&self.id)
    }
}

/// The name of all jobs of a run in Slurm's queue.
pub fn job_name(id: &str) -> String {
    format!("posenc-{id}")
}

/// Writes one of these files whole or not at all.
pub fn write(file: &Path, content: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(content)
        .with_context(|| format!("{}: paths must be UTF-8", file.display()))?;
    write_file(file, (text + "\n").as_bytes())
}

/// Reads one of these files.
pub fn read<T: DeserializeOwned>(file: &Path) -> Result<T> {
    serde_json::from_str(&read_text(file, MAX_RECORD_BYTES)?)
        .with_context(|| format!("{} is damaged", file.display()))
}

/// Reads one of these files if it exists.
pub fn read_if_there<T: DeserializeOwned>(file: &Path) -> Result<Option<T>> {
    posenc_files::is_there(file).then(|| read(file)).transpose()
}
