//! Settings, embedders, deviations and provenance of an item.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{Value, context};
use posenc_experiments::schema::{Group, Profile, Variant};
use posenc_math::embedder::{EmbedderSpec, ParameterValue};
use serde_json::Value as Json;

use crate::markdown::{Align, Grid, code, inline, plain};
use crate::numbers::{MISSING, distinct, mean_deviation, significant};
use crate::records::{Run, Side};
use crate::template::safe;
use crate::view::View;

/// Maximum length of a list of numbers that is printed in full.
const MAX_LIST: usize = 8;
/// Metrics beside the settings of methods, and their headings.
const MEASURED: [(&str, &str); 4] = [
    ("learning_rate", "chosen learning rate, mean"),
    ("encoding_params", "parameters of the encoding"),
    ("params", "parameters"),
    ("time", "time (s)"),
];
/// Maximum number of variants that are listed individually.
const MAX_VARIANTS: usize = 60;

/// The folded parts below an item: its definition, its groups with their settings, and the provenance of its runs.
pub fn of_item(view: &View<'_>) -> Value {
    let experiment = view.experiment;
    let mut laws = BTreeSet::new();
    // Groups and their methods, each with its settings.
    let mut known: Vec<(&str, Vec<(&Variant, String)>)> = Vec::new();
    let mut groups = Vec::new();
    for group in &experiment.groups {
        let found = profiles(view, group);
        let profile = found.first().map(|(profile, _)| *profile);
        let own = |i| profile.map(|p| settings(group, p, i, false)).unwrap_or_default();
        let methods = group.variants.iter().enumerate().map(|(i, v)| (v, own(i))).collect();
        let same = known.iter().find(|(_, of)| *of == methods).filter(|_| group.variants.len() > 1);
        let same_as = same.map(|(first, _)| *first);
        let of_profile = |(profile, sides): &(Profile, Vec<&str>)| {
            context! {
                name => profile.name(),
                sides => sides.join(", "),
                protocol => map(group, *profile, 0).0,
                settings => safe(settings(group, *profile, 0, true)),
            }
        };
        let table = profile.filter(|_| same_as.is_none()).and_then(|p| differences(view, group, p));
        let is_listed = same_as.is_none() && table.is_none();
        let embedders = if is_listed { embedders(group, &own, &mut laws) } else { Vec::new() };
        let more = group.variants.len().saturating_sub(MAX_VARIANTS);
        groups.push(context! {
            id => &group.id,
            set => group.data.as_ref().map(|data| &data.set),
            held_out => group.data.as_ref().and_then(|data| data.held_out.as_ref()),
            profiles => found.iter().map(of_profile).collect::<Vec<_>>(),
            same_as,
            table => table.map(safe),
            embedders,
            more => if is_listed { more } else { 0 },
        });
        known.push((&group.id, methods));
    }
    context! {
        definition => super::definition(experiment),
        deviations => &experiment.deviations,
        groups,
        runs => view.runs().map(provenance).collect::<Vec<_>>(),
    }
}

/// Profiles at which a group was run, with the sides that ran them; the `paper` profile if it was not run.
fn profiles(view: &View<'_>, group: &Group) -> Vec<(Profile, Vec<&'static str>)> {
    let mut found: BTreeMap<Profile, Vec<&'static str>> = BTreeMap::new();
    for run in view.runs() {
        let largest =
            run.table.rows.iter().filter(|r| r.group == group.id).map(|r| r.profile).max();
        if let Some(profile) = largest.filter(|p| group.runs_at(*p)) {
            found.entry(profile).or_default().push(run.side.name());
        }
    }
    if found.is_empty() && group.runs_at(Profile::Paper) {
        found.insert(Profile::Paper, Vec::new());
    }
    found.into_iter().rev().collect()
}

