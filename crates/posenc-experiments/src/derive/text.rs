//! Removes lines from a YAML file in block style and keeps its comments.
//!
//! Supports only the style of the project's files. For anything else the result is `None` or a text with another tree, and the
//! caller writes the tree instead.

use serde_yaml::Value;

use super::anchors;

/// Edits `text`, whose tree is `whole`: removes the parts that `wanted` lacks, and replaces those that differ.
pub fn edit(text: &str, whole: &Value, wanted: &Value) -> Option<String> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut out: Vec<String> = Vec::new();
    let starts: Vec<usize> = (0..lines.len()).filter(|&i| top_key(&lines[i]).is_some()).collect();
    let first = *starts.first()?;
    out.extend_from_slice(&lines[..first]);
    for (n, &start) in starts.iter().enumerate() {
        let section = &lines[start..starts.get(n + 1).copied().unwrap_or(lines.len())];
        let key = top_key(&lines[start])?;
        let Some(new) = wanted.get(key) else { continue };
        let old = whole.get(key)?;
        if new == old {
            out.extend_from_slice(section);
        } else if let Some(text) = new.as_str() {
            out.push(format!("{key}: {}", scalar(text)));
        } else {
            out.push(section[0].clone());
            out.extend(items(&section[1..], old, new)?);
        }
    }
    let joined = out.join("\n") + "\n";
    anchors::restored(&joined, text)
}

/// The key of a line that begins a section.
fn top_key(line: &str) -> Option<&str> {
    let key = line.split(':').next()?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    (is_key && line.len() > key.len()).then_some(key)
}

fn scalar(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !text.is_empty();
    if plain { text.to_owned() } else { serde_json::to_string(text).unwrap_or_default() }
}

/// Number of spaces at the start of the line.
pub fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The lines of those items of a list that are in both `old` and `new`, in the same order, each edited to match `new`.
fn items(lines: &[String], old: &Value, new: &Value) -> Option<Vec<String>> {
    let (old, new) = (old.as_sequence()?, new.as_sequence()?);
    let depth = indent(lines.iter().find(|l| l.trim_start().starts_with("- "))?);
    let starts: Vec<usize> = (0..lines.len())
        .filter(|&i| indent(&lines[i]) == depth && lines[i].trim_start().starts_with("- "))
        .collect();
    if starts.len() != old.len() {
        return None;
    }
    // Comments above an item belong to it.
    let begin = |n: usize| {
        let mut at = starts[n];
        while at > 0
            && (n == 0 || at > starts[n - 1] + 1)
            && lines[at - 1].trim_start().starts_with('#')
            && indent(&lines[at - 1]) == depth
        {
            at -= 1;
        }
        at
    };
    let mut out = lines[..begin(0)].to_vec();
    let mut rest = new.iter().peekable();
    for n in 0..old.len() {
        let end = if n + 1 < starts.len() { begin(n + 1) } else { lines.len() };
        let Some(next) = rest.peek().filter(|v| identity(v) == identity(&old[n])) else { continue };
        out.extend_from_slice(&lines[begin(n)..starts[n]]);
        out.extend(item(&lines[starts[n]..end], &old[n], next)?);
        rest.next();
    }
    rest.peek().is_none().then_some(out)
}

/// What identifies an item of a list: its id or, for panels, the whole item.
fn identity(value: &Value) -> Option<&Value> {
    value.get("id").or(Some(value))
}

/// The lines of one item, edited to match `new`.
fn item(lines: &[String], old: &Value, new: &Value) -> Option<Vec<String>> {
    if old == new {
        return Some(lines.to_vec());
    }
    let inner = indent(&lines[0]) + 2;
    let key_at = |i: usize| {
        let is_own = i == 0 || indent(&lines[i]) == inner;
        lines[i].get(inner..).filter(|_| is_own).and_then(top_key)
    };
    let starts: Vec<usize> = (0..lines.len()).filter(|&i| key_at(i).is_some()).collect();
    if starts.first() != Some(&0) {
        return None;
    }
    let mut out = Vec::new();
    for (n, &start) in starts.iter().enumerate() {
        let part = &lines[start..starts.get(n + 1).copied().unwrap_or(lines.len())];
        let key = key_at(start)?;
        if n == 1 {
            out.extend(added(old, new, inner)?);
        }
        let was = old.get(key)?;
        let Some(is) = new.get(key) else { continue };
        if was == is {
            out.extend_from_slice(part);
        } else if let (Some(was), Some(is)) = (was.as_str(), is.as_str()) {
            out.extend(replaced(part, key, was, is)?);
        } else if let Some(at) =
            part[0].find('[').filter(|_| is.get(0).is_none_or(Value::is_string))
        {
            // A list of names in brackets, which may take several lines: `groups: [a, b]`.
            let names: Option<Vec<String>> =
                is.as_sequence()?.iter().map(|v| v.as_str().map(quoted_name)).collect();
            out.push(format!("{}[{}]", &part[0][..at], names?.join(", ")));
        } else {
            out.push(part[0].clone());
            out.extend(items(&part[1..], was, is)?);
        }
    }
    Some(out)
}

/// Lines for the keys that only `new` has; supports only booleans.
fn added(old: &Value, new: &Value, depth: usize) -> Option<Vec<String>> {
    let keys = new.as_mapping()?.iter().filter(|(key, _)| old.get(key).is_none());
    let line = |(key, value): (&Value, &Value)| {
        Some(format!("{}{}: {}", " ".repeat(depth), key.as_str()?, value.as_bool()?))
    };
    keys.map(line).collect()
}

fn quoted_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.chars().all(plain) {
        name.to_owned()
    } else {
        serde_json::to_string(name).unwrap_or_default()
    }
}

/// The lines of a text under `key` with a prefix inserted. The text itself and its quoting style do not change.
fn replaced(part: &[String], key: &str, was: &str, is: &str) -> Option<Vec<String>> {
    let before = is.strip_suffix(was.trim_end()).or_else(|| is.strip_suffix(was))?;
    let mut out = part.to_vec();
    let place = part[0].find(&format!("{key}:"))? + key.len() + 1;
    let value = part[0][place..].trim_start();
    if value.starts_with('|') || value.starts_with('>') {
        let line = out.get_mut(1)?;
        let at = indent(line);
        line.insert_str(at, before);
        return Some(out);
    }
    let at = part[0].len() - value.len();
    let (at, before) = match value.chars().next()? {
        '"' => (at + 1, before.replace('\\', "\\\\").replace('"', "\\\"")),
        '\'' => (at + 1, before.replace('\'', "''")),
        // The prefix could change the meaning of an unquoted text.
        _ if before.contains(": ") || before.contains(" #") => return None,
        _ => (at, before.to_owned()),
    };
    out[0].insert_str(at, &before);
    Some(out)
}
