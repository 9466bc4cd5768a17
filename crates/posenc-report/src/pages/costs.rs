//! Cost estimates for all items, and a comparison of the estimates with recorded times.

use minijinja::{Value, context};

use super::links;
use crate::Inputs;
use crate::costs::{Costs, ItemCosts, Sums};
use crate::numbers::{MISSING, superscript};
use crate::template::safe;

/// An estimate within this factor of the measured time counts as accurate.
const FACTOR: f64 = 2.0;
/// Estimates for items of fewer seconds do not matter.
const TELLING: f64 = 5.0;

pub fn page(inputs: &Inputs<'_>, costs: &Costs) -> Value {
    let tables = inputs.catalog.papers.iter().filter_map(|paper| {
        let own: Vec<&ItemCosts> = costs.items.iter().filter(|i| i.paper == paper.key).collect();
        let items = own.iter().map(|item| {
            context! {
                name => &item.name,
                page => safe(links::item(&item.paper, &item.item)),
                sums => sums(&costs.sums([*item])),
                longest => item.longest,
                rate => item.rate.map(|rate| rate / 1e9),
                ratio => item.check.map(|check| check.ratio()),
                measured => item.check.map(|check| check.measured),
                checked => item.check.map(|check| check.units),
            }
        });
        (!own.is_empty()).then(|| {
            context! {
                title => &paper.title,
                page => safe(links::paper(&paper.key)),
                items => items.collect::<Vec<_>>(),
                sums => sums(&costs.sums(own.iter().copied())),
            }
        })
    });
    let checks: Vec<_> = costs.items.iter().filter_map(|i| i.check).collect();
    let telling = || checks.iter().filter(|c| c.measured.max(c.estimated) >= TELLING);
    let groups = |of: fn(&ItemCosts) -> &[(String, String)]| {
        let of_item = |item: &ItemCosts| {
            let page = safe(links::item(&item.paper, &item.item));
            let name = item.name.clone();
            of(item)
                .iter()
                .map(move |(id, text)| context! { name => &name, page => &page, id, text })
                .collect::<Vec<_>>()
        };
        costs.items.iter().flat_map(of_item).collect::<Vec<_>>()
    };
    context! {
        profile => costs.profile.name(),
        cores => costs.cores,
        nodes => costs.nodes,
        tflops => costs.gpu_rate / 1e12,
        tables => tables.collect::<Vec<_>>(),
        sums => sums(&costs.sums(&costs.items)),
        checked => checks.len(),
        measured => checks.iter().map(|c| c.measured).sum::<f64>(),
        estimated => checks.iter().map(|c| c.estimated).sum::<f64>(),
        telling => telling().count(),
        near => telling().filter(|c| (1.0 / FACTOR..=FACTOR).contains(&c.ratio())).count(),
        factor => FACTOR.to_string(),
        refused => groups(|item| &item.refused),
        needs => groups(|item| &item.needs),
    }
}

fn sums(sums: &Sums) -> Value {
    let operations = match sums.operations {
        0.0 => MISSING.to_owned(),
        some => scientific(some),
    };
    let Sums { units, machine, with_gpu, cluster, .. } = *sums;
    context! { units, operations, machine, with_gpu, cluster }
}

/// Formats a value with two significant digits and a power of ten.
fn scientific(value: f64) -> String {
    let text = format!("{value:.1e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{mantissa} × 10{}", superscript(exponent.parse().unwrap_or(0)))
}
