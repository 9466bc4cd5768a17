use super::*;
use crate::text::without_checksum;

fn picture(signal: &str, name: &str, content: u8) -> (GalleryPicture, Content) {
    let shown = Picture::new(name, signal, (130, 1, 1), vec![content; 130]);
    let bytes = shown.png().unwrap();
    let picture = GalleryPicture {
        group: "closed-form".into(),
        method: "Gau σ=0.1".into(),
        signal: signal.into(),
        seed: 0,
        name: name.into(),
        width: 130,
        height: 1,
        channels: 1,
        enlarged: 1,
        psnr: Some(f64::INFINITY),
        values: vec![Value::new("test_psnr", 26.5).unit("dB")],
        profile: Profile::Paper,
        device: "cpu".into(),
        data: "embedded:dead-leaves".into(),
        file: String::new(),
        blake3: blake3::hash(&bytes).to_hex().to_string(),
    };
    (picture, Content::Bytes(bytes))
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|e| file_name(&e.unwrap().path())).collect();
    names.sort();
    names
}

/// Catches an index that loses data, equal pictures stored twice, files that no index lists, and a second write that changes bytes.
#[test]
fn galleries_read_back_and_equal_pictures_share_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let all = vec![
        picture("image-00", "truth", 1),
        picture("image-00", "reconstruction", 2),
        picture("image-01", "truth", 1),
    ];
    assert!(Gallery::write(root, "p", "i", all.clone()).unwrap());
    assert!(!Gallery::write(root, "p", "i", all.clone()).unwrap(), "nothing changed");
    let read = Gallery::read(root, "p", "i").unwrap();
    assert_eq!(read.pictures.len(), 3);
    assert_eq!(read.pictures[0].file, "closed-form--Gau_=0.1--image-00--truth.png");
    assert_eq!(read.pictures[2].file, read.pictures[0].file);
    for ((mut expected, content), read_back) in all.into_iter().zip(&read.pictures) {
        expected.file.clone_from(&read_back.file);
        assert_eq!(*read_back, expected);
        assert_eq!(Content::Bytes(read.bytes(read_back).unwrap()), content);
    }
    let folder = root.join("p/i");
    assert_eq!(files(&folder).len(), 3, "two pictures and the index");

    let less = vec![picture("image-00", "truth", 3)];
    assert!(Gallery::write(root, "p", "i", less).unwrap());
    assert_eq!(
        files(&folder),
        ["closed-form--Gau_=0.1--image-00--truth.png", "pictures.json"],
        "the old ones are gone"
    );
    assert!(Gallery::write(root, "p", "i", Vec::new()).unwrap());
    assert!(!folder.exists());
    assert_eq!(Gallery::read(root, "p", "i").unwrap(), Gallery::default());
}

/// Catches names that leave the folder, are too long for a file system, or overwrite each other.
#[test]
fn odd_names_become_safe_and_distinct_file_names() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let long = "very ".repeat(80);
    let longer = format!("{long}long");
    let signals = [
        "a b",
        "a_b",
        "a/b",
        "A_B",
        "../../etc/passwd",
        "..",
        ".",
        "ünïcödé 画像",
        "画像",
        "影像",
        &long,
        &longer,
        "a\nb",
        "con",
        "a\0b",
        " ",
        "--",
    ];
    let all: Vec<_> = (0..).zip(signals).map(|(i, signal)| picture(signal, "truth", i)).collect();
    Gallery::write(root, "p", "i", all.clone()).unwrap();
    let read = Gallery::read(root, "p", "i").unwrap();
    let mut names = BTreeSet::new();
    for (picture, signal) in read.pictures.iter().zip(signals) {
        assert_eq!(picture.signal, signal);
        assert!(picture.file.len() < 220, "{}", picture.file);
        assert_eq!(safe(&picture.file), picture.file);
        assert!(names.insert(picture.file.to_lowercase()), "{} appears twice", picture.file);
    }
    assert_eq!(files(&root.join("p/i")).len(), signals.len() + 1);
    // The file names depend only on the pictures and their order.
    let again = tempfile::tempdir().unwrap();
    Gallery::write(again.path(), "p", "i", all).unwrap();
    assert_eq!(files(&again.path().join("p/i")), files(&root.join("p/i")));
}

/// Catches pictures that are shown although they are damaged, missing or outside the folder.
#[test]
fn damage_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let write = || {
        let all = vec![picture("a", "truth", 1), picture("b", "truth", 2)];
        Gallery::write(root, "p", "i", all).unwrap()
    };
    write();
    let folder = root.join("p/i");
    let file = folder.join("closed-form--Gau_=0.1--b--truth.png");
    let whole = std::fs::read(&file).unwrap();
    let message = || Gallery::read(root, "p", "i").unwrap_err().to_string();

    std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    assert!(message().contains("pictures[1]") && message().contains("b--truth.png: damaged"));
    std::fs::remove_file(&file).unwrap();
    assert!(message().contains("b--truth.png: is missing"), "{}", message());
    assert!(message().contains("git checkout"));
    let usable = Gallery::read_usable(root, "p", "i").unwrap();
    assert_eq!(usable.pictures.iter().map(|p| p.signal.as_str()).collect::<Vec<_>>(), ["a"]);
    assert!(write(), "writing again repairs");
    assert_eq!(std::fs::read(&file).unwrap(), whole);

    std::fs::write(folder.join("mine.png"), "x").unwrap();
    assert_eq!(Gallery::read(root, "p", "i").unwrap().surplus, [folder.join("mine.png")]);

    let index = folder.join(INDEX);
    let text = without_checksum(&std::fs::read_to_string(&index).unwrap());
    std::fs::write(&index, text.replace("closed-form--Gau_=0.1--b--truth.png", "../x.png"))
        .unwrap();
    assert!(message().contains("is not a file name written by posenc"), "{}", message());
    std::fs::write(&index, text.replace("\"item\": \"i\"", "\"item\": \"j\"")).unwrap();
    assert!(message().contains("`p/j` in the record of p/i"), "{}", message());
    std::fs::write(&index, &text[..text.len() / 2]).unwrap();
    assert!(message().contains("pictures.json:") && message().contains("damaged"), "{}", message());
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
