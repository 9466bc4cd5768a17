//! Gallery: plots of every kind of embedder, computed from its definition.
//!
//! The curves are not measurements. They follow from the formulas of `posenc_math` alone, need neither data nor training,
//! and take milliseconds. The page is therefore computed when the report is rendered, and a new kind appears without a run.

mod drawing;
mod encodings;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use posenc_experiments::schema::Experiment;
use posenc_math::embedder::names::FORMULA;
use posenc_math::embedder::{EmbedderSpec, Kind, ParameterValue, Presence, registry};

use super::{Content, Files, places};
use crate::Inputs;
use crate::markdown::{Align, Grid, anchor, bare, cell, code, inline, label, plain, slug};
use crate::numbers::significant;

/// An embedder to plot.
struct Entry<'a> {
    /// Anchor on the page.
    key: String,
    name: String,
    kind: &'static Kind,
    /// Parameters of the plot.
    spec: EmbedderSpec,
    /// Experiments that use it, in catalog order.
    users: Vec<&'a Experiment>,
}

/// Renders the page; adds its drawings to `files`.
pub fn render(inputs: &Inputs<'_>, files: &mut Files) -> Result<Content> {
    let (kinds, formulas) = entries(&inputs.catalog.experiments);
    let mut text = format!("{OPENING}\n\n");
    text.push_str(&overview(&kinds, &formulas));
    for entry in &kinds {
        text.push_str(&section(inputs, entry, files)?);
        text.push_str(&parameters(entry.kind));
    }
    if !formulas.is_empty() {
        text.push_str(&format!("## Formulas of experiments\n\n{FORMULAS}\n\n"));
    }
    for entry in &formulas {
        text.push_str(&section(inputs, entry, files)?);
    }
    text.push_str(&encodings::render(inputs.catalog));
    Ok(Content { title: "Embedders and position encodings".into(), text })
}

const OPENING: &str = "An embedder maps a coordinate $x$ in $[0, 1)$ to $d$ features $\\psi(x)$. The plots on this page follow from the \
definitions and are not measurements. Each figure shows three features, the inner products of the normalized rows for every pair of \
coordinates, and the singular values of the rows of 60 equally spaced coordinates; the rank counts those above $10^{-13}$ of the \
largest. The last panel shows the stable rank of $N$ such \
rows, with the theory for $d \\to \\infty$ dashed. If they are parameters of the embedder, the dimension is $d = 240$ and the boundary is \
periodic. To add an embedder, run `cargo xtask new embedder`.";

const FORMULAS: &str = "Experiments can define a profile $\\psi(u)$, $u = t_j - x$, as text. Each profile is plotted with the parameters \
of the first experiment that uses it.";

/// The kinds in the registry, and the formulas of the experiments, distinguished by their text.
fn entries(experiments: &[Experiment]) -> (Vec<Entry<'_>>, Vec<Entry<'_>>) {
    let mut kinds: Vec<Entry<'_>> = registry()
        .iter()
        .map(|kind| Entry {
            key: kind.name.to_owned(),
            name: kind.label.to_owned(),
            kind,
            spec: kind.example(drawing::DIMENSION),
            users: Vec::new(),
        })
        .collect();
    let mut formulas: Vec<Entry<'_>> = Vec::new();
    for experiment in experiments {
        for variant in experiment.groups.iter().flat_map(|g| &g.variants) {
            let Some(spec) = &variant.embedder else { continue };
            let own = kinds.iter_mut().find(|e| e.kind.name == spec.kind);
            let Some(own) = own else { continue };
            note(&mut own.users, experiment);
            if spec.kind != FORMULA {
                continue;
            }
            let psi = psi(spec);
            match formulas.iter_mut().find(|e| self::psi(&e.spec) == psi) {
                Some(entry) => note(&mut entry.users, experiment),
                None => {
                    let same = formulas.iter().filter(|e| e.name == variant.id).count();
                    let number = if same == 0 { String::new() } else { format!(" ({})", same + 1) };
                    let name = format!("{}{number}", variant.id);
                    formulas.push(Entry {
                        key: format!("formula-{}-{}", formulas.len() + 1, slug(&variant.id)),
                        name,
                        kind: own.kind,
                        spec: spec.clone().number("dimension", drawing::DIMENSION as f64),
                        users: vec![experiment],
                    });
                }
            }
        }
    }
    (kinds, formulas)
}

fn note<'a>(users: &mut Vec<&'a Experiment>, experiment: &'a Experiment) {
    if !users.iter().any(|e| std::ptr::eq(*e, experiment)) {
        users.push(experiment);
    }
}

fn psi(spec: &EmbedderSpec) -> &str {
    match spec.parameters.get("psi") {
        Some(ParameterValue::Text(text)) => text,
        _ => "",
    }
}

