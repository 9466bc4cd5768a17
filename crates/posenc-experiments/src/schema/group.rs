//! Groups: variants that share a protocol and data, with their settings at each profile.

use std::collections::{BTreeMap, BTreeSet};

use posenc_math::embedder::{EmbedderSpec, find};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_yaml::Mapping;

use super::data::{Data, SignalCount};
use super::keys::{check_key, check_unique};
use super::limits::SizeBudget;
use super::protocol::{Fault, Kind, Kinds, Protocol};
use super::{embedder, json};
use crate::profile::Profile;
use crate::record::{Row, is_counted};
use crate::yaml::{FileError, YamlPath, hint, unknown_name};

/// Variants that share a protocol and data.
#[derive(Debug, Clone)]
pub struct Group {
    pub id: String,
    /// Purpose of a group that the paper does not have, such as an ablation. Its profile `paper` is our own full definition, not a
    /// published protocol.
    pub ours: Option<String>,
    /// Data the signals come from; none for experiments on embeddings alone.
    pub data: Option<Data>,
    /// Whether the paper itself used the data set. [`crate::Catalog`] sets it from `paper.yaml`; initially true.
    pub(crate) is_on_papers_data: bool,
    /// Metrics that enter records; all if absent.
    pub metrics: Option<Vec<String>>,
    /// Independent repetitions.
    pub seeds: usize,
    /// Index of the first repetition. A group that adds seeds to another group starts where that one ends.
    pub first_seed: u64,
    pub variants: Vec<Variant>,
    /// Resolved settings per profile and variant (same order as `variants`); `None` for a variant that does not run.
    plans: BTreeMap<Profile, Vec<Option<Resolved>>>,
    /// What is reduced at a profile compared with the published protocol.
    reductions: BTreeMap<Profile, String>,
    /// Why the group does not run at a profile.
    refusals: BTreeMap<Profile, String>,
}

/// One row of a table, one curve of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// The method's name in records and published values, such as `Gau`.
    pub id: String,
    /// The embedder, if the protocol needs one.
    pub embedder: Option<EmbedderSpec>,
}

/// The protocol and repetitions of one variant at one profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The protocol with all overrides applied.
    pub protocol: Protocol,
    /// Independent repetitions.
    pub seeds: usize,
    /// Maximum number of signals from the data set; `None` for all.
    pub signals: Option<usize>,
}

/// Share of the paper's epochs or steps below which a model counts as untrained.
const UNTRAINED: f64 = 0.02;

impl Group {
    /// Whether a metric enters records.
    pub fn records(&self, metric: &str) -> bool {
        self.metrics.as_ref().is_none_or(|all| all.iter().any(|own| own == metric))
    }

    /// Why the group never records a metric: its protocol does not have it, or its `metrics` leave it out.
    pub(crate) fn metric_problem(&self, metric: &str) -> Option<String> {
        let kind = self.kind()?;
        let kinds = self.variants.iter().filter_map(|v| find(&v.embedder.as_ref()?.kind));
        let is_parameter = || { kinds }.any(|kind| kind.parameter(metric).is_some());
        if !kind.records(metric) && !is_parameter() {
            let (name, hint) = (kind.name, hint(metric, kind.documented()));
            return Some(format!(
                "`{name}` records no metric `{metric}`; report/protocols.md lists its metrics{hint}"
            ));
        }
        let id = &self.id;
        let message = format!(
            "`metrics` of the group `{id}` do not name `{metric}`, so it is not recorded; add it"
        );
        (!self.records(metric)).then_some(message)
    }

    /// Whether rows with this data label were measured on the paper's own data. Always true for groups without a data set.
    pub fn is_papers_data(&self, label: &str) -> bool {
        self.data.as_ref().is_none_or(|data| self.is_on_papers_data && data.measured() == label)
    }

    /// The resolved protocol of variant number `variant` at `profile`. `None` if the group or the variant does not run at this
    /// profile; at `long`, also if the group does not define it.
    pub fn resolved(&self, profile: Profile, variant: usize) -> Option<&Resolved> {
        self.plans.get(&profile)?.get(variant)?.as_ref()
    }

