//! One sample of random frequencies says little about a method with random frequencies.

use std::collections::{BTreeMap, BTreeSet};

use super::checks::{Against, Check};
use super::points::{Context, rows};
use crate::record::{NO_SIGNAL, is_of_machine};
use crate::schema::claim::{Abscissa, Claim, Select};
use crate::schema::{Experiment, Group, Profile, Variant};

/// Fewest samples of random features from which a verdict is drawn.
const FEWEST: usize = 5;

/// Why a check does not decide: it reads a method with too few samples of random features.
pub(super) fn too_few(check: &Check, context: Context<'_>) -> Option<String> {
    let mut seeds: BTreeMap<(&str, &str), BTreeSet<u64>> = BTreeMap::new();
    for select in check.measured() {
        for row in rows(select, context).filter(|row| !is_of_machine(&row.metric)) {
            seeds.entry((&row.group, &row.method)).or_default().insert(row.seed);
        }
    }
    // A comparison reads only the seeds that both sides have.
    let is_paired = check.against() == Against::Methods;
    let several = seeds.values().filter(|own| is_paired && own.len() > 1).cloned();
    let common = several.reduce(|a, b| a.intersection(&b).copied().collect());
    seeds.into_iter().find_map(|((group, method), seeds)| {
        let read = common.as_ref().filter(|_| seeds.len() > 1).unwrap_or(&seeds);
        let group = context.experiment.group(group)?;
        if !is_sampled(group.variants.iter().find(|variant| variant.id == method)?) {
            return None;
        }
        let profile = group_profile(context, &group.id, method)?;
        let samples = group.protocol_of(method, profile)?.random_samples(read.len());
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
    for own in claim.checks.iter().filter(|own| !own.is_exact) {
        for select in own.check.measured().filter(|select| !is_of_machine(&select.metric)) {
            let Some(group) = experiment.group(&select.group) else { continue };
            for (index, variant) in group.variants.iter().enumerate() {
                if !select.takes_method(&variant.id) {
                    continue;
                }
                if let Some(lack) = lack(group, index, &own.check, select) {
                    let (group, method) = (&group.id, &variant.id);
                    return Some(format!(
                        "no run decides the check: group `{group}` has {lack} with {method}; raise `seeds`, or leave the check out"
                    ));
                }
            }
        }
    }
    None
}

/// What the definition of a variant lacks at every profile.
fn lack(group: &Group, variant: usize, check: &Check, select: &Select) -> Option<String> {
    let plans = || Profile::ALL.iter().filter_map(|profile| group.resolved(*profile, variant));
    let samples = plans().map(|plan| plan.protocol.random_samples(plan.seeds)).max()?;
    if is_sampled(&group.variants[variant]) && samples < FEWEST {
        return Some(format!("{samples} of at least {FEWEST} samples of random features"));
    }
    let picked = group.data.as_ref().and_then(|data| data.pick.as_ref());
    let is_one_run =
        picked.is_some_and(|all| all.len() == 1) && plans().all(|plan| plan.seeds == 1);
    let x = match select.x {
        Some(Abscissa::At(x)) => Some(x),
        _ => None,
    };
    let depends = plans().any(|plan| plan.protocol.depends_on_start(x));
    (is_one_run && depends && check.against() == Against::Print)
        .then(|| "one run of a network, which another start would change".to_owned())
}

/// Why a comparison with print is not decided: one run of one signal, of a network that another start would change.
pub(super) fn one_run(check: &Check, context: Context<'_>) -> Option<String> {
    if check.against() != Against::Print {
        return None;
    }
    // Runs of each method, and the abscissas of their values.
    type Runs<'a> = (BTreeSet<(&'a str, u64)>, Vec<Option<f64>>);
    let mut runs: BTreeMap<(&str, &str), Runs<'_>> = BTreeMap::new();
    for select in check.measured() {
        for row in rows(select, context).filter(|row| row.signal != NO_SIGNAL) {
            let (runs, places) = runs.entry((&row.group, &row.method)).or_default();
            runs.insert((&row.signal, row.seed));
            places.push(row.x);
        }
    }
    let single = runs.into_iter().filter(|(_, (runs, _))| runs.len() == 1);
    single.into_iter().find_map(|((group, method), (_, places))| {
        let group = context.experiment.group(group)?;
        let profile = group_profile(context, &group.id, method)?;
        let protocol = group.protocol_of(method, profile)?;
        let depends = places.into_iter().any(|x| protocol.depends_on_start(x));
        depends.then(|| format!("one run of {method}, which another start would change"))
    })
}

fn group_profile(context: Context<'_>, group: &str, method: &str) -> Option<Profile> {
    context.record?.of_group(group).find(|row| row.method == method).map(|row| row.profile)
}
