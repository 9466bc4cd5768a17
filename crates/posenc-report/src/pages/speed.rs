//! Run times of this project and of other frameworks, from the committed benchmark.

use std::collections::BTreeSet;

use anyhow::Result;
use minijinja::{Value, context};
use posenc_experiments::record::benchmark::ON_GPU;
use posenc_experiments::record::{Benchmark, Benchmarks, is_dirty};
use posenc_experiments::schema::Speed;

use crate::Inputs;
use crate::markdown::{code, plain};
use crate::template::{Templates, safe};
use crate::view::View;

/// The workloads of an item with the hardware and versions; `None` if the item names none.
pub fn of_item(inputs: &Inputs<'_>, view: &View<'_>) -> Option<Value> {
    let asked = &view.experiment.benchmarks;
    let recorded = &inputs.reference.benchmarks.0;
    let measured: Vec<&Benchmark> =
        asked.iter().filter_map(|s| recorded.get(&s.workload)).collect();
    let names: Vec<&str> = asked.iter().map(|s| s.workload.as_str()).collect();
    let row = |speed: &Speed| {
        let found = recorded.get(&speed.workload);
        let ratio =
            |other: fn(&Benchmark) -> Option<f64>| found.and_then(|b| Some(other(b)? / b.ours_s));
        // Without a better count the benchmark counts operations as if matrices were dense. Skipped
        // operations can then yield a share above 1, which is meaningless.
        let share = found.map(|b| b.share_of_gemm).filter(|share| *share <= 1.0);
        context! {
            covers => &speed.covers,
            workload => &speed.workload,
            times => speed.times,
            ours => found.map(|b| b.ours_s),
            torch => found.and_then(|b| b.torch_s),
            torch_ratio => ratio(|b| b.torch_s),
            jax => found.and_then(|b| b.jax_s),
            jax_ratio => ratio(|b| b.jax_s),
            percent => share.map(|share| format!("{:.0}", 1e2 * share)),
        }
    };
    (!asked.is_empty()).then(|| {
        context! {
            rows => asked.iter().map(row).collect::<Vec<_>>(),
            is_measured => !measured.is_empty(),
            with_jax => measured.iter().any(|b| b.jax_s.is_some()),
            machines => safe(measured_on(&measured)),
            command => format!("cargo xtask bench {}", names.join(" ")),
        }
    })
}

/// Processors and other frameworks; workloads can come from several benchmark runs.
fn measured_on(measured: &[&Benchmark]) -> String {
    let machines = measured.iter().map(|b| match b.threads {
        0 => plain(&b.machine),
        threads => format!("{}, {threads} threads", plain(&b.machine)),
    });
    let machines: BTreeSet<String> = machines.collect();
    let peers: BTreeSet<String> =
        measured.iter().flat_map(|b| &b.peers).map(|p| plain(p)).collect();
    let changed = measured.iter().filter(|b| is_dirty(&b.commit));
    let changed: BTreeSet<String> = changed.map(|b| code(&b.commit)).collect();
    let lists =
        [(machines, "", "; "), (peers, "", ", "), (changed, "uncommitted changes at ", ", ")];
    let texts = lists.into_iter().filter(|(list, ..)| !list.is_empty());
    let joined =
        |list: BTreeSet<String>, between| list.into_iter().collect::<Vec<_>>().join(between);
    let texts: Vec<String> =
        texts.map(|(list, before, between)| format!("{before}{}", joined(list, between))).collect();
    texts.join(" · ")
}

/// Renders all workloads measured together with another framework, first those of the CPU and then those of a GPU, each
/// sorted by speedup, smallest first. Empty if there are none.
pub fn overview(templates: &Templates, benchmarks: &Benchmarks) -> Result<String> {
    let (gpu, cpu): (Vec<_>, Vec<_>) =
        benchmarks.0.iter().partition(|(name, _)| name.starts_with(ON_GPU));
    let tables = [(cpu, "cargo xtask bench"), (gpu, "cargo xtask bench --device wgpu")];
    let tables = tables.map(|(all, command)| table(all.into_iter().map(|(_, b)| b), command));
    templates.render("speed_overview.md", context! { tables })
}

fn table<'a>(benchmarks: impl Iterator<Item = &'a Benchmark>, command: &str) -> Value {
    // Compare with the faster framework; the other comparison would flatter this project.
    let peer = |b: &Benchmark| {
        [b.torch_s, b.jax_s].into_iter().flatten().min_by(f64::total_cmp).map(|s| s / b.ours_s)
    };
    let mut rows: Vec<(f64, &Benchmark)> =
        benchmarks.filter_map(|b| peer(b).map(|ratio| (ratio, b))).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let row = |(ratio, b): &(f64, &Benchmark)| {
        let unit = b.unit.strip_prefix("s ").unwrap_or(&b.unit);
        context! { title => &b.title, unit, ours => b.ours_s, torch => b.torch_s, jax => b.jax_s, ratio }
    };
    let measured: Vec<&Benchmark> = rows.iter().map(|(_, b)| *b).collect();
    context! {
        rows => rows.iter().map(row).collect::<Vec<_>>(),
        with_jax => measured.iter().any(|b| b.jax_s.is_some()),
        machines => safe(measured_on(&measured)),
        command,
    }
}
