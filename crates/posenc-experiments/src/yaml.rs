//! The only reader of YAML: text in, typed values out, every error with file, line and key.
//!
//! `serde_yaml` keeps no positions once a document is a tree, and experiment files are merged (group settings, profile, variant)
//! before they are deserialized to types. A second, cheap pass over the parser's events therefore indexes the lines of all keys, so
//! that later errors can look up the line of a path.
//!
//! Files are not trusted: their size, depth, keys and expanded aliases have limits.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use posenc_files::csv::Fault;
use posenc_files::limits::MAX_YAML_BYTES;
use posenc_files::{Escaping, line_at, unreadable};
use serde::de::DeserializeOwned;
use serde_yaml::Value;
use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::scanner::Marker;

use crate::text::read_text;

mod tree;

/// Most values of a file after its aliases are written out ("billion laughs"): the largest experiment has a few thousand. A
/// value takes about 100 bytes.
pub const MAX_YAML_VALUES: usize = 200_000;
/// Most bytes of all texts and keys of a file after its aliases are written out; an alias of three bytes repeats a text of any
/// length.
const MAX_TEXT_BYTES: usize = 1 << 24;
/// Maximum nesting depth of lists and mappings; experiments have nine.
const MAX_DEPTH: usize = 64;
/// Longest path of a key, such as `groups[0].variants[1].embedder.sigma`, in bytes. The index keeps one for every value.
const MAX_KEY_BYTES: usize = 500;

/// An error in a file that a user wrote.
#[derive(Debug, Clone, thiserror::Error)]
pub struct FileError {
    /// The file.
    pub file: PathBuf,
    /// Line, from 1, if known.
    pub line: Option<usize>,
    /// Path of the key inside the document, such as `groups[0].variants[1].embedder.sigma`.
    pub key: String,
    /// What was wrong, what is allowed, what to do.
    pub message: String,
}

impl FileError {
    /// An error of a whole file.
    pub fn of(file: impl AsRef<Path>, message: impl Into<String>) -> Self {
        let file = file.as_ref().to_owned();
        FileError { file, line: None, key: String::new(), message: message.into() }
    }

    /// A file that cannot be written.
    pub fn unwritable(file: impl AsRef<Path>, reason: impl std::fmt::Display) -> Self {
        FileError::of(file, format!("cannot be written: {reason}"))
    }

    /// The error at a line.
    pub fn at(self, line: usize) -> Self {
        FileError { line: Some(line), ..self }
    }

    /// The error with the line of its key, which is read from the YAML file again.
    pub fn located(self) -> Self {
        if self.line.is_some() || self.key.is_empty() {
            return self;
        }
        let line = Document::read(&self.file).ok().and_then(|document| document.line(&self.key));
        FileError { line, ..self }
    }

    /// The error at a key.
    pub fn key(self, key: impl Into<String>) -> Self {
        FileError { key: key.into(), ..self }
    }
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Names and messages quote what the file contains.
        let mut f = Escaping(f);
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
        let error = |line, message: String| FileError { line, ..FileError::of(file, message) };
        if text.len() as u64 > MAX_YAML_BYTES {
            let most = MAX_YAML_BYTES >> 20;
            return Err(error(None, format!("larger than {most} MiB, the limit; split the file")));
        }
        // libyaml treats a byte order mark as a separate document.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if let Some((line, message)) = unreadable(text) {
            return Err(error(Some(line), message));
        }
        // The scanner counts the end of the file as a line of its own.
        let last = line_at(text.as_bytes(), text.len());
        let positions = Indexer::of(text)
            .map_err(|(line, message)| error(Some(line.clamp(1, last)), message))?;
        let mut value = tree::parse(text).map_err(|e| {
            let line = e.location().map(|l| l.line().clamp(1, last));
            let reason = e.to_string();
            // The line is already printed in front of the message.
            let reason = reason.split_once(" at line ").map_or(&*reason, |(reason, _)| reason);
            error(line, format!("not valid YAML: {reason}"))
        })?;
        value.apply_merge().map_err(|e| error(None, format!("merge key `<<`: {e}")))?;
        Ok(Document { file: file.to_owned(), positions, value })
    }

    /// Reads and parses a file.
    pub fn read(file: &Path) -> Result<Self, FileError> {
        Document::parse(file, &read_text(file, MAX_YAML_BYTES)?)
    }

    /// Rejects NaN and infinities: no key has a use for them.
    pub fn check_finite(&self) -> Result<(), FileError> {
        fn check(place: &Place<'_>, value: &Value) -> Result<(), FileError> {
            match value {
                Value::Number(number) if !number.as_f64().is_some_and(f64::is_finite) => {
                    Err(place.error("", format!("{number} is not allowed; write a finite number")))
                }
                Value::Sequence(list) => {
                    (0..).zip(list).try_for_each(|(i, value)| check(&place.entry("", i), value))
                }
                Value::Mapping(map) => map.iter().try_for_each(|(key, value)| {
                    check(&place.key(key.as_str().unwrap_or("?")), value)
                }),
                _ => Ok(()),
            }
        }
        check(&self.root(), &self.value)
    }

    fn line(&self, mut path: &str) -> Option<usize> {
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

    /// The place of the whole document.
    pub fn root(&self) -> Place<'_> {
        Place { document: self, path: String::new() }
    }

    /// The whole document as a typed value.
    pub fn typed<T: DeserializeOwned>(&self) -> Result<T, FileError> {
        self.root().typed(self.value.clone())
    }
}

