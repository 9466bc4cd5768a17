//! `data fetch` against servers of these tests: real transfers by curl, real files.

mod server;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::common::{Repository, Run, files_in, has, wait};
use posenc_data::{DataDirectory, DataSource, Manifest};
use posenc_files::testing::{Need, skip};
use server::{Server, cut, full, ranged, status};
use sha2::{Digest, Sha256};

/// Skips the calling test if curl is missing.
fn curl() -> Option<()> {
    let status = Command::new("curl").arg("--version").stdout(Stdio::null()).status();
    let found = status.is_ok_and(|status| status.success()).then_some(());
    if found.is_none() {
        skip(Need::Curl, "curl cannot be started");
    }
    found
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes without a short period, so that a wrong range is detected.
fn body(length: usize) -> &'static [u8] {
    let bytes = (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8);
    bytes.collect::<Vec<u8>>().leak()
}

/// A repository whose manifest has one set with these files, their sizes and checksums.
fn repository(files: &[(&str, &[u8])]) -> Repository {
    let entries = files.iter().map(|(path, bytes)| entry(&format!("text/{path}"), bytes));
    with_files(&entries.collect::<String>())
}

/// A repository whose manifest has one file of this length, and its bytes. Skips the calling test if curl is missing.
fn one_file(length: usize) -> Option<(Repository, &'static [u8])> {
    curl()?;
    let bytes = body(length);
    Some((repository(&[("a", bytes)]), bytes))
}

fn with_files(entries: &str) -> Repository {
    let repository = Repository::new();
    let manifest = format!(
        "sets: []\nfile_sets:\n- id: text\n  title: Some text\n  license: for this test only\n  origin: this test\n  \
         format: parallel-text\n  any_of: [text]\n  used_by: [lff/fig1]\n  steps: write it yourself\n  files:\n{entries}"
    );
    repository.write("data/manifest.yaml", &manifest);
    repository
}

/// Fetches the set from a mirror.
fn fetch(repository: &Repository, server: &Server) -> Run {
    repository.run(&["data", "fetch", "text", "--mirror", &server.url, "--stall", "1s"])
}

/// Fetches the set with an error that contains all of `needles`.
#[track_caller]
fn fails(repository: &Repository, server: &Server, needles: &[&str]) {
    fetch(repository, server).ends_with(1).says(needles);
}

/// Fetches the set, whose file `text/a` then has these bytes.
#[track_caller]
fn succeeds(repository: &Repository, server: &Server, bytes: &[u8]) {
    fetch(repository, server).ends_with(0);
    assert_eq!(at(repository, "text/a").as_deref(), Some(bytes));
}

fn at(repository: &Repository, path: &str) -> Option<Vec<u8>> {
    std::fs::read(repository.path().join("data").join(path)).ok()
}

/// Catches a file that is unverified or in another place, a license that is shown too late, and a second transfer of present files.
#[test]
fn files_are_fetched_verified_and_listed() {
    let Some(()) = curl() else { return };
    let (one, two) = (body(300_000), body(10));
    let repository = repository(&[("a file ü.gz", one), ("inner/two", two)]);
    let server = Server::start(move |request, stream| match request.path.as_str() {
        "/base/text/a%20file%20%C3%BC.gz" => full(stream, one),
        "/base/text/inner/two" => full(stream, two),
        _ => status(stream, "404 Not Found", &[]),
    });
    let listed = repository.ok(&["data", "list"]).stdout;
    let is_line = |line: &str| listed.lines().any(|shown| shown.starts_with(line));
    for line in [
        "  absent     looked for",
        "  license    for this test only",
        "  size       0.3 MB in 2 files",
        "  get        manually: write it yourself; or from a mirror: cargo xtask data fetch text --mirror URL",
    ] {
        assert!(is_line(line), "no `{line}` in: {listed}");
    }
    let mirror = format!("{}/base/", server.url);
    // The name of an item selects the set that it uses.
    let run = repository.ok(&["data", "fetch", "lff/fig1", "--mirror", &mirror]);
    let places = ["license    for this test only", "fetched    "].map(|t| run.stdout.find(t));
    assert!(places[0].is_some() && places[0] < places[1], "{}", run.stdout);
    assert_eq!(at(&repository, "text/a file ü.gz").as_deref(), Some(one));
    assert_eq!(at(&repository, "text/inner/two").as_deref(), Some(two));
    assert!(files_in(&repository.path().join("data"), "part").is_empty());
    assert!(repository.ok(&["data", "list"]).stdout.contains("  present    "));
    repository
        .ok(&["data", "fetch", "--mirror", &mirror])
        .prints(&["all files, with the checksums of the manifest"]);
    assert_eq!(server.requests().len(), 2);
}

