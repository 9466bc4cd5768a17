//! The pictures of an item's record: PNG files in its folder, named by their content, and their index `pictures.json`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::picture;
use super::table::is_of_machine;
use super::unit::{StoredPicture, UnitRecord, Value, damage, optional_float_text};
use crate::output::remove;
use crate::profile::Profile;
use crate::text::{MAX_RECORD_BYTES, parsed, read_bytes, read_record, write_json};
use crate::yaml::FileError;

/// A picture of an item's record, with everything that its caption may contain.
///
/// It repeats its numbers, since the table may contain another run of the same method, on data whose pictures are not kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GalleryPicture {
    pub group: String,
    pub method: String,
    pub signal: String,
    /// Repetition, from 0.
    pub seed: u64,
    /// What it shows; see [`Picture::name`].
    pub name: String,
    pub width: usize,
    pub height: usize,
    /// 1 (gray) or 3 (red, green, blue).
    pub channels: usize,
    /// 1; earlier versions enlarged small pictures by this factor in both directions.
    pub enlarged: usize,
    /// PSNR of this picture in dB.
    #[serde(default, with = "optional_float_text", skip_serializing_if = "Option::is_none")]
    pub psnr: Option<f64>,
    /// The numbers of its unit that belong to the signal and have no abscissa, the first of each metric. Metrics that measure the
    /// machine are left out.
    pub values: Vec<Value>,
    /// Largest profile whose protocol this is.
    pub profile: Profile,
    pub device: String,
    /// Data it was measured on; `-` for none.
    pub data: String,
    /// blake3 of the file, in hexadecimal.
    pub blake3: String,
}

/// The bytes of a picture's file, or where they are.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    File(PathBuf),
    Bytes(Vec<u8>),
}

/// All pictures of an item, in the order of the experiment file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gallery {
    pub pictures: Vec<GalleryPicture>,
    pub folder: PathBuf,
}

/// The index as stored on disk.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    pictures: Vec<GalleryPicture>,
}

pub const INDEX: &str = "pictures.json";

/// Digits of the checksum in the name of a file.
const DIGITS: usize = 16;

/// Largest factor of a picture of an earlier version.
const MOST_ENLARGED: usize = 128;

const REMEDY: &str = "restore the file (git checkout) or make it anew (reproduce)";

/// Whether the repository may contain pictures of data with this label: only generated signals, or no data. Other pictures belong to
/// third parties.
pub fn is_publishable(data: &str) -> bool {
    data == "-" || data.starts_with("embedded:")
}

impl GalleryPicture {
    /// The picture of a unit for the report, and its file. `folder` contains the unit's files; `method`, `seed` and `profile` are the
    /// unit's.
    pub fn new(
        folder: &Path,
        stored: &StoredPicture,
        record: &UnitRecord,
        (group, method, seed): (&str, &str, u64),
        profile: Profile,
    ) -> (Self, Content) {
        let mut values: Vec<Value> = Vec::new();
        let mut metrics: BTreeSet<&str> = BTreeSet::new();
        for value in &record.values {
            let mine = value.x.is_none()
                && value.y.is_none()
                && value.method.as_ref().is_none_or(|m| m == method)
                && value.signal.as_ref().is_none_or(|s| *s == stored.signal)
                && !is_of_machine(&value.metric);
            if mine && metrics.insert(&value.metric) {
                let plain = Value::new(value.metric.clone(), value.value).unit(&value.unit);
                values.push(plain);
            }
        }
        let picture = GalleryPicture {
            group: group.to_owned(),
            method: method.to_owned(),
            signal: stored.signal.clone(),
            seed,
            name: stored.name.clone(),
            width: stored.width,
            height: stored.height,
            channels: stored.channels,
            enlarged: 1,
            psnr: stored.psnr,
            values,
            profile,
            device: record.device.clone(),
            data: record.data.clone(),
            blake3: stored.blake3.clone(),
        };
        (picture, Content::File(folder.join(&stored.file)))
    }

    /// Name of its file. Equal pictures share one.
    pub fn file(&self) -> String {
        format!("{}.png", &self.blake3[..DIGITS.min(self.blake3.len())])
    }

    /// Width of its file in pixels.
    pub fn shown_width(&self) -> usize {
        self.width * self.enlarged
    }

    /// What is wrong with an entry of the index.
    fn fault(&self) -> Option<String> {
        let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
        if self.blake3.len() != 64 || !is_digits(&self.blake3) {
            return Some(format!("`{}` is not a checksum", self.blake3));
        }
        match picture::check_size(self.width, self.height, self.channels) {
            Err(error) => Some(error.to_string()),
            Ok(()) if !(1..=MOST_ENLARGED).contains(&self.enlarged) => {
                Some(format!("enlarged {} times; allowed: 1 to {MOST_ENLARGED}", self.enlarged))
            }
            Ok(()) => None,
        }
    }
}