/// What differs between methods without an embedder: a column for each setting, and for each of [`MEASURED`] that was recorded.
fn differences(view: &View<'_>, group: &Group, profile: Profile) -> Option<String> {
    if group.variants.len() < 2 || group.variants.iter().any(|v| v.embedder.is_some()) {
        return None;
    }
    let of_variant = |i| {
        let mut found = BTreeMap::new();
        leaves("", &map(group, profile, i).1.into_iter().collect(), &mut found);
        found
    };
    let all: Vec<BTreeMap<String, String>> = (0..group.variants.len()).map(of_variant).collect();
    let names: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    let differs = |name: &&&String| all.iter().any(|own| own.get(**name) != all[0].get(**name));
    let names: Vec<&String> = names.iter().filter(differs).copied().collect();
    if names.is_empty() {
        return None;
    }
    // All settings of an encoding need no prefix.
    let prefix = names[0].split_once(": ").map(|(first, _)| format!("{first}: "));
    let prefix = prefix.filter(|prefix| names.iter().all(|name| name.starts_with(prefix)));
    let start = prefix.map_or(0, |prefix| prefix.len());
    let short = |name: &&String| plain(&name[start..]);
    let mut grid = Grid::default();
    grid.column("Method", Align::Left);
    grid.columns(names.iter().map(short), Align::Left);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (variant, own) in group.variants.iter().zip(&all) {
        let value = |name: &&String| own.get(*name).cloned().unwrap_or_else(|| MISSING.into());
        rows.push([plain(&variant.id)].into_iter().chain(names.iter().map(value)).collect());
    }
    for (run, (metric, label)) in view.runs().flat_map(|run| MEASURED.map(|own| (run, own))) {
        let mean = |id: &str| {
            let own = run.rows(&group.id, id, None, None).filter(|r| r.metric == metric);
            let values: Vec<f64> = own.map(|row| row.value).collect();
            (!values.is_empty()).then(|| significant(mean_deviation(&values).0, 3))
        };
        let cells: Vec<_> = group.variants.iter().map(|v| mean(&v.id)).collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let who = view.who(run.side).map(|who| format!("<br>{who}")).unwrap_or_default();
        grid.column(format!("{label}{who}"), Align::Right);
        for (row, cell) in rows.iter_mut().zip(cells) {
            row.push(cell.unwrap_or_else(|| MISSING.into()));
        }
    }
    for row in rows {
        grid.row(row);
    }
    Some(grid.render_in_parts(1))
}

/// Settings without nested ones, by the path to them.
fn leaves(
    path: &str,
    settings: &serde_json::Map<String, Json>,
    found: &mut BTreeMap<String, String>,
) {
    for (key, value) in settings {
        let key = format!("{path}{}", key.replace('_', " "));
        match value {
            Json::Object(own) => leaves(&format!("{key}: "), own, found),
            value => drop(found.insert(key, shown(value))),
        }
    }
}

/// The variants of a group by kind of embedder: what the variants of a kind share, with its law if that is not in `laws` yet, then
/// the settings and parameters in which they differ.
fn embedders(
    group: &Group,
    own: &impl Fn(usize) -> String,
    laws: &mut BTreeSet<String>,
) -> Vec<Value> {
    let listed = &group.variants[..group.variants.len().min(MAX_VARIANTS)];
    let kind_of = |variant: &Variant| variant.embedder.as_ref().map(|e| e.kind.clone());
    let kinds: Vec<Option<String>> = listed.iter().map(kind_of).collect();
    let mut embedders = Vec::new();
    for kind in distinct(&kinds) {
        let of_kind = || listed.iter().enumerate().filter(|(i, _)| kinds.get(*i) == Some(kind));
        let specs: Vec<&EmbedderSpec> =
            of_kind().filter_map(|(_, v)| v.embedder.as_ref()).collect();
        let is_shared = |name: &str, value: &ParameterValue| {
            specs.iter().all(|s| s.parameters.get(name) == Some(value))
        };
        let together = specs.len() > 1;
        let shared = specs.first().filter(|_| together).map(|first| {
            let mut common = (*first).clone();
            common.parameters.retain(|name, value| is_shared(name, value));
            formula(&common, laws)
        });
        let mut variants = Vec::new();
        for (i, variant) in of_kind() {
            let embedder = variant.embedder.as_ref().map(|spec| match together {
                false => formula(spec, laws),
                true => {
                    let mut rest = spec.clone();
                    rest.parameters.retain(|name, value| !is_shared(name, value));
                    values(&rest)
                }
            });
            let parts = embedder.into_iter().chain([own(i)]).filter(|part| !part.is_empty());
            let settings = parts.collect::<Vec<_>>().join(", ");
            if !settings.is_empty() {
                variants.push(context! { id => &variant.id, settings => safe(settings) });
            }
        }
        embedders.push(context! { shared => shared.map(safe), variants });
    }
    embedders
}

