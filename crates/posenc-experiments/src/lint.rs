//! Lints of claims: problems that the loader accepts but that mislead readers.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::catalog::Catalog;
use crate::schema::claim::{Abscissa, Check, Claim, ClaimCheck, LintName, Select, Source};
use crate::schema::{Experiment, Profile};
use crate::verdict::samples;

#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub file: PathBuf,
    /// The line of the claim, if known.
    pub line: Option<usize>,
    /// `paper/item#claim`.
    pub claim: String,
    pub lint: LintName,
    /// What is wrong and how to fix it.
    pub message: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}: {} [{}]", self.claim, self.message, self.lint)
    }
}

/// All findings, in the order of the catalog.
pub fn findings(catalog: &Catalog) -> Vec<Finding> {
    let mut all = Vec::new();
    for experiment in &catalog.experiments {
        for claim in &experiment.claims {
            let lints: [(LintName, Option<String>); 8] = [
                (LintName::Conjunction, conjunction(claim)),
                (LintName::Every, every(experiment, claim)),
                (LintName::Source, source(claim)),
                (LintName::Abscissas, abscissas(experiment, claim)),
                (LintName::Measured, measured(catalog, experiment, claim)),
                (LintName::Metric, metric(claim)),
                (LintName::Print, print(catalog, experiment, claim)),
                (LintName::Samples, samples::undecidable(experiment, claim)),
            ];
            let found = lints.into_iter().filter(|(lint, _)| !claim.allowed.contains(lint));
            all.extend(found.filter_map(|(lint, message)| {
                Some(Finding {
                    file: experiment.file.clone(),
                    line: claim.line,
                    claim: format!("{}#{}", experiment.id(), claim.id),
                    lint,
                    message: message?,
                })
            }));
        }
    }
    all
}

/// Beginnings that refer to an earlier sentence.
const CONJUNCTIONS: [&str; 12] =
    ["And", "So", "The same", "Nor", "It", "But", "Or", "Yet", "They", "This", "These", "Also"];

fn conjunction(claim: &Claim) -> Option<String> {
    let says = claim.says.trim();
    let begins = |beginning: &&&str| {
        let rest = says.strip_prefix(**beginning);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    };
    let found = CONJUNCTIONS.iter().find(begins)?;
    Some(format!(
        "the claim begins with `{found}`, so it cannot be read alone; name the subject and the metric"
    ))
}

fn every(experiment: &Experiment, claim: &Claim) -> Option<String> {
    let is_word = |word: &str| ["every", "each", "all"].contains(&word.to_lowercase().as_str());
    let word = claim.says.split(|c: char| !c.is_alphanumeric()).find(|word| is_word(word))?;
    let measured: Vec<&Select> =
        claim.selects().filter(|select| select.from == Source::Measured).collect();
    let group = experiment.group(&measured.first()?.group)?;
    let methods: Option<BTreeSet<&str>> =
        measured.iter().map(|select| select.method.as_deref()).collect();
    if let Some(methods) = methods
        && methods.len() == 1
        && group.variants.len() > 1
    {
        let (has, only) = (group.variants.len(), methods.first()?);
        return Some(format!(
            "the claim says `{word}`, but its check selects `{only}` of {has} methods of group `{}`; select all, or say which",
            group.id
        ));
    }
    let is_one_place = measured.iter().all(|s| matches!(s.x, Some(Abscissa::At(_))));
    is_one_place.then(|| {
        format!(
            "the claim says `{word}`, but its check selects one abscissa; select all, or say which"
        )
    })
}

fn source(claim: &Claim) -> Option<String> {
    let is_empty = claim.source.trim().is_empty();
    is_empty.then(|| "`source` is empty; say where the paper says it".to_owned())
}

/// The meaning of the abscissa of a group's metric: the label of its axis in a plot, or else the parameter that the protocol sweeps.
fn abscissa(experiment: &Experiment, select: &Select) -> Option<String> {
    let panels = experiment.plots.iter().flat_map(|plot| &plot.panels);
    let mut shown = panels.filter(|p| p.group == select.group && p.metric == select.metric);
    if let Some(panel) = shown.next() {
        return Some(panel.x.label.clone());
    }
    let group = experiment.group(&select.group)?;
    let resolved = Profile::ALL.iter().rev().find_map(|profile| group.resolved(*profile, 0))?;
    Some(resolved.protocol.json().get("sweep")?.get("parameter")?.as_str()?.to_owned())
}

