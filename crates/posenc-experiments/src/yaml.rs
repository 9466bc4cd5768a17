//! The only reader of YAML: text in, typed values out, every error with file, line and key.
//!
//! `serde_yaml` keeps no positions once a document is a tree, and experiment files are merged (group settings, profile, variant)
//! before they are deserialized to types. A second, cheap pass over the parser's events therefore indexes the lines of all keys, so
//! that later errors can look up the line of a path.
//!
//! Files are not trusted: their size, depth, keys and expanded aliases have limits.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use posenc_files::csv::Fault;
use posenc_files::limits::MAX_YAML_BYTES;
use posenc_files::{line_at, unreadable};
use serde::de::DeserializeOwned;
use serde_yaml::Value;
use yaml_rust2::parser::{Event, Parser, Tag};

pub use crate::error::FileError;
use crate::text::read_text;

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

/// What to do about a file that is no YAML.
const ADVICE: &str =
    "check the indentation here and on the line above, and quote a text with `: ` in it";

/// A YAML document together with the positions of its keys.
#[derive(Debug, Clone)]
pub struct Document {
    file: PathBuf,
    /// Lines of keys and values by their paths.
    positions: HashMap<String, usize>,
    /// Paths of aliases and of the nodes that they repeat.
    aliases: HashMap<String, String>,
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
        let Indexer { lines: positions, aliases, .. } = Indexer::index(text)
            .map_err(|(line, message)| error(Some(line.clamp(1, last)), message))?;
        let mut value: Value = serde_yaml::from_str(text).map_err(|e| {
            let line = e.location().map(|l| l.line().clamp(1, last));
            let reason = e.to_string();
            // The line is already printed in front of the message.
            let reason = reason.split_once(" at line ").map_or(&*reason, |(reason, _)| reason);
            error(line, format!("not valid YAML: {reason}; {ADVICE}"))
        })?;
        value.apply_merge().map_err(|e| error(None, format!("merge key `<<`: {e}")))?;
        Ok(Document { file: file.to_owned(), positions, aliases, value })
    }

    pub fn read(file: &Path) -> Result<Self, FileError> {
        Document::parse(file, &read_text(file, MAX_YAML_BYTES)?)
    }

    /// Rejects NaN and infinities: no key has a use for them.
    pub fn check_finite(&self) -> Result<(), FileError> {
        fn check(place: &YamlPath<'_>, value: &Value) -> Result<(), FileError> {
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

    /// An error with the line of its key, for which the YAML file is read again.
    pub(crate) fn locate(error: FileError) -> FileError {
        if error.line.is_some() || error.key.is_empty() {
            return error;
        }
        let line = Document::read(&error.file).ok().and_then(|file| file.line(&error.key));
        FileError { line, ..error }
    }

    /// The line of a key or of its nearest ancestor. A key below an alias or a merge key is on the line where it is written.
    fn line(&self, path: &str) -> Option<usize> {
        let mut cuts = path.match_indices(['.', '[']).map(|(at, _)| at).collect::<Vec<_>>();
        cuts.push(path.len());
        let known = cuts.iter().rev().find(|cut| self.positions.contains_key(&path[..**cut]));
        let known = *known.unwrap_or(&0);
        let mut here = path[..known].to_owned();
        let mut start = known;
        for end in cuts.into_iter().filter(|cut| *cut > known) {
            // A part of the path that is not found may continue: names can contain dots.
            if let Some(next) = self.child(&here, &path[start..end], MAX_DEPTH) {
                (here, start) = (next, end);
            }
        }
        self.positions.get(&here).copied()
    }

    /// The path of an entry (`.key` or `[0]`) of a list or mapping that may be an alias or contain merge keys.
    fn child(&self, parent: &str, part: &str, depth: usize) -> Option<String> {
        let path = format!("{parent}{part}");
        let path = path.strip_prefix('.').unwrap_or(&path);
        if self.positions.contains_key(path) {
            return Some(path.to_owned());
        }
        let merge = below(parent, "<<");
        let merged = (0..).map(|i| format!("{merge}[{i}]"));
        let merged = merged.map_while(|path| self.aliases.get(&path));
        let repeated = [self.aliases.get(parent), self.aliases.get(&merge)];
        let mut sources = repeated.into_iter().flatten().chain(merged).filter(|_| depth > 0);
        sources.find_map(|source| self.child(source, part, depth - 1))
    }

    /// The only key below a path that has this name.
    fn only_key(&self, path: &str, name: &str) -> Option<&str> {
        let is_own = |own: &&String| {
            let parent = own.strip_suffix(name).and_then(|own| own.strip_suffix('.'));
            parent.is_some_and(|parent| parent.starts_with(path))
        };
        let mut found = self.positions.keys().filter(is_own);
        found.next().filter(|_| found.next().is_none()).map(String::as_str)
    }

    pub fn root(&self) -> YamlPath<'_> {
        YamlPath { document: self, path: String::new(), layers: HashMap::new() }
    }

    /// The whole document as a typed value.
    pub fn typed<T: DeserializeOwned>(&self) -> Result<T, FileError> {
        self.root().typed(self.value.clone())
    }
}

