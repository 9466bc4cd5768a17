use image::{DynamicImage, GrayImage, RgbaImage};
use posenc_data::{Origin, Signal};

use crate::support::{
    Data, assert_refused, assert_says, header, loaded, npy, pixels, save_rgb, sha256, write_npz,
};

#[test]
fn the_published_array_is_recognized_by_its_checksum() {
    let data = Data::with_trio(3);
    let (set, signals) = loaded(&data.source(), "trio", 0);
    assert_eq!((set.label.as_str(), set.origin), ("trio", Origin::Published));
    assert_eq!(set.sha256, data.sha256);
    assert_eq!(set.warnings, [""; 0]);
    let names: Vec<&str> = signals.iter().map(|image| image.name.as_str()).collect();
    assert_eq!(names, ["image-00", "image-01", "image-02"]);
    // The second image begins where the first ends, channels fastest.
    let expected: Vec<f64> =
        pixels(3, 16)[768..771].iter().map(|&byte| f64::from(byte) / 255.0).collect();
    assert_eq!(signals[1].values[..3], expected[..]);
}

/// Catches a folder of image files that does not count as the array with the same pixels, or counts although a pixel differs.
#[test]
fn files_with_the_pixels_of_the_array_are_the_published_data() {
    let bytes = pixels(3, 16);
    let published = Data { sha256: sha256(&bytes), ..Data::empty() };
    std::fs::create_dir_all(published.path("trio/files")).unwrap();
    let file = |i: usize| published.path(&format!("trio/files/{i:02}.png"));
    for (i, own) in bytes.chunks(768).enumerate() {
        image::RgbImage::from_raw(16, 16, own.to_vec()).unwrap().save(file(i)).unwrap();
    }
    let array = Data::with_trio(3);
    let [set, expected] = [&published, &array].map(|d| loaded(&d.source(), "trio", 0));
    assert_eq!(set, expected);
    assert_eq!(set.0.origin, Origin::Published);
    std::fs::copy(file(1), file(2)).unwrap();
    let other = published.source().identity("trio", 0).unwrap();
    assert_eq!((other.label.as_str(), other.origin), ("other:trio", Origin::Other));
    for (width, height) in [(16, 17), (8, 8)] {
        save_rgb(&file(1), width, height);
        let error = published.source().load("trio", 0).unwrap_err();
        assert_says(&error, &["01.png", "16×16", "3 channels", "'trio'", "--images trio=DIR"]);
    }
    let gray = GrayImage::new(16, 16);
    DynamicImage::ImageLuma8(gray).save(file(1)).unwrap();
    assert_refused(published.source().load("trio", 0), &["01.png", "3 channels"]);
}

#[test]
fn another_checksum_is_loaded_under_another_label() {
    let mut data = Data::with_trio(2);
    data.sha256 = "f".repeat(64);
    let (set, signals) = loaded(&data.source(), "trio", 0);
    assert_eq!((set.label.as_str(), set.origin, signals.len()), ("other:trio", Origin::Other, 2));
    assert_ne!(set.sha256, data.sha256);
    assert_says(&set.warnings.join("\n"), &["second.npz", &data.sha256, "other:trio"]);
}

#[test]
fn absent_sets_are_generated_with_a_warning() {
    let source = Data::empty().source();
    let (set, signals) = loaded(&source, "trio", 7);
    assert_eq!((set.label.as_str(), set.origin), ("embedded:dead-leaves", Origin::Embedded));
    assert_eq!(signals.len(), 3);
    assert!(
        signals.iter().all(|image| (image.width(), image.height(), image.channels) == (16, 16, 3))
    );
    assert_says(
        &set.warnings.join("\n"),
        &[
            "trio",
            "trio/first.npz, trio/second.npz, trio/files",
            "using generated",
            "data fetch trio",
        ],
    );
    let signals = source.load("single", 7).unwrap();
    assert_eq!((signals.len(), signals[0].channels), (1, 1));
}

#[test]
fn the_identity_depends_on_seed_and_set() {
    let source = Data::empty().source();
    let of = |id: &str, seed: u64| source.identity(id, seed).unwrap().sha256;
    assert_ne!(of("trio", 0), of("trio", 1));
    assert_ne!(of("trio", 0), of("single", 0));
}

