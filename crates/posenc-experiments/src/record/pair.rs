//! A table and its provenance, which belong together: the provenance keeps a checksum of the table.
//!
//! Two files cannot be replaced in one step. Both are first written next to their places, so that a full disk leaves the old
//! pair. If the process is killed between the two renames, the table does not match its provenance, which every reader reports.

use std::path::Path;

use posenc_files::{Prepared, is_same, prepare};

use super::{Provenance, Table};
use crate::output;
use crate::text::{self, MAX_RECORD_BYTES, read_text};
use crate::yaml::FileError;

/// Checksum of a table's text.
pub fn checksum(text: &str) -> String {
    text::checksum(text)
}

/// Reads a table and its provenance. A table without a provenance gets an empty one.
///
/// # Errors
///
/// A damaged file; a table that does not match the checksum in its provenance.
pub fn read(
    table_file: &Path,
    provenance_file: &Path,
    paper: &str,
    item: &str,
) -> Result<(Table, Provenance), FileError> {
    let text = read_text(table_file, MAX_RECORD_BYTES)?;
    let found = checksum(&text);
    // An error with a line is more useful than a wrong checksum.
    let table = Table::parse(table_file, text, paper, item)?;
    let provenance = Provenance::read(provenance_file)?;
    if provenance.table.as_ref().is_some_and(|expected| *expected != found) {
        return Err(FileError::of(
            table_file,
            format!(
                "does not match the checksum in {}: only one of the two files was changed or replaced; restore both (git \
                 checkout), or remove both and run the item again",
                provenance_file.display()
            ),
        ));
    }
    Ok((table, provenance))
}

/// Writes a table and its provenance with the table's checksum. Files that would not change are left alone.
///
/// # Errors
///
/// A file that cannot be written. Both files are then unchanged, unless only the second rename failed.
pub fn write(
    table_file: &Path,
    provenance_file: &Path,
    paper: &str,
    item: &str,
    record: (&Table, &Provenance),
) -> Result<(), FileError> {
    let (table, provenance) = record;
    let text = table.to_csv(paper, item).map_err(|e| FileError::unwritable(table_file, e))?;
    let provenance = Provenance { table: Some(checksum(&text)), ..provenance.clone() }.text();
    let mut prepared = Vec::new();
    for (file, text) in [(table_file, &text), (provenance_file, &provenance)] {
        if !is_same(file, text.as_bytes()) {
            let one = prepare(file, &[text.as_bytes()]);
            prepared.push(one.map_err(|e| FileError::unwritable(file, e))?);
        }
    }
    Prepared::commit_all(prepared).map_err(|e| FileError::unwritable(table_file, e))
}

/// Removes a table and its provenance if they are a record that posenc wrote: both can be read, and the checksum matches.
pub fn remove(
    table_file: &Path,
    provenance_file: &Path,
    paper: &str,
    item: &str,
    why: &str,
) -> Result<(), FileError> {
    let record = read(table_file, provenance_file, paper, item);
    if record.is_ok_and(|(_, provenance)| provenance.table.is_some()) {
        output::remove(table_file, why)?;
        output::remove(provenance_file, why)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use crate::record::Row;

    fn table(value: f64) -> Table {
        let row = Row {
            unit: "dB".into(),
            profile: Profile::Quick,
            ..Row::new("g", "m", "test_psnr", value)
        };
        Table { rows: vec![row] }
    }

    /// Catches a table that is read with the provenance of another run (the result of a kill between the two renames), a message that
    /// does not name both files, and older records that no longer read.
    #[test]
    fn a_table_that_does_not_match_its_provenance_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let (csv, json) = (folder.path().join("i.csv"), folder.path().join("i.provenance.json"));
        let read = || super::read(&csv, &json, "p", "i");
        let provenance = Provenance { seed: 7, ..Provenance::default() };
        let write =
            |value| super::write(&csv, &json, "p", "i", (&table(value), &provenance)).unwrap();
        write(1.0);
        let first = [&csv, &json].map(|file| std::fs::read(file).unwrap());
        let (rows, own) = read().unwrap();
        assert_eq!((rows, own.seed), (table(1.0), 7));
        write(2.0);
        let (rows, own) = read().unwrap();
        assert_eq!(rows, table(2.0));
        // Each file alone is from the first run, as after a kill between the renames.
        for (file, bytes) in [&csv, &json].into_iter().zip(&first) {
            let second = std::fs::read(file).unwrap();
            std::fs::write(file, bytes).unwrap();
            let error = read().unwrap_err().to_string();
            for name in ["i.csv", "i.provenance.json", "git checkout"] {
                assert!(error.contains(name), "{name}: {error}");
            }
            std::fs::write(file, second).unwrap();
        }
        // Windows line ends do not change the checksum.
        let text = std::fs::read_to_string(&csv).unwrap();
        std::fs::write(&csv, text.replace('\n', "\r\n")).unwrap();
        read().unwrap();
        // Records from before checksums, and those without a provenance.
        std::fs::write(&json, Provenance { table: None, ..own }.text()).unwrap();
        std::fs::write(&csv, &first[0]).unwrap();
        assert_eq!(read().unwrap().0, table(1.0));
        std::fs::remove_file(&json).unwrap();
        assert_eq!(read().unwrap().1, Provenance::default());
        // Neither this table nor one that was edited is removed: nothing proves that a run wrote them.
        let remove = || remove(&csv, &json, "p", "i", "a test").unwrap();
        remove();
        write(2.0);
        std::fs::write(&csv, &first[0]).unwrap();
        remove();
        assert!(csv.exists() && json.exists());
        write(2.0);
        remove();
        assert!(!csv.exists() && !json.exists());
    }

    /// Catches a table that was replaced although its provenance could not be written.
    #[test]
    fn a_failed_write_changes_neither_file() {
        let folder = tempfile::tempdir().unwrap();
        let csv = folder.path().join("i.csv");
        std::fs::write(folder.path().join("file"), "").unwrap();
        let json = folder.path().join("file/i.provenance.json");
        let record = (&table(1.0), &Provenance::default());
        assert!(super::write(&csv, &json, "p", "i", record).is_err());
        assert!(!csv.exists());
        assert_eq!(posenc_files::entries(folder.path()).unwrap().len(), 1);
    }
}
