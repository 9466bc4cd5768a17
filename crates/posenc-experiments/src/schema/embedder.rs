//! The mapping under `embedder:`, and the tables of features that it names.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use posenc_math::embedder::{
    EmbedderSpec, FeatureTable, ParameterValue, find, line, registry, validate,
};
use serde_yaml::{Mapping, Value};

use super::limits::SizeBudget;
use super::protocol::{Fault, ReadNumbers};
use crate::yaml::{FileError, YamlPath};

/// Reads an embedder: `kind` and its parameters in one mapping.
pub(super) fn read(
    place: &YamlPath<'_>,
    mapping: Mapping,
    asked: &mut SizeBudget,
) -> Result<EmbedderSpec, FileError> {
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
    let mut spec = EmbedderSpec { parameters, ..EmbedderSpec::new(kind) };
    let key = if find(&spec.kind).is_none() { "kind" } else { "" };
    validate(&spec).map_err(|e| place.error(e.parameter().unwrap_or(key), e.to_string()))?;
    let has_table = find(&spec.kind).is_some_and(|kind| kind.example_table.is_some());
    if let Some(read_numbers) = asked.kinds.read_numbers.filter(|_| has_table) {
        let folder = place.file().parent().unwrap_or(Path::new(""));
        let table = asked.table(spec.canonical(), || table(folder, &spec, read_numbers));
        spec.table = Some(table.map_err(|(key, message)| place.error(key, message))?);
    }
    Ok(spec)
}

