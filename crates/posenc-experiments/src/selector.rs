//! Selectors of the command line: globs on `paper/item/group/method`.

use globset::{GlobBuilder, GlobSet};

use crate::schema::{Experiment, Group};

/// Longest selector, in bytes: a path has up to 260. The size of a glob's automaton grows with its length.
const MAX_BYTES: usize = 500;

/// A set of globs; an empty set selects everything.
#[derive(Debug, Clone, Default)]
pub struct Selectors {
    globs: Vec<Selector>,
}

/// One glob, for the first `depth` parts of a path.
#[derive(Debug, Clone)]
struct Selector {
    text: String,
    depth: usize,
    glob: GlobSet,
}

impl Selectors {
    /// Parses selectors such as `trading`, `trading/table1/closed-form` or `*/fig*`.
    pub fn parse(texts: &[String]) -> Result<Self, String> {
        let mut globs = Vec::new();
        for text in texts {
            let wrong = |what: &str| format!("selector `{text}`: {what}");
            if text.is_empty() {
                let allowed = "paper/item/group/method, such as trading/table1/closed-form";
                return Err(wrong(&format!("empty; write one to four parts of {allowed}")));
            }
            if text.len() > MAX_BYTES {
                let (shown, bytes): (String, _) = (text.chars().take(40).collect(), text.len());
                return Err(format!(
                    "selector `{shown}…`: {bytes} bytes; allowed: up to {MAX_BYTES}"
                ));
            }
            if !has_flat_braces(text) {
                return Err(wrong("braces inside braces; write one list, such as {a,b,c}"));
            }
            // The text after the third slash is the method, whose name may contain slashes.
            let mut parts: Vec<String> = text.splitn(4, '/').map(str::to_owned).collect();
            let depth = parts.len();
            if let Some(method) = parts.get_mut(3) {
                *method = method_in_path(method);
            }
            // A set of one: unlike a matcher, it reports a glob that is too large instead of panicking.
            let glob = GlobBuilder::new(&parts.join("/"))
                .literal_separator(true)
                .build()
                .and_then(|glob| GlobSet::builder().add(glob).build())
                .map_err(|e| wrong(&e.kind().to_string()))?;
            globs.push(Selector { text: text.clone(), depth, glob });
        }
        Ok(Selectors { globs })
    }

    pub fn is_everything(&self) -> bool {
        self.globs.is_empty()
    }

    /// Whether a method is selected: a selector of n parts is compared with the first n.
    pub fn matches(&self, paper: &str, item: &str, group: &str, method: &str) -> bool {
        self.globs.is_empty() || self.place(paper, item, group, method) < self.globs.len()
    }

    /// Whether a method of a group is selected.
    pub fn matches_group(&self, experiment: &Experiment, group: &Group) -> bool {
        let (paper, item) = (&experiment.paper, &experiment.item);
        group.variants.iter().any(|v| self.matches(paper, item, &group.id, &v.id))
    }

    /// Whether a method of an experiment is selected.
    pub fn matches_experiment(&self, experiment: &Experiment) -> bool {
        experiment.groups.iter().any(|group| self.matches_group(experiment, group))
    }

    /// Index of the first selector that selects a method; the number of selectors if none does.
    pub fn place(&self, paper: &str, item: &str, group: &str, method: &str) -> usize {
        let method = method_in_path(method);
        let parts = [paper, item, group, &method];
        let all = self.globs.iter();
        all.take_while(|selector| !selector.matches(parts)).count()
    }

    /// Selectors that match none of `candidates` (paper, item, group, method).
    pub fn unmatched<'a>(&self, candidates: &[(&'a str, &'a str, &'a str, &'a str)]) -> Vec<&str> {
        self.globs
            .iter()
            .filter(|selector| {
                let matches = |c: &(&str, &str, &str, &str)| {
                    selector.matches([c.0, c.1, c.2, &method_in_path(c.3)])
                };
                !candidates.iter().any(matches)
            })
            .map(|selector| selector.text.as_str())
            .collect()
    }
}

impl Selector {
    /// Whether the glob matches the first parts of paper, item, group and method.
    fn matches(&self, parts: [&str; 4]) -> bool {
        self.glob.is_match(parts[..self.depth].join("/"))
    }
}

/// Whether no brace opens inside another one, since the glob parser recurses for each.
fn has_flat_braces(text: &str) -> bool {
    let mut is_open = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '{' if is_open => return false,
            '{' => is_open = true,
            '}' => is_open = false,
            _ => {}
        }
    }
    true
}

/// Replaces the slashes in a method's name, which are not separators.
fn method_in_path(method: &str) -> String {
    method.replace('/', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, [paper, item, group, method]: [&str; 4]) -> bool {
        let selectors = Selectors::parse(&[selector.to_owned()]).unwrap();
        selectors.matches(paper, item, group, method)
    }

    /// Catches globs that cross a slash or need all four parts.
    #[test]
    fn parts_are_matched_one_by_one() {
        let gau = ["trading", "table1", "closed-form", "Gau"];
        for selector in ["trading", "trading/table1", "*/table?", "trading/*/*/Gau", "t*"] {
            assert!(selects(selector, gau), "{selector}");
        }
        for selector in ["rethinking", "table1", "trading/table", "trading/table1/closed-form/Tri"]
        {
            assert!(!selects(selector, gau), "{selector}");
        }
    }

    /// Catches ids with a slash that only a wildcard selects, and wildcards that no longer do.
    #[test]
    fn a_method_with_a_slash_is_selected_by_its_id() {
        let method = ["lff", "table1", "learned", "Learnable-Fourier+MLP-4/1"];
        let path = "lff/table1/learned/";
        for end in ["Learnable-Fourier+MLP-4/1", "*-4/1", "*/?", "Learnable-Fourier+MLP-4?1", "*"] {
            assert!(selects(&format!("{path}{end}"), method), "{end}");
        }
        for end in ["Learnable-Fourier+MLP-2/2", "Learnable-Fourier+MLP-4", "*/1/1", "4/1"] {
            assert!(!selects(&format!("{path}{end}"), method), "{end}");
        }
        assert!(!selects("lff/table1/learned/Gau/1", ["lff", "table1", "learned", "Gau"]));
    }

    /// Catches a selector that panics, overflows the stack or fills the memory instead of being refused: nested braces, and text of
    /// any length.
    #[test]
    fn empty_and_bad_globs_are_refused() {
        let nested = |n: usize| "{".repeat(n) + "a" + &"}".repeat(n);
        for bad in [
            "",
            "trading/[",
            "a{b",
            &nested(2),
            &nested(240),
            &"{".repeat(100_000),
            &"*".repeat(501),
        ] {
            let error = Selectors::parse(&[bad.to_owned()]).unwrap_err();
            assert!(error.starts_with("selector `") && error.len() < 700, "{error:.800}");
        }
        assert!(selects("{trading,lff}/{fig,table}1", ["lff", "table1", "g", "m"]));
    }

    /// Catches a glob whose matching time grows faster than the length of the path.
    #[test]
    fn many_wildcards_match_in_linear_time() {
        let name = "a".repeat(1 << 20);
        for selector in
            ["a*".repeat(240) + "b", "*a".repeat(240) + "?b", "{a,b,*}".repeat(60) + "c"]
        {
            assert!(!selects(&format!("p/i/g/{selector}"), ["p", "i", "g", &name]), "{selector}");
        }
    }
}
