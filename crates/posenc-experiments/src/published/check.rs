//! Checks published values against the experiments, tables, plots, claims and errata that use them.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::slice::from_ref;

use posenc_math::errata;
use serde_json::Value;

use super::PublishedValue;
use crate::schema::claim::{Check, Select, same_place};
use crate::schema::protocol::{Fault, WithoutData};
use crate::schema::{Experiment, Group, Profile};
use crate::yaml::{FileError, hint, unknown_name};

/// Rejects values of a paper that nothing uses. `file` is only used in messages.
pub(super) fn values<'a>(
    file: &Path,
    paper: &str,
    values: impl Iterator<Item = &'a PublishedValue> + Clone,
    experiments: &[Experiment],
) -> Result<(), FileError> {
    let own = || experiments.iter().filter(|e| e.paper == paper);
    let items: Vec<&str> = own().map(|e| e.item.as_str()).collect();
    let printed: BTreeSet<&str> = values.clone().map(|value| value.item.as_str()).collect();
    let known = own().filter(|e| printed.contains(e.item.as_str()));
    let known: HashMap<&str, Known<'_>> = known.map(|e| (&*e.item, Known::of(e))).collect();
    for value in values {
        let PublishedValue { item, group, method, metric, .. } = value;
        if errata::quotes([paper, item, group, method, metric]) {
            continue;
        }
        let problem = match known.get(item.as_str()) {
            Some(known) => known.problem(value),
            None => unknown("item", item, &items),
        };
        if let Some((column, message)) = problem {
            return Err(FileError::of(file, message).at(value.line).key(column));
        }
    }
    Ok(())
}

fn unknown(what: &'static str, name: &String, allowed: &[&str]) -> Option<Fault> {
    unknown_name(what, from_ref(name), allowed).map(|(_, message)| (what, message))
}

/// Published values that a claim, a table or a plot shows; all methods if it names none.
struct Use<'a> {
    group: &'a str,
    method: Option<&'a str>,
    metric: &'a str,
}

impl<'a> Use<'a> {
    fn of(select: &'a Select) -> Self {
        Use { group: &select.group, method: select.method.as_deref(), metric: &select.metric }
    }
}

struct Known<'a> {
    experiment: &'a Experiment,
    uses: Vec<Use<'a>>,
    abscissas: HashMap<&'a str, Abscissas>,
}

impl<'a> Known<'a> {
    fn of(experiment: &'a Experiment) -> Self {
        let abscissas = experiment.groups.iter().map(|group| (&*group.id, Abscissas::of(group)));
        Known { experiment, uses: uses(experiment), abscissas: abscissas.collect() }
    }

    /// The column that names nothing, and what is allowed.
    fn problem(&self, value: &PublishedValue) -> Option<Fault> {
        let PublishedValue { group: id, method, metric, signal, .. } = value;
        let all = &self.experiment.groups;
        let group = self.experiment.group(id);
        let groups = all.iter().map(|group| &*group.id).chain(self.uses.iter().map(|u| u.group));
        let groups: BTreeSet<&str> = groups.collect();
        let own = || self.uses.iter().filter(|u| u.group == id);
        let measured = all.iter().filter(|own| group.is_none_or(|group| group.id == own.id));
        let measured = measured.flat_map(|group| &group.variants).map(|variant| &*variant.id);
        let methods: BTreeSet<&str> = measured.chain(own().filter_map(|u| u.method)).collect();
        let is_of = |u: &&Use<'_>| u.method.is_none_or(|own| own == method);
        let is_used = own().filter(is_of).any(|u| u.metric == metric);
        unknown("group", id, &Vec::from_iter(groups))
            // The paper's empty cell may belong to a method that nobody ran.
            .or_else(|| {
                unknown("method", method, &Vec::from_iter(methods))
                    .filter(|_| value.value.is_some())
            })
            .or_else(|| match group {
                _ if is_used => None,
                Some(group) if group.variants.iter().any(|variant| variant.id == *method) => {
                    Some(("metric", group.metric_problem(metric)?))
                }
                _ => {
                    let hint = hint(metric, own().map(|u| u.metric));
                    let used = "no claim, table or plot uses this metric of the group and method";
                    Some(("metric", format!("{used}; correct it or remove the row{hint}")))
                }
            })
            .or_else(|| {
                let x = value.x.filter(|x| !self.has_abscissa(*x, group, metric))?;
                let message = "is in no list of numbers of the group, and no epoch of a curve";
                Some(("x", format!("{x} {message}; correct it or remove the row")))
            })
            .or_else(|| {
                let kind = group.filter(|g| g.data.is_none() && !signal.is_empty())?.kind()?;
                let message =
                    "the group has no data, so its values have no signal; leave the field empty";
                (kind.without_data == WithoutData::Theory).then(|| ("signal", message.to_owned()))
            })
    }

