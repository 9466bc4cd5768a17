//! One experiment file: what to run, what to compare the results with, and how to show them.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use posenc_math::embedder::{EmbedderSpec, find};
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer::{self, AnswerSentence};
use super::claim::{Claim, Floor};
use super::display::{Comparison, PictureGrid, Plot, Table};
use super::embedder;
use super::limits::{Asked, MAX_VARIANTS};
use super::protocol::{Fault, Kind, Kinds, Protocol};
use super::signals::SignalCount;
use super::wire::{WireExperiment, WireGroup};
use crate::record::{Row, is_counted};
use crate::yaml::{Document, FileError, Place, hint};

/// How much of the published protocol a run does, ordered from smallest to largest.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Deserialize,
    serde::Serialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Everything within a minute, for tests.
    Smoke,
    /// The default.
    Quick,
    /// About an hour, for groups that define it.
    Long,
    /// The published protocol.
    Paper,
}

impl Profile {
    /// All profiles, smallest first.
    pub const ALL: [Profile; 4] = [Profile::Smoke, Profile::Quick, Profile::Long, Profile::Paper];

    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Smoke => "smoke",
            Profile::Quick => "quick",
            Profile::Long => "long",
            Profile::Paper => "paper",
        }
    }

    /// The profile with this name.
    pub fn parse(name: &str) -> Option<Profile> {
        Profile::ALL.into_iter().find(|p| p.name() == name)
    }
}

impl std::fmt::Display for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What an item is in its paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    /// A figure.
    Figure,
    /// A table.
    Table,
    /// A proposition or an equation.
    Proposition,
    /// An appendix.
    Appendix,
    /// Not in the paper: from the authors' notebooks, or ours.
    Extra,
}

/// A validated experiment. Later code does not validate it again.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The file it was read from.
    pub file: PathBuf,
    /// The kinds of protocol it was read with.
    pub kinds: Kinds,
    /// Paper key, such as `trading`.
    pub paper: String,
    /// Item key, such as `table1`.
    pub item: String,
    /// What the item is.
    pub kind: ItemKind,
    /// One line.
    pub title: String,
    /// What the paper shows, in our words (Markdown).
    pub shows: String,
    /// What we found; derived from the claims if empty.
    pub answer: Vec<AnswerSentence>,
    /// Results that a method must exceed to be compared.
    pub floors: Vec<Floor>,
    /// Groups to run.
    pub groups: Vec<Group>,
    /// Claims to judge.
    pub claims: Vec<Claim>,
    /// Plots of records.
    pub plots: Vec<Plot>,
    /// Tables of records.
    pub tables: Vec<Table>,
    /// Methods of other items side by side.
    pub comparisons: Vec<Comparison>,
    /// Grids of recorded pictures.
    pub pictures: Vec<PictureGrid>,
    /// Workloads of `bench` whose times are shown next to the item.
    pub benchmarks: Vec<Speed>,
    /// Errata of the paper that are shown next to the item, by their id.
    pub errata: Vec<String>,
    /// Our interpretation (Markdown).
    pub analysis: String,
    /// Departures from the paper, and choices that the paper leaves open.
    pub deviations: Vec<String>,
}

/// A workload of `bench` that covers all or one step of what an item runs.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Speed {
    /// Name of the workload in `bench`.
    pub workload: String,
    /// Rows of the item that it represents (Markdown).
    pub covers: String,
    /// Number of workloads per signal at full scale.
    #[serde(default = "one")]
    pub times: usize,
}

fn one() -> usize {
    1
}

/// Variants that share a protocol and data.
#[derive(Debug, Clone)]
pub struct Group {
    /// Group key, such as `closed-form`.
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
    /// The variants.
    pub variants: Vec<Variant>,
    /// Resolved settings per profile and variant (same order as `variants`).
    plans: BTreeMap<Profile, Vec<Resolved>>,
    /// What is reduced at a profile compared with the published protocol.
    reductions: BTreeMap<Profile, String>,
    /// Why the group does not run at a profile.
    refusals: BTreeMap<Profile, String>,
}