    /// The kind of its protocol; `None` if it runs at no profile.
    pub fn kind(&self) -> Option<&'static Kind> {
        let plan = self.plans.values().flatten().flatten().next()?;
        Some(plan.protocol.kind())
    }

    pub fn runs_at(&self, profile: Profile) -> bool {
        self.plans.contains_key(&profile)
    }

    /// What is reduced at `profile` compared with the published protocol; `None` for full scale.
    pub fn reduced(&self, profile: Profile) -> Option<&str> {
        self.reductions.get(&profile).map(String::as_str)
    }

    /// The reduction behind a row whose model was trained for so small a share of the paper's epochs or steps that its value says
    /// nothing about the method. `None` for counts of parameters, which do not depend on training.
    pub fn untrained(&self, row: &Row) -> Option<&str> {
        // Most rows are at full scale and need no look at the settings.
        let reduced = self.reduced(row.profile).filter(|_| !is_counted(&row.metric))?;
        let length = |profile: Profile| {
            let settings = self.protocol_of(&row.method, profile)?.json();
            ["epochs", "steps"].iter().find_map(|key| settings.get(*key)?.as_f64())
        };
        let share = length(row.profile)? / length(Profile::Paper)?;
        (share < UNTRAINED).then_some(reduced)
    }

    /// Whether the model behind a row has the same size as in the published protocol.
    pub fn has_papers_model(&self, row: &Row) -> bool {
        let of = |profile| self.protocol_of(&row.method, profile);
        of(row.profile).zip(of(Profile::Paper)).is_some_and(|(own, paper)| own.has_model_of(paper))
    }

    /// Number of signals that the full protocol runs, if the file states it.
    pub fn signals(&self) -> Option<&SignalCount> {
        self.data.as_ref()?.signals.as_ref()
    }

    /// Descriptions of incomplete sets of signals at the full protocol, such as `8 of 16 images, full protocol`. Empty if the rows
    /// cover all signals, or if the file does not state their number.
    ///
    /// Other groups' rows are ignored. Methods are counted separately.
    pub fn parts<'a>(&self, rows: impl IntoIterator<Item = &'a Row>) -> BTreeSet<String> {
        let Some(full) = self.signals().filter(|_| self.reduced(Profile::Paper).is_none()) else {
            return BTreeSet::new();
        };
        let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for row in rows.into_iter().filter(|r| r.group == self.id && r.profile == Profile::Paper) {
            found.entry(&row.method).or_default().insert(&row.signal);
        }
        let counts = found.values().map(BTreeSet::len).filter(|count| *count < full.count);
        counts.map(|n| format!("{n} of {} {}, full protocol", full.count, full.noun)).collect()
    }

    /// The protocol of a method at a profile; `None` if there is no such variant or it does not run.
    pub fn protocol_of(&self, method: &str, profile: Profile) -> Option<&Protocol> {
        let variant = self.variants.iter().position(|v| v.id == method)?;
        self.resolved(profile, variant).map(|resolved| &resolved.protocol)
    }

    /// Why the group does not run at `profile`, if its file refuses it: what is missing, and what it would cost.
    pub fn refused(&self, profile: Profile) -> Option<&str> {
        self.refusals.get(&profile).map(String::as_str)
    }

    /// The largest profile that does exactly what `profile` does for this variant: a full-scale
    /// `quick` run is a `paper` run and is recorded as one.
    pub fn equivalent_profile(&self, profile: Profile, variant: usize) -> Profile {
        let work = |p: &Profile| (self.resolved(*p, variant), self.reductions.get(p));
        let mut larger = Profile::ALL.into_iter().rev().filter(|p| *p >= profile);
        larger.find(|p| work(p) == work(&profile)).unwrap_or(profile)
    }
}

impl Group {
    /// Rejects a method that is no variant; the error is at `key` below `place`.
    pub(super) fn check_method(
        &self,
        place: &YamlPath<'_>,
        key: &str,
        method: &str,
    ) -> Result<(), FileError> {
        if self.variants.iter().any(|variant| variant.id == method) {
            return Ok(());
        }
        let ids: Vec<_> = self.variants.iter().map(|variant| variant.id.as_str()).collect();
        let (id, ids) = (&self.id, ids.join(", "));
        Err(place.error(key, format!("no variant `{method}` in group `{id}`; allowed: {ids}")))
    }
}

