//! Cost estimates for all items, and a comparison of the estimates with recorded times.

use super::{Content, places};
use crate::Inputs;
use crate::costs::{Costs, ItemCosts, Sums};
use crate::markdown::{Align, Grid, cell, code, label};
use crate::numbers::{MISSING, duration, significant, superscript};

/// An estimate within this factor of the measured time counts as accurate.
const FACTOR: f64 = 2.0;

pub fn render(inputs: &Inputs<'_>, costs: &Costs) -> Content {
    let mut text = opening(costs);
    for paper in &inputs.catalog.papers {
        let own: Vec<&ItemCosts> = costs.items.iter().filter(|i| i.paper == paper.key).collect();
        if own.is_empty() {
            continue;
        }
        text.push_str(&format!("## [{}]({}.md)\n\n", label(&paper.title), paper.key));
        text.push_str(&table(costs, &own));
    }
    text.push_str("## Total\n\n");
    text.push_str(&whole(costs));
    text.push_str("## Not run at this profile\n\n");
    let opening = "These groups do not run at this profile and are not in the tables above. Each gives its reason.";
    let reason = |text: &str| cell(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    text.push_str(&listed(costs, opening, |item| &item.refused, reason));
    text.push_str("## Data that you must provide\n\n");
    let opening = "These groups have no substitute for their data. They are in the tables above but run only if `--data` contains the files.";
    text.push_str(&listed(costs, opening, |item| &item.needs, code));
    Content { title: "Costs".into(), text }
}

fn opening(costs: &Costs) -> String {
    let (profile, cores, nodes) = (costs.profile.name(), costs.cores, costs.nodes);
    let rate = significant(costs.gpu_rate / 1e12, 3);
    format!(
        "This page estimates the cost of each item at profile `{profile}`. Times are **estimates**: the number of operations divided by the \
         rate of a present-day core. The scheduler orders jobs by the same estimates. Only the last two columns are measured. The first is \
         the training rate, if units record one. The second is the recorded time of all units divided by the estimate for the same units, \
         at any profile. If this ratio is far from 1, the other columns can be equally wrong. A rate far below that of neighboring items \
         indicates that the units shared the machine with other work.\n\n\
         - **FLOP**: floating-point operations of training and evaluation; {MISSING} if an item trains nothing.\n\
         - **{cores} cores**: estimated time on one core divided by {cores}, but at least the time of the longest job, which runs on one core.\n\
         - **with a GPU**: time of the operations that a GPU can run at {rate} TFLOP/s, or of the rest on {cores} cores, whichever is longer. An \
         NVIDIA H100 trained the deep networks of Table 1 of `trading` at 16 to 22 TFLOP/s ([speed](../docs/SPEED.md)). Networks whose steps \
         take a fraction of a millisecond are far below that.\n\
         - **{nodes} nodes**: {nodes} nodes with {cores} cores each (`--slurm {nodes}`), but at least the time of the longest job.\n\n"
    )
}

fn grid(costs: &Costs, first: &str) -> Grid {
    let mut grid = Grid::default();
    grid.column(first, Align::Left);
    let (cores, nodes) = (format!("{} cores", costs.cores), format!("{} nodes", costs.nodes));
    grid.columns(["units", "FLOP", &cores, "with a GPU", &nodes], Align::Right);
    grid
}

fn cells(sums: &Sums) -> Vec<String> {
    let operations = match sums.operations {
        0.0 => MISSING.to_owned(),
        some => scientific(some),
    };
    vec![
        sums.units.to_string(),
        operations,
        duration(sums.machine),
        duration(sums.with_gpu),
        duration(sums.cluster),
    ]
}

/// Formats a value with two significant digits and a power of ten.
fn scientific(value: f64) -> String {
    let text = format!("{value:.1e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{mantissa} × 10{}", superscript(exponent.parse().unwrap_or(0)))
}

fn table(costs: &Costs, own: &[&ItemCosts]) -> String {
    let mut grid = grid(costs, "item");
    grid.columns(["longest job", "measured GFLOP/s", "measured / estimated"], Align::Right);
    for item in own {
        let name = format!("[{}]({})", label(&item.name), places::item(&item.paper, &item.item));
        let mut row = vec![name];
        row.extend(cells(&costs.sums([*item])));
        row.push(duration(item.longest));
        row.push(item.rate.map_or_else(|| MISSING.to_owned(), |rate| significant(rate / 1e9, 2)));
        row.push(item.check.map_or_else(
            || MISSING.to_owned(),
            |check| {
                let measured = duration(check.measured);
                format!("{} ({measured}, {} units)", significant(check.ratio(), 2), check.units)
            },
        ));
        grid.row(row);
    }
    let mut row = vec!["**all**".to_owned()];
    row.extend(cells(&costs.sums(own.iter().copied())));
    row.extend([MISSING.to_owned(), MISSING.to_owned(), MISSING.to_owned()]);
    grid.row(row);
    grid.render()
}

fn whole(costs: &Costs) -> String {
    let mut grid = grid(costs, "");
    let mut row = vec!["all items".to_owned()];
    row.extend(cells(&costs.sums(&costs.items)));
    grid.row(row);
    let checks: Vec<_> = costs.items.iter().filter_map(|i| i.check).collect();
    let measured: f64 = checks.iter().map(|c| c.measured).sum();
    let estimated: f64 = checks.iter().map(|c| c.estimated).sum();
    // Estimates for items of a few seconds do not matter.
    let telling = checks.iter().filter(|c| c.measured.max(c.estimated) >= 5.0);
    let (near, all) = telling.fold((0, 0), |(near, all), check| {
        let is_near = (1.0 / FACTOR..=FACTOR).contains(&check.ratio());
        (near + usize::from(is_near), all + 1)
    });
    format!(
        "{}The records of {} items list their units: {} measured, {} estimated. Of the {all} items that take five seconds or more, {near} were \
         estimated within a factor of {FACTOR}. Items without a ratio have no record, or their record does not list its units.\n\n",
        grid.render(),
        checks.len(),
        duration(measured),
        duration(estimated)
    )
}

/// Lists groups, each with the text that `of` returns for it.
fn listed(
    costs: &Costs,
    opening: &str,
    of: impl Fn(&ItemCosts) -> &[(String, String)],
    shown: impl Fn(&str) -> String,
) -> String {
    let mut text = format!("{opening}\n\n");
    for item in &costs.items {
        for (group, what) in of(item) {
            let place = places::item(&item.paper, &item.item);
            let (name, group, what) = (label(&item.name), code(group), shown(what));
            text.push_str(&format!("- [{name}]({place}), {group}: {what}\n"));
        }
    }
    text + "\n"
}
