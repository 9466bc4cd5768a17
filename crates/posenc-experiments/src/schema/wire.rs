//! The mappings of experiment files, one struct each; those of groups, claims and displays are in their modules. Their doc comments are the
//! source of `FORMAT.md` and of the JSON Schema.

use schemars::JsonSchema;
use serde::Deserialize;

use super::claim::{Ceiling, Floor, WireClaim};
use super::display::{Comparison, PictureGrid, Plot, Table};
use super::group::WireGroup;
use super::json;

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
    /// [Results that a method must exceed](#floors-and-ceilings) before an order or quotient of it means anything.
    #[serde(default)]
    pub floors: Vec<Floor>,
    /// [Rates of success](#floors-and-ceilings) at which other metrics decide nothing.
    #[serde(default)]
    pub ceilings: Vec<Ceiling>,
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
    #[serde(default = "super::group::one")]
    pub times: usize,
}
