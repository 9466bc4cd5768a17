//! `data/papers/<paper>.coverage.yaml`: every statement of a paper, with the claims that test it or the reason why none does.

use std::path::Path;

use serde::Deserialize;

use crate::schema::claim::ClaimName;
use crate::text::read_record;
use crate::yaml::{Document, FileError};

#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Section, such as `6.2`.
    pub section: String,
    /// The statement, verbatim or close to it (Markdown).
    pub statement: String,
    pub tested: Tested,
    /// The erratum that it has; such a statement never counts as holding as printed.
    pub erratum: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Tested {
    By(Vec<ClaimName>),
    /// No claim, for this reason (Markdown).
    Not(String),
    /// It is counted elsewhere (Markdown).
    Elsewhere(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    section: String,
    statement: String,
    claims: Option<Vec<String>>,
    none: Option<String>,
    elsewhere: Option<String>,
    erratum: Option<String>,
}

/// Reads the statements of a paper; a missing file has none. `find` returns the name of a claim, or an error.
pub fn read(
    file: &Path,
    find: impl Fn(&str) -> Result<ClaimName, String>,
) -> Result<Vec<Statement>, FileError> {
    match read_record(file)? {
        Some(text) => from_document(&Document::parse(file, &text)?, find),
        None => Ok(Vec::new()),
    }
}

/// Like [`read`], for a parsed document.
pub fn from_document(
    document: &Document,
    find: impl Fn(&str) -> Result<ClaimName, String>,
) -> Result<Vec<Statement>, FileError> {
    let wires: Vec<Wire> = document.typed()?;
    let mut statements = Vec::new();
    for (i, wire) in wires.into_iter().enumerate() {
        let place = document.root().entry("", i);
        for (key, text) in [("section", &wire.section), ("statement", &wire.statement)] {
            if text.trim().is_empty() {
                return Err(place.error(key, "empty"));
            }
        }
        let of = (wire.claims.clone(), wire.none.clone(), wire.elsewhere.clone());
        let tested = match of {
            (Some(claims), None, None) if !claims.is_empty() => {
                let name = |(j, text): (usize, String)| {
                    find(&text).map_err(|message| {
                        let message = format!(
                            "{message}; write ITEM#CLAIM or PAPER/ITEM#CLAIM, or `none` with the reason"
                        );
                        place.error(&format!("claims[{j}]"), message)
                    })
                };
                Tested::By(claims.into_iter().enumerate().map(name).collect::<Result<_, _>>()?)
            }
            (None, Some(reason), None) if !reason.trim().is_empty() => Tested::Not(reason),
            (None, None, Some(place)) if !place.trim().is_empty() => Tested::Elsewhere(place),
            _ => {
                let message = "set exactly one of `claims` (at least one), `none` (the reason) and `elsewhere` (where)";
                return Err(place.error("", message));
            }
        };
        let is_known = |id: &&String| posenc_math::errata::all().iter().any(|e| e.id == **id);
        if let Some(id) = wire.erratum.as_ref().filter(|id| !is_known(id)) {
            return Err(place.error("erratum", format!("no erratum `{id}` in posenc_math::errata")));
        }
        let Wire { section, statement, erratum, .. } = wire;
        statements.push(Statement { section, statement, tested, erratum });
    }
    Ok(statements)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(text: &str) -> Result<Vec<Statement>, FileError> {
        let document = Document::parse(Path::new("demo.coverage.yaml"), text)?;
        from_document(&document, |text| {
            let name = ClaimName::parse(text, Some("demo")).ok_or("no name")?;
            (name.to_string() == "demo/fig1#a").then_some(name).ok_or("no claim".into())
        })
    }

    /// Catches coverage by a claim that was renamed or removed.
    #[test]
    fn claims_that_do_not_exist_are_refused() {
        for (text, key) in [
            ("- { section: \"1\", statement: S, claims: [fig1#b] }", "[0].claims[0]"),
            ("- { section: \"1\", statement: S, claims: [fig1] }", "[0].claims[0]"),
            ("- { section: \"1\", statement: S, claims: [] }", "[0]"),
            ("- { section: \"1\", statement: S }", "[0]"),
            ("- { section: \"1\", statement: S, claims: [fig1#a], none: why }", "[0]"),
            ("- { section: \"1\", statement: ' ', none: why }", "[0].statement"),
        ] {
            let error = statements(text).unwrap_err();
            assert_eq!(error.key, key, "{text}");
            assert_eq!(error.line, Some(1));
        }
    }
}
