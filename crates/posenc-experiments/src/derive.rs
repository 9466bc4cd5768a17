//! Derives a new experiment from an existing one.
//!
//! Leaves out the parts about the paper (claims about printed numbers, the answer, errata, times, the analysis) and the groups that were
//! not selected. Unchanged items of lists keep the author's text; the others are written anew below their comments, and so are those
//! whose alias lost its anchor.

use std::collections::BTreeSet;

use serde_yaml::{Mapping, Value};

use crate::schema::claim::{Check, Claim, ClaimCheck, Select, Source};
use crate::schema::{Experiment, MODELINE};
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
    let whole = Document::parse(&source.file, text)?.value;
    let file =
        std::path::PathBuf::from(format!("experiments/{}/{}.yaml", target.paper, target.item));
    let is_right = |body: &str, wanted: &Value| {
        Document::parse(&file, body).is_ok_and(|document| document.value == *wanted)
    };
    let (mut body, wanted, left_out) = parts.body(text, &whole, target);
    if !is_right(&body, &wanted) {
        let tree = serde_yaml::to_string(&wanted).map_err(|e| FileError::unwritable(&file, e))?;
        body = format!(
            "{}# Written without the comments of the original.\n{tree}",
            parts.head(target)
        );
    }
    Experiment::from_document(&Document::parse(&file, &body)?, source.kinds)?;
    let mut lines: Vec<String> = Vec::new();
    for what in LISTS.into_iter().chain(["sections"]) {
        let ids: Vec<&str> =
            left_out.iter().filter(|(own, _)| *own == what).map(|(_, id)| id.as_str()).collect();
        if !ids.is_empty() {
            lines.push(format!("{what}: {}", ids.join(", ")));
        }
    }
    Ok(Derived { text: body, left_out: lines })
}

/// The lists whose items may change.
const LISTS: [&str; 6] = ["groups", "claims", "floors", "plots", "tables", "pictures"];

fn list_name(key: &str) -> &'static str {
    LISTS.into_iter().find(|own| *own == key).unwrap_or_default()
}

/// What stays of an experiment.
struct Parts<'a> {
    source: &'a Experiment,
    groups: Vec<String>,
}

impl Parts<'_> {
    /// The text of the new item, its content, and what is left out.
    fn body(
        &self,
        text: &str,
        whole: &Value,
        target: &NewItem<'_>,
    ) -> (String, Value, Vec<(&'static str, String)>) {
        let known = marks(text, '&');
        let (mut body, mut wanted, mut left_out) = (self.head(target), Mapping::new(), Vec::new());
        let sections = sections(text);
        for section in &sections {
            let Some(key) = key(section) else {
                body += section.strip_prefix(MODELINE).unwrap_or(section);
                continue;
            };
            let old = whole.get(key).cloned().unwrap_or_default();
            let replaced = match key {
                "paper" => Some(target.paper),
                "item" => Some(target.item),
                "kind" => Some("extra"),
                "title" => Some(target.title),
                _ => None,
            };
            if let Some(text) = replaced {
                let quoted = serde_json::to_string(text).unwrap_or_default();
                body += &format!("{key}: {}\n", if key == "title" { &quoted } else { text });
                wanted.insert(key.into(), text.into());
            } else if ["answer", "errata", "benchmarks", "analysis"].contains(&key) {
                left_out.push(("sections", key.to_owned()));
            } else if let Some(list) = old.as_sequence().filter(|_| LISTS.contains(&key)) {
                let kept: Vec<_> =
                    list.iter().enumerate().map(|(i, v)| self.item(key, i, v)).collect();
                let all: Vec<Value> = kept.iter().flatten().cloned().collect();
                for (item, _) in list.iter().zip(&kept).filter(|(_, kept)| kept.is_none()) {
                    let id = item.get("id").and_then(Value::as_str);
                    left_out.extend(id.map(|id| (list_name(key), id.to_owned())));
                }
                // Leaves out empty lists.
                if !all.is_empty() {
                    body += &list_text(section, list, &kept, &known, &body);
                    wanted.insert(key.into(), all.into());
                }
            } else {
                body += section;
                wanted.insert(key.into(), old);
            }
        }
        (body, Value::Mapping(wanted), left_out)
    }

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

    /// What becomes of an item of a list; `None` if it is left out.
    fn item(&self, key: &str, index: usize, old: &Value) -> Option<Value> {
        let mut item = old.clone();
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
                stays && retain(&mut item, "methods", has)
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

/// Splits a text before each line that `begins` accepts.
fn split(text: &str, begins: impl Fn(&str) -> bool) -> Vec<String> {
    let mut parts = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if begins(line) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push_str(line);
        }
    }
    parts
}

