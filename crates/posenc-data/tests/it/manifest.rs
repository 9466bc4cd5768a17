use std::collections::BTreeSet;
use std::path::Path;

use posenc_data::{Channels, Layout, Manifest};

use crate::support::{assert_refused, assert_says};

const SOUND: &str = "sets:
  - id: one
    title: t
    kind: images
    license: l
    origin: o
    size: 16
    channels: rgb
    count: 2
    layout:
      key: k
      any_of: [a/b.npz]
    sha256: '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'
    files:
      - { path: a/b.npz, bytes: 10, sha256: 'a123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', url: 'https://example.org/b.npz' }
    steps: by hand
    used_by: [p/fig1]
";

fn parse(text: &str) -> Result<Manifest, posenc_data::DataError> {
    Manifest::parse(text, Path::new("data/manifest.yaml"))
}

/// Checks that the manifest with `from` replaced is refused on `line`, in a message with all
/// `parts`.
#[track_caller]
fn refused(from: &str, to: &str, line: usize, parts: &[&str]) {
    assert!(SOUND.contains(from));
    let error = parse(&SOUND.replace(from, to)).unwrap_err();
    assert_says(&error, &[&format!("data/manifest.yaml:{line}: ")]);
    assert_says(&error, parts);
}

#[test]
fn a_valid_manifest_is_parsed() {
    let manifest = parse(SOUND).unwrap();
    let set = manifest.get("one").unwrap();
    assert_eq!((set.size, set.count, set.channels), (16, 2, Channels::Rgb));
    let layout = Layout { key: Some("k".to_owned()), any_of: vec!["a/b.npz".into()] };
    assert_eq!(set.layout, Some(layout));
}

#[test]
fn unknown_keys_and_values_are_refused_with_their_line() {
    refused("    title: t", "    tittle: t", 3, &["unknown field `tittle`", "`title`"]);
    refused("      key: k", "      keys: k", 11, &["unknown field `keys`"]);
    refused("channels: rgb", "channels: cmyk", 8, &["cmyk", "`rgb`", "`gray`"]);
    refused("kind: images", "kind: sounds", 4, &["sounds", "`images`"]);
}

#[test]
fn values_out_of_range_are_refused_with_the_allowed_range() {
    refused("size: 16", "size: 0", 7, &["0 is out of range", "1 to 4096"]);
    refused("count: 2", "count: 1000000", 9, &["1 to 10000"]);
    refused("'0123456789abcdef0", "'0", 13, &["64 digits"]);
    refused("id: one", "id: One/Two", 2, &["'One/Two'", "small letters, digits and hyphens"]);
    let out = "may lead out of the folder";
    refused("[a/b.npz]", "[../b.npz]", 12, &["'../b.npz'", out, "without '..'"]);
    refused("[a/b.npz]", "[/etc/passwd]", 12, &["'/etc/passwd'", out]);
    refused("[a/b.npz]", "[a/../../b.npz]", 12, &["'a/../../b.npz'", out]);
    refused("[a/b.npz]", "['a\\..\\..\\b.npz']", 12, &[out]);
    refused("[a/b.npz]", "['C:b.npz']", 12, &["'C:b.npz'", out]);
    refused("[a/b.npz]", "[\"a\\0.npz\"]", 12, &["'a\\0.npz'", out]);
    refused("id: one", "id: '..'", 2, &["'..'", "small letters"]);
    let long = "a".repeat(61);
    refused("id: one", &format!("id: {long}"), 2, &["at most 60"]);
}