/// Data a group reads.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Id of a data set in `data/manifest.yaml`. Each of its signals is a unit. A set of files (`file_sets` in the
    /// manifest) is one unit, and the group is skipped if the files are missing. Allowed: id of a set.
    pub set: String,
    /// Indices of signals, from 0; not with `held_out`. Default: all. Allowed: list of integers.
    pub pick: Option<Vec<usize>>,
    /// Number of signals that the full protocol runs, with a noun. A run of some of them at the full protocol is then recorded and
    /// shown as, for example, `8 of 16 images, full protocol`. Orderings are judged on these signals, values only once all are
    /// there. Allowed: such as `16 images`.
    pub signals: Option<SignalCount>,
    /// Another set, on which the models are evaluated. Both sets together are then one unit. For `image-model` and
    /// `pixel-entropies`. Allowed: id of a set.
    pub held_out: Option<String>,
    /// Initial weights for `detr`, or word vectors for `widget-captioning`; used if available. Allowed: id of a set.
    pub weights: Option<String>,
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
                "`{name}` records no metric `{metric}`; docs/protocols.md lists its metrics{hint}"
            ));
        }
        let id = &self.id;
        let message = format!(
            "`metrics` of the group `{id}` do not name `{metric}`, so it is not recorded; add it"
        );
        (!self.records(metric)).then_some(message)
    }

    /// Rejects a metric that the group never records; the error is at `key` below `place`.
    pub(super) fn check_metric(
        &self,
        place: &Place<'_>,
        key: &str,
        metric: &str,
    ) -> Result<(), FileError> {
        self.metric_problem(metric).map_or(Ok(()), |message| Err(place.error(key, message)))
    }

    /// Whether rows with this data label were measured on the paper's own data. Always true for groups without a data set.
    pub fn is_papers_data(&self, label: &str) -> bool {
        self.data.as_ref().is_none_or(|data| self.is_on_papers_data && data.set == label)
    }

    /// The resolved protocol of variant number `variant` at `profile`. `None` if the group does not run at this profile; at `long`,
    /// also if the group does not define it.
    pub fn resolved(&self, profile: Profile, variant: usize) -> Option<&Resolved> {
        self.plans.get(&profile)?.get(variant)
    }

    /// The kind of its protocol; `None` if it runs at no profile.
    pub fn kind(&self) -> Option<&'static Kind> {
        let plan = self.plans.values().find_map(|plan| plan.first())?;
        Some(plan.protocol.kind())
    }

    /// Whether the group runs at `profile`.
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
            let canonical = self.protocol_of(&row.method, profile)?.canonical();
            let (_, json) = canonical.split_once(' ')?;
            let settings: serde_json::Value = serde_json::from_str(json).ok()?;
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

    fn protocol_of(&self, method: &str, profile: Profile) -> Option<&Protocol> {
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

/// Whether a text can be a paper, an item or an id: 1 to 60 of a-z, 0-9 and -. Keys become parts of file names and selectors.
pub fn is_key(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.len() <= 60 && text.chars().all(allowed)
}

/// The group with this id; an error at `place` if no group has it.
pub(super) fn find_group<'a>(
    place: &Place<'_>,
    id: &str,
    groups: &'a [Group],
) -> Result<&'a Group, FileError> {
    groups.iter().find(|group| group.id == id).ok_or_else(|| {
        let ids: Vec<_> = groups.iter().map(|group| group.id.as_str()).collect();
        place.error("", format!("no group `{id}`; allowed: {}", ids.join(", ")))
    })
}

/// Rejects a text that is not a key; the error is at `key` below `place`.
pub(super) fn check_key(place: &Place<'_>, key: &str, text: &str) -> Result<(), FileError> {
    match is_key(text) {
        true => Ok(()),
        false => {
            let message = format!("`{text}` is not allowed; allowed: 1 to 60 of a-z, 0-9 and -");
            Err(place.error(key, message))
        }
    }
}

/// Rejects duplicate ids in the list at `place`.
fn check_unique<T>(place: &Place<'_>, list: &[T], id: fn(&T) -> &String) -> Result<(), FileError> {
    let mut seen = HashSet::new();
    for (i, id) in list.iter().map(id).enumerate() {
        if !seen.insert(id) {
            let list = place.path();
            let message = format!("`{id}` appears twice; ids under `{list}` must be unique");
            return Err(place.entry("", i).error("id", message));
        }
    }
    Ok(())
}

/// Rejects duplicate ids in the list at `place`, and ids that are not keys.
fn check_keys<T>(place: &Place<'_>, list: &[T], id: fn(&T) -> &String) -> Result<(), FileError> {
    check_unique(place, list, id)?;
    list.iter().enumerate().try_for_each(|(i, item)| check_key(&place.entry("", i), "id", id(item)))
}