/// Catches a transfer that starts again from the beginning, and one that is mistaken for complete.
#[test]
fn an_interrupted_transfer_resumes() {
    let Some((repository, bytes)) = one_file(200_000) else { return };
    let works = Arc::new(AtomicBool::new(false));
    let is_working = works.clone();
    let server = Server::start(move |request, stream| match request.from {
        _ if is_working.load(SeqCst) => ranged(stream, bytes, request.from),
        // Half of the file, then half of the rest, then nothing.
        None => cut(stream, bytes, 0, 100_000),
        Some(100_000) => cut(stream, bytes, 100_000, 50_000),
        Some(from) => cut(stream, bytes, from, 0),
    });
    let needles = ["150000 of 200000 bytes", "run the same command again to resume"];
    fails(&repository, &server, &needles);
    assert_eq!(at(&repository, "text/a"), None);
    assert_eq!(at(&repository, ".fetch/text/a.part").as_deref(), Some(&bytes[..150_000]));
    assert!(repository.ok(&["data", "list"]).stdout.contains("  absent     "));
    works.store(true, SeqCst);
    succeeds(&repository, &server, bytes);
    assert_eq!(server.ranges(), [None, Some(100_000), Some(150_000), Some(150_000)]);
}

/// Catches a partial file that blocks a set: from a server that cannot resume, of another version, too long, or complete; also where the
/// manifest's size is only an upper bound, so that a server answers with status 416.
#[test]
fn a_partial_file_never_blocks_a_set() {
    let Some(()) = curl() else { return };
    let bytes = body(50_000);
    let exact = entry("text/a", bytes);
    let bound = exact.replace("bytes: 50000", "bytes: 90000");
    for (entry, part, requests, has_ranges) in [
        (&exact, &bytes[..20_000], vec![Some(20_000), None], false),
        (&exact, &vec![7; 20_000], vec![Some(20_000), None], true),
        (&exact, &vec![7; 50_000], vec![None], true),
        (&exact, &vec![7; 60_000], vec![None], true),
        (&exact, bytes, vec![], true),
        (&bound, &[], vec![None], true),
        (&bound, bytes, vec![Some(50_000)], true),
    ] {
        let repository = with_files(entry);
        let file = repository.path().join("data/.fetch/text/a.part");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, part).unwrap();
        let server = Server::start(move |request, stream| match request.from {
            Some(50_000) => {
                status(stream, "416 Range Not Satisfiable", &["Content-Range: bytes */50000"]);
            }
            from => ranged(stream, bytes, from.filter(|_| has_ranges)),
        });
        succeeds(&repository, &server, bytes);
        assert_eq!(server.ranges(), requests);
    }
}

/// Catches data that are stored although their verification fails, and an existing file that is replaced.
#[test]
fn a_wrong_checksum_changes_nothing() {
    let Some(()) = curl() else { return };
    let bytes = body(1000);
    let repository = repository(&[("a", bytes), ("b", bytes)]);
    let server = Server::start(move |request, stream| match request.path.ends_with('a') {
        true => full(stream, bytes),
        false => full(stream, &body(1001)[1..]),
    });
    fails(&repository, &server, &["/text/b: the file has SHA-256", &sha256(bytes), "discarded"]);
    // A set is stored completely or not at all.
    assert!(!repository.path().join("data/text").exists());
    assert_eq!(at(&repository, ".fetch/text/b.part"), None);
    // Existing files stay, whatever they contain.
    repository.write("data/text/b", "mine");
    let before = server.requests().len();
    fails(&repository, &server, &["data/text/b", "existing files are never replaced"]);
    assert_eq!(at(&repository, "text/b").as_deref(), Some(&b"mine"[..]));
    assert_eq!(at(&repository, "text/a"), None);
    assert_eq!(server.requests().len(), before);
}

