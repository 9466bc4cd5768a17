//! Selectors of the command line: globs on `paper/item/group/method`.

use globset::{GlobBuilder, GlobMatcher};

/// A set of globs; an empty set selects everything.
#[derive(Debug, Clone, Default)]
pub struct Selectors {
    globs: Vec<(String, usize, GlobMatcher)>,
}

impl Selectors {
    /// Parses selectors such as `trading`, `trading/table1/closed-form` or `*/fig*`.
    pub fn parse(texts: &[String]) -> Result<Self, String> {
        let mut globs = Vec::new();
        for text in texts {
            if text.is_empty() {
                return Err(
                    "selector ``: allowed are one to four parts, paper/item/group/method, such as trading/table1/closed-form"
                        .to_owned(),
                );
            }
            // What follows the third slash is the method, whose name may have slashes of its own.
            let mut parts: Vec<String> = text.splitn(4, '/').map(str::to_owned).collect();
            let depth = parts.len();
            if let Some(method) = parts.get_mut(3) {
                *method = method_in_path(method);
            }
            let glob = GlobBuilder::new(&parts.join("/"))
                .literal_separator(true)
                .build()
                .map_err(|e| format!("selector `{text}`: {}", e.kind()))?;
            globs.push((text.clone(), depth, glob.compile_matcher()));
        }
        Ok(Selectors { globs })
    }

    /// Whether nothing is excluded.
    pub fn is_everything(&self) -> bool {
        self.globs.is_empty()
    }

    /// Whether a method is selected: a selector of n parts is held against the first n.
    pub fn matches(&self, paper: &str, item: &str, group: &str, method: &str) -> bool {
        let method = method_in_path(method);
        let parts = [paper, item, group, &method];
        self.globs.is_empty()
            || self.globs.iter().any(|(_, depth, glob)| glob.is_match(parts[..*depth].join("/")))
    }

    /// Selectors that match none of `candidates` (paper, item, group, method).
    pub fn unmatched<'a>(&self, candidates: &[(&'a str, &'a str, &'a str, &'a str)]) -> Vec<&str> {
        self.globs
            .iter()
            .filter(|(text, _, _)| {
                let one = Selectors {
                    globs: self.globs.iter().filter(|g| g.0 == *text).cloned().collect(),
                };
                !candidates.iter().any(|c| one.matches(c.0, c.1, c.2, c.3))
            })
            .map(|(text, _, _)| text.as_str())
            .collect()
    }
}

/// A slash inside a method's name is no separator.
fn method_in_path(method: &str) -> String {
    method.replace('/', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, path: [&str; 4]) -> bool {
        Selectors::parse(&[selector.to_owned()])
            .unwrap()
            .matches(path[0], path[1], path[2], path[3])
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

    #[test]
    fn nothing_and_bad_globs_are_refused() {
        for bad in ["", "trading/[", "a{b"] {
            assert!(Selectors::parse(&[bad.to_owned()]).is_err(), "{bad}");
        }
    }
}