/// The group with this id; an error at `place` if no group has it.
pub(super) fn find_group<'a>(
    place: &YamlPath<'_>,
    id: &str,
    groups: &'a [Group],
) -> Result<&'a Group, FileError> {
    groups.iter().find(|group| group.id == id).ok_or_else(|| {
        let ids: Vec<_> = groups.iter().map(|group| group.id.as_str()).collect();
        place.error("", format!("no group `{id}`; allowed: {}", ids.join(", ")))
    })
}

/// Variants that share a protocol and data.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WireGroup {
    /// Third part of a selector, and `group` in records. Allowed: a key.
    pub(super) id: String,
    /// Purpose of a group that the paper does not have: an ablation, another reading, generated pictures. The report shows it above
    /// the item, and below plots that show nothing else. At profile `paper`, such a group follows our own definition. Allowed: a
    /// few words.
    pub(super) ours: Option<String>,
    /// `kind` and the [settings of the protocol](report/protocols.md).
    #[schemars(with = "json::Object")]
    pub(super) protocol: Mapping,
    /// Data set, see below.
    pub(super) data: Option<Data>,
    /// Metrics that enter records. Leave out long series that no claim, plot or table reads. Default: all.
    pub(super) metrics: Option<Vec<String>>,
    /// Independent repetitions, each with its own random stream. Allowed: 1 to 100000.
    #[serde(default = "one")]
    pub(super) seeds: usize,
    /// Index of the first repetition. A group that adds seeds to another group starts where that one ends. Allowed: 0 to 100000.
    #[serde(default)]
    pub(super) first_seed: u64,
    /// One per curve or row. Allowed: at least one.
    pub(super) variants: Vec<WireVariant>,
    /// Changes for these profiles. Default: none. Allowed: `smoke`, `quick`, `long`, `paper`.
    #[serde(default)]
    #[schemars(schema_with = "json::of_profiles::<WireProfile>")]
    pub(super) profiles: BTreeMap<Profile, WireProfile>,
}

pub(super) fn one() -> usize {
    1
}

/// One row of a table, one curve of a figure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WireVariant {
    /// Method name in records and published values. Allowed: 1 to 80 characters.
    pub(super) id: String,
    /// `kind` and parameters of the embedder; required if the protocol uses one. Its width, scale, largest frequency or number of
    /// levels may be `auto` in `closed-form`, `network-nd` and `width-selection`. Ridge regression on a grid, complex encodings at random
    /// positions, and gradient descent with a complex encoding without hidden layers on a grid then select it from the training samples.
    /// Elsewhere, a rule computes it from the number of training samples per axis.
    #[serde(default)]
    #[schemars(schema_with = "json::embedder")]
    pub(super) embedder: Option<Mapping>,
    /// Replaces settings of the group's protocol. Default: none.
    #[serde(default)]
    #[schemars(with = "json::Object")]
    pub(super) settings: Mapping,
}

/// Changes of a group at a profile.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WireProfile {
    /// Replaces settings of the protocol and of the variant. Default: none.
    #[serde(default)]
    #[schemars(with = "json::Object")]
    pub(super) settings: Mapping,
    /// Ids of the variants that run. Default: all.
    pub(super) variants: Option<Vec<String>>,
    /// Number of repetitions. Default: of the group. Allowed: 1 to 100000.
    pub(super) seeds: Option<usize>,
    /// Maximum number of signals from the data set. Default: all. Allowed: 1 to 100000.
    pub(super) signals: Option<usize>,
    /// What is reduced compared with the paper, shown next to the numbers. Claims about values are then not judged. Not allowed for
    /// `paper`. Allowed: a few words.
    pub(super) reduced: Option<String>,
    /// What is missing and what it would cost. The group does not run at this profile, and `reproduce` prints these words.
    /// Allowed: a few words.
    pub(super) refused: Option<String>,
}

