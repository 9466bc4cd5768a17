//! Checks that only the registry names kinds of embedders.

use std::path::{Path, PathBuf};

use posenc_math::embedder::registry;

/// Literals that happen to equal the name of a kind: (end of the path, literal).
const WORDS: [(&str, &str); 6] = [
    // Method in a published table.
    ("posenc-math/src/errata/rethinking.rs", "basic"),
    // Word in a generated screen, and shapes in a generated picture.
    ("posenc-data/src/generate/screens/captions.rs", "random"),
    ("posenc-protocols/src/detr/run.rs", "rectangle"),
    ("posenc-protocols/src/detr/run.rs", "triangle"),
    // A title in prose, and an option.
    ("posenc/src/commands/bench/closed_form.rs", "triangle"),
    ("posenc/src/arguments.rs", "formula"),
];

/// Collects the sources of a folder, except tests and the kinds' own files.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_kind = path.parent().unwrap().ends_with("posenc-math/src/embedder")
            && registry().iter().any(|kind| kind.name.replace('-', "_") == name);
        if name == "tests" || is_kind {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Catches a match on the name of a kind, or a list of kinds, outside of the registry: a new kind would be missing there.
#[test]
fn no_code_outside_of_the_registry_names_a_kind() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&crates).unwrap() {
        let folder = entry.unwrap().path().join("src");
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    assert!(files.len() > 300, "{}", files.len());
    let mut named = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for (number, line) in code.lines().enumerate().filter(|(_, l)| !l.trim().starts_with("//"))
        {
            for kind in registry() {
                let is_word =
                    |(end, word): &(&str, &str)| file.ends_with(end) && *word == kind.name;
                if line.contains(&format!("\"{}\"", kind.name)) && !WORDS.iter().any(is_word) {
                    named.push(format!("{}:{}: {line}", file.display(), number + 1));
                }
            }
        }
    }
    assert!(
        named.is_empty(),
        "ask the registry instead (`embedder::find`), use `embedder::names`, or add a word that is no kind to `WORDS`:\n{}",
        named.join("\n")
    );
}
