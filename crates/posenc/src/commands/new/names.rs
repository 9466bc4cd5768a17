//! The name of a new embedder or experiment, in the forms that files and code need.

use anyhow::{Result, bail};

/// A checked name: words of a–z and 0–9.
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    words: Vec<String>,
}

const LONGEST: usize = 40;

/// Keywords of Rust (2024 edition) and names that the new module would shadow.
const RESERVED: &[&str] = &[
    "abstract", "alloc", "as", "async", "await", "become", "box", "break", "const", "continue",
    "core", "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen",
    "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "null", "override",
    "priv", "pub", "ref", "return", "self", "static", "std", "struct", "super", "test", "trait",
    "true", "try", "type", "typeof", "union", "unsafe", "unsized", "use", "virtual", "where",
    "while", "yield",
];

impl Name {
    /// Parses `two-words` or `two_words`.
    pub fn parse(text: &str) -> Result<Self> {
        let words: Vec<String> = text.split(['-', '_']).map(str::to_owned).collect();
        let is_word = |w: &String| {
            !w.is_empty() && w.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        };
        let starts_well = text.starts_with(|c: char| c.is_ascii_lowercase());
        if text.len() > LONGEST || !starts_well || !words.iter().all(is_word) {
            bail!(
                "`{text}` is not a valid name; allowed: 1 to {LONGEST} of a-z, 0-9 and single hyphens or underscores between \
                 them, beginning with a letter, such as `two-sided`"
            );
        }
        let name = Name { words };
        if RESERVED.contains(&name.snake().as_str()) {
            bail!(
                "`{text}` is a keyword of Rust or YAML; choose another name, such as `{text}-like`"
            );
        }
        Ok(name)
    }

    /// `two-words`: kinds, items, files of experiments.
    pub fn kebab(&self) -> String {
        self.words.join("-")
    }

    /// `two_words`: modules.
    pub fn snake(&self) -> String {
        self.words.join("_")
    }

    /// `TwoWords`: types.
    pub fn camel(&self) -> String {
        self.words.iter().map(|w| capitalized(w)).collect()
    }

    /// `Two words`: in prose.
    pub fn prose(&self) -> String {
        capitalized(&self.words.join(" "))
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map_or_else(String::new, |c| c.to_ascii_uppercase().to_string() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a form that is invalid for a file, a module, a type or a legend.
    #[test]
    fn a_name_has_four_forms() {
        for text in ["two-sided-2", "two_sided_2"] {
            let name = Name::parse(text).unwrap();
            assert_eq!(
                [name.kebab(), name.snake(), name.camel(), name.prose()],
                ["two-sided-2", "two_sided_2", "TwoSided2", "Two sided 2"]
            );
        }
    }

    /// Catches names that yield code that does not compile, or a path outside the folder.
    #[test]
    fn invalid_names_are_refused() {
        let long = "a".repeat(LONGEST + 1);
        for text in [
            "", "-", "a-", "_a", "a--b", "2d", "Hat", "a/b", "..", "a b", "naïve", "a.rs", "self",
            "type", &long,
        ] {
            assert!(Name::parse(text).is_err(), "{text}");
        }
    }
}
