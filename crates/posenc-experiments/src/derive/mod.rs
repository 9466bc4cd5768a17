//! Derives a new experiment from an existing one.
//!
//! Removes the parts about the paper (claims about printed numbers, the answer, errata, times, the analysis) and the groups that were
//! not selected. The rest keeps the author's text and comments: whole lines are removed, and the result is parsed and compared with
//! the expected tree. If removing lines is not enough (for example because an alias inside braces loses its anchor), the tree is
//! written instead, without comments.

mod anchors;
mod text;

use std::collections::HashSet;

use serde_yaml::{Mapping, Value};

use crate::schema::claim::{Check, Claim, ClaimCheck, Select};
use crate::schema::{Experiment, MODELINE};
use crate::yaml::{Document, FileError};

/// The experiment to create.
pub struct NewItem<'a> {
    /// Key of the new item, in the folder `extensions`.
    pub item: &'a str,
    /// Its title.
    pub title: &'a str,
    /// Groups to keep; all if empty.
    pub groups: &'a [String],
}

/// A new experiment file.
pub struct Derived {
    /// Its text.
    pub text: String,
    /// The omitted parts of the source, one line per kind.
    pub left_out: Vec<String>,
}

/// Folder and paper of the user's own experiments.
const PAPER: &str = "extensions";

/// The parts of the source to keep.
struct Kept {
    groups: Vec<String>,
    claims: Vec<bool>,
}

/// Derives `target` from `source`, whose file contains `text`.
///
/// # Errors
///
/// A result that the schema rejects, with its line and key.
pub fn derive(source: &Experiment, text: &str, target: &NewItem<'_>) -> Result<Derived, FileError> {
    let is_kept = |id: &String| target.groups.is_empty() || target.groups.contains(id);
    let groups: Vec<String> = source.groups.iter().map(|g| g.id.clone()).filter(is_kept).collect();
    let kept =
        Kept { claims: source.claims.iter().map(|claim| stays(claim, &groups)).collect(), groups };
    let whole = Document::parse(&source.file, text)?.value;
    let wanted = tree(&whole, source, target, &kept);
    let head = head(source, target);
    let edited = text::edit(text, &whole, &wanted).map(|body| {
        let body = body.strip_prefix(MODELINE).unwrap_or(&body);
        format!("{head}{body}")
    });
    let file = std::path::PathBuf::from(format!("experiments/{PAPER}/{}.yaml", target.item));
    let same = |text: &String| Document::parse(&file, text).is_ok_and(|d| d.value == wanted);
    let text = match edited.filter(same) {
        Some(text) => text,
        None => {
            let body =
                serde_yaml::to_string(&wanted).map_err(|e| FileError::unwritable(&file, e))?;
            format!(
                "{head}# Written without the comments of the original, whose shared settings are spelled out.\n{body}"
            )
        }
    };
    Experiment::from_document(&Document::parse(&file, &text)?, source.kinds)?;
    Ok(Derived { text, left_out: left_out(source, &kept, &whole, &wanted) })
}

/// Whether a claim is kept: it is only about measured values of the kept groups, and neither about numbers of the paper nor an
/// erratum.
fn stays(claim: &Claim, groups: &[String]) -> bool {
    let of_print = |own: &ClaimCheck| matches!(own.check, Check::Value(_) | Check::Agreement(_));
    let own = |s: &Select| groups.contains(&s.group);
    claim.erratum.is_none() && !claim.checks.iter().any(of_print) && claim.selects().all(own)
}

fn head(source: &Experiment, target: &NewItem<'_>) -> String {
    let which = if target.groups.is_empty() {
        String::new()
    } else {
        format!(" (groups {})", target.groups.join(", "))
    };
    format!(
        "{MODELINE}# From {}{which}, by `cargo xtask new experiment`: claims are marked as ours, those about printed numbers are left out,\n\
         # as are the answer, errata, times and the analysis. Random numbers differ, since streams depend on the item name.\n",
        source.id()
    )
}