fn values(spec: &EmbedderSpec) -> String {
    let one = |(name, value): (&String, &ParameterValue)| {
        let value = match value {
            ParameterValue::Number(v) => significant(*v, 12),
            ParameterValue::Text(t) => code(t),
        };
        format!("{} {value}", plain(&name.replace('_', " ")))
    };
    spec.parameters.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// An embedder with its parameters, and with its law if that is not in `laws` yet.
fn formula(spec: &EmbedderSpec, laws: &mut BTreeSet<String>) -> String {
    let Some(kind) = posenc_math::embedder::find(&spec.kind) else { return code(&spec.kind) };
    let formula = kind.formula(spec);
    let shown = match formula.rsplit_once("$; ") {
        Some((law, parameters)) if !laws.insert(law.to_owned()) => parameters,
        _ => &formula,
    };
    format!("{} embedder, {}", kind.label, inline(shown))
}

/// A protocol's settings by name, in alphabetical order.
fn map(group: &Group, profile: Profile, variant: usize) -> (String, BTreeMap<String, Json>) {
    let Some(resolved) = group.resolved(profile, variant) else { return Default::default() };
    let mut settings: BTreeMap<String, Json> =
        serde_json::from_value(resolved.protocol.json()).unwrap_or_default();
    if resolved.seeds > 1 {
        settings.insert("seeds".into(), Json::from(resolved.seeds));
    }
    if group.first_seed > 0 {
        settings.insert("first_seed".into(), Json::from(group.first_seed));
    }
    if let Some(signals) = resolved.signals {
        settings.insert("signals".into(), Json::from(signals));
    }
    (resolved.protocol.name().to_owned(), settings)
}

/// Settings of one variant: those that all variants of the group share, or those that differ.
fn settings(group: &Group, profile: Profile, variant: usize, shared: bool) -> String {
    let all: Vec<_> = (0..group.variants.len()).map(|i| map(group, profile, i).1).collect();
    let own = map(group, profile, variant).1;
    let is_shared = |k: &str, v: &Json| all.iter().all(|m| m.get(k) == Some(v));
    let listed = own.iter().filter(|(k, v)| is_shared(k, v) == shared);
    listed.map(|(k, v)| setting(k, v)).collect::<Vec<_>>().join(", ")
}

fn setting(key: &str, value: &Json) -> String {
    format!("{} {}", plain(&key.replace('_', " ")), shown(value))
}

fn shown(value: &Json) -> String {
    match value {
        Json::Number(n) => n.as_f64().map_or_else(|| n.to_string(), |v| significant(v, 6)),
        Json::String(s) => code(s),
        Json::Array(all) if all.len() > MAX_LIST => {
            let ends = [&all[0], &all[1], &all[2]].map(shown).join(", ");
            let last = all.last().map(shown).unwrap_or_default();
            format!("{ends}, …, {last} ({} values)", all.len())
        }
        Json::Array(all) => all.iter().map(shown).collect::<Vec<_>>().join(", "),
        Json::Object(map) => {
            let parts: Vec<_> = map.iter().map(|(k, v)| setting(k, v)).collect();
            format!("({})", parts.join("; "))
        }
        other => other.to_string(),
    }
}

fn provenance(run: &Run) -> Value {
    let p = &run.provenance;
    context! {
        side => run.side.name(),
        is_reference => run.side == Side::Reference,
        command => &p.command,
        commit => &p.commit,
        earlier => safe(run.commits(|commit| **commit != p.commit).join("; ")),
        machine => &p.machine,
        cores => p.cores,
        data => &p.data,
        units => p.units,
        seed => p.seed,
        seconds => p.seconds,
        peak_mib => p.peak_memory.map(|bytes| bytes as f64 / 1_048_576.0),
    }
}
