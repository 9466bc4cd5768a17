//! `experiments/<paper>/paper.yaml`: the paper and its items in the paper's order.

use schemars::JsonSchema;
use serde::Deserialize;

use super::json;
use super::keys::check_key;
use crate::yaml::{Document, FileError};

/// Pages and folders of the report, or of the site built from it, that a paper with this key would overwrite.
const RESERVED: [&str; 11] = [
    "readme",
    "index",
    "about",
    "claims",
    "errata",
    "embedders",
    "protocols",
    "coverage",
    "figures",
    "pictures",
    "record",
];

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Name of the folder. Other pages and folders of the report have the reserved names `readme`, `index`, `about`, `claims`,
    /// `errata`, `embedders`, `protocols`, `coverage`, `figures`, `pictures` and `record`. Allowed: a key.
    pub key: String,
    /// Title.
    pub title: String,
    /// Authors.
    pub authors: Vec<String>,
    /// Where the paper appeared.
    pub venue: String,
    /// When it appeared.
    pub year: u32,
    /// arXiv identifier.
    pub arxiv: Option<String>,
    /// Summary in our words. Allowed: Markdown.
    pub summary: String,
    /// The paper's question, in our words. Default: none. Allowed: Markdown.
    #[serde(default)]
    pub question: String,
    /// Our answer in two or three [sentences](#answers) for the first page. Allowed: list.
    #[serde(default)]
    #[schemars(with = "Option<json::AnyValue>")]
    pub(crate) short_answer: Option<serde_yaml::Value>,
    /// Statements that this project cannot test, after "among them". Default: none. Allowed: Markdown.
    #[serde(default)]
    pub untested: String,
    /// Our answer to the paper's question: [sentences](#answers) whose claims are named `item#claim`. Allowed: list.
    #[serde(default)]
    #[schemars(with = "Option<json::AnyValue>")]
    pub(crate) answer: Option<serde_yaml::Value>,
    /// Data sets that the paper itself used, by their ids in `data/manifest.yaml`. Results on other sets count as other data.
    /// Allowed: list of ids of sets.
    #[serde(default)]
    pub data: Vec<String>,
    /// Every figure, table and proposition, in the order of the paper: its key `item`, its `name` in print and its `title`; `page`
    /// is the item of another paper that it repeats, as `PAPER/ITEM`, whose page shows both.
    pub items: Vec<Item>,
}

/// An item of a paper.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Key, such as `fig3`.
    pub item: String,
    /// Name in print, such as `Figure 3`.
    pub name: String,
    /// One line, in our words.
    pub title: String,
    /// An item that it repeats, such as `rethinking/fig3`: the page of that item shows both.
    pub page: Option<String>,
}

impl Paper {
    /// Deserializes a document; every error names file, line and key.
    pub fn from_document(document: &Document) -> Result<Self, FileError> {
        let (root, paper): (_, Paper) = (document.root(), document.typed()?);
        check_key(&root, "key", &paper.key)?;
        if RESERVED.contains(&paper.key.as_str()) {
            let message = format!(
                "`{}` is the name of another page of the report; not allowed: {}",
                paper.key,
                RESERVED.join(", ")
            );
            return Err(root.error("key", message));
        }
        let mut seen = std::collections::HashSet::new();
        for (i, item) in paper.items.iter().enumerate() {
            let here = format!("items[{i}].item");
            check_key(&root, &here, &item.item)?;
            if !seen.insert(&item.item) {
                let message = format!("`{}` appears twice; item names must be unique", item.item);
                return Err(root.error(&here, message));
            }
        }
        Ok(paper)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn paper(key: &str, items: &str) -> Result<Paper, FileError> {
        let text = format!(
            "key: {key}\ntitle: T\nauthors: [A]\nvenue: V\nyear: 2021\nsummary: S\nitems: {items}\n"
        );
        Paper::from_document(&Document::parse(Path::new("paper.yaml"), &text)?)
    }

    /// Catches a paper whose page would overwrite another page of the report, or be overwritten by it.
    #[test]
    fn names_of_other_pages_are_refused() {
        for key in RESERVED {
            let error = paper(key, "[]").unwrap_err();
            assert_eq!(error.key, "key");
            assert!(error.message.contains("another page of the report"), "{error}");
        }
        assert_eq!(paper("mine", "[]").unwrap().key, "mine");
    }

    /// Catches duplicate items: two sections of a page would share an anchor, and two pages of the site a file.
    #[test]
    fn duplicate_items_are_refused() {
        let item = "\n  - { item: fig1, name: Figure 1, title: T }";
        let error = paper("mine", &item.repeat(2)).unwrap_err();
        assert_eq!((error.key.as_str(), error.line), ("items[1].item", Some(9)));
        assert!(error.message.contains("appears twice"), "{error}");
    }
}