#[test]
fn a_damaged_published_file_is_an_error_and_not_replaced() {
    let data = Data::with_trio(3);
    let path = data.path("trio/second.npz");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 30]).unwrap();
    let error = data.source().load("trio", 0).unwrap_err();
    assert_says(&error, &["second.npz", "not a complete npz archive"]);
}

#[test]
fn an_array_of_another_shape_is_refused() {
    for (shape, n_elements) in
        [("3, 8, 16, 3", 1152), ("2, 16, 16", 512), ("0, 16, 16, 3", 0), ("768,", 768)]
    {
        let data = Data::empty();
        std::fs::create_dir(data.path("trio")).unwrap();
        let array = npy(&header("|u1", shape), &vec![0; n_elements]);
        write_npz(&data.path("trio/first.npz"), &[("test_data", array)]);
        let error = data.source().load("trio", 0).unwrap_err();
        assert_says(&error, &["first.npz", "'test_data'", "(n, 16, 16, 3)", "at least 1"]);
    }
}

#[test]
fn the_first_existing_path_is_used() {
    let data = Data::with_trio(3);
    let array = npy(&header("|u1", "1, 16, 16, 3"), &pixels(1, 16));
    write_npz(&data.path("trio/first.npz"), &[("test_data", array)]);
    assert_eq!(data.source().load("trio", 0).unwrap().len(), 1);
}

#[test]
fn images_of_a_folder_are_sorted_and_identified() {
    let data = Data::empty();
    let folder = data.path("mine");
    std::fs::create_dir(&folder).unwrap();
    for name in ["d.png", "b.png", "c.png", "a.PNG"] {
        save_rgb(&folder.join(name), 16, 16);
    }
    // Neither other files nor hidden ones nor folders are images.
    for name in ["a.txt", ".hidden.png", "._b.png"] {
        std::fs::write(folder.join(name), "").unwrap();
    }
    std::fs::create_dir(folder.join("a.png")).unwrap();
    let mut source = data.source();
    source.use_images("trio", &folder).unwrap();
    let (set, signals) = loaded(&source, "trio", 0);
    assert_eq!((set.label.as_str(), set.origin), ("user:mine", Origin::User));
    let names: Vec<&str> = signals.iter().map(|image| image.name.as_str()).collect();
    assert_eq!(names, ["a.PNG", "b.png", "c.png"]);
    assert_says(&set.warnings.join("\n"), &["4 images", "first 3"]);
    // A changed image changes the identity, unless the image is unused.
    let before = source.identity("trio", 0).unwrap();
    save_rgb(&folder.join("d.png"), 17, 17);
    assert_eq!(source.identity("trio", 0).unwrap(), before);
    save_rgb(&folder.join("b.png"), 17, 17);
    assert_ne!(source.identity("trio", 0).unwrap(), before);
}

#[test]
fn images_named_by_the_user_take_precedence_over_the_published_ones() {
    let data = Data::with_trio(3);
    let holiday = data.path("holiday");
    std::fs::create_dir(&holiday).unwrap();
    save_rgb(&holiday.join("beach.png"), 40, 30);
    let mut source = data.source();
    source.use_images("trio", &holiday).unwrap();
    let (set, signals) = loaded(&source, "trio", 0);
    assert_eq!((set.label.as_str(), signals.len()), ("user:holiday", 1));
    assert_eq!(signals[0].width(), 16);
    // A single file is accepted, too.
    source.use_images("trio", &holiday.join("beach.png")).unwrap();
    assert_eq!(source.identity("trio", 0).unwrap().label, "user:beach.png");
}

/// Catches names that would split a line of a record, and names that are equal once they are written.
#[cfg(unix)]
#[test]
fn names_that_records_cannot_contain_are_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let data = Data::empty();
    for (i, name) in [&b"a\nb.png"[..], &b"a\xff.png"[..]].into_iter().enumerate() {
        let folder = data.path(&format!("holiday-{i}"));
        std::fs::create_dir(&folder).unwrap();
        save_rgb(&folder.join("plain.png"), 40, 30);
        data.source().use_images("trio", &folder).unwrap();
        let odd = folder.join(std::ffi::OsStr::from_bytes(name));
        std::fs::rename(folder.join("plain.png"), odd).unwrap();
        assert_refused(data.source().use_images("trio", &folder), &["rename it", "UTF-8"]);
    }
}