fn abscissas(experiment: &Experiment, claim: &Claim) -> Option<String> {
    let differs = |(a, b): (&Select, &Select)| {
        let is_at = [a, b].iter().all(|s| matches!(s.x, Some(Abscissa::At(_))));
        if is_at || a.group == b.group {
            return None;
        }
        let (x, y) = (abscissa(experiment, a)?, abscissa(experiment, b)?);
        (x != y).then(|| {
            format!(
                "the check pairs group `{}`, whose abscissa is `{x}`, with group `{}`, whose abscissa is `{y}`",
                a.group, b.group
            )
        })
    };
    claim.checks.iter().flat_map(|own| own.check.compared()).find_map(differs)
}

fn measured(catalog: &Catalog, experiment: &Experiment, claim: &Claim) -> Option<String> {
    let words = format!("{} {}", claim.says, claim.source).to_lowercase();
    let is_said = ["notebook", "code", "released", "authors", "saved"]
        .iter()
        .any(|word| words.contains(word));
    if claim.is_ours || is_said {
        return None;
    }
    let source = claim.checks.iter().flat_map(|own| own.check.published()).find_map(|select| {
        let mut values = catalog.published.select(&experiment.paper, &experiment.item, select);
        values.find(|value| value.is_of_code()).map(|value| value.source.clone())
    })?;
    Some(format!(
        "the check compares with published values whose source is `{source}`; say so in `says` or `source`, since the paper does not print them"
    ))
}

/// An order that the published values contradict would blame our runs, or the authors, for what the paper does not print.
fn print(catalog: &Catalog, experiment: &Experiment, claim: &Claim) -> Option<String> {
    if claim.is_ours || claim.erratum.is_some() {
        return None;
    }
    let published = |select: &Select| {
        let mut values = catalog.published.select(&experiment.paper, &experiment.item, select);
        let only = values.next().filter(|value| !value.is_of_code())?;
        values.next().is_none().then_some(only.value?)
    };
    claim.checks.iter().find_map(|own| {
        let Check::Ordering(check) = &own.check else { return None };
        own.check.compared().into_iter().find_map(|(a, b)| {
            let (left, right) = (published(a)?, published(b)?);
            // The last digits of decimal numbers are not exact in binary.
            let fails = check.sign() * (left - right) + check.margin < -1e-9;
            fails.then(|| {
                format!(
                    "the check fails on the paper's own numbers, {left} and {right} {}; leave it out, or name an erratum",
                    a.metric
                )
            })
        })
    })
}

