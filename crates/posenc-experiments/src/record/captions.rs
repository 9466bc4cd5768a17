//! Captions of the widgets of screens: the file of a unit, with the captions of all held-out widgets, and `captions.json` in
//! `report/record/<paper>/<item>/`, with each method's captions for the first screens.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::output::remove;
use crate::profile::Profile;
use crate::text::{MAX_RECORD_BYTES, read_record, read_text, sealed, unsealed, write_text};
use crate::yaml::FileError;

/// Largest coordinate of a box; the smallest is 0.
pub const BORDER: f64 = 99.0;

/// Maximum bytes of phrases and nodes in memory. Files can be much smaller, since they store each phrase once, and the screens of a
/// set once. The widgets of 100,000 screens have a fifth of this.
const MOST_WRITTEN_OUT: usize = 1 << 30;

/// Bytes in memory of a text in addition to its characters, and of a node.
const TEXT: usize = 24;
const NODE: usize = 80;

/// Name of the file in an item's record.
pub const FILE: &str = "captions.json";

/// What a box of a screen is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoxKind {
    /// A text.
    Text,
    /// An icon.
    Icon,
    /// A button.
    Button,
    /// A field to type in.
    Field,
    /// An image.
    Image,
    /// A check box.
    Check,
    /// A switch.
    Switch,
    /// A box around others.
    Container,
}

impl BoxKind {
    /// All kinds, in the order of their numbers in generated screens.
    pub const ALL: [BoxKind; 8] = [
        BoxKind::Text,
        BoxKind::Icon,
        BoxKind::Button,
        BoxKind::Field,
        BoxKind::Image,
        BoxKind::Check,
        BoxKind::Switch,
        BoxKind::Container,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            BoxKind::Text => "text",
            BoxKind::Icon => "icon",
            BoxKind::Button => "button",
            BoxKind::Field => "field",
            BoxKind::Image => "image",
            BoxKind::Check => "check box",
            BoxKind::Switch => "switch",
            BoxKind::Container => "box around others",
        }
    }
}

/// A box of a screen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayoutNode {
    /// What it is.
    pub kind: BoxKind,
    /// Left, top, right, bottom; 0 to [`BORDER`] in both directions.
    pub bounds: [f64; 4],
    /// Text in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<String>,
}

/// The layout of a screen as boxes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// The boxes.
    pub nodes: Vec<LayoutNode>,
    /// Boxes that have captions: indices of `nodes`.
    pub widgets: Vec<usize>,
}

/// A method's caption of a widget.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// The reference captions.
    pub references: Vec<String>,
    /// The method's caption.
    pub said: String,
    /// Whether the caption is correct; it need not equal a reference.
    pub is_right: bool,
}

/// A unit's captions of all widgets, screen by screen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UnitCaptions {
    /// The first screens; their widgets are the first of `widgets`.
    pub layouts: Vec<Layout>,
    /// All widgets.
    pub widgets: Vec<Described>,
}

/// A unit's file, which stores each distinct phrase once.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnitFile {
    phrases: Vec<String>,
    /// For each widget, the index of its caption in `phrases`.
    said: Vec<usize>,
    /// Widgets with an incorrect caption.
    wrong: Vec<usize>,
    /// For each widget, the indices of its reference captions in `phrases`.
    references: Vec<Vec<usize>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    layouts: Vec<Layout>,
}

/// The key of an invalid entry in a file, and what is wrong with it.
type Fault = (String, String);

impl UnitCaptions {
    /// Keeps only the widgets of the layouts.
    #[must_use]
    pub fn of_layouts(mut self) -> Self {
        self.widgets.truncate(self.layouts.iter().map(|layout| layout.widgets.len()).sum());
        self
    }

