use std::path::PathBuf;

use super::*;
use crate::{entries, make_folder, protect, sweep};

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
    // Only the outermost protected folder counts.
    protect(&own.join("folder"));
    std::fs::create_dir_all(&own).unwrap();
    std::fs::create_dir_all(&foreign).unwrap();
    Places { _folder: folder, own, foreign }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = entries(folder).unwrap();
    entries.into_iter().map(|entry| entry.name.into_string().unwrap()).collect()
}

/// Catches a file that is read beyond its limit, and one that is refused at the limit. Files in `/proc` report a length of zero, like a
/// file that grows after it is opened.
#[test]
fn files_are_read_up_to_their_limit() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    std::fs::write(&file, b"12345").unwrap();
    assert_eq!(read(&file, 5).unwrap(), b"12345");
    let error = read(&file, 4).unwrap_err().to_string();
    assert!(error.starts_with("5 bytes are more than the 4 allowed"), "{error}");
    assert!(is_same(&file, b"12345") && !is_same(&file, b"1234") && !is_same(&file, b"123456"));
    assert!(!is_same(&folder.path().join("b"), b"") && !is_there(&folder.path().join("b")));
    #[cfg(target_os = "linux")]
    {
        let file = Path::new("/proc/self/status");
        let error = read(file, 10).unwrap_err().to_string();
        assert!(error.starts_with("11 bytes are more than the 10 allowed"), "{error}");
        assert!(read(file, 1 << 16).unwrap().len() > 10 && !is_same(file, b""));
    }
}

/// Catches a reader that blocks on a pipe or reads a device, directly or through a link, and one that accepts a directory.
#[cfg(unix)]
#[test]
fn only_regular_files_are_read() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let made = std::process::Command::new("mkfifo").arg(at("pipe")).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo is required");
    symlink(at("pipe"), at("to-pipe")).unwrap();
    symlink("/dev/zero", at("to-zero")).unwrap();
    symlink(at("missing"), at("dangling")).unwrap();
    symlink(at("loop"), at("loop")).unwrap();
    for (name, reason) in [
        ("pipe", "it is a pipe, socket or device; a regular file is required"),
        ("to-pipe", "a pipe"),
        ("to-zero", "a pipe, socket or device"),
        (".", "a directory"),
        ("dangling", "No such file"),
        ("loop", "symbolic link"),
    ] {
        let error = read(&at(name), 100).unwrap_err().to_string();
        assert!(error.contains(reason), "{name}: {error}");
        assert!(is_there(&at(name)), "{name}");
    }
    assert!(open_or_create(&at("pipe")).unwrap_err().to_string().contains("a pipe"));
    // A pipe that takes the place of a file between the first check and the opening.
    let (done, result) = std::sync::mpsc::channel();
    let dir = open_folder(folder.path(), false).unwrap();
    std::thread::spawn(move || {
        let opened = open_replaced(&dir, "pipe".into(), OpenOptions::new().read(true));
        done.send(opened.unwrap_err().to_string())
    });
    let error = result.recv_timeout(std::time::Duration::from_secs(60)).expect("it blocks");
    assert!(error.contains("a pipe"), "{error}");
    // Links to regular files are followed, since data are often stored elsewhere.
    std::fs::write(at("file"), "x").unwrap();
    symlink(at("file"), at("to-file")).unwrap();
    assert_eq!(read(&at("to-file"), 1).unwrap(), b"x");
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
    assert!(remove(&file).unwrap() && !remove(&file).unwrap());
    remove_empty_folder(&own.join("a/b"));
    remove_empty_folder(&own.join("a"));
    assert_eq!(names(own), [""; 0]);
}

/// Catches a write, a removal or a read that leaves a protected folder through a link or `..`, at any depth.
#[cfg(unix)]
#[test]
fn nothing_leads_out_of_a_protected_folder() {
    use std::os::unix::fs::symlink;
    let Places { own, foreign, .. } = &places();
    std::fs::write(foreign.join("file"), "precious").unwrap();
    symlink(foreign, own.join("folder")).unwrap();
    symlink("../foreign", own.join("relative")).unwrap();
    symlink(foreign.join("file"), own.join("file")).unwrap();
    for error in [
        write_atomically(&own.join("folder/file"), b"x").unwrap_err(),
        write_atomically(&own.join("folder/new"), b"x").unwrap_err(),
        write_atomically(&own.join("relative/new"), b"x").unwrap_err(),
        make_folder(&own.join("folder/new/newer")).unwrap_err(),
        remove(&own.join("folder/file")).unwrap_err(),
        entries(&own.join("folder")).unwrap_err(),
        read(&own.join("folder/file"), 100).unwrap_err(),
        read(&own.join("file"), 100).unwrap_err(),
        write_atomically(&own.join("../foreign/new"), b"x").unwrap_err(),
        write_atomically(&own.join("new/../../foreign/new"), b"x").unwrap_err(),
    ] {
        let error = error.to_string();
        assert!(error.contains("symbolic link") || error.contains("leads out of"), "{error}");
    }
    // A link at the path of a file is replaced or removed itself.
    write_atomically(&own.join("file"), b"new").unwrap();
    assert_eq!(read(&own.join("file"), 3).unwrap(), b"new");
    assert!(remove(&own.join("folder")).unwrap());
    assert_eq!(std::fs::read_to_string(foreign.join("file")).unwrap(), "precious");
    assert_eq!(names(foreign), ["file"]);
    // The protected folder may be a link itself.
    let link = own.with_file_name("link");
    symlink(own, &link).unwrap();
    protect(&link);
    write_atomically(&link.join("a/b"), b"x").unwrap();
    assert_eq!(read(&own.join("a/b"), 1).unwrap(), b"x");
}

/// Catches files that are removed through a link, other files that are removed, and half-written files that remain or are not named.
#[cfg(unix)]
#[test]
fn sweeping_removes_only_half_written_files() {
    let Places { own, foreign, .. } = &places();
    let half = [own.join(".writing-1-2-3f.tmp"), own.join("a/b/.writing-40-0-f.tmp")];
    for file in half.iter().chain(&[own.join("a/x.tmp"), own.join("a/.writing-notes-1-2.tmp")]) {
        write_atomically(file, b"").unwrap();
    }
    std::fs::write(foreign.join(".writing-3-0-1.tmp"), "").unwrap();
    std::os::unix::fs::symlink(foreign, own.join("a/link")).unwrap();
    std::os::unix::fs::symlink(own, own.join("a/loop")).unwrap();
    let mut removed = sweep(own);
    removed.sort();
    assert_eq!(removed, half);
    assert_eq!(names(&own.join("a")), [".writing-notes-1-2.tmp", "b", "link", "loop", "x.tmp"]);
    sweep(&own.join("a/link"));
    assert_eq!(names(foreign), [".writing-3-0-1.tmp"]);
}
