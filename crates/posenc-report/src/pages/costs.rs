//! What the recorded runs took: time, memory and rate of each item.

use posenc_experiments::Profile;
use posenc_experiments::record::{ItemRecord, Row};

use super::{Content, places};
use crate::Inputs;
use crate::markdown::{Align, Grid, cell, code, label};
use crate::numbers::{MISSING, duration, significant};

const OPENING: &str = "This page shows what the recorded units of each item took. `cargo xtask reproduce --profile paper --dry-run` estimates \
    other runs from these times.\n\n\
    - **units**: number of units of the item's last recorded run. Several runs may have made the record; the numbers of this page are \
    those of the last.\n\
    - **core time**: sum of their times. Each unit runs on one core, so a machine with more cores is done sooner.\n\
    - **memory**: largest memory of the process, in which as many units ran at a time as the machine has cores.\n\
    - **GFLOP/s**: mean training rate, if units record one. A rate far below that of neighboring items indicates that the units shared the \
    machine with other work.\n\n";

pub fn render(inputs: &Inputs<'_>) -> Content {
    let mut text = OPENING.to_owned();
    let (mut units, mut seconds) = (0, 0.0);
    let mut refused = String::new();
    for paper in &inputs.catalog.papers {
        let mut grid = Grid::default();
        grid.column("item", Align::Left);
        grid.columns(["units", "core time", "memory", "GFLOP/s", "cores"], Align::Right);
        grid.column("processor", Align::Left);
        for experiment in inputs.catalog.experiments.iter().filter(|e| e.paper == paper.key) {
            let described = paper.items.iter().find(|i| i.item == experiment.item);
            let name = described.map_or(&experiment.title, |i| &i.name);
            let name = format!("[{}]({})", label(name), places::item(&paper.key, &experiment.item));
            for group in &experiment.groups {
                if let Some(reason) = group.refused(Profile::Paper) {
                    let reason = cell(&reason.split_whitespace().collect::<Vec<_>>().join(" "));
                    refused.push_str(&format!("- {name}, {}: {reason}\n", code(&group.id)));
                }
            }
            let key = (experiment.paper.clone(), experiment.item.clone());
            if let Some(record) = inputs.reference.items.get(&key) {
                units += record.provenance.units;
                seconds += record.provenance.seconds;
                grid.row(row(name, record));
            }
        }
        if !grid.is_empty() {
            text.push_str(&format!("## [{}]({}.md)\n\n", label(&paper.title), paper.key));
            text.push_str(&grid.render());
        }
    }
    text.push_str(&format!("All {units} units took {} on one core.\n\n", duration(seconds)));
    text.push_str("## Not run at profile `paper`\n\nEach of these groups gives its reason.\n\n");
    text.push_str(&refused);
    text.push('\n');
    Content { title: "Costs".into(), text }
}

fn row(name: String, record: &ItemRecord) -> Vec<String> {
    let provenance = &record.provenance;
    let memory = provenance.peak_memory.filter(|bytes| *bytes > 0);
    let memory = memory.map(|bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)));
    let is_rate = |row: &&Row| row.metric == "rate" && row.unit == "GFLOP/s";
    let rates: Vec<f64> = record.table.rows.iter().filter(is_rate).map(|row| row.value).collect();
    let rate = (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64);
    vec![
        name,
        provenance.units.to_string(),
        duration(provenance.seconds),
        memory.unwrap_or_else(|| MISSING.to_owned()),
        rate.map_or_else(|| MISSING.to_owned(), |rate| significant(rate, 2)),
        provenance.cores.to_string(),
        label(&provenance.machine),
    ]
}