/// A key of a document, where errors are reported.
#[derive(Debug, Clone)]
pub struct Place<'a> {
    document: &'a Document,
    path: String,
}

impl Place<'_> {
    /// The place of `key`, which is relative to this place; this place for an empty key.
    pub fn key(&self, key: &str) -> Self {
        let path = if key.is_empty() { self.path.clone() } else { below(&self.path, key) };
        Place { document: self.document, path }
    }

    /// The place of an entry of the list `key`.
    pub fn entry(&self, key: &str, index: usize) -> Self {
        let place = self.key(key);
        Place { path: format!("{}[{index}]", place.path), ..place }
    }

    /// The path of the key, such as `groups[0].variants`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.document.file
    }

    /// The line of the key, or of its nearest ancestor in the file.
    pub fn line(&self) -> Option<usize> {
        self.document.line(&self.path)
    }

    /// An error at `key`, which is relative to this place.
    pub fn error(&self, key: &str, message: impl Into<String>) -> FileError {
        let place = self.key(key);
        FileError { line: place.line(), ..FileError::of(self.file(), message).key(place.path) }
    }

    /// Deserializes a value at this place to a type.
    pub fn typed<T: DeserializeOwned>(&self, value: Value) -> Result<T, FileError> {
        serde_path_to_error::deserialize(value).map_err(|e| {
            let key = e.path().to_string();
            let key = if key == "." { "" } else { &key };
            self.error(key, explain(&e.into_inner().to_string()))
        })
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Adds the nearest allowed name to serde's "unknown field" messages.
fn explain(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    let is_unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    let wrong = names.next().filter(|_| is_unknown);
    let hint = wrong.map_or_else(String::new, |wrong| hint(wrong, names));
    format!("{message}{hint}")
}

/// The end of a message about a wrong name: the closest candidate, or nothing if none is close.
pub(crate) fn hint<'a>(wrong: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    nearest(wrong, candidates).map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// The index of the first name that is not allowed, and a message with the allowed names.
pub(crate) fn unknown_name(
    what: &str,
    names: &[String],
    allowed: &[&str],
) -> Option<(usize, String)> {
    let known: HashSet<&str> = allowed.iter().copied().collect();
    let (i, wrong) = names.iter().enumerate().find(|(_, name)| !known.contains(name.as_str()))?;
    let hint = hint(wrong, allowed.iter().copied());
    Some((i, format!("no {what} `{wrong}`; allowed: {}{hint}", allowed.join(", "))))
}

/// The candidate closest to `wrong`, if any is close enough to be a typo.
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

fn too_deep() -> String {
    format!("nested more than {MAX_DEPTH} levels deep")
}

impl Indexer {
    /// Lines of all keys and values by their paths. Reads the events one by one, since the parser's own loop recurses.
    fn of(text: &str) -> Result<HashMap<String, usize>, Fault> {
        let mut indexer = Indexer::default();
        let mut parser = Parser::new_from_str(text);
        loop {
            let (event, marker) = parser.next_token().map_err(|e| {
                // The scanner runs ahead of the events and has a limit of its own.
                let message = match e.info() {
                    info if info.contains("recursion limit") => too_deep(),
                    info => format!("not valid YAML: {info}"),
                };
                (e.marker().line(), message)
            })?;
            // The reader of values rejects everything after the first document.
            if matches!(event, Event::DocumentEnd | Event::StreamEnd) {
                return Ok(indexer.lines);
            }
            indexer.take(event, marker)?;
        }
    }

    /// Path of the node that starts now; none for a mapping key, which is indexed here.
    fn next_path(&mut self, scalar: Option<&str>, line: usize) -> Result<Option<String>, Fault> {
        match self.stack.last_mut() {
            None => Ok(Some(String::new())),
            Some(Frame::Sequence { path, index }) => {
                let p = format!("{path}[{index}]");
                *index += 1;
                Ok(Some(p))
            }
            Some(Frame::Map { path, key }) => match key.take() {
                Some(k) => Ok(Some(below(path, &k))),
                None => {
                    let k = scalar.unwrap_or("?");
                    if path.len() + k.len() > MAX_KEY_BYTES {
                        let message = format!(
                            "a key whose path is longer than {MAX_KEY_BYTES} bytes, the limit"
                        );
                        return Err((line, message));
                    }
                    // The key's own line is where a reader looks.
                    self.lines.entry(below(path, k)).or_insert(line);
                    *key = Some(k.to_owned());
                    Ok(None)
                }
            },
        }
    }

    fn node(&mut self, scalar: Option<&str>, marker: Marker) -> Result<String, Fault> {
        let path = self.next_path(scalar, marker.line())?;
        if let Some(path) = &path {
            self.lines.entry(path.clone()).or_insert(marker.line());
        }
        Ok(path.unwrap_or_default())
    }

    fn take(&mut self, event: Event, marker: Marker) -> Result<(), Fault> {
        let frame: fn(String) -> Frame = match event {
            Event::MappingStart(..) => |path| Frame::Map { path, key: None },
            Event::SequenceStart(..) => |path| Frame::Sequence { path, index: 0 },
            Event::Scalar(text, ..) => return self.node(Some(&text), marker).map(drop),
            Event::Alias(_) => return self.node(None, marker).map(drop),
            Event::MappingEnd | Event::SequenceEnd => {
                self.stack.pop();
                return Ok(());
            }
            _ => return Ok(()),
        };
        let path = self.node(None, marker)?;
        if self.stack.len() >= MAX_DEPTH {
            return Err((marker.line(), too_deep()));
        }
        self.stack.push(frame(path));
        Ok(())
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
        document.typed::<Point>().unwrap_err().to_string()
    }

    /// Catches positions that drift after lists, nested maps or comments, and unknown keys without the nearest one.
    #[test]
    fn errors_name_file_line_and_key() {
        for (text, place, part) in [
            ("width: 1\n# note\nheight:\n  - 1\n  - two\n", "a.yaml:5: `height[1]`", ""),
            ("width: 1\nheigth: [1]\n", "a.yaml:2", "did you mean `height`?"),
            ("width: 1\nheight: [1\n", "a.yaml:", "not valid YAML"),
        ] {
            let message = failure(text);
            assert!(message.starts_with(place) && message.contains(part), "{message}");
        }
    }

    /// Catches a number that is not finite and becomes a limit, at any depth.
    #[test]
    fn numbers_are_finite() {
        for number in [".nan", ".inf", "-.Inf", "+.INF", ".NaN"] {
            let text = format!("a: 1\nb:\n  - {{ c: 1e308,\n      d: {number} }}\n");
            let document = Document::parse(Path::new("a.yaml"), &text).unwrap();
            let message = document.check_finite().unwrap_err().to_string();
            assert!(message.starts_with("a.yaml:4: `b[0].d`: "), "{message}");
        }
    }

    /// Catches a small file that fills the memory or the stack: aliases of aliases, many aliases of a long list, nested brackets, or
    /// long keys above many values. Also catches a message without the place and the limit.
    #[test]
    fn small_files_cannot_fill_the_memory() {
        let laughs: String = (1..12)
            .map(|i| format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 9].join(",")))
            .collect();
        let aliases = format!("a: &a [{}]\nb: [{}]\n", "1,".repeat(30_000), "*a,".repeat(30_000));
        let key = "k".repeat(400);
        for (text, expected) in [
            (format!("a0: &a0 [1,1]\n{laughs}"), "repetition limit exceeded"),
            (aliases, "more than 200000 values"),
            ("[".repeat(100_000), "nested more than 64 levels deep"),
            ("{a: ".repeat(100_000), "nested more than 64 levels deep"),
            ("- ".repeat(100_000), "nested more than 64 levels deep"),
            (format!("? {}\n: 1\n", "k".repeat(600)), "longer than 500 bytes"),
            (format!("{key}:\n  {key}: [{}]\n", "1,".repeat(100_000)), "longer than 500 bytes"),
            (format!("a: {}\n", "x".repeat(1 << 20)), "larger than 1 MiB"),
        ] {
            let message = failure(&text);
            assert!(message.starts_with("a.yaml") && message.contains(expected), "{message:.300}");
        }
    }

    /// Catches line numbers that differ from those of an editor: in files with other line breaks, after a character that ends a line
    /// for only one of the two parsers, at the end of a file without a line break, and in errors of either parser.
    #[test]
    fn lines_are_those_of_an_editor() {
        for (text, expected) in [
            ("width: 1\r\n# note\r\nheight:\r\n  - 1\r\n  - two\r\n", "a.yaml:5: `height[1]`"),
            ("width: 1\r# note\rheight:\r  - 1\r  - two\r", "a.yaml:5: `height[1]`"),
            ("width: |\n  a\n\n  b\nheight: [two]\n", "a.yaml:1: `width`"),
            ("width: 1\r\n\r\nheight: !tag 2\r\n", "a.yaml:3: not valid YAML"),
            ("width: 1\r\rheight: !tag 2\r", "a.yaml:3: not valid YAML"),
            ("width: 1\nheight: [1", "a.yaml:2: not valid YAML"),
            ("width: 1\nheight: \"1", "a.yaml:2: not valid YAML"),
            ("\u{feff}width: 1\nheight: [two]\n", "a.yaml:2: `height[0]`"),
            ("width: 1\n# \u{2028}\nheight: [1]\n", "a.yaml:2: the character U+2028"),
            ("width: 1\r\n# \u{85}", "a.yaml:2: the character U+0085"),
            ("width: 1\n\n\u{c}height: [1]\n", "a.yaml:3: the character U+000C"),
            ("width: 1\nheight: [\u{202e}1]\n", "a.yaml:2: the character U+202E"),
            ("%YAML 1.2\n---\nwidth: 1\n", "a.yaml:1: the line begins with `%`"),
        ] {
            let message = failure(text);
            assert!(message.starts_with(expected), "{text:?}: {message}");
        }
    }

    /// Catches text of a file that reaches the terminal through a message: an escape sequence, or a line break that forges a line.
    #[test]
    fn messages_are_one_line_without_hidden_characters() {
        for text in [
            "\"wid\\e[2Jth\\nerror: forged\": 1\n",
            "width: 1\nheight: \"a\\rb\\u202e\\x9b\"\n",
            "width: 1\nheight: [1]\n\"\\u2028\": 2\n",
            "\"a\\nb\": 1\n\"a\\nb\": 1\n",
        ] {
            let message = failure(text);
            assert!(!message.contains(posenc_files::is_hidden), "{message:?}");
            assert!(message.contains("\\"), "{message:?}");
        }
    }

    /// Catches a small file whose aliases expand to a gigabyte of text, and a file whose directives take minutes to parse.
    #[test]
    fn repeated_texts_and_directives_are_limited() {
        let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(400_000), "*a,".repeat(150_000));
        let message = failure(&text);
        assert!(message.contains("bytes of text after alias expansion"), "{message:.300}");
        let directives: String = (0..60_000).map(|i| format!("%TAG !{i}! a\n")).collect();
        assert!(failure(&format!("{directives}---\nwidth: 1\n")).contains("directives"));
        let later = format!("width: 1\n...\n{directives}---\nwidth: 1\n");
        assert!(failure(&later).contains("directives"));
    }

    /// Catches aliases and merge keys that no longer work, and a duplicate key that is accepted.
    #[test]
    fn aliases_work_and_duplicate_keys_are_refused() {
        let text = "a: &a { width: 1, height: [2, 3] }\nb: { <<: *a, width: 4 }\n";
        let document = Document::parse(Path::new("a.yaml"), text).unwrap();
        let point: Point = document.root().key("b").typed(document.value["b"].clone()).unwrap();
        assert_eq!((point.width, point.height), (4.0, vec![2.0, 3.0]));
        for (text, expected) in [
            ("width: 1\nwidth: 2\n", "`width` appears twice"),
            ("width: !big 1\n", "tags"),
            ("width: 1\n---\nwidth: 2\n", "more than one document"),
        ] {
            let message = failure(text);
            assert!(message.contains(expected), "{message}");
        }
    }
}
