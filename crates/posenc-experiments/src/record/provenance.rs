//! Where a record comes from: `provenance.json` in the folder of the item.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::table::Row;
use crate::profile::Profile;
use crate::text::{read_record, unsealed};
use crate::yaml::FileError;

/// Where an item's record comes from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Command that made the record.
    pub command: String,
    /// Git commit, with `-dirty` if the tree had changes; empty outside a repository.
    pub commit: String,
    /// Commits of rows that come from another run than the last one, by `group/method`; empty if all rows come from `commit`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commits: BTreeMap<String, String>,
    /// Versions of the compiler and of the packages that numbers depend on.
    pub versions: BTreeMap<String, String>,
    pub machine: String,
    /// Cores the run was allowed to use.
    pub cores: usize,
    pub seed: u64,
    /// Data sets used: label to sha256.
    pub data: BTreeMap<String, String>,
    pub units: usize,
    /// Sum of the units' wall times, in seconds.
    pub seconds: f64,
    /// The largest of the units' peak memories, in bytes; absent if the system does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<String>,
    /// Origin of the numbers of each variant, by `group/variant`; empty in older records.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub origins: BTreeMap<String, Origin>,
}

/// Everything that determines the numbers of a variant. Equal origins have equal numbers on the same kind of processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Largest profile whose protocol this is.
    pub profile: Profile,
    pub seed: u64,
    pub repetitions: usize,
    pub signals: usize,
    /// Protocol settings and embedder, fully resolved.
    pub specification: String,
    /// Revisions of the components whose changes affect results; they are raised manually.
    #[serde(rename = "epochs")]
    pub revisions: String,
    /// sha256 of the data; `-` for none.
    pub data: String,
}

impl Origin {
    /// Differences from another origin, in words: the name of a part, its own value and the other one.
    pub fn differences(&self, other: &Origin) -> Vec<String> {
        let counts = [
            ("seed of the run", self.seed, other.seed),
            ("repetitions", self.repetitions as u64, other.repetitions as u64),
            ("signals", self.signals as u64, other.signals as u64),
        ];
        let mut all: Vec<String> = (counts.iter().filter(|(_, own, others)| own != others))
            .map(|(name, own, others)| format!("{name} {own} → {others}"))
            .collect();
        all.extend(settings_that_differ(&self.specification, &other.specification));
        for (name, own, others) in
            [("revisions", &self.revisions, &other.revisions), ("data", &self.data, &other.data)]
        {
            if own != others {
                all.push(format!("{name} {} → {}", clipped(own), clipped(others)));
            }
        }
        all
    }
}

/// Differences of two specifications, setting by setting if both can be parsed.
fn settings_that_differ(own: &str, other: &str) -> Vec<String> {
    if own == other {
        return Vec::new();
    }
    let whole = || vec![format!("specification {} → {}", clipped(own), clipped(other))];
    let (Some(own), Some(other)) = (parts(own), parts(other)) else { return whole() };
    let mut all = Vec::new();
    if own.protocol != other.protocol {
        all.push(format!("protocol {} → {}", own.protocol, other.protocol));
    }
    let keys: BTreeSet<&String> = own.settings.keys().chain(other.settings.keys()).collect();
    let value = |settings: &serde_json::Map<String, serde_json::Value>, key: &str| {
        settings.get(key).map_or_else(|| "none".to_owned(), |v| clipped(&v.to_string()))
    };
    for key in keys {
        if own.settings.get(key) != other.settings.get(key) {
            let (own, other) = (value(&own.settings, key), value(&other.settings, key));
            all.push(format!("{key} {own} → {other}"));
        }
    }
    if own.embedder != other.embedder {
        all.push(format!("embedder {} → {}", clipped(own.embedder), clipped(other.embedder)));
    }
    if all.is_empty() { whole() } else { all }
}

struct Parts<'a> {
    protocol: &'a str,
    settings: serde_json::Map<String, serde_json::Value>,
    embedder: &'a str,
}

