//! The record of an item: the folder `<paper>/<item>/` of a directory of records, such as `report/record` or `out/record`, with its
//! two tables, their provenance, and the pictures that the tables name. PNG files are named by their content.
//!
//! The tables and the provenance are first written next to their places, so that a full disk leaves the old ones. If the process is
//! killed between the renames, the tables do not match the checksum in the provenance, which every reader reports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use posenc_files::{Prepared, is_same, is_there, prepare};
use serde_json::Value;

use super::picture::{damage, is_file_name};
use super::{Provenance, Row, Table};
use crate::output;
use crate::text::{self, MAX_RECORD_BYTES, read_bytes, read_text};
use crate::yaml::FileError;

/// Names of the tables and their provenance in the folder of an item.
pub const FILES: [&str; 3] = ["units.csv", "values.csv", "provenance.json"];

/// Name of the list of pictures that earlier versions wrote.
const PICTURES: &str = "pictures.json";

/// The record of an item.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ItemRecord {
    pub table: Table,
    pub provenance: Provenance,
    /// Where its pictures are.
    pub folder: PathBuf,
}

/// Where to copy pictures from, by the names of their files in the record.
pub type Sources = BTreeMap<String, PathBuf>;

/// The folder of an item in a directory of records.
pub fn folder(directory: &Path, paper: &str, item: &str) -> PathBuf {
    directory.join(paper).join(item)
}

impl ItemRecord {
    /// Reads the record in `folder`, whose pictures must be intact; `None` without a record.
    pub fn read(folder: &Path) -> Result<Option<Self>, FileError> {
        let Some((table, provenance)) = ItemRecord::read_tables(folder)? else { return Ok(None) };
        // Pictures of many rows share a file.
        let files: BTreeSet<&str> = table.pictures.iter().map(|own| &*own.unit).collect();
        let lost = files.into_iter().find_map(|name| lost(folder, name));
        match lost {
            Some(error) => Err(error),
            None => Ok(Some(ItemRecord { table, provenance, folder: folder.to_owned() })),
        }
    }

    /// The bytes of a picture's file.
    pub fn bytes(&self, picture: &Row) -> Result<Vec<u8>, FileError> {
        read_bytes(&self.folder.join(&picture.unit), MAX_RECORD_BYTES)
    }

    /// Reads the tables in `folder` and their provenance; `None` without tables.
    pub fn read_tables(folder: &Path) -> Result<Option<(Table, Provenance)>, FileError> {
        let [units, values, provenance] = FILES.map(|name| folder.join(name));
        let index = folder.join(PICTURES);
        if is_there(&index) || !is_there(&units) && !is_there(&values) {
            return match earlier(folder).into_iter().chain([index]).find(|file| is_there(file)) {
                Some(file) => Err(FileError::of(
                    file,
                    "a record of an earlier version, which this one cannot read: delete the file, and `cargo xtask reproduce` (with \
                     --record for report/record) makes the record again from the units in out/raw",
                )),
                None => Ok(None),
            };
        }
        let texts = [read_text(&units, MAX_RECORD_BYTES)?, read_text(&values, MAX_RECORD_BYTES)?];
        // An error with a line is more useful than a wrong checksum.
        let table = Table::parse([&units, &values], [&texts[0], &texts[1]])?;
        let provenance = Provenance::read(&provenance)?;
        if provenance.tables.as_ref().is_some_and(|expected| *expected != checksum(&texts)) {
            return Err(FileError::of(
                values,
                "units.csv and values.csv do not match the checksum in provenance.json: only some of the three files were \
                 changed or replaced; restore them (git checkout), or remove all and run the item again",
            ));
        }
        Ok(Some((table, provenance)))
    }

    /// Writes missing pictures from their sources, then the tables and their provenance, with the checksum of the tables. Files that would
    /// not change are left alone; those of an earlier version, and pictures that posenc wrote and the tables do not name, are removed.
    ///
    /// # Errors
    ///
    /// A file that cannot be written, or a picture that is neither in the folder nor in the sources. Tables are then unchanged, unless a
    /// rename failed.
    pub fn write(
        folder: &Path,
        table: &Table,
        provenance: &Provenance,
        sources: &Sources,
    ) -> Result<(), FileError> {
        let listed: BTreeSet<&str> = table.pictures.iter().map(|own| own.unit.as_str()).collect();
        for name in &listed {
            let Some(error) = lost(folder, name) else { continue };
            let bytes = read_bytes(sources.get(*name).ok_or(error)?, MAX_RECORD_BYTES)?;
            let file = folder.join(name);
            posenc_files::write_if_changed(&file, &bytes)
                .map_err(|e| FileError::unwritable(&file, e))?;
        }
        let texts = table.to_csv().map_err(|e| FileError::unwritable(folder, e))?;
        let tables = Some(checksum(&texts));
        let provenance = Provenance { tables, ..provenance.clone() };
        let provenance = text::sealed(&folder.join(FILES[2]), &provenance)?;
        let mut prepared = Vec::new();
        for (name, text) in FILES.iter().zip(texts.iter().chain([&provenance])) {
            let file = folder.join(name);
            if !is_same(&file, text.as_bytes()) {
                let one = prepare(&file, &[text.as_bytes()]);
                prepared.push(one.map_err(|e| FileError::unwritable(&file, e))?);
            }
        }
        Prepared::commit_all(prepared).map_err(|e| FileError::unwritable(folder, e))?;
        let mut old = earlier(folder).to_vec();
        old.extend(own_index(folder));
        output::remove(&old, "the tables of the item replace it")?;
        let surplus = own_pictures(folder, |name| !listed.contains(name));
        output::remove(&surplus, "pictures that the record no longer has")?;
        Ok(())
    }

