//! Raw records: one JSON file per unit, named by the unit and its key. Units with different keys never overwrite each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::picture;
use super::table::PICTURE;
use crate::text::{MAX_RECORD_BYTES, read_text};
use crate::yaml::FileError;

/// Everything that a unit's result depends on. Units with equal parts have equal results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyParts {
    /// Group, method, signal and seed: which unit this is.
    pub identity: String,
    /// Protocol settings and embedder, fully resolved.
    pub specification: String,
    /// sha256 of the data; `-` for none.
    pub data: String,
    /// `cpu`, or the class of accelerator.
    pub device: String,
    pub seed: u64,
    /// Revisions of the components whose changes affect results; they are raised manually.
    #[serde(rename = "epochs")]
    pub revisions: String,
}

impl KeyParts {
    /// blake3 of all parts, in hexadecimal.
    pub fn key(&self) -> String {
        let KeyParts { identity, specification, data, device, seed, revisions } = self;
        digest(&[identity, specification, data, device, &seed.to_string(), revisions])
    }

    /// Names of the parts that differ in messages, without the identity.
    pub fn differences(&self, other: &KeyParts) -> Vec<&'static str> {
        [
            (self.specification != other.specification, "specification"),
            (self.data != other.data, "data"),
            (self.device != other.device, "device"),
            (self.seed != other.seed, "seed"),
            (self.revisions != other.revisions, "revision"),
        ]
        .into_iter()
        .filter_map(|(differs, name)| differs.then_some(name))
        .collect()
    }
}

/// blake3 of texts, in hexadecimal.
fn digest(texts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        // Lengths distinguish ("a", "bc") from ("ab", "c").
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// One number of a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    pub metric: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<f64>,
    /// The number, stored as text, since JSON has neither NaN nor infinity.
    #[serde(with = "float_text")]
    pub value: f64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Replaces the unit's signal if one unit measures several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Replaces the variant's id if one unit measures several methods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Replaces the repetition if one unit measures several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl Value {
    /// A number without abscissa and unit.
    pub fn new(metric: impl Into<String>, value: f64) -> Self {
        Value {
            metric: metric.into(),
            x: None,
            y: None,
            value,
            unit: String::new(),
            signal: None,
            method: None,
            seed: None,
        }
    }

    pub fn at(mut self, x: f64) -> Self {
        self.x = Some(x);
        self
    }

    pub fn and(mut self, y: f64) -> Self {
        self.y = Some(y);
        self
    }

    pub fn unit(mut self, unit: &str) -> Self {
        self.unit = unit.to_owned();
        self
    }

    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.method = Some(method.into());
        self
    }

    pub fn signal(mut self, signal: impl Into<String>) -> Self {
        self.signal = Some(signal.into());
        self
    }

    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }
}

/// A picture of a unit, as its record lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredPicture {
    /// What it shows; see [`super::Picture::name`].
    pub name: String,
    pub signal: String,
    pub width: usize,
    pub height: usize,
    /// 1 (gray) or 3 (red, green, blue).
    pub channels: usize,
    /// PSNR of the picture in dB, if it has one.
    #[serde(default, with = "optional_float_text", skip_serializing_if = "Option::is_none")]
    pub psnr: Option<f64>,
    /// Name of its file, in the folder of the record.
    pub file: String,
    /// blake3 of the file, in hexadecimal.
    pub blake3: String,
}

impl StoredPicture {
    /// Why the picture in `folder` cannot be used; `None` if it is intact.
    pub fn damage(&self, folder: &Path) -> Option<String> {
        picture::damage(&folder.join(&self.file), &self.blake3)
    }
}

/// Whether a record may name this picture. Only files that we write next to the record are allowed. Other names could be outside the
/// folder, and such files would be read, copied into a report or, as files of an earlier run, removed.
fn is_own_picture(name: &str) -> bool {
    safe(name) == name && name.ends_with(".png") && !name.starts_with('.') && name.len() <= 255
}

/// Like [`float_text`], for an optional number.
mod optional_float_text {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::float_text;

    pub fn serialize<S: Serializer>(value: &Option<f64>, s: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => float_text::serialize(value, s),
            None => s.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
        Option::<String>::deserialize(d)?.map(float_text::number).transpose()
    }
}

mod float_text {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &f64, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&format!("{value:?}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
        number(String::deserialize(d)?)
    }

    pub fn number<E: serde::de::Error>(text: String) -> Result<f64, E> {
        text.parse().map_err(|_| E::custom(format!("`{text}` is not a number")))
    }
}

