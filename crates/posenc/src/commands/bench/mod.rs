//! `bench`: measures our times, the peers' times on the same cores, and in between this machine's own matrix-product rate.

mod closed_form;
#[cfg(feature = "attention")]
mod image_model;
mod measure;
mod networks;
mod peer;

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use posenc_experiments::record::{Benchmark, Benchmarks, benchmark};
use posenc_experiments::yaml::nearest;
use serde::Serialize;

use crate::arguments::Bench;
use peer::{Framework, Peer};
use posenc_harness::device::{Devices, GPU};
use posenc_harness::lock::Lock;
use posenc_harness::machine;
use posenc_harness::repository::Repository;

/// Number of rounds. Each round measures ours, the peers and the machine's own rate in turn, so that a drift of the machine affects
/// all of them.
const ROUNDS: usize = 3;

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Measured {
    name: &'static str,
    title: String,
    unit: &'static str,
    ours_s: f64,
    torch_s: Option<f64>,
    jax_s: Option<f64>,
    /// Matrix-product rate of this machine in GFLOP/s: single precision, all threads.
    gemm_gflops: f64,
    /// Operations of the workload divided by our time, as a fraction of that rate.
    share_of_gemm: f64,
    threads: usize,
    peers: Vec<String>,
    /// Times that only some workloads have.
    #[serde(flatten)]
    more: networks::More,
}

/// The workloads, in the order in which they are measured.
fn names() -> impl Iterator<Item = &'static str> {
    let closed_form = closed_form::WORKLOADS.iter().map(|w| w.name);
    let networks = networks::WORKLOADS.iter().map(|w| w.name);
    closed_form.chain(networks).chain(IMAGE_MODEL)
}

/// The workload of attention models, in builds that have them.
#[cfg(feature = "attention")]
const IMAGE_MODEL: Option<&str> = Some(image_model::NAME);
#[cfg(not(feature = "attention"))]
const IMAGE_MODEL: Option<&str> = None;

fn check(asked: &[String]) -> Result<()> {
    for name in asked {
        if !names().any(|n| n == name) {
            let hint = nearest(name, names()).map(|n| format!("; did you mean `{n}`?"));
            let allowed: Vec<&str> = names().collect();
            let hint = hint.unwrap_or_default();
            bail!("no workload `{name}`; allowed: {}{hint}", allowed.join(", "));
        }
    }
    Ok(())
}

