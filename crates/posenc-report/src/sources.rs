//! Sources of published numbers, shown as superscript letters with a legend.

use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub struct Sources {
    used: BTreeSet<&'static str>,
}

/// Name of a source in the published values, its letter, and its meaning.
const KNOWN: &[(&str, &str, &str)] = &[
    ("notebook", "n", "printed by the authors' notebook or read off its pictures"),
    ("plot", "p", "read off a plot"),
    ("theory", "t", "follows from the paper's theory"),
    ("code", "c", "set in the authors' code"),
];
const OTHER: (&str, &str) = ("o", "not printed in the paper");

impl Sources {
    /// The superscript of a source; empty for numbers that the paper prints.
    pub fn mark(&mut self, source: &str) -> String {
        if source == "paper" || source.is_empty() {
            return String::new();
        }
        let letter = KNOWN.iter().find(|(s, ..)| *s == source).map_or(OTHER.0, |(_, l, _)| l);
        self.used.insert(letter);
        format!("<sup>{letter}</sup>")
    }

    /// The legend of the letters in use.
    pub fn legend(&self) -> String {
        let meaning = |letter: &str| {
            KNOWN.iter().find(|(_, l, _)| *l == letter).map_or(OTHER.1, |(.., meaning)| meaning)
        };
        let parts: Vec<_> =
            self.used.iter().map(|l| format!("<sup>{l}</sup> {}", meaning(l))).collect();
        parts.join("; ")
    }
}