fn metric(claim: &Claim) -> Option<String> {
    let lacks_effect = |own: &ClaimCheck| match &own.check {
        Check::Ordering(check) if check.smallest_effect.is_none() => {
            Some(check.of.first()?.metric.clone())
        }
        _ => None,
    };
    claim.checks.iter().find_map(lacks_effect).map(|metric| {
        format!("`{metric}` has no smallest effect; add it to experiments/metrics.yaml, or `smallest_effect` to the check")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::Published;
    use crate::schema::protocol::testing::experiment;

    fn findings_of(claim: &str) -> Vec<LintName> {
        let text = format!(
            "paper: demo\nitem: fig1\nkind: figure\ntitle: T\nshows: S\ngroups:\n\
             \x20 - {{ id: run, protocol: {{ kind: stable-rank, sweep: {{ parameter: sigma }} }}, variants: [{{ id: A, embedder: {{ kind: identity }} }}, {{ id: B, embedder: {{ kind: identity }} }}] }}\n\
             \x20 - {{ id: other, protocol: {{ kind: stable-rank, sweep: {{ parameter: dimension }} }}, variants: [{{ id: A, embedder: {{ kind: identity }} }}] }}\n\
             claims:\n  - {{ id: c, {claim} }}\n"
        );
        let catalog = Catalog { experiments: vec![experiment(&text)], ..Catalog::default() };
        findings(&catalog).into_iter().map(|finding| finding.lint).collect()
    }

    /// Catches a statement that the paper's own numbers contradict, and a check that stays undecided whatever is run.
    #[test]
    fn undecidable_checks_and_orders_against_print_are_found() {
        let definition = |claims: &str| {
            let group = |id: &str, seeds: u64| {
                format!(
                    "  - {{ id: {id}, seeds: {seeds}, protocol: {{ kind: stable-rank }}, variants: [{{ id: A, embedder: {{ kind: identity }} }}, \
                     {{ id: R, embedder: {{ kind: rff, dimension: 4, sigma: 1 }} }}] }}\n"
                )
            };
            let head = "paper: demo\nitem: fig1\nkind: figure\ntitle: T\nshows: S\ngroups:\n";
            experiment(&format!("{head}{}{}claims: [{claims}]\n", group("one", 4), group("run", 5)))
        };
        let csv = "item,group,method,signal,metric,x,value,std,unit,source,note\n\
                   fig1,run,A,,m,,2,,,paper,\nfig1,run,R,,m,,3,,,paper,\n";
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("demo.csv"), csv).unwrap();
        let mut published = Published::default();
        published.read(folder.path(), "demo").unwrap();
        for (group, first, more, expected) in [
            ("run", "A", "", vec![LintName::Print]),
            ("run", "A", ", margin: 1", vec![]),
            ("run", "R", "", vec![]),
            ("one", "R", "", vec![LintName::Samples]),
        ] {
            let second = if first == "A" { "R" } else { "A" };
            let of = |method: &str| format!("{{ group: {group}, method: {method}, metric: m }}");
            let claim = format!(
                "{{ id: c, says: a, source: b, check: {{ kind: ordering, smallest_effect: 0, of: [{}, {}]{more} }} }}",
                of(first),
                of(second)
            );
            let catalog = Catalog {
                experiments: vec![definition(&claim)],
                published: published.clone(),
                ..Catalog::default()
            };
            let found: Vec<LintName> = findings(&catalog).iter().map(|f| f.lint).collect();
            assert_eq!(found, expected, "{claim}");
        }
    }

    /// Catches claims that cannot be read alone or state more than they test, and lints that cannot be switched off.
    #[test]
    fn each_lint_finds_its_problem() {
        let bound = "check: { kind: bound, of: { group: run, method: A, metric: m }, at_most: 1 }";
        let all = "check: { kind: bound, of: { group: run, metric: m }, at_most: 1 }";
        let at = "check: { kind: bound, of: { group: run, metric: m, x: 3 }, at_most: 1 }";
        let (run, other) = ("{ group: run, metric: m }", "{ group: other, metric: m }");
        let order =
            format!("check: {{ kind: ordering, smallest_effect: 0, of: [{run}, {other}] }}");
        let no_effect = format!("check: {{ kind: ordering, of: [{run}, {run}] }}");
        for (says, source, check, expected) in [
            ("Items are low", "Sec. 1", bound, vec![]),
            ("And A is low", "Sec. 1", bound, vec![LintName::Conjunction]),
            ("It is low", "Sec. 1", bound, vec![LintName::Conjunction]),
            ("The same of B", "Sec. 1", bound, vec![LintName::Conjunction]),
            ("Every encoder is low", "Sec. 1", bound, vec![LintName::Every]),
            ("Every encoder is low", "Sec. 1", all, vec![]),
            ("A is low at all N", "Sec. 1", at, vec![LintName::Every]),
            ("A is low", "' '", bound, vec![LintName::Source]),
            ("A beats B", "Sec. 1", order.as_str(), vec![LintName::Abscissas]),
            ("A beats B", "Sec. 1", no_effect.as_str(), vec![LintName::Metric]),
            ("Every A is low", "Sec. 1, allow: [every]", bound, vec![]),
        ] {
            let claim = format!("says: {says}, source: {source}, {check}");
            assert_eq!(findings_of(&claim), expected, "{claim}");
        }
    }
}
