//! One sample of random frequencies says little about a method with random frequencies.

use std::collections::{BTreeMap, BTreeSet};

use super::select::{Context, rows};
use crate::plan::NO_SIGNAL;
use crate::record::{Row, is_of_machine};
use crate::schema::claim::{Check, Claim, Source};
use crate::schema::{Experiment, Profile, Variant};

/// Fewest samples of random features from which a verdict is drawn.
const FEWEST: usize = 5;

/// Why a check does not decide: it reads a method with too few samples of random features.
pub(super) fn too_few(check: &Check, context: Context<'_>) -> Option<String> {
    let mut seeds: BTreeMap<(&str, &str), BTreeSet<u64>> = BTreeMap::new();
    let selects = check.selects();
    for (_, select) in selects.iter().filter(|(_, s)| s.from == Source::Measured) {
        for row in rows(select, context).filter(|row| !is_of_machine(&row.metric)) {
            seeds.entry((&row.group, &row.method)).or_default().insert(row.seed);
        }
    }
    // A comparison reads only the seeds that both sides have.
    let is_paired = matches!(check, Check::Ordering(_) | Check::Ratio(_) | Check::Equality(_));
    let several = seeds.values().filter(|own| is_paired && own.len() > 1).cloned();
    let common = several.reduce(|a, b| a.intersection(&b).copied().collect());
    seeds.into_iter().find_map(|((group, method), seeds)| {
        let read = common.as_ref().filter(|_| seeds.len() > 1).unwrap_or(&seeds);
        let group = context.experiment.group(group)?;
        let variant = group.variants.iter().position(|variant| variant.id == method)?;
        if !is_sampled(&group.variants[variant]) {
            return None;
        }
        let profile = group_profile(context, &group.id, method)?;
        let samples = group.resolved(profile, variant)?.protocol.random_samples(read.len());
        (samples < FEWEST).then(|| {
            let s = if samples == 1 { "" } else { "s" };
            format!(
                "{samples} sample{s} of the random features of {method}; at least {FEWEST} decide"
            )
        })
    })
}

/// Whether a variant has random features that another sample would change.
fn is_sampled(variant: &Variant) -> bool {
    let Some(spec) = &variant.embedder else { return false };
    // The first numbers of a generator of another program are a fixed sample, which is what such a variant is about.
    let is_fixed = spec.parameters.contains_key("torch_seed");
    !is_fixed && posenc_math::embedder::find(&spec.kind).is_some_and(|kind| kind.is_random)
}

/// Why a claim cannot be decided by any run of its definition.
pub(crate) fn undecidable(experiment: &Experiment, claim: &Claim) -> Option<String> {
    let checks = claim.checks.iter().filter(|own| !own.is_exact);
    checks.flat_map(|own| own.check.selects().into_iter().map(move |s| (own, s.1))).find_map(|(own, select)| {
        if select.from != Source::Measured || is_of_machine(&select.metric) {
            return None;
        }
        let group = experiment.group(&select.group)?;
        let signals = group.data.as_ref().and_then(|data| data.pick.as_ref()).map_or(2, Vec::len);
        let is_against_print =
            matches!(own.check, Check::Value(_) | Check::Agreement(_) | Check::Position(_));
        let is_linear = matches!(&select.x, Some(x) if x.contains(Some(0.0)));
        let methods = group.variants.iter().enumerate().filter(|(_, v)| select.takes_method(&v.id));
        methods.into_iter().find_map(|(index, variant)| {
            let plans = || Profile::ALL.iter().filter_map(|profile| group.resolved(*profile, index));
            let seeds = plans().map(|plan| plan.seeds).max()?;
            let samples = plans().map(|plan| plan.protocol.random_samples(plan.seeds)).max()?;
            let depends = plans().any(|plan| plan.protocol.depends_on_start());
            let lack = if is_sampled(variant) && samples < FEWEST {
                format!("{samples} of at least {FEWEST} samples of random features")
            } else if depends && !is_linear && is_against_print && signals * seeds == 1 {
                "one run of a network, which another start would change".to_owned()
            } else {
                return None;
            };
            Some(format!(
                "no run decides the check: group `{}` has {lack} with {}; raise `seeds`, or leave the check out",
                group.id, variant.id
            ))
        })
    })
}

/// Why a comparison with print is not decided: one run of one signal, of a network that another start would change.
pub(super) fn one_run(check: &Check, context: Context<'_>) -> Option<String> {
    if !matches!(check, Check::Value(_) | Check::Agreement(_) | Check::Position(_)) {
        return None;
    }
    let mut runs: BTreeMap<(&str, &str), BTreeSet<(&str, u64)>> = BTreeMap::new();
    let selects = check.selects();
    for (_, select) in selects.iter().filter(|(_, s)| s.from == Source::Measured) {
        for row in rows(select, context).filter(|row| row.signal != NO_SIGNAL) {
            // A sweep over depths has networks and linear layers.
            if row.x == Some(0.0) {
                continue;
            }
            let runs = runs.entry((&row.group, &row.method)).or_default();
            runs.insert((&row.signal, row.seed));
        }
    }
    runs.into_iter().filter(|(_, runs)| runs.len() == 1).find_map(|((group, method), _)| {
        let group = context.experiment.group(group)?;
        let variant = group.variants.iter().position(|variant| variant.id == method)?;
        let profile = group_profile(context, &group.id, method)?;
        let depends = group.resolved(profile, variant)?.protocol.depends_on_start();
        depends.then(|| format!("one run of {method}, which another start would change"))
    })
}

fn group_profile(context: Context<'_>, group: &str, method: &str) -> Option<Profile> {
    let is_own = |row: &&Row| row.group == group && row.method == method;
    context.record?.rows.iter().find(is_own).map(|row| row.profile)
}
