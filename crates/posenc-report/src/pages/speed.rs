//! Run times of this project and of other frameworks, from the committed benchmark.

use std::collections::BTreeSet;

use posenc_experiments::record::benchmark::ON_GPU;
use posenc_experiments::record::{Benchmark, Benchmarks};
use posenc_experiments::schema::Speed;

use crate::Inputs;
use crate::markdown::{Align, Grid, cell, code, plain};
use crate::numbers::{MISSING, significant};
use crate::view::View;

/// Renders the table of an item with the hardware and versions; empty if the item names no workloads.
pub fn render(inputs: &Inputs<'_>, view: &View<'_>) -> String {
    let asked = &view.experiment.benchmarks;
    if asked.is_empty() {
        return String::new();
    }
    let recorded = &inputs.reference.benchmarks.0;
    let found: Vec<(&Speed, Option<&Benchmark>)> =
        asked.iter().map(|s| (s, recorded.get(&s.workload))).collect();
    let measured: Vec<&Benchmark> = found.iter().filter_map(|(_, b)| *b).collect();
    let names: Vec<&str> = asked.iter().map(|s| s.workload.as_str()).collect();
    let command = format!("cargo xtask bench {}", names.join(" "));
    if measured.is_empty() {
        let record = code(&format!("{command} --record"));
        return format!("*Not measured yet:* {record}\n\n");
    }
    let with_jax = measured.iter().any(|b| b.jax_s.is_some());
    let mut grid = Grid::default();
    grid.column("Workload", Align::Left);
    grid.columns(["ours", "PyTorch", "PyTorch ÷ ours"], Align::Right);
    if with_jax {
        grid.columns(["JAX", "JAX ÷ ours"], Align::Right);
    }
    grid.column("ours, share of the machine's GEMM rate", Align::Right);
    for (speed, benchmark) in &found {
        let mut cells =
            vec![format!("{}<br><sub>{}</sub>", cell(&speed.covers), code(&speed.workload))];
        let missing = MISSING.to_owned();
        let Some(b) = benchmark else {
            let empty = if with_jax { 6 } else { 4 };
            cells.extend(std::iter::repeat_n(missing, empty));
            grid.row(cells);
            continue;
        };
        let time =
            |seconds: Option<f64>| seconds.map_or(missing.clone(), |s| times(s, speed.times));
        let ratio = |s: Option<f64>| s.map_or(missing.clone(), |s| significant(s / b.ours_s, 3));
        cells.extend([time(Some(b.ours_s)), time(b.torch_s), ratio(b.torch_s)]);
        if with_jax {
            cells.extend([time(b.jax_s), ratio(b.jax_s)]);
        }
        // Without a better count the benchmark counts operations as if matrices were dense. Skipped
        // operations can then yield a share above 1, which is meaningless.
        let share = Some(b.share_of_gemm).filter(|share| *share <= 1.0);
        cells.push(share.map_or(missing.clone(), |share| format!("{:.0} %", 1e2 * share)));
        grid.row(cells);
    }
    format!(
        "Speed on the same cores; each row was measured in one run.\n\n{}\n\n<sub>medians over alternating rounds · {} · {}</sub>\n\n",
        grid.render().trim_end(),
        measured_on(&measured),
        code(&command)
    )
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
    let changed = measured.iter().filter(|b| b.commit.ends_with("-dirty"));
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
pub fn overview(benchmarks: &Benchmarks) -> String {
    let (gpu, cpu): (Vec<_>, Vec<_>) =
        benchmarks.0.iter().partition(|(name, _)| name.starts_with(ON_GPU));
    let tables = [(cpu, "cargo xtask bench"), (gpu, "cargo xtask bench --device wgpu")];
    let tables = tables.map(|(all, command)| table(all.into_iter().map(|(_, b)| b), command));
    tables.into_iter().filter(|table| !table.is_empty()).collect::<Vec<_>>().join("\n")
}

fn table<'a>(benchmarks: impl Iterator<Item = &'a Benchmark>, command: &str) -> String {
    // Compare with the faster framework; the other comparison would flatter this project.
    let peer = |b: &Benchmark| {
        [b.torch_s, b.jax_s].into_iter().flatten().min_by(f64::total_cmp).map(|s| s / b.ours_s)
    };
    let mut rows: Vec<(f64, &Benchmark)> =
        benchmarks.filter_map(|b| peer(b).map(|ratio| (ratio, b))).collect();
    if rows.is_empty() {
        return String::new();
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut grid = Grid::default();
    let with_jax = rows.iter().any(|(_, b)| b.jax_s.is_some());
    grid.column("workload", Align::Left).columns(["ours", "PyTorch"], Align::Right);
    if with_jax {
        grid.column("JAX", Align::Right);
    }
    grid.column(if with_jax { "faster peer ÷ ours" } else { "PyTorch ÷ ours" }, Align::Right);
    for (ratio, b) in &rows {
        let missing = || MISSING.to_owned();
        let time = |s: Option<f64>| s.map_or_else(missing, |s| times(s, 1));
        let [ours, torch, jax] = [Some(b.ours_s), b.torch_s, b.jax_s].map(time);
        let unit = b.unit.strip_prefix("s ").unwrap_or(&b.unit);
        let what = format!("{} <sub>{}</sub>", cell(&b.title), cell(unit));
        let jax = with_jax.then_some(jax);
        let cells = [what, ours, torch].into_iter().chain(jax).chain([significant(*ratio, 2)]);
        grid.row(cells.collect());
    }
    let measured: Vec<&Benchmark> = rows.into_iter().map(|(_, b)| b).collect();
    format!(
        "{}\n\n<sub>medians, each row measured in one run · {} · {}</sub>\n",
        grid.render().trim_end(),
        measured_on(&measured),
        code(command)
    )
}

/// The time of one call and, if a signal needs several calls, their total.
fn times(seconds: f64, count: usize) -> String {
    let one = format!("{} ms", significant(1e3 * seconds, 3));
    match count {
        1 => one,
        count => {
            format!("{one}<br><sub>× {count} = {} s</sub>", significant(seconds * count as f64, 3))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn benchmark(title: &str, ours_s: f64, torch_s: Option<f64>, jax_s: Option<f64>) -> Benchmark {
        Benchmark {
            title: title.into(),
            unit: "s per step".into(),
            ours_s,
            torch_s,
            jax_s,
            gemm_gflops: 100.0,
            share_of_gemm: 0.5,
            threads: 2,
            peers: vec!["torch 2".into()],
            machine: "M".into(),
            commit: String::new(),
        }
    }

    /// Catches a ratio with the slower framework, a listed workload without a comparison, and an order
    /// that hides slower workloads.
    #[test]
    fn the_overview_compares_with_the_faster_peer_and_is_sorted_by_speedup() {
        let all = [
            ("a", benchmark("fast", 0.001, Some(0.01), Some(0.004))),
            ("b", benchmark("slow", 0.002, Some(0.001), None)),
            ("c", benchmark("alone", 0.002, None, None)),
            ("wgpu/a", benchmark("on a GPU", 0.002, Some(0.001), None)),
        ];
        let all = Benchmarks(all.map(|(name, b)| (name.to_owned(), b)).into());
        let text = overview(&all);
        let rows: Vec<&str> = text.lines().filter(|l| l.contains("per step")).collect();
        assert_eq!(rows.len(), 3, "{text}");
        assert!(rows[0].contains("slow") && rows[0].ends_with("| – | 0.5 |"), "{text}");
        assert!(rows[1].contains("fast") && rows[1].ends_with("| 4 ms | 4 |"), "{text}");
        // The GPU has a table of its own, without a column for JAX; its row would be the first of the other table.
        assert!(rows[2].contains("on a GPU") && rows[2].ends_with("| 1 ms | 0.5 |"), "{text}");
        assert_eq!(text.matches("| workload |").count(), 2, "{text}");
        assert_eq!(overview(&Benchmarks::default()), "");
    }
}
