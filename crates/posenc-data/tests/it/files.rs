//! Sets of files: their identity, and the readers of downsampled images and parallel text, on valid and damaged files.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use posenc_data::{
    DownsampledImages, FileSet, Format, Manifest, Origin, ParallelText, RemoteFile, Split, Variant,
    Vocabulary, write_archive,
};
use posenc_math::random::stream;

use crate::support::{Data, assert_says, header, npy, sha256, write_npz};

const SIDE: usize = 4;

/// Image `i`: red, green and blue are three planes.
fn planes(i: usize) -> Vec<u8> {
    (0..3 * SIDE * SIDE).map(|at| (100 * i + at) as u8).collect()
}

/// The same with the colors of a pixel next to each other.
fn interleaved(i: usize) -> Vec<u8> {
    let planes = planes(i);
    let pixels = SIDE * SIDE;
    (0..pixels).flat_map(|p| [planes[p], planes[pixels + p], planes[2 * pixels + p]]).collect()
}

fn archive(path: &Path, images: std::ops::Range<usize>) {
    let bytes: Vec<u8> = images.clone().flat_map(planes).collect();
    let n = images.len();
    let data = npy(&header("|u1", &format!("{n}, {}", 3 * SIDE * SIDE)), &bytes);
    let labels = npy(&header("<i8", &format!("{n},")), &vec![0; 8 * n]);
    let mean = npy(&header("<f8", &format!("{},", 3 * SIDE * SIDE)), &[0; 8 * 3 * SIDE * SIDE]);
    write_npz(path, &[("data", data), ("labels", labels), ("mean", mean)]);
}

fn picture(path: &Path, i: usize) {
    let image = image::RgbImage::from_vec(SIDE as u32, SIDE as u32, interleaved(i)).unwrap();
    image.save(path).unwrap();
}

/// Catches planes that are read as pixels, archives that are left out, and images that repeat within a pass.
#[test]
fn archives_and_pictures_give_the_same_images() {
    let data = Data::empty();
    for (number, images) in [(1, 0..2), (2, 2..3), (10, 3..5)] {
        archive(&data.path(&format!("train_data_batch_{number}.npz")), images);
    }
    archive(&data.path("val_data.npz"), 7..9);
    let pictures = Data::empty();
    std::fs::create_dir(pictures.path("train_4x4")).unwrap();
    for i in 0..5 {
        picture(&pictures.path(&format!("train_4x4/{i:04}.png")), i);
    }
    std::fs::write(pictures.path("train_4x4/readme.txt"), "not a picture").unwrap();
    for (data, variant, skipped) in
        [(&data, Variant::Archives, 0), (&pictures, Variant::Pictures, 1)]
    {
        let mut images =
            DownsampledImages::open(data.folder.path(), SIDE, Split::Training).unwrap();
        assert_eq!((images.variant(), images.skipped()), (variant, skipped));
        let expected: Vec<Vec<u8>> = (0..5).map(interleaved).collect();
        assert_eq!(images.first(99).unwrap(), expected);
        assert_eq!(images.first(3).unwrap(), expected[..3]);
        let mut rng = stream(1, "order");
        // Batches cross the end of a pass.
        let mut rounds: Vec<Vec<u8>> = Vec::new();
        for _ in 0..5 {
            rounds.extend(images.batch(2, &mut rng).unwrap());
        }
        for round in rounds.chunks(5) {
            let mut sorted = round.to_vec();
            sorted.sort();
            let mut all = expected.clone();
            all.sort();
            assert_eq!(sorted, all);
        }
        assert_ne!(rounds[..5], rounds[5..]);
        let mut again = DownsampledImages::open(data.folder.path(), SIDE, Split::Training).unwrap();
        let mut rng = stream(1, "order");
        assert_eq!(again.batch(4, &mut rng).unwrap(), rounds[..4]);
        // A reader that resumes from a position, as from a checkpoint, continues with the same images.
        let mut other = DownsampledImages::open(data.folder.path(), SIDE, Split::Training).unwrap();
        assert!(other.go_on(again.place().clone()).unwrap());
        assert_eq!(other.batch(6, &mut rng).unwrap(), rounds[4..]);
    }
    let open = || DownsampledImages::open(data.folder.path(), SIDE, Split::Validation).unwrap();
    assert_eq!(open().first(1).unwrap(), [interleaved(7)]);
    // Written archives are read back unchanged.
    write_archive(&data.path("val_data.npz"), SIDE, &[interleaved(3), interleaved(8)]).unwrap();
    assert_eq!(open().first(9).unwrap(), [interleaved(3), interleaved(8)]);
}

