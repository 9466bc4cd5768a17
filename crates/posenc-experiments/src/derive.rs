//! Derives a new experiment from an existing one.
//!
//! Leaves out the parts about the paper (claims about printed numbers, the answer, errata, times, the analysis), the groups that were not
//! selected, and comments. Aliases are written out.

use serde_yaml::{Mapping, Value};

use crate::schema::Experiment;
use crate::schema::claim::{Check, Claim, ClaimCheck, Select, Source};
use crate::yaml::{Document, FileError};

pub struct NewItem<'a> {
    /// Key of the paper that gets the item.
    pub paper: &'a str,
    pub item: &'a str,
    pub title: &'a str,
    /// Groups to keep; all if empty.
    pub groups: &'a [String],
    /// The first line of the new file.
    pub modeline: &'a str,
}

pub struct Derived {
    pub text: String,
    /// The omitted parts of the source, one line per kind.
    pub left_out: Vec<String>,
}

/// Folder and paper of the user's own experiments.
pub(crate) const PAPER: &str = "extensions";

/// Derives `target` from `source`, whose file contains `text`.
pub fn derive(source: &Experiment, text: &str, target: &NewItem<'_>) -> Result<Derived, FileError> {
    let groups = source.groups.iter().map(|g| g.id.clone());
    let is_kept = |id: &String| target.groups.is_empty() || target.groups.contains(id);
    let parts = Parts { source, groups: groups.filter(is_kept).collect() };
    let file =
        std::path::PathBuf::from(format!("experiments/{}/{}.yaml", target.paper, target.item));
    let (mut whole, mut left_out) = (Mapping::new(), Vec::new());
    let mut sections: Vec<String> = Vec::new();
    let Value::Mapping(old) = Document::parse(&source.file, text)?.value else {
        return Err(FileError::of(&source.file, "not a mapping"));
    };
    for (key, old) in old {
        let name = key.as_str().unwrap_or_default().to_owned();
        let new = match (name.as_str(), old) {
            ("paper", _) => target.paper.into(),
            ("item", _) => target.item.into(),
            ("kind", _) => "extra".into(),
            ("title", _) => target.title.into(),
            ("answer" | "errata" | "benchmarks" | "analysis", _) => {
                sections.push(name);
                continue;
            }
            (name, Value::Sequence(list)) if LISTS.contains(&name) => {
                let (mut kept, mut ids) = (Vec::new(), Vec::new());
                for (i, item) in list.into_iter().enumerate() {
                    let id = item.get("id").and_then(Value::as_str).map(str::to_owned);
                    match parts.item(name, i, item) {
                        Some(item) => kept.push(item),
                        None => ids.extend(id),
                    }
                }
                if !ids.is_empty() {
                    left_out.push(format!("{name}: {}", ids.join(", ")));
                }
                if kept.is_empty() {
                    continue;
                }
                Value::Sequence(kept)
            }
            (_, old) => old,
        };
        whole.insert(key, new);
    }
    if !sections.is_empty() {
        left_out.push(format!("sections: {}", sections.join(", ")));
    }
    let tree = serde_yaml::to_string(&whole).map_err(|e| FileError::unwritable(&file, e))?;
    let text = parts.head(target) + &tree;
    Experiment::from_document(&Document::parse(&file, &text)?, source.kinds)?;
    Ok(Derived { text, left_out })
}

/// The lists whose items may change.
const LISTS: [&str; 7] = ["groups", "claims", "floors", "ceilings", "plots", "tables", "pictures"];

/// What stays of an experiment.
struct Parts<'a> {
    source: &'a Experiment,
    groups: Vec<String>,
}

