//! The tables of keys in `FORMAT.md`, which are generated from the documentation of the structs that the loader reads.
//!
//! A table is between `<!-- keys of STRUCT in FILE -->` and `<!-- /keys -->`. Each field is a row with its key, default, allowed values and
//! documentation. The default and the allowed values follow from the type; a sentence `Default: …` or `Allowed: …` in the documentation
//! replaces them. `POSENC_UPDATE=1` writes the tables.

use std::fmt::Write;

use crate::root;

/// A field of a struct, or a variant of an enum.
#[derive(Debug)]
struct Member<'a> {
    name: &'a str,
    /// Type of a field; empty for a variant.
    kind: &'a str,
    documentation: String,
    attributes: Vec<&'a str>,
}

/// The members of `head`, such as `struct Panel` or `enum Band`.
fn members<'a>(source: &'a str, head: &str) -> Option<Vec<Member<'a>>> {
    let start = format!("{head} {{");
    let opens =
        |line: &&str| line.trim_start_matches("pub(super) ").trim_start_matches("pub ") == start;
    let mut all = Vec::new();
    let (mut documentation, mut attributes) = (String::new(), Vec::new());
    for line in
        source.lines().skip_while(|line| !opens(line)).skip(1).take_while(|line| *line != "}")
    {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("///") {
            documentation = format!("{documentation} {}", text.trim()).trim().to_owned();
        } else if line.starts_with("#[") {
            attributes.push(line);
        } else if let Some(member) = line.strip_suffix(',') {
            let member = ["pub ", "pub(super) ", "pub(crate) "]
                .into_iter()
                .find_map(|visible| member.strip_prefix(visible))
                .unwrap_or(member);
            let (name, kind) = member.split_once(": ").unwrap_or((member, ""));
            let documentation = std::mem::take(&mut documentation);
            let attributes = std::mem::take(&mut attributes);
            if !attributes.contains(&"#[serde(skip)]") {
                all.push(Member { name, kind, documentation, attributes });
            }
        }
    }
    (!all.is_empty()).then_some(all)
}

/// Converts a name to kebab case: `FirstAbove` becomes `first-above`.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// The argument of a generic type `Outer<…>`.
fn inside<'a>(kind: &'a str, outer: &str) -> Option<&'a str> {
    kind.strip_prefix(outer)?.strip_prefix('<')?.strip_suffix('>')
}

/// The allowed values of a type, and its default.
fn allowed_and_default(sources: &str, kind: &str) -> (String, String) {
    let owned = |allowed: &str, default: &str| (allowed.to_owned(), default.to_owned());
    match kind {
        "String" => owned("text", "empty"),
        "usize" | "u32" | "u64" => owned("integer", "0"),
        "f64" => owned("number", "0"),
        "bool" => owned("`true`, `false`", "`false`"),
        "Vec<String>" => owned("list of texts", "none"),
        _ if kind.starts_with("Vec<") => owned("list", "none"),
        _ => match members(sources, &format!("enum {kind}")) {
            Some(variants) if variants.iter().all(|v| !v.name.contains(['(', '{'])) => {
                let names: Vec<String> =
                    variants.iter().map(|v| format!("`{}`", kebab(v.name))).collect();
                let is_default = |v: &&Member<'_>| v.attributes.contains(&"#[default]");
                let default = variants.iter().find(is_default);
                let default = default.map_or(String::new(), |v| format!("`{}`", kebab(v.name)));
                (names.join(", "), default)
            }
            _ => owned("mapping", "none"),
        },
    }
}

/// The value of a function `fn NAME() -> T { VALUE }`, in the syntax of experiment files.
fn value_of(sources: &str, function: &str) -> String {
    let start = format!("fn {function}() -> ");
    let body = sources.split(&start).nth(1).and_then(|rest| rest.lines().nth(1));
    let body = body.unwrap_or_else(|| panic!("no function {function}")).trim();
    let body = body.replace(".into()", "").replace("vec!", "").replace('"', "");
    format!("`{}`", body.trim_end_matches(".0"))
}

/// Removes the sentence that begins with `label` from a text and returns it without the label.
fn take_sentence(text: &mut String, label: &str) -> Option<String> {
    let start = text.find(label)?;
    let rest = &text[start + label.len()..];
    let end = rest.find(". ").map_or(rest.len(), |end| end + 1);
    let sentence = rest[..end].trim().trim_end_matches('.').to_owned();
    let whole = format!("{} {}", text[..start].trim_end(), rest[end..].trim_start());
    *text = whole.trim().to_owned();
    Some(sentence)
}

fn table(sources: &str, name: &str) -> String {
    let fields =
        members(sources, &format!("struct {name}")).unwrap_or_else(|| panic!("no struct {name}"));
    let mut table = "| key | default | allowed | meaning |\n|---|---|---|---|\n".to_owned();
    for field in fields {
        let optional = inside(field.kind, "Option");
        let (allowed, standard) = allowed_and_default(sources, optional.unwrap_or(field.kind));
        let serde = field.attributes.iter().find(|a| a.starts_with("#[serde(default"));
        let function = serde.and_then(|a| a.split('"').nth(1));
        let default = match (serde, function, optional) {
            (_, Some(function), _) => value_of(sources, function),
            (Some(_), None, None) => standard,
            (_, _, Some(_)) => "none".to_owned(),
            (None, None, None) => "required".to_owned(),
        };
        let mut meaning = field.documentation;
        let default = take_sentence(&mut meaning, "Default: ").unwrap_or(default);
        let allowed = take_sentence(&mut meaning, "Allowed: ").unwrap_or(allowed);
        assert!(!meaning.is_empty(), "`{}` of {name} has no documentation", field.name);
        writeln!(table, "| `{}` | {default} | {allowed} | {meaning} |", field.name).unwrap();
    }
    table
}

/// `FORMAT.md` with regenerated tables, and their number.
fn page(found: &str) -> (String, usize) {
    let (mut page, mut count, mut rest) = (String::new(), 0, found);
    while let Some((before, after)) = rest.split_once("<!-- keys of ") {
        let (marker, after) = after.split_once(" -->\n").expect("a marker ends with -->");
        let (_, after) =
            after.split_once("<!-- /keys -->").expect("a table ends with <!-- /keys -->");
        let (name, file) = marker.split_once(" in ").expect("a marker names a struct and a file");
        let source = std::fs::read_to_string(root().join(file)).unwrap();
        // Enums and defaults may be in the parent module.
        let above = root().join(file).parent().unwrap().join("mod.rs");
        let above = std::fs::read_to_string(above).unwrap_or_default();
        let table = table(&format!("{source}\n{above}"), name);
        write!(page, "{before}<!-- keys of {marker} -->\n{table}<!-- /keys -->").unwrap();
        rest = after;
        count += 1;
    }
    (page + rest, count)
}

/// Catches a key that is missing from a table of `FORMAT.md`, or that has an outdated default or meaning there.
#[test]
fn the_tables_of_keys_are_up_to_date() {
    let file = root().join("FORMAT.md");
    let found = std::fs::read_to_string(&file).unwrap().replace("\r\n", "\n");
    let (page, count) = page(&found);
    assert!(count >= 7, "{count} tables");
    if std::env::var_os("POSENC_UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(file, page).unwrap();
        return;
    }
    let line = found.lines().zip(page.lines()).position(|(found, own)| found != own);
    assert!(
        found == page,
        "FORMAT.md:{}: the table differs from the code; to write it again: POSENC_UPDATE=1 cargo xtask test the_tables_of_keys",
        line.map_or(0, |line| line + 1)
    );
}