    /// Removes the tables in `folder` if they are a record that posenc wrote (all can be read, and the checksum matches), and the
    /// pictures that posenc wrote.
    pub fn remove(folder: &Path, why: &str) -> Result<(), FileError> {
        let record = ItemRecord::read_tables(folder);
        if record.is_ok_and(|own| own.is_some_and(|(_, own)| own.tables.is_some())) {
            output::remove(&FILES.map(|name| folder.join(name)), why)?;
        }
        let mut pictures = own_pictures(folder, |_| true);
        pictures.extend(own_index(folder));
        output::remove(&pictures, why)?;
        posenc_files::remove_empty_folder(folder);
        Ok(())
    }
}

/// Files that earlier versions wrote next to the folder of the item.
fn earlier(folder: &Path) -> [PathBuf; 2] {
    ["csv", "provenance.json"].map(|ending| folder.with_extension(ending))
}

/// The list of pictures that earlier versions wrote, if posenc wrote it: it has its own checksum.
fn own_index(folder: &Path) -> Option<PathBuf> {
    let file = folder.join(PICTURES);
    let text = read_text(&file, MAX_RECORD_BYTES).ok()?;
    // Without a checksum at its start, a text is read unchecked.
    let is_sealed = text.replace("\r\n", "\n").starts_with(&format!("{{\n{}", text::CHECKSUM));
    (is_sealed && text::unsealed::<Value>(&file, &text).is_ok()).then_some(file)
}

/// An error if a picture of a record is missing or damaged.
fn lost(folder: &Path, name: &str) -> Option<FileError> {
    let why = damage(&folder.join(name), name.trim_end_matches(".png"))?;
    let remedy = "restore the file (git checkout) or make it anew (reproduce)";
    Some(FileError::of(folder.join(FILES[1]), format!("{why}; {remedy}")))
}

/// Pictures in a folder that `is_wanted` selects and posenc wrote: their names begin the checksums of their contents.
fn own_pictures(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let names = posenc_files::entries(folder).unwrap_or_default().into_iter();
    let names = names.filter_map(|entry| entry.name.into_string().ok());
    let own = names.filter(|name| is_file_name(name) && is_wanted(name));
    own.filter(|name| lost(folder, name).is_none()).map(|name| folder.join(name)).collect()
}

