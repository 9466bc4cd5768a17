//! Our times beside those of other frameworks, as the committed benchmark has them.

use std::collections::BTreeSet;

use posenc_experiments::record::Benchmark;
use posenc_experiments::schema::Speed;

use crate::Inputs;
use crate::markdown::{Align, Grid, cell, code, plain};
use crate::numbers::{MISSING, significant};
use crate::view::View;

/// The table of an item, with what it was measured on; empty without workloads.
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
        return format!("**Speed.** *Not measured yet:* {record}\n\n");
    }
    let with_jax = measured.iter().any(|b| b.jax_s.is_some());
    let mut grid = Grid::default();
    grid.column("What", Align::Left);
    for label in ["ours", "PyTorch", "PyTorch ÷ ours"] {
        grid.column(label, Align::Right);
    }
    if with_jax {
        grid.column("JAX", Align::Right);
        grid.column("JAX ÷ ours", Align::Right);
    }
    grid.column("our share of the machine's matrix-product rate", Align::Right);
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
        // Arithmetic is counted as of dense matrices where the benchmark has no better count: what is
        // left out of it can make more than the whole rate, which says nothing.
        let share = Some(b.share_of_gemm).filter(|share| *share <= 1.0);
        cells.push(share.map_or(missing.clone(), |share| format!("{:.0} %", 1e2 * share)));
        grid.row(cells);
    }
    // Workloads may come from several runs of the benchmark.
    let machines: BTreeSet<String> =
        measured.iter().map(|b| format!("{}, {} threads", plain(&b.machine), b.threads)).collect();
    let peers: BTreeSet<&String> = measured.iter().flat_map(|b| &b.peers).collect();
    let peers = match peers.is_empty() {
        true => String::new(),
        false => {
            let names: Vec<String> = peers.into_iter().map(|p| plain(p)).collect();
            format!(" · {}", names.join(", "))
        }
    };
    let machines: Vec<String> = machines.into_iter().collect();
    format!(
        "**Speed on the same cores, each row in one run**\n\n{}\n\n<sub>medians of alternating rounds · {}{peers} · {}</sub>\n\n",
        grid.render().trim_end(),
        machines.join("; "),
        code(&command)
    )
}

/// One time and, where a signal takes several, all of them.
fn times(seconds: f64, count: usize) -> String {
    let one = format!("{} ms", significant(1e3 * seconds, 3));
    match count {
        1 => one,
        count => {
            format!("{one}<br><sub>× {count} = {} s</sub>", significant(seconds * count as f64, 3))
        }
    }
}
