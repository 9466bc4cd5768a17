//! Networks on embedded positions: one full-batch Adam step.

mod embedding;
mod operations;
mod workload;

use std::sync::Arc;

use anyhow::Result;
use posenc_math::statistics::median;
use posenc_nets::{CpuEngine, Engine, Task};
use serde::Serialize;

use self::operations::operations;
use self::workload::Threading;
pub use self::workload::{WORKLOADS, Workload};

use super::measure::{Crew, matrix_product_rate, median_of};
use super::peer::{Framework, NetworkTimes, Peer};
use super::{Measured, ROUNDS};

/// Minimum duration of one measurement in seconds.
const AT_LEAST_S: f64 = 0.3;

/// Times that only some workloads have.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct More {
    /// Number of our runs that share a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<usize>,
    /// Our time with an embedding without zeros.
    #[serde(skip_serializing_if = "Option::is_none")]
    ours_without_bands_s: Option<f64>,
    /// PyTorch's time per column with 20 columns in one step.
    #[serde(skip_serializing_if = "Option::is_none")]
    torch_columns_s: Option<f64>,
    /// JAX's time per column with 20 columns in one step.
    #[serde(skip_serializing_if = "Option::is_none")]
    jax_columns_s: Option<f64>,
    /// PyTorch's time with one process per thread, like our sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    torch_processes_s: Option<f64>,
    /// JAX's time with one process per thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    jax_processes_s: Option<f64>,
}

/// Times of one peer, one entry per round.
struct PeerRounds<'a> {
    peer: &'a Peer,
    times: Vec<NetworkTimes>,
    processes: Vec<f64>,
    /// The peer failed once and is not run again.
    failed: bool,
}

impl<'a> PeerRounds<'a> {
    fn new(peer: &'a Peer) -> Self {
        PeerRounds { peer, times: Vec::new(), processes: Vec::new(), failed: false }
    }

    /// Runs the peer once. A failure discards the peer's times but not ours.
    fn round(&mut self, workload: &Workload, threads: usize, repeats: usize) {
        if self.failed {
            return;
        }
        if let Err(why) = self.ask(workload, threads, repeats) {
            let label = self.peer.framework.label();
            eprintln!("note: {label} is not shown for {}: {why:#}", workload.name);
            self.failed = true;
            self.times.clear();
            self.processes.clear();
        }
    }

    fn ask(&mut self, workload: &Workload, threads: usize, repeats: usize) -> Result<()> {
        let small = workload.has_short_steps();
        self.times.push(self.peer.network(workload.name, threads, repeats, small)?);
        let on_cpu = self.peer.framework != Framework::Cuda;
        if on_cpu && workload.threading == Threading::PerSession && threads > 1 {
            self.processes.push(self.peer.network_processes(workload.name, threads, repeats)?);
        }
        Ok(())
    }
}

/// A device that trains instead of the CPU.
pub struct Device {
    pub engine: Arc<dyn Engine>,
    /// Whether it is a GPU and not a software adapter; the CPU's matrix-product rate does not apply to a GPU.
    pub is_gpu: bool,
}