/// The result of one unit, as stored on disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitRecord {
    /// What the result depends on.
    pub parts: KeyParts,
    pub device: String,
    /// Label of the data; `-` for none.
    pub data: String,
    /// Wall time in seconds.
    pub seconds: f64,
    /// Peak memory of the process since the unit's job started, in bytes, including concurrent jobs. Absent if the system does not
    /// report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    /// Remarks of the loader or protocol that the report repeats.
    #[serde(default)]
    pub remarks: Vec<String>,
    pub values: Vec<Value>,
    /// The pictures, stored in files next to the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<StoredPicture>,
    /// Versions of compiler and packages.
    pub versions: BTreeMap<String, String>,
    /// Git commit of the run, with `-dirty` if the tree had changes; empty outside a repository and in older records.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub commit: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    /// BLAKE3 of `body`, which reveals an edited or incomplete record.
    checksum: String,
    body: serde_json::Value,
}

impl UnitRecord {
    /// File name of a unit: readable, with the start of its key.
    pub fn file_name(parts: &KeyParts) -> String {
        format!("{}.json", UnitRecord::file_stem(parts))
    }

    /// File name of a unit's picture number `index`, next to its record. The number distinguishes pictures of different signals, since
    /// the file name does not contain the signal.
    pub fn picture_file_name(parts: &KeyParts, index: usize, name: &str) -> String {
        format!("{}-{index:03}-{}.png", UnitRecord::file_stem(parts), safe(name))
    }

    fn file_stem(parts: &KeyParts) -> String {
        let slug = safe(&parts.identity);
        // Names stay below the 255 bytes that file systems allow.
        let slug = &slug[..slug.len().min(150)];
        format!("{slug}-{}", &parts.key()[..16])
    }

    /// Reads a record and verifies its checksum.
    pub fn read(file: &Path) -> Result<Self, FileError> {
        UnitRecord::parse(file, &read_text(file, MAX_RECORD_BYTES)?)
    }

    /// Like [`UnitRecord::read`], but parses `text`; `file` is only used in messages.
    pub fn parse(file: &Path, text: &str) -> Result<Self, FileError> {
        let Envelope { checksum, mut body } =
            serde_json::from_str(text).map_err(|e| damaged(file, &e).at(e.line()))?;
        if self::checksum(&body) != checksum {
            return Err(FileError::of(file, "damaged (its checksum does not match its content)"));
        }
        if let Some(body) = body.as_object_mut() {
            // Earlier versions stored captions of screens.
            body.remove("captions");
        }
        let record: UnitRecord = serde_json::from_value(body).map_err(|e| damaged(file, &e))?;
        match record.fault() {
            Some((key, message)) => {
                Err(FileError::of(file, format!("damaged ({message})")).key(key))
            }
            None => Ok(record),
        }
    }

    /// The key of an invalid entry, and what is wrong with it.
    fn fault(&self) -> Option<(String, String)> {
        let name = |name: &str| format!("`{name}` is not a file name written by posenc");
        let mut files = BTreeSet::new();
        for (i, p) in self.pictures.iter().enumerate() {
            if !files.insert(&p.file) {
                let message = format!("`{}` appears twice", p.file);
                return Some((format!("pictures[{i}].file"), message));
            }
            if !is_own_picture(&p.file) {
                return Some((format!("pictures[{i}].file"), name(&p.file)));
            }
            if let Err(message) = picture::check_size(p.width, p.height, p.channels) {
                return Some((format!("pictures[{i}]"), message.to_string()));
            }
            if p.blake3.len() != 64 || !p.blake3.bytes().all(|b| b.is_ascii_hexdigit()) {
                let message = format!("`{}` is not a checksum", p.blake3);
                return Some((format!("pictures[{i}].blake3"), message));
            }
        }
        let is_reserved = |value: &Value| value.metric.starts_with(PICTURE);
        self.values.iter().position(is_reserved).map(|i| {
            let message = format!("metrics do not begin with `{PICTURE}`");
            (format!("values[{i}].metric"), message)
        })
    }

    /// The bytes of its file.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        let body = serde_json::to_value(self).map_err(|e| e.to_string())?;
        let envelope = Envelope { checksum: checksum(&body), body };
        let bytes = serde_json::to_vec(&envelope).map_err(|e| e.to_string())?;
        if bytes.len() as u64 > MAX_RECORD_BYTES {
            return Err(format!(
                "the unit's numbers take {} bytes; allowed: {MAX_RECORD_BYTES}. Record fewer points",
                bytes.len()
            ));
        }
        Ok(bytes)
    }

    pub fn write(&self, file: &Path) -> Result<(), FileError> {
        let bytes = self.bytes().map_err(|message| FileError::of(file, message))?;
        posenc_files::write_atomically(file, &bytes).map_err(|e| FileError::unwritable(file, e))
    }
}

