//! Grids of recorded pictures.

use std::borrow::Cow;
use std::collections::HashSet;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_yaml::Value;

use super::check_names;
use crate::record::GalleryPicture;
use crate::record::picture::NAMES;
use crate::schema::group::Group;
use crate::yaml::{FileError, YamlPath};

/// Pictures side by side: the signal and the methods' reconstructions of it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PictureGrid {
    /// Unique in the file. Allowed: a key.
    pub id: String,
    /// Title above the pictures, followed by what was reduced and by the data. Allowed: Markdown.
    pub title: String,
    /// Groups, in order.
    pub groups: Vec<String>,
    /// Methods. Default: all. Allowed: list of variants.
    pub methods: Option<Vec<String>>,
    /// The first signal with pictures, all (the first open, the others folded), the first ones up to a number, or those
    /// named. Default: `first`. Allowed: `first`, `all`, a number, a list of names.
    #[serde(default)]
    pub signals: Signals,
    /// Pictures of each signal, in order. Allowed: names below.
    #[serde(default = "truth_and_reconstruction")]
    pub show: Vec<String>,
    /// Number below a reconstruction: `metric` (of its unit and signal, without abscissa; `psnr` is the PSNR of the picture
    /// itself) and `digits` (default 2; 0 to 12). Default: its PSNR.
    pub caption: Option<Caption>,
    /// `grid`: a column for the signal and one per method, a row per group and kind of picture. `strip`: a row for the
    /// signal and one per method, for wide pictures.
    #[serde(default)]
    pub kind: Layout,
}

fn truth_and_reconstruction() -> Vec<String> {
    vec!["truth".into(), "reconstruction".into()]
}

/// Which signals of a record are shown.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub enum Signals {
    /// The first signal with pictures.
    #[default]
    First,
    /// The first ones with pictures, up to this number.
    Count(usize),
    /// Signals with these names.
    Names(Vec<String>),
    /// All.
    All,
}

/// A number below a picture.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Caption {
    /// A metric of the unit, or `psnr` for the PSNR of the picture itself.
    pub metric: String,
    /// Digits after the point.
    #[serde(default = "two")]
    pub digits: usize,
}

fn two() -> usize {
    2
}

/// How pictures are laid out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// A column per method, after the signal itself; a row per group and kind of picture.
    #[default]
    Grid,
    /// A row per method, below the signal itself: for wide pictures, such as frames of a video.
    Strip,
}

impl JsonSchema for Signals {
    fn schema_name() -> Cow<'static, str> {
        "Signals".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "enum": ["first", "all"] },
                { "type": "integer", "minimum": 1 },
                { "type": "array", "minItems": 1, "items": { "type": "string" } },
            ],
        })
    }
}

const SIGNALS: &str = "`first`, `all`, a number from 1 on, or a list of names";

impl TryFrom<Value> for Signals {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let wrong = |what: String| Err(format!("{what}; allowed: {SIGNALS}"));
        match value {
            Value::String(text) => match text.as_str() {
                "first" => Ok(Signals::First),
                "all" => Ok(Signals::All),
                _ => wrong(format!("`{text}`")),
            },
            Value::Number(number) => match number.as_u64().map(usize::try_from) {
                Some(Ok(count)) if count > 0 => Ok(Signals::Count(count)),
                _ => wrong(number.to_string()),
            },
            Value::Sequence(list) if list.is_empty() => wrong("an empty list".into()),
            names => match serde_yaml::from_value(names) {
                Ok(names) => Ok(Signals::Names(names)),
                Err(error) => wrong(error.to_string()),
            },
        }
    }
}

impl PictureGrid {
    /// Indices of the pictures that the grid shows.
    pub fn select(&self, pictures: &[&GalleryPicture]) -> Vec<usize> {
        let names = |list: &'_ [String]| list.iter().cloned().collect::<HashSet<String>>();
        let (groups, methods) = (names(&self.groups), self.methods.as_deref().map(names));
        let mine = |p: &GalleryPicture| {
            groups.contains(&p.group)
                && methods.as_ref().is_none_or(|m| m.contains(&p.method))
                && self.show.contains(&p.name)
        };
        let mut signals: Vec<&str> = Vec::new();
        let mut seen: HashSet<&str> = HashSet::new();
        for picture in pictures.iter().filter(|p| mine(p)) {
            if seen.insert(&picture.signal) {
                signals.push(&picture.signal);
            }
        }
        match &self.signals {
            Signals::First => signals.truncate(1),
            Signals::Count(count) => signals.truncate(*count),
            Signals::Names(names) => {
                let names: HashSet<&str> = names.iter().map(String::as_str).collect();
                signals.retain(|s| names.contains(s));
            }
            Signals::All => {}
        }
        let signals: HashSet<&str> = signals.into_iter().collect();
        let shown = |p: &GalleryPicture| mine(p) && signals.contains(&p.signal.as_str());
        (0..pictures.len()).filter(|i| shown(pictures[*i])).collect()
    }

    pub(super) fn check(&self, place: &YamlPath<'_>, groups: &[Group]) -> Result<(), FileError> {
        for (key, list) in [("groups", &self.groups), ("show", &self.show)] {
            if list.is_empty() {
                return Err(place.error(key, "empty"));
            }
        }
        let ids: Vec<_> = groups.iter().map(|g| g.id.as_str()).collect();
        check_names(&place.key("groups"), "group", &self.groups, &ids)?;
        let own = groups.iter().filter(|g| self.groups.contains(&g.id));
        let methods: Vec<_> = own.flat_map(|g| g.variants.iter().map(|v| v.id.as_str())).collect();
        let chosen = self.methods.as_deref().unwrap_or_default();
        check_names(&place.key("methods"), "variant", chosen, &methods)?;
        let names: Vec<_> = NAMES.iter().map(|n| n.name).collect();
        check_names(&place.key("show"), "picture", &self.show, &names)?;
        for (j, shown) in self.show.iter().enumerate() {
            if self.show[..j].contains(shown) {
                return Err(place.entry("show", j).error("", format!("`{shown}` appears twice")));
            }
        }
        if self.caption.as_ref().is_some_and(|c| c.digits > 12) {
            return Err(place.error("caption.digits", "allowed: 0 to 12"));
        }
        Ok(())
    }
}