/// The tree of the new experiment.
fn tree(whole: &Value, source: &Experiment, target: &NewItem<'_>, kept: &Kept) -> Value {
    let mut tree = Mapping::new();
    for (key, value) in whole.as_mapping().into_iter().flatten() {
        let mut value = value.clone();
        match key.as_str().unwrap_or_default() {
            "paper" => value = PAPER.into(),
            "item" => value = target.item.into(),
            "kind" => value = "extra".into(),
            "title" => value = target.title.into(),
            "answer" | "errata" | "benchmarks" | "analysis" => continue,
            "groups" => retain(&mut value, |g| names(g, "id", &kept.groups)),
            "claims" => {
                let mut kept = kept.claims.iter();
                retain(&mut value, |_| kept.next().is_some_and(|is_kept| *is_kept));
                for claim in value.as_sequence_mut().into_iter().flatten() {
                    make_ours(claim, source);
                }
            }
            "plots" => {
                for plot in value.as_sequence_mut().into_iter().flatten() {
                    if let Some(panels) = plot.get_mut("panels") {
                        retain(panels, |p| names(p, "group", &kept.groups));
                    }
                }
                retain(&mut value, |p| !is_empty(p.get("panels")));
            }
            "floors" => {
                retain(&mut value, |floor| names(floor, "group", &kept.groups));
                for floor in value.as_sequence_mut().into_iter().flatten() {
                    if let Some(list) = floor.get_mut("applies_to") {
                        retain(list, |v| is_one_of(v, &kept.groups));
                    }
                }
                // An empty list would mean the group of the floor itself.
                retain(&mut value, |f| {
                    f.get("applies_to").is_none() || !is_empty(f.get("applies_to"))
                });
            }
            "tables" | "pictures" => {
                for shown in value.as_sequence_mut().into_iter().flatten() {
                    if let Some(list) = shown.get_mut("groups") {
                        retain(list, |v| is_one_of(v, &kept.groups));
                    }
                    let methods = methods_of(source, shown.get("groups"));
                    if let Some(list) = shown.get_mut("methods") {
                        retain(list, |v| is_one_of(v, &methods));
                    }
                }
                retain(&mut value, |t| {
                    !is_empty(t.get("groups"))
                        && (t.get("methods").is_none() || !is_empty(t.get("methods")))
                });
            }
            _ => {}
        }
        // Leaves out empty lists.
        if key.as_str() != Some("groups") && is_empty(Some(&value)) && value.is_sequence() {
            continue;
        }
        tree.insert(key.clone(), value);
    }
    Value::Mapping(tree)
}

fn make_ours(claim: &mut Value, source: &Experiment) {
    if let Some(Value::String(text)) = claim.get_mut("source") {
        *text = format!("{}, {}", source.id(), text.trim());
    }
    if let Some(claim) = claim.as_mapping_mut() {
        claim.insert("ours".into(), true.into());
        // Only the claim of the source repeats a claim of another paper.
        claim.remove("repeats");
    }
}

fn retain(list: &mut Value, mut keep: impl FnMut(&Value) -> bool) {
    if let Some(list) = list.as_sequence_mut() {
        list.retain(|v| keep(v));
    }
}

/// Ids of the variants of all groups in a list.
fn methods_of(source: &Experiment, groups: Option<&Value>) -> Vec<String> {
    let list = groups.and_then(Value::as_sequence).into_iter().flatten();
    let groups = list.filter_map(|id| source.group(id.as_str()?));
    groups.flat_map(|group| group.variants.iter().map(|v| v.id.clone())).collect()
}

fn names(value: &Value, key: &str, allowed: &[String]) -> bool {
    value.get(key).is_some_and(|id| is_one_of(id, allowed))
}

fn is_one_of(value: &Value, allowed: &[String]) -> bool {
    value.as_str().is_some_and(|text| allowed.iter().any(|a| a == text))
}

fn is_empty(list: Option<&Value>) -> bool {
    list.and_then(Value::as_sequence).is_none_or(Vec::is_empty)
}

