//! What everything would cost, estimated, and how far the estimates are from what is on record.

use super::MARKER;
use crate::Inputs;
use crate::costs::{Costs, ItemCosts, Sums};
use crate::markdown::{Align, Grid, cell, code, label, slug};
use crate::numbers::{MISSING, duration, significant, superscript};

/// Estimates within this factor of what was measured are taken for right.
const FACTOR: f64 = 2.0;

/// The page.
pub fn render(inputs: &Inputs<'_>, costs: &Costs) -> String {
    let mut text = format!("{MARKER}\n\n# Costs\n\n");
    text.push_str(&opening(costs));
    for paper in &inputs.catalog.papers {
        let own: Vec<&ItemCosts> = costs.items.iter().filter(|i| i.paper == paper.key).collect();
        if own.is_empty() {
            continue;
        }
        text.push_str(&format!("## [{}]({}.md)\n\n", label(&paper.title), paper.key));
        text.push_str(&table(costs, &own));
    }
    text.push_str("## All of it\n\n");
    text.push_str(&whole(costs));
    text.push_str("## Not run at this profile\n\n");
    text.push_str(&refused(costs));
    text.push_str("## Data that not everybody has\n\n");
    text.push_str(&needs(costs));
    text.trim_end().to_owned() + "\n"
}

fn opening(costs: &Costs) -> String {
    let (profile, cores, nodes) = (costs.profile.name(), costs.cores, costs.nodes);
    let rate = significant(costs.gpu_rate / 1e12, 3);
    format!(
        "What the profile `{profile}` would cost, item by item. Times are **estimates**: counted operations over rates that a \
         present-day core reaches, the same that order the jobs of a run. Only the last two columns were measured: the rate of training where units record one, and the \
         seconds of all units on record over the estimate for just these units, whatever their profile. Where that is far from 1, so may be \
         the other columns; a rate that is low beside that of its neighbors says that the units ran beside other work.\n\n\
         - **FLOP**: floating-point operations of training, and of measuring what was trained; {MISSING} where an item trains nothing.\n\
         - **{cores} cores**: estimated seconds on one core, over {cores}; at least the longest job, which runs on one core.\n\
         - **with a GPU**: operations that a GPU can take over at {rate} TFLOP/s, or the rest on {cores} cores, whichever takes longer. The \
         rate is an **assumption**, not a measurement; no GPU was measured.\n\
         - **{nodes} nodes**: of {cores} cores each (`--executor slurm`); at least the longest job.\n\n\
         `cargo xtask costs --cores C --nodes N --gpu-tflops R` gives the same for other numbers.\n\n"
    )
}

fn grid(costs: &Costs, first: &str) -> Grid {
    let mut grid = Grid::default();
    grid.column(first, Align::Left);
    for label in ["units".to_owned(), "FLOP".to_owned(), format!("{} cores", costs.cores)] {
        grid.column(label, Align::Right);
    }
    grid.column("with a GPU", Align::Right);
    grid.column(format!("{} nodes", costs.nodes), Align::Right);
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

/// Two digits and a power of ten.
fn scientific(value: f64) -> String {
    let text = format!("{value:.1e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{mantissa} × 10{}", superscript(exponent.parse().unwrap_or(0)))
}

fn table(costs: &Costs, own: &[&ItemCosts]) -> String {
    let mut grid = grid(costs, "item");
    grid.column("longest job", Align::Right);
    grid.column("GFLOP/s on record", Align::Right);
    grid.column("measured / estimated", Align::Right);
    for item in own {
        let name = format!("[{}]({}.md#{})", label(&item.name), item.paper, slug(&item.item));
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
    // Of what takes a second nobody needs an estimate.
    let telling = checks.iter().filter(|c| c.measured.max(c.estimated) >= 5.0);
    let (near, all) = telling.fold((0, 0), |(near, all), check| {
        let is_near = (1.0 / FACTOR..=FACTOR).contains(&check.ratio());
        (near + usize::from(is_near), all + 1)
    });
    format!(
        "{}Of {} items it is known which units are on record: {} measured, {} estimated. Of the {all} that take five seconds or more {near} were \
         estimated within a factor of {FACTOR}. Without a ratio are items without a record, and those of which records do not say which \
         units they hold.\n\n",
        grid.render(),
        checks.len(),
        duration(measured),
        duration(estimated)
    )
}

fn refused(costs: &Costs) -> String {
    let mut text = String::from(
        "Groups that say themselves why they do not run at this profile; they are not in the tables above.\n\n",
    );
    for item in &costs.items {
        for (group, reason) in &item.refused {
            text.push_str(&format!(
                "- [{}]({}.md#{}), {}: {}\n",
                label(&item.name),
                item.paper,
                slug(&item.item),
                code(group),
                cell(&reason.split_whitespace().collect::<Vec<_>>().join(" "))
            ));
        }
    }
    text + "\n"
}

fn needs(costs: &Costs) -> String {
    let mut text = String::from(
        "Groups for whose data nothing stands in. They are in the tables above, and run only where `--data` has the files.\n\n",
    );
    for item in &costs.items {
        for (group, set) in &item.needs {
            text.push_str(&format!(
                "- [{}]({}.md#{}), {}: {}\n",
                label(&item.name),
                item.paper,
                slug(&item.item),
                code(group),
                code(set)
            ));
        }
    }
    text + "\n"
}