/// A key of a document, where errors are reported.
#[derive(Debug, Clone)]
pub struct YamlPath<'a> {
    document: &'a Document,
    path: String,
    /// Paths of the mappings that replace keys of this one.
    layers: HashMap<String, String>,
}

impl YamlPath<'_> {
    /// The place of `key`, which is relative to this place; this place for an empty key.
    pub fn key(&self, key: &str) -> Self {
        if key.is_empty() {
            return self.clone();
        }
        let first = key.split(['.', '[']).next().unwrap_or_default();
        let path = below(self.layers.get(first).unwrap_or(&self.path), key);
        YamlPath { document: self.document, path, layers: HashMap::new() }
    }

    /// This mapping with the keys of `layer` replaced by its values, which are at another place.
    pub fn replaced_by(mut self, layer: &serde_yaml::Mapping, place: &YamlPath<'_>) -> Self {
        let keys = layer.keys().filter_map(Value::as_str);
        self.layers.extend(keys.map(|key| (key.to_owned(), place.path.clone())));
        self
    }

    /// The place of an entry of the list `key`.
    pub fn entry(&self, key: &str, index: usize) -> Self {
        let place = self.key(key);
        YamlPath { path: format!("{}[{index}]", place.path), ..place }
    }

    /// The path of the key, such as `groups[0].variants`.
    pub fn path(&self) -> &str {
        &self.path
    }

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
            let place = self.key(if key == "." { "" } else { &key });
            let message = e.into_inner().to_string();
            let mut error = place.error("", explain(&message));
            // The path ends at an enumeration, whose content serde reads before it knows the variant.
            let wrong = message.strip_prefix("unknown field `").and_then(|m| m.split('`').next());
            let is_known = self.document.positions.contains_key(&place.path);
            let wrong = wrong.filter(|name| !(is_known && place.path.ends_with(name)));
            // Keys that are no text, such as profiles, are `?` in the path.
            let base = place.path.split(".?").next().unwrap_or_default();
            if let Some(path) = wrong.and_then(|name| self.document.only_key(base, name)) {
                error.line = self.document.line(path);
                error.key = path.to_owned();
            }
            error
        })
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// What serde calls a type, and what users call it.
const TYPES: [(&str, &str); 4] = [
    ("a sequence", "a list, such as [a, b]"),
    ("a map", "a mapping, such as { key: value }"),
    ("f32", "a number"),
    ("f64", "a number"),
];

/// Replaces the name of a Rust type at the end of serde's message.
fn in_words(message: &str) -> String {
    let Some((start, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    let is_integer = |sign: char| {
        expected.strip_prefix(sign).is_some_and(|bits| bits == "size" || bits.parse::<u8>().is_ok())
    };
    let known = TYPES.iter().find(|(own, _)| *own == expected).map(|(_, words)| *words);
    let words = match known {
        Some(words) => words,
        None if is_integer('u') => "a whole number of at least 0",
        None if is_integer('i') => "a whole number",
        None if expected.starts_with("struct ") => TYPES[1].1,
        None => return message.to_owned(),
    };
    format!("{start}, expected {words}")
}

/// Says serde's message in words, and adds the nearest allowed name to "unknown field".
fn explain(message: &str) -> String {
    let message = in_words(message);
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

/// That no claim has this name.
pub(crate) fn no_claim<'a>(name: &str, claims: impl Iterator<Item = &'a str>) -> String {
    format!("there is no claim `{name}`{}", hint(name, claims))
}

/// The index of the first name that is not allowed, and a message with the allowed names.
pub fn unknown_name(what: &str, names: &[String], allowed: &[&str]) -> Option<(usize, String)> {
    let known: HashSet<&str> = allowed.iter().copied().collect();
    let (i, wrong) = names.iter().enumerate().find(|(_, name)| !known.contains(name.as_str()))?;
    let hint = hint(wrong, allowed.iter().copied());
    Some((i, format!("no {what} `{wrong}`; allowed: {}{hint}", allowed.join(", "))))
}

/// The candidate closest to `wrong`, if any is close enough to be a typo.
pub fn nearest<'a>(wrong: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    candidates
        .map(|c| (strsim::jaro_winkler(&wrong, &c.to_lowercase()), c))
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c)
}

/// Values and bytes of text.
type Size = (usize, usize);

/// Finds the lines of keys, and refuses what could fill the memory when it is written out.
#[derive(Default)]
struct Indexer {
    lines: HashMap<String, usize>,
    stack: Vec<Frame>,
    /// Size of the document so far, with its aliases written out.
    size: Size,
    /// Sizes of what aliases repeat, by the parser's number of their anchor.
    anchors: HashMap<usize, Size>,
    /// Paths of lists and mappings with an anchor, by its number.
    paths: HashMap<usize, String>,
    aliases: HashMap<String, String>,
}