/// Catches an error page that is stored, and a set with only some of its files in place.
#[test]
fn a_missing_file_is_named_and_the_others_wait_for_it() {
    let Some(()) = curl() else { return };
    let bytes = body(1000);
    let repository = repository(&[("a", bytes), ("b", bytes)]);
    let is_there = Arc::new(AtomicBool::new(false));
    let has_second = is_there.clone();
    let server = Server::start(move |request, stream| {
        match request.path.ends_with('a') || has_second.load(SeqCst) {
            true => full(stream, bytes),
            false => status(stream, "404 Not Found", &[]),
        }
    });
    fails(&repository, &server, &["/text/b: the server answers with status 404", "--mirror"]);
    assert!(!repository.path().join("data/text").exists());
    is_there.store(true, SeqCst);
    succeeds(&repository, &server, bytes);
    assert_eq!(at(&repository, "text/b").as_deref(), Some(bytes));
    let paths: Vec<_> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/text/a", "/text/b", "/text/b"]);
}

/// Catches an endless wait, before the answer or in the middle of it.
#[test]
fn a_stalled_server_is_abandoned() {
    let Some(()) = curl() else { return };
    let bytes = body(1000);
    for sent in [None, Some(400)] {
        let repository = repository(&[("a", bytes)]);
        let server = Server::start(move |request, stream| {
            if let (Some(sent), None) = (sent, request.from) {
                cut(stream, bytes, 0, sent);
            }
            // The connection stays open as long as the test runs.
            loop {
                std::thread::park();
            }
        });
        fails(&repository, &server, &["no data arrived for 1 s", "run the same command again"]);
        let part = at(&repository, ".fetch/text/a.part");
        assert_eq!(part.as_deref(), sent.map(|sent| &bytes[..sent]));
    }
}

/// Catches an answer that fills the disk, and redirections to files, to other protocols or in a circle.
#[test]
fn hostile_answers_are_refused() {
    let Some((repository, bytes)) = one_file(1000) else { return };
    let endless = Server::start(|_, stream| {
        use std::io::Write as _;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        while stream.write_all(&[7; 1 << 16]).is_ok() {}
    });
    fails(&repository, &endless, &["longer than the 1000 bytes of the manifest"]);
    assert_eq!(at(&repository, ".fetch/text/a.part"), None);
    let redirect = |to: &'static str| {
        Server::start(move |_, stream| status(stream, "302 Found", &[&format!("Location: {to}")]))
    };
    for (to, reason) in [
        ("file:///etc/passwd", "rotocol"),
        ("ftp://127.0.0.1/a", "rotocol"),
        ("/text/a", "redirects"),
    ] {
        fails(&repository, &redirect(to), &[reason]);
    }
    let good = Server::start(move |_, stream| full(stream, bytes));
    let location = format!("Location: {}/elsewhere", good.url);
    let server =
        Server::start(move |_, stream| status(stream, "301 Moved Permanently", &[&location]));
    succeeds(&repository, &server, bytes);
}

/// Catches a link in the folder of partial files that is followed.
#[cfg(unix)]
#[test]
fn links_below_the_partial_files_are_not_followed() {
    let Some((repository, bytes)) = one_file(1000) else { return };
    repository.write("precious/a.part", "precious");
    std::fs::create_dir(repository.path().join("data/.fetch")).unwrap();
    let link = repository.path().join("data/.fetch/text");
    std::os::unix::fs::symlink(repository.path().join("precious"), link).unwrap();
    let server = Server::start(move |_, stream| full(stream, bytes));
    fails(&repository, &server, &["through a link"]);
    assert_eq!(repository.read("precious/a.part"), "precious");
}

