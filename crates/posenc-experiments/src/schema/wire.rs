//! The mappings of experiment files, one struct each. Their doc comments are the source of `FORMAT.md` and of the JSON Schema.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_yaml::Mapping;

use super::claim::{Floor, WireClaim};
use super::data::Data;
use super::display::{Comparison, PictureGrid, Plot, Table};
use super::json;
use crate::profile::Profile;

/// A figure, table or proposition: what to run, what to compare the results with, and how to show them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Key of the paper, the name of the folder. Allowed: a key.
    pub paper: String,
    /// Key of the item. Allowed: a key in `paper.yaml`.
    pub item: String,
    /// What the item is in the paper. Allowed: `figure`, `table`, `proposition`, `appendix`, `extra`.
    pub kind: ItemKind,
    /// Title. Allowed: one line.
    pub title: String,
    /// What the paper shows; `$…$` is mathematics. Allowed: Markdown.
    pub shows: String,
    /// What we found: [sentences](#answers), each shown only where the verdicts that it states are those of the record. Without one,
    /// the page shows the first claim that was decided. Default: from the claims. Allowed: a sentence, or a list.
    #[schemars(with = "Option<json::AnyValue>")]
    pub(super) answer: Option<serde_yaml::Value>,
    /// [Results that a method must exceed](#floors) before an order or quotient of it means anything.
    #[serde(default)]
    pub floors: Vec<Floor>,
    /// [What is run](#a-group); required without `comparisons`. Allowed: list.
    #[serde(default)]
    pub(super) groups: Vec<WireGroup>,
    /// [What is claimed](#claims).
    #[serde(default)]
    pub(super) claims: Vec<WireClaim>,
    /// [How records are plotted](#plots).
    #[serde(default)]
    pub plots: Vec<Plot>,
    /// [How records are tabulated](#tables).
    #[serde(default)]
    pub tables: Vec<Table>,
    /// [Which methods of other items are compared](#comparisons).
    #[serde(default)]
    pub comparisons: Vec<Comparison>,
    /// [Which recorded pictures are shown](#pictures).
    #[serde(default)]
    pub pictures: Vec<PictureGrid>,
    /// Times of `cargo xtask bench` shown next to the item: `workload` (name in `bench`), `covers` (rows that it represents,
    /// Markdown), `times` (workloads per signal at full scale, default 1).
    #[serde(default)]
    pub benchmarks: Vec<Speed>,
    /// Errata of the paper whose numbers are shown next to the item; ids as on the errata page. Allowed: list of ids.
    #[serde(default)]
    pub errata: Vec<String>,
    /// Our interpretation. Allowed: Markdown.
    #[serde(default)]
    pub analysis: String,
    /// Departures from the paper, and choices that the paper leaves open. Allowed: list of Markdown.
    #[serde(default)]
    pub deviations: Vec<String>,
}

/// What an item is in its paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    Figure,
    Table,
    Proposition,
    Appendix,
    /// Not in the paper: from the authors' notebooks, or ours.
    Extra,
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

fn one() -> usize {
    1
}

/// One row of a table, one curve of a figure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WireVariant {
    /// Method name in records and published values. Allowed: 1 to 80 characters.
    pub(super) id: String,
    /// `kind` and parameters of the embedder; required if the protocol uses one. Its width, scale, largest frequency or number of
    /// levels may be `auto` in `closed-form`, `network-nd` and `width-selection`. Ridge regression on a grid, and complex encodings at
    /// random positions, then select it from the training samples. Elsewhere, a rule computes it from the number of training samples
    /// per axis.
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
