//! Keys: names of papers, items and parts of experiments.

use std::collections::HashSet;

use crate::yaml::{FileError, YamlPath};

/// Whether a text can be a paper, an item or an id: 1 to 60 of a-z, 0-9 and -. Keys become parts of file names and selectors.
pub fn is_key(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.len() <= 60 && text.chars().all(allowed)
}

/// Rejects a text that is not a key; the error is at `key` below `place`.
pub(super) fn check_key(place: &YamlPath<'_>, key: &str, text: &str) -> Result<(), FileError> {
    match is_key(text) {
        true => Ok(()),
        false => {
            let message = format!("`{text}` is not allowed; allowed: 1 to 60 of a-z, 0-9 and -");
            Err(place.error(key, message))
        }
    }
}

/// Rejects duplicate ids in the list at `place`.
pub(super) fn check_unique<T>(
    place: &YamlPath<'_>,
    list: &[T],
    id: fn(&T) -> &String,
) -> Result<(), FileError> {
    let mut seen = HashSet::new();
    for (i, id) in list.iter().map(id).enumerate() {
        if !seen.insert(id) {
            let list = place.path();
            let message = format!("`{id}` appears twice; ids under `{list}` must be unique");
            return Err(place.entry("", i).error("id", message));
        }
    }
    Ok(())
}

/// Rejects duplicate ids in the list at `place`, and ids that are not keys.
pub(super) fn check_keys<T>(
    place: &YamlPath<'_>,
    list: &[T],
    id: fn(&T) -> &String,
) -> Result<(), FileError> {
    check_unique(place, list, id)?;
    list.iter().enumerate().try_for_each(|(i, item)| check_key(&place.entry("", i), "id", id(item)))
}