/// The lines before the first key of the file, then each key with its lines.
fn sections(text: &str) -> Vec<String> {
    split(text, |line| key(line).is_some())
}

/// The key with which a section begins.
fn key(section: &str) -> Option<&str> {
    let (key, _) = section.split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    is_key.then_some(key)
}

/// The lines of a list with what is kept of its items. `known` are the anchors of the file, and `before` is the text before the list.
fn list_text(
    section: &str,
    old: &[Value],
    kept: &[Option<Value>],
    known: &BTreeSet<&str>,
    before: &str,
) -> String {
    let Some((mut text, items, indent)) = items(section, old.len()) else {
        // Another style than that of the project's files; the caller writes the tree.
        return String::new();
    };
    for (((comment, part), old), kept) in items.into_iter().zip(old).zip(kept) {
        let Some(new) = kept else { continue };
        text += &comment;
        let defined = [before, &text, &part].concat();
        let defined = marks(&defined, '&');
        let is_lost = |name: &&str| known.contains(name) && !defined.contains(name);
        let is_whole = old == new && !marks(&part, '*').iter().any(is_lost);
        text += &if is_whole { part } else { written(new, indent) };
    }
    text
}

/// What precedes the items, their comments and texts, and the indentation.
type Items = (String, Vec<(String, String)>, usize);

/// The text of a block list before its items, the items with the comments above them, and their indentation; `None` in another style.
fn items(section: &str, count: usize) -> Option<Items> {
    let first = section.lines().find(|line| line.trim_start().starts_with("- "));
    let indent = first.map_or(0, |line| line.len() - line.trim_start().len());
    let begins = |line: &str| line.get(indent..).is_some_and(|rest| rest.starts_with("- "));
    let mut parts = split(section, |line| begins(line) && line[..indent].trim().is_empty());
    if parts.len() != count + 1 {
        return None;
    }
    // Comments above an item belong to it.
    let mut comments = Vec::new();
    for part in &mut parts {
        let lines: Vec<&str> = part.split_inclusive('\n').collect();
        let is_comment =
            |line: &&&str| line.get(indent..).is_some_and(|rest| rest.starts_with('#'));
        let count = lines.iter().rev().take_while(is_comment).count();
        let (own, next) = lines.split_at(lines.len() - count);
        let (own, next) = (own.concat(), next.concat());
        comments.push(next);
        *part = own;
    }
    let head = parts.remove(0);
    Some((head, comments.into_iter().zip(parts).collect(), indent))
}

/// An item as a list of one.
fn written(item: &Value, indent: usize) -> String {
    let text = serde_yaml::to_string(std::slice::from_ref(item)).unwrap_or_default();
    text.lines().map(|line| format!("{}{line}\n", " ".repeat(indent))).collect()
}

/// Names after a mark: anchors after `&`, aliases after `*`. Also finds some in prose, which are compared with known names.
fn marks(text: &str, mark: char) -> BTreeSet<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let after = text.match_indices([' ', '[', '{']).filter_map(|(at, _)| text.get(at + 1..));
    let names = after.filter_map(|rest| rest.strip_prefix(mark));
    let end = |rest: &str| rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
    names.map(|rest| &rest[..end(rest)]).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::protocol::testing::experiment;

    const FILE: &str = include_str!("derive_example.yaml");

    fn new_item<'a>(title: &'a str, groups: &'a [String]) -> NewItem<'a> {
        NewItem { paper: "extensions", item: "mine", title, groups, modeline: MODELINE }
    }

    fn derived(groups: &[&str]) -> Derived {
        let source = experiment(FILE);
        let groups: Vec<String> = groups.iter().map(|g| (*g).to_owned()).collect();
        derive(&source, FILE, &new_item("Mine: a copy", &groups)).unwrap()
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
            "says: 'It: rises.'",
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
        let target = new_item("Mine", &groups);
        let text = derive(&source, &file, &target).unwrap().text;
        assert_eq!(experiment(&text).tables[0].methods, Some(vec!["Gau".to_owned()]), "{text}");
    }

    /// Catches an alias whose anchor was removed with its group, lists that still name the group, and its comments.
    #[test]
    fn a_single_group_keeps_shared_settings() {
        let text = derived(&["two"]).text;
        for part in ["kind: stable-rank\n", "title: right", "# About two.", "sigma: 0.1", "- two\n"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        for part in ["About one", "id: one", "title: left", "without the comments"] {
            assert!(!text.contains(part), "{part}: {text}");
        }
        assert!(text.len() < FILE.len(), "{text}");
        let text = derived(&["three"]).text;
        assert!(text.contains("sigma: 0.1") && !text.contains("without the comments"), "{text}");
    }
}