    /// The bytes of a unit's file.
    ///
    /// # Errors
    ///
    /// A message for captions that [`UnitCaptions::read`] would reject.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        self.check().map_err(|(key, message)| format!("{key}: {message}"))?;
        let all: BTreeSet<&str> = self
            .widgets
            .iter()
            .flat_map(|w| w.references.iter().chain([&w.said]).map(String::as_str))
            .collect();
        let places: BTreeMap<&str, usize> = all.iter().copied().zip(0..).collect();
        let place = |phrase: &String| places.get(phrase.as_str()).copied().unwrap_or_default();
        let file = UnitFile {
            phrases: all.iter().map(|&phrase| phrase.to_owned()).collect(),
            said: self.widgets.iter().map(|w| place(&w.said)).collect(),
            wrong: (0..).zip(&self.widgets).filter(|(_, w)| !w.is_right).map(|(i, _)| i).collect(),
            references: self
                .widgets
                .iter()
                .map(|w| w.references.iter().map(place).collect())
                .collect(),
            layouts: self.layouts.clone(),
        };
        serde_json::to_vec(&file).map_err(|e| e.to_string())
    }

    /// Reads a unit's file.
    ///
    /// # Errors
    ///
    /// A damaged or inconsistent file; the error names file and entry.
    pub fn read(file: &Path) -> Result<Self, FileError> {
        UnitCaptions::parse(file, &read_text(file, MAX_RECORD_BYTES)?)
    }

    /// Like [`UnitCaptions::read`], but parses `text`; `file` is only used in messages.
    pub fn parse(file: &Path, text: &str) -> Result<Self, FileError> {
        let wire: UnitFile = parsed(file, text)?;
        wire.captions().map_err(|(key, message)| FileError::of(file, message).key(key))
    }

    fn check(&self) -> Result<(), Fault> {
        for (i, layout) in self.layouts.iter().enumerate() {
            layout.check().map_err(|(key, message)| (format!("layouts[{i}].{key}"), message))?;
        }
        let (shown, all) =
            (self.layouts.iter().map(|l| l.widgets.len()).sum::<usize>(), self.widgets.len());
        if shown > all {
            return Err(("layouts".into(), format!("{shown} widgets; {all} have captions")));
        }
        for (i, widget) in self.widgets.iter().enumerate() {
            if widget.references.is_empty() {
                return Err((format!("references[{i}]"), "empty".into()));
            }
            if !widget.is_right && widget.references.contains(&widget.said) {
                let message = format!("`{}` is marked as wrong and is a reference", widget.said);
                return Err((format!("said[{i}]"), message));
            }
        }
        Ok(())
    }
}

impl UnitFile {
    fn captions(self) -> Result<UnitCaptions, Fault> {
        let (said, references) = (self.said.len(), self.references.len());
        if said != references {
            let message = format!("{references} widgets; `said` has {said}");
            return Err(("references".into(), message));
        }
        let of_phrases = self.references.iter().flatten().chain(&self.said);
        let lengths = of_phrases.filter_map(|i| self.phrases.get(*i)).map(|p| p.len() + TEXT);
        check_written_out("references", lengths.sum())?;
        let count = self.phrases.len();
        let phrase = |index: usize, key: &dyn Fn() -> String| {
            let found = self.phrases.get(index).cloned();
            found.ok_or_else(|| (key(), format!("{index}; there are {count} phrases, from 0")))
        };
        let mut widgets = Vec::with_capacity(said);
        for (i, (said, references)) in self.said.iter().zip(&self.references).enumerate() {
            let references = references
                .iter()
                .enumerate()
                .map(|(j, index)| phrase(*index, &|| format!("references[{i}][{j}]")))
                .collect::<Result<_, _>>()?;
            let said = phrase(*said, &|| format!("said[{i}]"))?;
            widgets.push(Described { references, said, is_right: true });
        }
        for (i, wrong) in self.wrong.iter().enumerate() {
            let Some(widget) = widgets.get_mut(*wrong) else {
                return Err((format!("wrong[{i}]"), format!("{wrong}; there are {said} widgets")));
            };
            widget.is_right = false;
        }
        let captions = UnitCaptions { layouts: self.layouts, widgets };
        captions.check()?;
        Ok(captions)
    }
}

impl Layout {
    fn check(&self) -> Result<(), Fault> {
        for (i, node) in self.nodes.iter().enumerate() {
            let [left, top, right, bottom] = node.bounds;
            let inside = node.bounds.iter().all(|v| (0.0..=BORDER).contains(v));
            if !(inside && left <= right && top <= bottom) {
                let message = format!(
                    "{:?}; allowed: left ≤ right and top ≤ bottom, all from 0 to {BORDER}",
                    node.bounds
                );
                return Err((format!("nodes[{i}].bounds"), message));
            }
        }
        let mut seen = BTreeSet::new();
        for (i, widget) in self.widgets.iter().enumerate() {
            let key = format!("widgets[{i}]");
            if *widget >= self.nodes.len() {
                let count = self.nodes.len();
                return Err((key, format!("{widget}; the screen has {count} nodes, from 0")));
            }
            if !seen.insert(widget) {
                return Err((key, format!("node {widget} appears twice")));
            }
        }
        Ok(())
    }
}

