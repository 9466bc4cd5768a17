//! Moves anchors whose text was removed to the first of their aliases.

use std::collections::{HashMap, HashSet};

use super::text::indent;

/// `text` with its missing anchors restored from `original`; `None` if this is not possible.
pub fn restored(text: &str, original: &str) -> Option<String> {
    let mut text = text.to_owned();
    let known: HashSet<String> = marks(original, '&').into_iter().map(|(_, name)| name).collect();
    // Every round restores one anchor, whose definition may name others.
    for _ in 0..64 {
        let Some((at, name)) = undefined(&text, &known) else { return Some(text) };
        let node = definition(original, &name)?;
        text = placed(&text, at, &name, &node)?;
    }
    None
}

/// Places of `mark` followed by a name, outside quotes and comments.
fn marks(text: &str, mark: char) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut quote, mut comment, mut before) = (None, false, '\n');
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (_, '\n') => (quote, comment) = (None, false),
            (Some(q), c) if c == q && before != '\\' => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if !before.is_alphanumeric() && !comment => quote = Some(c),
            (None, '#') if before.is_whitespace() => comment = true,
            (None, c) if c == mark && !comment && [' ', '[', '{'].contains(&before) => {
                let name = text[i + 1..]
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_');
                let name: String = name.collect();
                let behind = text[i + 1 + name.len()..].chars().next().unwrap_or('\n');
                if !name.is_empty() && [' ', '\n', ',', '}', ']'].contains(&behind) {
                    found.push((i, name));
                }
            }
            _ => {}
        }
        before = c;
    }
    found
}

/// The first alias in `known` without an anchor before it. Other names are stars in prose.
fn undefined(text: &str, known: &HashSet<String>) -> Option<(usize, String)> {
    let mut first: HashMap<String, usize> = HashMap::new();
    for (at, name) in marks(text, '&') {
        first.entry(name).or_insert(at);
    }
    marks(text, '*')
        .into_iter()
        .filter(|(_, name)| known.contains(name))
        .find(|(at, name)| first.get(name).is_none_or(|anchor| anchor >= at))
}

/// Column of the key in the line at `at`; after the dash for `- key: &name`.
fn depth(text: &str, at: usize) -> usize {
    let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    let depth = indent(&text[start..]);
    if text[start + depth..].starts_with("- ") { depth + 2 } else { depth }
}

/// The value of an anchor: the lines below it, indented relative to its own, or the rest of its line.
enum Node {
    Lines(Vec<String>),
    Inline(String),
}

fn definition(original: &str, name: &str) -> Option<Node> {
    let (at, _) = marks(original, '&').into_iter().find(|(_, n)| n == name)?;
    let rest = &original[at + 1 + name.len()..];
    let line = rest.lines().next()?;
    if !line.trim().is_empty() {
        let open = line.trim_start();
        let length = bracketed(open)?;
        return Some(Node::Inline(open[..length].to_owned()));
    }
    let depth = depth(original, at);
    let block: Vec<String> = rest
        .lines()
        .skip(1)
        .take_while(|l| l.trim().is_empty() || indent(l) > depth)
        .map(|l| l.get(depth..).unwrap_or("").to_owned())
        .collect();
    (!block.is_empty()).then_some(Node::Lines(block))
}

/// Length of the text from the bracket or brace at the start to its closing one.
fn bracketed(text: &str) -> Option<usize> {
    if !text.starts_with(['[', '{']) {
        return None;
    }
    let (mut depth, mut quote) = (0, None);
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(i + c.len_utf8());
        }
    }
    None
}

fn placed(text: &str, at: usize, name: &str, node: &Node) -> Option<String> {
    let (before, after) = (&text[..at], &text[at + 1 + name.len()..]);
    match node {
        Node::Inline(node) => Some(format!("{before}&{name} {node}{after}")),
        Node::Lines(block) => {
            // Only if the alias is the whole value of its key.
            let rest = after.lines().next().unwrap_or("");
            let is_alone = rest.trim().is_empty() || rest.trim_start().starts_with('#');
            if !before.ends_with(": ") || !is_alone {
                return None;
            }
            let indent = " ".repeat(depth(text, at));
            let block: Vec<String> = block.iter().map(|l| format!("{indent}{l}")).collect();
            Some(format!("{before}&{name}{rest}\n{}{}", block.join("\n"), &after[rest.len()..]))
        }
    }
}