/// Catches a process that a file size limit kills, a full disk without advice, and a second transfer of written bytes.
#[cfg(unix)]
#[test]
fn a_full_disk_is_named_and_the_transfer_resumes() {
    let Some((repository, bytes)) = one_file(200_000) else { return };
    let server = Server::start(move |request, stream| ranged(stream, bytes, request.from));
    let arguments = ["data", "fetch", "text", "--mirror", &server.url];
    let run = repository.run_after("ulimit -f 64", &arguments).ends_with(1);
    run.says(&["a.part: cannot be written", "free some space"]);
    let part = at(&repository, ".fetch/text/a.part").unwrap();
    assert_eq!(part, bytes[..65_536]);
    assert!(!repository.path().join("data/text").exists());
    succeeds(&repository, &server, bytes);
    assert_eq!(server.requests().last().unwrap().from, Some(65_536));
}

/// Catches an interrupt that loses transferred bytes, leaves an unverified file, or lets curl continue alone.
#[cfg(unix)]
#[test]
fn an_interrupted_process_keeps_the_partial_file() {
    use crate::common::kill;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    let Some((repository, bytes)) = one_file(1000) else { return };
    let server = Server::start(move |request, stream| match request.from {
        // The connection stays open, so that only the interruption ends the transfer.
        None => {
            cut(stream, bytes, 0, 400);
            loop {
                std::thread::park();
            }
        }
        from => ranged(stream, bytes, from),
    });
    let mut command = repository.command(&["data", "fetch", "text", "--mirror", &server.url]);
    // Ctrl-C reaches all processes in the foreground: here a group of their own.
    let mut child = command.process_group(0).spawn().unwrap();
    wait("partial file", || {
        at(&repository, ".fetch/text/a.part").is_some_and(|part| part.len() >= 400)
    });
    let group = -i64::from(child.id());
    assert!(kill("-INT", group));
    let status = child.wait().unwrap();
    assert!(status.signal() == Some(2) || status.code() == Some(130), "{status}");
    wait("end of curl", || !kill("-0", group));
    assert!(!repository.path().join("data/text").exists());
    succeeds(&repository, &server, bytes);
    assert_eq!(server.requests().last().unwrap().from, Some(400));
}

/// Catches two processes that write one partial file.
#[test]
fn one_process_downloads_at_a_time() {
    let Some((repository, bytes)) = one_file(10) else { return };
    repository.write("data/.fetch/lock", "");
    let lock = std::fs::File::open(repository.path().join("data/.fetch/lock")).unwrap();
    lock.lock().unwrap();
    let server = Server::start(move |_, stream| full(stream, bytes));
    fails(&repository, &server, &[".fetch: cannot be locked", "one `data fetch` at a time"]);
    assert_eq!(server.requests().len(), 0);
    drop(lock);
    succeeds(&repository, &server, bytes);
}

/// Catches a set without addresses that seems to be fetched, a name that selects nothing, and addresses of other protocols.
#[test]
fn sets_without_addresses_show_their_steps() {
    let bytes = body(10);
    let repository = repository(&[("a", bytes)]);
    let steps = "  get        manually: write it yourself";
    repository.run(&["data", "fetch", "text"]).ends_with(1).prints(&[steps]);
    // Without a name, a set that must be fetched manually is no error.
    let none = "present: 0, to get manually: 1, failed: 0";
    repository.ok(&["data", "fetch"]).prints(&[none]);
    repository.fails(&["data", "fetch", "txt"], &["`txt` is neither", "allowed: text"]);
    for mirror in ["file:///tmp", "-o/tmp/x", "http://a b"] {
        let mirror = format!("--mirror={mirror}");
        repository
            .fails(&["data", "fetch", "text", &mirror], &["allowed are http:// and https://"]);
    }
    // The user's own files in another form are kept.
    repository.write("data/text/b", "mine");
    repository
        .ok(&["data", "fetch", "text", "--mirror", "http://127.0.0.1:1"])
        .prints(&["not compared"]);
    assert!(!repository.path().join("data/.fetch").exists());
}

/// The manifest's entry of a file.
fn entry(path: &str, bytes: &[u8]) -> String {
    format!("  - {{ path: '{path}', bytes: {}, sha256: '{}' }}\n", bytes.len(), sha256(bytes))
}