pub fn measure(
    workload: &Workload,
    threads: usize,
    repeats: usize,
    peers: &[Peer],
    device: Option<&Device>,
) -> Result<Measured> {
    // Matrix products are short, so each round uses all repeats; steps divide the repeats among the rounds.
    let per_round = repeats.div_ceil(ROUNDS);
    let alone = workload.threading == Threading::Within || device.is_some();
    let sessions = if alone { 1 } else { threads };
    let task = workload.task(workload.embedding)?;
    // Copies of a task share the embedding, so the sessions do.
    let engine: Arc<dyn Engine> = match device {
        Some(device) => device.engine.clone(),
        None => Arc::new(CpuEngine::new(threads / sessions)),
    };
    let crew = |task: &Task| Crew::start(vec![task.clone(); sessions], &engine);
    let operations = operations(&task);
    let mut ours = (crew(&task)?, Vec::new());
    // The device engine always multiplies whole matrices.
    let without_bands = workload.without_bands.filter(|_| device.is_none());
    let new = |embedding| anyhow::Ok((crew(&workload.task(embedding)?)?, Vec::new()));
    let mut without_bands = without_bands.map(new).transpose()?;
    drop(task);
    let is_gpu = device.is_some_and(|device| device.is_gpu);
    // Times are divided by the number of columns of all sessions.
    let share = (sessions * workload.columns) as f64;
    let mut rates = Vec::new();
    let mut peers: Vec<PeerRounds<'_>> = peers.iter().map(PeerRounds::new).collect();
    for _ in 0..ROUNDS {
        for (crew, seconds) in std::iter::once(&mut ours).chain(&mut without_bands) {
            seconds.push(crew.seconds_per_step(per_round, AT_LEAST_S)? / share);
        }
        if !is_gpu {
            rates.push(matrix_product_rate(threads, repeats)?);
        }
        for peer in &mut peers {
            peer.round(workload, threads, per_round);
        }
    }
    let ours_s = median(&ours.1);
    // A GPU's rate is measured by its peer, if available.
    let rate = if is_gpu {
        peers.iter().find_map(|p| p.times.first()?.gemm_gflops).unwrap_or(f64::NAN)
    } else {
        median(&rates)
    };
    let of = |framework| peers.iter().find(|p| p.peer.framework == framework);
    let cuda = of(Framework::Cuda).filter(|cuda| !cuda.times.is_empty());
    let (torch, jax) = (cuda.or_else(|| of(Framework::Torch)), of(Framework::Jax));
    // Medians over the rounds; `None` if not measured.
    let step = |peer: &PeerRounds<'_>| median_of(peer.times.iter().map(|t| t.step_s));
    let per_column =
        |peer: &PeerRounds<'_>| median_of(peer.times.iter().filter_map(|t| t.per_column_of_20_s));
    let processes = |peer: &PeerRounds<'_>| median_of(peer.processes.iter().copied());
    let versions: Vec<String> =
        peers.iter().filter_map(|p| Some(p.times.first()?.implementation.clone())).collect();
    let measured = Measured {
        name: workload.name,
        title: workload.title.to_owned(),
        unit: workload.unit(),
        ours_s,
        torch_s: torch.and_then(step),
        jax_s: jax.and_then(step),
        gemm_gflops: rate,
        share_of_gemm: operations / workload.columns as f64 / ours_s / 1e9 / rate,
        threads,
        peers: versions,
        more: More {
            columns: (workload.columns > 1).then_some(workload.columns),
            ours_without_bands_s: without_bands.map(|w| median(&w.1)),
            torch_columns_s: torch.and_then(per_column),
            jax_columns_s: jax.and_then(per_column),
            torch_processes_s: torch.and_then(processes),
            jax_processes_s: jax.and_then(processes),
        },
    };
    print(workload, &measured);
    Ok(measured)
}

fn print(workload: &Workload, measured: &Measured) {
    let (name, threads) = (workload.name, measured.threads);
    println!("{name}: {}, {threads} threads", workload.title);
    if measured.gemm_gflops.is_finite() {
        println!("  matrix products of this machine    {:8.1} GFLOP/s (f32)", measured.gemm_gflops);
    }
    if !measured.peers.is_empty() {
        println!("  peers                              {}", measured.peers.join("; "));
    }
    let ours = measured.ours_s;
    let share = match measured.share_of_gemm.is_finite() {
        true => format!(", {:.0} % of the matrix-product rate", 1e2 * measured.share_of_gemm),
        false => String::new(),
    };
    println!(
        "  {:<34} {:8.3} ms{share}",
        match workload.threading {
            Threading::Within => "one step",
            Threading::PerSession => "per signal and step",
        },
        1e3 * ours,
    );
    let more = &measured.more;
    for (label, time) in [
        ("PyTorch", measured.torch_s),
        ("PyTorch, 20 columns in one step", more.torch_columns_s),
        ("PyTorch, one process per thread", more.torch_processes_s),
        ("JAX", measured.jax_s),
        ("JAX, 20 columns in one step", more.jax_columns_s),
        ("JAX, one process per thread", more.jax_processes_s),
        ("ours, features without bands", more.ours_without_bands_s),
    ] {
        if let Some(time) = time {
            println!("    {label:<32} {:8.3} ms, ratio {:5.2}", 1e3 * time, time / ours);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a key that is renamed, or omitted if a peer is missing.
    #[test]
    fn every_workload_is_written_with_the_same_keys() {
        let measured = Measured {
            name: "simple-2d",
            title: String::new(),
            unit: WORKLOADS[0].unit(),
            ours_s: 0.5,
            torch_s: None,
            jax_s: Some(1.0),
            gemm_gflops: 100.0,
            share_of_gemm: 0.9,
            threads: 2,
            peers: Vec::new(),
            more: More::default(),
        };
        let written = serde_json::to_value(&measured).unwrap();
        let mut keys: Vec<&String> = written.as_object().unwrap().keys().collect();
        keys.sort_unstable();
        let expected =
            "gemm_gflops jax_s name ours_s peers share_of_gemm threads title torch_s unit";
        assert_eq!(keys, expected.split(' ').collect::<Vec<_>>());
        assert!(written["torch_s"].is_null());
        assert_eq!(written["jax_s"], 1.0);
    }
}