impl WireGroup {
    pub(super) fn checked(
        self,
        place: &YamlPath<'_>,
        asked: &mut SizeBudget,
    ) -> Result<Group, FileError> {
        check_key(place, "id", &self.id)?;
        if self.ours.as_ref().is_some_and(|what| what.trim().is_empty()) {
            let message = "empty; say in a few words what the group is for, or remove the key";
            return Err(place.error("ours", message));
        }
        if self.variants.is_empty() {
            return Err(place.error("variants", "empty; a group needs at least one variant"));
        }
        check_unique(&place.key("variants"), &self.variants, |v| &v.id)?;
        let mut variants = Vec::new();
        for (i, wire) in self.variants.iter().enumerate() {
            let here = place.entry("variants", i);
            if wire.id.is_empty() || wire.id.len() > 80 || wire.id.chars().any(|c| c.is_control()) {
                return Err(here.error("id", "allowed: 1 to 80 printable characters"));
            }
            let embedder = wire.embedder.clone();
            let embedder = embedder.map(|m| embedder::read(&here.key("embedder"), m));
            variants.push(Variant { id: wire.id.clone(), embedder: embedder.transpose()? });
        }
        // Without its own definition, `long` would have the settings and the cost of `paper`.
        let defined = |p: Profile| p != Profile::Long || self.profiles.contains_key(&p);
        let mut plans = BTreeMap::new();
        let mut reductions = BTreeMap::new();
        let mut refusals = BTreeMap::new();
        for profile in Profile::ALL.into_iter().filter(|p| defined(*p)) {
            let over = self.profiles.get(&profile);
            let here = place.key(&format!("profiles.{profile}"));
            if let Some(reason) = over.and_then(|o| o.refused.clone()) {
                // A reason that names another profile promises that the group runs there.
                let runs = |p: Profile| {
                    defined(p) && self.profiles.get(&p).is_none_or(|o| o.refused.is_none())
                };
                let named = |p: &Profile| *p != profile && reason.contains(&format!("`{p}`"));
                if let Some(other) = Profile::ALL.into_iter().filter(named).find(|p| !runs(*p)) {
                    let message = format!(
                        "names `{other}`, at which the group does not run; define `{other}` or name another profile"
                    );
                    return Err(here.error("refused", message));
                }
                refusals.insert(profile, reason);
                continue;
            }
            if let Some(reduced) = over.and_then(|o| o.reduced.clone()) {
                if profile == Profile::Paper {
                    let message =
                        "the `paper` profile is the published protocol and cannot be reduced";
                    return Err(here.error("reduced", message));
                }
                reductions.insert(profile, reduced);
            }
            let seeds = over.and_then(|o| o.seeds).unwrap_or(self.seeds);
            let signals = over.and_then(|o| o.signals);
            // `seeds` is a key of the profile or of the group.
            let has_seeds = over.is_some_and(|o| o.seeds.is_some());
            let seeds_place = if has_seeds { &here } else { place };
            for (at, key, value) in
                [(seeds_place, "seeds", Some(seeds)), (&here, "signals", signals)]
            {
                if value.is_some_and(|v| v == 0 || v > 100_000) {
                    return Err(at.error(key, "allowed: 1 to 100000"));
                }
            }
            if self.first_seed > 100_000 {
                return Err(place.error("first_seed", "allowed: 0 to 100000"));
            }
            if signals.is_some() && self.data.is_none() {
                let message = "the group has no `data`, so it has no signals to limit";
                return Err(here.error("signals", message));
            }
            let chosen = over.and_then(|o| o.variants.as_deref());
            if let Some(chosen) = chosen {
                let ids: Vec<&str> = variants.iter().map(|variant| variant.id.as_str()).collect();
                if chosen.is_empty() {
                    return Err(here.error("variants", "empty; remove the key to run all variants"));
                }
                if let Some((i, message)) = unknown_name("variant", chosen, &ids) {
                    return Err(here.entry("variants", i).error("", message));
                }
            }
            let mut resolved = Vec::new();
            for (i, (variant, checked)) in self.variants.iter().zip(&variants).enumerate() {
                let own = place.entry("variants", i);
                let mut settings = self.protocol.clone();
                let mut at = place.key("protocol");
                for (layer, place) in [
                    (Some(&variant.settings), own.key("settings")),
                    (over.map(|o| &o.settings), here.key("settings")),
                ] {
                    let Some(layer) = layer else { continue };
                    if layer.contains_key("kind") {
                        let message =
                            "the protocol's kind cannot be overridden; make another group";
                        return Err(place.error("kind", message));
                    }
                    settings.extend(layer.clone());
                    at = at.replaced_by(layer, &place);
                }
                let protocol = asked.kinds.protocol(&at, settings)?;
                let runs = chosen.is_none_or(|ids| ids.contains(&variant.id));
                if runs {
                    asked.add(profile, seeds, &protocol).map_err(|(key, message)| {
                        let at = if key == "seeds" { seeds_place } else { place };
                        at.error(key, message)
                    })?;
                }
                if let Some(spec) = &checked.embedder {
                    let fits = protocol.settings().check_embedder(spec);
                    fits.map_err(|(key, message)| at.error(key, message))?;
                }
                let kind = protocol.kind();
                if let Some(parameter) = checked.embedder.as_ref().and_then(EmbedderSpec::auto)
                    && !kind.takes_auto
                {
                    let allowed = asked.kinds.all.iter().filter(|kind| kind.takes_auto);
                    let allowed: Vec<&str> = allowed.map(|kind| kind.name).collect();
                    let message = format!(
                        "`auto` needs a number of training positions, which `{}` does not have; allowed with: {}",
                        kind.name,
                        allowed.join(", ")
                    );
                    return Err(own.key("embedder").error(parameter.name, message));
                }
                if let Some(key) = kind.repeats_key
                    && seeds != 1
                {
                    let message = format!(
                        "protocol `{}` takes the number of runs from `{key}`; remove `seeds`",
                        kind.name
                    );
                    return Err(seeds_place.error("seeds", message));
                }
                if kind.needs_embedder && variant.embedder.is_none() {
                    let message =
                        format!("protocol `{}` needs an `embedder` in every variant", kind.name);
                    return Err(own.error("", message));
                }
                let data = self.data.as_ref();
                check_data(data, kind, asked.kinds)
                    .and_then(|()| protocol.settings().check_data(data))
                    .map_err(|(key, message)| place.error(key, message))?;
                resolved.push(runs.then_some(Resolved { protocol, seeds, signals }));
            }
            plans.insert(profile, resolved);
        }
        Ok(Group {
            id: self.id,
            ours: self.ours,
            data: self.data,
            metrics: self.metrics,
            is_on_papers_data: true,
            seeds: self.seeds,
            first_seed: self.first_seed,
            variants,
            plans,
            reductions,
            refusals,
        })
    }
}

