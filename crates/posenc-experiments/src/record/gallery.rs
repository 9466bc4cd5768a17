//! The pictures of an item's record: PNG files in `report/record/<paper>/<item>/` and their index,
//! `pictures.json`, next to `<item>.csv`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::picture::{self, Picture};
use super::table::is_of_machine;
use super::unit::{
    StoredPicture, UnitRecord, Value, damage, digest, is_own_file, optional_float_text, safe,
};
use crate::output::remove;
use crate::profile::Profile;
use crate::text::{MAX_RECORD_BYTES, file_name, parsed, read_bytes, read_record, write_json};
use crate::yaml::FileError;

/// A picture of an item's record, with everything that its caption may contain.
///
/// It repeats its numbers, since the table may contain another run of the same method, on data whose pictures are not kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GalleryPicture {
    /// Group key.
    pub group: String,
    /// Method (the variant's id).
    pub method: String,
    /// Signal.
    pub signal: String,
    /// Repetition, from 0.
    pub seed: u64,
    /// What it shows; see [`Picture::name`].
    pub name: String,
    /// Columns of measured pixels.
    pub width: usize,
    /// Rows of measured pixels.
    pub height: usize,
    /// 1 (gray) or 3 (red, green, blue).
    pub channels: usize,
    /// Factor by which the file enlarges the picture in both directions.
    pub enlarged: usize,
    /// PSNR of this picture in dB.
    #[serde(default, with = "optional_float_text", skip_serializing_if = "Option::is_none")]
    pub psnr: Option<f64>,
    /// The numbers of its unit that belong to the signal and have no abscissa, the first of each metric. Metrics that measure the
    /// machine are left out.
    pub values: Vec<Value>,
    /// Largest profile whose protocol this is.
    pub profile: Profile,
    /// Device that measured it.
    pub device: String,
    /// Data it was measured on; `-` for none.
    pub data: String,
    /// Name of its file; equal pictures share one.
    pub file: String,
    /// blake3 of the file, in hexadecimal.
    pub blake3: String,
}

/// The bytes of a picture's file, or where they are.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A file to copy.
    File(PathBuf),
    /// The bytes.
    Bytes(Vec<u8>),
}

/// All pictures of an item, in the order of the experiment file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gallery {
    /// The pictures.
    pub pictures: Vec<GalleryPicture>,
    /// Folder of their files.
    pub folder: PathBuf,
    /// PNG files there that the index does not list.
    pub surplus: Vec<PathBuf>,
}

/// The index as stored on disk.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    paper: String,
    item: String,
    pictures: Vec<GalleryPicture>,
}

/// Name of the index.
pub const INDEX: &str = "pictures.json";

/// Whether the repository may contain pictures of data with this label: only generated signals, or no data. Other pictures belong to
/// third parties.
pub fn is_publishable(data: &str) -> bool {
    data == "-" || data.starts_with("embedded:")
}

impl GalleryPicture {
    /// The picture of a unit for the report, with its content. Small pictures are enlarged.
    ///
    /// `folder` contains the unit's files; `method`, `seed` and `profile` are the unit's. [`Gallery::write`] names the file.
    ///
    /// # Errors
    ///
    /// A message if the file cannot be read or its size is not the recorded one.
    pub fn of(
        folder: &Path,
        stored: &StoredPicture,
        record: &UnitRecord,
        (group, method, seed): (&str, &str, u64),
        profile: Profile,
    ) -> Result<(Self, Content), String> {
        let source = folder.join(&stored.file);
        let enlarged = Picture::enlargement(stored.width, stored.height);
        let (blake3, content) = if enlarged == 1 {
            (stored.blake3.clone(), Content::File(source))
        } else {
            let problem = |e: String| format!("{}: {e}", source.display());
            let bytes = read_bytes(&source, MAX_RECORD_BYTES).map_err(|e| e.to_string())?;
            let picture = Picture::from_png(&stored.name, &stored.signal, &bytes)
                .map_err(|e| problem(e.to_string()))?;
            // The factor was computed from the size in the record.
            if (picture.width, picture.height) != (stored.width, stored.height) {
                return Err(problem(format!(
                    "{} × {} pixels; its record has {} × {}",
                    picture.width, picture.height, stored.width, stored.height
                )));
            }
            let bytes = picture.enlarged(enlarged).png().map_err(|e| problem(e.to_string()))?;
            (blake3::hash(&bytes).to_hex().to_string(), Content::Bytes(bytes))
        };
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
            enlarged,
            psnr: stored.psnr,
            values,
            profile,
            device: record.device.clone(),
            data: record.data.clone(),
            file: String::new(),
            blake3,
        };
        Ok((picture, content))
    }

    /// Width of its file in pixels.
    pub fn shown_width(&self) -> usize {
        self.width * self.enlarged
    }

    /// A readable file name without extension, with safe characters only.
    fn stem(&self) -> String {
        let names = [&self.group, &self.method, &self.signal, &self.name];
        let mut parts = Vec::from(names.map(|part| shortened(part)));
        if self.seed > 0 {
            parts.push(format!("seed-{}", self.seed));
        }
        parts.join("--")
    }

    /// A short hash of all names of the picture.
    fn digits(&self) -> String {
        let seed = self.seed.to_string();
        digest(&[&self.group, &self.method, &self.signal, &self.name, &seed])[..10].to_owned()
    }
}