fn checksum(texts: &[String; 2]) -> String {
    text::checksum(&texts.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Picture;
    use crate::record::picture::file_name;

    fn table(value: f64) -> Table {
        vec![Row { unit: "dB".into(), ..Row::new("g", "m", "test_psnr", value) }].into()
    }

    /// Catches tables that are read with the provenance of another run (the result of a kill between two renames), a message that does
    /// not name the files, and a record that nothing proves to be ours but that is removed.
    #[test]
    fn tables_that_do_not_match_their_provenance_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("p/i");
        assert!(ItemRecord::read(&folder).unwrap().is_none());
        let files = FILES.map(|name| folder.join(name));
        let read = || ItemRecord::read_tables(&folder).map(Option::unwrap);
        let provenance = Provenance { seed: 7, ..Provenance::default() };
        let write = |value| {
            ItemRecord::write(&folder, &table(value), &provenance, &Sources::new()).unwrap();
        };
        write(1.0);
        let first = files.clone().map(|file| std::fs::read(file).unwrap());
        let (rows, own) = read().unwrap();
        assert_eq!((rows, own.seed), (table(1.0), 7));
        write(2.0);
        assert_eq!(read().unwrap().0, table(2.0));
        // Each of the two changed files alone is from the first run, as after a kill between the renames.
        for (file, bytes) in files.iter().zip(&first).skip(1) {
            let second = std::fs::read(file).unwrap();
            std::fs::write(file, bytes).unwrap();
            let error = read().unwrap_err().to_string();
            for name in [FILES[1], FILES[2], "git checkout"] {
                assert!(error.contains(name), "{name}: {error}");
            }
            std::fs::write(file, second).unwrap();
        }
        // Windows line ends do not change the checksum.
        let text = std::fs::read_to_string(&files[1]).unwrap();
        std::fs::write(&files[1], text.replace('\n', "\r\n")).unwrap();
        read().unwrap();
        std::fs::write(&files[1], &first[1]).unwrap();
        let remove = || ItemRecord::remove(&folder, "a test").unwrap();
        remove();
        assert!(files.iter().all(|file| file.exists()));
        write(2.0);
        remove();
        assert!(!folder.exists());
        std::fs::write(folder.with_extension("csv"), "old").unwrap();
        let error = read().unwrap_err().to_string();
        assert!(error.contains("i.csv") && error.contains("earlier version"), "{error}");
        write(2.0);
        assert!(!folder.with_extension("csv").exists());
        // Tables next to a list of pictures have lost these; a list that is not ours stays.
        let index = folder.join(PICTURES);
        let foreign = "{\n  \"a\": 1,\n  \"checksum\": \"x\"\n}";
        for (text, is_own) in
            [(text::sealed(&index, &provenance).unwrap(), true), (foreign.into(), false)]
        {
            std::fs::write(&index, text).unwrap();
            let error = read().unwrap_err().to_string();
            assert!(error.contains("pictures.json: a record of an earlier version"), "{error}");
            write(2.0);
            assert_eq!(index.exists(), !is_own);
        }
    }

    /// Catches equal pictures stored twice, pictures that no table names or that are lost and still accepted, and a picture of the user
    /// that is removed.
    #[test]
    fn pictures_are_files_named_by_their_content() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("p/i");
        let mut sources = Sources::new();
        let mut picture = |signal: &str, shade: u8| {
            let shown = Picture::new("truth", signal, (130, 1, 1), vec![shade; 130]);
            let bytes = shown.png().unwrap();
            let name = file_name(&blake3::hash(&bytes).to_hex());
            let source = directory.path().join(format!("{shade}.png"));
            std::fs::write(&source, bytes).unwrap();
            sources.insert(name.clone(), source);
            let (x, y) = (Some(130.0), Some(1.0));
            Row {
                signal: signal.into(),
                unit: name,
                x,
                y,
                ..Row::new("g", "m", "truth", f64::INFINITY)
            }
        };
        let all = vec![picture("a", 1), picture("../b", 2), picture("c", 1)];
        let files = || own_pictures(&folder, |_| true);
        let write = |pictures: &[Row], sources: &Sources| {
            let table = Table { pictures: pictures.to_vec(), ..table(1.0) };
            ItemRecord::write(&folder, &table, &Provenance::default(), sources)
        };
        write(&all, &sources).unwrap();
        let read = || ItemRecord::read(&folder).map(Option::unwrap);
        assert_eq!(read().unwrap().table.pictures, all);
        assert_eq!(files().len(), 2);
        let file = folder.join(&all[1].unit);
        let whole = std::fs::read(&file).unwrap();
        assert_eq!(read().unwrap().bytes(&all[1]).unwrap(), whole);
        std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
        let error = read().unwrap_err().to_string();
        assert!(error.contains(&all[1].unit) && error.contains("damaged"), "{error}");
        std::fs::remove_file(&file).unwrap();
        for error in [read().unwrap_err(), write(&all, &Sources::new()).unwrap_err()] {
            let error = error.to_string();
            assert!(error.contains("is missing") && error.contains("git checkout"), "{error}");
        }
        write(&all, &sources).unwrap();
        let foreign = ["mine.png", "0123456789abcdef.png"].map(|name| folder.join(name));
        foreign.iter().for_each(|file| std::fs::write(file, "x").unwrap());
        write(&all[1..2], &Sources::new()).unwrap();
        assert_eq!(files(), [file]);
        ItemRecord::remove(&folder, "a test").unwrap();
        assert!(files().is_empty() && foreign.iter().all(|file| file.exists()));
    }

    /// Catches a record whose bytes change when it is read and written again.
    #[test]
    fn records_of_the_repository_are_rewritten_unchanged() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../report/record/rethinking");
        let items = posenc_files::entries(&folder).unwrap();
        assert!(items.len() > 5);
        for item in items {
            let [units, values, _] = FILES.map(|name| folder.join(&item.name).join(name));
            let text =
                |file: &Path| read_text(file, MAX_RECORD_BYTES).unwrap().replace("\r\n", "\n");
            let texts = [text(&units), text(&values)];
            let table = Table::parse([&units, &values], [&texts[0], &texts[1]]).unwrap();
            assert!(table.to_csv().unwrap() == texts, "{:?}", item.name);
        }
    }
}
