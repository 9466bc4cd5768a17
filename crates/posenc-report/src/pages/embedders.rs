//! Gallery: plots of every kind of embedder, computed from its definition.
//!
//! The curves are not measurements. They follow from the formulas of `posenc_math` alone, need neither data nor training,
//! and take milliseconds. The page is therefore computed when the report is rendered, and a new kind appears without a run.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use minijinja::{Value, context};
use posenc_experiments::schema::Experiment;
use posenc_experiments::schema::paper::Paper;
use posenc_math::embedder::names::FORMULA;
use posenc_math::embedder::{EmbedderSpec, Kind, Parameter, ParameterValue, Presence, registry};
use posenc_math::lff::encoding::{Encoding, Features, Modulator};

use super::{Files, drawing, item_name};
use crate::Inputs;
use crate::links;
use crate::markdown::slug;
use crate::numbers::significant;
use crate::template::safe;

struct Entry<'a> {
    key: String,
    name: String,
    kind: &'static Kind,
    spec: EmbedderSpec,
    /// Experiments that use it, in catalog order.
    users: Vec<&'a Experiment>,
}

/// What the page shows; adds its drawings to `files`.
pub fn page(inputs: &Inputs<'_>, files: &mut Files) -> Result<Value> {
    let (kinds, formulas) = entries(&inputs.catalog.experiments);
    let mut shown = |entries: &[Entry<'_>]| -> Result<Vec<Value>> {
        entries.iter().map(|own| entry(inputs, own, files)).collect()
    };
    let has_attention = inputs.catalog.papers.iter().any(|paper| paper.key == "lff");
    Ok(context! {
        kinds => shown(&kinds)?,
        formulas => shown(&formulas)?,
        encodings => has_attention.then(|| encodings().map(|own| own.parameter_count(&SIDES, WIDTH))),
    })
}

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

/// The formula of a feature, without values.
fn formula(entry: &Entry<'_>) -> String {
    let mut bare = entry.spec.clone();
    bare.parameters.retain(|name, _| ["psi", "latex"].contains(&name.as_str()));
    if entry.kind.name == FORMULA && entry.users.is_empty() || entry.key == FORMULA {
        bare.parameters.clear();
    }
    entry.kind.formula(&bare)
}

fn entry(inputs: &Inputs<'_>, entry: &Entry<'_>, files: &mut Files) -> Result<Value> {
    let Entry { key, name, kind, spec, users } = entry;
    let path = format!("figures/embedders/{}.svg", slug(key));
    // A formula can be valid for the coordinates of its experiment and vanish on those used here.
    let (mut alt, mut error) = (None, None);
    match drawing::figure(name, kind.name, spec) {
        Ok(figure) => {
            let svg = figure.svg().with_context(|| format!("the drawing of {name}"))?;
            files.insert(PathBuf::from(&path), svg.into_bytes());
            alt = Some(figure.alt);
        }
        Err(cause) => error = Some(cause.to_string()),
    }
    let math = |latex: &str| (!latex.is_empty()).then(|| safe(format!("${latex}$")));
    Ok(context! {
        key,
        name,
        formula => formula(entry),
        distance => math(kind.distance),
        stable_rank => math(kind.stable_rank),
        path => safe(path),
        alt,
        error,
        settings => settings(spec),
        source => if key == kind.name { kind.source } else { "" },
        count => users.len(),
        users => used(inputs, entry),
        parameters => kind.parameters.iter().map(parameter).collect::<Vec<_>>(),
        takes_extra_numbers => kind.takes_extra_numbers,
    })
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

/// The items that use an embedder, by paper.
fn used(inputs: &Inputs<'_>, entry: &Entry<'_>) -> Vec<Value> {
    let of_paper = |paper: &Paper| {
        let own = entry.users.iter().filter(|experiment| experiment.paper == paper.key);
        let item = |experiment: &&Experiment| {
            let name = safe(item_name(inputs, &paper.key, &experiment.item));
            context! { name, page => safe(links::item(&paper.key, &experiment.item)) }
        };
        let items: Vec<Value> = own.map(item).collect();
        (!items.is_empty()).then(|| context! { key => &paper.key, items })
    };
    inputs.catalog.papers.iter().filter_map(of_paper).collect()
}

fn parameter(parameter: &Parameter) -> Value {
    let default = match parameter.presence {
        Presence::Required => "required".to_owned(),
        Presence::Optional => "none".to_owned(),
        Presence::Default(value) => match value.to_value() {
            ParameterValue::Number(number) => significant(number, 6),
            ParameterValue::Text(text) => text,
        },
    };
    let allowed = parameter.rule.allowed();
    context! { name => parameter.name, default, allowed, meaning => parameter.meaning }
}

/// Positions and width used to count the parameters of position encodings.
const SIDES: [usize; 2] = [32, 32];
const WIDTH: usize = 64;

/// The position encodings in the order of the page.
fn encodings() -> [Encoding; 11] {
    let of = |features| Encoding { features, ..Encoding::none() };
    let fourier = |learned| Encoding { gamma: Some(1.0), learned, ..of(Features::Fourier) };
    let modulator = Modulator { hidden: 32, layer_norm: false, dropout: 0.0 };
    [
        Encoding::none(),
        of(Features::Embed),
        Encoding { flat: true, ..of(Features::Embed) },
        Encoding { summed: true, ..of(Features::Embed) },
        of(Features::Sine),
        of(Features::SummedSine),
        of(Features::PairedSine),
        Encoding { hidden: Some(32), ..of(Features::Network) },
        fourier(false),
        fourier(true),
        Encoding { modulator: Some(modulator), ..fourier(true) },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a count of the page that differs from the formula printed next to it.
    #[test]
    fn printed_formulas_match_the_parameter_counts() {
        let (m, d, f, h, n) = (2, WIDTH, WIDTH, 32, SIDES[0] + SIDES[1]);
        let expected = [
            0,
            n * d / m,
            SIDES[0] * SIDES[1] * d,
            d * n,
            0,
            0,
            0,
            (m + 1) * h + (h + 1) * d,
            0,
            d / 2 * m,
            f / 2 * m + (f + 1) * h + (h + 1) * d,
        ];
        assert_eq!(encodings().map(|own| own.parameter_count(&SIDES, WIDTH)), expected);
    }
}