impl Gallery {
    /// Reads the index in `folder`; a missing one has no pictures.
    pub fn read(folder: &Path) -> Result<Self, FileError> {
        let (gallery, damaged) = Gallery::read_usable(folder)?;
        damaged.map_or(Ok(gallery), Err)
    }

    /// Like [`Gallery::read`], but leaves out pictures that are damaged or missing, and returns the first problem.
    pub fn read_usable(folder: &Path) -> Result<(Self, Option<FileError>), FileError> {
        let file = folder.join(INDEX);
        let Some(text) = read_record(&file)? else { return Ok(Default::default()) };
        let (mut pictures, mut problem) = (Vec::new(), None);
        for (i, picture) in Gallery::parse(&file, &text)?.into_iter().enumerate() {
            match damage(&folder.join(picture.file()), &picture.blake3) {
                None => pictures.push(picture),
                Some(why) if problem.is_none() => {
                    let error = FileError::of(&file, format!("{why}; {REMEDY}"));
                    problem = Some(error.key(format!("pictures[{i}]")));
                }
                Some(_) => {}
            }
        }
        Ok((Gallery { pictures, folder: folder.to_owned() }, problem))
    }

    /// The entries of an index; `file` is only used in messages.
    pub fn parse(file: &Path, text: &str) -> Result<Vec<GalleryPicture>, FileError> {
        let Index { pictures } = parsed(file, text, REMEDY)?;
        match pictures.iter().enumerate().find_map(|(i, p)| Some((i, p.fault()?))) {
            Some((i, fault)) => {
                let error = FileError::of(file, format!("{fault}; {REMEDY}"));
                Err(error.key(format!("pictures[{i}]")))
            }
            None => Ok(pictures),
        }
    }

    /// The bytes of a picture's file.
    pub fn bytes(&self, picture: &GalleryPicture) -> Result<Vec<u8>, FileError> {
        read_bytes(&self.folder.join(picture.file()), MAX_RECORD_BYTES)
    }

    /// Makes these the pictures of `folder`: writes what is missing, and removes files that posenc wrote and that the index no longer
    /// lists. True if anything changed.
    pub fn write(
        folder: &Path,
        pictures: Vec<(GalleryPicture, Content)>,
    ) -> Result<bool, FileError> {
        let (pictures, contents): (Vec<_>, Vec<_>) = pictures.into_iter().unzip();
        let mut changed = false;
        for (picture, content) in pictures.iter().zip(contents) {
            let file = folder.join(picture.file());
            if damage(&file, &picture.blake3).is_none() {
                continue;
            }
            let bytes = match content {
                Content::Bytes(bytes) => bytes,
                Content::File(source) => read_bytes(&source, MAX_RECORD_BYTES)?,
            };
            posenc_files::write_if_changed(&file, &bytes)
                .map_err(|e| FileError::unwritable(&file, e))?;
            changed = true;
        }
        let listed: BTreeSet<String> = pictures.iter().map(GalleryPicture::file).collect();
        if !pictures.is_empty() {
            changed |= write_json(&folder.join(INDEX), &Index { pictures })?;
        } else {
            let index = folder.join(INDEX);
            let text = read_record(&index)?;
            if text.is_some_and(|text| Gallery::parse(&index, &text).is_ok()) {
                changed |= remove(&[index], "the record has no pictures")?;
            }
        }
        let surplus = own_files(folder, |name| !listed.contains(name));
        let surplus: Vec<PathBuf> = surplus.into_iter().map(|name| folder.join(name)).collect();
        changed |= remove(&surplus, "pictures that the record no longer has")?;
        Ok(changed)
    }
}

