//! The error message for test filters without matches.

use std::ffi::OsString;
use std::path::Path;

use crate::machine::{entries, file_name};
use crate::process::root;

/// Minimum similarity, from 0 to 1, of a suggested name.
const CLOSE: f64 = 0.75;
/// Maximum number of suggested names.
const MOST: usize = 5;

/// Options of `cargo test` and of libtest whose value is the next argument, which is therefore not a filter.
const WITH_VALUE: [&str; 22] = [
    "--test",
    "--bin",
    "--example",
    "--bench",
    "--package",
    "-p",
    "--exclude",
    "--features",
    "-F",
    "--jobs",
    "-j",
    "--target",
    "--target-dir",
    "--profile",
    "--manifest-path",
    "--message-format",
    "--color",
    "--config",
    "-Z",
    "--skip",
    "--test-threads",
    "--format",
];

/// The message for filters that match none of the tests with these names.
pub fn no_match(arguments: &[OsString], names: &[String]) -> String {
    let filters = filters(arguments);
    let quoted: Vec<String> = filters.iter().map(|filter| format!("`{filter}`")).collect();
    let mut message = match &quoted[..] {
        [] => "no test matches these options".to_owned(),
        _ => format!("no test has a name that contains {}", quoted.join(" or ")),
    };
    for filter in &filters {
        if is_binary(&root(), filter) {
            message += &format!(
                "\n`{filter}` is a file of tests; to run it: cargo xtask test --test {filter}"
            );
        }
    }
    let close = close(&filters, names);
    if !close.is_empty() {
        message += &format!("\nsimilar names: {}", close.join(", "));
    }
    message + "\nto list all names: cargo xtask test -- --list"
}

/// Arguments that are neither options nor their values.
fn filters(arguments: &[OsString]) -> Vec<String> {
    let texts: Vec<String> = arguments.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let before = std::iter::once("").chain(texts.iter().map(String::as_str));
    let both = texts.iter().zip(before);
    both.filter(|(text, before)| !text.starts_with('-') && !WITH_VALUE.contains(before))
        .map(|(text, _)| text.clone())
        .collect()
}

/// Whether a crate has a test binary of this name.
fn is_binary(root: &Path, name: &str) -> bool {
    let mut packages = entries(&root.join("crates"));
    packages.push(root.join("xtask"));
    packages.iter().any(|package| {
        entries(&package.join("tests")).iter().any(|path| {
            file_name(path) == format!("{name}.rs")
                || (file_name(path) == name && path.join("main.rs").is_file())
        })
    })
}

fn words(name: &str) -> Vec<&str> {
    name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// Names whose words are similar to those of a filter, most similar first.
fn close<'a>(filters: &[String], names: &'a [String]) -> Vec<&'a str> {
    let similarity = |filter: &str, name: &str| {
        let (wanted, present) = (words(filter), words(name));
        let best = |word: &&str| {
            let each = present.iter().map(|p| strsim::normalized_damerau_levenshtein(word, p));
            each.fold(0.0, f64::max)
        };
        wanted.iter().map(best).sum::<f64>() / wanted.len().max(1) as f64
    };
    let mut scored: Vec<(f64, &str)> = names
        .iter()
        .map(|name| {
            let scores = filters.iter().map(|filter| similarity(filter, name));
            (scores.fold(0.0, f64::max), name.as_str())
        })
        .filter(|(score, _)| *score >= CLOSE)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by_key(|(_, name)| *name);
    scored.into_iter().take(MOST).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a value of an option that is reported as a filter.
    #[test]
    fn filters_are_distinguished_from_options() {
        let of = |text: &str| {
            filters(&text.split(' ').map(OsString::from).collect::<Vec<_>>()).join(" ")
        };
        assert_eq!(of("browser"), "browser");
        assert_eq!(
            of("-p posenc-nets --test it kills -- --test-threads 1 --exact more"),
            "kills more"
        );
        assert_eq!(of("--features=x --lib"), "");
    }

    /// Catches a typo without a suggestion, and suggestions for unrelated words.
    #[test]
    fn similar_names_are_found() {
        let names = [
            "kills::killed_runs_end_with_the_bytes_of_an_undisturbed_one",
            "slurm::a_node_dies",
            "tests::wide_pages",
        ]
        .map(str::to_owned);
        let of = |filter: &str| close(&[filter.to_owned()], &names);
        assert_eq!(of("slrum"), ["slurm::a_node_dies"]);
        assert_eq!(of("wide_page"), ["tests::wide_pages"]);
        assert_eq!(of("killed-runs"), [names[0].as_str()]);
        assert_eq!(of("coffee"), [""; 0]);
    }

    /// Catches a file of tests that is not recognized by its name.
    #[test]
    fn files_of_tests_are_found() {
        let root = crate::process::root();
        assert!(is_binary(&root, "browser") && is_binary(&root, "skip"));
        assert!(!is_binary(&root, "bowser") && !is_binary(&root, "main"));
    }
}