#[test]
fn images_that_cannot_be_used_are_refused_when_they_are_named() {
    let data = Data::empty();
    let mut source = data.source();
    let empty = data.path("empty");
    std::fs::create_dir(&empty).unwrap();
    assert_refused(source.use_images("trio", &empty), &["empty", "contains no images"]);
    let error = source.use_images("trio", &data.path("gone")).unwrap_err();
    assert_says(&error, &["gone", "file or folder not found"]);
    assert_refused(source.use_images("quartet", &empty), &["'quartet'", "trio, single"]);
}

/// Catches a small image that makes a folder unusable, is enlarged, or is skipped without a word.
#[test]
fn small_images_in_a_folder_are_skipped_by_name() {
    let data = Data::empty();
    let folder = data.path("photos");
    std::fs::create_dir(&folder).unwrap();
    let save = |name: &str, width, height| save_rgb(&folder.join(name), width, height);
    save("a.png", 15, 40);
    save("c.png", 12, 12);
    let mut source = data.source();
    let error = source.use_images("trio", &folder).unwrap_err();
    assert_says(
        &error,
        &["photos: no image of the folder has at least 16×16", "use larger images"],
    );
    save("b.png", 40, 16);
    save("d.jpg", 20, 20);
    source.use_images("trio", &folder).unwrap();
    let identity = source.identity("trio", 0).unwrap();
    assert_eq!(identity.signals, ["b.png", "d.jpg"]);
    let signals = source.load("trio", 0).unwrap();
    let names: Vec<&str> = signals.iter().map(|image| image.name.as_str()).collect();
    assert_eq!(names, identity.signals);
    let skipped: Vec<&String> =
        identity.warnings.iter().filter(|w| w.contains("skipped")).collect();
    assert_eq!(skipped.len(), 2);
    assert_says(skipped[0], &["skipped: ", "photos/a.png: 15×40 pixels", "'trio'", "16×16"]);
    // A damaged image is an error; it is not small.
    std::fs::write(folder.join("d.jpg"), "no picture").unwrap();
    assert_refused(source.load("trio", 0), &["d.jpg", "not a readable image"]);
}

#[test]
fn small_images_of_the_user_are_refused_with_name_and_sizes() {
    let data = Data::empty();
    save_rgb(&data.path("tiny.png"), 12, 20);
    let mut source = data.source();
    source.use_images("trio", &data.path("tiny.png")).unwrap();
    assert_refused(source.load("trio", 0), &["tiny.png", "12×20", "'trio'", "16×16"]);
}

#[test]
fn channels_are_converted() {
    let data = Data::empty();
    let mut source = data.source();
    let gray = GrayImage::from_fn(16, 16, |x, _| image::Luma([x as u8]));
    DynamicImage::ImageLuma8(gray).save(data.path("gray.png")).unwrap();
    source.use_images("trio", &data.path("gray.png")).unwrap();
    let signals = source.load("trio", 0).unwrap();
    assert_eq!(signals[0].values[3..6], [1.0 / 255.0; 3]);

    let red = RgbaImage::from_pixel(16, 16, image::Rgba([255, 0, 0, 9]));
    DynamicImage::ImageRgba8(red).save(data.path("red.png")).unwrap();
    source.use_images("single", &data.path("red.png")).unwrap();
    let signals = source.load("single", 0).unwrap();
    assert_eq!(signals[0].channels, 1);
    assert!(signals[0].values.iter().all(|value| (value - 0.2125).abs() < 1e-15));
}

#[test]
fn a_single_published_image_is_loaded_from_its_file() {
    let data = Data::empty();
    std::fs::create_dir(data.path("single")).unwrap();
    let gray = GrayImage::from_fn(16, 16, |x, y| image::Luma([(16 * y + x) as u8]));
    DynamicImage::ImageLuma8(gray).save(data.path("single/image.png")).unwrap();
    let (set, signals) = loaded(&data.source(), "single", 0);
    assert_eq!((set.label.as_str(), signals.len()), ("other:single", 1));
    let image: &Signal = &signals[0];
    assert_eq!((image.name.as_str(), image.rows(&[2]).unwrap()[0][5]), ("image.png", 37.0 / 255.0));
}