/// A name as part of a file name: at most 45 safe characters.
fn shortened(text: &str) -> String {
    let mut out = String::new();
    for c in safe(text).chars() {
        // A run of unsafe characters becomes a single `_`.
        if !(c == '_' && out.ends_with('_')) {
            out.push(c);
        }
    }
    out.truncate(45);
    if out.is_empty() { "_".into() } else { out }
}

/// Assigns a file name to each picture. Equal contents share a file; different ones never do.
fn assign(pictures: &mut [GalleryPicture]) {
    let mut by_content: BTreeMap<String, String> = BTreeMap::new();
    // Some file systems ignore case.
    let mut taken: BTreeSet<String> = BTreeSet::new();
    // The next hash to try for pictures with the same names, so that used ones are not tried again.
    let mut next: BTreeMap<String, String> = BTreeMap::new();
    for picture in pictures {
        if let Some(file) = by_content.get(&picture.blake3) {
            picture.file.clone_from(file);
            continue;
        }
        let stem = picture.stem();
        let mut file = format!("{stem}.png");
        if !taken.insert(file.to_lowercase()) {
            let first = picture.digits();
            let mut digits = next.get(&first).unwrap_or(&first).clone();
            while !taken.insert(file.to_lowercase()) {
                file = format!("{stem}--{digits}.png");
                digits = blake3::hash(digits.as_bytes()).to_hex()[..10].to_owned();
            }
            next.insert(first, digits);
        }
        by_content.insert(picture.blake3.clone(), file.clone());
        picture.file = file;
    }
}

impl Gallery {
    /// Folder of an item's pictures, below a directory of records.
    pub fn folder_of(directory: &Path, paper: &str, item: &str) -> PathBuf {
        directory.join(paper).join(item)
    }

    /// Reads the index of an item below a directory of records and checks every file it lists; an
    /// item without an index has no pictures.
    ///
    /// # Errors
    ///
    /// A damaged index; a listed file that is missing or damaged, by name.
    pub fn read(directory: &Path, paper: &str, item: &str) -> Result<Self, FileError> {
        let gallery = Gallery::read_index(directory, paper, item)?;
        for (i, why) in gallery.damages().into_iter().enumerate() {
            if let Some(why) = why {
                let message =
                    format!("{why}; restore the file (git checkout) or make it anew (reproduce)");
                let error = FileError::of(gallery.folder.join(INDEX), message);
                return Err(error.key(format!("pictures[{i}]")));
            }
        }
        Ok(gallery)
    }

    /// Like [`Gallery::read`], but leaves out pictures whose files cannot be used, since the next write replaces them. Only a damaged
    /// index is an error.
    pub fn read_usable(directory: &Path, paper: &str, item: &str) -> Result<Self, FileError> {
        let mut gallery = Gallery::read_index(directory, paper, item)?;
        let mut damages = gallery.damages().into_iter();
        gallery.pictures.retain(|_| damages.next().is_some_and(|why| why.is_none()));
        Ok(gallery)
    }

