//! Dependency rules: files of a crate have no circles, and the harness names no protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::files_in;

fn crates() -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let names = std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}

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

/// Adds the paths at the start of a text, with all entries of lists in braces, and returns where they end.
fn expand(text: &str, prefix: &str, paths: &mut Vec<String>) -> usize {
    let is_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut end = text.find(|c| !is_path(c)).unwrap_or(text.len());
    let path = format!("{prefix}{}", &text[..end]);
    if !text[end..].starts_with('{') {
        paths.push(path);
        return end;
    }
    while let Some(next) = text[end..].find(|c| is_path(c) || c == '}') {
        end += next;
        if text[end..].starts_with('}') {
            return end + 1;
        }
        end += expand(&text[end..], &path, paths);
        // Skips a name after `as`.
        end += text[end..].find([',', '}']).unwrap_or(0);
    }
    end
}

/// The files of a crate with the files that they use. A file and those in its folder may use each other.
fn uses(name: &str) -> BTreeMap<String, BTreeSet<String>> {
    let module = |path: &str| path.trim_end_matches(".rs").trim_end_matches("/mod").to_owned();
    let mut code: BTreeMap<String, String> =
        code(name).into_iter().map(|(path, text)| (module(&path), text)).collect();
    code.retain(|module, _| !["lib", "main"].contains(&module.as_str()));
    let used_by = |own: &String, text: &String| {
        let mut paths = Vec::new();
        for start in ["crate::", "super::"].iter().flat_map(|start| text.match_indices(start)) {
            if !text[..start.0].ends_with(':') {
                expand(&text[start.0..], "", &mut paths);
            }
        }
        let found = paths.iter().filter_map(|path| {
            let mut parts: Vec<&str> =
                if path.starts_with("super") { own.split('/').collect() } else { Vec::new() };
            for part in path.split("::") {
                match part {
                    "crate" => {}
                    "super" => drop(parts.pop()),
                    _ => parts.push(part),
                }
            }
            let all = (1..=parts.len()).rev().map(|n| parts[..n].join("/"));
            let used = { all }.find(|file| code.contains_key(file))?;
            let is_near =
                |outer: &str, inner: &str| format!("{inner}/").starts_with(&format!("{outer}/"));
            (!is_near(&used, own) && !is_near(own, &used)).then_some(used)
        });
        (own.clone(), found.collect())
    };
    code.iter().map(|(own, text)| used_by(own, text)).collect()
}

/// The files that are in a circle or between two circles.
fn circles(mut uses: BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    loop {
        let count = uses.len();
        let used: BTreeSet<String> = uses.values().flatten().cloned().collect();
        let left: BTreeSet<String> =
            uses.keys().filter(|file| used.contains(*file)).cloned().collect();
        uses.retain(|file, used| left.contains(file) && !used.is_disjoint(&left));
        for used in uses.values_mut() {
            used.retain(|file| left.contains(file));
        }
        if uses.len() == count {
            return uses.into_keys().collect();
        }
    }
}

/// Catches circles of files.
#[test]
fn files_have_no_circles() {
    for name in crates() {
        let mut uses = uses(&name);
        match name.as_str() {
            // A claim is a part of an experiment, and is judged in it.
            "posenc-experiments" => {
                for (_, used) in uses.iter_mut().filter(|(file, _)| file.starts_with("schema")) {
                    used.retain(|other| !other.starts_with("verdict"));
                }
            }
            // The first layer of a network is a part of its pass.
            "posenc-nets" => {
                assert!(uses.get_mut("device/input").unwrap().remove("device/simple"));
            }
            _ => {}
        }
        let count: usize = uses.values().map(BTreeSet::len).sum();
        assert!(uses.len() >= 5 && count >= 2, "{name}: {count} uses of {} files", uses.len());
        // Repetitions, their pairs and the checks that read both.
        let allowed: &[&str] = match name.as_str() {
            "posenc-experiments" => {
                &["verdict/checks", "verdict/clusters", "verdict/pairs", "verdict/points"]
            }
            _ => &[],
        };
        assert_eq!(circles(uses), allowed, "{name}");
    }
    let circle = [("a", "b"), ("b", "c"), ("c", "b"), ("d", "a")];
    let circle = circle.map(|(one, other)| (one.to_owned(), BTreeSet::from([other.to_owned()])));
    assert_eq!(circles(circle.into()), ["b", "c"]);
    let mut paths = Vec::new();
    expand("crate::{one::{self, two as three}, four};", "", &mut paths);
    assert_eq!(paths, ["crate::one::self", "crate::one::two", "crate::four"]);
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
    let mut found = BTreeSet::new();
    for name in crates().into_iter().chain(["../xtask".to_owned()]) {
        let starts = code(&name).into_iter().filter(|(_, text)| text.contains("new(\"git\")"));
        found.extend(starts.map(|(file, _)| format!("{name}/{file}")));
    }
    assert_eq!(found, BTreeSet::from(["posenc-files/git.rs".to_owned()]));
}