/// Catches downloads that would leave the data directory, land where nothing looks for them, or come from no server.
#[test]
fn files_to_download_are_checked() {
    let manifest = parse(SOUND).unwrap();
    let download = manifest.get("one").unwrap().download();
    assert_eq!((download.files[0].bytes, &download.files[0].sha256[..2]), (10, "a1"));
    assert_eq!(download.instructions("one"), "cargo xtask data fetch one");
    refused("path: a/b.npz", "path: ../b.npz", 15, &["may lead out of the folder"]);
    refused("path: a/b.npz", "path: a/c.npz", 2, &["'a/c.npz'", "any_of"]);
    refused("bytes: 10", "bytes: 0", 15, &["0 is out of range"]);
    refused("'a123", "'123", 15, &["64 digits"]);
    refused("'a123", "'g123", 15, &["64 digits"]);
    refused("https://example.org/b.npz", "file:///b.npz", 15, &["http:// and https://"]);
    refused("url:", "uri:", 15, &["unknown field `uri`", "`url`"]);
    refused("path: a/b.npz, bytes: 10", "path: a/b.npz", 15, &["missing field `bytes`"]);
    let entry = SOUND.lines().find(|line| line.contains("path: ")).unwrap();
    refused("    steps", &format!("{entry}\n    steps"), 2, &["'a/b.npz' is listed twice"]);
}

/// Catches a small manifest that aliases make large, and a large one that is read at all.
#[test]
fn manifests_cannot_grow() {
    let words = "w,".repeat(30_000);
    let laughs = format!("sets: &a [{words}]\nfile_sets: [{}]\n", "*a,".repeat(20_000));
    assert_refused(parse(&laughs), &["data/manifest.yaml:"]);
    let long = format!("{SOUND}# {}\n", "x".repeat(1 << 17));
    assert_refused(parse(&long), &["more than 131072 bytes"]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("manifest.yaml");
    std::fs::write(&file, &long).unwrap();
    assert_refused(Manifest::read(&file), &["the manifest", "131072"]);
}

#[test]
fn contradictions_are_refused_with_the_line_of_the_set() {
    refused("[a/b.npz]", "[]", 2, &["'one'", "any_of is empty"]);
    refused("      key: k\n", "", 2, &["count is 2", "layout.key"]);
    let twice = format!("{SOUND}{}", SOUND.strip_prefix("sets:\n").unwrap());
    assert_refused(parse(&twice), &["data/manifest.yaml:18: ", "'one' is defined twice"]);
}

#[test]
fn invalid_yaml_is_refused_with_its_line() {
    assert_refused(parse("sets:\n  - id: [\n"), &["data/manifest.yaml:"]);
    assert!(parse("").is_err());
    let error = Manifest::read(Path::new("/nowhere.yaml")).unwrap_err();
    assert_says(&error, &["/nowhere.yaml", "file not found"]);
}

#[test]
fn the_error_for_an_unknown_data_set_lists_existing_ones() {
    assert_refused(parse(SOUND).unwrap().get("two"), &["'two'", "data/manifest.yaml has one"]);
}

// `published` compares the checksums with the real data, if available.
#[test]
fn the_manifest_of_this_repository_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/manifest.yaml");
    let manifest = Manifest::read(&path).unwrap();
    let ids: Vec<&str> = manifest.sets().iter().map(|set| set.id.as_str()).collect();
    for id in [
        "div2k-test",
        "div2k-train",
        "tancik-text-test",
        "tancik-text-train",
        "sipi-peppers",
        "sipi-stream-and-bridge",
        "sipi-house",
        "video-clips",
    ] {
        assert!(ids.contains(&id), "{id} is missing");
    }
    // The report distinguishes generated sets from stand-ins by these ids.
    for set in manifest.sets() {
        assert_eq!(set.layout.is_none(), set.id.starts_with("embedded-"), "{}", set.id);
    }
    for set in manifest.sets().iter().filter(|set| set.layout.is_some()) {
        let download = set.download();
        assert!(download.has_urls() || download.steps.is_some(), "{}: no way to get it", set.id);
    }
    for set in manifest.file_sets() {
        let download = set.download();
        assert!(download.has_urls() || download.steps.is_some(), "{}: no way to get it", set.id);
    }
    // A checksum copied from one set to another would pass every other test.
    let with_files = || manifest.sets().iter().filter(|set| set.layout.is_some());
    let checksums: BTreeSet<&str> = with_files().filter_map(|set| set.sha256.as_deref()).collect();
    assert_eq!(checksums.len(), with_files().count());
}