impl Experiment {
    /// `paper/item`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.paper, self.item)
    }

    /// The group with this id.
    pub fn group(&self, id: &str) -> Option<&Group> {
        self.groups.iter().find(|g| g.id == id)
    }

    /// Reads one experiment file.
    pub fn read(file: &Path, kinds: Kinds) -> Result<Self, FileError> {
        Experiment::from_document(&Document::read(file)?, kinds)
    }

    /// Deserializes a document; every error names file, line and key.
    pub fn from_document(document: &Document, kinds: Kinds) -> Result<Self, FileError> {
        let (root, wire): (_, WireExperiment) = (document.root(), document.typed()?);
        check_key(&root, "paper", &wire.paper)?;
        check_key(&root, "item", &wire.item)?;
        if wire.groups.is_empty() && wire.comparisons.is_empty() {
            let message =
                "empty; an experiment needs at least one group, or `comparisons` of other items";
            return Err(root.error("groups", message));
        }
        check_keys(&root.key("comparisons"), &wire.comparisons, |c| &c.id)?;
        check_unique(&root.key("groups"), &wire.groups, |g| &g.id)?;
        check_keys(&root.key("claims"), &wire.claims, |c| &c.id)?;
        check_keys(&root.key("plots"), &wire.plots, |p| &p.id)?;
        check_unique(&root.key("tables"), &wire.tables, |t| &t.id)?;
        check_keys(&root.key("pictures"), &wire.pictures, |p| &p.id)?;
        let variants: usize = wire.groups.iter().map(|g| g.variants.len()).sum();
        if variants > MAX_VARIANTS {
            let message = format!("{variants} variants; allowed: {MAX_VARIANTS}. Split the file");
            return Err(root.error("groups", message));
        }
        let mut asked = Asked::of(kinds);
        let groups = (wire.groups.into_iter().enumerate())
            .map(|(i, group)| group.checked(&root.entry("groups", i), &mut asked))
            .collect::<Result<Vec<_>, _>>()?;
        let claims = (wire.claims.into_iter().enumerate())
            .map(|(i, claim)| claim.checked(&root.entry("claims", i), &groups))
            .collect::<Result<Vec<_>, _>>()?;
        let selections = |id: &str| {
            let claim = claims.iter().find(|claim| claim.id == id)?;
            Some(claim.selects().count())
        };
        let answer = match &wire.answer {
            Some(value) => answer::parse(value, selections)
                .map_err(|(key, message)| root.error(&answer::key(&key), message))?,
            None => Vec::new(),
        };
        for (i, floor) in wire.floors.iter().enumerate() {
            floor.check(&root.entry("floors", i), &groups)?;
        }
        for (i, speed) in wire.benchmarks.iter().enumerate() {
            let place = root.entry("benchmarks", i);
            check_key(&place, "workload", &speed.workload)?;
            if !(1..=10_000_000).contains(&speed.times) {
                return Err(place.error("times", "allowed: 1 to 10000000"));
            }
        }
        for (i, id) in wire.errata.iter().enumerate() {
            let is_own = |e: &&posenc_math::errata::Erratum| e.paper() == wire.paper && e.id == id;
            if !posenc_math::errata::all().iter().any(is_own) {
                let paper = &wire.paper;
                let message =
                    format!("no erratum `{id}` of `{paper}`; report/errata.md has their names");
                return Err(root.error(&format!("errata[{i}]"), message));
            }
        }
        let (plots, tables, pictures) = (&wire.plots, &wire.tables, &wire.pictures);
        super::display::check(&root, plots, tables, pictures, &wire.comparisons, &groups)?;
        // Most keys state what they allow, so this comes last.
        document.check_finite()?;
        Ok(Experiment {
            file: root.file().to_owned(),
            kinds,
            paper: wire.paper,
            item: wire.item,
            kind: wire.kind,
            title: wire.title,
            shows: wire.shows,
            answer,
            floors: wire.floors,
            groups,
            claims,
            plots: wire.plots,
            tables: wire.tables,
            comparisons: wire.comparisons,
            pictures: wire.pictures,
            benchmarks: wire.benchmarks,
            errata: wire.errata,
            analysis: wire.analysis,
            deviations: wire.deviations,
        })
    }
}

impl WireGroup {
    fn checked(self, place: &Place<'_>, asked: &mut Asked) -> Result<Group, FileError> {
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
            let embedder = embedder.map(|m| embedder::read(&here.key("embedder"), m, asked));
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
            let mut resolved = Vec::new();
            for (i, (variant, checked)) in self.variants.iter().zip(&variants).enumerate() {
                let own = place.entry("variants", i);
                let mut settings = self.protocol.clone();
                let mut at = place.key("protocol");
                for (layer, place) in [
                    (Some(&variant.settings), own.key("settings")),
                    (over.map(|o| &o.settings), here.key("settings")),
                ] {
                    for (key, value) in layer.into_iter().flatten() {
                        if key.as_str() == Some("kind") {
                            let message =
                                "the protocol's kind cannot be overridden; make another group";
                            return Err(place.error("kind", message));
                        }
                        settings.insert(key.clone(), value.clone());
                        at = place.clone();
                    }
                }
                let protocol = asked.kinds.protocol(&at, settings)?;
                asked.add(profile, seeds, &protocol).map_err(|(key, message)| {
                    let at = if key == "seeds" { seeds_place } else { place };
                    at.error(key, message)
                })?;
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
                resolved.push(Resolved { protocol, seeds, signals });
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
