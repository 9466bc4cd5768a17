//! Measured speed compared with other frameworks: `report/record/benchmarks.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::text::{RESTORE, read_record, sealed, unsealed};
use crate::yaml::FileError;

/// Name of the file in a directory of records.
pub const FILE: &str = "benchmarks.json";

/// Start of the names of workloads that ran on a GPU.
pub const ON_GPU: &str = "wgpu/";

/// One workload, measured in one run with its peers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Benchmark {
    /// What it is, in words.
    pub title: String,
    /// What the seconds are for, such as `s per step`.
    pub unit: String,
    pub ours_s: f64,
    /// PyTorch's seconds, if it was available.
    pub torch_s: Option<f64>,
    /// JAX's seconds, if it was available and has the workload.
    pub jax_s: Option<f64>,
    /// Rate of single-precision matrix products in GFLOP/s: on the processor with all threads, or on the GPU with PyTorch.
    pub gemm_gflops: f64,
    /// Our floating-point rate, as a share of `gemm_gflops`.
    pub share_of_gemm: f64,
    /// Threads that each framework used; 0 on a GPU.
    pub threads: usize,
    /// The peers and their versions.
    pub peers: Vec<String>,
    pub machine: String,
    /// Git commit, with `-dirty` if the tree had changes; empty outside a repository.
    pub commit: String,
}

impl Benchmark {
    /// Whether all of its numbers can be shown: times and rates above zero.
    fn is_sound(&self) -> bool {
        let times = [Some(self.ours_s), self.torch_s, self.jax_s, Some(self.gemm_gflops)];
        times.into_iter().flatten().all(|t| t.is_finite() && t > 0.0)
            && self.share_of_gemm.is_finite()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Benchmarks(pub BTreeMap<String, Benchmark>);

impl Benchmarks {
    /// Reads the file in a directory of records; a missing file has no workloads.
    pub fn read(directory: &Path) -> Result<Self, FileError> {
        let file = directory.join(FILE);
        let Some(text) = read_record(&file)? else { return Ok(Benchmarks::default()) };
        Benchmarks::parse(&file, &text)
    }

    /// Like [`Benchmarks::read`], but parses `text`; `file` is only used in messages.
    pub fn parse(file: &Path, text: &str) -> Result<Self, FileError> {
        let read: Benchmarks = unsealed(file, text)?;
        let problem =
            |name| format!("damaged: `{name}` has a time that is not above zero; {RESTORE}");
        match read.0.iter().find(|(_, b)| !b.is_sound()) {
            Some((name, _)) => Err(FileError::of(file, problem(name))),
            None => Ok(read),
        }
    }

    pub fn write(&self, directory: &Path) -> Result<(), FileError> {
        let file = directory.join(FILE);
        let written = posenc_files::write_if_changed(&file, sealed(&file, self)?.as_bytes());
        written.map(drop).map_err(|e| FileError::unwritable(&file, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::without_checksum;

    /// Catches a number that does not read back equal, and a damaged file that causes a panic, is accepted, or is reported without a
    /// remedy.
    #[test]
    fn a_record_reads_back_and_a_damaged_one_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Benchmarks::read(directory.path()).unwrap(), Benchmarks::default());
        let benchmark = Benchmark {
            title: "A grid".into(),
            unit: "s per step".into(),
            ours_s: 0.001_25,
            torch_s: Some(0.004),
            jax_s: None,
            gemm_gflops: 180.0,
            share_of_gemm: 0.9,
            threads: 2,
            peers: vec!["torch 2".into()],
            machine: "M".into(),
            commit: String::new(),
        };
        let all = Benchmarks([("complex-2d".to_owned(), benchmark)].into());
        all.write(directory.path()).unwrap();
        assert_eq!(Benchmarks::read(directory.path()).unwrap(), all);

        let file = directory.path().join(FILE);
        let text = without_checksum(&std::fs::read_to_string(&file).unwrap());
        for (from, to) in [("0.00125", "0.0"), ("\"ours_s\"", "\"ours\""), ("}", "")] {
            std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
            let message = Benchmarks::read(directory.path()).unwrap_err().to_string();
            assert!(message.contains("benchmarks.json"), "{message}");
            assert!(message.contains("restore the file"), "{message}");
        }
    }
}