fn overview(kinds: &[Entry<'_>], formulas: &[Entry<'_>]) -> String {
    let mut grid = Grid::default();
    grid.columns(["Kind", "Feature", "Stable rank"], Align::Left);
    grid.column("Items that use it", Align::Right);
    for entry in kinds.iter().chain(formulas) {
        grid.row(vec![
            format!("[{}](#{})", plain(&entry.name), slug(&entry.key)),
            cell(&formula(entry)),
            math(entry.kind.stable_rank).unwrap_or_default(),
            entry.users.len().to_string(),
        ]);
    }
    grid.row(vec![
        "[Position encodings](#encodings)".into(),
        "of attention models".into(),
        String::new(),
        String::new(),
    ]);
    grid.render()
}

fn math(latex: &str) -> Option<String> {
    (!latex.is_empty()).then(|| format!("${latex}$"))
}

/// The formula of a feature, without values.
fn formula(entry: &Entry<'_>) -> String {
    let mut bare = entry.spec.clone();
    bare.parameters.retain(|name, _| ["psi", "latex"].contains(&name.as_str()));
    if entry.kind.name == FORMULA && entry.users.is_empty() || entry.key == FORMULA {
        bare.parameters.clear();
    }
    entry.kind.formula(&bare)
}

fn section(inputs: &Inputs<'_>, entry: &Entry<'_>, files: &mut Files) -> Result<String> {
    let level = if entry.key.starts_with("formula-") { "###" } else { "##" };
    let mut text = format!("{}\n\n{level} {}\n\n", anchor(&entry.key), plain(&entry.name));
    let mut facts = vec![inline(&formula(entry))];
    facts.extend(math(entry.kind.distance).map(|law| format!("$D(\\Delta) =$ {law}")));
    facts.extend(math(entry.kind.stable_rank).map(|rank| format!("stable rank {rank}")));
    let _ = writeln!(text, "{}\n", facts.join(" · "));
    let path = format!("figures/embedders/{}.svg", slug(&entry.key));
    match drawing::figure(&entry.name, entry.kind.name, &entry.spec) {
        Ok(figure) => {
            let svg = figure.svg().with_context(|| format!("the drawing of {}", entry.name))?;
            let _ = writeln!(text, "![{}]({path})\n", plain(&bare(&figure.alt)));
            files.insert(PathBuf::from(path), svg.into_bytes());
        }
        // A formula can be valid for the coordinates of its experiment and vanish on those used here.
        Err(error) => {
            let _ = writeln!(text, "*Not drawn: {}.*\n", plain(&error.to_string()));
        }
    }
    let mut lines = vec![format!("Parameters: {}", code(&settings(&entry.spec)))];
    if !entry.kind.source.is_empty() && entry.key == entry.kind.name {
        lines.push(format!("source: {}", plain(entry.kind.source)));
    }
    lines.push(match used(inputs, entry).as_str() {
        "" => "not used in any experiment".to_owned(),
        list => format!("used in: {list}"),
    });
    let _ = writeln!(text, "{}.\n", lines.join("; "));
    Ok(text)
}

fn settings(spec: &EmbedderSpec) -> String {
    let mut parts = vec![format!("kind: {}", spec.kind)];
    for (name, value) in &spec.parameters {
        let value = match value {
            ParameterValue::Number(number) => format!("{number}"),
            ParameterValue::Text(text) => text.clone(),
        };
        parts.push(format!("{name}: {value}"));
    }
    parts.join(", ")
}

/// Links to the items, by paper.
fn used(inputs: &Inputs<'_>, entry: &Entry<'_>) -> String {
    let mut papers: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for experiment in &entry.users {
        let place = inputs.catalog.papers.iter().position(|p| p.key == experiment.paper);
        let Some((place, paper)) = place.map(|i| (i, &inputs.catalog.papers[i])) else { continue };
        let name = paper
            .items
            .iter()
            .find(|i| i.item == experiment.item)
            .map_or(&experiment.item, |i| &i.name);
        let link = format!("[{}]({})", label(name), places::item(&paper.key, &experiment.item));
        papers.entry(place).or_default().push(link);
    }
    let lists = papers.into_iter().map(|(place, links)| {
        format!("{} {}", plain(&inputs.catalog.papers[place].key), links.join(", "))
    });
    lists.collect::<Vec<_>>().join("; ")
}

fn parameters(kind: &Kind) -> String {
    let mut grid = Grid::default();
    grid.columns(["Parameter", "Default", "Allowed", "Meaning"], Align::Left);
    for parameter in kind.parameters {
        let default = match parameter.presence {
            Presence::Required => "required".to_owned(),
            Presence::Optional => "none".to_owned(),
            Presence::Default(value) => match value.to_value() {
                ParameterValue::Number(number) => significant(number, 6),
                ParameterValue::Text(text) => plain(&text),
            },
        };
        grid.row(vec![
            code(parameter.name),
            default,
            plain(&parameter.rule.allowed()),
            cell(&plain(parameter.meaning)),
        ]);
    }
    if kind.takes_extra_numbers {
        grid.row(vec![
            "any other name".into(),
            "none".into(),
            "a finite number".into(),
            "a number used in the formula".into(),
        ]);
    }
    grid.render()
}