/// A list or mapping that is not closed yet.
struct Frame {
    path: String,
    /// Number of its anchor, and the size of the document before it.
    start: (usize, Size),
    content: Content,
}

enum Content {
    Map { key: Option<String>, known: HashSet<String> },
    Sequence { index: usize },
}

fn too_deep() -> String {
    format!("nested more than {MAX_DEPTH} levels deep")
}

impl Indexer {
    /// Lines of all keys and values by their paths. Reads the events one by one, since the parser's own loop recurses.
    fn index(text: &str) -> Result<Self, Fault> {
        let mut indexer = Indexer::default();
        let mut parser = Parser::new_from_str(text);
        loop {
            let (event, marker) = parser.next_token().map_err(|e| {
                // The scanner runs ahead of the events and has a limit of its own.
                let message = match e.info() {
                    info if info.contains("recursion limit") => too_deep(),
                    info => format!("not valid YAML: {info}; {ADVICE}"),
                };
                (e.marker().line(), message)
            })?;
            // The reader of values rejects everything after the first document.
            if matches!(event, Event::DocumentEnd | Event::StreamEnd) {
                return Ok(indexer);
            }
            indexer.take(event, marker.line()).map_err(|message| (marker.line(), message))?;
        }
    }

    fn take(&mut self, event: Event, line: usize) -> Result<(), String> {
        let (anchor, tag, content) = match event {
            Event::MappingStart(anchor, tag) => {
                (anchor, tag, Content::Map { key: None, known: HashSet::new() })
            }
            Event::SequenceStart(anchor, tag) => (anchor, tag, Content::Sequence { index: 0 }),
            Event::Scalar(text, _, anchor, tag) => {
                check_tag(tag)?;
                self.add((1, text.len()))?;
                self.anchors.insert(anchor, (1, text.len()));
                return self.node(Some(&text), line).map(drop);
            }
            Event::Alias(anchor) => {
                self.add(self.anchors.get(&anchor).copied().unwrap_or_default())?;
                let path = self.node(None, line)?;
                let source = self.paths.get(&anchor).cloned();
                self.aliases.extend(source.map(|source| (path, source)));
                return Ok(());
            }
            Event::MappingEnd | Event::SequenceEnd => {
                if let Some(Frame { start: (anchor, (values, bytes)), .. }) = self.stack.pop() {
                    self.anchors.insert(anchor, (self.size.0 - values, self.size.1 - bytes));
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        check_tag(tag)?;
        let (path, start) = (self.node(None, line)?, (anchor, self.size));
        if anchor > 0 {
            self.paths.insert(anchor, path.clone());
        }
        if self.stack.len() >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.add((1, 0))?;
        self.stack.push(Frame { path, start, content });
        Ok(())
    }

    /// Adds to the size of the document.
    fn add(&mut self, (values, bytes): Size) -> Result<(), String> {
        self.size = (self.size.0 + values, self.size.1 + bytes);
        for (amount, most, what) in [
            (self.size.0, MAX_YAML_VALUES, "values"),
            (self.size.1, MAX_TEXT_BYTES, "bytes of text"),
        ] {
            if amount > most {
                return Err(format!(
                    "more than {most} {what} after alias expansion; split the file"
                ));
            }
        }
        Ok(())
    }

    /// Indexes the node that starts now and returns its path, which is empty for a mapping key.
    fn node(&mut self, scalar: Option<&str>, line: usize) -> Result<String, String> {
        let path = match self.stack.last_mut() {
            None => String::new(),
            Some(Frame { path, content: Content::Sequence { index }, .. }) => {
                *index += 1;
                format!("{path}[{}]", *index - 1)
            }
            Some(Frame { path, content: Content::Map { key, known }, .. }) => match key.take() {
                Some(key) => below(path, &key),
                None => {
                    let own = scalar.unwrap_or("?");
                    if path.len() + own.len() > MAX_KEY_BYTES {
                        let most = MAX_KEY_BYTES;
                        return Err(format!(
                            "a key whose path is longer than {most} bytes, the limit"
                        ));
                    }
                    if !known.insert(own.to_owned()) && scalar.is_some() {
                        return Err(format!("not valid YAML: the key `{own}` appears twice"));
                    }
                    // The key's own line is where a reader looks.
                    self.lines.entry(below(path, own)).or_insert(line);
                    *key = Some(own.to_owned());
                    return Ok(String::new());
                }
            },
        };
        self.lines.entry(path.clone()).or_insert(line);
        Ok(path)
    }
}

/// Only the tags of YAML itself have a meaning here.
fn check_tag(tag: Option<Tag>) -> Result<(), String> {
    match tag.is_none_or(|tag| tag.handle == "tag:yaml.org,2002:") {
        true => Ok(()),
        false => Err("not valid YAML: tags (`!name`) are not allowed".into()),
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
            (format!("a0: &a0 [1,1]\n{laughs}"), "more than 200000 values"),
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