    /// Whether the group, or any group for published values alone, has this abscissa.
    fn has_abscissa(&self, x: f64, group: Option<&Group>, metric: &str) -> bool {
        match group {
            Some(group) => self.abscissas.get(&*group.id).is_none_or(|all| all.has(x, metric)),
            None => self.abscissas.values().any(|all| all.has(x, metric)),
        }
    }
}

/// All uses of published values, apart from those next to measured ones.
fn uses(experiment: &Experiment) -> Vec<Use<'_>> {
    let mut uses = Vec::new();
    for claim in &experiment.claims {
        uses.extend(claim.all_checks().flat_map(Check::published).map(Use::of));
    }
    for table in &experiment.tables {
        for column in table.columns.iter().filter(|column| column.published) {
            let groups = match &column.published_group {
                Some(group) => from_ref(group),
                None => &table.groups,
            };
            let groups = groups.iter().chain(table.published_as.iter().map(|p| &p.group));
            let metric = column.published_metric.as_ref().unwrap_or(&column.metric);
            for group in groups {
                match &table.methods {
                    None => uses.push(Use { group, method: None, metric }),
                    Some(all) => {
                        uses.extend(all.iter().map(|m| Use { group, method: Some(m), metric }))
                    }
                }
            }
        }
    }
    for panel in experiment.plots.iter().flat_map(|plot| &plot.panels) {
        uses.extend(panel.published_as.iter().map(|p| Use {
            group: &p.group,
            method: Some(&p.method),
            metric: p.metric.as_ref().unwrap_or(&panel.metric),
        }));
    }
    uses
}

/// What the settings of a group say about its abscissas, at all profiles.
#[derive(Default)]
struct Abscissas {
    listed: Vec<f64>,
    /// Largest number of epochs or steps.
    epochs: f64,
    /// Whether a setting maps the numbers to other abscissas.
    are_mapped: bool,
}

impl Abscissas {
    fn of(group: &Group) -> Self {
        let of =
            |profile| (0..group.variants.len()).filter_map(move |i| group.resolved(profile, i));
        let mut found = Abscissas::default();
        // Most variants and profiles share their settings.
        let mut all: Vec<_> =
            Profile::ALL.into_iter().flat_map(of).map(|own| own.protocol.clone()).collect();
        all.dedup();
        for settings in all.iter().map(|own| own.json()) {
            collect(&settings, false, &mut found.listed);
            let length = ["epochs", "steps"].into_iter().filter_map(|k| settings.get(k)?.as_f64());
            found.epochs = length.fold(found.epochs, f64::max);
            let mapped = settings.get("abscissa").and_then(Value::as_str);
            found.are_mapped |= mapped.is_some_and(|mapped| mapped != "parameter");
        }
        found
    }

    /// Whether `x` is listed or, for curves, an epoch. Without either, the protocol has abscissas of its own.
    fn has(&self, x: f64, metric: &str) -> bool {
        let is_curve = self.listed.is_empty() || metric.contains("curve");
        self.are_mapped
            || self.listed.iter().any(|own| same_place(x, *own))
            || (is_curve && x.fract() == 0.0 && (0.0..=self.epochs).contains(&x))
            || (self.listed.is_empty() && self.epochs == 0.0)
    }
}

fn collect(value: &Value, is_in_list: bool, numbers: &mut Vec<f64>) {
    match value {
        Value::Number(number) if is_in_list => numbers.extend(number.as_f64()),
        Value::Array(values) => values.iter().for_each(|v| collect(v, true, numbers)),
        Value::Object(values) => values.values().for_each(|v| collect(v, false, numbers)),
        _ => {}
    }
}