fn left_out(source: &Experiment, kept: &Kept, whole: &Value, wanted: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |what: &str, ids: Vec<String>| {
        if !ids.is_empty() {
            lines.push(format!("{what}: {}", ids.join(", ")));
        }
    };
    say(
        "groups",
        source.groups.iter().map(|g| g.id.clone()).filter(|g| !kept.groups.contains(g)).collect(),
    );
    let claims = source.claims.iter().zip(&kept.claims).filter(|(_, kept)| !**kept);
    say("claims", claims.map(|(c, _)| c.id.clone()).collect());
    for key in ["plots", "tables", "pictures"] {
        let ids = |tree: &Value| -> Vec<String> {
            let list = tree.get(key).and_then(Value::as_sequence).into_iter().flatten();
            list.filter_map(|v| v.get("id")?.as_str().map(str::to_owned)).collect()
        };
        let stay: HashSet<String> = ids(wanted).into_iter().collect();
        say(key, ids(whole).into_iter().filter(|id| !stay.contains(id)).collect());
    }
    let sections = ["answer", "errata", "benchmarks", "analysis"].map(str::to_owned).into_iter();
    say("sections", sections.filter(|k| whole.get(k).is_some()).collect());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::protocol::testing::experiment;

    const FILE: &str = r#"# yaml-language-server: $schema=../schema.json
# Head.
paper: trading
item: table1
kind: table
title: A table
shows: Text with a *star*.
answer: The stable rank is {printed.1:1}.
groups:
  # About one.
  - id: one
    protocol: &ranks
      kind: stable-rank
      samples: [4, 8]
    variants: &variants
      - { id: Gau, embedder: &gau { kind: gaussian, dimension: 16, sigma: 0.1 } }
  # About two.
  - id: two
    protocol: *ranks
    variants: *variants # shared
  - id: three
    protocol: { <<: *ranks, samples: [2] }
    variants:
      - { id: Gau, embedder: *gau }
claims:
  - id: printed
    says: "It is: 3."
    source: Table 1
    check: { kind: value, of: { group: one, metric: stable_rank, x: 8 }, expect: published, tolerance: { absolute: 1 } }
  # Why it rises.
  - id: rises
    says: "It: rises."
    source: Table 1
    check: { kind: trend, of: { group: two, metric: stable_rank }, direction: increasing }
tables:
  - id: all
    title: All
    groups: [one, two]
    columns:
      - { metric: stable_rank, label: rank } # a column
plots:
  - id: both
    caption: Both
    panels:
      - title: left
        group: one
        metric: stable_rank
        x: { label: N }
        y: { label: rank }
      # The other.
      - title: right
        group: two
        metric: stable_rank
        x: { label: N }
        y: { label: rank }
analysis: |
  Of ours.
deviations:
  - one
"#;

    fn derived(groups: &[&str]) -> Derived {
        let source = experiment(FILE);
        let groups: Vec<String> = groups.iter().map(|g| (*g).to_owned()).collect();
        derive(&source, FILE, &NewItem { item: "mine", title: "Mine: a copy", groups: &groups })
            .unwrap()
    }

    /// Catches comments that are lost, and parts about the paper that remain.
    #[test]
    fn the_authors_text_is_kept() {
        let Derived { text, left_out } = derived(&[]);
        for part in [
            "# Head.",
            "# About one.",
            "*ranks",
            "# shared",
            "# Why it rises.",
            "# a column",
            "# The other.",
            "paper: extensions\n",
            "title: \"Mine: a copy\"\n",
            "says: \"It: rises.\"",
            "ours: true",
            "source: trading/table1, Table 1",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        for part in ["id: printed", "Of ours", "kind: table", "answer:"] {
            assert!(!text.contains(part), "{part}: {text}");
        }
        assert_eq!(left_out, ["claims: printed", "sections: answer, analysis"]);
        assert!(text.starts_with(MODELINE) && text.matches(MODELINE).count() == 1, "{text}");
    }

    /// Catches a table that keeps a method of a group that it no longer lists.
    #[test]
    fn tables_keep_only_methods_of_their_groups() {
        let other = "{ id: Other, embedder: *gau }";
        let file = FILE
            .replace("variants: *variants # shared", &format!("variants: [{other}]"))
            .replace("- { id: Gau, embedder: *gau }", &format!("- {other}"))
            .replace("groups: [one, two]", "groups: [one, two]\n    methods: [Gau, Other]");
        let source = experiment(&file);
        let groups = ["one", "three"].map(str::to_owned);
        let target = NewItem { item: "mine", title: "Mine", groups: &groups };
        let text = derive(&source, &file, &target).unwrap().text;
        assert_eq!(experiment(&text).tables[0].methods, Some(vec!["Gau".to_owned()]), "{text}");
    }

    /// Catches an alias whose anchor was removed with its group, lists that still name the group, and its comments.
    #[test]
    fn a_single_group_keeps_shared_settings() {
        let text = derived(&["two"]).text;
        for part in [
            "protocol: &ranks\n      kind: stable-rank\n",
            "groups: [two]",
            "title: right",
            "# About two.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        for part in ["About one", "id: one", "title: left", "without the comments"] {
            assert!(!text.contains(part), "{part}: {text}");
        }
        // A block of lines cannot be moved into braces, so the tree is written instead.
        let text = derived(&["three"]).text;
        assert!(text.contains("without the comments") && text.contains("sigma: 0.1"), "{text}");
    }
}
