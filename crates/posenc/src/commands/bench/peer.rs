//! Peers: the same work in another framework, run by the user's Python.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::workload::{Framework, Workload};
use posenc_harness::repository::Repository;

pub struct Peer {
    pub python: String,
    pub framework: Framework,
    pub version: String,
    scripts: PathBuf,
}

/// Output of the programs in `benches/peers`.
#[derive(Debug, PartialEq, Deserialize)]
pub struct PeerTimes {
    pub implementation: String,
    /// Seconds, in the unit of the workload.
    pub seconds: f64,
    /// Seconds of other ways to do the same work, by a description.
    pub also: BTreeMap<String, f64>,
    /// Matrix-product rate of a CUDA device in GFLOP/s.
    pub gemm_gflops: Option<f64>,
}

impl Peer {
    /// Uses the Python of `POSENC_PYTHON`, else `python3`, and checks that it has the framework.
    pub fn find(repository: &Repository, framework: Framework) -> Result<Peer, String> {
        let python = std::env::var("POSENC_PYTHON").unwrap_or_else(|_| "python3".into());
        let output = Command::new(&python)
            .args(["-c", framework.probe()])
            .current_dir(repository.root())
            .output()
            .map_err(|e| format!("{python} cannot be started ({e})"))?;
        if !output.status.success() {
            return Err(format!("{python} has no {}", framework.label()));
        }
        let version = posenc_files::one_line(&output.stdout);
        let scripts = repository.root().join("benches/peers");
        Ok(Peer { python, framework, version, scripts })
    }

    pub fn times(&self, workload: &Workload, threads: usize, repeats: usize) -> Result<PeerTimes> {
        let script = self.scripts.join(workload.script());
        let framework = if self.framework == Framework::Jax { "jax" } else { "torch" };
        let device = if self.framework == Framework::Cuda { "cuda" } else { "cpu" };
        let output = Command::new(&self.python)
            .arg(&script)
            .args([workload.name, "--framework", framework, "--device", device])
            .args(["--threads", &threads.to_string(), "--repeats", &repeats.to_string()])
            .output()
            .with_context(|| format!("{} cannot be started", self.python))?;
        if !output.status.success() {
            bail!("{} failed: {}", script.display(), posenc_files::one_line(&output.stderr));
        }
        serde_json::from_slice(&output.stdout).with_context(|| {
            let printed = posenc_files::one_line(&output.stdout);
            format!("{} printed no times: {printed}", script.display())
        })
    }
}
