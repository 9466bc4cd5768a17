//! Settings, embedders, deviations and provenance of an item.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use posenc_experiments::schema::{Group, Profile, Variant};
use posenc_math::embedder::{EmbedderSpec, ParameterValue};
use serde_json::Value;

use super::definition;
use crate::Inputs;
use crate::markdown::{code, details, inline, item, plain};
use crate::numbers::{counted, distinct, duration, fixed, significant};
use crate::records::{Run, Side};
use crate::view::View;

/// Maximum length of a list of numbers that is printed in full.
const LIST: usize = 8;
/// Maximum number of variants that are listed individually.
const VARIANTS: usize = 60;

/// Renders the folded parts below an item, with its table of speed.
pub fn render(inputs: &Inputs<'_>, view: &View<'_>, speed: &str) -> String {
    let experiment = view.experiment;
    let mut text = String::new();
    if !experiment.deviations.is_empty() {
        let list: Vec<_> = experiment.deviations.iter().map(|d| format!("- {}", item(d))).collect();
        text.push_str(&details("Deviations and choices", &list.join("\n")));
    }
    text.push_str(&details("Parameters", &parameters(inputs, view)));
    if !speed.is_empty() {
        text.push_str(&details("Speed next to PyTorch and JAX", speed));
    }
    if view.runs().next().is_some() {
        let parts: Vec<_> = view
            .runs()
            .map(|run| {
                let heading = view.who(run.side).map(|who| format!("**{who}**\n\n"));
                let text = provenance(run, &view.experiment.id());
                heading.unwrap_or_default() + &text
            })
            .collect();
        text.push_str(&details("Provenance", &parts.join("\n")));
    }
    text
}