/// Reads the table of a specification from files in `folder`.
fn table(folder: &Path, spec: &EmbedderSpec, read: ReadNumbers) -> Result<FeatureTable, Fault> {
    let text = |name: &str| match spec.parameters.get(name) {
        Some(ParameterValue::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    let file = text("file").unwrap_or_default();
    let (shape, features) = inside(folder, file)
        .and_then(|path| read(&path, text("array")))
        .map_err(|message| ("file", message))?;
    let (n, plane) = match shape[..] {
        [n, _] => (n, None),
        [height, width, _] => (height.saturating_mul(width), Some([height, width])),
        _ => {
            let message = format!(
                "{file} has shape {shape:?}; allowed: N rows of d features, or H × W × d features of the pixels of an image"
            );
            return Err(("file", message));
        }
    };
    if plane.is_some() && text("coordinates").is_some() {
        let message =
            format!("not allowed: {file} has shape {shape:?}, so its rows are the pixels");
        return Err(("coordinates", message));
    }
    let name = text("coordinates_array");
    let coordinates = match text("coordinates") {
        None if name.is_some() => {
            return Err((
                "coordinates_array",
                "only allowed with a file of `coordinates`".to_owned(),
            ));
        }
        None => line(n),
        Some(file) => {
            let (shape, coordinates) = inside(folder, file)
                .and_then(|path| read(&path, name))
                .map_err(|message| ("coordinates", message))?;
            if shape.iter().product::<usize>() != n {
                let message = format!(
                    "{file} has shape {shape:?}; allowed: one coordinate for each of the {n} rows of features"
                );
                return Err(("coordinates", message));
            }
            coordinates
        }
    };
    let mut digest = blake3::Hasher::new();
    for number in coordinates.iter().chain(&features) {
        digest.update(&number.to_le_bytes());
    }
    for side in plane.iter().flatten() {
        digest.update(&(*side as u64).to_le_bytes());
    }
    let digest = digest.finalize().to_hex();
    let table = FeatureTable::new(coordinates, features, &digest[..32]).map_err(|message| {
        let is_of_coordinates = message.contains("coordinate") && text("coordinates").is_some();
        (if is_of_coordinates { "coordinates" } else { "file" }, message)
    })?;
    Ok(match plane {
        Some(sides) => table.on_plane(sides),
        None => table,
    })
}

/// The path of a file in the folder of the experiment. A definition from an untrusted source must not read other files of the user.
fn inside(folder: &Path, file: &str) -> Result<PathBuf, String> {
    let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let path = folder.join(file);
    // A path that does not exist is an error of the reader.
    let is_below =
        |path: PathBuf| folder.join(".").canonicalize().is_ok_and(|own| path.starts_with(own));
    if Path::new(file).components().all(is_inside) && path.canonicalize().map_or(true, is_below) {
        Ok(path)
    } else {
        Err(format!(
            "{file} is outside the folder of the experiment file; allowed: a path below {} without `..` or links that lead \
             out of it",
            folder.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::{Kinds, testing::KINDS};
    use super::*;
    use crate::yaml::Document;

    /// Replaces the loader, which is in another crate: `n.npy` has `n` rows of two features.
    fn read_numbers(path: &Path, name: Option<&str>) -> Result<(Vec<usize>, Vec<f64>), String> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let n: usize = stem.parse().map_err(|_| format!("{} is missing", path.display()))?;
        match name {
            Some("x") => Ok((vec![n], line(n))),
            Some("flat") => Ok((vec![2 * n], vec![1.0; 2 * n])),
            _ => Ok((vec![n, 2], (0..2 * n).map(|i| i as f64).collect())),
        }
    }

    fn spec(keys: &str) -> Result<EmbedderSpec, String> {
        let file = Path::new("experiments/mine/a.yaml");
        let document =
            Document::parse(file, &format!("embedder: {{ kind: matrix, {keys} }}\n")).unwrap();
        let mapping = document.value["embedder"].as_mapping().unwrap().clone();
        let kinds = Kinds { read_numbers: Some(read_numbers), ..KINDS };
        read(&document.root().key("embedder"), mapping, &mut SizeBudget::new(kinds))
            .map_err(|e| e.to_string())
    }

    /// Catches a table that is not read, and cache keys that miss a change of its numbers.
    #[test]
    fn the_key_of_a_matrix_depends_on_its_numbers() {
        let first = spec("file: 4.npy").unwrap();
        assert_eq!(first.table.as_ref().unwrap().dimension(), 2);
        let same = spec("file: sub/4.npy, coordinates: 4.npy, coordinates_array: x").unwrap();
        assert_eq!(first.canonical(), same.canonical());
        assert_ne!(first.canonical(), spec("file: 5.npy").unwrap().canonical());
    }

    /// Catches files outside the folder, shapes that do not fit, and errors without a key.
    #[test]
    fn errors_of_unusable_tables_name_the_key() {
        for (keys, key, part) in [
            ("file: ../4.npy", "file", "without `..`"),
            ("file: /etc/4.npy", "file", "without `..`"),
            ("file: none.npy", "file", "missing"),
            ("file: 4.npy, array: flat", "file", "has shape [8]"),
            ("file: 4.npy, coordinates: 5.npy, coordinates_array: x", "coordinates", "4 rows"),
            ("file: 4.npy, coordinates: 4.npy, coordinates_array: flat", "coordinates", "4 rows"),
            ("file: 2.npy, coordinates: 1.npy", "coordinates", "coordinate 1 is 1"),
            ("file: 4.npy, coordinates_array: x", "coordinates_array", "only allowed with"),
            ("array: x", "file", "needs the parameter 'file'"),
            ("file: 9000000.npy", "file", "allowed: up to 16777216"),
        ] {
            let error = spec(keys).unwrap_err();
            assert!(error.contains(&format!("embedder.{key}")), "{keys}: {error}");
            assert!(error.contains(part), "{keys}: {error}");
        }
    }

    /// Catches a table that a link takes from another folder of the user.
    #[cfg(unix)]
    #[test]
    fn links_out_of_the_folder_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        std::fs::create_dir(&own).unwrap();
        for path in ["secret.npy", "own/a.npy"] {
            std::fs::write(folder.path().join(path), "").unwrap();
        }
        for (link, target) in [("b.npy", "a.npy"), ("c.npy", "../secret.npy"), ("up", "..")] {
            std::os::unix::fs::symlink(target, own.join(link)).unwrap();
        }
        for inner in ["a.npy", "b.npy", "missing.npy"] {
            assert_eq!(inside(&own, inner), Ok(own.join(inner)));
        }
        for outer in ["c.npy", "up/secret.npy"] {
            assert!(inside(&own, outer).unwrap_err().contains("links that lead out"), "{outer}");
        }
        assert!(inside(Path::new(""), "Cargo.toml").is_ok());
    }
}