/// Catches a reader that accepts images of another format, and errors that do not name the file.
#[test]
fn damaged_images_are_named() {
    let data = Data::empty();
    let open = |split| DownsampledImages::open(data.folder.path(), SIDE, split);
    let error = open(Split::Validation).unwrap_err();
    assert_says(&error, &["val_data*.npz", "valid_4x4", "train_data_batch_1.npz"]);
    let path = data.path("val_data.npz");
    let first = || open(Split::Validation).unwrap().first(1).unwrap_err();
    write_npz(&path, &[("data", npy(&header("|u1", "1, 12"), &[0; 12]))]);
    assert_says(&first(), &["val_data.npz", "(1, 12)", "(n, 48)", "4 × 4"]);
    // Pictures of another size, and none at all.
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(data.path("valid_4x4")).unwrap();
    image::RgbImage::new(4, 5).save(data.path("valid_4x4/a.png")).unwrap();
    assert_says(&first(), &["a.png", "4 × 5", "4 × 4"]);
    std::fs::write(data.path("valid_4x4/a.png"), "no picture").unwrap();
    assert_says(&first(), &["a.png"]);
}

fn gz(path: &Path, text: &[u8]) {
    let mut encoder = GzEncoder::new(std::fs::File::create(path).unwrap(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap();
}

/// Catches misaligned sides, wrong word splits, and compressed text that is not read.
#[test]
fn text_is_read_line_by_line_and_numbered_by_frequency() {
    let data = Data::empty();
    std::fs::write(data.path("train.en"), "A dog, a cat.\n\nThe dog\nonly\n").unwrap();
    gz(&data.path("train.de.gz"), "Ein Hund, eine Katze.\nnur\nDer Hund\n \n".as_bytes());
    let text = ParallelText::read(data.folder.path(), "train", ["en", "de"]).unwrap();
    assert_eq!((text.pairs.len(), text.skipped), (2, 2));
    assert_eq!(text.pairs[0][0], ["a", "dog", ",", "a", "cat", "."]);
    assert_eq!(text.pairs[1][1], ["der", "hund"]);
    let vocabulary = Vocabulary::new(&text, 2);
    assert_eq!(vocabulary.size(), 3);
    let corpus = vocabulary.number(&text);
    // a, dog; hund, then "," as the first in the alphabet.
    let mut rng = stream(1, "pairs");
    let seen: Vec<_> = (0..20).map(|_| corpus.natural(4, &mut rng)).collect();
    assert!(seen.iter().any(|p| p.source == [0, 1, 2, 0] && p.target == [2, 0, 1, 2]));
    assert!(seen.iter().any(|p| p.source == [2, 1] && p.target == [2, 0]));
    // hund twice, a comma, and five others.
    let counts = [2.0, 1.0, 5.0f64];
    let entropy: f64 = counts.iter().map(|n| -n / 8.0 * (n / 8.0).ln()).sum();
    assert!((corpus.target_entropy(3, 99) - entropy).abs() < 1e-12);
    let filled = corpus.filled(7, &mut rng);
    assert_eq!((filled.source.len(), filled.target.len()), (7, 7));
}

/// Catches a reader that accepts a truncated file.
#[test]
fn damaged_text_is_named() {
    let data = Data::empty();
    let read = || ParallelText::read(data.folder.path(), "train", ["en", "de"]).unwrap_err();
    assert_says(&read(), &["train.en or train.en.gz", "a sentence in each line"]);
    std::fs::write(data.path("train.en"), "one\ntwo\n").unwrap();
    assert_says(&read(), &["train.de"]);
    std::fs::write(data.path("train.de"), "eins\n").unwrap();
    assert_says(&read(), &["train.de", "1 lines", "has 2"]);
    std::fs::write(data.path("train.de"), b"eins\n\xff\xfe\n").unwrap();
    assert_says(&read(), &["train.de:2", "UTF-8"]);
    std::fs::write(data.path("train.de"), "x".repeat(70_000)).unwrap();
    assert_says(&read(), &["train.de:1", "65536 bytes"]);
    std::fs::write(data.path("train.de"), "\n\n").unwrap();
    assert_says(&read(), &["no line has words"]);
    std::fs::remove_file(data.path("train.de")).unwrap();
    // A file of kilobytes that becomes 32 MB.
    let bomb = format!("{}\n", "x".repeat(9_999)).repeat(3_200);
    let file = std::fs::File::create(data.path("train.de.gz")).unwrap();
    let mut encoder = GzEncoder::new(file, Compression::best());
    encoder.write_all(bomb.as_bytes()).unwrap();
    encoder.finish().unwrap();
    let length = std::fs::metadata(data.path("train.de.gz")).unwrap().len();
    assert!(100 * length < 1 << 24, "{length} bytes are no bomb");
    assert_says(&read(), &["train.de.gz", "the text", "at most 16777216"]);
    gz(&data.path("train.de.gz"), "eins\nzwei\n".repeat(1000).as_bytes());
    let whole = std::fs::read(data.path("train.de.gz")).unwrap();
    std::fs::write(data.path("train.de.gz"), &whole[..whole.len() - 9]).unwrap();
    assert_says(&read(), &["train.de.gz:", "fetch the file again"]);
}

fn file_set(sha256: Option<String>, substitutes_for: Option<&str>) -> FileSet {
    FileSet {
        id: "set".to_owned(),
        title: String::new(),
        license: String::new(),
        origin: "this test".to_owned(),
        format: Format::ParallelText,
        any_of: vec!["first".into(), "second".into()],
        sha256,
        files: Vec::new(),
        steps: None,
        substitutes_for: substitutes_for.map(str::to_owned),
        used_by: Vec::new(),
    }
}

/// Catches a label that presents other files as the paper's, and a checksum that misses a changed file.
#[test]
fn labels_identify_the_files() {
    let data = Data::empty();
    let find = |set: FileSet| set.find(&data.directory()).unwrap();
    assert_eq!(find(file_set(None, None)), None);
    let absence = file_set(None, None).absence(&data.directory());
    assert_says(&absence, &["set", "first, second", "this test"]);
    std::fs::create_dir(data.path("second")).unwrap();
    std::fs::write(data.path("second/a"), "x").unwrap();
    let list = format!("{}  a\n", sha256(b"x"));
    let published = Some(sha256(list.as_bytes()));
    let label = |set| {
        let found = find(set).unwrap();
        (found.label, found.origin)
    };
    assert_eq!(label(file_set(published.clone(), None)), ("set".into(), Origin::Published));
    let substitute = label(file_set(published, Some("own")));
    assert_eq!(substitute, ("substitute:set".into(), Origin::Substitute));
    let other = Some("0".repeat(64));
    assert_eq!(label(file_set(other, None)), ("other:set".into(), Origin::Other));
    let before = find(file_set(None, None)).unwrap();
    assert_eq!((before.label.as_str(), before.origin), ("unverified:set", Origin::User));
    // Files of weights are verified one by one.
    let listed = |path: &str, sha256: &str| {
        let (path, sha256) = (path.into(), sha256.to_owned());
        let files = vec![RemoteFile { path, bytes: 1, sha256, url: None }];
        find(FileSet { format: Format::Weights, files, ..file_set(None, None) }).unwrap()
    };
    let own = sha256(b"x");
    let found = listed("first/a", &own);
    assert_eq!((found.label.as_str(), found.origin), ("set", Origin::Published));
    assert_eq!(found.warnings, [""; 0]);
    assert_eq!(listed("first/a", &"0".repeat(64)).label, "unverified:set");
    assert_eq!(listed("first/b", &own).label, "unverified:set");
    std::fs::write(data.path("second/b"), "y").unwrap();
    assert_eq!(listed("first/a", &own).label, "unverified:set");
    assert_ne!(find(file_set(None, None)).unwrap().sha256, before.sha256);
}

/// Catches a manifest with file sets that no reader supports.
#[test]
fn file_sets_of_a_manifest_are_checked() {
    let parse = |set: &str| {
        let text = format!(
            "sets: []\nfile_sets:\n- id: text\n  title: t\n  license: l\n  origin: o\n  used_by: []\n{set}"
        );
        Manifest::parse(&text, Path::new("manifest.yaml"))
    };
    let manifest = parse("  format: parallel-text\n  any_of: [a]\n").unwrap();
    assert_eq!(manifest.file_set("text").unwrap().format, Format::ParallelText);
    assert!(manifest.get("text").is_err());
    let error = |set: &str| parse(set).unwrap_err().to_string();
    assert_says(
        &error("  format: poems\n  any_of: [a]\n"),
        &["poems", "parallel-text", "manifest.yaml:8"],
    );
    assert_says(&error("  format: parallel-text\n  any_of: []\n"), &["any_of is empty"]);
    assert_says(&error("  format: parallel-text\n  any_of: [../a]\n"), &["../a", "without '..'"]);
    let twice = "  format: parallel-text\n  any_of: [a]\n- id: text\n  title: t\n  license: l\n  origin: o\n  used_by: []\n  format: parallel-text\n  any_of: [a]\n";
    assert_says(&error(twice), &["defined twice"]);
}