impl Parts<'_> {
    fn head(&self, target: &NewItem<'_>) -> String {
        let which = match target.groups {
            [] => String::new(),
            groups => format!(" (groups {})", groups.join(", ")),
        };
        format!(
            "{}# From {}{which}, by `cargo xtask new experiment`: claims are marked as ours, those about printed numbers are left out,\n\
             # as are the answer, errata, times and the analysis. Random numbers differ, since streams depend on the item name.\n",
            target.modeline,
            self.source.id()
        )
    }

    /// Whether the groups that stay record the metrics of a column or a ceiling.
    fn records(&self, item: &Value) -> bool {
        let excluded = item.get("excludes").and_then(Value::as_sequence);
        let named = item.get("metric").into_iter().chain(excluded.into_iter().flatten());
        let groups: Vec<_> = self.groups.iter().filter_map(|id| self.source.group(id)).collect();
        { named.filter_map(Value::as_str) }
            .all(|metric| groups.iter().any(|group| group.metric_problem(metric).is_none()))
    }

    /// What becomes of an item of a list; `None` if it is left out.
    fn item(&self, key: &str, index: usize, mut item: Value) -> Option<Value> {
        let is_kept =
            |id: &Value| id.as_str().is_some_and(|id| self.groups.iter().any(|g| g == id));
        let names_kept = |item: &Value, key: &str| item.get(key).is_some_and(is_kept);
        let stays = match key {
            "groups" => names_kept(&item, "id"),
            "claims" => {
                if let Some(Value::String(text)) = item.get_mut("source") {
                    *text = format!("{}, {}", self.source.id(), text.trim());
                }
                let claim = item.as_mapping_mut()?;
                claim.insert("ours".into(), true.into());
                // Only the claim of the source repeats a claim of another paper.
                claim.remove("repeats");
                self.source.claims.get(index).is_some_and(|claim| self.keeps(claim))
            }
            "plots" => retain(&mut item, "panels", |panel| names_kept(panel, "group")),
            "ceilings" => self.records(&item),
            // An empty list would mean the group of the floor itself.
            "floors" => retain(&mut item, "applies_to", is_kept) && names_kept(&item, "group"),
            _ => {
                let stays = retain(&mut item, "groups", is_kept);
                let groups = item.get("groups").and_then(Value::as_sequence).cloned();
                let mut groups = groups.into_iter().flatten();
                let variants: Vec<&str> = groups
                    .by_ref()
                    .filter_map(|id| self.source.group(id.as_str()?))
                    .flat_map(|group| group.variants.iter().map(|v| v.id.as_str()))
                    .collect();
                let has = |id: &Value| id.as_str().is_some_and(|id| variants.contains(&id));
                // Columns of metrics that no kept group records, such as printed values, are left out.
                stays
                    && retain(&mut item, "methods", has)
                    && retain(&mut item, "columns", |column| self.records(column))
            }
        };
        stays.then_some(item)
    }

    /// Whether a claim is kept: it is only about measured values of the kept groups, and neither about numbers of the paper nor an
    /// erratum.
    fn keeps(&self, claim: &Claim) -> bool {
        let of_print =
            |own: &ClaimCheck| matches!(own.check, Check::Value(_) | Check::Agreement(_));
        let own = |s: &Select| s.from == Source::Measured && self.groups.contains(&s.group);
        claim.erratum.is_none() && !claim.checks.iter().any(of_print) && claim.selects().all(own)
    }
}

/// Keeps some entries of a list; returns false if none is left. An absent list stays absent.
fn retain(item: &mut Value, key: &str, keep: impl FnMut(&Value) -> bool) -> bool {
    let Some(list) = item.get_mut(key).and_then(Value::as_sequence_mut) else { return true };
    list.retain(keep);
    !list.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::MODELINE;
    use crate::schema::protocol::testing::experiment;

    const FILE: &str = include_str!("derive_example.yaml");

    fn derived(file: &str, groups: &[&str]) -> Derived {
        let groups: Vec<String> = groups.iter().map(|g| (*g).to_owned()).collect();
        let (paper, title) = ("extensions", "Mine: a copy");
        let new = NewItem { paper, item: "mine", title, groups: &groups, modeline: MODELINE };
        derive(&experiment(file), file, &new).unwrap()
    }

    /// Catches parts about the paper or other groups that remain, and parts of a copied group that are lost with the anchor of another.
    #[test]
    fn parts_of_the_paper_and_of_other_groups_are_left_out() {
        let all = derived(FILE, &[]);
        assert_eq!(all.left_out, ["claims: printed", "sections: answer, analysis"]);
        assert!(all.text.starts_with(MODELINE), "{}", all.text);
        let own = experiment(&all.text);
        assert_eq!((own.id().as_str(), own.title.as_str()), ("extensions/mine", "Mine: a copy"));
        let claims: Vec<_> =
            own.claims.iter().map(|claim| (&*claim.id, &*claim.source, claim.is_ours)).collect();
        assert_eq!(claims, [("rises", "trading/table1, Table 1", true)]);
        assert!(own.analysis.is_empty() && own.answer.is_empty() && own.deviations.len() == 1);
        let two = derived(FILE, &["two"]);
        let own = experiment(&two.text);
        let panels: Vec<&str> = own.plots[0].panels.iter().map(|p| p.title.as_str()).collect();
        assert_eq!((own.groups.len(), panels), (1, vec!["right"]), "{}", two.text);
        assert_eq!(own.tables[0].groups, ["two"]);
        assert_eq!(own.groups[0].variants, experiment(FILE).groups[1].variants);
        assert_eq!(two.left_out[0], "groups: one, three");
    }

    /// Catches a table that keeps a method of a group that it no longer lists.
    #[test]
    fn tables_keep_only_methods_of_their_groups() {
        let other = "{ id: Other, embedder: *gau }";
        let file = FILE
            .replace("variants: *variants # shared", &format!("variants: [{other}]"))
            .replace("- { id: Gau, embedder: *gau }", &format!("- {other}"))
            .replace("groups: [one, two]", "groups: [one, two]\n    methods: [Gau, Other]");
        let text = derived(&file, &["one", "three"]).text;
        assert_eq!(experiment(&text).tables[0].methods, Some(vec!["Gau".to_owned()]), "{text}");
    }
}