/// Names of the pictures in a folder that `is_wanted` selects and posenc wrote: they begin the checksum of their content.
fn own_files(folder: &Path, is_wanted: impl Fn(&String) -> bool) -> Vec<String> {
    let is_own = |name: &String| {
        let digits = name.strip_suffix(".png").filter(|digits| digits.len() == DIGITS);
        digits.is_some_and(|digits| {
            let bytes = read_bytes(&folder.join(name), MAX_RECORD_BYTES);
            bytes.is_ok_and(|bytes| blake3::hash(&bytes).to_hex().starts_with(digits))
        })
    };
    let names = posenc_files::entries(folder).unwrap_or_default().into_iter();
    let names = names.filter_map(|entry| entry.name.into_string().ok()).filter(is_wanted);
    names.filter(is_own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Picture;
    use crate::text::without_checksum;

    fn picture(signal: &str, content: u8) -> (GalleryPicture, Content) {
        let shown = Picture::new("truth", signal, (130, 1, 1), vec![content; 130]);
        let bytes = shown.png().unwrap();
        let picture = GalleryPicture {
            group: "closed-form".into(),
            method: "Gau σ=0.1".into(),
            signal: signal.into(),
            seed: 0,
            name: "truth".into(),
            width: 130,
            height: 1,
            channels: 1,
            enlarged: 1,
            psnr: Some(f64::INFINITY),
            values: vec![Value::new("test_psnr", 26.5).unit("dB")],
            profile: Profile::Paper,
            device: "cpu".into(),
            data: "embedded:dead-leaves".into(),
            blake3: blake3::hash(&bytes).to_hex().to_string(),
        };
        (picture, Content::Bytes(bytes))
    }

    /// Catches an index that loses data, equal pictures stored twice, files that no index lists, a second write that changes bytes, and
    /// a picture of the user that is removed.
    #[test]
    fn galleries_read_back_and_equal_pictures_share_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("p/i");
        let all = vec![picture("a/b", 1), picture("../b", 2), picture("c\n", 1)];
        assert!(Gallery::write(&folder, all.clone()).unwrap());
        assert!(!Gallery::write(&folder, all.clone()).unwrap(), "nothing changed");
        let read = Gallery::read(&folder).unwrap();
        assert_eq!(read.pictures.len(), 3);
        for ((expected, content), read_back) in all.into_iter().zip(&read.pictures) {
            assert_eq!(*read_back, expected);
            assert_eq!(Content::Bytes(read.bytes(read_back).unwrap()), content);
        }
        assert_eq!(own_files(&folder, |_| true).len(), 2);
        let foreign = ["mine.png", "0123456789abcdef.png"].map(|name| folder.join(name));
        foreign.iter().for_each(|file| std::fs::write(file, "x").unwrap());
        assert!(Gallery::write(&folder, vec![picture("a", 3)]).unwrap());
        assert_eq!(
            own_files(&folder, |_| true),
            [picture("a", 3).0.file()],
            "the old ones are gone"
        );
        assert!(Gallery::write(&folder, Vec::new()).unwrap());
        assert_eq!(Gallery::read(&folder).unwrap(), Gallery::default());
        std::fs::write(folder.join(INDEX), "{}").unwrap();
        assert!(!Gallery::write(&folder, Vec::new()).unwrap());
        assert!(folder.join(INDEX).exists() && foreign.iter().all(|file| file.exists()));
    }

    /// Catches pictures that are shown although they are damaged, missing or outside the folder.
    #[test]
    fn damage_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path();
        let write = || Gallery::write(folder, vec![picture("a", 1), picture("b", 2)]).unwrap();
        write();
        let name = picture("b", 2).0.file();
        let file = folder.join(&name);
        let whole = std::fs::read(&file).unwrap();
        let message = || Gallery::read(folder).unwrap_err().to_string();
        std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
        assert!(message().contains("pictures[1]") && message().contains(&name), "{}", message());
        std::fs::remove_file(&file).unwrap();
        assert!(message().contains("is missing") && message().contains("git checkout"));
        let (usable, _) = Gallery::read_usable(folder).unwrap();
        assert_eq!(usable.pictures, [picture("a", 1).0]);
        assert!(write(), "writing again repairs");
        assert_eq!(std::fs::read(&file).unwrap(), whole);

        let index = folder.join(INDEX);
        let text = without_checksum(&std::fs::read_to_string(&index).unwrap());
        let sum = picture("b", 2).0.blake3;
        std::fs::write(&index, text.replace(&sum, &format!("../{}", &sum[3..]))).unwrap();
        assert!(message().contains("is not a checksum"), "{}", message());
        std::fs::write(&index, &text[..text.len() / 2]).unwrap();
        assert!(message().contains("pictures.json:") && message().contains("damaged"));
    }

    /// Catches data other than generated signals that counts as publishable.
    #[test]
    fn the_label_of_the_data_decides_what_is_publishable() {
        for (data, expected) in [
            ("embedded:dead-leaves", true),
            ("-", true),
            ("div2k-test", false),
            ("other:div2k-test", false),
            ("user:embedded", false),
            ("embedded", false),
            ("", false),
        ] {
            assert_eq!(is_publishable(data), expected, "{data}");
        }
    }
}
