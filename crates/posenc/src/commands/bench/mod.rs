//! `bench`: measures our times, those of PyTorch and JAX on the same cores, and this machine's own matrix-product rate, in turn.

mod embedding;
#[cfg(feature = "attention")]
mod image_model;
mod measure;
mod peer;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use posenc_experiments::record::{Benchmark, Benchmarks, benchmark};
use posenc_experiments::yaml::unknown_name;
use posenc_math::statistics::median;
use posenc_nets::Engine;

use self::measure::matrix_product_rate;
pub use self::peer::Peer;
use self::peer::PeerTimes;
pub use self::workload::Framework;
use self::workload::{WORKLOADS, Workload};
use crate::arguments::Bench;
use posenc_harness::device::{Devices, GPU};
use posenc_harness::lock;
use posenc_harness::machine;
use posenc_harness::repository::Repository;

/// Number of rounds. Each measures ours, the machine's own rate and the peers in turn, so that a drift of the machine affects all
/// of them.
const ROUNDS: usize = 3;

fn select(names: &[String]) -> Result<Vec<&'static Workload>> {
    let known: Vec<&str> = WORKLOADS.iter().map(|w| w.name).collect();
    if let Some((_, message)) = unknown_name("workload", names, &known) {
        bail!(message);
    }
    let is_asked = |w: &&Workload| names.is_empty() || names.iter().any(|name| name == w.name);
    Ok(WORKLOADS.iter().filter(is_asked).collect())
}

pub fn bench(repository: &Repository, options: &Bench) -> Result<ExitCode> {
    let mut workloads = select(&options.names)?;
    if options.record && !options.allow_dirty {
        repository.refuse_changes()?;
    }
    let devices = Devices::open(&options.device)?;
    let gpu = devices.device_engine();
    if let Some(engine) = &gpu {
        let device = engine.device();
        ensure!(
            devices.training() == GPU,
            "bench measures the CPU or a GPU, and {device} is neither; use --device cpu or name a GPU"
        );
        println!("device: {device}");
        workloads.retain(|workload| workload.runs_on_devices());
    }
    let frameworks: &[Framework] = match &gpu {
        None => &[Framework::Torch, Framework::Jax],
        Some(_) => &[Framework::Cuda],
    };
    let wanted = |f: &&Framework| workloads.iter().any(|w| w.frameworks().contains(f));
    let frameworks: Vec<Framework> = frameworks.iter().filter(wanted).copied().collect();
    let peers = find_peers(repository, &frameworks);
    let mut all = Vec::new();
    let commit = repository.commit();
    for workload in workloads {
        let benchmark = measure(workload, options.repeats.into(), gpu.as_ref(), &peers, &commit)?;
        all.push((workload.name, benchmark));
    }
    if options.record {
        println!("{}", record(repository, all, gpu.is_some())?.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(
    workload: &'static Workload,
    repeats: usize,
    gpu: Option<&Arc<dyn Engine>>,
    peers: &[Peer],
    commit: &str,
) -> Result<Benchmark> {
    let threads = machine::cores();
    let per_round = repeats.div_ceil(ROUNDS);
    let ours = workload.start(threads, gpu)?;
    let has_peer = |peer: &&Peer| workload.frameworks().contains(&peer.framework);
    let mut times: Vec<(&Peer, Vec<PeerTimes>)> =
        peers.iter().filter(has_peer).map(|peer| (peer, Vec::new())).collect();
    let (mut own, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        own.push((ours.seconds)(per_round)?);
        if gpu.is_none() {
            rates.push(matrix_product_rate(threads, per_round)?);
        }
        // A failure discards the peer's times but not ours.
        times.retain_mut(|(peer, times)| match peer.times(workload, threads, per_round) {
            Ok(one) => {
                times.push(one);
                true
            }
            Err(why) => {
                let label = peer.framework.label();
                eprintln!("note: {label} is not shown for {}: {why:#}", workload.name);
                false
            }
        });
    }
    // A GPU's rate is measured by its peer, if available.
    rates.extend(times.iter().flat_map(|(_, times)| times).filter_map(|t| t.gemm_gflops));
    let (ours_s, rate) = (median(&own), median(&rates));
    let share = ours.operations / ours_s / 1e9 / rate;
    println!("{}: {}, {threads} threads", workload.name, workload.title);
    if rate.is_finite() {
        println!("  {:<38} {rate:8.1} GFLOP/s (f32)", "matrix products of this machine");
    }
    println!("  {:<38} {:8.3} ms", workload.unit().trim_start_matches("s "), 1e3 * ours_s);
    let mut measured = Benchmark {
        title: workload.title.to_owned(),
        unit: workload.unit().to_owned(),
        ours_s,
        torch_s: None,
        jax_s: None,
        gemm_gflops: rate,
        share_of_gemm: share,
        threads,
        peers: Vec::new(),
        machine: gpu.map_or_else(machine::processor, |engine| engine.device()),
        commit: commit.to_owned(),
    };
    for (peer, times) in &times {
        let line = |label: &str, seconds: &[f64]| {
            let seconds = median(seconds);
            println!("    {label:<36} {:8.3} ms, ratio {:5.2}", 1e3 * seconds, seconds / ours_s);
            Some(seconds)
        };
        let seconds: Vec<f64> = times.iter().map(|t| t.seconds).collect();
        let Some(first) = times.first() else { continue };
        let place = match peer.framework {
            Framework::Jax => &mut measured.jax_s,
            Framework::Torch | Framework::Cuda => &mut measured.torch_s,
        };
        *place = line(&first.implementation, &seconds);
        measured.peers.push(first.implementation.clone());
        for label in first.also.keys() {
            let seconds: Vec<f64> =
                times.iter().filter_map(|t| t.also.get(label)).copied().collect();
            line(&format!("  {label}"), &seconds);
        }
    }
    Ok(measured)
}

/// Stores the results in the reference record, in place of earlier ones of the same workloads on the CPU or on a GPU. Returns the
/// file.
fn record(
    repository: &Repository,
    measured: Vec<(&str, Benchmark)>,
    is_gpu: bool,
) -> Result<PathBuf> {
    ensure!(
        measured.iter().all(|(_, benchmark)| benchmark.gemm_gflops.is_finite()),
        "nothing is recorded, since PyTorch with CUDA measures the matrix-product rate of a GPU and did not run. Set \
         POSENC_PYTHON to a Python that has it, or remove --record"
    );
    let directory = repository.record();
    let _lock = lock::of_reference(repository)?;
    let mut all = Benchmarks::read(&directory)?;
    let prefix = if is_gpu { benchmark::ON_GPU } else { "" };
    for (name, mut benchmark) in measured {
        if is_gpu {
            benchmark.threads = 0;
        }
        all.0.insert(format!("{prefix}{name}"), benchmark);
    }
    all.write(&directory)?;
    Ok(directory.join(benchmark::FILE))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches two workloads with the same name, and an unknown name that is silently accepted.
    #[test]
    fn names_are_distinct_and_checked() {
        let names: Vec<String> = WORKLOADS.iter().map(|w| w.name.to_owned()).collect();
        assert_eq!(names.len(), 16 + usize::from(cfg!(feature = "attention")));
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), names.len());
        assert_eq!(select(&names).unwrap().len(), names.len());
        let message = select(&["simple-2b".to_owned()]).err().unwrap().to_string();
        assert!(
            message.starts_with("no workload `simple-2b`; allowed: closed-form, "),
            "{message}"
        );
        assert!(message.ends_with("; did you mean `simple-2d`?"), "{message}");
    }
}
