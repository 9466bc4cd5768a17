//! What the recorded runs took: time, memory and rate of each item.

use minijinja::{Value, context};
use posenc_experiments::Profile;
use posenc_experiments::record::Row;

use super::links;
use crate::Inputs;
use crate::template::safe;

pub fn page(inputs: &Inputs<'_>) -> Value {
    let (mut tables, mut refused) = (Vec::new(), Vec::new());
    let (mut units, mut seconds) = (0, 0.0);
    for paper in &inputs.catalog.papers {
        let mut items = Vec::new();
        for experiment in inputs.catalog.experiments.iter().filter(|e| e.paper == paper.key) {
            let described = paper.items.iter().find(|item| item.item == experiment.item);
            let name = described.map_or(&experiment.title, |item| &item.name);
            let page = safe(links::item(&paper.key, &experiment.item));
            for group in &experiment.groups {
                if let Some(reason) = group.refused(Profile::Paper) {
                    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
                    refused.push(context! { name, page => &page, id => &group.id, reason });
                }
            }
            let Some(record) = inputs.reference.get(&experiment.paper, &experiment.item) else {
                continue;
            };
            let provenance = &record.provenance;
            units += provenance.units;
            seconds += provenance.seconds;
            let memory = provenance.peak_memory.filter(|bytes| *bytes > 0);
            let is_rate = |row: &&Row| row.metric == "rate" && row.unit == "GFLOP/s";
            let rates: Vec<f64> =
                record.table.rows.iter().filter(is_rate).map(|row| row.value).collect();
            items.push(context! {
                name,
                page,
                units => provenance.units,
                seconds => provenance.seconds,
                gib => memory.map(|bytes| bytes as f64 / f64::from(1 << 30)),
                rate => (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64),
                cores => provenance.cores,
                machine => &provenance.machine,
            });
        }
        if !items.is_empty() {
            let page = safe(links::paper(&paper.key));
            tables.push(context! { title => &paper.title, page, items });
        }
    }
    context! { tables, units, seconds, refused }
}