/// Catches images that are fetched as files and do not count as the published array of their pixels, files with wrong pixels that end with
/// success, and a set whose license is not shown.
#[test]
fn images_are_fetched_as_files_and_compared_by_their_pixels() {
    let Some(()) = curl() else { return };
    let pixels = body(3 * 8 * 8 * 3);
    let folder = tempfile::tempdir().unwrap();
    let mut entries = String::new();
    for (i, image) in pixels.chunks(8 * 8 * 3).enumerate() {
        let path = format!("crops/{i:02}.png");
        let file = folder.path().join(&path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        image::RgbImage::from_raw(8, 8, image.to_vec()).unwrap().save(&file).unwrap();
        entries += &entry(&path, &std::fs::read(&file).unwrap());
    }
    let root = folder.path().to_owned();
    let server = Server::start(move |request, stream| {
        full(stream, &std::fs::read(root.join(&request.path[1..])).unwrap())
    });
    for (sha256, code) in [(sha256(pixels), 0), ("0".repeat(64), 1)] {
        let repository = Repository::new();
        let manifest = format!(
            "sets:\n- id: crops\n  title: Crops\n  kind: images\n  license: for this test only\n  origin: this test\n  \
             size: 8\n  channels: rgb\n  count: 3\n  layout: {{ key: test, any_of: [crops.npz, crops] }}\n  \
             sha256: '{sha256}'\n  used_by: [trading/table1]\n  files:\n{entries}"
        );
        repository.write("data/manifest.yaml", &manifest);
        let arguments = ["data", "fetch", "trading/table1", "--mirror", &server.url];
        let run = repository.run(&arguments).ends_with(code);
        run.prints(&["license    for this test only", "fetched    3 of 3 files"]);
        match code {
            0 => run.prints(&["data/crops (the published data)"]),
            _ => run.says(&["error: crops: other data"]),
        };
        assert_eq!(repository.run(&["data", "check"]).code, code);
        // The set is complete, so nothing is transferred again.
        let before = server.requests().len();
        repository.run(&arguments);
        assert_eq!(server.requests().len(), before);
    }
}

/// Catches fetched data that a run does not use or does not treat as the paper's.
#[test]
fn fetched_data_change_verdicts() {
    let data = std::env::var_os("POSENC_DATA").map(std::path::PathBuf::from);
    let Some(data) = data.filter(|data| data.join("div2k/data_div2k.npz").exists()) else {
        skip(Need::Data, "POSENC_DATA names no directory with div2k/data_div2k.npz");
        return;
    };
    let Some(()) = curl() else { return };
    let repository = Repository::new();
    let reproduce = || repository.ok(&["reproduce", "trading/table1/closed-form/Tri"]).stderr;
    has(&reproduce(), &["claims with a first verdict: "]);
    // Images of other programs have the same pixels, but other files than those at the public address.
    let mut manifest = repository.read("data/manifest.yaml");
    let own = Manifest::read(&repository.path().join("data/manifest.yaml")).unwrap();
    let directory = DataDirectory::resolve(Some(&data), repository.path()).unwrap();
    let (source, folder) = (DataSource::new(own, directory), tempfile::tempdir().unwrap());
    for id in ["div2k-test", "div2k-train"] {
        let files = source.manifest().get(id).unwrap().download().files;
        for (file, image) in files.iter().zip(source.load(id, 0).unwrap()) {
            let copy = folder.path().join(&file.path);
            std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
            image.write_png(&copy).unwrap();
            let bytes = std::fs::read(&copy).unwrap();
            let old = format!("bytes: {}, sha256: {}", file.bytes, file.sha256);
            let new = format!("bytes: {}, sha256: {}", bytes.len(), sha256(&bytes));
            assert!(manifest.contains(&old), "{old}");
            manifest = manifest.replace(&old, &new);
        }
    }
    repository.write("data/manifest.yaml", &manifest);
    let root = folder.path().to_owned();
    let server = Server::start(move |request, stream| {
        ranged(stream, &std::fs::read(root.join(&request.path[1..])).unwrap(), request.from)
    });
    let run = repository.ok(&["data", "fetch", "trading/table1", "--mirror", &server.url]);
    run.prints(&["present: 2, to get manually: 0, failed: 0"]);
    assert_eq!(run.stdout.matches("(the published data)").count(), 2, "{}", run.stdout);
    assert_eq!(server.requests().len(), 32);
    has(&reproduce(), &["trading/table1 tri-closed-form: ? → ✓ (reproduced)"]);
}
