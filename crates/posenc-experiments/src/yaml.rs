//! One door for YAML: text in, typed values out, every error with file, line and key.
//!
//! `serde_yaml` keeps no positions once a document is a tree, and experiment files are merged
//! (group settings, profile, variant) before they become typed. So the positions of all keys are
//! indexed by a second, cheap pass over the events, and an error anywhere later names its path.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_yaml::Value;
use yaml_rust2::parser::{Event, MarkedEventReceiver, Parser};
use yaml_rust2::scanner::Marker;

/// An error in a file that a user wrote.
#[derive(Debug, Clone, thiserror::Error)]
pub struct FileError {
    /// The file.
    pub file: PathBuf,
    /// Line, from 1, where known.
    pub line: Option<usize>,
    /// Path of the key inside the document, such as `groups[0].variants[1].embedder.sigma`.
    pub key: String,
    /// What was wrong, what is allowed, what to do.
    pub message: String,
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() && self.key != "." {
            write!(f, ": `{}`", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// A YAML document together with the positions of its keys.
#[derive(Debug, Clone)]
pub struct Document {
    file: PathBuf,
    positions: HashMap<String, usize>,
    /// The document's tree, with merge keys (`<<`) applied.
    pub value: Value,
}

impl Document {
    /// Parses `text`; `file` is only used in messages.
    pub fn parse(file: &Path, text: &str) -> Result<Self, FileError> {
        let error = |line, message: String| FileError {
            file: file.to_owned(),
            line,
            key: String::new(),
            message,
        };
        // An alias may repeat a subtree; nested aliases grow exponentially ("billion laughs").
        if text.len() > 1 << 20 {
            return Err(error(None, "larger than 1 MiB; split the file".into()));
        }
        let mut positions = Indexer::default();
        let mut parser = Parser::new_from_str(text);
        if let Err(e) = parser.load(&mut positions, false) {
            let marker = *e.marker();
            return Err(error(Some(marker.line()), format!("not valid YAML: {}", e.info())));
        }
        let mut value: Value = serde_yaml::from_str(text)
            .map_err(|e| error(e.location().map(|l| l.line()), format!("not valid YAML: {e}")))?;
        value.apply_merge().map_err(|e| error(None, format!("merge key `<<`: {e}")))?;
        Ok(Document { file: file.to_owned(), positions: positions.lines, value })
    }

    /// Reads and parses a file.
    pub fn read(file: &Path) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(file).map_err(|e| FileError {
            file: file.to_owned(),
            line: None,
            key: String::new(),
            message: format!("cannot be read: {e}"),
        })?;
        Document::parse(file, &text)
    }

    /// The file this came from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Line of the key at `path`, or of its nearest ancestor that stands in the file.
    pub fn line(&self, path: &str) -> Option<usize> {
        let mut path = path;
        loop {
            if let Some(line) = self.positions.get(path) {
                return Some(*line);
            }
            match path.rfind(['.', '[']) {
                Some(cut) => path = &path[..cut],
                None => return self.positions.get("").copied(),
            }
        }
    }

    /// An error at `path`.
    pub fn error(&self, path: &str, message: impl Into<String>) -> FileError {
        FileError {
            file: self.file.clone(),
            line: self.line(path),
            key: path.to_owned(),
            message: message.into(),
        }
    }

    /// Turns `value`, which stands at `path`, into a typed value.
    pub fn typed<T: DeserializeOwned>(&self, path: &str, value: Value) -> Result<T, FileError> {
        serde_path_to_error::deserialize(value).map_err(|e| {
            let inner = e.path().to_string();
            let full = match (path, inner.as_str()) {
                (p, ".") => p.to_owned(),
                ("", i) => i.to_owned(),
                (p, i) => format!("{p}.{i}"),
            };
            self.error(&full, explain(&e.into_inner().to_string()))
        })
    }
}

/// Adds the nearest allowed name to serde's "unknown field" messages.
fn explain(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    let is_unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    if let (true, Some(wrong)) = (is_unknown, names.next()) {
        let nearest = nearest(wrong, names);
        if let Some(name) = nearest {
            return format!("{message}; did you mean `{name}`?");
        }
    }
    message.to_owned()
}

/// The candidate closest to `wrong`, if any is close enough to be a slip of the pen.
pub fn nearest<'a>(wrong: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|c| (strsim::jaro_winkler(wrong, c), c))
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c)
}

#[derive(Default)]
struct Indexer {
    lines: HashMap<String, usize>,
    stack: Vec<Frame>,
}

enum Frame {
    Map { path: String, key: Option<String> },
    Sequence { path: String, index: usize },
}

impl Indexer {
    /// Path of the node that starts now, and whether it is a mapping key.
    fn next_path(&mut self, scalar: Option<&str>, line: usize) -> Option<String> {
        match self.stack.last_mut() {
            None => Some(String::new()),
            Some(Frame::Sequence { path, index }) => {
                let p = format!("{path}[{index}]");
                *index += 1;
                Some(p)
            }
            Some(Frame::Map { path, key }) => match key.take() {
                Some(k) => Some(if path.is_empty() { k } else { format!("{path}.{k}") }),
                None => {
                    let k = scalar.unwrap_or("?").to_owned();
                    let p = if path.is_empty() { k.clone() } else { format!("{path}.{k}") };
                    // The key's own line is where a reader looks.
                    self.lines.entry(p).or_insert(line);
                    *key = Some(k);
                    None
                }
            },
        }
    }

    fn node(&mut self, scalar: Option<&str>, marker: Marker) -> String {
        match self.next_path(scalar, marker.line()) {
            Some(path) => {
                self.lines.entry(path.clone()).or_insert(marker.line());
                path
            }
            None => String::new(),
        }
    }
}

impl MarkedEventReceiver for Indexer {
    fn on_event(&mut self, event: Event, marker: Marker) {
        match event {
            Event::MappingStart(..) => {
                let path = self.node(None, marker);
                self.stack.push(Frame::Map { path, key: None });
            }
            Event::SequenceStart(..) => {
                let path = self.node(None, marker);
                self.stack.push(Frame::Sequence { path, index: 0 });
            }
            Event::Scalar(text, ..) => {
                self.node(Some(&text), marker);
            }
            Event::Alias(_) => {
                self.node(None, marker);
            }
            Event::MappingEnd | Event::SequenceEnd => {
                self.stack.pop();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Point {
        width: f64,
        height: Vec<f64>,
    }

    fn failure(text: &str) -> String {
        let document = match Document::parse(Path::new("a.yaml"), text) {
            Ok(document) => document,
            Err(e) => return e.to_string(),
        };
        document.typed::<Point>("", document.value.clone()).unwrap_err().to_string()
    }

    /// Catches positions that drift after lists, nested maps or comments.
    #[test]
    fn errors_name_file_line_and_key() {
        let message = failure("width: 1\n# note\nheight:\n  - 1\n  - two\n");
        assert!(message.starts_with("a.yaml:5: `height[1]`"), "{message}");
    }

    #[test]
    fn unknown_keys_suggest_the_nearest() {
        let message = failure("width: 1\nheigth: [1]\n");
        assert!(message.contains("a.yaml:2"), "{message}");
        assert!(message.contains("did you mean `height`?"), "{message}");
    }

    #[test]
    fn syntax_errors_name_the_line() {
        let message = failure("width: 1\nheight: [1\n");
        assert!(message.contains("not valid YAML"), "{message}");
        assert!(message.starts_with("a.yaml:"), "{message}");
    }
}
