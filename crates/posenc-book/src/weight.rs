//! Sizes of pages with everything that they load.

use std::collections::{BTreeMap, BTreeSet};

use crate::html::tags;
use crate::links::{decoded, joined};

/// Size of every page in bytes, including everything that a browser loads to show it: styles, scripts, icons, fonts and
/// pictures. Each file counts once.
pub fn weights(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, u64> {
    let pages = files.keys().filter(|name| name.ends_with(".html"));
    pages.map(|name| (name.clone(), weight(files, name))).collect()
}

fn weight(files: &BTreeMap<String, Vec<u8>>, page: &str) -> u64 {
    let mut loaded = BTreeSet::from([page.to_owned()]);
    let mut waiting = vec![page.to_owned()];
    while let Some(name) = waiting.pop() {
        let Some(bytes) = files.get(&name) else { continue };
        for wanted in loads(&name, &String::from_utf8_lossy(bytes)) {
            if loaded.insert(wanted.clone()) {
                waiting.push(wanted);
            }
        }
    }
    let sizes = loaded.iter().filter_map(|name| files.get(name));
    sizes.map(|bytes| bytes.len() as u64).sum()
}

/// Files that a browser loads for a file, by path below the site.
fn loads(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if name.ends_with(".html") {
        found.extend(tags(text).filter_map(|tag| match tag.name {
            "img" | "script" | "iframe" | "source" => tag.attribute("src"),
            "link" => tag.attribute("href"),
            _ => None,
        }));
    } else if name.ends_with(".css") {
        for part in text.split("url(").skip(1) {
            let link = part.split(')').next().unwrap_or_default();
            found.push(link.trim_matches(['"', '\'', ' ']).to_owned());
        }
    }
    found.retain(|link| !link.starts_with("data:"));
    let path = |link: &String| link.split(['#', '?']).next().map(decoded);
    found.iter().filter_map(|link| joined(name, &path(link)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a loaded file that is not counted, or counted twice.
    #[test]
    fn every_loaded_file_counts_once() {
        let page = "<link href=\"../a.css\"><script src=\"../b.js\"></script><img src=\"../p%20q.png\">\
                    <img src=\"../p%20q.png\"><a href=\"../big.html\">x</a><img src=\"data:,x\">";
        let files = [
            ("x/y.html", page.to_owned()),
            ("a.css", "@font-face { src: url('f.woff2') }".to_owned()),
            ("b.js", "1".repeat(10)),
            ("f.woff2", "1".repeat(100)),
            ("p q.png", "1".repeat(1000)),
            ("big.html", "1".repeat(10_000)),
        ];
        let files: BTreeMap<_, _> =
            files.into_iter().map(|(n, t)| (n.to_owned(), t.into_bytes())).collect();
        let expected = page.len() + files["a.css"].len() + 1110;
        assert_eq!(weights(&files)["x/y.html"], expected as u64);
    }
}
