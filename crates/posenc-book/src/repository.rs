//! Files of the repository that the site may publish.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Files above this size are not published.
const LONGEST: u64 = 500_000;

/// A repository, and which of its files are public.
///
/// A link in a text may name any path. A file is published only if git tracks it, no part of its path is hidden or a
/// symbolic link, and it is not too long. This excludes, for example, `.git`, data sets and notes.
#[derive(Debug, Clone)]
pub struct Repository {
    root: PathBuf,
    /// Paths of regular files that git tracks, with slashes; `None` if git does not list them.
    tracked: Option<BTreeSet<String>>,
}

impl Repository {
    /// Asks git for the files below `root`.
    pub fn new(root: &Path) -> Self {
        Repository { root: root.to_owned(), tracked: tracked(root) }
    }

    /// Whether git lists the files; otherwise none is published.
    pub fn is_listed(&self) -> bool {
        self.tracked.is_some()
    }

    /// The root, as passed to [`Repository::new`].
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Paths of the files in a folder, without those in folders below it.
    pub fn files_in<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a str> {
        let names = self.tracked.iter().flatten().map(String::as_str);
        names.filter(move |name| name.rsplit_once('/').is_some_and(|(place, _)| place == folder))
    }

    /// Whether a path leads to a folder or file of the repository, published or not.
    pub fn exists(&self, name: &str) -> bool {
        self.root.join(name).exists()
    }

    /// The text of a file, by its path below the root with slashes; `None` if it is not published or not UTF-8.
    pub fn text(&self, name: &str) -> Option<String> {
        String::from_utf8(self.bytes(name)?).ok()
    }

    /// The content of a file, by its path below the root with slashes; `None` if it is not published.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        if !self.tracked.as_ref()?.contains(name) {
            return None;
        }
        let mut file = self.root.clone();
        for part in name.split('/') {
            if part.starts_with('.') {
                return None;
            }
            file.push(part);
            if std::fs::symlink_metadata(&file).ok()?.is_symlink() {
                return None;
            }
        }
        posenc_files::read(&file, LONGEST).ok()
    }
}

/// Regular files that git tracks below a directory.
fn tracked(root: &Path) -> Option<BTreeSet<String>> {
    let output = posenc_files::git(root, &["ls-files", "-z", "--stage"]).ok()?;
    if !output.status.success() {
        return None;
    }
    let entries = output.stdout.split(|byte| *byte == 0);
    let file = |entry: &[u8]| {
        let (head, name) = std::str::from_utf8(entry).ok()?.split_once('\t')?;
        head.starts_with("100").then(|| name.to_owned())
    };
    Some(entries.filter_map(file).collect())
}

#[cfg(test)]
pub mod tests {
    use std::process::Command;

    use super::*;

    /// Creates a git repository that tracks all files below a directory.
    pub fn track(root: &Path) {
        for arguments in [&["init", "-q"][..], &["add", "-A"]] {
            let status = Command::new("git").arg("-C").arg(root).args(arguments).status();
            assert!(status.expect("git starts").success(), "git {arguments:?}");
        }
    }

    /// Catches a link that publishes files that are not public: git's own files, hidden files, files that git ignores
    /// or does not track, symbolic links, folders and long files.
    #[test]
    fn only_tracked_files_are_published() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret.txt"), "secret").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let put = |name: &str, text: &[u8]| {
            let file = root.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        put("data/a.yaml", b"public");
        put("data/ü b.yaml", b"public");
        put(".hidden/a.yaml", b"hidden");
        put("data/.env", b"hidden");
        put("data/long.txt", &vec![b'a'; LONGEST as usize + 1]);
        put("data/binary", &[0xff, 0xfe]);
        put("data/becomes.txt", b"public at first");
        put("folder/a.txt", b"public at first");
        put(".gitignore", b"ignored.txt\n");
        put("ignored.txt", b"ignored");
        track(root);
        put("new.txt", b"untracked");
        let repository = Repository::new(root);
        assert!(repository.is_listed());
        assert_eq!(repository.text("data/a.yaml").as_deref(), Some("public"));
        assert_eq!(repository.text("data/ü b.yaml").as_deref(), Some("public"));
        for name in [
            ".git/config",
            ".GIT/config",
            ".hidden/a.yaml",
            "data/.env",
            "data/long.txt",
            "data/binary",
            "new.txt",
            "ignored.txt",
            "data",
            "",
            "/etc/passwd",
            "../secret.txt",
            "data/../.git/config",
            "./data/a.yaml",
            "data//a.yaml",
            "data\\a.yaml",
            "data/a.yaml\0",
            "gone.txt",
        ] {
            assert_eq!(repository.text(name), None, "{name}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            // A file and a folder that are replaced by links, and links that git tracks.
            std::fs::remove_file(root.join("data/becomes.txt")).unwrap();
            symlink(outside.path().join("secret.txt"), root.join("data/becomes.txt")).unwrap();
            std::fs::remove_dir_all(root.join("folder")).unwrap();
            symlink(outside.path(), root.join("folder")).unwrap();
            std::fs::write(outside.path().join("a.txt"), "secret").unwrap();
            assert_eq!(repository.text("data/becomes.txt"), None);
            assert_eq!(repository.text("folder/a.txt"), None);
            symlink(outside.path().join("secret.txt"), root.join("link.txt")).unwrap();
            track(root);
            assert_eq!(Repository::new(root).text("link.txt"), None);
        }
        let bare = tempfile::tempdir().unwrap();
        std::fs::write(bare.path().join("a.txt"), "a").unwrap();
        let none = Repository::new(bare.path());
        assert!(!none.is_listed() && none.text("a.txt").is_none());
    }
}
