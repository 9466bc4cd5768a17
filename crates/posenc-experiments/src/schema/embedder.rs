//! The mapping under `embedder:`.

use std::collections::BTreeMap;

use posenc_math::embedder::{EmbedderSpec, ParameterValue, find, registry, validate};
use serde_yaml::{Mapping, Value};

use crate::yaml::{FileError, YamlPath};

/// Reads an embedder: `kind` and its parameters in one mapping.
pub(super) fn read(place: &YamlPath<'_>, mapping: Mapping) -> Result<EmbedderSpec, FileError> {
    let mut kind = None;
    let mut parameters = BTreeMap::new();
    for (key, value) in mapping {
        let Value::String(key) = key else {
            return Err(place.error("", "keys of an embedder must be strings"));
        };
        match value {
            Value::String(text) if key == "kind" => kind = Some(text),
            Value::String(text) => {
                parameters.insert(key, ParameterValue::Text(text));
            }
            Value::Number(number) if key != "kind" => {
                let number = number.as_f64().unwrap_or(f64::NAN);
                parameters.insert(key, ParameterValue::Number(number));
            }
            _ if key == "kind" => return Err(place.error(&key, "allowed: a string")),
            _ => return Err(place.error(&key, "allowed: a number or a string")),
        }
    }
    let Some(kind) = kind else {
        let kinds: Vec<_> = registry().iter().map(|k| k.name).collect();
        let message = format!("`kind` is missing; allowed: {}", kinds.join(", "));
        return Err(place.error("", message));
    };
    let spec = EmbedderSpec { parameters, ..EmbedderSpec::new(kind) };
    let key = if find(&spec.kind).is_none() { "kind" } else { "" };
    validate(&spec).map_err(|e| place.error(e.parameter().unwrap_or(key), e.to_string()))?;
    Ok(spec)
}