fn damaged(file: &Path, error: &serde_json::Error) -> FileError {
    FileError::of(file, format!("damaged ({error})"))
}

/// Replaces characters that some file systems do not allow with `_`.
fn safe(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-.=_".contains(c);
    text.chars().map(|c| if allowed(c) { c } else { '_' }).collect()
}

/// serde_json sorts the keys of a `Value`, so the text is canonical.
fn checksum(body: &serde_json::Value) -> String {
    blake3::hash(body.to_string().as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> UnitRecord {
        UnitRecord {
            parts: KeyParts {
                identity: "g.m.-.seed=0".into(),
                specification: "s".into(),
                ..KeyParts::default()
            },
            device: "cpu".into(),
            data: "-".into(),
            seconds: 1.5,
            peak_memory: Some(1 << 30),
            remarks: Vec::new(),
            values: vec![Value::new("test_psnr", f64::INFINITY).at(0.1).signal("row 1").seed(3)],
            pictures: vec![StoredPicture {
                name: "reconstruction".into(),
                signal: "row 1".into(),
                width: 2,
                height: 3,
                channels: 1,
                psnr: Some(f64::INFINITY),
                file: "a.png".into(),
                blake3: "0a".repeat(32),
            }],
            versions: BTreeMap::new(),
            commit: "0123-dirty".into(),
        }
    }

    /// Catches a record that does not read back equal, and older records that no longer read because they lack later fields: their
    /// units must not run again.
    #[test]
    fn old_and_new_records_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.json");
        record().write(&file).unwrap();
        assert_eq!(UnitRecord::read(&file).unwrap(), record());

        let mut body = serde_json::to_value(record()).unwrap();
        for key in ["peak_memory", "pictures", "commit"] {
            body.as_object_mut().unwrap().remove(key);
        }
        body["values"][0].as_object_mut().unwrap().remove("seed");
        body["captions"] = "of an earlier version".into();
        let envelope = Envelope { checksum: checksum(&body), body };
        std::fs::write(&file, serde_json::to_string(&envelope).unwrap()).unwrap();
        let old = UnitRecord::read(&file).unwrap();
        assert_eq!((old.peak_memory, old.values[0].seed), (None, None));
        assert_eq!((old.pictures, old.commit), (Vec::new(), String::new()));
        assert_eq!(old.values[0].value, f64::INFINITY);
    }

    /// Catches a record whose pictures are outside its folder: such files would be copied into a report, or removed when
    /// the unit runs again.
    #[test]
    fn records_cannot_name_files_outside_their_folder() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.json");
        for name in [
            "../a.png",
            "/etc/a.png",
            "a/b.png",
            "..\\a.png",
            "C:\\a.png",
            "C:a.png",
            "a\0.png",
            "..",
            "",
            "a.json",
            ".a.png",
        ] {
            let mut hostile = record();
            hostile.pictures[0].file = name.into();
            hostile.write(&file).unwrap();
            let message = UnitRecord::read(&file).unwrap_err().to_string();
            assert!(
                message.contains("a.json") && message.contains("pictures[0].file"),
                "{message}"
            );
        }
        let mut hostile = record();
        hostile.pictures[0].width = usize::MAX;
        hostile.write(&file).unwrap();
        let message = UnitRecord::read(&file).unwrap_err().to_string();
        assert!(message.contains("pictures[0]") && message.contains("allowed"), "{message}");
        let mut twice = record();
        twice.pictures.push(twice.pictures[0].clone());
        twice.write(&file).unwrap();
        let message = UnitRecord::read(&file).unwrap_err().to_string();
        assert!(message.contains("pictures[1].file") && message.contains("twice"), "{message}");
        for (blake3, metric, part) in [
            ("", "test_psnr", "pictures[0].blake3"),
            ("0a", "test_psnr", "not a checksum"),
            (&"0a".repeat(32), "picture:truth", "values[0].metric"),
        ] {
            let mut hostile = record();
            hostile.pictures[0].blake3 = blake3.into();
            hostile.values[0].metric = metric.into();
            hostile.write(&file).unwrap();
            let message = UnitRecord::read(&file).unwrap_err().to_string();
            assert!(message.contains(part), "{part}: {message}");
        }
    }
}
