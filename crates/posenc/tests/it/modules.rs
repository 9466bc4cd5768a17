//! Dependency rules: modules of a crate have no cyclic dependencies, and the harness names no protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::files_in;

/// The sources of a crate without comments and tests, by path below `src`.
fn code(name: &str) -> BTreeMap<String, String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let mut files = files_in(&src, "rs");
    let is_test = |path: &&PathBuf| path.file_name().is_some_and(|name| name == "tests.rs");
    files.retain(|path| !is_test(&path));
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("#[cfg(test)]\npub mod ", "#[cfg(test)]\nmod ");
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or("").to_owned();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let relative = path.strip_prefix(&src).unwrap().to_string_lossy().replace('\\', "/");
        (relative, lines.collect::<Vec<_>>().join("\n"))
    };
    files.into_iter().map(read).collect()
}

/// The first names of the paths that follow `prefix` in a source; of a list in braces, all names.
fn names(text: &str, prefix: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let of = |after: &str| -> Vec<String> {
        let end =
            if after.starts_with('{') { after.find(';') } else { after.find(|c| !is_name(c)) };
        let paths = after[..end.unwrap_or(after.len())].split(|c| !is_name(c));
        paths.map(str::to_owned).collect()
    };
    text.split(prefix).skip(1).flat_map(of).collect()
}

/// Top-level modules of a crate (for the command line, those below `commands`) with the modules that they use.
fn uses(name: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in code(name) {
        let parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
        let (module, own) = match parts.as_slice() {
            ["lib" | "main"] | ["commands", "mod"] => continue,
            ["commands", verb, rest @ ..] => (format!("commands::{verb}"), rest.len() + 1),
            [module, rest @ ..] => ((*module).to_owned(), rest.len()),
            [] => continue,
        };
        let mut used = names(&text, "crate::");
        used.extend(
            names(&text, "crate::commands::").into_iter().map(|n| format!("commands::{n}")),
        );
        // One `super` leaves the module only from its own file.
        let is_top = own == usize::from(module.contains("::")) || parts.last() == Some(&"mod");
        if is_top && module.contains("::") {
            used.extend(names(&text, "super::").into_iter().map(|n| format!("commands::{n}")));
        } else if is_top {
            used.extend(names(&text, " super::"));
        }
        used.extend(names(&text, "super::super::").into_iter().map(|n| format!("commands::{n}")));
        uses.entry(module).or_default().extend(used);
    }
    let modules: BTreeSet<String> = uses.keys().cloned().collect();
    for (module, used) in &mut uses {
        used.retain(|name| name != module && modules.contains(name));
    }
    uses
}

/// The modules that are in a cycle or use one that is.
fn cyclic(mut uses: BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    loop {
        let count = uses.len();
        let left: BTreeSet<String> = uses.keys().cloned().collect();
        uses.retain(|_, used| used.intersection(&left).next().is_some());
        if uses.len() == count {
            return uses.into_keys().collect();
        }
    }
}

/// Catches cyclic dependencies between modules.
#[test]
fn modules_have_no_cycles() {
    for name in ["posenc-experiments", "posenc-harness", "posenc-protocols", "posenc"] {
        let mut uses = uses(name);
        if name == "posenc-experiments" {
            // A claim is a part of an experiment, and is judged in it.
            assert!(uses.get_mut("schema").unwrap().remove("verdict"));
        }
        let count: usize = uses.values().map(BTreeSet::len).sum();
        assert!(uses.len() >= 10 && count >= 12, "{name}: {count} uses of {} modules", uses.len());
        assert_eq!(cyclic(uses), [] as [String; 0], "{name}");
    }
    let circle = [("a", "b"), ("b", "c"), ("c", "b")];
    let circle = circle.map(|(one, other)| (one.to_owned(), BTreeSet::from([other.to_owned()])));
    assert_eq!(cyclic(circle.into()), ["a", "b", "c"]);
    let list = names("use crate::{one, two}; crate::five::six()", "crate::");
    assert!(["five", "one", "two"].iter().all(|name| list.contains(*name)), "{list:?}");
}

/// Catches a harness that depends on which protocol it runs.
#[test]
fn the_harness_names_no_protocol() {
    let kinds: Vec<&str> = posenc_protocols::KINDS.names().collect();
    assert!(kinds.len() >= 28, "{kinds:?}");
    for (path, text) in code("posenc-harness") {
        for kind in &kinds {
            assert!(!text.contains(&format!("\"{kind}\"")), "{path}: {kind}");
        }
    }
}

/// Catches a call of git that the configuration of a repository could turn into a call of another program.
#[test]
fn git_is_started_in_one_place() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let names = std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().file_name());
    let mut found = BTreeSet::new();
    for name in names.map(|name| name.into_string().unwrap()).chain(["../xtask".to_owned()]) {
        let starts = code(&name).into_iter().filter(|(_, text)| text.contains("new(\"git\")"));
        found.extend(starts.map(|(file, _)| format!("{name}/{file}")));
    }
    assert_eq!(found, BTreeSet::from(["posenc-files/git.rs".to_owned()]));
}
