//! Options that select where units run.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::Reproduce;

/// Where units run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Executor {
    /// On this machine.
    Local,
    /// On the nodes of a cluster, as a Slurm job array.
    Slurm,
}

/// Options of `reproduce` about where units run.
#[derive(Debug, Clone, Args)]
pub struct ExecutorOptions {
    /// Where units run: on this machine, or on a cluster as a Slurm job array (docs/SLURM.md).
    #[arg(long, value_enum, value_name = "WHERE", default_value = "local")]
    pub executor: Executor,
    /// Slurm: submit the jobs, print how to watch and cancel them, and do not wait.
    #[arg(long)]
    pub detach: bool,
    /// Slurm.
    #[command(flatten)]
    pub slurm: SlurmOptions,
}

/// Options of Slurm jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlurmOptions {
    /// Slurm: partition. Default: the cluster's default.
    #[arg(long, value_name = "P")]
    pub partition: Option<String>,
    /// Slurm: number of tasks of the array. Default: one per minute of estimated work, at most 16.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub array_size: Option<u16>,
    /// Slurm: generic resources of each task, such as gpu:1. --device auto then means wgpu.
    #[arg(long, value_name = "G")]
    pub gres: Option<String>,
    /// Slurm: time limit of each task, such as 4:00:00. A task that reaches it continues in a later round.
    #[arg(long, value_name = "T")]
    pub time: Option<String>,
    /// Slurm: an argument passed to sbatch unchanged, such as --sbatch-arg=--cpus-per-task=8. Can be repeated.
    #[arg(long = "sbatch-arg", value_name = "ARG", allow_hyphen_values = true)]
    pub sbatch_args: Vec<String>,
}

impl ExecutorOptions {
    /// Refuses options that do not go together.
    pub fn check(&self, options: &Reproduce) -> Result<()> {
        let given = [
            ("--detach", self.detach),
            ("--partition", self.slurm.partition.is_some()),
            ("--array-size", self.slurm.array_size.is_some()),
            ("--gres", self.slurm.gres.is_some()),
            ("--time", self.slurm.time.is_some()),
            ("--sbatch-arg", !self.slurm.sbatch_args.is_empty()),
        ];
        if self.executor == Executor::Local {
            if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
                bail!("{name} requires --executor slurm; add it, or remove {name}");
            }
            return Ok(());
        }
        let impossible = [
            // A node cannot distinguish a new record from one that existed before the run.
            ("--force", options.force),
            ("--fail-fast", options.fail_fast),
            ("--budget", options.budget.is_some()),
        ];
        if let Some((name, _)) = impossible.iter().find(|(_, given)| *given) {
            bail!(
                "{name} is not possible with --executor slurm; remove one of the two{}",
                match *name {
                    "--force" => " (a new --out DIR runs everything again)",
                    "--budget" => " (--time limits each task)",
                    _ => "",
                }
            );
        }
        let values = [&self.slurm.partition, &self.slurm.gres, &self.slurm.time];
        for (name, value) in ["--partition", "--gres", "--time"].into_iter().zip(values) {
            if value.as_ref().is_some_and(|v| v.trim().is_empty()) {
                bail!("{name} is empty; give a value, or remove {name}");
            }
        }
        if let Some(other) = self.slurm.sbatch_args.iter().find(|a| !a.starts_with('-')) {
            bail!(
                "--sbatch-arg {other}: an option of sbatch begins with `-`; write its value into the same argument, \
                 such as --sbatch-arg=--cpus-per-task=8"
            );
        }
        Ok(())
    }
}