pub fn bench(repository: &Repository, options: &Bench) -> Result<ExitCode> {
    check(&options.names)?;
    if let Some(file) = &options.json {
        repository.check_file(file)?;
    }
    if options.record && !options.allow_dirty {
        repository.refuse_changes()?;
    }
    let asked = |name: &str| options.names.is_empty() || options.names.iter().any(|n| n == name);
    let threads = machine::cores();
    let repeats = usize::from(options.repeats);
    let any_network = networks::WORKLOADS.iter().any(|w| asked(w.name));
    let devices = Devices::open(&options.device)?;
    let is_gpu = devices.training() == GPU;
    let device = devices.device_engine().map(|engine| networks::Device { engine, is_gpu });
    if let Some(device) = &device {
        ensure!(
            !options.record || is_gpu,
            "--record stores times of the CPU or of a GPU; a software adapter is neither, so remove --record"
        );
        println!("device: {}", device.engine.device());
    }
    // The closed form has no peer in JAX. A GPU's peer is CUDA; a software adapter runs on the CPU.
    let frameworks: &[Framework] = match (&device, any_network) {
        (Some(_), _) if is_gpu => &[Framework::Cuda],
        (Some(_), _) => &[Framework::Torch],
        (None, true) => &[Framework::Torch, Framework::Jax],
        (None, false) => &[Framework::Torch],
    };
    let peers = find_peers(repository, frameworks);
    let torch = peers.iter().find(|p| p.framework == Framework::Torch);

    let mut all = Vec::new();
    let closed_forms = closed_form::WORKLOADS.iter().filter(|_| device.is_none());
    for workload in closed_forms.filter(|w| asked(w.name)) {
        all.extend(closed_form::measure(workload, threads, repeats, torch)?);
    }
    for workload in networks::WORKLOADS.iter().filter(|w| asked(w.name)) {
        all.push(networks::measure(workload, threads, repeats, &peers, device.as_ref())?);
    }
    #[cfg(feature = "attention")]
    if device.is_none() && asked(image_model::NAME) {
        all.push(image_model::measure(threads, repeats, torch)?);
    }
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(&all)? + "\n";
        std::fs::write(file, text)
            .with_context(|| format!("{} cannot be written", file.display()))?;
    }
    if options.record {
        ensure!(
            all.iter().all(|m| m.gemm_gflops.is_finite()),
            "nothing is recorded, since PyTorch with CUDA measures the matrix-product rate of a GPU and did not run. Set \
             POSENC_PYTHON to a Python that has it, or remove --record"
        );
        let gpu = device.as_ref().map(|device| device.engine.device());
        println!("{}", record(repository, &all, gpu)?.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Stores the results in the reference record, in place of earlier ones of the same workloads on the CPU or on a GPU. Returns the
/// file.
fn record(
    repository: &Repository,
    measured: &[Measured],
    gpu: Option<String>,
) -> Result<std::path::PathBuf> {
    let directory = repository.record();
    let _lock = Lock::of_reference(repository)?;
    let mut all = Benchmarks::read(&directory)?;
    let prefix = if gpu.is_some() { benchmark::ON_GPU } else { "" };
    let (machine, commit) = (gpu.unwrap_or_else(machine::processor), repository.commit());
    for m in measured {
        let benchmark = Benchmark {
            title: m.title.clone(),
            unit: m.unit.to_owned(),
            ours_s: m.ours_s,
            torch_s: m.torch_s,
            jax_s: m.jax_s,
            gemm_gflops: m.gemm_gflops,
            share_of_gemm: m.share_of_gemm,
            threads: if prefix.is_empty() { m.threads } else { 0 },
            peers: m.peers.clone(),
            machine: machine.clone(),
            commit: commit.clone(),
        };
        all.0.insert(format!("{prefix}{}", m.name), benchmark);
    }
    all.write(&directory)?;
    Ok(directory.join(benchmark::FILE))
}

/// End of a line with the peer's time and its ratio to ours; empty without a peer.
fn against_torch(torch_s: Option<f64>, ours_s: f64) -> String {
    torch_s.map_or_else(String::new, |torch_s| {
        format!(", PyTorch {:8.3} ms, ratio {:5.2}", 1e3 * torch_s, torch_s / ours_s)
    })
}

/// Finds the available peers; prints a note for each of the others.
fn find_peers(repository: &Repository, frameworks: &[Framework]) -> Vec<Peer> {
    let (mut peers, mut reasons) = (Vec::new(), Vec::new());
    for framework in frameworks {
        match Peer::find(repository, *framework) {
            Ok(peer) => peers.push(peer),
            Err(why) => reasons.push(why),
        }
    }
    // A Python that does not start is the same reason for all frameworks.
    reasons.dedup();
    for why in reasons {
        eprintln!("note: {why}; its times are left out. Set POSENC_PYTHON to the Python to use");
    }
    peers
}

/// A Python that has PyTorch, for `doctor`.
pub fn peer_python(repository: &Repository) -> Result<Peer, String> {
    Peer::find(repository, Framework::Torch)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches two workloads with the same name, and an unknown name that is silently accepted.
    #[test]
    fn names_are_distinct_and_checked() {
        let mut sorted: Vec<&str> = names().collect();
        sorted.sort_unstable();
        let count = sorted.len();
        sorted.dedup();
        assert_eq!(sorted.len(), count);
        assert!(check(&names().map(str::to_owned).collect::<Vec<_>>()).is_ok());
        let message = check(&["simple-2b".to_owned()]).unwrap_err().to_string();
        assert!(
            message.starts_with("no workload `simple-2b`; allowed: closed-form, "),
            "{message}"
        );
        assert!(message.ends_with("; did you mean `simple-2d`?"), "{message}");
    }
}