/// Rejects keys of `data` that the protocol does not support.
fn check_data(data: Option<&Data>, kind: &Kind, kinds: Kinds) -> Result<(), Fault> {
    let Some(data) = data else { return Ok(()) };
    type IsTaken = fn(&Kind) -> bool;
    let keys: [(_, _, IsTaken); 2] = [
        ("data.weights", data.weights.is_some(), |kind| kind.takes_weights),
        ("data.held_out", data.held_out.is_some(), |kind| kind.takes_held_out),
    ];
    for (key, is_given, is_taken) in keys {
        if is_given && !is_taken(kind) {
            let takers = kinds.all.iter().filter(|kind| is_taken(kind));
            let names: Vec<String> = takers.map(|kind| format!("`{}`", kind.name)).collect();
            return Err((key, format!("only allowed with {}", names.join(" and "))));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::protocol::testing::demo;

    /// Catches a part of the signals that is treated as all of them, and rows of a reduced run that are counted.
    #[test]
    fn parts_are_counted_by_method() {
        let text = "data: { set: pictures, signals: 2 images }, protocol: { kind: stable-rank }, \
                    profiles: { smoke: { reduced: half, settings: { samples: 2 } } }";
        let group = &demo(text, "").groups[0];
        let row = |method: &str, signal: &str, profile| Row {
            signal: signal.into(),
            unit: "dB".into(),
            profile,
            data: "pictures".into(),
            ..Row::new("run", method, "psnr", 1.0)
        };
        let mut rows = vec![
            row("A", "one", Profile::Paper),
            row("A", "two", Profile::Paper),
            row("B", "one", Profile::Paper),
            row("B", "two", Profile::Smoke),
        ];
        let expected = BTreeSet::from(["1 of 2 images, full protocol".to_owned()]);
        assert_eq!(group.parts(&rows), expected);
        rows.push(row("B", "two", Profile::Paper));
        assert!(group.parts(&rows).is_empty());
    }
}
