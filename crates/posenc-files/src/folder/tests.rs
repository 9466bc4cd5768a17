use std::io::Write as _;
use std::path::PathBuf;

use super::*;
use crate::{prepare, protect, read, write_atomically, write_if_changed, write_new, write_with};

/// A protected folder, and an unprotected one next to it.
struct Places {
    _folder: tempfile::TempDir,
    own: PathBuf,
    foreign: PathBuf,
}

fn places() -> Places {
    let folder = tempfile::tempdir().unwrap();
    let (own, foreign) = (folder.path().join("own"), folder.path().join("foreign"));
    protect(&own);
    std::fs::create_dir_all(&own).unwrap();
    std::fs::create_dir_all(&foreign).unwrap();
    Places { _folder: folder, own, foreign }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = entries(folder).unwrap();
    entries.into_iter().map(|entry| entry.name.into_string().unwrap()).collect()
}

/// Catches partial files, temporary files that remain after an error, and files that are rewritten although they already have the
/// content.
#[test]
fn files_are_written_whole_or_not_at_all() {
    let Places { own, .. } = &places();
    let file = own.join("a/b/c.txt");
    write_atomically(&file, b"one").unwrap();
    assert!(!write_if_changed(&file, b"one").unwrap());
    assert!(write_if_changed(&file, b"two").unwrap());
    write_with(&file, |file| {
        file.write_all(b"thr")?;
        Err(Error::other("stop"))
    })
    .unwrap_err();
    drop(prepare(&file, &[b"four"]).unwrap());
    assert_eq!(read(&file, 10).unwrap(), b"two");
    assert_eq!(names(&own.join("a/b")), ["c.txt"]);
    assert_eq!(write_new(&file, b"x").unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert!(remove(&file).unwrap() && !remove(&file).unwrap());
    remove_empty_folder(&own.join("a/b"));
    remove_empty_folder(&own.join("a"));
    assert_eq!(names(own), [""; 0]);
}

/// Catches a write, a removal or a read that leaves a protected folder through a link, at any depth.
#[cfg(unix)]
#[test]
fn links_below_a_protected_folder_are_not_followed() {
    use std::os::unix::fs::symlink;
    let Places { own, foreign, .. } = &places();
    std::fs::write(foreign.join("file"), "precious").unwrap();
    symlink(foreign, own.join("folder")).unwrap();
    symlink(foreign.join("file"), own.join("file")).unwrap();
    let error = write_atomically(&own.join("folder/file"), b"x").unwrap_err().to_string();
    assert!(error.contains("own/folder is a symbolic link; links below"), "{error}");
    for error in [
        write_new(&own.join("folder/new"), b"x").unwrap_err(),
        make_folder(&own.join("folder/new")).unwrap_err(),
        remove(&own.join("folder/file")).unwrap_err(),
        entries(&own.join("folder")).unwrap_err(),
        read(&own.join("folder/file"), 100).unwrap_err().into(),
        read(&own.join("file"), 100).unwrap_err().into(),
        write_new(&own.join("../foreign/new"), b"x").unwrap_err(),
    ] {
        let error = error.to_string();
        assert!(error.contains("symbolic link") || error.contains("leads out"), "{error}");
    }
    // A link at the path of a file is replaced or removed itself.
    write_atomically(&own.join("file"), b"new").unwrap();
    assert_eq!(read(&own.join("file"), 3).unwrap(), b"new");
    assert!(remove(&own.join("folder")).unwrap());
    assert_eq!(std::fs::read_to_string(foreign.join("file")).unwrap(), "precious");
    assert_eq!(names(foreign), ["file"]);
}

/// Catches a protected folder that is rejected because it is a link itself.
#[cfg(unix)]
#[test]
fn the_protected_folder_may_be_a_link() {
    let Places { own, foreign, .. } = &places();
    std::fs::remove_dir(own).unwrap();
    std::os::unix::fs::symlink(foreign, own).unwrap();
    write_atomically(&own.join("a/b"), b"x").unwrap();
    assert_eq!(read(&own.join("a/b"), 1).unwrap(), b"x");
    assert_eq!(std::fs::read(foreign.join("a/b")).unwrap(), b"x");
}

/// Catches files that are removed through a link, other files that are removed, and half-written files that remain or are not named.
#[cfg(unix)]
#[test]
fn sweeping_removes_only_half_written_files() {
    let Places { own, foreign, .. } = &places();
    let half = [own.join(".writing-1-2-3f.tmp"), own.join("a/b/.writing-40-0-f.tmp")];
    for file in half.iter().chain(&[own.join("a/x.tmp"), own.join("a/.writing-notes-1-2.tmp")]) {
        write_new(file, b"").unwrap();
    }
    std::fs::write(foreign.join(".writing-3-0-1.tmp"), "").unwrap();
    std::os::unix::fs::symlink(foreign, own.join("a/link")).unwrap();
    std::os::unix::fs::symlink(own, own.join("a/loop")).unwrap();
    let mut removed = sweep(own);
    removed.sort();
    assert_eq!(removed, half);
    assert_eq!(names(own), ["a"]);
    assert_eq!(names(&own.join("a")), [".writing-notes-1-2.tmp", "b", "link", "loop", "x.tmp"]);
    assert_eq!(names(&own.join("a/b")), [""; 0]);
    assert_eq!(names(foreign), [".writing-3-0-1.tmp"]);
    sweep(&own.join("a/link"));
    assert_eq!(names(foreign), [".writing-3-0-1.tmp"]);
}

/// Catches permissions that ignore the umask. The umask belongs to the whole process, so the test compares with a file that the standard
/// library creates.
#[cfg(unix)]
#[test]
fn permissions_are_those_of_the_umask() {
    use std::os::unix::fs::PermissionsExt as _;
    let Places { own, foreign, .. } = &places();
    let mode = |file: &Path| std::fs::metadata(file).unwrap().permissions().mode();
    std::fs::write(foreign.join("plain"), "").unwrap();
    write_atomically(&own.join("file"), b"").unwrap();
    assert_eq!(mode(&own.join("file")), mode(&foreign.join("plain")));
    crate::create_program(&own.join("program")).unwrap();
    assert_ne!(mode(&own.join("program")) & 0o100, 0);
}