/// A method's captions for the first screens. In an item's file, which stores shared screens once, `Captions` is a list of pairs: each
/// widget's caption and whether it is correct.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptionedMethod<Captions = UnitCaptions> {
    /// Group key.
    pub group: String,
    /// Method (the variant's id).
    pub method: String,
    /// Repetition, from 0.
    pub seed: u64,
    /// Largest profile whose protocol this is.
    pub profile: Profile,
    /// Device that measured it.
    pub device: String,
    /// Data it was measured on; `-` for none.
    pub data: String,
    /// The screens and the captions of their widgets.
    #[serde(rename = "said")]
    pub captions: Captions,
}

impl<Captions> CaptionedMethod<Captions> {
    /// The method with its captions in another form.
    fn with<Other>(&self, captions: Other) -> CaptionedMethod<Other> {
        CaptionedMethod {
            group: self.group.clone(),
            method: self.method.clone(),
            seed: self.seed,
            profile: self.profile,
            device: self.device.clone(),
            data: self.data.clone(),
            captions,
        }
    }
}

impl CaptionedMethod {
    /// A checksum of the screens and the reference captions, equal for methods that share both.
    pub fn screens(&self) -> [u8; 32] {
        let references: Vec<_> = self.captions.widgets.iter().map(|w| &w.references).collect();
        let mut hasher = blake3::Hasher::new();
        // Writing to a hasher cannot fail, and texts and numbers always have a JSON form.
        let _ = serde_json::to_writer(&mut hasher, &(&self.captions.layouts, references));
        *hasher.finalize().as_bytes()
    }
}

/// The captions of an item's methods for the first screens, in the order of the experiment file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaptionRecord {
    /// The methods.
    pub methods: Vec<CaptionedMethod>,
}

/// The file of an item, which stores shared screens once.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemFile {
    paper: String,
    item: String,
    sets: Vec<Screens>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Screens {
    layouts: Vec<Layout>,
    references: Vec<Vec<String>>,
    methods: Vec<CaptionedMethod<Vec<(String, bool)>>>,
}

impl CaptionRecord {
    /// Path of the file of an item, below a directory of records.
    pub fn file_of(directory: &Path, paper: &str, item: &str) -> PathBuf {
        directory.join(paper).join(item).join(FILE)
    }

    /// The methods, grouped by shared screens.
    pub fn lots(&self) -> Vec<Vec<&CaptionedMethod>> {
        let mut lots: Vec<Vec<&CaptionedMethod>> = Vec::new();
        let mut places: HashMap<[u8; 32], usize> = HashMap::new();
        for method in &self.methods {
            let next = lots.len();
            match lots.get_mut(*places.entry(method.screens()).or_insert(next)) {
                Some(lot) => lot.push(method),
                None => lots.push(vec![method]),
            }
        }
        lots
    }

    /// Reads the file of an item; an item without one has no captions.
    ///
    /// # Errors
    ///
    /// A damaged or inconsistent file, or one of another item; the error names file and entry.
    pub fn read(directory: &Path, paper: &str, item: &str) -> Result<Self, FileError> {
        let file = CaptionRecord::file_of(directory, paper, item);
        let Some(text) = read_record(&file)? else { return Ok(CaptionRecord::default()) };
        CaptionRecord::parse(&file, &text, paper, item)
    }

    /// Like [`CaptionRecord::read`], but parses `text`; `file` is only used in messages.
    pub fn parse(file: &Path, text: &str, paper: &str, item: &str) -> Result<Self, FileError> {
        let wire: ItemFile = parsed(file, text)?;
        if (wire.paper.as_str(), wire.item.as_str()) != (paper, item) {
            let message = format!("`{}/{}` in the record of {paper}/{item}", wire.paper, wire.item);
            return Err(FileError::of(file, message));
        }
        let mut methods = Vec::new();
        let mut written_out = 0;
        for (i, set) in wire.sets.into_iter().enumerate() {
            let of_set = set.methods(&mut written_out).map_err(|(key, message)| {
                let remedy = "restore the file (git checkout) or make it anew (reproduce)";
                FileError::of(file, format!("{message}; {remedy}")).key(format!("sets[{i}].{key}"))
            })?;
            methods.extend(of_set);
        }
        Ok(CaptionRecord { methods })
    }