    /// Parses the text of an index, without checking the pictures' files; `file` is only used in messages.
    ///
    /// # Errors
    ///
    /// A damaged index, one of another item, or a picture whose size is not allowed.
    pub fn parse(
        file: &Path,
        text: &str,
        paper: &str,
        item: &str,
    ) -> Result<Vec<GalleryPicture>, FileError> {
        let remedy = "restore the file (git checkout) or delete its folder";
        let index: Index = parsed(file, text, remedy)?;
        if (index.paper.as_str(), index.item.as_str()) != (paper, item) {
            let found = format!("{}/{}", index.paper, index.item);
            let message = format!("`{found}` in the record of {paper}/{item}");
            return Err(FileError::of(file, message));
        }
        for (i, p) in index.pictures.iter().enumerate() {
            let expected = Picture::enlargement(p.width, p.height);
            let size = picture::check_size(p.width, p.height, p.channels);
            let message = match size {
                Err(error) => error.to_string(),
                Ok(()) if p.enlarged == 0 || p.enlarged > expected => {
                    format!("enlarged {} times; allowed: 1 to {expected}", p.enlarged)
                }
                Ok(()) => continue,
            };
            let error = FileError::of(file, format!("{message}; {remedy}"));
            return Err(error.key(format!("pictures[{i}]")));
        }
        Ok(index.pictures)
    }

    fn read_index(directory: &Path, paper: &str, item: &str) -> Result<Self, FileError> {
        let folder = Gallery::folder_of(directory, paper, item);
        let file = folder.join(INDEX);
        let mut gallery = Gallery::default();
        if let Some(text) = read_record(&file)? {
            gallery.pictures = Gallery::parse(&file, &text, paper, item)?;
        }
        let listed: BTreeSet<&str> = gallery.pictures.iter().map(|p| p.file.as_str()).collect();
        let surplus: Vec<PathBuf> = png_files(&folder)
            .into_iter()
            .filter(|f| !listed.contains(file_name(f).as_str()))
            .collect();
        if !gallery.pictures.is_empty() || !surplus.is_empty() {
            gallery.folder = folder;
        }
        gallery.surplus = surplus;
        Ok(gallery)
    }

    /// For each picture, why its file cannot be used. A file that several pictures share is read once.
    fn damages(&self) -> Vec<Option<String>> {
        let mut known: BTreeMap<(&str, &str), Option<String>> = BTreeMap::new();
        let mut all = Vec::with_capacity(self.pictures.len());
        for GalleryPicture { file, blake3, .. } in &self.pictures {
            let of_file = || match is_own_file(file, ".png") {
                true => damage(&self.folder.join(file), blake3),
                false => Some(format!("`{file}` is not a file name written by posenc")),
            };
            all.push(known.entry((file, blake3)).or_insert_with(of_file).clone());
        }
        all
    }

    /// The bytes of a picture's file.
    pub fn bytes(&self, picture: &GalleryPicture) -> Result<Vec<u8>, FileError> {
        let file = self.folder.join(&picture.file);
        read_bytes(&file, MAX_RECORD_BYTES)
    }

    /// Names and writes the files and then the index of an item, and removes undamaged files of the earlier index that it no
    /// longer lists. Contents must not name files of this folder. True if anything changed.
    ///
    /// # Errors
    ///
    /// A content that cannot be read, a file that cannot be written or removed.
    pub fn write(
        directory: &Path,
        paper: &str,
        item: &str,
        pictures: Vec<(GalleryPicture, Content)>,
    ) -> Result<bool, FileError> {
        let folder = Gallery::folder_of(directory, paper, item);
        let old = Gallery::read_usable(directory, paper, item);
        let (is_ours, old) = (old.is_ok(), old.unwrap_or_default());
        let (mut pictures, contents): (Vec<_>, Vec<_>) = pictures.into_iter().unzip();
        assign(&mut pictures);
        let mut changed = false;
        let mut written: BTreeSet<&str> = BTreeSet::new();
        for (picture, content) in pictures.iter().zip(contents) {
            let file = folder.join(&picture.file);
            if !written.insert(&picture.file) || damage(&file, &picture.blake3).is_none() {
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
        let index = folder.join(INDEX);
        if !pictures.is_empty() {
            let (paper, item) = (paper.to_owned(), item.to_owned());
            changed |= write_json(&index, &Index { paper, item, pictures: pictures.clone() })?;
        }
        for old in old.pictures {
            if !written.contains(old.file.as_str()) {
                changed |=
                    remove(&folder.join(&old.file), "the record no longer has this picture")?;
            }
        }
        if pictures.is_empty() {
            changed |= is_ours && remove(&index, "the record has no pictures")?;
            posenc_files::remove_empty_folder(&folder);
        }
        Ok(changed)
    }
}

/// PNG files of a folder, sorted; none if there is no folder.
fn png_files(folder: &Path) -> Vec<PathBuf> {
    let entries = posenc_files::entries(folder).unwrap_or_default().into_iter();
    let files = entries.map(|entry| folder.join(entry.name));
    files.filter(|path| path.extension().is_some_and(|e| e == "png")).collect()
}

#[cfg(test)]
mod tests;
