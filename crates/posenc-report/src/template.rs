//! Pages and their parts from `templates/`.
//!
//! A template escapes every text ([`plain`](markdown::plain)) that no filter renders as Markdown, so that text from records and
//! experiments cannot become markup by an omission.

use anyhow::{Context as _, Result};
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};

use crate::markdown::{self, plain};
use crate::numbers::{MISSING, duration, fixed, significant};

macro_rules! sources {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../templates/", $name)))),*] };
}

const SOURCES: &[(&str, &str)] = sources! {
    "about.md" "answers.md" "claims.md" "digest.md" "embedder.md" "embedders.md" "errata.md" "item.md" "paper.md"
    "paper_claims.md" "paper_coverage.md" "parameters.md" "protocols.md" "provenance.md" "quantities.md" "readme.md" "speed.md"
    "speed_overview.md" "verdicts.md"
};

type TextFilter = fn(&str) -> String;

/// Filters from an author's Markdown or from text to finished Markdown.
const TEXTS: &[(&str, TextFilter)] = &[
    ("block", markdown::block),
    ("cell", markdown::cell),
    ("code", markdown::code),
    ("destination", markdown::destination),
    ("inline", markdown::inline),
    ("item", markdown::item),
    ("label", markdown::label),
    ("slug", markdown::slug),
];

/// All templates.
pub struct Templates(Environment<'static>);

impl Templates {
    pub fn new() -> Result<Templates> {
        let mut environment = Environment::new();
        environment.set_syntax(
            SyntaxConfig::builder()
                .trim_blocks(true)
                .lstrip_blocks(true)
                .keep_trailing_newline(true)
                .build()?,
        );
        // A misspelled name is an error.
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::Custom("markdown".into()));
        environment.set_formatter(|out, _, value| Ok(out.write_str(&shown(value))?));
        for (name, filter) in TEXTS {
            environment.add_filter(*name, move |text: &str| safe(filter(text)));
        }
        environment.add_filter("bare", |text: &str| markdown::bare(text));
        environment
            .add_filter("indented", |text: &Value| safe(shown(text).trim().replace('\n', "\n  ")));
        environment.add_filter("duration", |seconds: Option<f64>| number(seconds, duration));
        environment.add_filter("fixed", |value: Option<f64>, digits: usize| {
            number(value, |value| fixed(value, digits))
        });
        environment.add_filter("significant", |value: Option<f64>, digits: usize| {
            number(value, |value| significant(value, digits))
        });
        environment.add_filter("counted", crate::numbers::counted);
        for (name, source) in SOURCES {
            environment.add_template(name, source)?;
        }
        Ok(Templates(environment))
    }

    /// Fills in a template. In the result, at most one empty line separates two lines outside of code.
    pub fn render(&self, name: &str, context: Value) -> Result<String> {
        let text = self
            .0
            .get_template(name)?
            .render(context)
            .with_context(|| format!("template {name}"))?;
        let mut out = String::with_capacity(text.len());
        let (mut is_code, mut was_empty) = (false, true);
        for line in text.lines() {
            is_code ^= ["```", "~~~"].iter().any(|fence| line.trim_start().starts_with(fence));
            if is_code || !was_empty || !line.is_empty() {
                out.extend([line, "\n"]);
            }
            was_empty = line.is_empty();
        }
        Ok(out.trim_end().to_owned())
    }
}

/// Finished Markdown, which templates do not escape.
pub fn safe(text: impl Into<String>) -> Value {
    Value::from_safe_string(text.into())
}

/// A value as a template prints it.
fn shown(value: &Value) -> String {
    match value.as_str() {
        Some(text) if value.is_safe() => text.to_owned(),
        Some(text) => plain(text),
        None if value.is_none() => String::new(),
        None => value.to_string(),
    }
}

fn number(value: Option<f64>, shown: impl Fn(f64) -> String) -> Value {
    safe(value.map_or_else(|| MISSING.to_owned(), shown))
}
