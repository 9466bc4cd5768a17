use posenc_experiments::record::Value;

use super::*;

fn parts() -> KeyParts {
    KeyParts { identity: "images.Gau.a/b.seed=0".into(), ..KeyParts::default() }
}

fn record() -> UnitRecord {
    let values = vec![Value::new("test_psnr", 20.0)];
    UnitRecord { parts: parts(), values, ..UnitRecord::default() }
}

fn picture(name: &str, signal: &str, level: u8) -> Picture {
    Picture::new(name, signal, (3, 2, 1), vec![level; 6]).psnr(f64::INFINITY)
}

/// Catches pictures that overwrite each other because two signals have the same file name, and pixels that change when they
/// are stored.
#[test]
fn pictures_are_stored_next_to_their_record() {
    let out = tempfile::tempdir().unwrap();
    let store = Store::new(out.path());
    let pictures = [
        picture("truth", "a b", 1),
        picture("truth", "a/b", 2),
        picture("reconstruction", &"ü/".repeat(400), 3),
    ];
    store.write("p", "i", record(), &pictures).unwrap();
    let read = store.find("p", "i", &parts()).unwrap();
    assert_eq!(read.values, record().values);
    assert_eq!(read.pictures.len(), 3);
    for (stored, picture) in read.pictures.iter().zip(&pictures) {
        let file = store.folder("p", "i").join(&stored.file);
        let bytes = std::fs::read(file).unwrap();
        let mut again = Picture::from_png(&stored.name, &stored.signal, &bytes).unwrap();
        again.psnr = stored.psnr;
        assert_eq!(again, *picture);
    }
}

/// Catches an invalid picture that is written, and a partly written unit that counts.
#[test]
fn a_wrong_picture_is_refused_by_name() {
    let out = tempfile::tempdir().unwrap();
    let store = Store::new(out.path());
    let wrong = Picture { width: 4, ..picture("error", "a", 1) };
    let error = store.write("p", "i", record(), &[picture("truth", "a", 1), wrong]).unwrap_err();
    let text = format!("{error:#}");
    assert!(text.contains("picture `error` of a: 6 values, expected 8 for its size"), "{text}");
    assert!(matches!(store.find("p", "i", &parts()), Err(Reason::NoRecord)));
    assert!(store.write("p", "i", record(), &[picture("fault", "a", 1)]).is_err());
}