/// Parses `<protocol> <settings as JSON> | <embedder>`.
fn parts(specification: &str) -> Option<Parts<'_>> {
    let (own, embedder) = specification.split_once(" | ")?;
    let (protocol, settings) = own.split_once(' ')?;
    Some(Parts { protocol, settings: serde_json::from_str(settings).ok()?, embedder })
}

/// A text, truncated if it is long.
fn clipped(text: &str) -> String {
    const LONGEST: usize = 48;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}

/// Whether a commit identifies the source code: it is known, and the tree had no uncommitted changes.
pub fn is_clean(commit: &str) -> bool {
    !commit.is_empty() && !is_dirty(commit)
}

/// Whether the tree had uncommitted changes.
pub fn is_dirty(commit: &str) -> bool {
    commit.ends_with("-dirty")
}

impl Provenance {
    /// The commit that a method's rows come from.
    pub fn commit_of(&self, group: &str, method: &str) -> &str {
        self.commits.get(&format!("{group}/{method}")).unwrap_or(&self.commit)
    }

    /// For each commit, the methods by group whose rows come from it.
    pub fn methods_by_commit<'a>(
        &'a self,
        rows: &'a [Row],
    ) -> BTreeMap<&'a str, BTreeMap<&'a str, BTreeSet<&'a str>>> {
        let methods: BTreeSet<(&str, &str)> =
            rows.iter().map(|row| (row.group.as_str(), row.method.as_str())).collect();
        let mut all: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
        for (group, method) in methods {
            let of = all.entry(self.commit_of(group, method)).or_default();
            of.entry(group).or_default().insert(method);
        }
        all
    }

    /// Reads the file; a record without one gets an empty provenance.
    pub fn read(file: &Path) -> Result<Self, FileError> {
        let Some(text) = read_record(file)? else { return Ok(Provenance::default()) };
        Provenance::parse(file, &text)
    }

    /// Like [`Provenance::read`], but parses `text`; `file` is only used in messages.
    pub fn parse(file: &Path, text: &str) -> Result<Self, FileError> {
        unsealed(file, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::sealed;

    fn origin(specification: &str) -> Origin {
        Origin {
            profile: Profile::Smoke,
            seed: 0,
            repetitions: 1,
            signals: 2,
            specification: specification.into(),
            revisions: "rank 1".into(),
            data: "-".into(),
        }
    }

    /// Catches a changed setting, embedder, revision or seed that is missed or reported without its name, and a specification that
    /// cannot be parsed but counts as equal.
    #[test]
    fn origins_report_differences() {
        let own = origin(r#"rank {"samples":[4],"sweep":null} | gaussian sigma=1"#);
        assert_eq!(own.differences(&own), [] as [String; 0]);
        let mut other = origin(r#"rank {"samples":[8],"sweep":null} | gaussian sigma=2"#);
        other.seed = 3;
        other.revisions = "rank 2".into();
        let expected = [
            "seed of the run 0 → 3",
            "samples [4] → [8]",
            "embedder gaussian sigma=1 → gaussian sigma=2",
            "revisions rank 1 → rank 2",
        ];
        assert_eq!(own.differences(&other), expected);
        assert_eq!(own.differences(&origin("?")).len(), 1);
    }

    /// Catches older records without origins that no longer read, and origins that do not read back.
    #[test]
    fn old_and_new_provenance_reads_back() {
        let read = |text: &str| Provenance::parse(Path::new("a.provenance.json"), text).unwrap();
        let mut new = Provenance::default();
        let text = sealed(Path::new(""), &new).unwrap();
        assert!(!text.contains("origins") && !text.contains("commits"), "{text}");
        assert_eq!(read(&text), new);
        new.origins.insert("g/m".into(), origin("rank {} | -"));
        new.commits.insert("g/m".into(), "0123-dirty".into());
        assert_eq!(read(&sealed(Path::new(""), &new).unwrap()), new);
    }
}