fn parameters(inputs: &Inputs<'_>, view: &View<'_>) -> String {
    let experiment = view.experiment;
    let mut text = String::new();
    if let Some(path) = definition(experiment) {
        let _ = writeln!(text, "Definition: {}\n", inputs.link(&path));
    }
    let mut laws = BTreeSet::new();
    // Groups and their methods, each with its settings.
    let mut known: Vec<(&str, Vec<(&Variant, String)>)> = Vec::new();
    for group in &experiment.groups {
        let data =
            group.data.as_ref().map(|d| format!(", data set {}", code(&d.set))).unwrap_or_default();
        let _ = writeln!(text, "**{}**{data}\n", plain(&group.id));
        for (profile, sides) in profiles(view, group) {
            let of =
                if sides.is_empty() { String::new() } else { format!(" ({})", sides.join(", ")) };
            let (protocol, _) = map(group, profile, 0);
            let shared = settings(group, profile, 0, true);
            let listed = if shared.is_empty() { shared } else { format!("; {shared}") };
            let (profile, protocol) = (code(profile.name()), code(&protocol));
            let _ = writeln!(text, "- profile {profile}{of}: protocol {protocol}{listed}");
        }
        let profile = profiles(view, group).first().map(|p| p.0);
        let own = |i| profile.map(|p| settings(group, p, i, false)).unwrap_or_default();
        let methods = group.variants.iter().enumerate().map(|(i, v)| (v, own(i))).collect();
        match known.iter().find(|(_, of)| *of == methods).filter(|_| group.variants.len() > 1) {
            Some((first, _)) => {
                let _ = writeln!(text, "- the methods of {}", code(first));
            }
            None => text.push_str(&variants(group, profile, &mut laws)),
        }
        known.push((&group.id, methods));
        text.push('\n');
    }
    text
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

/// The variants of a group: each kind of embedder once, with its law if that is not in `laws` yet, then the parameters that
/// differ between its variants.
fn variants(group: &Group, profile: Option<Profile>, laws: &mut BTreeSet<String>) -> String {
    let listed = &group.variants[..group.variants.len().min(VARIANTS)];
    let own = |i: usize| profile.map(|p| settings(group, p, i, false)).unwrap_or_default();
    let kinds = distinct(listed.iter().map(|v| v.embedder.as_ref().map(|e| e.kind.as_str())));
    let mut text = String::new();
    for kind in kinds {
        let of_kind: Vec<_> = listed
            .iter()
            .enumerate()
            .filter(|(_, v)| v.embedder.as_ref().map(|e| e.kind.as_str()) == kind)
            .collect();
        let specs: Vec<&EmbedderSpec> =
            of_kind.iter().filter_map(|(_, v)| v.embedder.as_ref()).collect();
        let shared = |name: &str, value: &ParameterValue| {
            specs.iter().all(|s| s.parameters.get(name) == Some(value))
        };
        let together = specs.len() > 1;
        if let Some(first) = specs.first().filter(|_| together) {
            let mut common = (*first).clone();
            common.parameters.retain(|name, value| shared(name, value));
            let _ = writeln!(text, "- {}", formula(&common, laws));
        }
        for (i, variant) in of_kind {
            let mut parts = Vec::new();
            match &variant.embedder {
                Some(spec) if together => {
                    let mut rest = spec.clone();
                    rest.parameters.retain(|name, value| !shared(name, value));
                    parts.push(values(&rest));
                }
                Some(spec) => parts.push(formula(spec, laws)),
                None => {}
            }
            parts.push(own(i));
            parts.retain(|p| !p.is_empty());
            if !parts.is_empty() {
                let indent = if together { "  " } else { "" };
                let _ = writeln!(text, "{indent}- {}: {}", code(&variant.id), parts.join(", "));
            }
        }
    }
    if group.variants.len() > VARIANTS {
        let _ = writeln!(text, "- and {} more variants", group.variants.len() - VARIANTS);
    }
    text
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
fn map(group: &Group, profile: Profile, variant: usize) -> (String, BTreeMap<String, Value>) {
    let Some(resolved) = group.resolved(profile, variant) else { return Default::default() };
    let canonical = resolved.protocol.canonical();
    let json = canonical.split_once(' ').map_or("{}", |(_, json)| json);
    let mut settings: BTreeMap<String, Value> = serde_json::from_str(json).unwrap_or_default();
    if resolved.seeds > 1 {
        settings.insert("seeds".into(), Value::from(resolved.seeds));
    }
    if group.first_seed > 0 {
        settings.insert("first_seed".into(), Value::from(group.first_seed));
    }
    if let Some(signals) = resolved.signals {
        settings.insert("signals".into(), Value::from(signals));
    }
    (resolved.protocol.name().to_owned(), settings)
}

/// Settings of one variant: those that all variants of the group share, or those that differ.
fn settings(group: &Group, profile: Profile, variant: usize, shared: bool) -> String {
    let all: Vec<_> = (0..group.variants.len()).map(|i| map(group, profile, i).1).collect();
    let own = map(group, profile, variant).1;
    let is_shared = |k: &str, v: &Value| all.iter().all(|m| m.get(k) == Some(v));
    let listed = own.iter().filter(|(k, v)| is_shared(k, v) == shared);
    listed.map(|(k, v)| setting(k, v)).collect::<Vec<_>>().join(", ")
}

fn setting(key: &str, value: &Value) -> String {
    format!("{} {}", plain(&key.replace('_', " ")), shown(value))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Number(n) => n.as_f64().map_or_else(|| n.to_string(), |v| significant(v, 6)),
        Value::String(s) => code(s),
        Value::Array(all) if all.len() > LIST => {
            let ends = [&all[0], &all[1], &all[2]].map(shown).join(", ");
            let last = all.last().map(shown).unwrap_or_default();
            format!("{ends}, …, {last} ({} values)", all.len())
        }
        Value::Array(all) => all.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(map) => {
            let parts: Vec<_> = map.iter().map(|(k, v)| setting(k, v)).collect();
            format!("({})", parts.join("; "))
        }
        other => other.to_string(),
    }
}

fn provenance(run: &Run, item: &str) -> String {
    let p = &run.provenance;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(text, "- {name}: {value}");
        }
    };
    match run.side {
        // `--from` takes the profile and seed of each method from the record.
        Side::Reference => line(
            "command to repeat",
            code(&format!("cargo xtask reproduce --from report/record {item}")),
        ),
        Side::Local => line("command", code(&p.command)),
    }
    line("commit", code(&p.commit));
    line("rows of earlier runs", run.commits(|commit| **commit != p.commit).join("; "));
    let cores = match p.cores {
        0 => String::new(),
        1 => ", 1 core".into(),
        n => format!(", {n} cores"),
    };
    line(
        "machine",
        if p.machine.is_empty() { String::new() } else { format!("{}{cores}", plain(&p.machine)) },
    );
    let versions: Vec<_> =
        p.versions.iter().map(|(name, v)| format!("{} {}", plain(name), plain(v))).collect();
    line("versions", versions.join(", "));
    let data: Vec<_> = p
        .data
        .iter()
        .map(|(label, sum)| {
            let sum: String = sum.chars().take(16).collect();
            if sum.is_empty() || sum == "-" {
                plain(label)
            } else {
                format!("{} (sha256 {}…)", plain(label), code(&sum))
            }
        })
        .collect();
    line("data", data.join(", "));
    if p.units > 0 {
        line("seed", p.seed.to_string());
        let mib = |bytes| fixed(bytes as f64 / 1_048_576.0, 0);
        let peak = p.peak_memory.map(|bytes| format!(", at most {} MiB per unit", mib(bytes)));
        let (units, peak) = (counted(p.units, "unit"), peak.unwrap_or_default());
        line("latest run", format!("{units}, {} of wall time in total{peak}", duration(p.seconds)));
    }
    if text.is_empty() {
        text.push_str("- not recorded\n");
    }
    text
}