    /// Writes the file of an item, or removes one that can be read if there is nothing to write. True if anything changed.
    ///
    /// # Errors
    ///
    /// Captions that [`CaptionRecord::read`] would reject, or a file that cannot be written or removed.
    pub fn write(&self, directory: &Path, paper: &str, item: &str) -> Result<bool, FileError> {
        let file = CaptionRecord::file_of(directory, paper, item);
        if self.methods.is_empty() {
            let is_ours = CaptionRecord::read(directory, paper, item).is_ok();
            let removed = is_ours && remove(&file, "the record has no captions")?;
            if let Some(folder) = file.parent().filter(|_| removed) {
                posenc_files::remove_empty_folder(folder);
            }
            return Ok(removed);
        }
        for method in &self.methods {
            method.captions.check().map_err(|(key, message)| {
                let message = format!("{}/{}: {key}: {message}", method.group, method.method);
                FileError::of(&file, message)
            })?;
        }
        let text = self.text(paper, item).map_err(|e| FileError::unwritable(&file, e))?;
        write_text(&file, &sealed(&text))
    }

    /// The text of the file, with one line per screen, widget and method to keep diffs small.
    fn text(&self, paper: &str, item: &str) -> serde_json::Result<String> {
        fn lines<T: Serialize>(items: impl Iterator<Item = T>) -> serde_json::Result<String> {
            let lines = items.map(|item| serde_json::to_string(&item));
            Ok(lines.collect::<serde_json::Result<Vec<_>>>()?.join(",\n"))
        }
        let mut sets = Vec::new();
        for lot in self.lots() {
            let first = lot.first().map(|method| &method.captions);
            let widgets = || first.iter().flat_map(|captions| &captions.widgets);
            let said = |method: &&CaptionedMethod| {
                let widgets = method.captions.widgets.iter();
                method.with(widgets.map(|w| (w.said.clone(), w.is_right)).collect::<Vec<_>>())
            };
            sets.push(format!(
                "{{\"layouts\":[\n{}\n],\"references\":[\n{}\n],\"methods\":[\n{}\n]}}",
                lines(first.iter().flat_map(|captions| &captions.layouts))?,
                lines(widgets().map(|widget| &widget.references))?,
                lines(lot.iter().map(said))?
            ));
        }
        Ok(format!(
            "{{\n\"paper\":{},\"item\":{},\"sets\":[\n{}\n]}}\n",
            serde_json::to_string(paper)?,
            serde_json::to_string(item)?,
            sets.join(",\n")
        ))
    }
}

impl Screens {
    /// The methods; `written_out` counts bytes over all sets of a file.
    fn methods(self, written_out: &mut usize) -> Result<Vec<CaptionedMethod>, Fault> {
        let expected: usize = self.layouts.iter().map(|layout| layout.widgets.len()).sum();
        if self.references.len() != expected {
            let message =
                format!("of {} widgets; the screens have {expected}", self.references.len());
            return Err(("references".into(), message));
        }
        let words = self.references.iter().flatten().map(|text| text.len() + TEXT);
        let nodes = self.layouts.iter().map(|layout| layout.nodes.len() * NODE + NODE);
        let of_each = words.sum::<usize>() + nodes.sum::<usize>();
        *written_out = of_each.saturating_mul(self.methods.len()).saturating_add(*written_out);
        check_written_out("methods", *written_out)?;
        let mut methods = Vec::with_capacity(self.methods.len());
        for (i, method) in self.methods.iter().enumerate() {
            if method.captions.len() != expected {
                let message =
                    format!("of {} widgets; the screens have {expected}", method.captions.len());
                return Err((format!("methods[{i}].said"), message));
            }
            let widgets = self.references.iter().zip(&method.captions);
            let widgets = widgets.map(|(references, (said, is_right))| Described {
                references: references.clone(),
                said: said.clone(),
                is_right: *is_right,
            });
            let captions =
                UnitCaptions { layouts: self.layouts.clone(), widgets: widgets.collect() };
            // Faults of screens belong to the set, faults of captions to the method.
            captions.check().map_err(|(key, message)| match key.starts_with("said") {
                true => (format!("methods[{i}].{key}"), message),
                false => (key, message),
            })?;
            methods.push(method.with(captions));
        }
        Ok(methods)
    }
}

fn check_written_out(key: &str, bytes: usize) -> Result<(), Fault> {
    if bytes <= MOST_WRITTEN_OUT {
        return Ok(());
    }
    let message = format!("{bytes} bytes when written out; allowed: {MOST_WRITTEN_OUT}");
    Err((key.into(), message))
}

fn parsed<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, FileError> {
    let damaged = |e: serde_json::Error| FileError::of(file, format!("damaged: {e}")).at(e.line());
    let text = unsealed(file, text)?;
    let mut reader = serde_json::Deserializer::from_str(&text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|e| {
        let key = e.path().to_string();
        damaged(e.into_inner()).key(key)
    })?;
    reader.end().map_err(damaged)?;
    Ok(value)
}

#[cfg(test)]
mod tests;
