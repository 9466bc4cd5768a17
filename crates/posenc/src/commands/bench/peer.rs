//! Peers: the same work in another framework, run by the user's Python.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::measure::on_threads;
use posenc_harness::repository::Repository;

/// A framework to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framework {
    Torch,
    Cuda,
    /// JAX, with Adam from optax.
    Jax,
}

impl Framework {
    pub fn label(self) -> &'static str {
        match self {
            Framework::Torch => "PyTorch",
            Framework::Cuda => "PyTorch CUDA",
            Framework::Jax => "JAX",
        }
    }

    /// Name on a peer's command line.
    fn option(self) -> &'static str {
        match self {
            Framework::Torch | Framework::Cuda => "torch",
            Framework::Jax => "jax",
        }
    }

    /// Packages that the Python must have.
    fn needed(self) -> &'static str {
        match self {
            Framework::Torch => "PyTorch",
            Framework::Cuda => "PyTorch with a CUDA device",
            Framework::Jax => "JAX with optax",
        }
    }

    /// Python code that prints the framework's version, or fails if it is not installed.
    fn probe(self) -> &'static str {
        match self {
            Framework::Torch => "import torch; print(torch.__version__)",
            Framework::Cuda => {
                "import torch; assert torch.cuda.is_available(); print(torch.__version__)"
            }
            Framework::Jax => "import jax, optax; print(jax.__version__)",
        }
    }
}

/// A Python with a framework.
pub struct Peer {
    pub python: String,
    pub framework: Framework,
    pub version: String,
    scripts: PathBuf,
}

/// Output of `benches/peers/closed_form.py`.
#[derive(Debug, Deserialize)]
pub struct ClosedFormTimes {
    pub implementation: String,
    pub one_image_s: f64,
    /// Time per image of 16, with one factorization per image.
    pub per_image_of_16_s: f64,
    /// Time per image of 16, with one factorization for all.
    pub shared_per_image_of_16_s: f64,
}

/// Output of `benches/peers/networks.py`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct NetworkTimes {
    pub implementation: String,
    pub step_s: f64,
    /// Time per column of 20 that share a step; linear workloads only.
    pub per_column_of_20_s: Option<f64>,
    /// Matrix-product rate of a CUDA device in GFLOP/s.
    #[serde(default)]
    pub gemm_gflops: Option<f64>,
}

impl NetworkTimes {
    /// Keeps the smaller of each pair of times.
    fn better(self, other: NetworkTimes) -> NetworkTimes {
        let columns = [self.per_column_of_20_s, other.per_column_of_20_s];
        NetworkTimes {
            implementation: self.implementation,
            step_s: self.step_s.min(other.step_s),
            per_column_of_20_s: columns.into_iter().flatten().reduce(f64::min),
            gemm_gflops: self.gemm_gflops,
        }
    }
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
            return Err(format!("{python} has no {}", framework.needed()));
        }
        let version = posenc_files::one_line(&output.stdout);
        let scripts = repository.root().join("benches/peers");
        Ok(Peer { python, framework, version, scripts })
    }

    pub fn closed_form(
        &self,
        encoder: &str,
        threads: usize,
        repeats: usize,
    ) -> Result<ClosedFormTimes> {
        let repeats = repeats.max(5);
        self.run("closed_form.py", &[("--encoder", encoder)], threads, repeats, &[])
    }

    /// Times of a network workload. With `small_steps`, PyTorch is measured twice, with waiting threads that spin and with waiting
    /// threads that sleep, and the better time counts. Spinning is faster on an idle machine and much slower on a busy one.
    pub fn network(
        &self,
        workload: &str,
        threads: usize,
        repeats: usize,
        small_steps: bool,
    ) -> Result<NetworkTimes> {
        let spinning = self.network_once(workload, 0, threads, repeats, false)?;
        if !small_steps || threads == 1 || self.framework != Framework::Torch {
            return Ok(spinning);
        }
        Ok(spinning.better(self.network_once(workload, 0, threads, repeats, true)?))
    }

    /// Time per step when each of `threads` cores runs a single-threaded process, divided by the number of processes.
    pub fn network_processes(&self, workload: &str, threads: usize, repeats: usize) -> Result<f64> {
        let rates = on_threads(threads, |core| {
            Ok(1.0 / self.network_once(workload, core, 1, repeats, false)?.step_s)
        })?;
        // Rates add up; times do not.
        Ok(1.0 / rates.iter().sum::<f64>())
    }

    fn network_once(
        &self,
        workload: &str,
        first_core: usize,
        threads: usize,
        repeats: usize,
        sleeping: bool,
    ) -> Result<NetworkTimes> {
        let core = first_core.to_string();
        let options = [
            ("--workload", workload),
            ("--framework", self.framework.option()),
            ("--device", if self.framework == Framework::Cuda { "cuda" } else { "cpu" }),
            ("--first-core", &*core),
        ];
        let environment: &[(&str, &str)] =
            if sleeping { &[("OMP_WAIT_POLICY", "PASSIVE")] } else { &[] };
        let script =
            if super::IMAGE_MODEL == Some(workload) { "attention.py" } else { "networks.py" };
        self.run(script, &options, threads, repeats, environment)
    }

    fn run<T: DeserializeOwned>(
        &self,
        script: &str,
        options: &[(&str, &str)],
        threads: usize,
        repeats: usize,
        environment: &[(&str, &str)],
    ) -> Result<T> {
        let script = self.scripts.join(script);
        let output = Command::new(&self.python)
            .arg(&script)
            .args(options.iter().flat_map(|(name, value)| [name, value]))
            .envs(environment.iter().copied())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a key renamed on one side only, and a peer without the optional time.
    #[test]
    fn peer_output_is_parsed() {
        let linear = r#"{"implementation": "torch 2", "workload": "linear-1d", "threads": 2,
            "repeats": 3, "step_s": 0.5, "per_column_of_20_s": 0.25}"#;
        let times: NetworkTimes = serde_json::from_str(linear).unwrap();
        assert_eq!((times.step_s, times.per_column_of_20_s), (0.5, Some(0.25)));
        let other = linear.replace("0.25", "null");
        let times: NetworkTimes = serde_json::from_str(&other).unwrap();
        assert_eq!(times.per_column_of_20_s, None);
        assert!(serde_json::from_str::<NetworkTimes>(r#"{"implementation": "torch 2"}"#).is_err());
    }

    /// Catches the slower of two times, and a time that neither measurement has.
    #[test]
    fn the_better_times_are_kept() {
        let times = |step_s, per_column_of_20_s| NetworkTimes {
            implementation: "torch".to_owned(),
            step_s,
            per_column_of_20_s,
            gemm_gflops: None,
        };
        let better = times(2.0, Some(0.5)).better(times(1.0, Some(0.7)));
        assert_eq!(better, times(1.0, Some(0.5)));
        assert_eq!(times(1.0, None).better(times(2.0, None)), times(1.0, None));
    }
}
